//! Every pair of 8-bit numbers against the host's own operations.

use ptxc_ir::{Flags, Opcode};

use super::integer::{Nothing, binary, compare, funnel, overflow, unary};

fn each(f: impl Fn(u8, u8)) {
    (0..=255).for_each(|a| (0..=255).for_each(|b| f(a, b)));
}

#[test]
fn eight_bits() {
    use Opcode::*;
    each(|a, b| {
        let (x, y) = (a as i8, b as i8);
        let plain = |op| binary(op, Flags::EMPTY, 8, a.into(), b.into());
        let with = |op, flags| binary(op, flags, 8, a.into(), b.into());
        let signed = |v: i8| Ok(u128::from(v as u8));
        let same = |v: u8| Ok(u128::from(v));
        assert_eq!(plain(Add), same(a.wrapping_add(b)));
        assert_eq!(plain(Sub), same(a.wrapping_sub(b)));
        assert_eq!(plain(Mul), same(a.wrapping_mul(b)));
        assert_eq!(plain(Smin), signed(x.min(y)));
        assert_eq!(plain(Umax), same(a.max(b)));
        assert_eq!(plain(Umulh), same(((u16::from(a) * u16::from(b)) >> 8) as u8));
        assert_eq!(plain(Smulh), signed(((i16::from(x) * i16::from(y)) >> 8) as i8));
        assert_eq!(plain(UaddSat), same(a.saturating_add(b)));
        assert_eq!(plain(SaddSat), signed(x.saturating_add(y)));
        assert_eq!(plain(UsubSat), same(a.saturating_sub(b)));
        assert_eq!(plain(SsubSat), signed(x.saturating_sub(y)));
        let poison = Err(Nothing::Poison);
        assert_eq!(with(Add, Flags::NSW), x.checked_add(y).map_or(poison, signed));
        assert_eq!(with(Add, Flags::NUW), a.checked_add(b).map_or(poison, same));
        assert_eq!(with(Sub, Flags::NSW), x.checked_sub(y).map_or(poison, signed));
        assert_eq!(with(Sub, Flags::NUW), a.checked_sub(b).map_or(poison, same));
        assert_eq!(with(Mul, Flags::NSW), x.checked_mul(y).map_or(poison, signed));
        assert_eq!(with(Mul, Flags::NUW), a.checked_mul(b).map_or(poison, same));
        match a.checked_div(b) {
            Some(quotient) => {
                assert_eq!(plain(Udiv), same(quotient));
                assert_eq!(plain(Urem), same(a % b));
                assert_eq!(with(Udiv, Flags::EXACT), if a % b == 0 { same(quotient) } else { poison });
            }
            None => assert!(matches!(plain(Urem), Err(Nothing::Undefined(_)))),
        }
        match x.checked_div(y) {
            Some(quotient) => assert_eq!((plain(Sdiv), plain(Srem)), (signed(quotient), signed(x % y))),
            None => {
                assert!(matches!((plain(Sdiv), plain(Srem)), (Err(Nothing::Undefined(_)), Err(Nothing::Undefined(_)))))
            }
        }
        let inside = b < 8;
        let shift = u32::from(b) & 7;
        assert_eq!(plain(Shl), if inside { same(a << shift) } else { poison });
        assert_eq!(plain(Lshr), if inside { same(a >> shift) } else { poison });
        assert_eq!(plain(Ashr), if inside { signed(x >> shift) } else { poison });
        let wide = (i32::from(x) << shift).clamp(-128, 127) as i8;
        assert_eq!(plain(SshlSat), if inside { signed(wide) } else { poison });
        assert_eq!(plain(UshlSat), if inside { same((u32::from(a) << shift).min(255) as u8) } else { poison });
        assert_eq!(funnel(Fshl, 8, a.into(), 0x5a, b.into()) as u8, ((u16::from(a) << 8 | 0x5a) << shift >> 8) as u8);
        assert_eq!(funnel(Fshr, 8, a.into(), 0x5a, b.into()) as u8, ((u16::from(a) << 8 | 0x5a) >> shift) as u8);
    });
}

#[test]
fn eight_bit_overflow_and_comparisons() {
    use Opcode::*;
    use ptxc_ir::IntCC;
    each(|a, b| {
        let (x, y) = (a as i8, b as i8);
        let lost = |op| overflow(op, 8, a.into(), b.into()).map(|(r, lost)| (r as u8, lost));
        assert_eq!(lost(UaddOverflow), Some(a.overflowing_add(b)));
        assert_eq!(lost(UsubOverflow), Some(a.overflowing_sub(b)));
        assert_eq!(lost(UmulOverflow), Some(a.overflowing_mul(b)));
        let signed = |(r, lost): (i8, bool)| Some((r as u8, lost));
        assert_eq!(lost(SaddOverflow), signed(x.overflowing_add(y)));
        assert_eq!(lost(SsubOverflow), signed(x.overflowing_sub(y)));
        assert_eq!(lost(SmulOverflow), signed(x.overflowing_mul(y)));
        let order = |cc| compare(cc, 8, a.into(), b.into());
        assert_eq!([order(IntCC::Ult), order(IntCC::Uge)], [a < b, a >= b]);
        assert_eq!([order(IntCC::Slt), order(IntCC::Sge)], [x < y, x >= y]);
        assert_eq!([order(IntCC::Sgt), order(IntCC::Sle)], [x > y, x <= y]);
    });
    for a in 0..=255u8 {
        let one = |op| unary(op, 8, a.into()).map(|r| r as u32);
        assert_eq!(one(Abs), Some((a as i8).unsigned_abs().into()));
        assert_eq!(one(Ctpop), Some(a.count_ones()));
        assert_eq!(one(Ctlz), Some(a.leading_zeros()));
        assert_eq!(one(Cttz), Some(a.trailing_zeros()));
        assert_eq!(one(Bitreverse), Some(a.reverse_bits().into()));
    }
}

#[test]
fn high_halves_of_wide_products() {
    let most = u128::MAX;
    assert_eq!(binary(Opcode::Umulh, Flags::EMPTY, 128, most, most), Ok(most - 1));
    assert_eq!(binary(Opcode::Smulh, Flags::EMPTY, 128, most, most), Ok(0));
    let least = 1u128 << 127;
    assert_eq!(binary(Opcode::Smulh, Flags::EMPTY, 128, least, least), Ok(1 << 126));
    // 96 bits: (2^95)^2 is 2^190, whose upper half is 2^94.
    assert_eq!(binary(Opcode::Umulh, Flags::EMPTY, 96, 1 << 95, 1 << 95), Ok(1 << 94));
    assert_eq!(binary(Opcode::Smulh, Flags::EMPTY, 96, 1 << 95, 1), Ok((1u128 << 96) - 1));
}
