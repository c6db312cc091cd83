//! Integer operations on numbers of any width up to 128 bits, zero-extended.

use ptxc_ir::{Flags, IntCC, Opcode};

/// Why an operation has no result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nothing {
    /// The result is poison.
    Poison,
    /// Undefined behaviour: what is wrong.
    Undefined(&'static str),
}

/// All bits of a width.
pub fn mask(width: u32) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

/// The number that the bits of a width stand for when signed.
pub fn signed(bits: u128, width: u32) -> i128 {
    let unused = 128u32.saturating_sub(width.max(1));
    ((bits << unused) as i128) >> unused
}

/// High and low half of the product of two unsigned numbers.
fn product(a: u128, b: u128) -> (u128, u128) {
    let low_half = u128::from(u64::MAX);
    let (a1, a0, b1, b0) = (a >> 64, a & low_half, b >> 64, b & low_half);
    let (low, cross, other, high) = (a0 * b0, a0 * b1, a1 * b0, a1 * b1);
    let middle = (low >> 64) + (cross & low_half) + (other & low_half);
    (high + (cross >> 64) + (other >> 64) + (middle >> 64), (middle << 64) | (low & low_half))
}

/// The upper `width` bits of the product of twice that.
fn multiply_high(a: u128, b: u128, width: u32, is_signed: bool) -> u128 {
    if width <= 64 {
        return if is_signed { ((signed(a, width) * signed(b, width)) >> width) as u128 } else { (a * b) >> width };
    }
    let (wide_a, wide_b) = if is_signed { (signed(a, width) as u128, signed(b, width) as u128) } else { (a, b) };
    let (mut high, low) = product(wide_a, wide_b);
    if is_signed {
        for (x, y) in [(wide_a, wide_b), (wide_b, wide_a)] {
            if (x as i128) < 0 {
                high = high.wrapping_sub(y);
            }
        }
    }
    if width == 128 { high } else { (low >> width) | (high << (128 - width)) }
}

/// Operations of one operand.
pub fn unary(op: Opcode, width: u32, a: u128) -> Option<u128> {
    let above = 128 - width;
    let result = match op {
        Opcode::Abs => signed(a, width).unsigned_abs(),
        Opcode::Ctpop => a.count_ones().into(),
        Opcode::Ctlz => (a.leading_zeros() - above).into(),
        Opcode::Cttz => a.trailing_zeros().min(width).into(),
        Opcode::Bswap => a.swap_bytes() >> above,
        Opcode::Bitreverse => a.reverse_bits() >> above,
        _ => return None,
    };
    Some(result & mask(width))
}

/// The result of `uadd_overflow` and the like, and whether it does not fit.
pub fn overflow(op: Opcode, width: u32, a: u128, b: u128) -> Option<(u128, bool)> {
    use Opcode::*;
    let (x, y) = (signed(a, width), signed(b, width));
    let fits = |v: Option<i128>| v.is_some_and(|v| signed(v as u128, width) == v);
    let above = |v: Option<u128>| v.is_none_or(|v| v > mask(width));
    let (result, lost) = match op {
        UaddOverflow => (a.wrapping_add(b), above(a.checked_add(b))),
        UsubOverflow => (a.wrapping_sub(b), a < b),
        UmulOverflow => (a.wrapping_mul(b), above(a.checked_mul(b))),
        SaddOverflow => (a.wrapping_add(b), !fits(x.checked_add(y))),
        SsubOverflow => (a.wrapping_sub(b), !fits(x.checked_sub(y))),
        SmulOverflow => (a.wrapping_mul(b), !fits(x.checked_mul(y))),
        _ => return None,
    };
    Some((result & mask(width), lost))
}

/// True when the flags make the result of `add`, `sub`, `mul` or `shl` poison.
pub fn wraps(op: Opcode, flags: Flags, width: u32, a: u128, b: u128) -> bool {
    let (unsigned, with_sign) = match op {
        Opcode::Add => (Opcode::UaddOverflow, Opcode::SaddOverflow),
        Opcode::Sub => (Opcode::UsubOverflow, Opcode::SsubOverflow),
        Opcode::Mul => (Opcode::UmulOverflow, Opcode::SmulOverflow),
        Opcode::Shl => {
            let shifted = (a << (b as u32 & 127)) & mask(width);
            let lost = shifted >> (b as u32 & 127) != a;
            let changed = signed(shifted, width) >> (b as u32 & 127) != signed(a, width);
            return (flags.contains(Flags::NUW) && lost) || (flags.contains(Flags::NSW) && changed);
        }
        _ => return false,
    };
    let lost = |op| overflow(op, width, a, b).is_some_and(|(_, lost)| lost);
    (flags.contains(Flags::NUW) && lost(unsigned)) || (flags.contains(Flags::NSW) && lost(with_sign))
}

