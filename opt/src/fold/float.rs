//! Float operations on constants, through `rustc_apfloat`.
//!
//! Results that are NaN are not folded, nor is anything whose treatment of subnormals or signed zeros the hardware
//! does not pin down. What remains is exact for every rounding mode.

use ptxc_ir::{Flags, FloatCC, FloatKind, Opcode, Rounding};
use rustc_apfloat::ieee::{BFloat, Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

/// Calls a generic function with the arithmetic type of a format; `None` for formats without arithmetic.
macro_rules! with_format {
    ($kind:expr, $function:ident ( $($arg:expr),* )) => {
        match $kind {
            FloatKind::F16 => $function::<Half>($($arg),*),
            FloatKind::Bf16 => $function::<BFloat>($($arg),*),
            FloatKind::F32 => $function::<Single>($($arg),*),
            FloatKind::F64 => $function::<Double>($($arg),*),
            _ => None,
        }
    };
}

fn round_of(rounding: Rounding) -> Round {
    match rounding {
        Rounding::Nearest => Round::NearestTiesToEven,
        Rounding::Zero => Round::TowardZero,
        Rounding::Down => Round::TowardNegative,
        Rounding::Up => Round::TowardPositive,
    }
}

/// Evaluates an arithmetic operation of one to three operands of format `kind`.
pub fn arithmetic(op: Opcode, kind: FloatKind, flags: Flags, args: &[u128]) -> Option<u128> {
    // Which formats `ftz` means something for: f32 everywhere, f16 in the instructions that have the modifier.
    if flags.contains(Flags::FTZ) && !matches!(kind, FloatKind::F32 | FloatKind::F16) {
        return None;
    }
    with_format!(kind, evaluate(op, kind, flags, args))
}

fn evaluate<F: Float>(op: Opcode, kind: FloatKind, flags: Flags, args: &[u128]) -> Option<u128> {
    let ftz = flags.contains(Flags::FTZ);
    let read = |index: usize| args.get(index).map(|bits| flush(F::from_bits(*bits), ftz));
    let a = read(0)?;
    let round = round_of(flags.rounding());
    let result = match op {
        Opcode::Fadd => a.add_r(read(1)?, round).value,
        Opcode::Fsub => a.sub_r(read(1)?, round).value,
        Opcode::Fmul => a.mul_r(read(1)?, round).value,
        Opcode::Fdiv => a.div_r(read(1)?, round).value,
        Opcode::Fma => a.mul_add_r(read(1)?, read(2)?, round).value,
        Opcode::Frcp => F::from_u128(1).value.div_r(a, round).value,
        Opcode::Fmin | Opcode::Fmax => choose_number(op, a, read(1)?),
        Opcode::Fminimum | Opcode::Fmaximum => choose_ordered(op, a, read(1)?),
        Opcode::Copysign => a.copy_sign(F::from_bits(*args.get(1)?)),
        Opcode::Fneg => -a,
        Opcode::Fabs => a.abs(),
        Opcode::Ffloor => a.round_to_integral(Round::TowardNegative).value,
        Opcode::Fceil => a.round_to_integral(Round::TowardPositive).value,
        Opcode::Ftrunc => a.round_to_integral(Round::TowardZero).value,
        Opcode::Frint => a.round_to_integral(Round::NearestTiesToEven).value,
        Opcode::Fround => a.round_to_integral(Round::NearestTiesToAway).value,
        Opcode::Fsqrt => F::from_bits(square_root(kind, flags, a.to_bits())?),
        _ => return None,
    };
    finish(result, flags)
}

/// Applies `ftz`, `sat` and `relu` to a result; `None` where their outcome is not certain.
fn finish<F: Float>(result: F, flags: Flags) -> Option<u128> {
    if result.is_nan() {
        return None;
    }
    let ftz = flags.contains(Flags::FTZ);
    // Whether a result that rounds up to the least normal number counts as subnormal differs between machines.
    if ftz && result.is_smallest_normalized() {
        return None;
    }
    let result = flush(result, ftz);
    let clamps = flags.contains(Flags::SAT) || flags.contains(Flags::RELU);
    if !clamps {
        return Some(result.to_bits());
    }
    if result.is_neg_zero() {
        return None;
    }
    let zero = F::ZERO;
    let one = F::from_u128(1).value;
    let low = if result < zero { zero } else { result };
    Some(if flags.contains(Flags::SAT) && low > one { one } else { low }.to_bits())
}

/// Subnormals become zero of the same sign under `ftz`.
fn flush<F: Float>(value: F, ftz: bool) -> F {
    if ftz && value.is_denormal() { F::ZERO.copy_sign(value) } else { value }
}

/// Minimum or maximum where a NaN operand gives the other one and -0 is below +0.
fn choose_number<F: Float>(op: Opcode, a: F, b: F) -> F {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ => choose_ordered(op, a, b),
    }
}

