//! Bits counted, folded and reversed by shifts and masks (Warren, "Hacker's Delight", chapters 5 and 7), as the
//! operations that they are.
//!
//! Each is a chain of steps of one shape, in which fields of 1, 2, 4 … bits are added, folded or exchanged. A step is
//! recognized together with what came before it; the last one is replaced. Steps wanted elsewhere stay.

use ptxc_ir::{Flags, Function, Inst, Opcode, Value};
use smallvec::SmallVec;

use super::{before, constant, int_width, made_by, mask};
use crate::rules::{Found, Rule};

/// A cheaper way to the same result.
pub(super) fn rewrite(func: &mut Function, inst: Inst) -> Option<Found> {
    let op = func.dfg.insts[inst].op;
    if !matches!(op, Opcode::Lshr | Opcode::And | Opcode::Or | Opcode::Xor | Opcode::Add | Opcode::Bswap | Opcode::Fshl)
    {
        return None;
    }
    let width = int_width(func.dfg.insts[inst].ty).filter(|width| matches!(width, 32 | 64))?;
    match op {
        Opcode::Lshr => counted_by_product(func, inst, width),
        Opcode::And => counted_by_sums(func, inst, width).or_else(|| parity(func, inst, width)),
        Opcode::Add => counted_by_fields(func, inst, width).or_else(|| exchanged(func, inst, width)),
        _ => exchanged(func, inst, width),
    }
}

/// A constant with ones in the low half of every field of `2 * bits`.
fn low_fields(bits: u32, width: u32) -> u64 {
    if bits >= width {
        return mask(width);
    }
    // 2^(2 bits) - 1 is (2^bits - 1)(2^bits + 1).
    mask(width) / (mask(bits) + 2)
}

/// The value and the constant of an operation with one.
fn with_constant(func: &Function, value: Value, op: Opcode) -> Option<(Value, u64)> {
    let args = made_by(func, value, op)?;
    match args[..] {
        [a, b] => Some((a, constant(func, b)?)),
        _ => None,
    }
}

/// `value >> by & mask`, in either order, or without a mask where the shift leaves no more.
fn shifted_field(func: &Function, value: Value, op: Opcode, by: u32, kept: u64, width: u32) -> Option<Value> {
    let by = u64::from(by);
    let moved = |kept: u64| if op == Opcode::Lshr { kept << by & mask(width) } else { kept >> by };
    if let Some((inner, bits)) = with_constant(func, value, Opcode::And) {
        let (from, amount) = with_constant(func, inner, op)?;
        return (bits == kept && amount == by).then_some(from);
    }
    let (inner, amount) = with_constant(func, value, op)?;
    if amount != by {
        return None;
    }
    match with_constant(func, inner, Opcode::And) {
        Some((from, bits)) if bits == moved(kept) => Some(from),
        // Nothing else is left.
        _ => {
            let left = if op == Opcode::Lshr { mask(width) >> by } else { mask(width) << by & mask(width) };
            (left == kept).then_some(inner)
        }
    }
}

/// `value & mask`.
fn masked(func: &Function, value: Value, kept: u64) -> Option<Value> {
    with_constant(func, value, Opcode::And).filter(|(_, bits)| *bits == kept).map(|(from, _)| from)
}

/// Whether `value` is `from & kept`, perhaps as one mask with that of `from`.
fn is_masked(func: &Function, value: Value, from: Value, kept: u64) -> bool {
    let Some((inner, bits)) = with_constant(func, value, Opcode::And) else { return false };
    let joined = with_constant(func, from, Opcode::And);
    (inner == from && bits == kept) || joined.is_some_and(|(x, first)| x == inner && bits == first & kept)
}

/// Both orders of the operands of a commutative operation.
fn either(func: &Function, value: Value, op: Opcode) -> Option<[(Value, Value); 2]> {
    let args = made_by(func, value, op)?;
    match args[..] {
        [a, b] => Some([(a, b), (b, a)]),
        _ => None,
    }
}

