//! Choices that are limits, and arithmetic with flags that is a choice.

use ptxc_ir::{Extra, Flags, Function, Inst, IntCC, KnownBits, Opcode, Type, Value};

use super::{Uses, before, compared, constant, int_width, made_by, mask, pair, signed, with_constant};
use crate::rules::{Found, Rule};

/// A cheaper way to the same result.
pub(super) fn rewrite(func: &mut Function, uses: &Uses, known: &KnownBits, inst: Inst) -> Option<Found> {
    match func.dfg.insts[inst].op {
        Opcode::Select => limited_again(func, inst)
            .or_else(|| limited_around(func, inst))
            .or_else(|| next_to_limit(func, inst))
            .or_else(|| counted_down(func, inst))
            .or_else(|| away_from_zero(func, uses, inst))
            .or_else(|| crossed(func, uses, inst))
            .or_else(|| more_or_not(func, uses, inst))
            .or_else(|| both_lanes(func, uses, inst)),
        Opcode::And => masked(func, uses, inst),
        Opcode::Xor => exchanged(func, inst),
        Opcode::Or => blended(func, inst),
        Opcode::Sub => negated_flag(func, inst),
        Opcode::Mul | Opcode::Shl => flag_times(func, inst),
        Opcode::Add => flag_plus(func, uses, inst)
            .or_else(|| sign_extended(func, uses, known, inst))
            .or_else(|| bits_below_lowest(func, uses, inst)),
        Opcode::Icmp => within_limits(func, uses, inst).or_else(|| carry_of_product(func, inst)),
        _ => None,
    }
}

/// A choice by both flags of a comparison of two halves, or by either: two choices. The machine compares both lanes at once, and executes
/// one choice only under the flag of the other; joined, the flags take two comparisons.
fn both_lanes(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    let &[flag, yes, no] = func.dfg.args(inst) else { return None };
    let joined = func.dfg.def_inst(flag).filter(|_| uses.is_single(flag))?;
    let op = func.dfg.insts[joined].op;
    let (p, q) = matches!(op, Opcode::And | Opcode::Or).then(|| pair(func, flag, op))??;
    let lane = |value: Value| -> Option<(Value, u64)> {
        let (vector, index) = pair(func, value, Opcode::Extract)?;
        let test = func.dfg.def_inst(vector).filter(|test| func.dfg.insts[*test].op == Opcode::Fcmp)?;
        let ty = func.dfg.insts[test].ty;
        let halves = ty.lanes() == 2 && matches!(ty.scalar(), Type::F16 | Type::BF16);
        (halves && uses.is_single(value)).then_some((vector, constant(func, index)?))
    };
    let ((v, first), (w, second)) = (lane(p)?, lane(q)?);
    let ty = func.dfg.ty(yes);
    if v != w || first == second || ty.is_vector() || ty.bits() != 32 {
        return None;
    }
    let mut builder = before(func, inst);
    let inner = builder.select(q, yes, no);
    let chosen = if op == Opcode::And { builder.select(p, inner, no) } else { builder.select(p, yes, inner) };
    Some((Rule::BothLanes, chosen))
}

/// A choice between integers by a comparison: the condition, and the values where it holds and where not.
struct Choice {
    cc: IntCC,
    x: Value,
    y: Value,
    then: Value,
    other: Value,
    width: u32,
}

impl Choice {
    fn of(func: &Function, inst: Inst) -> Option<Choice> {
        let &[flag, a, b] = func.dfg.args(inst) else { return None };
        let (cc, x, y) = compared(func, flag)?;
        let width = int_width(func.dfg.ty(a)).filter(|width| *width >= 8)?;
        let (then, other) = (func.dfg.resolve(a), func.dfg.resolve(b));
        Some(Choice { cc, x, y, then, other, width })
    }

    /// The same choice both ways around.
    fn both_ways(&self) -> [(IntCC, Value, Value); 2] {
        [(self.cc, self.then, self.other), (self.cc.inverse(), self.other, self.then)]
    }
}

