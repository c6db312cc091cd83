//! Integers of up to 64 bits.

use ptxc_ir::{Scalar, Type};

/// The width of a scalar integer of 8 to 64 bits, or 1.
pub(crate) fn int_width(ty: Type) -> Option<u32> {
    match ty.kind()? {
        Scalar::Int(width) if width <= 64 && !ty.is_vector() => Some(width),
        _ => None,
    }
}

/// All ones in the low `width` bits.
pub(crate) fn mask(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}
