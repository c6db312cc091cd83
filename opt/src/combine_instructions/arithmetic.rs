//! Operations written by others: absolute values, averages, saturation, counts that guard against zero.

use ptxc_ir::{Flags, Function, Inst, IntCC, Opcode, Type, Value};

use super::{before, compared, constant, int_width, made_by, mask, pair, signed};
use crate::rules::{Found, Rule};

/// A cheaper way to the same result.
pub(super) fn rewrite(func: &mut Function, inst: Inst) -> Option<Found> {
    match func.dfg.insts[inst].op {
        Opcode::Select => choice(func, inst),
        Opcode::Xor => magnitude(func, inst),
        Opcode::Sub => magnitude(func, inst).or_else(|| less_low_bits(func, inst)),
        Opcode::Trunc => narrowed(func, inst),
        Opcode::And | Opcode::Or => power_of_two(func, inst).or_else(|| masked_saturation(func, inst)),
        Opcode::Add => added_difference(func, inst),
        Opcode::Mul => rounded_down(func, inst),
        _ => None,
    }
}

/// 0 - value.
fn is_negation(func: &Function, value: Value, of: Value) -> bool {
    pair(func, value, Opcode::Sub).is_some_and(|(zero, x)| x == of && constant(func, zero) == Some(0))
}

/// Choices between a value and what is computed of it.
fn choice(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[flag, a, b] = func.dfg.args(inst) else { return None };
    let width = int_width(func.dfg.ty(a)).filter(|width| *width >= 8)?;
    let (cc, x, y) = compared(func, flag)?;
    if func.dfg.ty(x) != func.dfg.ty(a) {
        return None;
    }
    // x < 0 ? -x : x, and all that is the same: of zero both are zero.
    let negative_first = match (cc, signed(func, y)) {
        (IntCC::Slt | IntCC::Sle, Some(0)) | (IntCC::Slt, Some(1)) | (IntCC::Sle, Some(-1)) => Some(true),
        (IntCC::Sgt | IntCC::Sge, Some(0)) | (IntCC::Sgt, Some(-1)) | (IntCC::Sge, Some(1)) => Some(false),
        _ => None,
    };
    if let Some(first) = negative_first {
        let (negative, other) = if first { (a, b) } else { (b, a) };
        if other == x && is_negation(func, negative, x) {
            return Some((Rule::AbsSelect, before(func, inst).unary(Opcode::Abs, x)));
        }
    }
    guarded_count(func, inst, (cc, x, y), width)
        .or_else(|| saturated(func, inst, (cc, x, y)))
        .or_else(|| wrapped_once(func, inst, (cc, x, y)))
        .or_else(|| rounded_up(func, inst, (cc, x, y)))
}

/// The zeros of a number, or its width where it is zero: the count by itself.
fn guarded_count(func: &mut Function, inst: Inst, (cc, x, y): (IntCC, Value, Value), width: u32) -> Option<Found> {
    let &[_, a, b] = func.dfg.args(inst) else { return None };
    let (at_zero, otherwise) = match cc {
        IntCC::Eq => (a, b),
        IntCC::Ne => (b, a),
        _ => return None,
    };
    if constant(func, y) != Some(0) {
        return None;
    }
    if let Some(found) = guarded_place(func, inst, x, constant(func, at_zero)?, otherwise, width) {
        return Some(found);
    }
    if constant(func, at_zero) != Some(u64::from(width)) {
        return None;
    }
    let count = func.dfg.def_inst(otherwise)?;
    let op = func.dfg.insts[count].op;
    let counts = matches!(op, Opcode::Ctlz | Opcode::Cttz) && func.dfg.resolve(func.dfg.args(count)[0]) == x;
    counts.then(|| (Rule::GuardedCount, before(func, inst).unary(op, x)))
}

