//! Bit fields: shifts around a mask, fields that are compared, logic of what is shifted alike.

use ptxc_ir::{Extra, Function, Inst, IntCC, Opcode, Value};
use smallvec::{SmallVec, smallvec};

use super::{Uses, before, constant, int_width, made_by, mask};
use crate::rules::{Found, Rule};

/// A cheaper way to the same result.
pub(super) fn rewrite(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    match func.dfg.insts[inst].op {
        Opcode::Shl | Opcode::Lshr | Opcode::Mul => {
            shifted_field(func, uses, inst).or_else(|| field_of_sum(func, uses, inst))
        }
        Opcode::And => masked_field(func, uses, inst)
            .or_else(|| shifted_alike(func, uses, inst))
            .or_else(|| shifted_alike_among(func, uses, inst)),
        Opcode::Or | Opcode::Xor => shifted_alike(func, uses, inst).or_else(|| shifted_alike_among(func, uses, inst)),
        Opcode::Icmp => compared_fields(func, uses, inst).or_else(|| compared_field(func, uses, inst)),
        _ => None,
    }
}

/// The operands of an operation whose result nothing else uses, with its constant.
fn single(func: &Function, uses: &Uses, value: Value, op: Opcode) -> Option<(Value, u64)> {
    match made_by(func, value, op).filter(|_| uses.is_single(value))?[..] {
        [x, number] => Some((x, constant(func, number)?)),
        _ => None,
    }
}

/// What is shifted by a constant, and how far up; down where that is negative.
fn shift(func: &Function, uses: &Uses, value: Value, width: u32) -> Option<(Value, i32)> {
    let up = single(func, uses, value, Opcode::Shl).map(|(x, by)| (x, by as i32));
    let (x, by) = up.or_else(|| single(func, uses, value, Opcode::Lshr).map(|(x, by)| (x, -(by as i32))))?;
    (by != 0 && by.unsigned_abs() < width).then_some((x, by))
}

/// Bits moved up, or down where the number is negative, in a width.
fn moved(bits: u64, by: i32, width: u32) -> u64 {
    let amount = by.unsigned_abs();
    if amount >= width {
        return 0;
    }
    (if by >= 0 { bits << amount } else { (bits & mask(width)) >> amount }) & mask(width)
}

/// Whether bits are whole bytes that move by bytes: permutations are found as they stand.
fn is_bytes(kept: u64, shifts: [i32; 2]) -> bool {
    kept.to_le_bytes().iter().all(|byte| matches!(byte, 0 | 0xff)) && shifts.iter().all(|by| by % 8 == 0)
}

/// A word of 32 or 64 bits.
fn word(func: &Function, value: Value) -> Option<u32> {
    int_width(func.dfg.ty(value)).filter(|width| matches!(width, 32 | 64))
}

/// Makes `x`, shifted once, with the bits of a mask.
fn field(func: &mut Function, inst: Inst, x: Value, by: i32, kept: u64) -> Value {
    let ty = func.dfg.ty(x);
    let mut builder = before(func, inst);
    let shifted = match by {
        0 => x,
        _ => {
            let amount = builder.bits(ty, by.unsigned_abs().into());
            builder.binary(if by > 0 { Opcode::Shl } else { Opcode::Lshr }, x, amount)
        }
    };
    let kept = builder.bits(ty, kept.into());
    builder.binary(Opcode::And, shifted, kept)
}

/// `((x >> m) & k) << n` as `(x >> (m - n)) & (k << n)`, and with a product by a power of two.
fn shifted_field(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    let &[masked, by] = func.dfg.args(inst) else { return None };
    let width = word(func, masked)?;
    let by = match func.dfg.insts[inst].op {
        Opcode::Mul => u64::from(constant(func, by).filter(|by| by.is_power_of_two())?.trailing_zeros()),
        _ => constant(func, by)?,
    };
    let by = Some(by).filter(|by| *by < width.into())? as i32;
    let outer = if func.dfg.insts[inst].op == Opcode::Lshr { -by } else { by };
    let (shifted, kept) = single(func, uses, masked, Opcode::And)?;
    let (x, inner) = shift(func, uses, shifted, width)?;
    if is_bytes(kept, [inner, outer]) {
        return None;
    }
    let kept = moved(kept & moved(mask(width), inner, width), outer, width);
    Some((Rule::FieldShifted, field(func, inst, x, inner + outer, kept)))
}

/// `((x >> m) << n) & k` as `(x >> (m - n)) & k'`.
fn masked_field(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    let &[shifted, kept] = func.dfg.args(inst) else { return None };
    let width = word(func, shifted)?;
    let kept = constant(func, kept)?;
    let (once, outer) = shift(func, uses, shifted, width)?;
    let (x, inner) = shift(func, uses, once, width)?;
    if is_bytes(kept, [inner, outer]) {
        return None;
    }
    let kept = kept & moved(moved(mask(width), inner, width), outer, width);
    Some((Rule::FieldMasked, field(func, inst, x, inner + outer, kept)))
}

/// `(((x >> n) & k) + y) << n` as `(x & (k << n)) + (y << n)`.
fn field_of_sum(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    let &[sum, by] = func.dfg.args(inst) else { return None };
    let width = word(func, sum).filter(|_| func.dfg.insts[inst].op == Opcode::Shl)?;
    let amount = constant(func, by).filter(|by| *by < width.into())?;
    let terms = made_by(func, sum, Opcode::Add).filter(|_| uses.is_single(sum))?;
    let &[a, b] = &terms[..] else { return None };
    let (x, kept, y) = [(a, b), (b, a)].into_iter().find_map(|(taken, y)| {
        let (shifted, kept) = single(func, uses, taken, Opcode::And)?;
        let (x, down) = single(func, uses, shifted, Opcode::Lshr)?;
        (down == amount).then_some((x, kept, y))
    })?;
    let kept = moved(kept, amount as i32, width);
    let first = field(func, inst, x, 0, kept);
    let mut builder = before(func, inst);
    let second = builder.binary(Opcode::Shl, y, by);
    Some((Rule::FieldOfSum, builder.binary(Opcode::Add, first, second)))
}

