//! Comparisons and choices by them.

use ptxc_ir::{Extra, Flags, FloatCC, Function, Inst, IntCC, KnownBits, Opcode, Type, Value};

use crate::rules::{Found, Rule};

use super::{before, compared, constant, int_width, made_by, mask};

/// A cheaper way to the same result.
pub(super) fn rewrite(func: &mut Function, known: &KnownBits, inst: Inst) -> Option<Found> {
    match func.dfg.insts[inst].op {
        Opcode::Icmp => comparison(func, known, inst)
            .or_else(|| extended_alike(func, inst))
            .or_else(|| tested_bit(func, inst))
            .or_else(|| tested_word(func, inst))
            .or_else(|| upper_bits(func, inst))
            .or_else(|| tested_sign(func, inst))
            .or_else(|| counted_all(func, inst)),
        Opcode::Select => choice(func, inst),
        Opcode::Xor => negation(func, inst),
        Opcode::And | Opcode::Or => {
            joined_tests(func, inst).or_else(|| unordered(func, inst)).or_else(|| super::ranges::rewrite(func, inst))
        }
        Opcode::Sub => three_way(func, inst),
        Opcode::Zext | Opcode::Sext => extended_sign(func, inst),
        _ => None,
    }
}

fn condition(func: &Function, inst: Inst) -> Option<IntCC> {
    match func.dfg.insts[inst].extra {
        Extra::IntCC(cc) => Some(cc),
        _ => None,
    }
}

/// Whether as many bits are ones as there are: whether there is no zero.
fn counted_all(func: &mut Function, inst: Inst) -> Option<Found> {
    use IntCC::{Eq, Ne, Sge, Sgt, Sle, Slt, Uge, Ugt, Ule, Ult};
    let &[count, bound] = func.dfg.args(inst) else { return None };
    let x = *made_by(func, func.dfg.resolve(count), Opcode::Ctpop)?.first()?;
    // Narrower, and the width is no positive number.
    let width = int_width(func.dfg.ty(x)).filter(|width| *width >= 8)?;
    let bound = constant(func, bound)?;
    let less = u64::from(width) - 1;
    let cc = match condition(func, inst)? {
        Eq | Uge | Sge if bound == less + 1 => Eq,
        Ugt | Sgt if bound == less => Eq,
        Ne | Ult | Slt if bound == less + 1 => Ne,
        Ule | Sle if bound == less => Ne,
        _ => return None,
    };
    let ty = func.dfg.ty(x);
    let mut builder = before(func, inst);
    let ones = builder.bits(ty, mask(width).into());
    Some((Rule::CountAll, builder.icmp(cc, x, ones)))
}

/// Two words extended alike to 64 bits, or one and a constant: the words are in the same order. What zeros extend is not negative.
fn extended_alike(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[a, b] = func.dfg.args(inst) else { return None };
    let cc = condition(func, inst)?;
    let extended = |value: Value| {
        let op = func.dfg.insts[func.dfg.def_inst(value)?].op;
        let word = *made_by(func, value, op).filter(|_| matches!(op, Opcode::Zext | Opcode::Sext))?.first()?;
        (func.dfg.ty(word) == Type::I32).then_some((word, op))
    };
    let (x, op) = extended(func.dfg.resolve(a)).filter(|_| func.dfg.ty(a) == Type::I64)?;
    let cc = if op == Opcode::Zext { cc.unsigned() } else { cc };
    if let Some(number) = constant(func, b) {
        let fits = if op == Opcode::Zext { number <= mask(32) } else { i32::try_from(number as i64).is_ok() };
        return fits.then(|| {
            let mut builder = before(func, inst);
            let number = builder.bits(Type::I32, u128::from(number & mask(32)));
            (Rule::ExtendedAlike, builder.icmp(cc, x, number))
        });
    }
    let (y, _) = extended(func.dfg.resolve(b)).filter(|(_, same)| *same == op)?;
    Some((Rule::ExtendedAlike, before(func, inst).icmp(cc, x, y)))
}