/// The place of the highest bit, or what is one less than the lowest place where there is none: what the count of leading zeros
/// says by itself. Of 64 bits the count costs as much as the choice.
fn guarded_place(
    func: &mut Function,
    inst: Inst,
    x: Value,
    at_zero: u64,
    otherwise: Value,
    width: u32,
) -> Option<Found> {
    if width != 32 || at_zero != mask(width) {
        return None;
    }
    let last = u64::from(width - 1);
    // Inverting the bits of a count below the width is a difference.
    let count = match pair(func, otherwise, Opcode::Sub) {
        Some((from, count)) => Some(count).filter(|_| constant(func, from) == Some(last)),
        None => pair(func, otherwise, Opcode::Xor).filter(|(_, by)| constant(func, *by) == Some(last)).map(|(n, _)| n),
    }?;
    if *made_by(func, count, Opcode::Ctlz)?.first()? != x {
        return None;
    }
    let ty = func.dfg.ty(x);
    let mut builder = before(func, inst);
    let count = builder.unary(Opcode::Ctlz, x);
    let last = builder.bits(ty, last.into());
    Some((Rule::GuardedPlace, builder.binary(Opcode::Sub, last, count)))
}

/// Sums that stay at the largest number, differences that stay at zero.
fn saturated(func: &mut Function, inst: Inst, (cc, x, y): (IntCC, Value, Value)) -> Option<Found> {
    let &[_, a, b] = func.dfg.args(inst) else { return None };
    let all = mask(int_width(func.dfg.ty(a))?);
    // `less < than` decides for the limit.
    let (less, than, limit, value) = match cc {
        IntCC::Ult => (x, y, a, b),
        IntCC::Ugt => (y, x, a, b),
        IntCC::Uge => (x, y, b, a),
        IntCC::Ule => (y, x, b, a),
        _ => return None,
    };
    if constant(func, limit) == Some(0)
        && let Some((from, taken)) = pair(func, value, Opcode::Sub)
        && (from, taken) == (less, than)
    {
        return Some((Rule::SaturatedDifference, before(func, inst).binary(Opcode::UsubSat, from, taken)));
    }
    if constant(func, limit) == Some(all)
        && value == less
        && let Some((p, q)) = pair(func, value, Opcode::Add)
        && (than == p || than == q)
    {
        return Some((Rule::SaturatedSum, before(func, inst).binary(Opcode::UaddSat, p, q)));
    }
    None
}

/// `s >= n ? s - n : s`: of the two the smaller, since the difference wraps around where s is less.
fn wrapped_once(func: &mut Function, inst: Inst, (cc, x, y): (IntCC, Value, Value)) -> Option<Found> {
    let &[_, a, b] = func.dfg.args(inst) else { return None };
    let (a, b) = (func.dfg.resolve(a), func.dfg.resolve(b));
    let all = mask(int_width(func.dfg.ty(a)).filter(|width| matches!(width, 32 | 64))?);
    // Whether the first value is the difference; the constant from which on it is taken.
    let (first, least) = match (cc, constant(func, y)) {
        (IntCC::Uge, least) => (true, least),
        (IntCC::Ugt, Some(least)) if least < all => (true, Some(least + 1)),
        (IntCC::Ult, least) => (false, least),
        (IntCC::Ule, Some(least)) if least < all => (false, Some(least + 1)),
        _ => return None,
    };
    let (difference, number) = if first { (a, b) } else { (b, a) };
    if number != x {
        return None;
    }
    let differs = match least {
        Some(least) => pair(func, difference, Opcode::Add)
            .is_some_and(|(from, less)| from == x && constant(func, less) == Some(least.wrapping_neg() & all)),
        None => pair(func, difference, Opcode::Sub) == Some((x, y)),
    };
    // The difference wraps where it was not taken: it is made anew where it says that it does not.
    differs.then(|| {
        let data = func.dfg.def_inst(difference).map(|made| (func.dfg.insts[made].op, func.dfg.insts[made].flags));
        let wraps = data.is_none_or(|(_, flags)| flags.is_empty());
        let mut builder = before(func, inst);
        let difference = match (wraps, least) {
            (true, _) => difference,
            (false, None) => builder.binary(Opcode::Sub, x, y),
            (false, Some(least)) => {
                let ty = builder.func.dfg.ty(x);
                let less = builder.bits(ty, (least.wrapping_neg() & all).into());
                builder.binary(Opcode::Add, x, less)
            }
        };
        (Rule::WrappedOnce, builder.binary(Opcode::Umin, x, difference))
    })
}

