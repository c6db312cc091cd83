//! Integer operations on constants of 1 to 128 bits.

use ptxc_ir::{IntCC, Opcode};

use super::{Scalar, mask, sign_extend};

/// Evaluates a two-operand operation on `width`-bit operands.
pub fn binary(op: Opcode, width: u32, a: u128, b: u128) -> Option<Scalar> {
    use Opcode::*;
    let (sa, sb) = (sign_extend(a, width), sign_extend(b, width));
    let bits = match op {
        Add => a.wrapping_add(b),
        Sub => a.wrapping_sub(b),
        Mul => a.wrapping_mul(b),
        And => a & b,
        Or => a | b,
        Xor => a ^ b,
        Udiv | Urem | Sdiv | Srem => return divide(op, width, a, b),
        Shl | Lshr | Ashr => return Some(shift(op, width, a, b)),
        Smin => sa.min(sb) as u128,
        Smax => sa.max(sb) as u128,
        Umin => a.min(b),
        Umax => a.max(b),
        Umulh => multiply_wide(a, b, width),
        Clmul => (0..width).filter(|k| b >> k & 1 == 1).fold(0, |sum, k| sum ^ (a << k)),
        Smulh => multiply_high_signed(a, b, width),
        UaddSat | SaddSat | UsubSat | SsubSat => return add_saturating(op, width, a, b),
        UshlSat | SshlSat => return shift_saturating(op, width, a, b),
        _ => return None,
    };
    Some(Scalar::Bits(bits & mask(width)))
}

/// Division; a zero divisor and the one signed overflow are undefined and not folded.
fn divide(op: Opcode, width: u32, a: u128, b: u128) -> Option<Scalar> {
    if b == 0 {
        return None;
    }
    let (sa, sb) = (sign_extend(a, width), sign_extend(b, width));
    let least = 1u128 << (width - 1);
    if matches!(op, Opcode::Sdiv | Opcode::Srem) && a == least && sb == -1 {
        return None;
    }
    let bits = match op {
        Opcode::Udiv => a / b,
        Opcode::Urem => a % b,
        Opcode::Sdiv => sa.wrapping_div(sb) as u128,
        _ => sa.wrapping_rem(sb) as u128,
    };
    Some(Scalar::Bits(bits & mask(width)))
}

fn shift(op: Opcode, width: u32, a: u128, b: u128) -> Scalar {
    if b >= u128::from(width) {
        return Scalar::Poison;
    }
    let amount = b as u32;
    let bits = match op {
        Opcode::Shl => a << amount,
        Opcode::Lshr => a >> amount,
        _ => (sign_extend(a, width) >> amount) as u128,
    };
    Scalar::Bits(bits & mask(width))
}

/// The upper half of the unsigned product.
fn multiply_wide(a: u128, b: u128, width: u32) -> u128 {
    if width <= 64 {
        return (a * b) >> width;
    }
    let (high, low) = multiply_full(a, b);
    if width == 128 { high } else { (high << (128 - width)) | (low >> width) }
}

/// The 256-bit product of two 128-bit numbers, as high and low half.
fn multiply_full(a: u128, b: u128) -> (u128, u128) {
    let half = |x: u128| (x >> 64, x & u128::from(u64::MAX));
    let ((ah, al), (bh, bl)) = (half(a), half(b));
    let (low, cross1, cross2, high) = (al * bl, ah * bl, al * bh, ah * bh);
    let middle = (low >> 64) + (cross1 & u128::from(u64::MAX)) + (cross2 & u128::from(u64::MAX));
    let low = (middle << 64) | (low & u128::from(u64::MAX));
    (high + (cross1 >> 64) + (cross2 >> 64) + (middle >> 64), low)
}

/// The upper half of the signed product: the unsigned one, less the other operand for each negative operand.
fn multiply_high_signed(a: u128, b: u128, width: u32) -> u128 {
    let negative = |x: u128| (x >> (width - 1)) & 1 == 1;
    let mut high = multiply_wide(a, b, width);
    if negative(a) {
        high = high.wrapping_sub(b);
    }
    if negative(b) {
        high = high.wrapping_sub(a);
    }
    high
}

/// Largest and least signed number of a width, as bits.
fn signed_limits(width: u32) -> (u128, u128) {
    let least = 1u128 << (width - 1);
    (least - 1, least)
}

fn add_saturating(op: Opcode, width: u32, a: u128, b: u128) -> Option<Scalar> {
    let (most, least) = signed_limits(width);
    let bits = match op {
        Opcode::UaddSat => match overflow(Opcode::UaddOverflow, width, a, b)? {
            (_, true) => mask(width),
            (sum, false) => sum,
        },
        Opcode::UsubSat => a.saturating_sub(b),
        _ => {
            let wrapping = if op == Opcode::SaddSat { Opcode::SaddOverflow } else { Opcode::SsubOverflow };
            match overflow(wrapping, width, a, b)? {
                (_, true) if sign_extend(a, width) < 0 => least,
                (_, true) => most,
                (sum, false) => sum,
            }
        }
    };
    Some(Scalar::Bits(bits))
}