/// A comparison that ranges decide, or that need not be signed.
fn comparison(func: &mut Function, known: &KnownBits, inst: Inst) -> Option<Found> {
    let &[a, b] = func.dfg.args(inst) else { return None };
    let width = int_width(func.dfg.ty(a))?;
    let cc = condition(func, inst)?;
    let (mut x, mut y) = (known.of(func, a), known.of(func, b));
    let sign = 1u64 << (width - 1);
    let unsigned = cc.unsigned();
    if unsigned != cc {
        // The order of signed numbers is that of unsigned ones with the sign inverted.
        for side in [&mut x, &mut y] {
            let (zeros, ones) = (side.zeros, side.ones);
            side.zeros = zeros & !sign | ones & sign;
            side.ones = ones & !sign | zeros & sign;
        }
    }
    let decided = match unsigned {
        IntCC::Ult if x.most() < y.least() => Some(true),
        IntCC::Ult if x.least() >= y.most() => Some(false),
        IntCC::Ule if x.most() <= y.least() => Some(true),
        IntCC::Ule if x.least() > y.most() => Some(false),
        IntCC::Ugt if x.least() > y.most() => Some(true),
        IntCC::Ugt if x.most() <= y.least() => Some(false),
        IntCC::Uge if x.least() >= y.most() => Some(true),
        IntCC::Uge if x.most() < y.least() => Some(false),
        IntCC::Eq if x.ones & y.zeros | x.zeros & y.ones != 0 => Some(false),
        IntCC::Ne if x.ones & y.zeros | x.zeros & y.ones != 0 => Some(true),
        _ => None,
    };
    decided.map(|holds| (Rule::CompareDecided, func.dfg.bits(Type::I1, holds.into())))
}

/// A choice of constants by a condition, and of what is compared.
fn choice(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[c, a, b] = func.dfg.args(inst) else { return None };
    let ty = func.dfg.ty(a);
    if ty.is_vector() && ty.scalar().is_int() && func.dfg.ty(c).is_vector() {
        return extreme(func, inst).map(|(_, value)| (Rule::SelectExtremeLanes, value));
    }
    let width = int_width(ty)?;
    if func.dfg.ty(c) != Type::I1 {
        return None;
    }
    if let Some(not) = made_by(func, c, Opcode::Xor)
        && let &[inner, ones] = &not[..]
        && constant(func, ones) == Some(1)
    {
        return Some((Rule::SelectNegated, before(func, inst).select(inner, b, a)));
    }
    if width > 1 {
        match (constant(func, a), constant(func, b)) {
            (Some(1), Some(0)) => {
                return Some((Rule::SelectOneZero, before(func, inst).convert(Opcode::Zext, c, ty)));
            }
            (Some(n), Some(0)) if n == mask(width) => {
                return Some((Rule::SelectOnesZero, before(func, inst).convert(Opcode::Sext, c, ty)));
            }
            _ => {}
        }
    }
    extreme(func, inst)
}

/// A choice of what is compared is a minimum or maximum, of vectors lane by lane.
fn extreme(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[c, a, b] = func.dfg.args(inst) else { return None };
    let (a, b) = (func.dfg.resolve(a), func.dfg.resolve(b));
    let (cc, x, y) = compared(func, c)?;
    let op = |larger: bool, signed: bool| match (larger, signed) {
        (true, true) => Opcode::Smax,
        (true, false) => Opcode::Umax,
        (false, true) => Opcode::Smin,
        (false, false) => Opcode::Umin,
    };
    let (larger, signed) = match cc {
        IntCC::Ugt | IntCC::Uge => (true, false),
        IntCC::Ult | IntCC::Ule => (false, false),
        IntCC::Sgt | IntCC::Sge => (true, true),
        IntCC::Slt | IntCC::Sle => (false, true),
        IntCC::Eq | IntCC::Ne => return None,
    };
    if func.dfg.ty(a).scalar_bits() < 8 {
        return None;
    }
    if (a, b) == (x, y) {
        Some((Rule::SelectExtreme, before(func, inst).binary(op(larger, signed), a, b)))
    } else if (a, b) == (y, x) {
        Some((Rule::SelectExtremeSwapped, before(func, inst).binary(op(!larger, signed), a, b)))
    } else {
        None
    }
}

/// The negation of a comparison is a comparison.
fn negation(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[a, b] = func.dfg.args(inst) else { return None };
    if func.dfg.ty(a) != Type::I1 || constant(func, b) != Some(1) {
        return None;
    }
    let (cc, x, y) = compared(func, a)?;
    Some((Rule::NegatedCompare, before(func, inst).icmp(cc.inverse(), x, y)))
}

/// An extended test of the sign is a shift.
fn extended_sign(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[c] = func.dfg.args(inst) else { return None };
    let op = func.dfg.insts[inst].op;
    let ty = func.dfg.ty(func.dfg.first_result(inst)?);
    let (cc, x, y) = compared(func, c)?;
    // Constants of vectors are splats; equal ones are one value.
    if cc != IntCC::Slt || !ty.scalar().is_int() || func.dfg.ty(x) != ty || y != func.dfg.bits(ty, 0) {
        return None;
    }
    let width = int_width(ty.scalar())?;
    let shift = if op == Opcode::Sext { Opcode::Ashr } else { Opcode::Lshr };
    let rule = if ty.is_vector() { Rule::ExtendedSignLanes } else { Rule::ExtendedSign };
    let mut builder = before(func, inst);
    let by = builder.bits(ty, u128::from(width - 1));
    Some((rule, builder.binary(shift, x, by)))
}

