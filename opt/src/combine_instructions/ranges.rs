//! Numbers that lie in one of two ranges, and what is common to two conditions.

use ptxc_ir::{Extra, Function, Inst, IntCC, Opcode, Type, Value};

use super::{before, constant, int_width, made_by, mask};
use crate::rules::{Found, Rule};

/// The numbers from `start` on, `count` of them, wrapping around.
#[derive(Clone, Copy)]
struct Range {
    of: Value,
    start: u64,
    count: u64,
}

/// A cheaper way to `p | q` or `p & q` of conditions.
pub(super) fn rewrite(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[p, q] = func.dfg.args(inst) else { return None };
    if func.dfg.ty(p) != Type::I1 {
        return None;
    }
    joined(func, inst, p, q).or_else(|| joined_inside(func, inst, p, q)).or_else(|| common(func, inst, p, q))
}

/// The range that a flag asks for; with `inside` false the range that it excludes.
fn range(func: &Function, flag: Value, inside: bool) -> Option<Range> {
    let test = func.dfg.def_inst(flag).filter(|test| func.dfg.insts[*test].op == Opcode::Icmp)?;
    let (&[x, bound], Extra::IntCC(cc)) = (func.dfg.args(test), func.dfg.insts[test].extra) else { return None };
    let x = func.dfg.resolve(x);
    let all = int_width(func.dfg.ty(x)).filter(|width| *width >= 8).map(mask)?;
    let bound = constant(func, bound)?;
    let cc = if inside { cc } else { cc.inverse() };
    // Signed numbers begin at the least one.
    let least = if cc == cc.unsigned() { 0 } else { all / 2 + 1 };
    let below = bound.wrapping_sub(least) & all;
    let (start, count) = match cc {
        IntCC::Eq => return Some(Range { of: x, start: bound, count: 1 }),
        IntCC::Ult | IntCC::Slt => (least, below),
        IntCC::Ule | IntCC::Sle => (least, below.checked_add(1)?),
        IntCC::Uge | IntCC::Sge => (bound, (all - below).checked_add(1)?),
        IntCC::Ugt | IntCC::Sgt => (bound.wrapping_add(1) & all, all - below),
        IntCC::Ne => return None,
    };
    if count == 0 || count > all {
        return None;
    }
    match made_by(func, x, Opcode::Add).as_deref() {
        Some(&[of, less]) if constant(func, less).is_some() => {
            let start = start.wrapping_sub(constant(func, less)?) & all;
            Some(Range { of, start, count })
        }
        _ => Some(Range { of: x, start, count }),
    }
}

/// Two ranges as one: they touch, or they differ in one bit alone.
fn joined(func: &mut Function, inst: Inst, p: Value, q: Value) -> Option<Found> {
    let inside = func.dfg.insts[inst].op == Opcode::Or;
    let (first, second) = (range(func, p, inside)?, range(func, q, inside)?);
    if first.of != second.of {
        return None;
    }
    let ty = func.dfg.ty(first.of);
    let all = int_width(ty).map(mask)?;
    for (low, high) in [(first, second), (second, first)] {
        let distance = high.start.wrapping_sub(low.start) & all;
        let end = distance.checked_add(high.count).filter(|end| *end <= all);
        if let Some(end) = end.filter(|_| distance <= low.count) {
            let whole = Range { count: end.max(low.count), ..low };
            return Some((Rule::JoinRanges, test(func, inst, whole, inside)));
        }
        let bit = low.start ^ high.start;
        let apart = bit.is_power_of_two() && low.start & bit == 0 && low.count == high.count && low.count > 1;
        if apart && (low.start & (bit - 1)).checked_add(low.count).is_some_and(|end| end <= bit) {
            let mut builder = before(func, inst);
            let kept = builder.bits(ty, u128::from(all & !bit));
            let of = builder.binary(Opcode::And, low.of, kept);
            return Some((Rule::JoinRangesBit, test(func, inst, Range { of, ..low }, inside)));
        }
    }
    None
}

/// The same of one condition and one of two that are joined already.
fn joined_inside(func: &mut Function, inst: Inst, p: Value, q: Value) -> Option<Found> {
    let op = func.dfg.insts[inst].op;
    for (both, other) in [(p, q), (q, p)] {
        let Some(parts) = made_by(func, both, op) else { continue };
        let &[a, b] = &parts[..] else { continue };
        for (kept, taken) in [(a, b), (b, a)] {
            if let Some((rule, value)) = joined(func, inst, taken, other) {
                return Some((rule, before(func, inst).binary(op, kept, value)));
            }
        }
    }
    None
}

/// The test for a range, or against it.
fn test(func: &mut Function, inst: Inst, range: Range, inside: bool) -> Value {
    let ty = func.dfg.ty(range.of);
    let all = int_width(ty).map_or(u64::MAX, mask);
    let mut builder = before(func, inst);
    if range.start != 0 && range.start.wrapping_add(range.count) & all == 0 {
        // Up to the greatest number.
        let start = builder.bits(ty, u128::from(range.start));
        return builder.icmp(if inside { IntCC::Uge } else { IntCC::Ult }, range.of, start);
    }
    let from = if range.start == 0 {
        range.of
    } else {
        let less = builder.bits(ty, u128::from(range.start.wrapping_neg() & all));
        builder.binary(Opcode::Add, range.of, less)
    };
    let count = builder.bits(ty, u128::from(range.count));
    builder.icmp(if inside { IntCC::Ult } else { IntCC::Uge }, from, count)
}

/// `(x & y) | (x & z)` as `x & (y | z)`, and the same with both operations exchanged.
fn common(func: &mut Function, inst: Inst, p: Value, q: Value) -> Option<Found> {
    let outer = func.dfg.insts[inst].op;
    let inner = if outer == Opcode::Or { Opcode::And } else { Opcode::Or };
    let (left, right) = (made_by(func, p, inner)?, made_by(func, q, inner)?);
    let (&[a, b], &[c, d]) = (&left[..], &right[..]) else { return None };
    for (x, y, other, z) in [(a, b, c, d), (a, b, d, c), (b, a, c, d), (b, a, d, c)] {
        if x == other {
            let mut builder = before(func, inst);
            let rest = builder.binary(outer, y, z);
            return Some((Rule::CommonCondition, builder.binary(inner, x, rest)));
        }
    }
    None
}
