//! Functions of the IR to flat code.

use std::sync::Arc;

use cranelift_entity::SecondaryMap;
use ptxc_ir::dfg::ConstData;
use ptxc_ir::loops::Loops;
use ptxc_ir::{
    AggDef, AtomicOp, Block, BlockCall, Cfg, Dfg, DominatorTree, Extra, Flags, FuncId, Function, GlobalId, Inst,
    MemType, Module, Opcode, Ordering, Space, Type, Value, ValueDef,
};
use smallvec::SmallVec;

use super::integer;
use super::program::{CONSTANT, Code, Fast, LANES, Lanes, More, Step, Target, Val, is_plain_single};
use super::target;
use crate::machine::function_address;

/// Addresses of the globals, each in its own space.
pub type Addresses = SecondaryMap<GlobalId, u64>;

struct Decoder<'a> {
    module: &'a Module,
    func: &'a Function,
    addresses: &'a Addresses,
    /// Slot plus one.
    slots: SecondaryMap<Value, u32>,
    used: u32,
    constants: Vec<(Lanes, u32)>,
}

/// Decodes one function with a body; places are numbered from `first_place`.
///
/// What is not interpreted is refused when it is executed.
pub fn decode(module: &Module, id: FuncId, addresses: &Addresses, first_place: u32) -> Code {
    let func = &module.funcs[id];
    let mut d = Decoder { module, func, addresses, slots: SecondaryMap::new(), used: 0, constants: Vec::new() };
    let order = order(func);
    let mut starts: SecondaryMap<Block, u32> = SecondaryMap::new();
    let mut count = 0;
    for block in &order {
        starts[*block] = count;
        count += func.layout.insts(*block).count() as u32;
    }
    let mut steps = Vec::with_capacity(count as usize);
    for block in &order {
        for inst in func.layout.insts(*block) {
            steps.push(d.step(inst, &starts));
        }
    }
    let params: Vec<Val> = match func.layout.entry() {
        Some(entry) => func.dfg.block_params(entry).to_vec().into_iter().map(|v| d.val(v)).collect(),
        None => Vec::new(),
    };
    let mut byval = Vec::new();
    let mut index = 0;
    for param in &func.sig.params {
        if let Some(ty) = param.attrs.byval {
            let layout = module.layout_of(ty);
            byval.push((index, layout.size, layout.align.max(param.attrs.align.into())));
        }
        index += module.sig_params(&ptxc_ir::Signature { params: vec![param.clone()], ret: None }).len();
    }
    let has_stack = !byval.is_empty() || steps.iter().any(|s: &Step| s.op == Opcode::Alloca);
    let slots = d.used as usize;
    Code { func: id, steps, params, byval, slots, constants: d.constants, has_stack, first_place }
}

/// Reachable blocks, each before its successors except along back edges, and loops before what they leave to: threads
/// that wait where the lowest position is served first then meet again as early as possible.
fn order(func: &Function) -> Vec<Block> {
    let Some(entry) = func.layout.entry() else { return Vec::new() };
    let cfg = Cfg::new(func);
    let loops = Loops::new(&cfg, &DominatorTree::new(&cfg));
    let successors = |block: Block| {
        let mut succs: Vec<Block> = cfg.succs(block).to_vec();
        // What is visited first comes last.
        let stays = |b: Block| loops.innermost(block).is_some_and(|l| loops.contains(l, b));
        succs.sort_by_key(|b| (stays(*b), loops.depth(*b)));
        succs
    };
    let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
    let mut post = Vec::new();
    let mut stack = vec![(entry, successors(entry).into_iter())];
    seen[entry] = true;
    while let Some((block, rest)) = stack.last_mut() {
        match rest.next() {
            Some(next) if !seen[next] => {
                seen[next] = true;
                stack.push((next, successors(next).into_iter()));
            }
            Some(_) => {}
            None => {
                post.push(*block);
                stack.pop();
            }
        }
    }
    post.reverse();
    post
}

