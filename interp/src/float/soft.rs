//! Numbers as sign, significand and exponent, exact, and the one place where they are rounded.

use ptxc_ir::FloatKind;

use super::{Round, nan, sign_bit};

/// What the highest exponent of a format means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Specials {
    /// Infinities and NaN.
    Ieee,
    /// Numbers, but all ones are NaN; no infinity.
    NanOnly,
    /// Numbers.
    Numbers,
}

/// A binary format.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Bits of the significand, the hidden one included.
    pub precision: u32,
    /// Bits of the exponent.
    pub exponent_bits: u32,
    /// Exponent bias.
    pub bias: i32,
    /// Meaning of the highest exponent.
    pub specials: Specials,
    /// Low bits of the storage that hold nothing (tf32).
    pub unused: u32,
}

/// The layout of a format. `ue8m0` has no significand; what is given for it is only its exponent's.
pub fn format(kind: FloatKind) -> Format {
    let (precision, exponent_bits, bias, specials) = match kind {
        FloatKind::F16 => (11, 5, 15, Specials::Ieee),
        FloatKind::Bf16 => (8, 8, 127, Specials::Ieee),
        FloatKind::Tf32 => (11, 8, 127, Specials::Ieee),
        FloatKind::F32 => (24, 8, 127, Specials::Ieee),
        FloatKind::F64 => (53, 11, 1023, Specials::Ieee),
        FloatKind::E4m3 => (4, 4, 7, Specials::NanOnly),
        FloatKind::E5m2 => (3, 5, 15, Specials::Ieee),
        FloatKind::E2m3 => (4, 2, 1, Specials::Numbers),
        FloatKind::E3m2 => (3, 3, 3, Specials::Numbers),
        FloatKind::E2m1 => (2, 2, 1, Specials::Numbers),
        FloatKind::Ue8m0 => (2, 8, 127, Specials::NanOnly),
    };
    let unused = if kind == FloatKind::Tf32 { 13 } else { 0 };
    Format { precision, exponent_bits, bias, specials, unused }
}

/// A number of any format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Number {
    /// Not a number.
    Nan,
    /// Infinity.
    Infinite {
        /// Negative.
        sign: bool,
    },
    /// Zero.
    Zero {
        /// Negative.
        sign: bool,
    },
    /// `sig` times two to the power `exp`. `sig` is not zero. Its lowest bit may stand for anything below it when the
    /// number has more than 64 significant bits: rounding is still exact.
    Finite {
        /// Negative.
        sign: bool,
        /// Exponent of the lowest bit.
        exp: i32,
        /// Magnitude.
        sig: u128,
    },
}

/// Reads a bit pattern.
pub fn unpack(kind: FloatKind, bits: u64) -> Number {
    if kind == FloatKind::Ue8m0 {
        return match bits & 0xff {
            0xff => Number::Nan,
            e => Number::Finite { sign: false, exp: e as i32 - 127, sig: 1 },
        };
    }
    let f = format(kind);
    let sign = bits & sign_bit(kind) != 0;
    let bits = (bits & (sign_bit(kind) - 1)) >> f.unused;
    let mantissa = bits & ((1 << (f.precision - 1)) - 1);
    let exponent = (bits >> (f.precision - 1)) as i32;
    let top = (1 << f.exponent_bits) - 1;
    let lowest = 1 - f.bias - (f.precision as i32 - 1);
    if exponent == top {
        match f.specials {
            Specials::Ieee if mantissa == 0 => return Number::Infinite { sign },
            Specials::Ieee => return Number::Nan,
            Specials::NanOnly if mantissa == (1 << (f.precision - 1)) - 1 => return Number::Nan,
            _ => {}
        }
    }
    match (exponent, mantissa) {
        (0, 0) => Number::Zero { sign },
        (0, _) => Number::Finite { sign, exp: lowest, sig: mantissa.into() },
        _ => Number::Finite { sign, exp: lowest + exponent - 1, sig: u128::from(mantissa | 1 << (f.precision - 1)) },
    }
}

