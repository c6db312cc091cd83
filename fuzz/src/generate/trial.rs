//! Trials of functions: on many operands, is the result defined each time?

use ptxc_interp::ir;
use ptxc_interp::launch::{Argument, Buffer, Launch, Options};
use ptxc_ir::testing::Rng;
use ptxc_ir::{
    Extra, Flags, FloatKind, FuncKind, Function, FunctionBuilder, MemAttrs, MemType, Module, Opcode, Param, ParamAttrs,
    Scalar, Signature, Space, Type, Value, has_errors, verify_module,
};
use ptxc_targets::SpecialReg;

use super::body::{WIDEST, edges, mask};
use super::shapes::RuleShape;

/// Calls of a trial, one a thread.
const CALLS: usize = 512;
/// Instructions of a trial, counted per warp.
const STEPS: u64 = 100_000;

/// True where no result of the function is poison and no call fails.
pub fn is_defined(func: &Function, shape: &RuleShape) -> bool {
    if divides_by_variable(func) {
        return false;
    }
    let mut module = Module::new();
    if module.add_func(func.clone()).is_err() {
        return false;
    }
    let Some(words) = kernel(&mut module, shape) else { return false };
    if has_errors(&verify_module(&module)) {
        return false;
    }
    let mut buffers =
        vec![Buffer::new("in", inputs(shape, words)), Buffer::new("out", vec![0; CALLS * WIDEST as usize])];
    let launch = Launch::linear("trial", CALLS as u32 / 128, 128, (0..2).map(Argument::buffer).collect());
    let options = Options { step_limit: STEPS, races: false, ..Options::default() };
    let outcome = ir::run(&module, &launch, &mut buffers, &options);
    let defined = outcome.is_ok_and(|outcome| outcome.poison.is_empty() && outcome.warnings.is_empty());
    let limited = shape.small || shape.powers;
    defined && (!limited || buffers.last().is_some_and(|out| are_exact(&out.bytes, shape)))
}

/// Whether something is divided by what is no constant: the operands of a trial may all miss the one that makes it zero.
fn divides_by_variable(func: &Function) -> bool {
    let divides = |inst| {
        let variable = || func.dfg.args(inst).get(1).is_some_and(|divisor| func.dfg.as_const(*divisor).is_none());
        matches!(func.dfg.insts[inst].op, Opcode::Udiv | Opcode::Sdiv | Opcode::Urem | Opcode::Srem) && variable()
    };
    func.layout.blocks().any(|block| func.layout.insts(block).any(divides))
}

/// Results are multiples of small fractions and not large, or powers of two: nothing was rounded.
fn are_exact(bytes: &[u8], shape: &RuleShape) -> bool {
    let ty = shape.result;
    let wide = ty.scalar_bits() == 64;
    let (size, lanes) = (if wide { 8 } else { 4 }, ty.lanes() as usize);
    if !ty.is_float_like() {
        return true;
    }
    bytes.chunks(WIDEST as usize).all(|result| {
        result.chunks(size).take(lanes).all(|lane| {
            let bits = lane.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
            let number = if wide { f64::from_bits(bits) } else { f32::from_bits(bits as u32).into() };
            match shape.powers {
                true => number.is_normal() && number.to_bits() << 12 == 0,
                false => number.abs() < 16384.0 && (number * 64.0).fract() == 0.0,
            }
        })
    })
}

/// Words of 64 bits that a scalar is made of.
fn words_of(ty: Type) -> usize {
    if ty.scalar_bits() > 64 { 2 } else { 1 }
}

