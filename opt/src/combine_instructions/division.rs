//! Divisions and remainders by constants (Granlund and Montgomery, "Division by invariant integers using
//! multiplication", 1994; Warren, "Hacker's Delight", chapter 10).

use ptxc_ir::{Flags, Function, FunctionBuilder, Inst, IntCC, KnownBits, Opcode, Type, Value};

use crate::rules::Rule::*;
use crate::rules::{Found, Rule};

use super::{before, constant, int_width, made_by, mask, signed};

/// A cheaper way to the same result.
pub(super) fn rewrite(func: &mut Function, known: &KnownBits, inst: Inst) -> Option<Found> {
    let op = func.dfg.insts[inst].op;
    let is_signed = match op {
        Opcode::Udiv | Opcode::Urem => false,
        Opcode::Sdiv | Opcode::Srem => true,
        _ => return None,
    };
    let &[a, b] = func.dfg.args(inst) else { return None };
    let ty = func.dfg.ty(a);
    let width = int_width(ty)?;
    let remainder = matches!(op, Opcode::Urem | Opcode::Srem);
    if is_signed && known.is_not_negative(func, a) && known.is_not_negative(func, b) {
        let exact = func.dfg.insts[inst].flags.contains(Flags::EXACT) && !remainder;
        let exact = if exact { Flags::EXACT } else { Flags::EMPTY };
        let op = if remainder { Opcode::Urem } else { Opcode::Udiv };
        return Some((DivideUnsigned, before(func, inst).binary_flags(op, exact, a, b)));
    }
    let most = known.of(func, a).most();
    if !is_signed {
        if let Some(value) = by_power(func, inst, remainder) {
            return Some(value);
        }
        // In 64 bits a division is a call of a routine, in 32 some 20 instructions.
        let narrow = u64::from(u32::MAX);
        if width == 64 && most <= narrow && known.of(func, b).most() <= narrow {
            let mut builder = before(func, inst);
            let (x, y) = (builder.convert(Opcode::Trunc, a, Type::I32), builder.convert(Opcode::Trunc, b, Type::I32));
            let result = builder.binary(op, x, y);
            return Some((DivideNarrow, builder.convert(Opcode::Zext, result, ty)));
        }
    }
    let divisor = constant(func, b).filter(|n| *n != 0)?;
    let magnitude = if is_signed { signed(func, b)?.unsigned_abs() } else { divisor };
    let exact = func.dfg.insts[inst].flags.contains(Flags::EXACT) && !remainder;
    if is_signed && (magnitude == 1 || magnitude > mask(width) >> 1) {
        return by_extreme(func, inst, remainder);
    }
    let power = magnitude.is_power_of_two();
    if exact && !power {
        return Some(by_inverse(func, inst, is_signed, magnitude.trailing_zeros()));
    }
    // Shifts by themselves are as good in a narrow type; the rest of a signed division is not.
    if width < 32 && !(power && (exact || !is_signed)) {
        return Some((DivideInWords, in_words(func, inst, is_signed)));
    }
    if !matches!(width, 32 | 64) && !power {
        return None;
    }
    if is_signed {
        let divisor = signed(func, b)?;
        let mut builder = before(func, inst);
        let (rule, quotient) = signed_quotient(&mut builder, a, divisor, ty, exact);
        return Some((rule, if remainder { rest(&mut builder, a, quotient, b) } else { quotient }));
    }
    let mut builder = before(func, inst);
    if divisor.is_power_of_two() {
        let by = divisor.trailing_zeros();
        let other = builder.bits(ty, u128::from(if remainder { divisor - 1 } else { u64::from(by) }));
        let flags = if exact { Flags::EXACT } else { Flags::EMPTY };
        let op = if remainder { Opcode::And } else { Opcode::Lshr };
        let rule = if remainder { UremPower } else { UdivPower };
        return Some((rule, builder.binary_flags(op, flags, a, other)));
    }
    let (rule, quotient) = unsigned_quotient(&mut builder, a, divisor, ty, most);
    Some((rule, if remainder { rest(&mut builder, a, quotient, b) } else { quotient }))
}