/// `x - (x & m)` is x without the bits of m; so it is of `(x + c) - (x & m)`.
fn less_low_bits(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[from, masked] = func.dfg.args(inst) else { return None };
    let (from, ty) = (func.dfg.resolve(from), func.dfg.ty(from));
    let all = mask(int_width(ty).filter(|width| matches!(width, 32 | 64))?);
    let (x, kept) = pair(func, masked, Opcode::And)?;
    let kept = constant(func, kept)?;
    let more = match pair(func, from, Opcode::Add) {
        _ if from == x => None,
        Some((of, more)) if of == x && constant(func, more).is_some() => Some(more),
        _ => return None,
    };
    let mut builder = before(func, inst);
    let rest = builder.bits(ty, u128::from(all & !kept));
    let rest = builder.binary(Opcode::And, x, rest);
    Some((Rule::LessLowBits, more.map_or(rest, |more| builder.binary(Opcode::Add, rest, more))))
}

/// A number, or the next multiple of a power of two where it is none.
fn rounded_up(func: &mut Function, inst: Inst, (cc, x, y): (IntCC, Value, Value)) -> Option<Found> {
    let &[_, a, b] = func.dfg.args(inst) else { return None };
    let (number, next) = match (cc, constant(func, y)?) {
        (IntCC::Eq, 0) => (a, b),
        (IntCC::Ne, 0) => (b, a),
        _ => return None,
    };
    let number = func.dfg.resolve(number);
    let all = mask(int_width(func.dfg.ty(number))?);
    let low = pair(func, x, Opcode::And).filter(|(of, _)| *of == number).and_then(|(_, low)| constant(func, low))?;
    let (down, step) = pair(func, next, Opcode::Add)?;
    let (of, kept) = pair(func, down, Opcode::And)?;
    let is_next = of == number && constant(func, kept) == Some(all & !low) && constant(func, step) == Some(low + 1);
    if !is_next || !(low + 1).is_power_of_two() {
        return None;
    }
    let ty = func.dfg.ty(number);
    let mut builder = before(func, inst);
    let (low, kept) = (builder.bits(ty, low.into()), builder.bits(ty, u128::from(all & !low)));
    let sum = builder.binary(Opcode::Add, number, low);
    Some((Rule::RoundedUp, builder.binary(Opcode::And, sum, kept)))
}

/// The flag whose copies a value is; the other way around where they are inverted.
fn copies_of(func: &Function, value: Value) -> Option<(IntCC, Value, Value)> {
    if let Some(args) = made_by(func, value, Opcode::Sext) {
        return compared(func, args[0]);
    }
    let (copies, all) = pair(func, value, Opcode::Xor)?;
    let inverted = constant(func, all)? == mask(int_width(func.dfg.ty(all))?);
    let flag = made_by(func, copies, Opcode::Sext).filter(|_| inverted)?[0];
    compared(func, flag).map(|(cc, x, y)| (cc.inverse(), x, y))
}

/// `s | -(s < a)` of a sum s, and `(a - b) & -(a >= b)`: saturation by copies of the comparison.
fn masked_saturation(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[p, q] = func.dfg.args(inst) else { return None };
    int_width(func.dfg.ty(p)).filter(|width| *width >= 8)?;
    let adds = func.dfg.insts[inst].op == Opcode::Or;
    for (value, copies) in [(p, q), (q, p)] {
        let Some((cc, x, y)) = copies_of(func, copies) else { continue };
        // less < than, or less <= than.
        let (less, than, equal) = match cc {
            IntCC::Ult => (x, y, false),
            IntCC::Ugt => (y, x, false),
            IntCC::Ule => (x, y, true),
            IntCC::Uge => (y, x, true),
            _ => continue,
        };
        let value = func.dfg.resolve(value);
        if adds {
            let Some((a, b)) = pair(func, value, Opcode::Add) else { continue };
            if !equal && less == value && (than == a || than == b) {
                return Some((Rule::SaturatedSumMask, before(func, inst).binary(Opcode::UaddSat, a, b)));
            }
        } else if let Some((a, b)) = pair(func, value, Opcode::Sub)
            && (less, than) == (b, a)
        {
            return Some((Rule::SaturatedDifferenceMask, before(func, inst).binary(Opcode::UsubSat, a, b)));
        }
    }
    None
}

