//! Evaluation of operations on constants, scalar by scalar.
//!
//! The functions here decide what a result *is*, not where it goes. They answer `None` when the result is not certain
//! to the last bit: NaN results (hardware gives the canonical NaN, a host may not), approximations, undefined
//! operations.

pub mod float;
pub mod integer;

/// A scalar constant as evaluation sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scalar {
    /// Bits, zero-extended from the type's width.
    Bits(u128),
    /// Poison.
    Poison,
}

/// All ones in the low `width` bits; `width` is 1 to 128.
pub fn mask(width: u32) -> u128 {
    u128::MAX >> (128 - width.clamp(1, 128))
}

/// The low `width` bits as a signed number.
pub fn sign_extend(bits: u128, width: u32) -> i128 {
    let shift = 128 - width.clamp(1, 128);
    ((bits << shift) as i128) >> shift
}