/// Adds a kernel that makes operands of words, calls the module's function and stores its result. Gives the words of a call.
fn kernel(module: &mut Module, shape: &RuleShape) -> Option<usize> {
    let callee = module.func_ids().next()?;
    let pointer = Param { ty: MemType::Value(Type::ptr(Space::Global)), attrs: ParamAttrs::default() };
    let sig = Signature { params: vec![pointer; 2], ret: None };
    let mut func = Function::new("trial", FuncKind::Kernel, sig);
    let mut b = FunctionBuilder::new(&mut func);
    let entry = b.entry_block(&[Type::ptr(Space::Global); 2]);
    b.switch_to(entry);
    let [input, output] = *b.func.dfg.block_params(entry) else { return None };
    let registers = ["%ctaid.x", "%ntid.x", "%tid.x"].map(SpecialReg::from_name);
    let [block, size, thread] = registers.map(|register| register.map(|r| b.sreg(r, Type::I32)));
    let before = b.inst(Opcode::Mul, Flags::EMPTY, Type::I32, &[block?, size?], Extra::None);
    let before = b.func.dfg.result(before, 0);
    let call = b.inst(Opcode::Add, Flags::EMPTY, Type::I32, &[before, thread?], Extra::None);
    let call = b.func.dfg.result(call, 0);
    let words: usize = shape.params.iter().map(|ty| ty.lanes() as usize * words_of(*ty)).sum();
    let at = |b: &mut FunctionBuilder<'_>, base: Value, stride: u64| {
        let stride = b.iconst(Type::I32, stride as i64);
        let bytes = b.inst(Opcode::Mul, Flags::EMPTY, Type::I32, &[call, stride], Extra::None);
        let bytes = b.func.dfg.result(bytes, 0);
        b.gep(MemType::Value(Type::I8), base, &[bytes])
    };
    let base = at(&mut b, input, words as u64 * 8);
    let mut next = 0;
    let mut args = Vec::new();
    for ty in &shape.params {
        let mut lanes = Vec::new();
        for _ in 0..ty.lanes() {
            let from = b.byte_offset(base, next);
            next += words_of(*ty) as i64 * 8;
            let raw = b.load(if words_of(*ty) == 2 { Type::I128 } else { Type::I64 }, from, MemAttrs::aligned(8));
            let bits = Type::int(ty.scalar_bits());
            let cut = if b.ty(raw) == bits { raw } else { b.convert(Opcode::Trunc, raw, bits) };
            lanes.push(if ty.scalar().is_int() { cut } else { b.convert(Opcode::Bitcast, cut, ty.scalar()) });
        }
        args.push(match lanes[..] {
            [lane] if !ty.is_vector() => lane,
            _ => {
                let inst = b.inst(Opcode::Vector, Flags::EMPTY, *ty, &lanes, Extra::None);
                b.func.dfg.result(inst, 0)
            }
        });
    }
    let inst = b.call(callee, &args, &[shape.result]);
    let result = b.func.dfg.result(inst, 0);
    let to = at(&mut b, output, WIDEST);
    b.store(result, to, MemAttrs::aligned(1));
    b.ret(&[]);
    module.add_func(func).ok()?;
    Some(words)
}

/// Operands: those at edges of the first two parameters with each other, and mixed ones.
fn inputs(shape: &RuleShape, words: usize) -> Vec<u8> {
    let mut rng = Rng::new(0x7472_6961_6c73);
    let mut out = Vec::with_capacity(CALLS * words * 8);
    for call in 0..CALLS {
        let mut rest = call;
        for (param, ty) in shape.params.iter().enumerate() {
            let low = shape.domain.mask(shape, param);
            for _ in 0..ty.lanes() {
                let scalar = ty.scalar();
                let special = special(scalar);
                let bits = if shape.powers && !scalar.is_int() {
                    power(scalar, rng.below(5) as i32 - 2)
                } else if shape.small {
                    small(scalar, rng.below(8) as i64 - 4)
                } else if call < CALLS / 2 && rest > 0 {
                    let bits = special.get(rest % special.len()).copied().unwrap_or(0);
                    rest /= special.len();
                    bits
                } else {
                    match rng.below(3) {
                        0 => rng.pick(&special).copied().unwrap_or(0),
                        1 if scalar.is_int() => rng.below(70) as u128,
                        _ => u128::from(rng.bits()) << 64 | u128::from(rng.bits()),
                    }
                };
                let bits = low.map_or(bits, |low| (bits & low) + 1) & mask(scalar.scalar_bits());
                out.extend(&bits.to_le_bytes()[..8 * words_of(*ty)]);
            }
        }
    }
    out
}

/// The bits of a small integer of the type.
fn small(ty: Type, number: i64) -> u128 {
    match ty.kind() {
        Some(Scalar::Float(kind)) => {
            ptxc_interp::float::from_int(kind, number as u128, 128, true, Default::default()).into()
        }
        _ => number as u128,
    }
}

/// The bits of a power of four of the float type.
pub fn power(ty: Type, exponent: i32) -> u128 {
    let Some(kind) = ty.float_kind() else { return 1 };
    let one = ptxc_interp::float::from_int(kind, 1, 128, true, Default::default());
    let fraction = match kind {
        FloatKind::F16 => 10,
        FloatKind::Bf16 => 7,
        FloatKind::F64 => 52,
        _ => 23,
    };
    u128::from(one.wrapping_add_signed(i64::from(2 * exponent) << fraction))
}

/// Values of a scalar type where operations are at their limits.
fn special(ty: Type) -> Vec<u128> {
    let width = ty.scalar_bits();
    if let Some(kind) = ty.float_kind() {
        return edges(kind);
    }
    let top = 1 << (width - 1);
    let near = [0u128, 1, 2, 7, 8, 31, 32, 33, 63, 64].into_iter().flat_map(|n| [n, n.wrapping_neg()]);
    near.chain([top, top - 1, top + 1, 0xff, 0x8000, 0xffff]).collect()
}
