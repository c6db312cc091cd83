//! One instruction of a given opcode, with operands and attributes that the verifier accepts.

use ptxc_targets::{Lanes, SpecialReg, Tok, tok};

use super::Rng;
use super::types::{all_types, controlling_types};
use crate::builder::FunctionBuilder;
use crate::entities::Value;
use crate::flags::{Flags, group};
use crate::instruction::{Extra, GroupKind, MemAttrs, TargetOp, TargetOperand};
use crate::module::{FuncKind, Module, Signature};
use crate::opcode::{AtomicOp, CacheOp, FloatCC, IntCC, L1Evict, L2Evict, Opcode, Ordering, Scope, Shape};
use crate::sreg_type;
use crate::types::{AggDef, FloatKind, MemType, Space, Type};
use crate::verifier::converts;

/// Where operands come from.
pub(super) trait Operands {
    /// The source of choices.
    fn rng(&mut self) -> &mut Rng;
    /// The module with its symbols.
    fn module(&self) -> &Module;
    /// Calls and target operations are wanted.
    fn calls(&self) -> bool;
    /// A value of this type that may be used here.
    fn value(&mut self, b: &mut FunctionBuilder, ty: Type) -> Value;
    /// An aggregate, if there is one.
    fn mem_type(&mut self) -> MemType;
    /// A signature of an indirect call.
    fn signature(&mut self) -> Signature;
}

/// Builds an instruction of the opcode with a type of its choice. Nothing, for terminators.
pub(super) fn build(o: &mut dyn Operands, b: &mut FunctionBuilder, op: Opcode) {
    let types = controlling_types(op);
    let ty = o.rng().pick(&types).copied().unwrap_or(Type::INVALID);
    build_typed(o, b, op, ty);
}

/// Builds an instruction of the opcode with this controlling type.
pub(super) fn build_typed(o: &mut dyn Operands, b: &mut FunctionBuilder, op: Opcode, ty: Type) {
    let flags = flags(o.rng(), op, ty);
    match op.shape() {
        Shape::Unary | Shape::Splat | Shape::Reduce => {
            let operand = if op.shape() == Shape::Splat { ty.scalar() } else { ty };
            plain(o, b, op, flags, ty, &[operand], Extra::None);
        }
        Shape::Binary | Shape::BinaryOverflow => plain(o, b, op, flags, ty, &[ty, ty], Extra::None),
        Shape::Ternary => plain(o, b, op, flags, ty, &[ty, ty, ty], Extra::None),
        Shape::FloatClass => {
            let mask = o.rng().below(1024) as u64;
            plain(o, b, op, flags, ty, &[ty], Extra::Imm(mask));
        }
        Shape::Convert | Shape::ConvertRandom => {
            let from: Vec<Type> = all_types().into_iter().filter(|from| converts(op, *from, ty)).collect();
            if let Some(from) = o.rng().pick(&from).copied() {
                let operands = [from, Type::I32];
                let count = if op.shape() == Shape::Convert { 1 } else { 2 };
                plain(o, b, op, flags, ty, &operands[..count], Extra::None);
            }
        }
        Shape::IntCompare => {
            let cc = o.rng().pick(IntCC::ALL).copied().unwrap_or(IntCC::Eq);
            plain(o, b, op, flags, ty, &[ty, ty], Extra::IntCC(cc));
        }
        Shape::FloatCompare => {
            let cc = o.rng().pick(FloatCC::ALL).copied().unwrap_or(FloatCC::Oeq);
            plain(o, b, op, flags, ty, &[ty, ty], Extra::FloatCC(cc));
        }
        Shape::Select => {
            let condition = if o.rng().once_in(2) { ty.as_bool() } else { Type::I1 };
            plain(o, b, op, flags, ty, &[condition, ty, ty], Extra::None);
        }
        Shape::BuildVector => plain(o, b, op, flags, ty, &vec![ty.scalar(); ty.lanes() as usize], Extra::None),
        Shape::Extract | Shape::Insert | Shape::Shuffle => vector(o, b, op, ty),
        Shape::Load
        | Shape::Store
        | Shape::AtomicRmw
        | Shape::Cmpxchg
        | Shape::Fence
        | Shape::MemCopy
        | Shape::MemSet
        | Shape::Gep
        | Shape::Alloca
        | Shape::IsSpace => memory(o, b, op, flags, ty),
        Shape::Predicate => plain(o, b, op, flags, ty, &[Type::I1], Extra::None),
        Shape::Nullary if !op.is_terminator() => plain(o, b, op, flags, ty, &[], Extra::None),
        Shape::Call | Shape::CallIndirect | Shape::Target | Shape::Asm if o.calls() => call(o, b, op, flags),
        _ => threads(o, b, op, flags, ty),
    }
}