/// A number in the order of a condition: signed or not.
fn ordered(bits: u64, width: u32, cc: IntCC) -> i128 {
    if cc == cc.unsigned() { i128::from(bits) } else { i128::from(((bits << (64 - width)) as i64) >> (64 - width)) }
}

/// Minimum and maximum in the order of a condition.
fn extremes(cc: IntCC) -> (Opcode, Opcode) {
    if cc == cc.unsigned() { (Opcode::Umin, Opcode::Umax) } else { (Opcode::Smin, Opcode::Smax) }
}

fn is_less(cc: IntCC) -> bool {
    matches!(cc, IntCC::Slt | IntCC::Sle | IntCC::Ult | IntCC::Ule)
}

fn is_greater(cc: IntCC) -> bool {
    matches!(cc, IntCC::Sgt | IntCC::Sge | IntCC::Ugt | IntCC::Uge)
}

/// `a < l ? l : min(a, h)` is `max(min(a, h), l)` with l not above h, and the other way around.
fn limited_again(func: &mut Function, inst: Inst) -> Option<Found> {
    let choice = Choice::of(func, inst)?;
    let bound = constant(func, choice.y)?;
    for (cc, limit, value) in choice.both_ways() {
        let (min, max) = extremes(cc);
        let (inner, outer) = if is_less(cc) {
            (min, max)
        } else if is_greater(cc) {
            (max, min)
        } else {
            return None;
        };
        let Some((a, first)) = with_constant(func, value, inner) else { continue };
        let (first, last) = (ordered(first, choice.width, cc), ordered(bound, choice.width, cc));
        let apart = if is_less(cc) { last <= first } else { last >= first };
        if a == choice.x && constant(func, limit) == Some(bound) && apart {
            return Some((Rule::LimitedAgain, before(func, inst).binary(outer, value, limit)));
        }
    }
    None
}

/// `x >u h ? (x < 0 ? 0 : h) : x`: what is above the limit as an unsigned number is negative or above it.
fn limited_around(func: &mut Function, inst: Inst) -> Option<Found> {
    let choice = Choice::of(func, inst)?;
    let bound = constant(func, choice.y)?;
    for (cc, outside, x) in choice.both_ways() {
        let high = match cc {
            IntCC::Ugt => bound,
            IntCC::Uge => bound.checked_sub(1)?,
            _ => continue,
        };
        let Some(limits) = func.dfg.def_inst(outside).and_then(|inst| Choice::of(func, inst)) else { continue };
        let negative = |cc: IntCC| cc == IntCC::Slt && constant(func, limits.y) == Some(0);
        let Some((_, zero, top)) = limits.both_ways().into_iter().find(|way| negative(way.0)) else { continue };
        let fits = high >> (choice.width - 1) == 0;
        let same = limits.x == choice.x && x == choice.x && limits.width == choice.width;
        if fits && same && constant(func, zero) == Some(0) && constant(func, top) == Some(high) {
            let mut builder = before(func, inst);
            let below = builder.binary(Opcode::Smin, x, top);
            return Some((Rule::LimitedAround, builder.binary(Opcode::Smax, below, zero)));
        }
    }
    None
}

/// `x < n ? x : n - 1` is the smaller of x and n - 1, and the other way around.
fn next_to_limit(func: &mut Function, inst: Inst) -> Option<Found> {
    let choice = Choice::of(func, inst)?;
    for (cc, value, limit) in choice.both_ways() {
        if value != choice.x || !matches!(cc, IntCC::Slt | IntCC::Ult | IntCC::Sgt | IntCC::Ugt) {
            continue;
        }
        let (min, max) = extremes(cc);
        let (op, step) = if is_less(cc) { (min, -1) } else { (max, 1) };
        let signed_order = cc != cc.unsigned();
        let next = match (constant(func, choice.y), constant(func, limit)) {
            (Some(bound), Some(next)) => ordered(next, choice.width, cc) == ordered(bound, choice.width, cc) + step,
            (None, None) => {
                let inner = func.dfg.def_inst(limit)?;
                let wraps = if signed_order { Flags::NSW } else { Flags::NUW };
                let exact = func.dfg.insts[inner].flags.contains(wraps);
                let (from, more) = pair(func, limit, Opcode::Add)?;
                // Down by one in unsigned numbers is a sum that wraps, always.
                exact && (signed_order || step > 0) && from == choice.y && signed(func, more)? == step as i64
            }
            _ => false,
        };
        if next {
            return Some((Rule::NextToLimit, before(func, inst).binary(op, value, limit)));
        }
    }
    None
}