fn shift_saturating(op: Opcode, width: u32, a: u128, b: u128) -> Option<Scalar> {
    let Scalar::Bits(shifted) = shift(Opcode::Shl, width, a, b) else { return Some(Scalar::Poison) };
    let amount = b as u32;
    let (most, least) = signed_limits(width);
    let bits = if op == Opcode::UshlSat {
        if shifted >> amount == a { shifted } else { mask(width) }
    } else if sign_extend(shifted, width) >> amount == sign_extend(a, width) {
        shifted
    } else if sign_extend(a, width) < 0 {
        least
    } else {
        most
    };
    Some(Scalar::Bits(bits))
}

/// Evaluates an operation with an overflow result: the wrapped bits and whether they are wrong.
pub fn overflow(op: Opcode, width: u32, a: u128, b: u128) -> Option<(u128, bool)> {
    let (sa, sb) = (sign_extend(a, width), sign_extend(b, width));
    let keep = |bits: u128| bits & mask(width);
    let fits =
        |wide: (i128, bool)| (keep(wide.0 as u128), wide.1 || sign_extend(keep(wide.0 as u128), width) != wide.0);
    Some(match op {
        Opcode::UaddOverflow => {
            let (sum, carry) = a.overflowing_add(b);
            (keep(sum), carry || keep(sum) != sum)
        }
        Opcode::UsubOverflow => (keep(a.wrapping_sub(b)), a < b),
        Opcode::UmulOverflow => {
            let low = keep(a.wrapping_mul(b));
            (low, multiply_wide(a, b, width) & mask(width) != 0)
        }
        Opcode::SaddOverflow => fits(sa.overflowing_add(sb)),
        Opcode::SsubOverflow => fits(sa.overflowing_sub(sb)),
        Opcode::SmulOverflow => fits(sa.overflowing_mul(sb)),
        _ => return None,
    })
}

/// Evaluates a one-operand operation.
pub fn unary(op: Opcode, width: u32, a: u128) -> Option<Scalar> {
    let bits = match op {
        Opcode::Abs => sign_extend(a, width).unsigned_abs(),
        Opcode::Ctpop => u128::from(a.count_ones()),
        Opcode::Ctlz => u128::from(a.leading_zeros() - (128 - width)),
        Opcode::Cttz => u128::from(a.trailing_zeros().min(width)),
        Opcode::Bswap => a.swap_bytes() >> (128 - width),
        Opcode::Bitreverse => a.reverse_bits() >> (128 - width),
        _ => return None,
    };
    Some(Scalar::Bits(bits & mask(width)))
}

/// Evaluates a funnel shift; the amount counts modulo the width.
pub fn funnel(op: Opcode, width: u32, a: u128, b: u128, amount: u128) -> Option<Scalar> {
    let n = (amount % u128::from(width)) as u32;
    let bits = match (op, n) {
        (Opcode::Fshl, 0) => a,
        (Opcode::Fshr, 0) => b,
        (Opcode::Fshl, _) => (a << n) | (b >> (width - n)),
        (Opcode::Fshr, _) => (a << (width - n)) | (b >> n),
        _ => return None,
    };
    Some(Scalar::Bits(bits & mask(width)))
}