/// Operands of these types, results by the table.
fn plain(
    o: &mut dyn Operands,
    b: &mut FunctionBuilder,
    op: Opcode,
    flags: Flags,
    ty: Type,
    operands: &[Type],
    extra: Extra,
) {
    let args: Vec<Value> = operands.iter().map(|ty| o.value(b, *ty)).collect();
    b.inst(op, flags, ty, &args, extra);
}

fn flags(rng: &mut Rng, op: Opcode, ty: Type) -> Flags {
    let accepted = op.info().flags;
    if rng.once_in(2) || op == Opcode::Br {
        return Flags::EMPTY;
    }
    let mut bits = rng.bits() as u32 & accepted & !group::ROUND;
    if accepted & group::ROUND != 0 {
        bits |= [0, Flags::RN.bits(), Flags::RZ.bits(), Flags::RM.bits(), Flags::RP.bits()][rng.below(5)];
    }
    let kind = ty.float_kind();
    let narrow = kind.is_some_and(|k| k.is_narrow() || k == FloatKind::Tf32);
    let half = matches!(kind, Some(FloatKind::F16 | FloatKind::Bf16));
    let relu = match op {
        Opcode::Fptrunc => half || narrow,
        _ => half,
    };
    let sat = match op {
        Opcode::Fptrunc => half || narrow || kind == Some(FloatKind::F32),
        _ => matches!(kind, Some(FloatKind::F16 | FloatKind::F32)),
    };
    bits &= !(if relu { 0 } else { group::RELU });
    bits &= !(if sat { 0 } else { group::SAT });
    Flags::from_bits(bits)
}

fn vector(o: &mut dyn Operands, b: &mut FunctionBuilder, op: Opcode, ty: Type) {
    let lanes = ty.lanes() as usize;
    if op == Opcode::Shuffle {
        let count = 1 + o.rng().below(8);
        let mask: Vec<i32> = (0..count).map(|_| o.rng().below(2 * lanes + 1) as i32 - 1).collect();
        let result = ty.scalar().with_lanes(count as u32);
        let mask = b.func.dfg.masks.push(mask);
        let args = [o.value(b, ty), o.value(b, ty)];
        b.inst_with_results(op, Flags::EMPTY, ty, &args, Extra::Mask(mask), &[result]);
        return;
    }
    let index_type = [Type::I32, Type::I64, Type::I8][o.rng().below(3)];
    let lane = o.rng().below(lanes) as i64;
    let index = match o.rng().once_in(3) {
        // A value that is no constant, whatever it is, may be out of range: the result is poison then.
        true => {
            let value = o.value(b, Type::I1);
            b.convert(Opcode::Zext, value, Type::I32)
        }
        // Lane numbers of few bits would be negative.
        false if lane < 128 => b.iconst(index_type, lane),
        false => b.iconst(Type::I32, lane),
    };
    let first = o.value(b, ty);
    match op {
        Opcode::Extract => b.inst(op, Flags::EMPTY, ty, &[first, index], Extra::None),
        _ => {
            let element = o.value(b, ty.scalar());
            b.inst(op, Flags::EMPTY, ty, &[first, element, index], Extra::None)
        }
    };
}

