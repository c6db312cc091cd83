//! Arithmetic within one format.

use std::cmp::Ordering;

use ptxc_ir::FloatKind;

use super::soft::{self, Number};
use super::{Mode, Round, finish, flush, is_nan, nan, one, sign_bit};

/// The NaN that an operation with these operands gives, those first whose NaN wins.
fn nan_of(kind: FloatKind, operands: &[u64]) -> u64 {
    if kind != FloatKind::F64 {
        return nan(kind);
    }
    operands.iter().find(|x| is_nan(kind, **x)).map_or(nan(kind), |x| quiet64(*x))
}

/// Makes an f64 NaN quiet.
fn quiet64(bits: u64) -> u64 {
    bits | 1 << 51
}

fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

/// Rounds an exact result, with the NaN that follows from the operands, those first whose NaN wins.
fn result(kind: FloatKind, exact: &Number, operands: &[u64], mode: Mode) -> u64 {
    let bits = match exact {
        Number::Nan => nan_of(kind, operands),
        // A subnormal result is flushed even where rounding it as such would give the first normal number.
        Number::Finite { sign, .. } if mode.ftz && soft::is_tiny(kind, exact, mode.round) => {
            if *sign {
                sign_bit(kind)
            } else {
                0
            }
        }
        exact => soft::pack(kind, exact, mode.round, mode.finite),
    };
    finish(kind, bits, mode)
}

/// True of a result in single precision that [`soft::is_tiny`] may be true of.
fn was_tiny(x: f32, mode: Mode) -> bool {
    mode.ftz && x.abs() == f32::MIN_POSITIVE
}

fn native32(x: f32, mode: Mode) -> u64 {
    let bits = if x.is_nan() { nan(FloatKind::F32) } else { x.to_bits().into() };
    finish(FloatKind::F32, bits, mode)
}

fn native64(x: f64, operands: &[u64], mode: Mode) -> u64 {
    let bits = if x.is_nan() { nan_of(FloatKind::F64, operands) } else { x.to_bits() };
    finish(FloatKind::F64, bits, mode)
}