impl Decoder<'_> {
    fn dfg(&self) -> &Dfg {
        &self.func.dfg
    }

    fn val(&mut self, value: Value) -> Val {
        let value = self.dfg().resolve(value);
        let ty = self.dfg().ty(value);
        let known = self.slots[value];
        if known != 0 {
            return Val { slot: known - 1, ty };
        }
        let slot = match self.dfg().def(value) {
            ValueDef::Const(_) => {
                let slot = self.constants.len() as u32 | CONSTANT;
                self.constant(value);
                slot
            }
            _ => {
                let slot = self.used;
                self.used += Val { slot, ty }.slots();
                slot
            }
        };
        self.slots[value] = slot + 1;
        Val { slot, ty }
    }

    /// The slot that a result is written to: its own, even where its uses have become uses of another value.
    fn defined(&mut self, value: Value) -> Val {
        if self.dfg().resolve(value) == value {
            return self.val(value);
        }
        let val = Val { slot: self.used, ty: self.dfg().ty(value) };
        self.used += val.slots();
        val
    }

    fn constant(&mut self, value: Value) {
        let ty = self.dfg().ty(value);
        let wide = ty.scalar_bits() > 64;
        let mut push = |bits: u128, poison: bool| {
            let poison = if poison { u32::MAX } else { 0 };
            self.constants.push(([bits as u64; LANES], poison));
            if wide {
                self.constants.push(([(bits >> 64) as u64; LANES], poison));
            }
        };
        match self.func.dfg.as_const(value) {
            Some(ConstData::Bits(bits)) => push(*bits, false),
            Some(ConstData::Global(global, offset)) => {
                push(self.addresses[*global].wrapping_add_signed(*offset).into(), false)
            }
            Some(ConstData::Func(func)) => push(function_address(func.as_u32() as usize).into(), false),
            Some(ConstData::Vector(elements)) => {
                for element in elements.clone() {
                    self.constant(element);
                }
            }
            Some(ConstData::Poison) | None => (0..ty.lanes()).for_each(|_| push(0, true)),
        }
    }

    fn target(&mut self, call: &BlockCall, starts: &SecondaryMap<Block, u32>) -> Target {
        let args = call.args.as_slice(&self.func.dfg.pool).to_vec();
        let params = self.func.dfg.block_params(call.block).to_vec();
        let mut copies = Vec::new();
        for (arg, param) in args.into_iter().zip(params) {
            let (from, to) = (self.val(arg), self.val(param));
            copies.extend((0..to.slots()).map(|i| (from.slot + i, to.slot + i)).filter(|(from, to)| from != to));
        }
        Target { pc: starts[call.block], copies: copies.into() }
    }

    fn step(&mut self, inst: Inst, starts: &SecondaryMap<Block, u32>) -> Step {
        let data = &self.func.dfg.insts[inst];
        let (op, flags, ty) = (data.op, data.flags, data.ty);
        let arg_values: SmallVec<[Value; 4]> = self.dfg().args(inst).into();
        let args: SmallVec<[Val; 4]> = arg_values.iter().map(|v| self.val(*v)).collect();
        let results: SmallVec<[Val; 2]> = self.dfg().results(inst).map(|v| self.defined(v)).collect();
        let space_of = |index: usize| args.get(index).and_then(|v: &Val| v.ty.space()).unwrap_or(Space::Generic);
        let more = match data.extra {
            Extra::None => More::None,
            Extra::IntCC(cc) => More::IntCC(cc),
            Extra::FloatCC(cc) => More::FloatCC(cc),
            Extra::Imm(mask) => More::Class(mask as u32),
            Extra::Mem(mem) => More::Mem(space_of(usize::from(op == Opcode::Store)), mem),
            Extra::Rmw(rmw, mem) => More::Atomic(space_of(0), rmw, mem),
            Extra::Cmpxchg(mem, _) => More::Atomic(space_of(0), AtomicOp::Xchg, mem),
            Extra::Copy { dst_align, src_align, .. } => {
                More::Copy([space_of(0), space_of(1)], [dst_align.into(), src_align.into()])
            }
            Extra::Fence(order, _) => {
                if order == Ordering::Release {
                    More::None
                } else {
                    More::Fence
                }
            }
            Extra::Mask(mask) => More::Shuffle(self.dfg().masks[mask].clone().into()),
            Extra::Gep(over) => self.gep(over, &arg_values).unwrap_or_else(|message| More::Refused(message.into())),
            Extra::Alloca { ty, count, align } => {
                let layout = self.module.layout_of(ty);
                More::Alloca(layout.size.saturating_mul(count.into()), align.into())
            }
            Extra::Space(space) => More::Space(space),
            Extra::Jump(_) | Extra::Branch { .. } | Extra::Switch(_) => self.targets(inst, starts),
            Extra::Call(func) => More::Callee(func),
            Extra::CallIndirect(_) => More::None,
            Extra::Sreg(register) => More::Sreg(register),
            Extra::Target(id) => {
                let op = &self.dfg().target_ops[id];
                match target::decode(op, &args, &results, self.module, self.addresses) {
                    Ok(operation) => More::Target(Arc::new(operation)),
                    Err(message) => More::Refused(message.into()),
                }
            }
        };
        let fast = fast(op, flags, ty, &args, &more);
        Step { inst, op, flags, ty, fast, args, results, more }
    }

    fn targets(&mut self, inst: Inst, starts: &SecondaryMap<Block, u32>) -> More {
        let mut calls = Vec::new();
        self.dfg().for_each_target(inst, |call| calls.push(*call));
        let targets: Vec<Target> = calls.iter().map(|call| self.target(call, starts)).collect();
        let cases: Vec<u128> = match self.dfg().insts[inst].extra {
            Extra::Switch(id) => self.dfg().switches[id].cases.iter().map(|(bits, _)| *bits).collect(),
            _ => Vec::new(),
        };
        More::Targets(targets.into(), cases.into())
    }

    fn gep(&mut self, over: MemType, args: &[Value]) -> Result<More, String> {
        let mut ty = over;
        let mut scaled = Vec::new();
        let mut fixed = 0i64;
        for (position, value) in args.iter().enumerate().skip(1) {
            let constant = self.dfg().as_signed(*value).map(|c| c as i64);
            let mut stride = self.module.layout_of(ty).size as i64;
            if position > 1 {
                let MemType::Agg(id) = ty else { return Err("`gep` steps into no aggregate".to_string()) };
                let agg = self.module.agg(id);
                match &agg.def {
                    AggDef::Array { elem, .. } => {
                        ty = *elem;
                        stride = self.module.layout_of(ty).size as i64;
                    }
                    AggDef::Struct { fields, .. } => {
                        // A splat where the pointer is a vector.
                        let index = match self.dfg().as_const(*value) {
                            Some(ConstData::Vector(lanes)) => lanes.first().and_then(|v| self.dfg().as_signed(*v)),
                            _ => constant.map(i128::from),
                        };
                        let index = index.and_then(|c| usize::try_from(c).ok()).unwrap_or(usize::MAX);
                        let (Some(field), Some(offset)) = (fields.get(index), agg.offsets.get(index)) else {
                            return Err("`gep` names no field".to_string());
                        };
                        ty = *field;
                        fixed = fixed.wrapping_add(*offset as i64);
                        continue;
                    }
                }
            }
            match constant {
                Some(constant) => fixed = fixed.wrapping_add(constant.wrapping_mul(stride)),
                None => scaled.push((position, stride)),
            }
        }
        Ok(More::Gep(scaled.into(), fixed))
    }
}