/// `(k - x) + y` as `(y + k) - x`, of which the machine makes one sum of three.
fn added_difference(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[p, q] = func.dfg.args(inst) else { return None };
    let ty = func.dfg.ty(p);
    int_width(ty).filter(|width| matches!(width, 32 | 64))?;
    for (difference, y) in [(p, q), (q, p)] {
        let Some((k, x)) = pair(func, difference, Opcode::Sub) else { continue };
        if constant(func, k).is_none() || constant(func, y).is_some() {
            continue;
        }
        let mut builder = before(func, inst);
        let sum = builder.binary(Opcode::Add, y, k);
        return Some((Rule::AddDifference, builder.binary(Opcode::Sub, sum, x)));
    }
    None
}

/// The copies of a number's sign.
fn is_sign_of(func: &Function, value: Value, of: Value) -> bool {
    let Some(width) = int_width(func.dfg.ty(of)) else { return false };
    pair(func, value, Opcode::Ashr).is_some_and(|(x, by)| x == of && constant(func, by) == Some(u64::from(width - 1)))
}

/// `(x + s) ^ s` and `(x ^ s) - s`, where s are the copies of x's sign.
fn magnitude(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[a, b] = func.dfg.args(inst) else { return None };
    int_width(func.dfg.ty(a)).filter(|width| *width >= 8)?;
    let inner = if func.dfg.insts[inst].op == Opcode::Xor { Opcode::Add } else { Opcode::Xor };
    let orders = [(a, b), (b, a)];
    let orders = if inner == Opcode::Add { &orders[..] } else { &orders[..1] };
    for (changed, sign) in orders {
        let Some((p, q)) = pair(func, *changed, inner) else { continue };
        for (x, other) in [(p, q), (q, p)] {
            if other == *sign && is_sign_of(func, *sign, x) {
                return Some((Rule::AbsSign, before(func, inst).unary(Opcode::Abs, x)));
            }
        }
    }
    None
}

/// What is computed in twice the width to be cut again: averages, and sums within limits.
fn narrowed(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[wide] = func.dfg.args(inst) else { return None };
    let to = func.dfg.ty(func.dfg.first_result(inst)?);
    if to != Type::I32 || func.dfg.ty(wide) != Type::I64 {
        return None;
    }
    signed_average(func, inst, wide).or_else(|| clamped_sum(func, inst, wide)).or_else(|| limited_sum(func, inst, wide))
}

/// The operands of a sum or difference of sign-extended words.
fn extended_operands(func: &Function, value: Value, op: Opcode) -> Option<(Value, Value)> {
    let (p, q) = pair(func, value, op)?;
    let of = |value: Value| made_by(func, value, Opcode::Sext).map(|args| args[0]);
    let (p, q) = (of(p)?, of(q)?);
    (func.dfg.ty(p) == Type::I32 && func.dfg.ty(q) == Type::I32).then_some((p, q))
}

/// Half the sum of two words: the bits that both have, and half of the others.
fn signed_average(func: &mut Function, inst: Inst, wide: Value) -> Option<Found> {
    let (sum, by) = pair(func, wide, Opcode::Ashr).or_else(|| pair(func, wide, Opcode::Lshr))?;
    if constant(func, by) != Some(1) {
        return None;
    }
    let (a, b) = extended_operands(func, sum, Opcode::Add)?;
    let mut builder = before(func, inst);
    let both = builder.binary(Opcode::And, a, b);
    let differ = builder.binary(Opcode::Xor, a, b);
    let half = builder.binary_imm(Opcode::Ashr, differ, 1);
    Some((Rule::SignedAverage, builder.binary(Opcode::Add, both, half)))
}