/// `x > c ? x - c : 0`, and `x == 0 ? 0 : x - 1`: a difference that stays at zero.
fn counted_down(func: &mut Function, inst: Inst) -> Option<Found> {
    let choice = Choice::of(func, inst)?;
    let bound = constant(func, choice.y)?;
    for (cc, value, zero) in choice.both_ways() {
        let Some((x, more)) = with_constant(func, value, Opcode::Add) else { continue };
        let less = more.wrapping_neg() & mask(choice.width);
        let from = match cc {
            IntCC::Ugt => bound.checked_add(1)?,
            IntCC::Uge => bound,
            IntCC::Ne if bound == 0 => 1,
            _ => continue,
        };
        // Where they are equal the difference is zero.
        let there = less != 0 && (from == less || from.checked_sub(1) == Some(less));
        if x == choice.x && constant(func, zero) == Some(0) && there {
            let ty = func.dfg.ty(x);
            let mut builder = before(func, inst);
            let less = builder.bits(ty, less.into());
            return Some((Rule::CountedDown, builder.binary(Opcode::UsubSat, x, less)));
        }
    }
    None
}

/// `x < 0 ? c - x : c + x` is c plus the magnitude of x.
fn away_from_zero(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    let choice = Choice::of(func, inst)?;
    let number = signed(func, choice.y)?;
    for (cc, down, up) in choice.both_ways() {
        let negative = matches!((cc, number), (IntCC::Slt, 0 | 1) | (IntCC::Sle, 0 | -1));
        let single = uses.is_single(down) && uses.is_single(up);
        let (Some((c, x)), Some((p, q))) = (pair(func, down, Opcode::Sub), pair(func, up, Opcode::Add)) else {
            continue;
        };
        if negative && single && x == choice.x && ((p, q) == (c, x) || (q, p) == (c, x)) {
            let mut builder = before(func, inst);
            let magnitude = builder.unary(Opcode::Abs, x);
            return Some((Rule::AwayFromZero, builder.binary(Opcode::Add, c, magnitude)));
        }
    }
    None
}

/// `p ? (q ? e : f) : (q ? f : e)`: whether the flags differ.
fn crossed(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    let &[p, a, b] = func.dfg.args(inst) else { return None };
    int_width(func.dfg.ty(a)).or(func.dfg.ty(a).float_kind().map(|_| 0))?;
    let choice = |value: Value| match made_by(func, value, Opcode::Select).filter(|_| uses.is_single(value))?[..] {
        [q, e, f] if func.dfg.ty(q) == Type::I1 => Some((q, e, f)),
        _ => None,
    };
    let ((q, e, f), (same, g, h)) = (choice(a)?, choice(b)?);
    if q != same || (e, f) != (h, g) || func.dfg.ty(p) != Type::I1 {
        return None;
    }
    let mut builder = before(func, inst);
    let differ = builder.binary(Opcode::Xor, p, q);
    Some((Rule::CrossedChoice, builder.select(differ, f, e)))
}