/// A division by `1 << y` is a shift by y.
fn by_power(func: &mut Function, inst: Inst, remainder: bool) -> Option<Found> {
    let &[a, b] = func.dfg.args(inst) else { return None };
    let power = made_by(func, b, Opcode::Shl)?;
    let &[one, by] = &power[..] else { return None };
    if constant(func, one) != Some(1) {
        return None;
    }
    let ty = func.dfg.ty(a);
    let mut builder = before(func, inst);
    if !remainder {
        return Some((DivideShifted, builder.binary(Opcode::Lshr, a, by)));
    }
    let less_one = builder.bits(ty, u128::from(mask(ty.scalar_bits())));
    let kept = builder.binary(Opcode::Add, b, less_one);
    Some((DivideShifted, builder.binary(Opcode::And, a, kept)))
}

/// A signed division by 1 or -1, or by the least number, which only itself reaches.
fn by_extreme(func: &mut Function, inst: Inst, remainder: bool) -> Option<Found> {
    let &[a, b] = func.dfg.args(inst) else { return None };
    let ty = func.dfg.ty(a);
    let divisor = signed(func, b)?;
    let mut builder = before(func, inst);
    let zero = builder.bits(ty, 0);
    match divisor {
        1 if remainder => Some((SdivNegate, zero)),
        1 => Some((SdivNegate, a)),
        // The least number divided by -1 is undefined.
        -1 if remainder => Some((SdivNegate, zero)),
        -1 => Some((SdivNegate, builder.binary(Opcode::Sub, zero, a))),
        _ => {
            let reaches = builder.icmp(IntCC::Eq, a, b);
            let result =
                if remainder { builder.select(reaches, zero, a) } else { builder.convert(Opcode::Zext, reaches, ty) };
            Some((SdivLeast, result))
        }
    }
}

/// A division without remainder: shifted by what the divisor is even, then multiplied by the inverse of the odd part.
fn by_inverse(func: &mut Function, inst: Inst, is_signed: bool, even: u32) -> Found {
    let (a, b) = (func.dfg.args(inst)[0], func.dfg.args(inst)[1]);
    let ty = func.dfg.ty(a);
    let width = ty.scalar_bits();
    let divisor = if is_signed { signed(func, b).unwrap_or(1) as u64 } else { constant(func, b).unwrap_or(1) };
    let odd = if is_signed { ((divisor as i64) >> even) as u64 } else { divisor >> even };
    let mut builder = before(func, inst);
    let mut start = a;
    if even > 0 {
        let by = builder.bits(ty, even.into());
        let op = if is_signed { Opcode::Ashr } else { Opcode::Lshr };
        start = builder.binary_flags(op, Flags::EXACT, a, by);
    }
    let factor = builder.bits(ty, u128::from(inverse(odd) & mask(width)));
    (DivideExact, builder.binary(Opcode::Mul, start, factor))
}

/// The number whose product with an odd one is 1, modulo 2^64.
pub(super) fn inverse(odd: u64) -> u64 {
    // Right in three bits; each step doubles them (Newton).
    (0..5).fold(odd, |x, _| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x))))
}

/// The same operation on 32 bits, in which products have room.
fn in_words(func: &mut Function, inst: Inst, is_signed: bool) -> Value {
    let op = func.dfg.insts[inst].op;
    let operands = func.dfg.args(inst).to_vec();
    let ty = func.dfg.ty(operands[0]);
    let extend = if is_signed { Opcode::Sext } else { Opcode::Zext };
    let mut builder = before(func, inst);
    let wide: Vec<Value> = operands.iter().map(|v| builder.convert(extend, *v, Type::I32)).collect();
    let result = builder.binary(op, wide[0], wide[1]);
    builder.convert(Opcode::Trunc, result, ty)
}

/// a - quotient * b.
fn rest(b: &mut FunctionBuilder<'_>, a: Value, quotient: Value, divisor: Value) -> Value {
    let product = b.binary(Opcode::Mul, quotient, divisor);
    b.binary(Opcode::Sub, a, product)
}

/// A multiplier and a shift: `n / d` is the upper half of `n * multiplier`, shifted right. `None` when the multiplier of
/// all n below `2^bits` does not fit the width.
fn multiplier(divisor: u64, width: u32, bits: u32) -> Option<(u64, u32)> {
    // The least shift for which rounding the reciprocal up is close enough for every n.
    for shift in 0..=divisor.ilog2() {
        let power = 1u128.checked_shl(width + shift)?;
        let reciprocal = power / u128::from(divisor) + 1;
        let error = reciprocal * u128::from(divisor) - power;
        if error <= 1u128 << (width + shift - bits) {
            return u64::try_from(reciprocal).ok().filter(|m| m & !mask(width) == 0).map(|m| (m, shift));
        }
    }
    None
}