/// A field, not shifted down, at its place and the mask there; the word itself at place 0.
fn taken(func: &Function, uses: &Uses, value: Value) -> Option<(Value, u64, u64)> {
    let (shifted, kept) = single(func, uses, value, Opcode::And)?;
    let width = word(func, shifted)?;
    match single(func, uses, shifted, Opcode::Lshr) {
        Some((x, by)) if by < width.into() => Some((x, by, moved(kept, by as i32, width))),
        Some(_) => None,
        None => Some((shifted, 0, kept)),
    }
}

fn equality(func: &Function, inst: Inst) -> Option<IntCC> {
    match func.dfg.insts[inst].extra {
        Extra::IntCC(cc @ (IntCC::Eq | IntCC::Ne)) => Some(cc),
        _ => None,
    }
}

/// `((x >> n) & k) == c` as `(x & (k << n)) == (c << n)`.
fn compared_field(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    let cc = equality(func, inst)?;
    let &[value, number] = func.dfg.args(inst) else { return None };
    let number = constant(func, number).filter(|number| *number != 0)?;
    let (x, by, kept) = taken(func, uses, value).filter(|(_, by, _)| *by != 0)?;
    // A number that does not fit the field is decided elsewhere.
    let width = word(func, x)?;
    let there = moved(number, by as i32, width);
    if there >> by != number || there & !kept != 0 {
        return None;
    }
    let ty = func.dfg.ty(x);
    let masked = field(func, inst, x, 0, kept);
    let mut builder = before(func, inst);
    let there = builder.bits(ty, there.into());
    Some((Rule::FieldCompared, builder.icmp(cc, masked, there)))
}

/// The same field of two words, compared: whether they differ there.
fn compared_fields(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    let cc = equality(func, inst)?;
    let &[a, b] = func.dfg.args(inst) else { return None };
    let ((x, by, kept), (y, other, same)) = (taken(func, uses, a)?, taken(func, uses, b)?);
    if (by, kept) != (other, same) || func.dfg.ty(x) != func.dfg.ty(y) {
        return None;
    }
    let ty = func.dfg.ty(x);
    let differ = before(func, inst).binary(Opcode::Xor, x, y);
    let there = field(func, inst, differ, 0, kept);
    let mut builder = before(func, inst);
    let zero = builder.bits(ty, 0);
    Some((Rule::FieldsCompared, builder.icmp(cc, there, zero)))
}

/// Logic of two words that are shifted alike is shifted once.
fn shifted_alike(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    let &[a, b] = func.dfg.args(inst) else { return None };
    word(func, a)?;
    let op = func.dfg.insts[inst].op;
    let (shift, x, y, by) = alike(func, uses, a, b)?;
    Some((Rule::ShiftedAlike, shift_joined(func, inst, op, (shift, x, y, by))))
}

/// The same of two words among three or four that logic of one kind puts together.
fn shifted_alike_among(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    let &[a, b] = func.dfg.args(inst) else { return None };
    word(func, a)?;
    let op = func.dfg.insts[inst].op;
    // An operand, or one of two that only this joins, with the other one.
    let parts = |value: Value| -> SmallVec<[(Value, Option<Value>); 3]> {
        let mut parts = smallvec![(value, None)];
        if let Some(both) = made_by(func, value, op).filter(|_| uses.is_single(value)) {
            parts.extend([(both[0], Some(both[1])), (both[1], Some(both[0]))]);
        }
        parts
    };
    let (left, right) = (parts(a), parts(b));
    let (pair, others) = left.iter().find_map(|(first, other)| {
        right.iter().find_map(|(second, more)| {
            let others: SmallVec<[Value; 2]> = other.iter().chain(more).copied().collect();
            alike(func, uses, *first, *second).map(|pair| (pair, others)).filter(|(_, others)| !others.is_empty())
        })
    })?;
    let shifted = shift_joined(func, inst, op, pair);
    let mut builder = before(func, inst);
    let rest = others.into_iter().reduce(|p, q| builder.binary(op, p, q))?;
    Some((Rule::ShiftedAlikeAmong, builder.binary(op, rest, shifted)))
}

/// Two words that are shifted alike, for this alone: how, what, and by how much. Whole bytes move with others in a permutation.
fn alike(func: &Function, uses: &Uses, a: Value, b: Value) -> Option<(Opcode, Value, Value, u64)> {
    [Opcode::Shl, Opcode::Lshr, Opcode::Ashr].into_iter().find_map(|shift| {
        let ((x, by), (y, same)) = (single(func, uses, a, shift)?, single(func, uses, b, shift)?);
        (by == same && by % 8 != 0).then_some((shift, x, y, by))
    })
}

/// Logic of two words, shifted.
fn shift_joined(func: &mut Function, inst: Inst, op: Opcode, pair: (Opcode, Value, Value, u64)) -> Value {
    let (shift, x, y, by) = pair;
    let ty = func.dfg.ty(x);
    let mut builder = before(func, inst);
    let joined = builder.binary(op, x, y);
    let by = builder.bits(ty, by.into());
    builder.binary(shift, joined, by)
}
