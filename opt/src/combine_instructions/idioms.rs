//! Bits counted, folded and reversed by shifts and masks (Warren, "Hacker's Delight", chapters 5 and 7), as the
//! operations that they are.
//!
//! Each is a chain of steps of one shape, in which fields of 1, 2, 4 … bits are added, folded or exchanged. A step is
//! recognized together with what came before it; the last one is replaced. Steps wanted elsewhere stay.

use ptxc_ir::{Extra, Flags, Function, Inst, IntCC, Opcode, Type, Value};
use smallvec::SmallVec;

use super::{before, constant, int_width, made_by, mask, with_constant};
use crate::pass::Context;
use crate::rules::{Found, Rule};

/// A cheaper way to the same result.
pub(super) fn rewrite(func: &mut Function, ctx: &Context<'_>, inst: Inst) -> Option<Found> {
    let op = func.dfg.insts[inst].op;
    if !matches!(
        op,
        Opcode::Select
            | Opcode::Lshr
            | Opcode::And
            | Opcode::Or
            | Opcode::Xor
            | Opcode::Add
            | Opcode::Bswap
            | Opcode::Fshl
    ) {
        return None;
    }
    let width = int_width(func.dfg.insts[inst].ty).filter(|width| matches!(width, 32 | 64))?;
    match op {
        Opcode::Lshr => counted_by_product(func, inst, width),
        Opcode::And => counted_by_sums(func, inst, width).or_else(|| parity(func, inst, width)),
        Opcode::Add => counted_by_fields(func, inst, width).or_else(|| exchanged(func, inst, width)),
        Opcode::Xor => carryless_product(func, ctx, inst, width).or_else(|| exchanged(func, inst, width)),
        Opcode::Select => carryless_product(func, ctx, inst, width),
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

/// A copy of one factor for a bit of the other.
struct Copy {
    of: Value,
    bits: Value,
    /// The bit, and how far the copy is moved.
    at: u32,
    /// The copy is chosen: where the bit is not set, nothing is read of it.
    chosen: bool,
}

/// Copies of a value for every bit of another, added without carries: by masks, by products, by choices, in any order.
fn carryless_product(func: &mut Function, ctx: &Context<'_>, inst: Inst, width: u32) -> Option<Found> {
    let result = func.dfg.first_result(inst)?;
    let mut pending: SmallVec<[Value; 8]> = SmallVec::new();
    let (mut factors, mut seen, mut chosen) = (None, 0u64, false);
    let mut next = Some(result);
    while let Some(value) = next {
        let copy = if let Some((copy, rest)) = chosen_sum(func, value, width) {
            pending.push(rest);
            Some(copy)
        } else {
            copy_for_bit(func, value, width)
        };
        match copy {
            Some(copy) => {
                let same = *factors.get_or_insert((copy.of, copy.bits)) == (copy.of, copy.bits);
                if !same || seen >> copy.at & 1 == 1 {
                    return None;
                }
                seen |= 1 << copy.at;
                chosen |= copy.chosen;
            }
            None => {
                let args = made_by(func, value, Opcode::Xor)?;
                // Of the last sum one is a copy, or there is nothing to be found.
                let last = value == result;
                if last && !args.iter().any(|v| copy_for_bit(func, *v, width).is_some()) {
                    return None;
                }
                pending.extend(args);
            }
        }
        next = pending.pop();
    }
    let (a, b) = factors.filter(|(_, b)| int_width(func.dfg.ty(*b)).is_some_and(|bits| seen == mask(bits)))?;
    if !ctx.has_operation(Opcode::Clmul, Flags::EMPTY, Type::I64) {
        return None;
    }
    let mut builder = before(func, inst);
    let a = if chosen { builder.unary(Opcode::Freeze, a) } else { a };
    let b = if builder.ty(b) == builder.ty(a) { b } else { builder.convert(Opcode::Zext, b, builder.ty(a)) };
    Some((Rule::CarrylessProduct, builder.binary(Opcode::Clmul, a, b)))
}

/// `bit ? rest ^ copy : rest`.
fn chosen_sum(func: &Function, value: Value, width: u32) -> Option<(Copy, Value)> {
    let (sum, rest, bits, at) = chosen_by_bit(func, value, width)?;
    either(func, sum, Opcode::Xor)?.into_iter().find_map(|(same, copy)| {
        let of = moved_up(func, copy, at)?;
        (same == rest).then_some((Copy { of, bits, at, chosen: true }, rest))
    })
}

/// A choice by a bit: what it is where the bit is set, and where it is not.
fn chosen_by_bit(func: &Function, value: Value, width: u32) -> Option<(Value, Value, Value, u32)> {
    let args = made_by(func, value, Opcode::Select)?;
    let &[flag, yes, no] = &args[..] else { return None };
    let test = func.dfg.def_inst(flag).filter(|inst| func.dfg.insts[*inst].op == Opcode::Icmp)?;
    let (masked, zero) = (func.dfg.resolve(func.dfg.args(test)[0]), func.dfg.args(test)[1]);
    if constant(func, zero) != Some(0) {
        return None;
    }
    let (word, kept) = with_constant(func, masked, Opcode::And).filter(|(_, kept)| kept.is_power_of_two())?;
    let mut at = kept.trailing_zeros();
    let mut bits = word;
    // A factor of 32 bits, and one of 64.
    let is_narrow = width == 64 && func.dfg.ty(word) == Type::I32 && made_by(func, word, Opcode::Trunc).is_none();
    if int_width(func.dfg.ty(word)) != Some(width) && !is_narrow {
        // One word of the two.
        bits = *made_by(func, word, Opcode::Trunc)?.first()?;
        if let Some((whole, 32)) = with_constant(func, bits, Opcode::Lshr) {
            (bits, at) = (whole, at + 32);
        }
        if int_width(func.dfg.ty(bits)) != Some(width) {
            return None;
        }
    }
    match func.dfg.insts[test].extra {
        Extra::IntCC(IntCC::Ne) => Some((yes, no, bits, at)),
        Extra::IntCC(IntCC::Eq) => Some((no, yes, bits, at)),
        _ => None,
    }
}

fn moved_up(func: &Function, value: Value, by: u32) -> Option<Value> {
    if by == 0 {
        return Some(value);
    }
    with_constant(func, value, Opcode::Shl).filter(|(_, amount)| *amount == u64::from(by)).map(|(from, _)| from)
}

/// A copy where the bit is set, else zero.
fn copy_for_bit(func: &Function, value: Value, width: u32) -> Option<Copy> {
    if let Some((copy, none, bits, at)) = chosen_by_bit(func, value, width) {
        let of = moved_up(func, copy, at)?;
        return (constant(func, none) == Some(0)).then_some(Copy { of, bits, at, chosen: true });
    }
    let orders = |op: Opcode| either(func, value, op).into_iter().flatten();
    let by_mask = orders(Opcode::And).find_map(|(copy, kept)| {
        let (bits, at) = spread_bit(func, kept, width)?;
        Some(Copy { of: moved_up(func, copy, at)?, bits, at, chosen: false })
    });
    by_mask.or_else(|| {
        orders(Opcode::Mul).find_map(|(copy, bit)| {
            let (bits, at) = single_bit(func, bit, width)?;
            Some(Copy { of: moved_up(func, copy, at)?, bits, at, chosen: false })
        })
    })
}

/// A bit of a value in every place: the bit negated, or moved to the top and down again.
fn spread_bit(func: &Function, value: Value, width: u32) -> Option<(Value, u32)> {
    let last = u64::from(width - 1);
    if let Some((top, by)) = with_constant(func, value, Opcode::Ashr) {
        let (bits, up) = with_constant(func, top, Opcode::Shl).filter(|(_, up)| *up <= last).unwrap_or((top, 0));
        let at = last - up;
        // A bit of what is shifted down is one further up.
        let (bits, at) = match with_constant(func, bits, Opcode::Lshr) {
            Some((whole, down)) if down <= up => (whole, at + down),
            _ => (bits, at),
        };
        return (by == last).then_some((bits, at as u32));
    }
    let args = made_by(func, value, Opcode::Sub)?;
    match args[..] {
        [zero, bit] if constant(func, zero) == Some(0) => single_bit(func, bit, width),
        _ => None,
    }
}

/// One bit of a value as a number.
fn single_bit(func: &Function, value: Value, width: u32) -> Option<(Value, u32)> {
    let last = u64::from(width - 1);
    if let Some((moved, 1)) = with_constant(func, value, Opcode::And) {
        return match with_constant(func, moved, Opcode::Lshr) {
            Some((bits, by)) if by <= last => Some((bits, by as u32)),
            _ => Some((moved, 0)),
        };
    }
    with_constant(func, value, Opcode::Lshr).filter(|(_, by)| *by == last).map(|(bits, _)| (bits, width - 1))
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