fn divide(op: Opcode, flags: Flags, width: u32, a: u128, b: u128) -> Result<u128, Nothing> {
    if b == 0 {
        return Err(Nothing::Undefined("division by zero"));
    }
    let (x, y) = (signed(a, width), signed(b, width));
    let least = signed(1 << (width - 1), width);
    if matches!(op, Opcode::Sdiv | Opcode::Srem) && x == least && y == -1 && width > 1 {
        return Err(Nothing::Undefined("the quotient of the division does not fit"));
    }
    let exact = flags.contains(Flags::EXACT);
    match op {
        Opcode::Udiv if exact && !a.is_multiple_of(b) => Err(Nothing::Poison),
        Opcode::Udiv => Ok(a / b),
        Opcode::Urem => Ok(a % b),
        Opcode::Sdiv if exact && x.wrapping_rem(y) != 0 => Err(Nothing::Poison),
        Opcode::Sdiv => Ok(x.wrapping_div(y) as u128),
        _ => Ok(x.wrapping_rem(y) as u128),
    }
}

/// Operations of two operands.
///
/// # Errors
/// Poison, or undefined behaviour of divisions.
pub fn binary(op: Opcode, flags: Flags, width: u32, a: u128, b: u128) -> Result<u128, Nothing> {
    use Opcode::*;
    let (x, y) = (signed(a, width), signed(b, width));
    let (most, least) = (signed(mask(width) >> 1, 128), !signed(mask(width) >> 1, 128));
    if matches!(op, Shl | Lshr | Ashr | UshlSat | SshlSat) && b >= u128::from(width) {
        return Err(Nothing::Poison);
    }
    let shift = b as u32 & 127;
    let lost_bits = flags.contains(Flags::EXACT) && a & ((1u128 << shift) - 1) != 0;
    let clamp = |v: Option<i128>, low: bool| match v {
        Some(v) => v.clamp(least, most) as u128,
        None => (if low { least } else { most }) as u128,
    };
    let result = match op {
        Add | Sub | Mul | Shl if wraps(op, flags, width, a, b) => return Err(Nothing::Poison),
        Lshr | Ashr if lost_bits => return Err(Nothing::Poison),
        Or if flags.contains(Flags::DISJOINT) && a & b != 0 => return Err(Nothing::Poison),
        Add => a.wrapping_add(b),
        Sub => a.wrapping_sub(b),
        Mul => a.wrapping_mul(b),
        Udiv | Sdiv | Urem | Srem => divide(op, flags, width, a, b)?,
        And => a & b,
        Or => a | b,
        Xor => a ^ b,
        Shl => a << shift,
        Lshr => a >> shift,
        Ashr => (x >> shift) as u128,
        Smin => x.min(y) as u128,
        Smax => x.max(y) as u128,
        Umin => a.min(b),
        Umax => a.max(b),
        Umulh => multiply_high(a, b, width, false),
        Clmul => (0..width).fold(0, |sum, k| if b >> k & 1 == 1 { sum ^ (a << k) } else { sum }),
        Smulh => multiply_high(a, b, width, true),
        UaddSat => a.checked_add(b).map_or(mask(width), |v| v.min(mask(width))),
        UsubSat => a.saturating_sub(b),
        SaddSat => clamp(x.checked_add(y), x < 0),
        SsubSat => clamp(x.checked_sub(y), x < 0),
        UshlSat => {
            let shifted = (a << shift) & mask(width);
            if shifted >> shift == a { shifted } else { mask(width) }
        }
        SshlSat => {
            let shifted = signed(a << shift, width);
            if shifted >> shift == x { shifted as u128 } else { clamp(None, x < 0) }
        }
        _ => return Err(Nothing::Undefined("no integer operation")),
    };
    Ok(result & mask(width))
}

/// `fshl` and `fshr`.
pub fn funnel(op: Opcode, width: u32, a: u128, b: u128, amount: u128) -> u128 {
    let shift = (amount % u128::from(width)) as u32;
    let result = match (op, shift) {
        (Opcode::Fshl, 0) => a,
        (_, 0) => b,
        (Opcode::Fshl, s) => (a << s) | (b >> (width - s)),
        (_, s) => (a << (width - s)) | (b >> s),
    };
    result & mask(width)
}

/// `icmp`.
pub fn compare(cc: IntCC, width: u32, a: u128, b: u128) -> bool {
    let (x, y) = (signed(a, width), signed(b, width));
    match cc {
        IntCC::Eq => a == b,
        IntCC::Ne => a != b,
        IntCC::Ult => a < b,
        IntCC::Ule => a <= b,
        IntCC::Ugt => a > b,
        IntCC::Uge => a >= b,
        IntCC::Slt => x < y,
        IntCC::Sle => x <= y,
        IntCC::Sgt => x > y,
        IntCC::Sge => x >= y,
    }
}