/// Runs the processor's operation where it is the same, and the exact one elsewhere.
macro_rules! binary {
    ($(#[$doc:meta])* $name:ident, $native:tt, $exact:expr, $order:expr) => {
        $(#[$doc])*
        #[inline]
        pub fn $name(kind: FloatKind, a: u64, b: u64, mode: Mode) -> u64 {
            let (a, b) = if mode.ftz { (flush(kind, a), flush(kind, b)) } else { (a, b) };
            let order: fn(u64, u64) -> [u64; 2] = $order;
            if mode.round == Round::Nearest && !mode.finite {
                match kind {
                    FloatKind::F32 => {
                        let near = f32_of(a) $native f32_of(b);
                        if !was_tiny(near, mode) {
                            return native32(near, mode);
                        }
                    }
                    FloatKind::F64 => {
                        return native64(f64::from_bits(a) $native f64::from_bits(b), &order(a, b), mode);
                    }
                    _ => {}
                }
            }
            let exact = $exact(&soft::unpack(kind, a), &soft::unpack(kind, b), mode.round);
            result(kind, &exact, &order(a, b), mode)
        }
    };
}

binary!(
    /// `a + b`.
    add, +, soft::add, |a, b| [b, a]
);
binary!(
    /// `a * b`.
    mul, *, |a: &Number, b: &Number, _| soft::mul(a, b), |a, b| [b, a]
);
binary!(
    /// `a / b`.
    div, /, |a: &Number, b: &Number, _| soft::div(a, b), |a, b| [a, b]
);

/// `a - b`.
#[inline]
pub fn sub(kind: FloatKind, a: u64, b: u64, mode: Mode) -> u64 {
    // The sign of a NaN operand is not turned.
    add(kind, a, if is_nan(kind, b) { b } else { b ^ sign_bit(kind) }, mode)
}

/// `a * b + c`, rounded once.
#[inline]
pub fn fma(kind: FloatKind, a: u64, b: u64, c: u64, mode: Mode) -> u64 {
    let [a, b, c] = if mode.ftz { [a, b, c].map(|x| flush(kind, x)) } else { [a, b, c] };
    if kind == FloatKind::F32 && mode.round == Round::Nearest && !mode.finite {
        // Exact when the product, which fits 48 bits, and the sum fit 53; else the long way.
        let product = f64::from(f32_of(a)) * f64::from(f32_of(b));
        let addend = f64::from(f32_of(c));
        let sum = product + addend;
        if sum - product == addend && sum - addend == product && !was_tiny(sum as f32, mode) {
            return native32(sum as f32, mode);
        }
    }
    let product = soft::mul(&soft::unpack(kind, a), &soft::unpack(kind, b));
    let exact = soft::add(&product, &soft::unpack(kind, c), mode.round);
    result(kind, &exact, &[b, c, a], mode)
}

/// `old + new` as atomic additions make it (PTX ISA 9.7.15.5). In global memory, where the memory adds by itself, f32 is
/// flushed and a NaN of f64 stays as it is.
pub fn atomic_add(kind: FloatKind, old: u64, new: u64, in_global: bool) -> u64 {
    if in_global
        && kind == FloatKind::F64
        && let Some(nan) = [new, old].into_iter().find(|x| is_nan(kind, *x))
    {
        return nan;
    }
    // Elsewhere the old NaN is passed on.
    add(kind, new, old, Mode { ftz: in_global && kind == FloatKind::F32, ..Mode::default() })
}

/// The square root, correctly rounded.
pub fn sqrt(kind: FloatKind, a: u64, mode: Mode) -> u64 {
    let a = if mode.ftz { flush(kind, a) } else { a };
    result(kind, &soft::sqrt(&soft::unpack(kind, a)), &[a], mode)
}

/// `1 / a`, correctly rounded.
pub fn rcp(kind: FloatKind, a: u64, mode: Mode) -> u64 {
    div(kind, one(kind), a, mode)
}

/// The remainder of truncating division, exact, with the sign of `a`.
pub fn frem(kind: FloatKind, a: u64, b: u64) -> u64 {
    let exact = soft::rem(&soft::unpack(kind, a), &soft::unpack(kind, b));
    result(kind, &exact, &[a, b], Mode::default())
}

/// Rounds to an integer in the same format; the sign stays, also of a zero result.
pub fn round_to_integral(kind: FloatKind, a: u64, mode: Mode) -> u64 {
    let a = if mode.ftz { flush(kind, a) } else { a };
    result(kind, &soft::integral(&soft::unpack(kind, a), mode.round), &[a], mode)
}

/// Turns the sign of a number; the sign of an f64 NaN stays.
#[inline]
pub fn neg(kind: FloatKind, a: u64, ftz: bool) -> u64 {
    if is_nan(kind, a) {
        return nan_of(kind, &[a]);
    }
    (if ftz { flush(kind, a) } else { a }) ^ sign_bit(kind)
}

/// Clears the sign of a number; the sign of an f64 NaN stays.
#[inline]
pub fn abs(kind: FloatKind, a: u64, ftz: bool) -> u64 {
    if is_nan(kind, a) {
        return nan_of(kind, &[a]);
    }
    (if ftz { flush(kind, a) } else { a }) & !sign_bit(kind)
}

/// The magnitude of `a` with the sign of `b`.
#[inline]
pub fn copysign(kind: FloatKind, a: u64, b: u64) -> u64 {
    (a & !sign_bit(kind)) | (b & sign_bit(kind))
}

/// Order of two numbers, zeros being equal; `None` with a NaN.
#[inline]
pub fn compare(kind: FloatKind, a: u64, b: u64, ftz: bool) -> Option<Ordering> {
    let (a, b) = if ftz { (flush(kind, a), flush(kind, b)) } else { (a, b) };
    match kind {
        FloatKind::F32 => f32_of(a).partial_cmp(&f32_of(b)),
        FloatKind::F64 => f64::from_bits(a).partial_cmp(&f64::from_bits(b)),
        _ => soft::compare(&soft::unpack(kind, a), &soft::unpack(kind, b)),
    }
}

fn pick(kind: FloatKind, a: u64, b: u64, ftz: bool, want: Ordering, nan_wins: bool) -> u64 {
    let (a, b) = if ftz { (flush(kind, a), flush(kind, b)) } else { (a, b) };
    match (is_nan(kind, a), is_nan(kind, b)) {
        (true, true) if !nan_wins => return nan_of(kind, &[b, a]),
        (true, true) => return nan(kind),
        (true, false) | (false, true) if nan_wins => return nan(kind),
        (true, false) => return b,
        (false, true) => return a,
        (false, false) => {}
    }
    // -0 is below +0.
    let order = compare(kind, a, b, false).unwrap_or(Ordering::Equal);
    let order = order.then((b & sign_bit(kind)).cmp(&(a & sign_bit(kind))));
    if order == want { a } else { b }
}

/// The smaller; a NaN operand gives the other (IEEE 754-2019 minimumNumber).
pub fn min(kind: FloatKind, a: u64, b: u64, ftz: bool) -> u64 {
    pick(kind, a, b, ftz, Ordering::Less, false)
}

/// The larger; a NaN operand gives the other (maximumNumber).
pub fn max(kind: FloatKind, a: u64, b: u64, ftz: bool) -> u64 {
    pick(kind, a, b, ftz, Ordering::Greater, false)
}

/// The smaller; NaN with a NaN operand.
pub fn minimum(kind: FloatKind, a: u64, b: u64, ftz: bool) -> u64 {
    pick(kind, a, b, ftz, Ordering::Less, true)
}

/// The larger; NaN with a NaN operand.
pub fn maximum(kind: FloatKind, a: u64, b: u64, ftz: bool) -> u64 {
    pick(kind, a, b, ftz, Ordering::Greater, true)
}