/// The largest finite magnitude of a format, as bits.
fn largest(kind: FloatKind) -> u64 {
    let f = format(kind);
    let all = (sign_bit(kind).wrapping_sub(1) & if kind == FloatKind::Ue8m0 { 0xff } else { u64::MAX }) >> f.unused;
    let bits = match f.specials {
        Specials::Ieee => all - (1 << (f.precision - 1)),
        Specials::NanOnly => all - 1,
        Specials::Numbers => all,
    };
    bits << f.unused
}

/// True of a number that is not zero and below the normal numbers of a format once it is rounded to its precision, as if
/// its exponents had no end.
pub fn is_tiny(kind: FloatKind, number: &Number, round: Round) -> bool {
    let Number::Finite { sign, exp, sig } = *number else { return false };
    let f = format(kind);
    let highest = exp + 127 - sig.leading_zeros() as i32;
    let below = 1 - f.bias - highest;
    if below != 1 {
        return below > 1;
    }
    let shift = highest - (f.precision as i32 - 1) - exp;
    shift <= 0 || shift_round(sign, sig, shift as u32, round) >> f.precision == 0
}

/// Divides by two to the power `shift` and rounds to an integer.
pub fn shift_round(sign: bool, sig: u128, shift: u32, round: Round) -> u128 {
    if shift == 0 {
        return sig;
    }
    let (whole, rest, half) = match shift {
        1..=127 => (sig >> shift, sig & ((1 << shift) - 1), 1u128 << (shift - 1)),
        128 => (0, sig, 1 << 127),
        _ => (0, u128::from(sig != 0), 2),
    };
    let up = match round {
        Round::Nearest => rest > half || (rest == half && whole & 1 != 0),
        Round::NearestAway => rest >= half,
        Round::Zero => false,
        Round::Down => sign && rest != 0,
        Round::Up => !sign && rest != 0,
    };
    whole + u128::from(up)
}

/// Rounds to a format. `finite`: what is too large, and infinity, becomes the largest finite number.
pub fn pack(kind: FloatKind, number: &Number, round: Round, finite: bool) -> u64 {
    if kind == FloatKind::Ue8m0 {
        return pack_scale(number, round, finite);
    }
    let signed = |sign: bool, bits: u64| if sign { bits | sign_bit(kind) } else { bits };
    let f = format(kind);
    match *number {
        Number::Nan => nan(kind),
        Number::Zero { sign } => signed(sign, 0),
        Number::Infinite { sign } => too_large(kind, sign, Round::Nearest, finite),
        Number::Finite { sign, exp, sig } => {
            let precision = f.precision as i32;
            let highest = exp + 127 - sig.leading_zeros() as i32;
            // Exponent of the result's lowest bit.
            let mut lowest = highest.max(1 - f.bias) - (precision - 1);
            let shift = lowest - exp;
            let mut whole =
                if shift <= 0 { sig << shift.unsigned_abs() } else { shift_round(sign, sig, shift as u32, round) };
            if whole >> f.precision != 0 {
                whole >>= 1;
                lowest += 1;
            }
            let hidden = 1u64 << (f.precision - 1);
            let whole = whole as u64;
            let magnitude = if whole < hidden {
                whole
            } else {
                let exponent = (lowest + precision - 1 + f.bias).max(0) as u64;
                if exponent >> f.exponent_bits != 0 {
                    return too_large(kind, sign, round, finite);
                }
                (exponent << (f.precision - 1)) | (whole - hidden)
            };
            let magnitude = magnitude << f.unused;
            if magnitude > largest(kind) { too_large(kind, sign, round, finite) } else { signed(sign, magnitude) }
        }
    }
}

fn too_large(kind: FloatKind, sign: bool, round: Round, finite: bool) -> u64 {
    let f = format(kind);
    let inward = match round {
        Round::Zero => true,
        Round::Down => !sign,
        Round::Up => sign,
        Round::Nearest | Round::NearestAway => false,
    };
    let magnitude = match f.specials {
        _ if finite || inward => largest(kind),
        Specials::Ieee => largest(kind) + (1 << f.unused),
        Specials::NanOnly => return nan(kind),
        Specials::Numbers => largest(kind),
    };
    if sign { magnitude | sign_bit(kind) } else { magnitude }
}

