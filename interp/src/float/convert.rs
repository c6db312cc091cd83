//! Conversions between formats, and from and to integers.

use ptxc_ir::FloatKind;

use super::soft::{self, Number};
use super::{Mode, Round, finish, flush, is_nan, nan, sign_bit};

/// Converts between formats. `sat` of the mode clamps to [0, 1] except for narrow formats, where it is `finite`. Only
/// f32 is flushed by `ftz`, as operand and as result, and not before it becomes f16 (so the hardware has it).
///
/// `relu` makes zero of what is negative, also where a narrow format's range would be left.
///
/// NaN becomes the target's NaN, or its largest number where the target has none. Only to and from f64, and from bf16
/// to f32, the sign and the upper bits of a NaN are kept.
pub fn convert(from: FloatKind, to: FloatKind, bits: u64, mode: Mode) -> u64 {
    let flushes = mode.ftz && from == FloatKind::F32 && to != FloatKind::F16;
    let bits = if flushes { flush(from, bits) } else { bits };
    if to == FloatKind::Tf32 && mode.round == Round::NearestAway {
        return to_tf32_away(bits, mode);
    }
    let narrow = to.is_narrow();
    let number = soft::unpack(from, bits);
    let is_nan = matches!(number, Number::Nan);
    let packed = if is_nan && !mode.sat && !mode.relu && !mode.finite {
        convert_nan(from, to, bits, mode.ftz)
    } else {
        soft::pack(to, &number, mode.round, mode.finite || (mode.sat && narrow))
    };
    let ftz = mode.ftz && to == FloatKind::F32;
    if narrow && mode.relu && is_nan {
        return nan(to);
    }
    if narrow && mode.relu && bits & sign_bit(from) != 0 {
        return 0;
    }
    finish(to, packed, Mode { ftz, sat: mode.sat && !narrow, ..mode })
}

/// What becomes of a NaN.
fn convert_nan(from: FloatKind, to: FloatKind, bits: u64, ftz: bool) -> u64 {
    use FloatKind::{Bf16, F16, F32, F64};
    // A flushing conversion from f32 begins with an operation that has f32's NaN.
    let bits = if ftz && from == F32 { nan(F32) } else { bits };
    match (from, to) {
        (F32, F32) | (F64, F64) => bits,
        (Bf16, F32) if !ftz => bits << 16,
        (F16 | Bf16 | F32, F64) | (F64, F16 | Bf16 | F32) => {
            // The sign, a quiet NaN, and as many of the bits below as both have.
            let (source, target) = (soft::format(from).precision, soft::format(to).precision);
            let payload = bits & ((1 << (source - 2)) - 1);
            let payload = if target > source { payload << (target - source) } else { payload >> (source - target) };
            let sign = if bits & sign_bit(from) != 0 { sign_bit(to) } else { 0 };
            // All ones of the exponent and the highest bit of the fraction.
            let quiet = (sign_bit(to) - 1) & !((1 << (target - 2)) - 1);
            sign | quiet | payload
        }
        _ => nan(to),
    }
}

/// `cvt.rna.tf32.f32`, which works on the bits, also of a NaN, and on what `satfinite` makes of it.
fn to_tf32_away(bits: u64, mode: Mode) -> u64 {
    let number = soft::unpack(FloatKind::F32, bits);
    let low = 0x1fff;
    let rounded = match number {
        Number::Nan => bits & !low,
        _ => soft::pack(FloatKind::Tf32, &number, mode.round, false),
    };
    let beyond = rounded & 0x7f80_0000 == 0x7f80_0000;
    if mode.finite && beyond { rounded - (low + 1) } else { rounded }
}

/// An integer of `width` bits (at most 128) as a number of a format.
pub fn from_int(kind: FloatKind, value: u128, width: u32, signed: bool, mode: Mode) -> u64 {
    let unused = 128u32.saturating_sub(width);
    let value = if unused >= 128 { 0 } else { value << unused };
    let (sign, sig) = if signed {
        let value = (value as i128) >> unused.min(127);
        (value < 0, value.unsigned_abs())
    } else {
        (false, value >> unused.min(127))
    };
    let number = if sig == 0 { Number::Zero { sign: false } } else { Number::Finite { sign, exp: 0, sig } };
    finish(kind, soft::pack(kind, &number, mode.round, mode.finite), mode)
}

/// Where a number lies that does not become an integer.
enum Outside {
    Nan,
    Below,
    Above,
}

fn integer(kind: FloatKind, bits: u64, width: u32, signed: bool, round: Round, ftz: bool) -> Result<u128, Outside> {
    let bits = if ftz { flush(kind, bits) } else { bits };
    let side = |sign: bool| if sign { Outside::Below } else { Outside::Above };
    let (sign, exp, sig) = match soft::integral(&soft::unpack(kind, bits), round) {
        Number::Nan => return Err(Outside::Nan),
        Number::Infinite { sign } => return Err(side(sign)),
        Number::Zero { .. } => return Ok(0),
        Number::Finite { sign, exp, sig } => (sign, exp, sig),
    };
    if exp > 0 && exp as u32 > sig.leading_zeros() {
        return Err(side(sign));
    }
    let magnitude = if exp > 0 { sig << exp } else { sig };
    let limit = mask(width) >> u32::from(signed);
    let most = match (signed, sign) {
        (true, true) => limit + 1,
        (false, true) => 0,
        _ => limit,
    };
    if magnitude > most {
        return Err(side(sign));
    }
    Ok(if sign { magnitude.wrapping_neg() & mask(width) } else { magnitude })
}

fn mask(width: u32) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

/// A number as an integer of `width` bits; `None` when it is NaN or out of range.
pub fn to_int(kind: FloatKind, bits: u64, width: u32, signed: bool, round: Round, ftz: bool) -> Option<u128> {
    integer(kind, bits, width, signed, round, ftz).ok()
}

/// A number as an integer of `width` bits; out of range gives the nearest bound, NaN gives 0.
pub fn to_int_saturating(kind: FloatKind, bits: u64, width: u32, signed: bool, round: Round, ftz: bool) -> u128 {
    let limit = mask(width) >> u32::from(signed);
    match integer(kind, bits, width, signed, round, ftz) {
        Ok(value) => value,
        Err(Outside::Nan) => 0,
        Err(Outside::Above) => limit,
        Err(Outside::Below) => {
            if signed {
                limit + 1
            } else {
                0
            }
        }
    }
}

/// A number as an integer of `width` bits as `cvt` gives it (PTX ISA 9.7.10.24): out of range gives the nearest bound, NaN
/// gives 0, but the highest bit alone where the source is f64 or the result has 64 bits.
pub fn to_int_converted(kind: FloatKind, bits: u64, width: u32, signed: bool, round: Round, ftz: bool) -> u128 {
    if is_nan(kind, bits) && (kind == FloatKind::F64 || width == 64) {
        return 1 << (width - 1);
    }
    to_int_saturating(kind, bits, width, signed, round, ftz)
}
