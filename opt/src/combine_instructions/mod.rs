//! Replaces instructions by cheaper ones: of integers by what is known of the bits of their operands, of floats by their flags.
//!
//! One walk in reverse postorder. Known bits ([`ptxc_ir::KnownBits`]) are found on the way, so what a rule sees of its
//! operands is exact; what a rule makes is looked at again at once, each new instruction having less to be said of it.
//! A rule answers with a value that stands for the result, having put what computes it before the instruction, or with
//! new flags. Every rule refines: where the old result is poison, the new one may be anything.

mod addresses;
mod arithmetic;
mod bits;
mod choices;
mod compare;
pub(crate) mod convert;
mod division;
mod fast;
mod fields;
mod find_nth;
mod float;
mod floors;
mod idioms;
mod joined;
mod limits;
mod magnitudes;
mod packed_lanes;
mod products;
mod ranges;
mod remainders;
mod rotations;

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Bits, Cfg, Effect, Extra, Flags, Function, FunctionBuilder, Inst, IntCC, KnownBits, Opcode, Value};
use smallvec::SmallVec;

use crate::edit::{count_uses, resolve_all_uses, resolve_uses_of};
use crate::pass::Context;
use crate::rules::{Found, Rule};
use crate::widths::{int_width, mask};

/// Rules are applied to what rules made up to this depth.
const MAX_DEPTH: u32 = 6;

/// The pass.
pub fn combine_instructions(func: &mut Function, ctx: &Context<'_>) -> bool {
    let mut changed = floors::rewrite(func, ctx) | remainders::rewrite(func, ctx);
    let order: Vec<_> = Cfg::new(func).rpo().to_vec();
    let mut uses = Uses::new(func);
    let mut known = KnownBits::new(func);
    for block in order {
        let mut next = func.layout.first_inst(block);
        while let Some(inst) = next {
            next = func.layout.next_inst(inst);
            changed |= visit(func, ctx, &mut uses, &mut known, inst, 0);
        }
    }
    if changed {
        resolve_all_uses(func);
    }
    changed
}

/// How often each value was used when the pass began, or what it has replaced since. Where a rule would keep what it takes apart, it asks here.
struct Uses(SecondaryMap<Value, u32>);

impl Uses {
    fn new(func: &Function) -> Uses {
        Uses(count_uses(func))
    }

    /// One value takes the place of another.
    fn pass_on(&mut self, from: Value, to: Value) {
        self.0[to] += self.0[from];
    }

    /// Whether nothing else uses a value. What a rule has made is taken to be its own.
    fn is_single(&self, value: Value) -> bool {
        self.0[value] <= 1
    }
}

/// Simplifies one instruction, and what replaces it. Tells whether anything changed.
fn visit(
    func: &mut Function,
    ctx: &Context<'_>,
    uses: &mut Uses,
    known: &mut KnownBits,
    inst: Inst,
    depth: u32,
) -> bool {
    resolve_uses_of(func, inst);
    let ordered = order_operands(func, inst);
    let flagged = add_flags(func, known, inst);
    let signed = float::take_signs(func, inst);
    let rows = [(ordered, Rule::ConstantLast), (flagged, Rule::ProvedFlags), (signed, Rule::FloatSignBits)];
    for rule in rows.into_iter().filter(|row| row.0) {
        ctx.note(inst, rule.1);
    }
    let bits = known.visit(func, inst);
    let before = func.layout.prev_inst(inst);
    let (Some((rule, value)), Some(result)) =
        (replacement(func, ctx, uses, known, inst, bits), func.dfg.first_result(inst))
    else {
        return ordered | flagged | signed;
    };
    ctx.note(inst, rule);
    if depth < MAX_DEPTH {
        let first = match before {
            Some(before) => func.layout.next_inst(before),
            None => func.layout.inst_block(inst).and_then(|block| func.layout.first_inst(block)),
        };
        let mut made = first;
        while let Some(new) = made.filter(|new| *new != inst) {
            made = func.layout.next_inst(new);
            visit(func, ctx, uses, known, new, depth + 1);
        }
    }
    let value = func.dfg.resolve(value);
    if value == result {
        return ordered | flagged | signed;
    }
    uses.pass_on(result, value);
    func.dfg.alias(result, value);
    func.layout.remove_inst(inst);
    true
}