/// `ue8m0` holds powers of two: the magnitude counts, rounded up or toward zero (other modes round toward zero).
fn pack_scale(number: &Number, round: Round, finite: bool) -> u64 {
    let above = |finite: bool| if finite { 0xfe } else { 0xff };
    match *number {
        Number::Nan => 0xff,
        Number::Zero { .. } => 0,
        Number::Infinite { .. } => above(finite),
        Number::Finite { exp, sig, .. } => {
            let up = round == Round::Up && !sig.is_power_of_two();
            let exponent = exp + 127 - sig.leading_zeros() as i32 + i32::from(up);
            match exponent + 127 {
                ..=0 => 0,
                e @ 1..=254 => e as u64,
                _ => above(finite),
            }
        }
    }
}

/// Shifts right; what is lost leaves a trace in the lowest bit.
fn shift_jam(sig: u128, shift: u32) -> u128 {
    match shift {
        0 => sig,
        1..=127 => (sig >> shift) | u128::from(sig & ((1 << shift) - 1) != 0),
        _ => u128::from(sig != 0),
    }
}

/// The sum. `round` decides the sign of an exact zero only.
pub fn add(a: &Number, b: &Number, round: Round) -> Number {
    match (*a, *b) {
        (Number::Nan, _) | (_, Number::Nan) => Number::Nan,
        (Number::Infinite { sign: x }, Number::Infinite { sign: y }) if x != y => Number::Nan,
        (Number::Infinite { .. }, _) => *a,
        (_, Number::Infinite { .. }) => *b,
        (Number::Zero { sign: x }, Number::Zero { sign: y }) => {
            Number::Zero { sign: if x == y { x } else { round == Round::Down } }
        }
        (Number::Zero { .. }, _) => *b,
        (_, Number::Zero { .. }) => *a,
        (Number::Finite { sign: sa, exp: ea, sig: ma }, Number::Finite { sign: sb, exp: eb, sig: mb }) => {
            // Both with the highest bit at 125: the sum has room, and a difference that loses more than one bit is exact.
            let (la, lb) = (ma.leading_zeros() as i32 - 2, mb.leading_zeros() as i32 - 2);
            let (ma, ea, mb, eb) = (shift_to(ma, la), ea - la, shift_to(mb, lb), eb - lb);
            let exp = ea.max(eb);
            let ma = shift_jam(ma, (exp - ea) as u32);
            let mb = shift_jam(mb, (exp - eb) as u32);
            if sa == sb {
                return Number::Finite { sign: sa, exp, sig: ma + mb };
            }
            match ma.cmp(&mb) {
                std::cmp::Ordering::Equal => Number::Zero { sign: round == Round::Down },
                std::cmp::Ordering::Greater => Number::Finite { sign: sa, exp, sig: ma - mb },
                std::cmp::Ordering::Less => Number::Finite { sign: sb, exp, sig: mb - ma },
            }
        }
    }
}

fn shift_to(sig: u128, left: i32) -> u128 {
    if left >= 0 { sig << left } else { shift_jam(sig, left.unsigned_abs()) }
}

/// The product of two numbers of at most 64 significant bits.
pub fn mul(a: &Number, b: &Number) -> Number {
    match (*a, *b) {
        (Number::Nan, _) | (_, Number::Nan) => Number::Nan,
        (Number::Infinite { .. }, Number::Zero { .. }) | (Number::Zero { .. }, Number::Infinite { .. }) => Number::Nan,
        (Number::Infinite { sign: x }, Number::Infinite { sign: y } | Number::Finite { sign: y, .. })
        | (Number::Finite { sign: x, .. }, Number::Infinite { sign: y }) => Number::Infinite { sign: x != y },
        (Number::Zero { sign: x }, Number::Zero { sign: y } | Number::Finite { sign: y, .. })
        | (Number::Finite { sign: x, .. }, Number::Zero { sign: y }) => Number::Zero { sign: x != y },
        (Number::Finite { sign: sa, exp: ea, sig: ma }, Number::Finite { sign: sb, exp: eb, sig: mb }) => {
            Number::Finite { sign: sa != sb, exp: ea + eb, sig: ma * mb }
        }
    }
}

