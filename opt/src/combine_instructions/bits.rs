//! Logic, shifts and sums.

use ptxc_ir::{Flags, Function, Inst, KnownBits, Opcode, Type, Value};

use crate::rules::Rule::*;
use crate::rules::{Found, Rule};

use super::{Uses, before, constant, int_width, made_by, mask, signed};

/// An operand that the result equals, because of what is known of the other.
pub(super) fn redundant(func: &Function, known: &KnownBits, inst: Inst) -> Option<Found> {
    let &[a, b] = func.dfg.args(inst) else { return None };
    let width = int_width(func.dfg.ty(a))?;
    let (x, y) = (known.of(func, a), known.of(func, b));
    let all = mask(width);
    match func.dfg.insts[inst].op {
        // Every bit that can be one is kept.
        Opcode::And if x.most() & !y.ones & all == 0 => Some((AndKeepsLeft, a)),
        Opcode::And if y.most() & !x.ones & all == 0 => Some((AndKeepsRight, b)),
        Opcode::Or if y.most() & !x.ones & all == 0 => Some((OrKeepsLeft, a)),
        Opcode::Or if x.most() & !y.ones & all == 0 => Some((OrKeepsRight, b)),
        Opcode::Umin if x.most() <= y.least() => Some((UminLeft, a)),
        Opcode::Umin if y.most() <= x.least() => Some((UminRight, b)),
        Opcode::Umax if x.least() >= y.most() => Some((UmaxLeft, a)),
        Opcode::Umax if y.least() >= x.most() => Some((UmaxRight, b)),
        _ => None,
    }
}

/// A cheaper way to the same result.
pub(super) fn rewrite(func: &mut Function, uses: &Uses, known: &KnownBits, inst: Inst) -> Option<Found> {
    let &[a, b] = func.dfg.args(inst) else { return None };
    let (op, flags) = (func.dfg.insts[inst].op, func.dfg.insts[inst].flags);
    let width = int_width(func.dfg.ty(a))?;
    if let Some(found) = super::rotations::rewrite(func, inst).or_else(|| bit_copies(func, inst, op, a, b, width)) {
        return Some(found);
    }
    match op {
        // Where no bit is in both, `or` says so.
        Opcode::Xor if width > 1 && known.of(func, a).most() & known.of(func, b).most() == 0 => {
            Some((XorDisjoint, before(func, inst).binary_flags(Opcode::Or, Flags::DISJOINT, a, b)))
        }
        Opcode::And | Opcode::Or | Opcode::Xor | Opcode::Add => joined_constants(func, inst, op, a, b),
        Opcode::Sub => {
            // A sum, which takes part in more rules. The flags do not carry over.
            let number = signed(func, b)?;
            let ty = func.dfg.ty(a);
            (number != 0).then(|| {
                let mut builder = before(func, inst);
                let negated = builder.bits(ty, u128::from((number as u64).wrapping_neg() & mask(width)));
                (SubConstant, builder.binary(Opcode::Add, a, negated))
            })
        }
        Opcode::Mul if width == 64 => {
            // Of 32 bits a product is as cheap, and part of a sum.
            let by = constant(func, b).filter(|n| n.is_power_of_two() && *n > 1)?.trailing_zeros();
            let kept = if by == width - 1 { flags.without(Flags::NSW) } else { flags };
            let ty = func.dfg.ty(a);
            let mut builder = before(func, inst);
            let by = builder.bits(ty, by.into());
            Some((MulPower, builder.binary_flags(Opcode::Shl, kept, a, by)))
        }
        Opcode::Shl | Opcode::Lshr | Opcode::Ashr => shift_of_shift(func, inst, op, a, b, width)
            .or_else(|| shift_in_word(func, known, inst, a, b))
            .or_else(|| shifted_sum(func, uses, inst, a, b)),
        _ => None,
    }
}

/// Copies of a bit: the lowest one negated, and the highest one by a constant, which is a mask.
fn bit_copies(func: &mut Function, inst: Inst, op: Opcode, a: Value, b: Value, width: u32) -> Option<Found> {
    let ty = func.dfg.ty(a);
    if !matches!(width, 32 | 64) {
        return None;
    }
    let operands = |value: Value, op: Opcode| match made_by(func, value, op)?[..] {
        [x, by] => Some((x, constant(func, by)?)),
        _ => None,
    };
    let last = u64::from(width - 1);
    match op {
        Opcode::Sub if width == 32 && constant(func, a) == Some(0) => {
            let (x, _) = operands(b, Opcode::And).filter(|(_, kept)| *kept == 1)?;
            let mut builder = before(func, inst);
            let by = builder.bits(ty, last.into());
            let top = builder.binary(Opcode::Shl, x, by);
            Some((NegatedBit, builder.binary(Opcode::Ashr, top, by)))
        }
        Opcode::Mul => {
            let (x, _) = operands(a, Opcode::Lshr).filter(|(_, by)| *by == last)?;
            constant(func, b).filter(|factor| !factor.is_power_of_two())?;
            let mut builder = before(func, inst);
            let by = builder.bits(ty, last.into());
            let copies = builder.binary(Opcode::Ashr, x, by);
            Some((SignTimes, builder.binary(Opcode::And, copies, b)))
        }
        _ => None,
    }
}