/// Minimum or maximum where NaN wins and -0 is below +0.
fn choose_ordered<F: Float>(op: Opcode, a: F, b: F) -> F {
    let low = matches!(op, Opcode::Fmin | Opcode::Fminimum);
    if low { a.minimum(b) } else { a.maximum(b) }
}

/// Square root rounded to nearest. For the 16-bit formats the root in f32 is rounded once more, which is exact because
/// f32 has more than twice their precision plus two bits.
fn square_root(kind: FloatKind, flags: Flags, bits: u128) -> Option<u128> {
    if flags.rounding() != Rounding::Nearest {
        return None;
    }
    match kind {
        FloatKind::F32 => Some(f32::from_bits(bits as u32).sqrt().to_bits().into()),
        FloatKind::F64 => Some(f64::from_bits(bits as u64).sqrt().to_bits().into()),
        _ => {
            let wide = convert(bits, kind, FloatKind::F32, Rounding::Nearest)?;
            let root = f32::from_bits(wide as u32).sqrt().to_bits();
            convert(root.into(), FloatKind::F32, kind, Rounding::Nearest)
        }
    }
}

/// Converts between formats with arithmetic; `None` for NaN and for other formats.
pub fn convert(bits: u128, from: FloatKind, to: FloatKind, rounding: Rounding) -> Option<u128> {
    fn to_format<F>(bits: u128, to: FloatKind, round: Round) -> Option<u128>
    where
        F: Float + FloatConvert<Half> + FloatConvert<BFloat> + FloatConvert<Single> + FloatConvert<Double>,
    {
        let value = F::from_bits(bits);
        if value.is_nan() {
            return None;
        }
        let mut inexact = false;
        Some(match to {
            FloatKind::F16 => FloatConvert::<Half>::convert_r(value, round, &mut inexact).value.to_bits(),
            FloatKind::Bf16 => FloatConvert::<BFloat>::convert_r(value, round, &mut inexact).value.to_bits(),
            FloatKind::F32 => FloatConvert::<Single>::convert_r(value, round, &mut inexact).value.to_bits(),
            FloatKind::F64 => FloatConvert::<Double>::convert_r(value, round, &mut inexact).value.to_bits(),
            _ => return None,
        })
    }
    let round = round_of(rounding);
    with_format!(from, to_format(bits, to, round))
}

/// Converts to an integer of `width` bits. Out of range and NaN: clamped and 0 when `saturate`, else not folded.
pub fn to_integer(bits: u128, kind: FloatKind, flags: Flags, width: u32, signed: bool, saturate: bool) -> Option<u128> {
    fn integer<F: Float>(bits: u128, ftz: bool, round: Round, width: u32, signed: bool) -> Option<Option<u128>> {
        let value = flush(F::from_bits(bits), ftz);
        let mut exact = false;
        let out = if signed {
            value.to_i128_r(width as usize, round, &mut exact).map(|v| v as u128)
        } else {
            value.to_u128_r(width as usize, round, &mut exact)
        };
        let invalid = out.status.contains(rustc_apfloat::Status::INVALID_OP);
        Some((!invalid).then_some(out.value & super::mask(width)))
    }
    if flags.contains(Flags::FTZ) && kind != FloatKind::F32 {
        return None;
    }
    // The library does not take a sign bit alone.
    if signed && width < 2 {
        return None;
    }
    let round = round_of(flags.explicit_rounding().unwrap_or(Rounding::Zero));
    let ftz = flags.contains(Flags::FTZ);
    match with_format!(kind, integer(bits, ftz, round, width, signed))? {
        Some(value) => Some(value),
        None if saturate => saturated(bits, kind, width, signed),
        None => None,
    }
}

/// What a saturating conversion gives for NaN (0), or for a number beyond the range.
fn saturated(bits: u128, kind: FloatKind, width: u32, signed: bool) -> Option<u128> {
    fn class<F: Float>(bits: u128) -> Option<(bool, bool)> {
        let value = F::from_bits(bits);
        Some((value.is_nan(), value.is_negative()))
    }
    let all = super::mask(width);
    Some(match (with_format!(kind, class(bits))?, signed) {
        ((true, _), _) | ((_, true), false) => 0,
        ((_, true), true) => 1u128 << (width - 1),
        ((_, false), true) => all >> 1,
        ((_, false), false) => all,
    })
}