fn unsigned_quotient(b: &mut FunctionBuilder<'_>, a: Value, divisor: u64, ty: Type, most: u64) -> Found {
    let width = ty.scalar_bits();
    let shifted = |b: &mut FunctionBuilder<'_>, value: Value, by: u32| {
        if by == 0 {
            return value;
        }
        let by = b.bits(ty, by.into());
        b.binary(Opcode::Lshr, value, by)
    };
    let bits = (64 - most.leading_zeros()).clamp(1, width);
    if let Some((m, shift)) = multiplier(divisor, width, bits) {
        let m = b.bits(ty, m.into());
        let high = b.binary(Opcode::Umulh, a, m);
        return (UdivMultiply, shifted(b, high, shift));
    }
    // An even divisor leaves fewer bits to divide.
    let even = divisor.trailing_zeros();
    if even > 0
        && let Some((m, shift)) = multiplier(divisor >> even, width, width - even)
    {
        let less = shifted(b, a, even);
        let m = b.bits(ty, m.into());
        let high = b.binary(Opcode::Umulh, less, m);
        return (UdivEven, shifted(b, high, shift));
    }
    // The multiplier has one bit more than the width: n * (m - 2^width) and n are added without overflow.
    let shift = divisor.ilog2() + 1;
    let power = 1u128 << shift;
    let m = ((power - u128::from(divisor)) << width) / u128::from(divisor) + 1;
    let m = b.bits(ty, m & u128::from(mask(width)));
    let high = b.binary(Opcode::Umulh, a, m);
    let gap = b.binary(Opcode::Sub, a, high);
    let half = shifted(b, gap, 1);
    let sum = b.binary(Opcode::Add, half, high);
    (UdivLong, shifted(b, sum, shift - 1))
}

fn signed_quotient(b: &mut FunctionBuilder<'_>, a: Value, divisor: i64, ty: Type, exact: bool) -> Found {
    let width = ty.scalar_bits();
    let magnitude = divisor.unsigned_abs();
    let shift_by = |b: &mut FunctionBuilder<'_>, op: Opcode, value: Value, by: u32| {
        if by == 0 {
            return value;
        }
        let by = b.bits(ty, by.into());
        b.binary(op, value, by)
    };
    let (rule, quotient): (Rule, Value) = if magnitude.is_power_of_two() {
        let by = magnitude.trailing_zeros();
        let start = if exact {
            a
        } else {
            // Toward zero: the divisor less one is added to negative numbers.
            let sign = if by == 1 { a } else { shift_by(b, Opcode::Ashr, a, width - 1) };
            let less_one = shift_by(b, Opcode::Lshr, sign, width - by);
            b.binary(Opcode::Add, a, less_one)
        };
        (if exact { SdivExact } else { SdivPower }, shift_by(b, Opcode::Ashr, start, by))
    } else {
        signed_by_multiplication(b, a, magnitude, ty)
    };
    if divisor > 0 {
        return (rule, quotient);
    }
    let zero = b.bits(ty, 0);
    (rule, b.binary(Opcode::Sub, zero, quotient))
}

/// The quotient by a positive number that is no power of two.
fn signed_by_multiplication(b: &mut FunctionBuilder<'_>, a: Value, divisor: u64, ty: Type) -> Found {
    let width = ty.scalar_bits();
    // All magnitudes have width - 1 bits; the product's upper half is that of numbers of 2^(width - 1 + shift).
    let mut shift = 0;
    let (m, shift) = loop {
        let power = 1u128 << (width + shift);
        let reciprocal = power / u128::from(divisor) + 1;
        let error = reciprocal * u128::from(divisor) - power;
        if error <= 1u128 << (shift + 1) || shift == width - 2 {
            break (reciprocal as u64 & mask(width), shift);
        }
        shift += 1;
    };
    let factor = b.bits(ty, m.into());
    let mut high = b.binary(Opcode::Smulh, a, factor);
    let is_negative = m >> (width - 1) & 1 == 1;
    if is_negative {
        // The factor was meant as a positive number, 2^width more.
        high = b.binary(Opcode::Add, high, a);
    }
    let shifted = if shift == 0 {
        high
    } else {
        let by = b.bits(ty, shift.into());
        b.binary(Opcode::Ashr, high, by)
    };
    // Toward zero: one more for negative numbers.
    let by = b.bits(ty, u128::from(width - 1));
    let sign = b.binary(Opcode::Lshr, a, by);
    (if is_negative { SdivMultiplyAdd } else { SdivMultiply }, b.binary(Opcode::Add, shifted, sign))
}
