//! Exact floating-point arithmetic on bit patterns, as PTX defines it (PTX ISA 9.7.3 to 9.7.5, 9.7.9.21).
//!
//! Every operation takes and gives the bits of a [`FloatKind`] in the low bits of a `u64`. Results are rounded once from
//! the exact value. Two paths give the same bits: the processor's own arithmetic for f32 and f64 to nearest, and
//! [`soft`] for all else.
//!
//! NaN results are those of an H200: `0x7fffffff` f32, `0x7fffe000` tf32, `0x7fff` f16 and bf16, `0x7f` e4m3 and e5m2,
//! `0xff` ue8m0. For f64 an operation passes on a NaN operand, made quiet: of `a / b` rather `a`, of `a * b + c` rather
//! `b`, then `c`, of others rather `b`; one it makes itself is `0xfff8000000000000`. `ftz` flushes what would be
//! subnormal if it were rounded with exponents that have no end.

mod approximate;
mod arithmetic;
mod convert;
pub mod soft;
mod stochastic;
#[cfg(test)]
mod tests;

pub use approximate::{Function, approximate};
pub use arithmetic::{
    abs, add, atomic_add, compare, copysign, div, fma, frem, max, maximum, min, minimum, mul, neg, rcp,
    round_to_integral, sqrt, sub,
};
pub use convert::{convert, from_int, to_int, to_int_converted, to_int_saturating};
use ptxc_ir::FloatKind;
use soft::Number;
pub use stochastic::{Random, convert_stochastic, random_bits};

/// Rounding modes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Round {
    /// To nearest, ties to even (`rn`).
    #[default]
    Nearest,
    /// Toward zero (`rz`).
    Zero,
    /// Toward minus infinity (`rm`).
    Down,
    /// Toward plus infinity (`rp`).
    Up,
    /// To nearest, ties away from zero (`rna`).
    NearestAway,
}

/// How a result is rounded and what is done to it afterwards.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Mode {
    /// Rounding.
    pub round: Round,
    /// Subnormal operands and results become zero of the same sign.
    pub ftz: bool,
    /// The result is clamped to [0, 1]; NaN becomes +0.
    pub sat: bool,
    /// Negative results and -0 become +0.
    pub relu: bool,
    /// Results too large become the largest finite number (`satfinite`).
    pub finite: bool,
}

impl Mode {
    /// Only a rounding mode.
    pub fn rounded(round: Round) -> Mode {
        Mode { round, ..Mode::default() }
    }
}

/// The NaN that operations of this format make; formats without NaN give their largest number.
pub fn nan(kind: FloatKind) -> u64 {
    match kind {
        FloatKind::F16 | FloatKind::Bf16 => 0x7fff,
        FloatKind::F32 => 0x7fff_ffff,
        FloatKind::Tf32 => 0x7fff_e000,
        FloatKind::F64 => 0xfff8_0000_0000_0000,
        FloatKind::E4m3 | FloatKind::E5m2 => 0x7f,
        FloatKind::Ue8m0 => 0xff,
        FloatKind::E2m3 | FloatKind::E3m2 => 0x1f,
        FloatKind::E2m1 => 0x7,
    }
}

/// One, in this format.
pub fn one(kind: FloatKind) -> u64 {
    soft::pack(kind, &Number::Finite { sign: false, exp: 0, sig: 1 }, Round::Nearest, false)
}

/// True for a NaN.
pub fn is_nan(kind: FloatKind, bits: u64) -> bool {
    match kind {
        FloatKind::F32 => bits & 0x7fff_ffff > 0x7f80_0000,
        FloatKind::F64 => bits & (u64::MAX >> 1) > 0x7ff0_0000_0000_0000,
        _ => matches!(soft::unpack(kind, bits), Number::Nan),
    }
}

/// Mask of the sign bit; 0 for ue8m0.
pub fn sign_bit(kind: FloatKind) -> u64 {
    match kind {
        FloatKind::F16 | FloatKind::Bf16 => 1 << 15,
        FloatKind::F32 | FloatKind::Tf32 => 1 << 31,
        FloatKind::F64 => 1 << 63,
        FloatKind::E4m3 | FloatKind::E5m2 => 1 << 7,
        FloatKind::E2m3 | FloatKind::E3m2 => 1 << 5,
        FloatKind::E2m1 => 1 << 3,
        FloatKind::Ue8m0 => 0,
    }
}

/// True for a number below the smallest normal one and not zero.
pub fn is_subnormal(kind: FloatKind, bits: u64) -> bool {
    match kind {
        FloatKind::F32 => bits & 0x7f80_0000 == 0 && bits & 0x7f_ffff != 0,
        FloatKind::F64 => bits & 0x7ff0_0000_0000_0000 == 0 && bits << 12 != 0,
        FloatKind::Ue8m0 => false,
        _ => {
            let f = soft::format(kind);
            let magnitude = (bits & (sign_bit(kind).wrapping_sub(1))) >> f.unused;
            magnitude != 0 && magnitude >> (f.precision - 1) == 0
        }
    }
}

/// A subnormal number becomes zero of its sign.
pub fn flush(kind: FloatKind, bits: u64) -> u64 {
    if is_subnormal(kind, bits) { bits & sign_bit(kind) } else { bits }
}

/// The bit number that `fclass` tests for this number: 0 signalling NaN, 1 quiet NaN, 2 -inf, 3 -normal, 4 -subnormal,
/// 5 -0, 6 +0, 7 +subnormal, 8 +normal, 9 +inf.
pub fn class(kind: FloatKind, bits: u64) -> u32 {
    let f = soft::format(kind);
    let by_sign = |sign: bool, negative: u32, positive: u32| if sign { negative } else { positive };
    match soft::unpack(kind, bits) {
        Number::Nan => u32::from(kind == FloatKind::Ue8m0 || (bits >> f.unused) >> (f.precision - 2) & 1 != 0),
        Number::Infinite { sign } => by_sign(sign, 2, 9),
        Number::Zero { sign } => by_sign(sign, 5, 6),
        Number::Finite { sign, .. } if is_subnormal(kind, bits) => by_sign(sign, 4, 7),
        Number::Finite { sign, .. } => by_sign(sign, 3, 8),
    }
}

/// What a mode does to a rounded result.
pub(crate) fn finish(kind: FloatKind, bits: u64, mode: Mode) -> u64 {
    let bits = if mode.ftz { flush(kind, bits) } else { bits };
    if !mode.sat && !mode.relu {
        return bits;
    }
    if is_nan(kind, bits) {
        return if mode.sat { 0 } else { nan(kind) };
    }
    if bits & sign_bit(kind) != 0 {
        return 0;
    }
    // Positive numbers are ordered as their bits are.
    if mode.sat { bits.min(one(kind)) } else { bits }
}
