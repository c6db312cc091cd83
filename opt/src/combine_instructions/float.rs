//! Floats: choices that are minima, maxima and magnitudes, and divisions that are products.

use ptxc_ir::{ConstData, Extra, Flags, FloatCC, FloatKind, Function, Inst, Opcode, Rounding, Type, Value};
use smallvec::{SmallVec, smallvec};

use crate::fold::float::{arithmetic, from_integer};
use crate::pass::Context;
use crate::rules::Found;
use crate::rules::Rule::*;

use super::{before, made_by, made_exactly_by, with_constant};

/// A cheaper way to the same result.
pub(super) fn rewrite(func: &mut Function, ctx: &Context<'_>, inst: Inst) -> Option<Found> {
    match func.dfg.insts[inst].op {
        Opcode::Select => extreme(func, ctx, inst).or_else(|| magnitude(func, ctx, inst)),
        Opcode::Fdiv => division(func, inst),
        Opcode::Fmin | Opcode::Fmax => saturation(func, ctx, inst),
        Opcode::Bitcast => sign_of_magnitudes(func, inst),
        _ => None,
    }
}

/// Operands of arithmetic whose sign was changed as a bit are magnitudes and negations, which the machine takes as operands. Of NaN
/// these need not keep all bits, but arithmetic does not tell one NaN from another. Tells whether there were any.
pub(super) fn take_signs(func: &mut Function, inst: Inst) -> bool {
    use Opcode::{Fadd, Fcmp, Fdiv, Fma, Fmul, Fsub};
    if !matches!(func.dfg.insts[inst].op, Fadd | Fcmp | Fdiv | Fma | Fmul | Fsub) {
        return false;
    }
    let mut changed = false;
    for index in 0..func.dfg.args(inst).len() {
        let value = func.dfg.resolve(func.dfg.args(inst)[index]);
        let Some((bits, op)) = with_sign_bit(func, value) else { continue };
        let ty = func.dfg.ty(value);
        let known = made_by(func, bits, Opcode::Bitcast).map(|args| args[0]).filter(|x| func.dfg.ty(*x) == ty);
        let mut builder = before(func, inst);
        let x = known.unwrap_or_else(|| builder.convert(Opcode::Bitcast, bits, ty));
        let number = match op {
            Opcode::And => builder.unary(Opcode::Fabs, x),
            Opcode::Xor => builder.unary(Opcode::Fneg, x),
            _ => {
                let magnitude = builder.unary(Opcode::Fabs, x);
                builder.unary(Opcode::Fneg, magnitude)
            }
        };
        func.dfg.args_mut(inst)[index] = number;
        changed = true;
    }
    changed
}

/// The bits of a number whose sign logic clears (`and`), inverts (`xor`) or sets (`or`), and which of them.
fn with_sign_bit(func: &Function, value: Value) -> Option<(Value, Opcode)> {
    let ty = func.dfg.ty(value);
    if !matches!(ty, Type::F32 | Type::F64) {
        return None;
    }
    let bits = *made_by(func, value, Opcode::Bitcast)?.first()?;
    let sign = 1u64 << (ty.bits() - 1);
    let wanted = [(Opcode::And, sign - 1), (Opcode::Xor, sign), (Opcode::Or, sign)];
    wanted.into_iter().find_map(|(op, mask)| {
        let (from, by) = with_constant(func, bits, op)?;
        (by == mask).then_some((from, op))
    })
}

/// The float comparison behind a condition: its instruction, condition and operands.
fn compared(func: &Function, value: Value) -> Option<(Inst, FloatCC, Value, Value)> {
    let args = made_by(func, value, Opcode::Fcmp)?;
    let inst = func.dfg.def_inst(value)?;
    let Extra::FloatCC(cc) = func.dfg.insts[inst].extra else { return None };
    let &[a, b] = &args[..] else { return None };
    (!func.dfg.insts[inst].flags.contains(Flags::FTZ)).then_some((inst, cc, a, b))
}

/// The bits of every lane of a constant; of a scalar, of the one.
fn lanes(func: &Function, value: Value) -> Option<SmallVec<[u128; 4]>> {
    match func.dfg.as_const(value)? {
        ConstData::Bits(bits) => {
            let ty = func.dfg.ty(value);
            (!ty.is_vector() || *bits == 0).then(|| smallvec![*bits; ty.lanes() as usize])
        }
        ConstData::Vector(elements) => elements.iter().map(|lane| func.dfg.as_bits(*lane)).collect(),
        _ => None,
    }
}