fn pointer(o: &mut dyn Operands, b: &mut FunctionBuilder, spaces: &[Space]) -> (Value, Space) {
    let space = o.rng().pick(spaces).copied().unwrap_or(Space::Generic);
    (o.value(b, Type::ptr(space)), space)
}

const WRITABLE: &[Space] = &[Space::Generic, Space::Global, Space::Shared, Space::SharedCluster, Space::Local];
const READABLE: &[Space] =
    &[Space::Generic, Space::Global, Space::Shared, Space::SharedCluster, Space::Local, Space::Const, Space::Param];
const ATOMIC: &[Space] = &[Space::Generic, Space::Global, Space::Shared, Space::SharedCluster];

fn scope(rng: &mut Rng) -> Scope {
    rng.pick(Scope::ALL).copied().unwrap_or(Scope::Sys)
}

/// Attributes that a plain or ordered access of this kind may have.
fn attributes(rng: &mut Rng, ty: Type, store: bool, space: Space) -> MemAttrs {
    let mut mem = MemAttrs::aligned(ty.align());
    let bits = ty.scalar_bits();
    let ordered = !ty.is_vector() && bits >= 8 && bits.is_power_of_two() && rng.once_in(4);
    mem.volatile = rng.once_in(6);
    if ordered {
        let own = if store { Ordering::Release } else { Ordering::Acquire };
        mem.order = [Ordering::Relaxed, Ordering::SeqCst, own][rng.below(3)];
        mem.scope = scope(rng);
        return mem;
    }
    if rng.once_in(2) {
        mem.align_log2 = rng.below(8) as u8;
    }
    mem.invariant = !store && !mem.volatile && rng.once_in(4);
    let hinted = matches!(space, Space::Global | Space::Generic);
    if rng.once_in(3) && !mem.volatile {
        let ops: &[CacheOp] = match store {
            true => &[CacheOp::Wb, CacheOp::Wt, CacheOp::Cg, CacheOp::Cs],
            false => &[CacheOp::Ca, CacheOp::Cg, CacheOp::Cs, CacheOp::Lu, CacheOp::Cv],
        };
        mem.cache = rng.pick(ops).copied().unwrap_or(CacheOp::None);
    } else if hinted && rng.once_in(2) {
        mem.l1 = rng.pick(L1Evict::ALL).copied().unwrap_or(L1Evict::None);
        mem.l2 = rng.pick(L2Evict::ALL).copied().unwrap_or(L2Evict::None);
        mem.prefetch = if store { 0 } else { [0, 64, 128, 256][rng.below(4)] };
        mem.has_policy = rng.once_in(2);
    }
    mem
}