/// `p ? x + y : x` of 64 bits is x and what is added to it or not: of a constant that is one choice instead of two, a sum of an address
/// takes part in it, and of one the sum takes the flag as a carry.
fn more_or_not(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    let &[flag, a, b] = func.dfg.args(inst) else { return None };
    let (a, b) = (func.dfg.resolve(a), func.dfg.resolve(b));
    let ty = func.dfg.ty(a);
    if ty != Type::I64 || func.dfg.ty(flag) != Type::I1 {
        return None;
    }
    for (sum, x, first) in [(a, b, true), (b, a, false)] {
        let Some(made) = func.dfg.def_inst(sum).filter(|_| uses.is_single(sum)) else { continue };
        let op = func.dfg.insts[made].op;
        let y = match (op, pair(func, sum, op)) {
            (Opcode::Add | Opcode::Sub, Some((p, q))) if p == x => q,
            (Opcode::Add, Some((p, q))) if q == x => p,
            _ => continue,
        };
        let mut builder = before(func, inst);
        let none = builder.bits(ty, 0);
        let more = if first { builder.select(flag, y, none) } else { builder.select(flag, none, y) };
        return Some((Rule::MoreOrNot, builder.binary(op, x, more)));
    }
    None
}

/// The flag that a value is copies of, or is as a number.
fn flag(func: &Function, value: Value, op: Opcode) -> Option<Value> {
    let flag = *made_by(func, value, op)?.first()?;
    (func.dfg.ty(flag) == Type::I1).then_some(flag)
}

/// `x` under copies of a flag is x or nothing. Copies that are used twice stay: logic on masks is one instruction for three of them.
fn masked(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    let &[a, b] = func.dfg.args(inst) else { return None };
    int_width(func.dfg.ty(a)).filter(|width| matches!(width, 16 | 32 | 64))?;
    let (flag, x) = [(a, b), (b, a)]
        .into_iter()
        .find_map(|(copies, x)| flag(func, copies, Opcode::Sext).filter(|_| uses.is_single(copies)).map(|f| (f, x)))?;
    let ty = func.dfg.ty(x);
    let mut builder = before(func, inst);
    let zero = builder.bits(ty, 0);
    Some((Rule::ChooseMasked, builder.select(flag, x, zero)))
}

/// A value under a flag, however it is written: the flag and the value.
fn under_flag(func: &Function, value: Value) -> Option<(Value, Value)> {
    if let Some(choice) = made_by(func, value, Opcode::Select) {
        let &[flag, x, zero] = &choice[..] else { return None };
        return (func.dfg.ty(flag) == Type::I1 && constant(func, zero) == Some(0)).then_some((flag, x));
    }
    let (a, b) = pair(func, value, Opcode::And)?;
    [(a, b), (b, a)].into_iter().find_map(|(copies, x)| Some((flag(func, copies, Opcode::Sext)?, x)))
}

/// `b ^ ((a ^ b) & copies of p)` is a or b.
fn exchanged(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[p, q] = func.dfg.args(inst) else { return None };
    for (b, taken) in [(p, q), (q, p)] {
        let b = func.dfg.resolve(b);
        let Some((flag, differ)) = under_flag(func, taken) else { continue };
        let Some((x, y)) = pair(func, differ, Opcode::Xor) else { continue };
        let a = match b {
            _ if x == b => y,
            _ if y == b => x,
            _ => continue,
        };
        return Some((Rule::Exchanged, before(func, inst).select(flag, a, b)));
    }
    None
}

/// `(m & c) | (~m & d)`, with m copies of a flag.
fn blended(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[p, q] = func.dfg.args(inst) else { return None };
    let all = mask(int_width(func.dfg.ty(p)).filter(|width| *width >= 8)?);
    for (kept, rest) in [(p, q), (q, p)] {
        let (Some((a, b)), Some((c, d))) = (pair(func, kept, Opcode::And), pair(func, rest, Opcode::And)) else {
            return None;
        };
        for (copies, x) in [(a, b), (b, a)] {
            let Some(flag) = flag(func, copies, Opcode::Sext) else { continue };
            let inverted = |value: Value| with_constant(func, value, Opcode::Xor) == Some((copies, all));
            for (other, y) in [(c, d), (d, c)] {
                if inverted(other) {
                    return Some((Rule::Blended, before(func, inst).select(flag, x, y)));
                }
            }
        }
    }
    None
}