/// Converts an integer of `width` bits to a float.
pub fn from_integer(bits: u128, width: u32, signed: bool, to: FloatKind, rounding: Rounding) -> Option<u128> {
    fn float<F: Float>(bits: u128, width: u32, signed: bool, round: Round) -> Option<u128> {
        let value = if signed {
            F::from_i128_r(super::sign_extend(bits, width), round).value
        } else {
            F::from_u128_r(bits, round).value
        };
        // Beyond the range the hardware's answer is its own.
        value.is_finite().then(|| value.to_bits())
    }
    let round = round_of(rounding);
    with_format!(to, float(bits, width, signed, round))
}

/// Evaluates a comparison.
pub fn compare(cc: FloatCC, kind: FloatKind, flags: Flags, a: u128, b: u128) -> Option<bool> {
    fn order<F: Float>(a: u128, b: u128, ftz: bool) -> Option<Option<std::cmp::Ordering>> {
        Some(flush(F::from_bits(a), ftz).partial_cmp(&flush(F::from_bits(b), ftz)))
    }
    use std::cmp::Ordering::{Equal, Greater, Less};
    let ftz = flags.contains(Flags::FTZ);
    if ftz && !matches!(kind, FloatKind::F32 | FloatKind::F16) {
        return None;
    }
    let order = with_format!(kind, order(a, b, ftz))?;
    // One bit per outcome, as the conditions are encoded: equal, greater, less, unordered.
    let outcome = match order {
        Some(Equal) => 1,
        Some(Greater) => 2,
        Some(Less) => 4,
        None => 8,
    };
    let accepted = match cc {
        FloatCC::False => 0,
        FloatCC::Oeq => 1,
        FloatCC::Ogt => 2,
        FloatCC::Oge => 3,
        FloatCC::Olt => 4,
        FloatCC::Ole => 5,
        FloatCC::One => 6,
        FloatCC::Ord => 7,
        FloatCC::Uno => 8,
        FloatCC::Ueq => 9,
        FloatCC::Ugt => 10,
        FloatCC::Uge => 11,
        FloatCC::Ult => 12,
        FloatCC::Ule => 13,
        FloatCC::Une => 14,
        FloatCC::True => 15,
    };
    Some(accepted & outcome != 0)
}