fn memory(o: &mut dyn Operands, b: &mut FunctionBuilder, op: Opcode, flags: Flags, ty: Type) {
    match op.shape() {
        Shape::Load | Shape::Store => {
            let store = op == Opcode::Store;
            let (at, space) = pointer(o, b, if store { WRITABLE } else { READABLE });
            let mem = attributes(o.rng(), ty, store, space);
            let mut args = if store { vec![o.value(b, ty), at] } else { vec![at] };
            if mem.has_policy {
                args.push(o.value(b, Type::I64));
            }
            b.inst(op, flags, ty, &args, Extra::Mem(mem));
        }
        Shape::AtomicRmw | Shape::Cmpxchg => atomic(o, b, op, flags, ty),
        Shape::Fence => {
            let orders = [Ordering::Acquire, Ordering::Release, Ordering::AcqRel, Ordering::SeqCst];
            let order = orders[o.rng().below(4)];
            let extra = Extra::Fence(order, scope(o.rng()));
            b.inst(op, flags, ty, &[], extra);
        }
        Shape::MemCopy | Shape::MemSet => {
            let (dst, _) = pointer(o, b, WRITABLE);
            let from = match op {
                Opcode::Memset => o.value(b, Type::I8),
                _ => pointer(o, b, READABLE).0,
            };
            let size_type = if o.rng().once_in(2) { Type::I64 } else { Type::I32 };
            let size = o.value(b, size_type);
            let src_align = if op == Opcode::Memset { 1 } else { 1 << o.rng().below(5) };
            let extra = Extra::Copy { dst_align: 1 << o.rng().below(5), src_align, volatile: o.rng().once_in(3) };
            b.inst(op, flags, ty, &[dst, from, size], extra);
        }
        Shape::Gep => gep(o, b, flags),
        Shape::Alloca => {
            let ty = o.mem_type();
            let natural = b_align(o, ty);
            let align = if o.rng().once_in(2) { natural } else { natural * 2 };
            let count = 1 + o.rng().below(3) as u32;
            b.alloca(ty, count, align);
        }
        _ => {
            let spaces = [Space::Global, Space::Shared, Space::SharedCluster, Space::Const, Space::Local, Space::Param];
            let space = spaces[o.rng().below(6)];
            plain(o, b, op, flags, ty, &[Type::PTR], Extra::Space(space));
        }
    }
}

fn b_align(o: &mut dyn Operands, ty: MemType) -> u32 {
    o.module().layout_of(ty).align as u32
}

fn atomic(o: &mut dyn Operands, b: &mut FunctionBuilder, op: Opcode, flags: Flags, ty: Type) {
    let (at, space) = pointer(o, b, ATOMIC);
    let orders = [Ordering::Relaxed, Ordering::Acquire, Ordering::Release, Ordering::AcqRel, Ordering::SeqCst];
    let mut mem = MemAttrs::aligned(ty.size().next_power_of_two());
    mem.order = orders[o.rng().below(5)];
    mem.scope = scope(o.rng());
    mem.volatile = o.rng().once_in(6);
    mem.has_policy = matches!(space, Space::Global | Space::Generic) && o.rng().once_in(4);
    let operations = atomic_operations(ty);
    let mut args = vec![at, o.value(b, ty)];
    let extra = if op == Opcode::Cmpxchg {
        args.push(o.value(b, ty));
        let failures = [Ordering::Relaxed, Ordering::Acquire, Ordering::SeqCst];
        Extra::Cmpxchg(mem, failures[o.rng().below(3)])
    } else {
        match o.rng().pick(&operations) {
            Some(operation) => Extra::Rmw(*operation, mem),
            None => return,
        }
    };
    if mem.has_policy {
        args.push(o.value(b, Type::I64));
    }
    b.inst(op, flags, ty, &args, extra);
}

/// What `atomicrmw` does on this type.
pub(super) fn atomic_operations(ty: Type) -> Vec<AtomicOp> {
    use AtomicOp::{Fadd, Fmax, Fmin, Fsub, Xchg};
    let fits = |op: &AtomicOp| match op {
        Xchg => !ty.is_vector(),
        Fadd | Fsub | Fmax | Fmin => ty.is_float_like(),
        _ => ty.is_int(),
    };
    AtomicOp::ALL.iter().copied().filter(fits).collect()
}

/// Steps down a random path through a random type.
fn gep(o: &mut dyn Operands, b: &mut FunctionBuilder, flags: Flags) {
    let over = o.mem_type();
    let lanes = if o.rng().once_in(6) { 4 } else { 0 };
    let space = Space::ALL[o.rng().below(Space::ALL.len())];
    let mut args = vec![o.value(b, Type::ptr(space).with_lanes(lanes))];
    let index_types = [Type::I64, Type::I32, Type::I8, Type::I128, Type::I32.with_lanes(lanes)];
    let mut index_type = || index_types[o.rng().below(5)];
    let first = index_type();
    args.push(o.value(b, first));
    let mut ty = over;
    while let MemType::Agg(id) = ty
        && !o.rng().once_in(4)
    {
        let def = o.module().agg(id).def.clone();
        match def {
            AggDef::Array { elem, .. } => {
                let index = index_types[o.rng().below(5)];
                args.push(o.value(b, index));
                ty = elem;
            }
            AggDef::Struct { fields, .. } => {
                let field = o.rng().below(fields.len());
                let Some(inner) = fields.get(field) else { break };
                let index = if o.rng().once_in(2) { Type::I64 } else { Type::I32 };
                args.push(b.iconst(index, field as i64));
                ty = *inner;
            }
        }
    }
    b.inst(Opcode::Gep, flags, Type::INVALID, &args, Extra::Gep(over));
}

