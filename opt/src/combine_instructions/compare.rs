//! Comparisons and choices by them.

use ptxc_ir::{Extra, Function, Inst, IntCC, KnownBits, Opcode, Type, Value};

use crate::rules::{Found, Rule};

use super::{before, constant, int_width, made_by, mask};

/// A cheaper way to the same result.
pub(super) fn rewrite(func: &mut Function, known: &KnownBits, inst: Inst) -> Option<Found> {
    match func.dfg.insts[inst].op {
        Opcode::Icmp => comparison(func, known, inst),
        Opcode::Select => choice(func, inst),
        Opcode::Xor => negation(func, inst),
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

/// The comparison behind a value: condition and operands.
fn compared(func: &Function, value: Value) -> Option<(IntCC, Value, Value)> {
    let args = made_by(func, value, Opcode::Icmp)?;
    let cc = condition(func, func.dfg.def_inst(value)?)?;
    match args[..] {
        [a, b] => Some((cc, a, b)),
        _ => None,
    }
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
    if width < 8 {
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
    if cc != IntCC::Slt || constant(func, y) != Some(0) || func.dfg.ty(x) != ty {
        return None;
    }
    let width = int_width(ty)?;
    let shift = if op == Opcode::Sext { Opcode::Ashr } else { Opcode::Lshr };
    let mut builder = before(func, inst);
    let by = builder.bits(ty, u128::from(width - 1));
    Some((Rule::ExtendedSign, builder.binary(shift, x, by)))
}