/// The quotient of two numbers of at most 64 significant bits.
pub fn div(a: &Number, b: &Number) -> Number {
    match (*a, *b) {
        (Number::Nan, _) | (_, Number::Nan) => Number::Nan,
        (Number::Infinite { .. }, Number::Infinite { .. }) | (Number::Zero { .. }, Number::Zero { .. }) => Number::Nan,
        (Number::Infinite { sign: x }, Number::Zero { sign: y } | Number::Finite { sign: y, .. })
        | (Number::Finite { sign: x, .. }, Number::Zero { sign: y }) => Number::Infinite { sign: x != y },
        (Number::Zero { sign: x }, Number::Infinite { sign: y } | Number::Finite { sign: y, .. })
        | (Number::Finite { sign: x, .. }, Number::Infinite { sign: y }) => Number::Zero { sign: x != y },
        (Number::Finite { sign: sa, exp: ea, sig: ma }, Number::Finite { sign: sb, exp: eb, sig: mb }) => {
            let left = ma.leading_zeros();
            let ma = ma << left;
            let sig = (ma / mb) | u128::from(ma % mb != 0);
            Number::Finite { sign: sa != sb, exp: ea - left as i32 - eb, sig }
        }
    }
}

/// The square root.
pub fn sqrt(a: &Number) -> Number {
    match *a {
        Number::Finite { sign: false, exp, sig } => {
            let mut left = sig.leading_zeros() as i32;
            if (exp - left) % 2 != 0 {
                left -= 1;
            }
            let sig = shift_to(sig, left);
            let root = sig.isqrt();
            // 64 bits of root and one for what is lost.
            let sig = (root << 1) | u128::from(root * root != sig);
            Number::Finite { sign: false, exp: (exp - left) / 2 - 1, sig }
        }
        Number::Finite { sign: true, .. } | Number::Infinite { sign: true } => Number::Nan,
        other => other,
    }
}

/// The remainder of truncating division, with the sign of `a`; both of at most 64 significant bits.
pub fn rem(a: &Number, b: &Number) -> Number {
    match (*a, *b) {
        (Number::Nan, _) | (_, Number::Nan) | (Number::Infinite { .. }, _) | (_, Number::Zero { .. }) => Number::Nan,
        (Number::Zero { .. }, _) | (_, Number::Infinite { .. }) => *a,
        (Number::Finite { sign, exp: ea, sig: ma }, Number::Finite { exp: eb, sig: mb, .. }) => {
            if ea < eb {
                // In units of a's lowest bit; b is beyond a when that does not fit.
                let up = (eb - ea) as u32;
                if up >= mb.leading_zeros() {
                    return *a;
                }
                let sig = ma % (mb << up);
                return if sig == 0 { Number::Zero { sign } } else { Number::Finite { sign, exp: ea, sig } };
            }
            let mut left = (ea - eb) as u32;
            let mut sig = ma % mb;
            while left > 0 && sig != 0 {
                let step = left.min(60);
                sig = (sig << step) % mb;
                left -= step;
            }
            if sig == 0 { Number::Zero { sign } } else { Number::Finite { sign, exp: eb, sig } }
        }
    }
}

/// Rounds to an integer of the same sign.
pub fn integral(a: &Number, round: Round) -> Number {
    match *a {
        Number::Finite { sign, exp, sig } if exp < 0 => match shift_round(sign, sig, exp.unsigned_abs(), round) {
            0 => Number::Zero { sign },
            sig => Number::Finite { sign, exp: 0, sig },
        },
        other => other,
    }
}

/// Order of two numbers, zeros being equal; `None` with a NaN.
pub fn compare(a: &Number, b: &Number) -> Option<std::cmp::Ordering> {
    let sign = |n: &Number| match *n {
        Number::Infinite { sign } | Number::Finite { sign, .. } => {
            if sign {
                -1
            } else {
                1
            }
        }
        _ => 0,
    };
    if matches!(a, Number::Nan) || matches!(b, Number::Nan) {
        return None;
    }
    let by_sign = sign(a).cmp(&sign(b));
    if by_sign.is_ne() || sign(a) == 0 {
        return Some(by_sign);
    }
    // (highest exponent, significand with its highest bit at the top)
    let magnitude = |n: &Number| match *n {
        Number::Finite { exp, sig, .. } => (exp - sig.leading_zeros() as i32, sig << sig.leading_zeros()),
        _ => (i32::MAX, 0),
    };
    let order = magnitude(a).cmp(&magnitude(b));
    Some(if sign(a) < 0 { order.reverse() } else { order })
}