/// The bit of `fclass`'s mask that a number belongs to.
pub fn class_bit(kind: FloatKind, bits: u128) -> Option<u64> {
    fn bit<F: Float>(bits: u128) -> Option<u64> {
        let value = F::from_bits(bits);
        let (negative, positive) = if value.is_nan() {
            let position = if value.is_signaling() { 0 } else { 1 };
            return Some(1 << position);
        } else if value.is_infinite() {
            (2, 9)
        } else if value.is_zero() {
            (5, 6)
        } else if value.is_denormal() {
            (4, 7)
        } else {
            (3, 8)
        };
        Some(1 << if value.is_negative() { negative } else { positive })
    }
    with_format!(kind, bit(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32_of(op: Opcode, flags: Flags, args: &[f32]) -> Option<f32> {
        let bits: Vec<u128> = args.iter().map(|x| x.to_bits().into()).collect();
        arithmetic(op, FloatKind::F32, flags, &bits).map(|bits| f32::from_bits(bits as u32))
    }

    #[test]
    fn rounding_modes_differ_in_the_last_bit() {
        let third = |flags| f32_of(Opcode::Fdiv, flags, &[1.0, 3.0]).unwrap().to_bits();
        assert_eq!(third(Flags::EMPTY), 0x3eaa_aaab);
        assert_eq!(third(Flags::RZ), 0x3eaa_aaaa);
        assert_eq!(third(Flags::RM), 0x3eaa_aaaa);
        assert_eq!(third(Flags::RP), 0x3eaa_aaab);
    }

    #[test]
    fn flushing_keeps_the_sign() {
        let tiny = f32::from_bits(0x8000_0001);
        let product = f32_of(Opcode::Fmul, Flags::FTZ, &[1.0, tiny]).unwrap();
        assert_eq!(product.to_bits(), 0x8000_0000);
        let kept = f32_of(Opcode::Fmul, Flags::EMPTY, &[1.0, tiny]).unwrap();
        assert_eq!(kept.to_bits(), 0x8000_0001);
    }

    #[test]
    fn results_that_are_nan_are_not_folded() {
        assert_eq!(f32_of(Opcode::Fsub, Flags::EMPTY, &[f32::INFINITY, f32::INFINITY]), None);
        assert_eq!(f32_of(Opcode::Fsqrt, Flags::EMPTY, &[-1.0]), None);
        assert_eq!(f32_of(Opcode::Fmin, Flags::EMPTY, &[f32::NAN, 2.0]), Some(2.0));
        assert_eq!(f32_of(Opcode::Fminimum, Flags::EMPTY, &[f32::NAN, 2.0]), None);
    }

    #[test]
    fn minimum_orders_zeros() {
        let zero = f32_of(Opcode::Fmin, Flags::EMPTY, &[0.0, -0.0]).unwrap();
        assert!(zero.is_sign_negative());
        let zero = f32_of(Opcode::Fmax, Flags::EMPTY, &[-0.0, 0.0]).unwrap();
        assert!(zero.is_sign_positive());
    }

    #[test]
    fn saturation_clamps() {
        assert_eq!(f32_of(Opcode::Fadd, Flags::SAT, &[1.0, 1.0]), Some(1.0));
        assert_eq!(f32_of(Opcode::Fadd, Flags::SAT, &[-1.0, 0.5]), Some(0.0));
        assert_eq!(f32_of(Opcode::Fadd, Flags::SAT, &[0.25, 0.5]), Some(0.75));
    }

    #[test]
    fn integers_saturate_only_when_asked() {
        let convert = |x: f32, signed, saturate| {
            to_integer(x.to_bits().into(), FloatKind::F32, Flags::EMPTY, 32, signed, saturate)
        };
        assert_eq!(convert(-1.9, true, false), Some(0xffff_ffff));
        assert_eq!(convert(1e30, true, false), None);
        assert_eq!(convert(1e30, true, true), Some(0x7fff_ffff));
        assert_eq!(convert(-1e30, true, true), Some(0x8000_0000));
        assert_eq!(convert(-5.0, false, true), Some(0));
        assert_eq!(convert(f32::INFINITY, false, true), Some(0xffff_ffff));
        assert_eq!(convert(f32::NAN, true, true), Some(0));
        assert_eq!(convert(f32::NAN, true, false), None);
        assert_eq!(to_integer(0, FloatKind::F32, Flags::EMPTY, 1, true, true), None);
    }

    #[test]
    fn every_half_survives_the_way_through_single() {
        for bits in 0..=0xffffu128 {
            let Some(wide) = convert(bits, FloatKind::F16, FloatKind::F32, Rounding::Nearest) else { continue };
            assert_eq!(convert(wide, FloatKind::F32, FloatKind::F16, Rounding::Zero), Some(bits));
        }
    }

    #[test]
    fn every_half_square_root_is_the_nearest_one() {
        for bits in (0..0x7c00u128).step_by(7) {
            let root = arithmetic(Opcode::Fsqrt, FloatKind::F16, Flags::EMPTY, &[bits]).unwrap();
            let as_f64 = |bits| {
                let wide = convert(bits, FloatKind::F16, FloatKind::F64, Rounding::Nearest).unwrap();
                f64::from_bits(wide as u64)
            };
            let exact = as_f64(bits).sqrt();
            let distance = (as_f64(root) - exact).abs();
            for other in [root.saturating_sub(1), root + 1] {
                assert!(distance <= (as_f64(other) - exact).abs(), "sqrt of {bits:#x} is {root:#x}");
            }
        }
    }

    #[test]
    fn compare_codes_agree_with_the_host() {
        let samples = [0.0f32, -0.0, 1.0, -1.0, f32::INFINITY, f32::NAN];
        for (a, b) in samples.iter().flat_map(|a| samples.iter().map(move |b| (*a, *b))) {
            let eval = |cc| compare(cc, FloatKind::F32, Flags::EMPTY, a.to_bits().into(), b.to_bits().into());
            let unordered = a.is_nan() || b.is_nan();
            assert_eq!(eval(FloatCC::Olt), Some(a < b));
            assert_eq!(eval(FloatCC::Ule), Some(unordered || a <= b));
            assert_eq!(eval(FloatCC::One), Some(a.partial_cmp(&b).is_some_and(std::cmp::Ordering::is_ne)));
            assert_eq!(eval(FloatCC::Une), Some(a != b));
            assert_eq!(eval(FloatCC::Oeq), Some(a == b));
            assert_eq!(eval(FloatCC::Uno), Some(unordered));
        }
    }

    #[test]
    fn classes_cover_all_halves() {
        for bits in 0..=0xffffu128 {
            let bit = class_bit(FloatKind::F16, bits).unwrap();
            assert_eq!(bit.count_ones(), 1);
            assert!(bit < 1 << 10);
        }
        assert_eq!(class_bit(FloatKind::F32, 0x8000_0001), Some(1 << 4));
        assert_eq!(class_bit(FloatKind::F32, 0x7fa0_0000), Some(1));
    }
}