fn fast(op: Opcode, flags: Flags, ty: Type, args: &[Val], more: &More) -> Option<Fast> {
    let small = |v: &Val| !v.ty.is_vector() && v.ty.scalar_bits() <= 64;
    if !args.iter().all(small) || ty.is_vector() || ty.scalar_bits() > 64 {
        return None;
    }
    match op {
        Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::And | Opcode::Xor | Opcode::Shl => Some(Fast::Integer),
        Opcode::Or | Opcode::Lshr | Opcode::Ashr if flags.is_empty() => Some(Fast::Integer),
        Opcode::Icmp => match more {
            More::IntCC(cc) => Some(Fast::Compare(*cc)),
            _ => None,
        },
        Opcode::Select if flags.is_empty() => Some(Fast::Select),
        Opcode::Zext | Opcode::Trunc | Opcode::Ptrtoint | Opcode::Inttoptr if flags.is_empty() => Some(Fast::Mask),
        Opcode::Sext => args.first().map(|v| Fast::Sext(v.ty.scalar_bits())),
        // Both sides are scalars, so the bits are as many.
        Opcode::Bitcast => Some(Fast::Mask),
        _ if is_plain_single(op, flags, ty) => Some(if op == Opcode::Fma { Fast::SingleFma } else { Fast::Single }),
        _ => None,
    }
}

/// The bits of a width as lanes hold them.
pub fn narrow(bits: u64, width: u32) -> u64 {
    bits & integer::mask(width.min(64)) as u64
}