/// Evaluates a comparison.
pub fn compare(cc: IntCC, width: u32, a: u128, b: u128) -> bool {
    let (sa, sb) = (sign_extend(a, width), sign_extend(b, width));
    match cc {
        IntCC::Eq => a == b,
        IntCC::Ne => a != b,
        IntCC::Ult => a < b,
        IntCC::Ule => a <= b,
        IntCC::Ugt => a > b,
        IntCC::Uge => a >= b,
        IntCC::Slt => sa < sb,
        IntCC::Sle => sa <= sb,
        IntCC::Sgt => sa > sb,
        IntCC::Sge => sa >= sb,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINARY: &[Opcode] = &[
        Opcode::Add,
        Opcode::Sub,
        Opcode::Mul,
        Opcode::Smin,
        Opcode::Umax,
        Opcode::Umulh,
        Opcode::Smulh,
        Opcode::UaddSat,
        Opcode::SaddSat,
        Opcode::UsubSat,
        Opcode::SsubSat,
    ];

    /// What an 8-bit operation gives, from wide host arithmetic and a clamp.
    fn expected(op: Opcode, a: u8, b: u8) -> u8 {
        let (ua, ub, sa, sb) = (i32::from(a), i32::from(b), i32::from(a as i8), i32::from(b as i8));
        let value = match op {
            Opcode::Add => ua + ub,
            Opcode::Sub => ua - ub,
            Opcode::Mul => ua * ub,
            Opcode::Smin => sa.min(sb),
            Opcode::Umax => ua.max(ub),
            Opcode::Umulh => (ua * ub) >> 8,
            Opcode::Smulh => (sa * sb) >> 8,
            Opcode::UaddSat => (ua + ub).min(255),
            Opcode::SaddSat => (sa + sb).clamp(-128, 127),
            Opcode::UsubSat => (ua - ub).max(0),
            Opcode::SsubSat => (sa - sb).clamp(-128, 127),
            other => panic!("no expectation for {other:?}"),
        };
        value as u8
    }

    #[test]
    fn eight_bit_operations_agree_with_host_arithmetic_on_all_operands() {
        for &op in BINARY {
            for (a, b) in (0..=255u8).flat_map(|a| (0..=255u8).map(move |b| (a, b))) {
                let got = binary(op, 8, u128::from(a), u128::from(b));
                assert_eq!(got, Some(Scalar::Bits(u128::from(expected(op, a, b)))), "{op:?} {a} {b}");
            }
        }
    }

    #[test]
    fn eight_bit_overflow_agrees_with_host_arithmetic_on_all_operands() {
        for (a, b) in (0..=255u8).flat_map(|a| (0..=255u8).map(move |b| (a, b))) {
            let (sa, sb) = (a as i8, b as i8);
            let signed = |(bits, wrong): (i8, bool)| (u128::from(bits as u8), wrong);
            let unsigned = |(bits, wrong): (u8, bool)| (u128::from(bits), wrong);
            let cases = [
                (Opcode::UaddOverflow, unsigned(a.overflowing_add(b))),
                (Opcode::UsubOverflow, unsigned(a.overflowing_sub(b))),
                (Opcode::UmulOverflow, unsigned(a.overflowing_mul(b))),
                (Opcode::SaddOverflow, signed(sa.overflowing_add(sb))),
                (Opcode::SsubOverflow, signed(sa.overflowing_sub(sb))),
                (Opcode::SmulOverflow, signed(sa.overflowing_mul(sb))),
            ];
            for (op, expected) in cases {
                assert_eq!(overflow(op, 8, a.into(), b.into()), Some(expected), "{op:?} {a} {b}");
            }
        }
    }

    #[test]
    fn wide_products_agree_with_schoolbook_by_parts() {
        let max = u128::MAX;
        assert_eq!(binary(Opcode::Umulh, 128, max, max), Some(Scalar::Bits(max - 1)));
        assert_eq!(binary(Opcode::Smulh, 128, max, max), Some(Scalar::Bits(0)));
        assert_eq!(
            binary(Opcode::Umulh, 64, u64::MAX.into(), u64::MAX.into()),
            Some(Scalar::Bits((u64::MAX - 1).into()))
        );
        assert_eq!(overflow(Opcode::SmulOverflow, 128, 1 << 127, max), Some((1 << 127, true)));
        assert_eq!(binary(Opcode::Umulh, 96, mask(96), mask(96)), Some(Scalar::Bits(mask(96) - 1)));
    }

    #[test]
    fn shifts_at_the_width_are_poison_and_funnels_wrap() {
        assert_eq!(binary(Opcode::Shl, 32, 1, 32), Some(Scalar::Poison));
        assert_eq!(binary(Opcode::Lshr, 64, 1, 1 << 100), Some(Scalar::Poison));
        assert_eq!(funnel(Opcode::Fshl, 64, 5, 7, 64), Some(Scalar::Bits(5)));
        assert_eq!(funnel(Opcode::Fshr, 64, 5, 7, 128), Some(Scalar::Bits(7)));
        assert_eq!(funnel(Opcode::Fshl, 32, 0x8000_0001, 0xc000_0000, 1), Some(Scalar::Bits(3)));
        assert_eq!(binary(Opcode::UshlSat, 8, 0x81, 1), Some(Scalar::Bits(0xff)));
        assert_eq!(binary(Opcode::SshlSat, 8, 0x80, 1), Some(Scalar::Bits(0x80)));
        assert_eq!(binary(Opcode::SshlSat, 8, 0x40, 1), Some(Scalar::Bits(0x7f)));
    }

    #[test]
    fn undefined_divisions_are_left_alone() {
        assert_eq!(binary(Opcode::Udiv, 32, 1, 0), None);
        assert_eq!(binary(Opcode::Sdiv, 32, 0x8000_0000, 0xffff_ffff), None);
        assert_eq!(binary(Opcode::Srem, 8, 0xf9, 2), Some(Scalar::Bits(0xff)));
    }

    #[test]
    fn counting_and_reversing_use_the_width() {
        assert_eq!(unary(Opcode::Ctlz, 16, 1), Some(Scalar::Bits(15)));
        assert_eq!(unary(Opcode::Cttz, 16, 0), Some(Scalar::Bits(16)));
        assert_eq!(unary(Opcode::Bswap, 48, 0x0102_0304_0506), Some(Scalar::Bits(0x0605_0403_0201)));
        assert_eq!(unary(Opcode::Bitreverse, 3, 0b001), Some(Scalar::Bits(0b100)));
        assert_eq!(unary(Opcode::Abs, 8, 0x80), Some(Scalar::Bits(0x80)));
    }
}