/// The value that an instruction's result is replaced by.
fn replacement(
    func: &mut Function,
    ctx: &Context<'_>,
    uses: &Uses,
    known: &KnownBits,
    inst: Inst,
    bits: Bits,
) -> Option<Found> {
    if func.dfg.num_results(inst) != 1 || !is_candidate(func, inst) {
        return None;
    }
    if func.dfg.insts[inst].op == Opcode::Target {
        return find_nth::rewrite(func, inst);
    }
    if func.dfg.insts[inst].op == Opcode::Gep {
        return addresses::rewrite(func, uses, inst);
    }
    let ty = func.dfg.ty(func.dfg.first_result(inst)?);
    if let (Some(number), Some(width)) = (bits.value(), int_width(ty)) {
        return Some((Rule::KnownBits, func.dfg.bits(ty, u128::from(number & mask(width)))));
    }
    bits::redundant(func, known, inst)
        .or_else(|| division::rewrite(func, known, inst))
        .or_else(|| limits::rewrite(func, inst))
        .or_else(|| arithmetic::rewrite(func, inst))
        .or_else(|| products::rewrite(func, uses, inst))
        .or_else(|| idioms::rewrite(func, ctx, inst))
        .or_else(|| joined::rewrite(func, inst))
        .or_else(|| packed_lanes::rewrite(func, ctx, uses, inst))
        .or_else(|| bits::rewrite(func, uses, known, inst))
        .or_else(|| compare::rewrite(func, known, inst))
        .or_else(|| fields::rewrite(func, uses, inst))
        .or_else(|| choices::rewrite(func, uses, known, inst))
        .or_else(|| convert::rewrite(func, known, inst))
        .or_else(|| fast::rewrite(func, uses, inst))
        .or_else(|| float::rewrite(func, ctx, inst))
        .or_else(|| magnitudes::rewrite(func, inst))
}

/// Divisions trap in no program that is defined; of target operations those with a rule only compute.
fn is_candidate(func: &Function, inst: Inst) -> bool {
    use Opcode::{Sdiv, Srem, Udiv, Urem};
    let op = func.dfg.insts[inst].op;
    op.info().effect == Effect::Pure || matches!(op, Udiv | Sdiv | Urem | Srem | Opcode::Target)
}

/// Puts the constant of a commutative operation or a comparison last.
fn order_operands(func: &mut Function, inst: Inst) -> bool {
    use Opcode::{Add, And, Icmp, Mul, Or, Smax, Smin, Umax, Umin, Xor};
    let op = func.dfg.insts[inst].op;
    let &[a, b] = func.dfg.args(inst) else { return false };
    if func.dfg.as_const(a).is_none() || func.dfg.as_const(b).is_some() {
        return false;
    }
    match op {
        Add | And | Mul | Or | Smax | Smin | Umax | Umin | Xor => {}
        Icmp => {
            if let Extra::IntCC(cc) = func.dfg.insts[inst].extra {
                func.dfg.insts[inst].extra = Extra::IntCC(cc.swap());
            }
        }
        _ => return false,
    }
    func.dfg.args_mut(inst).swap(0, 1);
    true
}

/// Promises that the operands' bits keep.
fn add_flags(func: &mut Function, known: &KnownBits, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    let args = func.dfg.args(inst);
    let Some(width) = args.first().and_then(|a| int_width(func.dfg.ty(*a))) else { return false };
    let of = |index: usize| args.get(index).map(|v| known.of(func, *v)).unwrap_or_default();
    let flags = ptxc_ir::known_bits::provable_flags(data.op, of(0), of(1), width);
    if data.flags.contains(flags) {
        return false;
    }
    func.dfg.insts[inst].flags |= flags;
    true
}

/// A scalar constant of up to 64 bits.
fn constant(func: &Function, value: Value) -> Option<u64> {
    int_width(func.dfg.ty(value))?;
    func.dfg.as_bits(value).map(|bits| bits as u64)
}

/// The same as a signed number.
fn signed(func: &Function, value: Value) -> Option<i64> {
    let width = int_width(func.dfg.ty(value))?;
    let bits = constant(func, value)?;
    Some(((bits << (64 - width)) as i64) >> (64 - width))
}

/// The operation behind a value, with its operands.
fn made_by(func: &Function, value: Value, op: Opcode) -> Option<SmallVec<[Value; 3]>> {
    let inst = func.dfg.def_inst(value)?;
    (func.dfg.insts[inst].op == op).then(|| func.dfg.args(inst).iter().map(|v| func.dfg.resolve(*v)).collect())
}

/// The two operands of an operation.
fn pair(func: &Function, value: Value, op: Opcode) -> Option<(Value, Value)> {
    match made_by(func, value, op)?[..] {
        [a, b] => Some((a, b)),
        _ => None,
    }
}

/// The operand and the constant of an operation.
fn with_constant(func: &Function, value: Value, op: Opcode) -> Option<(Value, u64)> {
    let (x, number) = pair(func, value, op)?;
    Some((x, constant(func, number)?))
}

/// The comparison of integers behind a flag: condition and operands.
fn compared(func: &Function, flag: Value) -> Option<(IntCC, Value, Value)> {
    let Extra::IntCC(cc) = func.dfg.insts[func.dfg.def_inst(flag)?].extra else { return None };
    pair(func, flag, Opcode::Icmp).map(|(a, b)| (cc, a, b))
}

/// The same of an instruction that does not flush subnormal numbers.
fn made_exactly_by(func: &Function, value: Value, op: Opcode) -> Option<SmallVec<[Value; 3]>> {
    let flushes = func.dfg.insts[func.dfg.def_inst(value)?].flags.contains(Flags::FTZ);
    made_by(func, value, op).filter(|_| !flushes)
}

/// A builder that puts instructions before one, with its source location.
fn before(func: &mut Function, inst: Inst) -> FunctionBuilder<'_> {
    let loc = func.dfg.locs[inst];
    let mut builder = FunctionBuilder::before(func, inst);
    builder.set_loc(loc);
    builder
}