/// `(x + c) << n` as `(x << n) + (c << n)`, which is one instruction of the machine.
fn shifted_sum(func: &mut Function, uses: &Uses, inst: Inst, a: Value, b: Value) -> Option<Found> {
    let by = constant(func, b).filter(|by| *by < 32 && func.dfg.insts[inst].op == Opcode::Shl)?;
    let single = uses.is_single(a) && func.dfg.ty(a) == Type::I32;
    let sum = made_by(func, a, Opcode::Add).filter(|_| single)?;
    let &[x, more] = &sum[..] else { return None };
    let more = constant(func, more)? << by & mask(32);
    let mut builder = before(func, inst);
    let shifted = builder.binary(Opcode::Shl, x, b);
    let more = builder.bits(Type::I32, more.into());
    Some((ShiftedSum, builder.binary(Opcode::Add, shifted, more)))
}

/// `(x op c) op d` as `x op (c op d)`.
fn joined_constants(func: &mut Function, inst: Inst, op: Opcode, a: Value, b: Value) -> Option<Found> {
    let second = constant(func, b)?;
    let inner = made_by(func, a, op)?;
    let &[x, c] = &inner[..] else { return None };
    let first = constant(func, c)?;
    let ty = func.dfg.ty(a);
    let width = int_width(ty)?;
    let (rule, joined): (Rule, u64) = match op {
        Opcode::And => (JoinAnd, first & second),
        Opcode::Or => (JoinOr, first | second),
        Opcode::Xor => (JoinXor, first ^ second),
        _ => (JoinAdd, first.wrapping_add(second) & mask(width)),
    };
    let mut builder = before(func, inst);
    let joined = builder.bits(ty, joined.into());
    Some((rule, builder.binary(op, x, joined)))
}

/// A shift of 64 bits whose result fits a word.
fn shift_in_word(func: &mut Function, known: &KnownBits, inst: Inst, a: Value, b: Value) -> Option<Found> {
    let by = constant(func, b).filter(|by| *by < 32 && func.dfg.insts[inst].op == Opcode::Shl)?;
    let most = known.of(func, a).most();
    if func.dfg.ty(a) != Type::I64 || most > u64::from(u32::MAX) >> by {
        return None;
    }
    let mut builder = before(func, inst);
    let word = builder.convert(Opcode::Trunc, a, Type::I32);
    let by = builder.bits(Type::I32, by.into());
    let shifted = builder.binary_flags(Opcode::Shl, Flags::NUW, word, by);
    Some((ShiftInWord, builder.convert(Opcode::Zext, shifted, Type::I64)))
}

/// Two shifts by constants as one, or as a mask.
fn shift_of_shift(func: &mut Function, inst: Inst, op: Opcode, a: Value, b: Value, width: u32) -> Option<Found> {
    let outer = constant(func, b).filter(|n| *n < u64::from(width))? as u32;
    let from = func.dfg.def_inst(a)?;
    let inner_op = func.dfg.insts[from].op;
    let inner = made_by(func, a, inner_op)?;
    let &[x, c] = &inner[..] else { return None };
    if !matches!(inner_op, Opcode::Shl | Opcode::Lshr | Opcode::Ashr) {
        return None;
    }
    let first = constant(func, c).filter(|n| *n < u64::from(width))? as u32;
    let ty = func.dfg.ty(a);
    let mut builder = before(func, inst);
    if inner_op == op {
        let most = if op == Opcode::Ashr { (first + outer).min(width - 1) } else { first + outer };
        // What is shifted out is known to be zero, and replaced before.
        if most >= width {
            return None;
        }
        let by = builder.bits(ty, most.into());
        return Some((ShiftTwice, builder.binary(op, x, by)));
    }
    let (rule, kept): (Rule, u64) = match (inner_op, op) {
        // Up and down: the upper bits go. Down and up: the lower ones.
        (Opcode::Shl, Opcode::Lshr) if first == outer => (ShiftUpDown, mask(width) >> first),
        (Opcode::Lshr | Opcode::Ashr, Opcode::Shl) if first == outer => (ShiftDownUp, mask(width) & !mask(first)),
        _ => return None,
    };
    let kept = builder.bits(ty, kept.into());
    Some((rule, builder.binary(Opcode::And, x, kept)))
}