/// A flag as a number, negated, is copies of the flag.
fn negated_flag(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[zero, number] = func.dfg.args(inst) else { return None };
    let ty = func.dfg.ty(zero);
    let width = int_width(ty).filter(|width| *width >= 8)?;
    if constant(func, zero) != Some(0) {
        return None;
    }
    if let Some(flag) = flag(func, number, Opcode::Zext) {
        return Some((Rule::NegatedFlag, before(func, inst).convert(Opcode::Sext, flag, ty)));
    }
    // The other way around, which is not the case for a flag alone.
    let flag = flag(func, number, Opcode::Sext).filter(|_| width > 1)?;
    Some((Rule::NegatedFlag, before(func, inst).convert(Opcode::Zext, flag, ty)))
}

/// A flag as a number, times a constant or shifted by one: the constant or nothing.
fn flag_times(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[number, by] = func.dfg.args(inst) else { return None };
    let ty = func.dfg.ty(number);
    let width = int_width(ty).filter(|width| matches!(width, 16 | 32 | 64))?;
    let by = constant(func, by)?;
    let flag = flag(func, number, Opcode::Zext)?;
    let value = match func.dfg.insts[inst].op {
        Opcode::Shl if by < width.into() => 1u64 << by,
        Opcode::Mul => by,
        _ => return None,
    };
    let mut builder = before(func, inst);
    let (value, zero) = (builder.bits(ty, value.into()), builder.bits(ty, 0));
    Some((Rule::FlagTimes, builder.select(flag, value, zero)))
}

/// A flag as a number plus a constant is one of two constants.
fn flag_plus(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    let &[number, more] = func.dfg.args(inst) else { return None };
    let ty = func.dfg.ty(number);
    let all = mask(int_width(ty).filter(|width| matches!(width, 16 | 32 | 64))?);
    let more = constant(func, more).filter(|_| uses.is_single(number))?;
    let (flag, step) = match flag(func, number, Opcode::Zext) {
        Some(flag) => (flag, 1),
        None => (flag(func, number, Opcode::Sext)?, all),
    };
    let mut builder = before(func, inst);
    let (set, clear) = (builder.bits(ty, (more.wrapping_add(step) & all).into()), builder.bits(ty, more.into()));
    Some((Rule::FlagPlus, builder.select(flag, set, clear)))
}

/// `(x ^ s) - s` with s the highest bit of a field that x fits: the sign of the field is extended.
fn sign_extended(func: &mut Function, uses: &Uses, known: &KnownBits, inst: Inst) -> Option<Found> {
    let &[changed, less] = func.dfg.args(inst) else { return None };
    let ty = func.dfg.ty(changed);
    let width = int_width(ty).filter(|width| matches!(width, 32 | 64))?;
    let less = constant(func, less)?.wrapping_neg() & mask(width);
    let (x, sign) = with_constant(func, changed, Opcode::Xor)?;
    let bits = sign.checked_ilog2()? + 1;
    let fits = known.of(func, x).most() >> (bits - 1) <= 1;
    if sign != less || !sign.is_power_of_two() || bits >= width || !fits || !uses.is_single(changed) {
        return None;
    }
    // What the shifts do not leave need not be taken away before.
    let kept = with_constant(func, x, Opcode::And).filter(|(_, kept)| *kept == mask(bits)).map(|(from, _)| from);
    let mut builder = before(func, inst);
    let by = builder.bits(ty, (width - bits).into());
    let top = builder.binary(Opcode::Shl, kept.unwrap_or(x), by);
    Some((Rule::SignExtended, builder.binary(Opcode::Ashr, top, by)))
}

/// `(x & -x) - 1`, the bits below the lowest one: those that x does not have and x - 1 has.
fn bits_below_lowest(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    let &[lowest, less] = func.dfg.args(inst) else { return None };
    let ty = func.dfg.ty(lowest);
    let all = mask(int_width(ty).filter(|width| *width >= 8)?);
    let (a, b) = pair(func, lowest, Opcode::And).filter(|_| uses.is_single(lowest))?;
    let negated = |value: Value, of: Value| {
        pair(func, value, Opcode::Sub).is_some_and(|(zero, x)| x == of && constant(func, zero) == Some(0))
    };
    let x = [(a, b), (b, a)].into_iter().find(|(x, minus)| negated(*minus, *x)).map(|(x, _)| x)?;
    if constant(func, less) != Some(all) {
        return None;
    }
    let mut builder = before(func, inst);
    let ones = builder.bits(ty, all.into());
    let (without, before_it) = (builder.binary(Opcode::Xor, x, ones), builder.binary(Opcode::Add, x, ones));
    Some((Rule::BitsBelowLowest, builder.binary(Opcode::And, without, before_it)))
}