/// Bits of the magnitude, and of infinity.
fn format(ty: Type) -> Option<(u128, u128)> {
    let fraction = match ty.float_kind()? {
        FloatKind::F16 => 10,
        FloatKind::Bf16 => 7,
        FloatKind::F32 => 23,
        FloatKind::F64 => 52,
        _ => return None,
    };
    let magnitude = (1u128 << (ty.scalar_bits() - 1)) - 1;
    Some((magnitude, magnitude >> fraction << fraction))
}

/// What a choice by a comparison gives: the left operand when the comparison holds, else the right one.
struct Choice {
    flags: Flags,
    cc: FloatCC,
    left: Value,
    right: Value,
}

/// The greater or lesser of two numbers that a comparison of them chooses. What it gives for NaN and for zeros of different
/// signs decides which minimum it is, if any; flags and constants decide what matters.
fn extreme(func: &mut Function, ctx: &Context<'_>, inst: Inst) -> Option<Found> {
    let &[condition, a, b] = func.dfg.args(inst) else { return None };
    let (compare, cc, left, right) = compared(func, func.dfg.resolve(condition))?;
    let ty = func.dfg.ty(left);
    let cc = match (func.dfg.resolve(a), func.dfg.resolve(b)) {
        same if same == (left, right) => cc,
        other if other == (right, left) => cc.inverse(),
        _ => return None,
    };
    // A comparison of NaN that promised none is poison, and so is the choice.
    let promised = func.dfg.insts[compare].flags.intersect(Flags::NNAN);
    let flags = func.dfg.insts[inst].flags.intersect(Flags::FAST) | promised;
    let choice = Choice { flags, cc, left, right };
    let op = operation(func, &choice)?;
    if !ctx.has_operation(op, flags, ty.scalar()) {
        return None;
    }
    Some((FloatExtreme, before(func, inst).binary_flags(op, flags, left, right)))
}

/// The minimum or maximum that a choice is.
fn operation(func: &Function, choice: &Choice) -> Option<Opcode> {
    use FloatCC::{Oge, Ogt, Ole, Olt, Uge, Ugt, Ule, Ult};
    let (greater, ordered, strict) = match choice.cc {
        Ogt => (true, true, true),
        Oge => (true, true, false),
        Ugt => (true, false, true),
        Uge => (true, false, false),
        Olt => (false, true, true),
        Ole => (false, true, false),
        Ult => (false, false, true),
        Ule => (false, false, false),
        _ => return None,
    };
    let (magnitude, infinity) = format(func.dfg.ty(choice.left))?;
    let constants = (lanes(func, choice.left), lanes(func, choice.right));
    let (known, known_left) = match &constants {
        (None, Some(right)) => (Some(right), false),
        (Some(left), None) => (Some(left), true),
        _ => (None, false),
    };
    if !choice.flags.contains(Flags::NSZ) {
        // Of two zeros the comparison gives the left one unless it is strict; the maximum is the positive one.
        let gives_known = strict != known_left;
        let zero_fits = |bits: &u128| bits & magnitude != 0 || (*bits == 0) == (greater == gives_known);
        if !known?.iter().all(zero_fits) {
            return None;
        }
    }
    let (number, nan_wins) = match greater {
        true => (Opcode::Fmax, Opcode::Fmaximum),
        false => (Opcode::Fmin, Opcode::Fminimum),
    };
    if choice.flags.contains(Flags::NNAN) {
        return Some(number);
    }
    // Only the other operand can be NaN. An ordered comparison then gives the right one.
    if !known?.iter().all(|bits| bits & magnitude <= infinity) {
        return None;
    }
    Some(if ordered != known_left { number } else { nan_wins })
}