fn call(o: &mut dyn Operands, b: &mut FunctionBuilder, op: Opcode, flags: Flags) {
    match op {
        Opcode::Call => {
            let module = o.module();
            let callable: Vec<_> = module.func_ids().filter(|f| module.funcs[*f].kind == FuncKind::Func).collect();
            let Some(callee) = o.rng().pick(&callable).copied() else { return };
            let sig = &o.module().funcs[callee].sig;
            let (params, results) = (o.module().sig_params(sig), o.module().sig_results(sig));
            let args: Vec<Value> = params.into_iter().map(|ty| o.value(b, ty)).collect();
            b.inst_with_results(op, flags, Type::INVALID, &args, Extra::Call(callee), &results);
        }
        Opcode::CallIndirect => {
            let sig = o.signature();
            let (params, results) = (o.module().sig_params(&sig), o.module().sig_results(&sig));
            let types = std::iter::once(Type::PTR).chain(params);
            let args: Vec<Value> = types.map(|ty| o.value(b, ty)).collect();
            let sig = b.func.dfg.signatures.push(sig);
            b.inst_with_results(op, flags, Type::INVALID, &args, Extra::CallIndirect(sig), &results);
        }
        Opcode::Asm => {
            let args = [o.value(b, Type::I32), o.value(b, Type::F32)];
            let text = "mad.lo.s32 $0, $1, $1, 1;\n\t// \"quoted\" \\".to_string();
            let extra = Extra::Target(b.func.dfg.target_ops.push(TargetOp::Opaque { text }));
            b.inst_with_results(op, flags, Type::INVALID, &args, extra, &[Type::I32]);
        }
        _ => target(o, b),
    }
}

