//! Conversions between formats, and from and to integers.

use ptxc_ir::FloatKind;

use super::soft::{self, Number};
use super::{Mode, Round, finish, flush, nan};

/// Converts between formats. `sat` of the mode clamps to [0, 1] except for narrow formats, where it is `finite`. NaN
/// becomes the target's NaN, or its largest number where the target has none; f64 keeps the payload of an f32 NaN.
pub fn convert(from: FloatKind, to: FloatKind, bits: u64, mode: Mode) -> u64 {
    let bits = if mode.ftz { flush(from, bits) } else { bits };
    let narrow = to.is_narrow();
    let number = soft::unpack(from, bits);
    let packed = match number {
        Number::Nan if from == FloatKind::F32 && to == FloatKind::F64 => {
            let payload = (bits & 0x7f_ffff) << 29;
            (bits & 1 << 31) << 32 | 0x7ff8_0000_0000_0000 | payload
        }
        Number::Nan if from == to => bits,
        _ => soft::pack(to, &number, mode.round, mode.finite || (mode.sat && narrow)),
    };
    // Only f32 results are flushed: the other formats have no `ftz` of their own.
    let ftz = mode.ftz && to == FloatKind::F32;
    let is_nan = matches!(number, Number::Nan);
    if narrow && mode.relu && is_nan {
        return nan(to);
    }
    finish(to, packed, Mode { ftz, sat: mode.sat && !narrow, ..mode })
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
