//! Float operations of the IR on bit patterns, by `rustc_apfloat`. `None` is poison.

use ptxc_ir::{Flags, FloatCC, FloatKind, Opcode, Rounding};
use rustc_apfloat::ieee::{BFloat, Double, Float8E4M3FN, Float8E5M2, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

fn round(flags: Flags) -> Round {
    match flags.rounding() {
        Rounding::Nearest => Round::NearestTiesToEven,
        Rounding::Zero => Round::TowardZero,
        Rounding::Down => Round::TowardNegative,
        Rounding::Up => Round::TowardPositive,
    }
}

/// Runs `$body` with `$F` the type of a format; narrow formats without a type here panic.
macro_rules! with_format {
    ($kind:expr, $F:ident => $body:expr) => {
        match $kind {
            FloatKind::F16 => {
                type $F = Half;
                $body
            }
            FloatKind::Bf16 => {
                type $F = BFloat;
                $body
            }
            FloatKind::F32 => {
                type $F = Single;
                $body
            }
            FloatKind::F64 => {
                type $F = Double;
                $body
            }
            FloatKind::E4m3 => {
                type $F = Float8E4M3FN;
                $body
            }
            FloatKind::E5m2 => {
                type $F = Float8E5M2;
                $body
            }
            other => panic!("no arithmetic on {}", other.name()),
        }
    };
}

fn root<F: Float + FloatConvert<Double>>(a: F) -> F
where
    Double: FloatConvert<F>,
{
    let mut lossy = false;
    let wide: Double = a.convert(&mut lossy).value;
    let result = f64::from_bits(wide.to_bits() as u64).sqrt();
    Double::from_bits(result.to_bits().into()).convert(&mut lossy).value
}

fn one<F: Float>() -> F {
    F::from_u128(1).value
}

pub fn unary(op: Opcode, flags: Flags, kind: FloatKind, a: u128) -> u128 {
    with_format!(kind, F => {
        let a = F::from_bits(a);
        let r = match op {
            Opcode::Fneg => -a,
            Opcode::Fabs => a.abs(),
            Opcode::Ffloor => a.round_to_integral(Round::TowardNegative).value,
            Opcode::Fceil => a.round_to_integral(Round::TowardPositive).value,
            Opcode::Ftrunc => a.round_to_integral(Round::TowardZero).value,
            Opcode::Frint => a.round_to_integral(Round::NearestTiesToEven).value,
            Opcode::Fround => a.round_to_integral(Round::NearestTiesToAway).value,
            Opcode::Frcp => one::<F>().div_r(a, round(flags)).value,
            Opcode::Fsqrt => root(a),
            _ => panic!("no float {}", op.text()),
        };
        r.to_bits()
    })
}

pub fn binary(op: Opcode, flags: Flags, kind: FloatKind, a: u128, b: u128) -> u128 {
    with_format!(kind, F => {
        let (a, b) = (F::from_bits(a), F::from_bits(b));
        let r = match op {
            Opcode::Fadd => a.add_r(b, round(flags)).value,
            Opcode::Fsub => a.sub_r(b, round(flags)).value,
            Opcode::Fmul => a.mul_r(b, round(flags)).value,
            Opcode::Fdiv => a.div_r(b, round(flags)).value,
            Opcode::Frem => a.c_fmod(b).value,
            Opcode::Fmin | Opcode::Fmax if a.is_nan() => b,
            Opcode::Fmin | Opcode::Fmax if b.is_nan() => a,
            Opcode::Fmin | Opcode::Fminimum => a.minimum(b),
            Opcode::Fmax | Opcode::Fmaximum => a.maximum(b),
            Opcode::Copysign => a.copy_sign(b),
            _ => panic!("no float {}", op.text()),
        };
        let sign_only = matches!(op, Opcode::Copysign);
        if r.is_nan() && !sign_only && !flags.contains(Flags::SAT) { F::NAN.to_bits() } else { saturate(flags, r).to_bits() }
    })
}

fn saturate<F: Float>(flags: Flags, r: F) -> F {
    if flags.contains(Flags::RELU) && (r.is_zero() || (r.is_negative() && !r.is_nan())) {
        return F::ZERO;
    }
    if !flags.contains(Flags::SAT) {
        return r;
    }
    if r.is_nan() || r.is_zero() || r.is_negative() {
        F::ZERO
    } else if r > one::<F>() {
        one::<F>()
    } else {
        r
    }
}

pub fn fma(flags: Flags, kind: FloatKind, a: u128, b: u128, c: u128) -> u128 {
    with_format!(kind, F => {
        let r = F::from_bits(a).mul_add_r(F::from_bits(b), F::from_bits(c), round(flags)).value;
        if r.is_nan() && !flags.contains(Flags::SAT) { F::NAN.to_bits() } else { saturate(flags, r).to_bits() }
    })
}

pub fn compare(cc: FloatCC, kind: FloatKind, a: u128, b: u128) -> bool {
    use std::cmp::Ordering;
    let order = with_format!(kind, F => F::from_bits(a).partial_cmp(&F::from_bits(b)));
    let Some(order) = order else {
        return matches!(
            cc,
            FloatCC::Uno
                | FloatCC::Ueq
                | FloatCC::Une
                | FloatCC::Ult
                | FloatCC::Ule
                | FloatCC::Ugt
                | FloatCC::Uge
                | FloatCC::True
        );
    };
    match cc {
        FloatCC::False | FloatCC::Uno => false,
        FloatCC::True | FloatCC::Ord => true,
        FloatCC::Oeq | FloatCC::Ueq => order == Ordering::Equal,
        FloatCC::One | FloatCC::Une => order != Ordering::Equal,
        FloatCC::Olt | FloatCC::Ult => order == Ordering::Less,
        FloatCC::Ole | FloatCC::Ule => order != Ordering::Greater,
        FloatCC::Ogt | FloatCC::Ugt => order == Ordering::Greater,
        FloatCC::Oge | FloatCC::Uge => order != Ordering::Less,
    }
}

pub fn is_nan(kind: FloatKind, a: u128) -> bool {
    with_format!(kind, F => F::from_bits(a).is_nan())
}

/// The bit of `fclass` that a number has.
pub fn class(kind: FloatKind, a: u128) -> u32 {
    with_format!(kind, F => {
        let f = F::from_bits(a);
        let by_sign = |negative: u32, positive: u32| if f.is_negative() { negative } else { positive };
        if f.is_nan() {
            u32::from(!f.is_signaling())
        } else if f.is_infinite() {
            by_sign(2, 9)
        } else if f.is_zero() {
            by_sign(5, 6)
        } else if f.is_denormal() {
            by_sign(4, 7)
        } else {
            by_sign(3, 8)
        }
    })
}

pub fn convert(flags: Flags, from: FloatKind, to: FloatKind, a: u128) -> u128 {
    with_format!(from, F => {
        let f = F::from_bits(a);
        macro_rules! into {
            ($T:ty) => {{
                let mut lossy = false;
                let r: $T = f.convert_r(round(flags), &mut lossy).value;
                r.to_bits()
            }};
        }
        match to {
            FloatKind::F16 => into!(Half),
            FloatKind::Bf16 => into!(BFloat),
            FloatKind::F32 => into!(Single),
            FloatKind::F64 => into!(Double),
            FloatKind::E4m3 => into!(Float8E4M3FN),
            FloatKind::E5m2 => into!(Float8E5M2),
            other => panic!("no conversion to {}", other.name()),
        }
    })
}

/// A float as an integer; poison out of range unless saturating.
pub fn to_int(flags: Flags, kind: FloatKind, a: u128, width: u32, is_signed: bool, saturating: bool) -> Option<u128> {
    let mode = match flags.explicit_rounding() {
        None => Round::TowardZero,
        Some(_) => round(flags),
    };
    // Every format here is a subset of f64.
    let wide = f64::from_bits(convert(Flags::EMPTY, kind, FloatKind::F64, a) as u64);
    if wide.is_nan() {
        return saturating.then_some(0);
    }
    let whole = match mode {
        Round::NearestTiesToEven => wide.round_ties_even(),
        Round::TowardNegative => wide.floor(),
        Round::TowardPositive => wide.ceil(),
        _ => wide.trunc(),
    };
    let mask = super::integers::mask(width);
    let top = ((width - u32::from(is_signed)) as f64).exp2();
    if whole >= top {
        return saturating.then_some(mask >> u32::from(is_signed));
    }
    if whole < if is_signed { -top } else { 0.0 } {
        return saturating.then_some(if is_signed { 1 << (width - 1) } else { 0 });
    }
    let value = if whole < 0.0 { whole as i128 as u128 } else { whole as u128 };
    Some(value & mask)
}

pub fn from_int(flags: Flags, kind: FloatKind, a: u128, width: u32, is_signed: bool) -> u128 {
    with_format!(kind, F => {
        let r = if is_signed {
            F::from_i128_r(super::integers::signed(a, width), round(flags)).value
        } else {
            F::from_u128_r(a, round(flags)).value
        };
        r.to_bits()
    })
}