/// `x < 0 ? -x : x` where the sign of zero does not matter.
fn magnitude(func: &mut Function, ctx: &Context<'_>, inst: Inst) -> Option<Found> {
    use FloatCC::{Oge, Ogt, Ole, Olt, Uge, Ugt, Ule, Ult};
    let &[condition, a, b] = func.dfg.args(inst) else { return None };
    let flags = func.dfg.insts[inst].flags;
    let (_, cc, x, zero) = compared(func, func.dfg.resolve(condition))?;
    let ty = func.dfg.ty(x);
    let (bits, _) = format(ty)?;
    let is_zero = lanes(func, zero)?.iter().all(|lane| lane & bits == 0);
    if !flags.contains(Flags::NSZ) || !is_zero || !ctx.has_operation(Opcode::Fabs, Flags::EMPTY, ty.scalar()) {
        return None;
    }
    let greater = match cc {
        Ogt | Oge | Ugt | Uge => true,
        Olt | Ole | Ult | Ule => false,
        _ => return None,
    };
    let (a, b) = (func.dfg.resolve(a), func.dfg.resolve(b));
    let negates = |v: Value| made_exactly_by(func, v, Opcode::Fneg).is_some_and(|args| args[..] == [x]);
    let keeps_positive = match (a == x && negates(b), negates(a) && b == x) {
        (true, _) => greater,
        (_, true) => !greater,
        _ => return None,
    };
    let mut builder = before(func, inst);
    let flags = flags.intersect(Flags::FAST);
    let absolute = builder.unary_flags(Opcode::Fabs, flags, x);
    let value = if keeps_positive { absolute } else { builder.unary_flags(Opcode::Fneg, flags, absolute) };
    Some((FloatMagnitude, value))
}

/// A minimum or maximum of two magnitudes that gets a sign bit by `xor`, or by `or` where it is not NaN: the bits of a NaN are
/// open, but not that a bit of them is set.
fn sign_of_magnitudes(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[bits] = func.dfg.args(inst) else { return None };
    let ty = func.dfg.insts[inst].ty;
    format(ty)?;
    let joined = func.dfg.insts[func.dfg.def_inst(bits)?].op;
    let args = made_by(func, bits, joined).filter(|_| matches!(joined, Opcode::Xor | Opcode::Or))?;
    let &[a, b] = &args[..] else { return None };
    [(a, b), (b, a)].into_iter().find_map(|(magnitude, sign)| {
        let extreme = *made_by(func, magnitude, Opcode::Bitcast)?.first()?;
        let data = &func.dfg.insts[func.dfg.def_inst(extreme)?];
        let is_extreme = matches!(data.op, Opcode::Fmin | Opcode::Fmax | Opcode::Fminimum | Opcode::Fmaximum);
        let exact = joined == Opcode::Xor || data.flags.contains(Flags::NNAN);
        if func.dfg.ty(extreme) != ty || !is_extreme || !exact {
            return None;
        }
        let operands = made_by(func, extreme, data.op)?;
        let masked = made_by(func, sign, Opcode::And)?;
        let &[source, mask] = &masked[..] else { return None };
        let width = func.dfg.ty(mask).scalar_bits();
        let lane = 1u128 << (ty.scalar_bits() - 1);
        // The sign bit of every lane of the float, in each lane of the integer.
        let wanted = (0..width / ty.scalar_bits().min(width)).fold(0, |all, at| all | lane << (at * ty.scalar_bits()));
        let is_sign = width >= ty.scalar_bits() && lanes(func, mask)?.iter().all(|bits| *bits == wanted);
        if !is_sign || !operands.iter().all(|value| made_by(func, *value, Opcode::Fabs).is_some()) {
            return None;
        }
        let mut builder = before(func, inst);
        let sign = builder.convert(Opcode::Bitcast, source, ty);
        Some((FloatSignProduct, builder.binary(Opcode::Copysign, extreme, sign)))
    })
}

/// A sum or product that is clamped to [0, 1], where the machine's does that itself. It gives 0 for NaN, as a minimum of a maximum
/// does; in the other order NaN must be excluded.
fn saturation(func: &mut Function, ctx: &Context<'_>, inst: Inst) -> Option<Found> {
    let outer = &func.dfg.insts[inst];
    let (below, inner_op) = match outer.op {
        Opcode::Fmin => (false, Opcode::Fmax),
        _ => (true, Opcode::Fmin),
    };
    let &[clamped, bound] = func.dfg.args(inst) else { return None };
    let (clamped, bound) = (func.dfg.resolve(clamped), func.dfg.resolve(bound));
    let args = made_by(func, clamped, inner_op)?;
    let &[value, other] = &args[..] else { return None };
    let inner = func.dfg.insts[func.dfg.def_inst(clamped)?].flags;
    let (zero, one) = if below { (bound, other) } else { (other, bound) };
    let is_zero = lanes(func, zero)?.iter().all(|bits| *bits == 0);
    if !is_zero
        || !is_one(func, one)
        || (outer.flags | inner).contains(Flags::FTZ)
        || below && !inner.contains(Flags::NNAN)
    {
        return None;
    }
    let computed = func.dfg.def_inst(value)?;
    let data = func.dfg.insts[computed].clone();
    let flags = data.flags | Flags::SAT;
    let saturates = matches!(data.op, Opcode::Fadd | Opcode::Fsub | Opcode::Fmul | Opcode::Fma)
        && !data.flags.contains(Flags::RELU)
        && ctx.has_operation(data.op, flags, data.ty);
    if !saturates {
        return None;
    }
    let operands: SmallVec<[Value; 3]> = func.dfg.args(computed).iter().copied().collect();
    let mut builder = before(func, inst);
    let made = builder.inst(data.op, flags.without(Flags::NNAN), data.ty, &operands, Extra::None);
    Some((FloatSaturate, builder.func.dfg.result(made, 0)))
}