/// A bit that is moved to be tested: the mask moves instead. `(x >> c) & m` is zero when `x & (m << c)` is; of a bit at a
/// variable place in `x`, `x` is shifted rather than a one, which needs a register.
fn tested_bit(func: &mut Function, inst: Inst) -> Option<Found> {
    let cc = condition(func, inst)?;
    let &[masked, zero] = func.dfg.args(inst) else { return None };
    if !matches!(cc, IntCC::Eq | IntCC::Ne) || constant(func, zero) != Some(0) {
        return None;
    }
    let ty = func.dfg.ty(masked);
    let width = int_width(ty)?;
    let parts = made_by(func, masked, Opcode::And)?;
    let &[a, b] = &parts[..] else { return None };
    if let (Some(kept), Some(shifted)) = (constant(func, b), made_by(func, a, Opcode::Lshr))
        && let &[x, by] = &shifted[..]
        && let Some(by) = constant(func, by).filter(|by| *by < u64::from(width))
    {
        let mut builder = before(func, inst);
        let moved = builder.bits(ty, u128::from(kept << by & mask(width)));
        let test = builder.binary(Opcode::And, x, moved);
        return Some((Rule::TestedBitMask, builder.icmp(cc, test, zero)));
    }
    for (one, x) in [(a, b), (b, a)] {
        let Some(shifted) = made_by(func, one, Opcode::Shl) else { continue };
        let &[start, by] = &shifted[..] else { continue };
        // What made the word may need the bit in its place: the shift is there.
        let shares = func.dfg.def_inst(x).is_some_and(|maker| func.dfg.args(maker).contains(&one));
        if constant(func, start) != Some(1) || constant(func, by).is_some() || shares {
            continue;
        }
        let mut builder = before(func, inst);
        let moved = builder.binary(Opcode::Lshr, x, by);
        let one = builder.bits(ty, 1);
        let test = builder.binary(Opcode::And, moved, one);
        return Some((Rule::TestedBitShift, builder.icmp(cc, test, zero)));
    }
    None
}

/// Bits of one word of 64 bits, tested in that word.
fn tested_word(func: &mut Function, inst: Inst) -> Option<Found> {
    let cc = condition(func, inst)?;
    let &[masked, zero] = func.dfg.args(inst) else { return None };
    let tests = matches!(cc, IntCC::Eq | IntCC::Ne) && constant(func, zero) == Some(0);
    if !tests || func.dfg.ty(masked) != Type::I64 {
        return None;
    }
    let parts = made_by(func, masked, Opcode::And)?;
    let &[x, kept] = &parts[..] else { return None };
    let kept = constant(func, kept)?;
    let upper = kept as u32 == 0;
    if kept >> 32 != 0 && !upper {
        return None;
    }
    let mut builder = before(func, inst);
    let word = if upper { builder.binary_imm(Opcode::Lshr, x, 32) } else { x };
    let word = builder.convert(Opcode::Trunc, word, Type::I32);
    let kept = builder.bits(Type::I32, u128::from(if upper { kept >> 32 } else { kept }));
    let test = builder.binary(Opcode::And, word, kept);
    Some((Rule::TestedWord, builder.icmp_imm(cc, test, 0)))
}

/// Upper bits compared with zero or with those of another number: the number, or the bits that differ, are small.
fn upper_bits(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[a, b] = func.dfg.args(inst) else { return None };
    let small = match condition(func, inst)? {
        IntCC::Eq => IntCC::Ult,
        IntCC::Ne => IntCC::Uge,
        _ => return None,
    };
    let ty = func.dfg.ty(a);
    int_width(ty).filter(|width| matches!(width, 32 | 64))?;
    let shifted = |value: Value| match made_by(func, value, Opcode::Lshr)?[..] {
        [x, by] => Some((x, constant(func, by).filter(|by| (1..32).contains(by))?)),
        _ => None,
    };
    let (x, by) = shifted(a)?;
    let other = shifted(b).filter(|(_, same)| *same == by).map(|(y, _)| y);
    if other.is_none() && constant(func, b) != Some(0) {
        return None;
    }
    let mut builder = before(func, inst);
    let value = other.map_or(x, |y| builder.binary(Opcode::Xor, x, y));
    let bound = builder.bits(ty, 1 << by);
    Some((Rule::UpperBits, builder.icmp(small, value, bound)))
}