/// Whether a number is changed by limits: whether it is outside of them.
fn within_limits(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    let &[p, q] = func.dfg.args(inst) else { return None };
    let Extra::IntCC(cc @ (IntCC::Eq | IntCC::Ne)) = func.dfg.insts[inst].extra else { return None };
    let ty = func.dfg.ty(p);
    let width = int_width(ty).filter(|width| *width >= 8)?;
    let extremes = [(Opcode::Smin, Opcode::Smax, IntCC::Sle), (Opcode::Umin, Opcode::Umax, IntCC::Ule)];
    for (limited, x) in [(p, q), (q, p)] {
        let x = func.dfg.resolve(x);
        for (min, max, below) in extremes {
            let least = |value: Value| with_constant(func, value, max);
            let most = |value: Value| with_constant(func, value, min);
            let (of, low, high) = match (least(limited), most(limited)) {
                (Some((of, low)), _) if of == x => (of, Some(low), None),
                (_, Some((of, high))) if of == x => (of, None, Some(high)),
                (Some((inner, low)), _) => match most(inner) {
                    Some((of, high)) => (of, Some(low), Some(high)),
                    None => continue,
                },
                (_, Some((inner, high))) => match least(inner) {
                    Some((of, low)) => (of, Some(low), Some(high)),
                    None => continue,
                },
                _ => continue,
            };
            if of != x {
                continue;
            }
            let inside = |order: IntCC| if cc == IntCC::Eq { order } else { order.inverse() };
            let (holds, low, high) = match (low, high) {
                (Some(low), None) => (inside(below.swap()), None, low),
                (None, Some(high)) => (inside(below), None, high),
                (Some(low), Some(high)) => (inside(IntCC::Ule), Some(low), high),
                (None, None) => continue,
            };
            let (from, bound) = match low {
                None => (x, high),
                Some(low) => {
                    // The other order of the limits gives the same where they are in order.
                    if ordered(low, width, below) > ordered(high, width, below) || !uses.is_single(limited) {
                        continue;
                    }
                    let mut builder = before(func, inst);
                    let less = builder.bits(ty, (low.wrapping_neg() & mask(width)).into());
                    (builder.binary(Opcode::Add, x, less), high.wrapping_sub(low) & mask(width))
                }
            };
            let mut builder = before(func, inst);
            let bound = builder.bits(ty, bound.into());
            return Some((Rule::WithinLimits, builder.icmp(holds, from, bound)));
        }
    }
    None
}

/// The carry of a sum with a product is asked of the other summand: the product can be part of the sum then.
fn carry_of_product(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[p, q] = func.dfg.args(inst) else { return None };
    let Extra::IntCC(cc) = func.dfg.insts[inst].extra else { return None };
    let (sum, product) = match cc {
        IntCC::Ult | IntCC::Uge => (p, func.dfg.resolve(q)),
        IntCC::Ugt | IntCC::Ule => (q, func.dfg.resolve(p)),
        _ => return None,
    };
    made_by(func, product, Opcode::Mul)?;
    let (a, b) = pair(func, sum, Opcode::Add)?;
    let other = match product {
        _ if a == product => b,
        _ if b == product => a,
        _ => return None,
    };
    if func.dfg.as_const(other).is_some() || made_by(func, other, Opcode::Mul).is_some() {
        return None;
    }
    let mut builder = before(func, inst);
    let (a, b) = if sum == p { (sum, other) } else { (other, sum) };
    Some((Rule::CarryOfProduct, builder.icmp(cc, a, b)))
}