/// A division that is a product: by a power of two, by a constant or anything else where a reciprocal will do, by a root.
fn division(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[x, y] = func.dfg.args(inst) else { return None };
    let flags = func.dfg.insts[inst].flags;
    if let Some((inverse, exact)) = reciprocals(func, y)
        && (exact || flags.contains(Flags::ARCP))
    {
        let rule = if exact { FloatDividePower } else { FloatDivideConstant };
        return Some((rule, before(func, inst).binary_flags(Opcode::Fmul, flags, x, inverse)));
    }
    let nearest = flags.rounding() == Rounding::Nearest;
    let ty = func.dfg.ty(x);
    if !flags.contains(Flags::ARCP) || !nearest || !matches!(ty.scalar(), Type::F32 | Type::F64) || is_one(func, x) {
        return None;
    }
    if !flags.contains(Flags::AFN) || ty.scalar() == Type::F64 {
        // The exact quotient takes the machine twice as long as the exact reciprocal, which equal divisors share.
        let mut builder = before(func, inst);
        let inverse = builder.unary_flags(Opcode::Frcp, flags, y);
        return Some((FloatDivideReciprocal, builder.binary_flags(Opcode::Fmul, flags, x, inverse)));
    }
    let radicand = *made_by(func, y, Opcode::Fsqrt)?.first()?;
    let root = func.dfg.insts[func.dfg.def_inst(y)?].flags;
    if !root.contains(Flags::AFN) || root.contains(Flags::FTZ) != flags.contains(Flags::FTZ) {
        return None;
    }
    let mut builder = before(func, inst);
    let inverse = builder.unary_flags(Opcode::Frsqrt, root.intersect(Flags::FAST | Flags::FTZ), radicand);
    Some((FloatDivideRoot, builder.binary_flags(Opcode::Fmul, flags, x, inverse)))
}

/// The reciprocals of the lanes of a constant, and whether they are exact. Numbers and reciprocals are normal, so that
/// it does not matter what becomes of subnormals.
fn reciprocals(func: &mut Function, value: Value) -> Option<(Value, bool)> {
    let divisors = lanes(func, value)?;
    let ty = func.dfg.ty(value);
    let kind = ty.float_kind()?;
    let (magnitude, infinity) = format(ty)?;
    let fraction = magnitude & !infinity;
    let is_normal = |bits: u128| bits & infinity != 0 && bits & infinity != infinity;
    let mut inverses: SmallVec<[u128; 4]> = SmallVec::new();
    for divisor in &divisors {
        let inverse = arithmetic(Opcode::Frcp, kind, Flags::EMPTY, &[*divisor])?;
        if !is_normal(*divisor) || !is_normal(inverse) {
            return None;
        }
        inverses.push(inverse);
    }
    let exact = divisors.iter().all(|bits| bits & fraction == 0);
    if !ty.is_vector() {
        return Some((func.dfg.bits(ty, *inverses.first()?), exact));
    }
    let elements = inverses.iter().map(|bits| func.dfg.bits(ty.scalar(), *bits)).collect();
    Some((func.dfg.constant(ty, ConstData::Vector(elements)), exact))
}

/// Whether every lane is the constant 1.
fn is_one(func: &Function, value: Value) -> bool {
    let one = func.dfg.ty(value).float_kind().and_then(|kind| from_integer(1, 8, false, kind, Rounding::Nearest));
    lanes(func, value).is_some_and(|lanes| lanes.iter().all(|bits| Some(*bits) == one))
}