/// A sum of two words in twice the width that stays at the largest word.
fn limited_sum(func: &mut Function, inst: Inst, wide: Value) -> Option<Found> {
    let (sum, most) = pair(func, wide, Opcode::Umin)?;
    let (p, q) = pair(func, sum, Opcode::Add).filter(|_| constant(func, most) == Some(u64::from(u32::MAX)))?;
    let word = |value: Value| made_by(func, value, Opcode::Zext).map(|args| args[0]);
    let (a, b) = (word(p)?, word(q)?);
    if func.dfg.ty(a) != Type::I32 || func.dfg.ty(b) != Type::I32 {
        return None;
    }
    Some((Rule::LimitedSum, before(func, inst).binary(Opcode::UaddSat, a, b)))
}

/// A sum or difference kept within the numbers of 32 bits.
fn clamped_sum(func: &mut Function, inst: Inst, wide: Value) -> Option<Found> {
    let (least, most) = (i64::from(i32::MIN), i64::from(i32::MAX));
    let limited = |value: Value, op: Opcode, limit: i64| {
        pair(func, value, op).filter(|(_, by)| signed(func, *by) == Some(limit)).map(|(inner, _)| inner)
    };
    let inner = limited(wide, Opcode::Smax, least)
        .and_then(|inner| limited(inner, Opcode::Smin, most))
        .or_else(|| limited(wide, Opcode::Smin, most).and_then(|inner| limited(inner, Opcode::Smax, least)))?;
    if let Some((a, b)) = extended_operands(func, inner, Opcode::Add) {
        return Some((Rule::ClampedSum, before(func, inst).binary(Opcode::SaddSat, a, b)));
    }
    let (a, b) = extended_operands(func, inner, Opcode::Sub)?;
    Some((Rule::ClampedDifference, before(func, inst).binary(Opcode::SsubSat, a, b)))
}

/// Whether one bit is set: none besides the lowest, but one.
fn power_of_two(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[p, q] = func.dfg.args(inst) else { return None };
    if func.dfg.ty(p) != Type::I1 {
        return None;
    }
    let all = func.dfg.insts[inst].op == Opcode::And;
    let (no_more, some) = if all { (IntCC::Eq, IntCC::Ne) } else { (IntCC::Ne, IntCC::Eq) };
    for (first, second) in [(p, q), (q, p)] {
        let (Some((cc, rest, zero)), Some((other, x, nothing))) = (compared(func, first), compared(func, second))
        else {
            continue;
        };
        let zeros = constant(func, zero) == Some(0) && constant(func, nothing) == Some(0);
        if (cc, other) != (no_more, some) || !zeros || !clears_lowest(func, rest, x) {
            continue;
        }
        if !matches!(int_width(func.dfg.ty(x)), Some(32 | 64)) {
            continue;
        }
        let mut builder = before(func, inst);
        let ones = builder.unary(Opcode::Ctpop, x);
        return Some((Rule::PowerOfTwo, builder.icmp_imm(no_more, ones, 1)));
    }
    None
}

/// `x & (x - 1)`.
fn clears_lowest(func: &Function, value: Value, x: Value) -> bool {
    let Some((a, b)) = pair(func, value, Opcode::And) else { return false };
    let all = int_width(func.dfg.ty(x)).map(mask);
    let less_one =
        |value: Value| pair(func, value, Opcode::Add).is_some_and(|(from, by)| from == x && constant(func, by) == all);
    (a == x && less_one(b)) || (b == x && less_one(a))
}

/// `(x >> k) * 2^k` clears low bits.
fn rounded_down(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[a, b] = func.dfg.args(inst) else { return None };
    let width = int_width(func.dfg.ty(a))?;
    let power = constant(func, b).filter(|n| n.is_power_of_two() && *n > 1)?;
    let (x, by) = pair(func, a, Opcode::Lshr).or_else(|| pair(func, a, Opcode::Ashr))?;
    if constant(func, by) != Some(u64::from(power.trailing_zeros())) {
        return None;
    }
    let ty = func.dfg.ty(a);
    let mut builder = before(func, inst);
    let kept = builder.bits(ty, u128::from(mask(width) & !(power - 1)));
    Some((Rule::RoundedDown, builder.binary_flags(Opcode::And, Flags::EMPTY, x, kept)))
}