/// The sign of a byte or a half of a word is a bit of the word.
fn tested_sign(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[narrow, bound] = func.dfg.args(inst) else { return None };
    let bits = int_width(func.dfg.ty(narrow)).filter(|bits| matches!(bits, 8 | 16))?;
    let set = match (condition(func, inst)?, constant(func, bound)?) {
        (IntCC::Slt, 0) => IntCC::Ne,
        (IntCC::Sgt, ones) if ones == mask(bits) => IntCC::Eq,
        _ => return None,
    };
    let word = *made_by(func, narrow, Opcode::Trunc)?.first()?;
    if func.dfg.ty(word) != Type::I32 {
        return None;
    }
    let mut builder = before(func, inst);
    let bit = builder.binary_imm(Opcode::And, word, 1 << (bits - 1));
    Some((Rule::TestedSign, builder.icmp_imm(set, bit, 0)))
}

/// Two values tested for the same: all bits zero, all bits one, the sign. One test of both.
fn joined_tests(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[p, q] = func.dfg.args(inst) else { return None };
    if func.dfg.ty(p) != Type::I1 {
        return None;
    }
    let all = func.dfg.insts[inst].op == Opcode::And;
    let ((cc, x, bound), (other, y, same)) = (compared(func, p)?, compared(func, q)?);
    let ty = func.dfg.ty(x);
    let width = int_width(ty).filter(|width| *width > 1)?;
    if (cc, bound) != (other, same) || func.dfg.ty(y) != ty {
        return None;
    }
    // Whether a one in either value decides, or only one in both.
    let either = match (cc, constant(func, bound)?) {
        (IntCC::Eq, 0) if all => true,
        (IntCC::Ne, 0) if !all => true,
        (IntCC::Slt, 0) => !all,
        (IntCC::Eq, n) if n == mask(width) && all => false,
        (IntCC::Ne, n) if n == mask(width) && !all => false,
        (IntCC::Sgt, n) if n == mask(width) => all,
        _ => return None,
    };
    let mut builder = before(func, inst);
    let both = builder.binary(if either { Opcode::Or } else { Opcode::And }, x, y);
    Some((Rule::JoinTests, builder.icmp(cc, both, bound)))
}

/// Whether one of two numbers is NaN, or neither, is one comparison of them.
fn unordered(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[p, q] = func.dfg.args(inst) else { return None };
    let wanted = if func.dfg.insts[inst].op == Opcode::Or { FloatCC::Uno } else { FloatCC::Ord };
    let (x, y) = (tested_for_nan(func, p, wanted)?, tested_for_nan(func, q, wanted)?);
    if func.dfg.ty(x) != func.dfg.ty(y) || func.dfg.ty(x).is_vector() {
        return None;
    }
    Some((Rule::JoinNan, before(func, inst).fcmp(wanted, Flags::EMPTY, x, y)))
}

/// The number that a comparison tests for NaN alone: it is compared with itself or with a number.
pub(super) fn tested_for_nan(func: &Function, flag: Value, wanted: FloatCC) -> Option<Value> {
    let inst = func.dfg.def_inst(flag)?;
    let args = made_by(func, flag, Opcode::Fcmp)?;
    let &[a, b] = &args[..] else { return None };
    let asks = matches!(func.dfg.insts[inst].extra, Extra::FloatCC(cc) if cc == wanted);
    let zero = func.dfg.as_bits(b) == Some(0);
    (asks && (a == b || zero)).then_some(a)
}

/// `(x > y) - (x < y)`: the two exclude each other, so one is chosen instead of subtracted.
fn three_way(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[greater, less] = func.dfg.args(inst) else { return None };
    let ty = func.dfg.ty(greater);
    let width = int_width(ty)?;
    let p = *made_by(func, greater, Opcode::Zext)?.first()?;
    let q = *made_by(func, less, Opcode::Zext)?.first()?;
    let ((cc, x, y), (other, a, b)) = (compared(func, p)?, compared(func, q)?);
    let excluded = match cc {
        IntCC::Sgt => IntCC::Slt,
        IntCC::Slt => IntCC::Sgt,
        IntCC::Ugt => IntCC::Ult,
        IntCC::Ult => IntCC::Ugt,
        _ => return None,
    };
    let same = (other, a, b) == (excluded, x, y) || (other.swap(), b, a) == (excluded, x, y);
    if !same || func.dfg.ty(p) != Type::I1 || func.dfg.ty(q) != Type::I1 {
        return None;
    }
    let mut builder = before(func, inst);
    let minus = builder.bits(ty, u128::from(mask(width)));
    Some((Rule::ThreeWay, builder.select(q, minus, greater)))
}