/// Target operations of several shapes: registers and immediates, guards, vectors, addresses, pairs, special registers.
fn target(o: &mut dyn Operands, b: &mut FunctionBuilder) {
    use TargetOperand::{Arg, Group, Imm, Offset, Result, Sreg};
    let (i1, i32, global) = (Type::I1, Type::I32, Type::ptr(Space::Global));
    let offset = o.rng().below(64) as i64 * 8 - 256;
    let address = |index: u16| match offset {
        0 => vec![Group(GroupKind::Address, 1), Arg(index)],
        _ => vec![Group(GroupKind::Address, 2), Arg(index), Offset(offset)],
    };
    let vector = Group(GroupKind::Vector, 2);
    let pair = Group(GroupKind::Pair, 2);
    let tid = SpecialReg::from_name("tid.y").map_or(Imm(0), Sreg);
    type Form = (&'static [Tok], Vec<TargetOperand>, Vec<Type>, &'static [Type]);
    let lanes = |text: &str| Lanes::from_text(text);
    let forms: [Form; 9] = [
        (&[tok::MAD, tok::LO, tok::S32], vec![Result(0), Arg(0), Arg(1), Imm(-7)], vec![i32, i32], &[Type::I32]),
        (
            &[tok::LD, tok::GLOBAL, tok::V2, tok::B32],
            [vec![vector, Result(0), Result(1)], address(0)].concat(),
            vec![global],
            &[Type::I32, Type::I32],
        ),
        (
            &[tok::ST, tok::GLOBAL, tok::V2, tok::B32],
            [address(0), vec![vector, Arg(1), Arg(2)]].concat(),
            vec![global, i32, i32],
            &[],
        ),
        (
            &[tok::ST, tok::GLOBAL, tok::F64],
            [address(0), vec![TargetOperand::F64(0x3ff8_0000_0000_0000)]].concat(),
            vec![global],
            &[],
        ),
        (
            &[tok::SHFL, tok::SYNC, tok::BFLY, tok::B32],
            vec![pair, Result(0), Result(1), Arg(0), Imm(1), Imm(31), Imm(-1)],
            vec![i32],
            &[Type::I32, Type::I1],
        ),
        (&[tok::MOV, tok::U32], vec![Result(0), tid], vec![], &[Type::I32]),
        (
            &[tok::VSUB, tok::U32, tok::U32, tok::U32],
            vec![
                lanes("h1").map_or(Result(0), |lanes| TargetOperand::ResultPart { result: 0, lanes }),
                TargetOperand::Part { arg: 0, lanes: lanes("b3"), minus: false },
                Arg(1),
                Arg(0),
            ],
            vec![i32, i32],
            &[Type::I32],
        ),
        (
            &[tok::FMA, tok::RN, tok::F32],
            vec![Result(0), Arg(0), TargetOperand::F32(0x7fc0_0000), Arg(0)],
            vec![Type::F32],
            &[Type::F32],
        ),
        (
            &[tok::SETP, tok::LT, tok::AND, tok::S32],
            vec![Result(0), Arg(0), Imm(5), TargetOperand::ArgNot(1)],
            vec![i32, i1],
            &[Type::I1],
        ),
    ];
    let Some((toks, operands, types, results)) = o.rng().pick(&forms).cloned() else { return };
    let mut args: Vec<Value> = types.iter().map(|ty| o.value(b, *ty)).collect();
    let guard = o.rng().once_in(3).then(|| (args.len() as u16, o.rng().once_in(2)));
    if guard.is_some() {
        args.push(o.value(b, i1));
    }
    b.target(TargetOp::Known { toks: toks.into(), guard, operands }, &args, results);
}

fn threads(o: &mut dyn Operands, b: &mut FunctionBuilder, op: Opcode, flags: Flags, ty: Type) {
    let (i1, i32) = (Type::I1, Type::I32);
    match op.shape() {
        Shape::Sreg => {
            let register = o.rng().pick(SpecialReg::ALL).copied();
            if let Some(register) = register {
                b.sreg(register, sreg_type(register));
            }
        }
        Shape::BarrierSync | Shape::BarrierReduce => {
            let id = o.rng().below(16) as i64;
            let mut args = vec![b.iconst(i32, id)];
            if op == Opcode::BarrierArrive || o.rng().once_in(2) {
                let count = 32 * (1 + o.rng().below(32) as i64);
                args.push(b.iconst(i32, count));
            }
            if op.shape() == Shape::BarrierReduce {
                args.push(o.value(b, i1));
            }
            b.inst(op, flags, ty, &args, Extra::None);
        }
        Shape::WarpMask | Shape::Elect => plain(o, b, op, flags, ty, &[i32], Extra::None),
        Shape::Shuffle4 => {
            let args: Vec<Value> = [ty, i32, i32, i32].into_iter().map(|ty| o.value(b, ty)).collect();
            let results: &[Type] = if o.rng().once_in(2) { &[ty, i1] } else { &[ty] };
            b.inst_with_results(op, flags, ty, &args, Extra::None, results);
        }
        Shape::Vote | Shape::Ballot => plain(o, b, op, flags, ty, &[i1, i32], Extra::None),
        Shape::MatchAny | Shape::MatchAll | Shape::Redux => plain(o, b, op, flags, ty, &[ty, i32], Extra::None),
        Shape::ActiveMask => plain(o, b, op, flags, ty, &[], Extra::None),
        _ => {}
    }
}