/// The number whose ones are counted in each field of `bits` bits of a value.
fn counted(func: &Function, value: Value, bits: u32, width: u32) -> Option<Value> {
    if bits == 1 {
        return Some(value);
    }
    let half = bits / 2;
    let kept = low_fields(half, width);
    // Both halves of each field, added.
    let sum = |total: Value| {
        either(func, total, Opcode::Add)?.into_iter().find_map(|(low, high)| {
            let from = shifted_field(func, high, Opcode::Lshr, half, kept, width)?;
            is_masked(func, low, from, kept).then_some(from)
        })
    };
    if let Some(from) = sum(value) {
        return counted(func, from, half, width);
    }
    // Of two bits, the number less its upper bit.
    if bits == 2 {
        let args = made_by(func, value, Opcode::Sub)?;
        let &[from, upper] = &args[..] else { return None };
        return (shifted_field(func, upper, Opcode::Lshr, 1, kept, width)? == from).then_some(from);
    }
    // From eight bits on a sum has room above it: added first, masked after.
    if bits >= 8 {
        let total = masked(func, value, kept)?;
        return either(func, total, Opcode::Add)?.into_iter().find_map(|(low, high)| {
            let (from, by) = with_constant(func, high, Opcode::Lshr)?;
            (from == low && by == u64::from(half)).then(|| counted(func, low, half, width))?
        });
    }
    None
}

fn count(func: &mut Function, inst: Inst, value: Value) -> Option<Found> {
    Some((Rule::CountOnes, before(func, inst).unary(Opcode::Ctpop, value)))
}

/// The bytes' counts added up in the top byte by a product.
fn counted_by_product(func: &mut Function, inst: Inst, width: u32) -> Option<Found> {
    let &[product, by] = func.dfg.args(inst) else { return None };
    if constant(func, by) != Some(u64::from(width - 8)) {
        return None;
    }
    let (bytes, ones) = with_constant(func, product, Opcode::Mul)?;
    if ones != mask(width) / 255 {
        return None;
    }
    let value = counted(func, bytes, 8, width)?;
    count(func, inst, value)
}

/// The bytes' counts added up by shifts, of which the low bits are kept.
fn counted_by_sums(func: &mut Function, inst: Inst, width: u32) -> Option<Found> {
    let &[total, kept] = func.dfg.args(inst) else { return None };
    let kept = constant(func, kept)?;
    // All the bits of the count, none of another byte's.
    if !(kept + 1).is_power_of_two() || kept < u64::from(width) || kept > 255 {
        return None;
    }
    // In either order of the sums.
    let sizes: &[u32] = if width == 32 { &[8, 16] } else { &[8, 16, 32] };
    let bytes = summed(func, total, sizes.iter().rev()).or_else(|| summed(func, total, sizes.iter()))?;
    let value = counted(func, bytes, 8, width)?;
    count(func, inst, value)
}

/// What `x + (x >> by)` was made of, step by step.
fn summed<'s>(func: &Function, total: Value, mut sizes: impl Iterator<Item = &'s u32>) -> Option<Value> {
    sizes.try_fold(total, |value, size| {
        either(func, value, Opcode::Add)?.into_iter().find_map(|(low, high)| {
            let (from, by) = with_constant(func, high, Opcode::Lshr)?;
            (from == low && by == u64::from(*size)).then_some(from)
        })
    })
}

/// The counts of all fields, step by step up to the whole.
fn counted_by_fields(func: &mut Function, inst: Inst, width: u32) -> Option<Found> {
    let result = func.dfg.first_result(inst)?;
    let value = counted(func, result, width, width)?;
    count(func, inst, value)
}

/// The lowest bit of a value whose upper halves were folded onto the lower ones.
fn parity(func: &mut Function, inst: Inst, width: u32) -> Option<Found> {
    let &[folded, one] = func.dfg.args(inst) else { return None };
    if constant(func, one) != Some(1) {
        return None;
    }
    let mut value = folded;
    let mut steps = 0;
    // In any order; each once.
    while steps != u64::from(width) - 1 {
        let (from, by) = fold(func, value)?;
        if !by.is_power_of_two() || by >= u64::from(width) || steps & by != 0 {
            return None;
        }
        steps |= by;
        value = from;
    }
    let mut builder = before(func, inst);
    let ones = builder.unary(Opcode::Ctpop, value);
    Some((Rule::CountParity, builder.binary(Opcode::And, ones, one)))
}

/// `x ^ (x >> by)`.
fn fold(func: &Function, value: Value) -> Option<(Value, u64)> {
    either(func, value, Opcode::Xor)?.into_iter().find_map(|(low, high)| {
        let (from, by) = with_constant(func, high, Opcode::Lshr)?;
        (from == low).then_some((from, by))
    })
}

/// Steps that are looked through.
const MAX_STEPS: usize = 8;

/// Neighbouring fields exchanged: which sizes of fields between a value and this one. As the steps commute and undo
/// themselves, the set says all; all sizes are the bits reversed, those from eight on the bytes.
fn exchanged(func: &mut Function, inst: Inst, width: u32) -> Option<Found> {
    let result = func.dfg.first_result(inst)?;
    // What only moves bytes is as good as it is.
    let bits = 7;
    let (mut value, mut sizes) = (result, 0);
    // Steps that are not an operation of their own already.
    let mut written = false;
    for _ in 0..MAX_STEPS {
        let Some((from, more)) = exchange(func, value, width) else { break };
        // All of it is had; what comes before the bits' steps may only move bytes.
        if sizes & bits == bits && more & bits != 0 {
            break;
        }
        written |= more.is_power_of_two() && more < width / 2;
        (value, sizes) = (from, sizes ^ more);
    }
    if sizes & bits != bits {
        return None;
    }
    let bytes = width - 8;
    let mut builder = before(func, inst);
    let reversed = builder.unary(Opcode::Bitreverse, value);
    let ty = builder.ty(value);
    let half = builder.bits(ty, u128::from(width / 2));
    match (sizes & !bits) ^ bytes {
        0 => Some((Rule::ReverseBits, reversed)),
        // It would be what is there.
        _ if !written => None,
        rest if rest == bytes => Some((Rule::ReverseBitsOfBytes, builder.unary(Opcode::Bswap, reversed))),
        rest if rest == width / 2 => {
            Some((Rule::ReverseBitsOfHalves, builder.ternary(Opcode::Fshl, Flags::EMPTY, reversed, reversed, half)))
        }
        _ => None,
    }
}

/// One step: the value before, and the sizes of the fields that change places, as a sum of powers of two.
fn exchange(func: &Function, value: Value, width: u32) -> Option<(Value, u32)> {
    let inst = func.dfg.def_inst(value)?;
    let args: SmallVec<[Value; 3]> = func.dfg.args(inst).iter().map(|v| func.dfg.resolve(*v)).collect();
    match (func.dfg.insts[inst].op, &args[..]) {
        (Opcode::Bswap, [from]) => Some((*from, width - 8)),
        (Opcode::Bitreverse, [from]) => Some((*from, width - 1)),
        (Opcode::Fshl | Opcode::Fshr, [a, b, by]) if a == b && constant(func, *by) == Some(u64::from(width / 2)) => {
            Some((*a, width / 2))
        }
        (Opcode::Or | Opcode::Xor | Opcode::Add, [a, b]) => [(*a, *b), (*b, *a)].into_iter().find_map(|(low, high)| {
            // The amount decides which size it can be.
            let by = shift_amount(func, low, Opcode::Lshr)?;
            if !by.is_power_of_two() || by > width / 2 {
                return None;
            }
            let kept = low_fields(by, width);
            let from = shifted_field(func, low, Opcode::Lshr, by, kept, width)?;
            let other = shifted_field(func, high, Opcode::Shl, by, kept << by & mask(width), width)?;
            (from == other).then_some((from, by))
        }),
        _ => None,
    }
}

/// The amount of a shift that may be masked before or after.
fn shift_amount(func: &Function, value: Value, op: Opcode) -> Option<u32> {
    let shift = match with_constant(func, value, Opcode::And) {
        Some((inner, _)) if made_by(func, inner, op).is_some() => inner,
        _ => value,
    };
    let (_, by) = with_constant(func, shift, op)?;
    u32::try_from(by).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields() {
        assert_eq!(low_fields(1, 32), 0x5555_5555);
        assert_eq!(low_fields(2, 32), 0x3333_3333);
        assert_eq!(low_fields(8, 64), 0x00ff_00ff_00ff_00ff);
        assert_eq!(low_fields(16, 32), 0xffff);
        assert_eq!(low_fields(32, 64), 0xffff_ffff);
    }
}
