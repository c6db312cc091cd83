//! Conversions of f32 that round by random bits (PTX ISA 9.7.10.24, `.rs` and figures 39 to 42).

use ptxc_ir::FloatKind;

use super::{Mode, Round, convert, is_nan};

/// Some random bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Random {
    /// The number that they make.
    pub bits: u32,
    /// How many they are.
    pub count: u32,
}

/// The random bits of an element, counted from the lowest, of a word that all elements share. Two elements have a half
/// each. Of four, two have a half between them, which the upper one reads backward; the halves of e2m1 are made of every
/// other byte.
pub fn random_bits(kind: FloatKind, word: u32, element: u32) -> Random {
    let pair = element / 2;
    let half = match kind {
        // Only the bits that f16 has not.
        FloatKind::F16 => return Random { bits: word >> (16 * (element % 2)) & 0x1fff, count: 13 },
        FloatKind::Bf16 => return Random { bits: word >> (16 * (element % 2)) & 0xffff, count: 16 },
        FloatKind::E2m1 => word >> (8 * pair) & 0xff | (word >> (16 + 8 * pair) & 0xff) << 8,
        _ => word >> (16 * pair) & 0xffff,
    };
    let bits = if element.is_multiple_of(2) { half } else { (half as u16).reverse_bits().into() };
    Random { bits, count: 16 }
}

/// Converts an f32: the random bits are added to what is cut off, below the last place that stays, and where that carries
/// the result is the next number away from zero. Beyond the largest number it is infinity, or what overflow gives
/// otherwise, unless the mode or the format says that it stays.
pub fn convert_stochastic(kind: FloatKind, bits: u32, random: Random, mode: Mode) -> u64 {
    let f32_bits = u64::from(bits);
    if is_nan(FloatKind::F32, f32_bits) || bits & 0x7fff_ffff >= 0x7f80_0000 {
        return convert(FloatKind::F32, kind, f32_bits, mode);
    }
    if mode.relu && bits >> 31 != 0 {
        return 0;
    }
    let below = convert(FloatKind::F32, kind, f32_bits, Mode::rounded(Round::Zero));
    let number = |bits: u64| {
        let single = convert(kind, FloatKind::F32, bits, Mode::default());
        f64::from(f32::from_bits(single as u32)).abs()
    };
    let (low, next, exact) = (number(below), number(below + 1), f64::from(f32::from_bits(bits)).abs());
    // Behind the largest number the grid goes on.
    let is_largest = !next.is_finite() || next <= low;
    let step = if is_largest { low - number(below - 1) } else { next - low };
    let carries = (exact - low) / step + f64::from(random.bits) / f64::from(1u32 << random.count) >= 1.0;
    let stays = mode.finite || matches!(kind, FloatKind::E2m1 | FloatKind::E2m3 | FloatKind::E3m2);
    if carries && !(is_largest && stays) { below + 1 } else { below }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_take_their_bits_of_the_word() {
        let all = |kind, word| -> Vec<u32> { (0..4).map(|e| random_bits(kind, word, e).bits).collect() };
        assert_eq!(all(FloatKind::Bf16, 0x8123_f456)[..2], [0xf456, 0x8123]);
        assert_eq!(all(FloatKind::F16, 0x8123_f456)[..2], [0x1456, 0x0123]);
        assert_eq!(all(FloatKind::E4m3, 0x8001_0003), [0x0003, 0xc000, 0x8001, 0x8001]);
        assert_eq!(all(FloatKind::E2m1, 0x0403_0201), [0x0301, 0x80c0, 0x0402, 0x4020]);
    }

    #[test]
    fn a_carry_goes_away_from_zero() {
        let mode = Mode::default();
        let cut = |kind, x: f32, bits, count| convert_stochastic(kind, x.to_bits(), Random { bits, count }, mode);
        // A quarter of a place above one: carries from three quarters on.
        let x = 1.0 + 0.125 / 4.0;
        assert_eq!(cut(FloatKind::E4m3, x, 0xbfff, 16), 0x38);
        assert_eq!(cut(FloatKind::E4m3, x, 0xc000, 16), 0x39);
        assert_eq!(cut(FloatKind::E4m3, -x, 0xc000, 16), 0xb9);
        // Half of the least number.
        assert_eq!(cut(FloatKind::E2m1, 0.25, 0x7fff, 16), 0);
        assert_eq!(cut(FloatKind::E2m1, -0.25, 0x8000, 16), 9);
        // Beyond the largest.
        assert_eq!(cut(FloatKind::E2m1, 100.0, 0, 16), 7);
        assert_eq!(cut(FloatKind::F16, 65519.0, 0x1000, 13), 0x7bff);
        assert_eq!(cut(FloatKind::F16, 65520.0, 0x1000, 13), 0x7c00);
        assert_eq!(cut(FloatKind::F16, 65536.0, 0, 13), 0x7c00);
        let finite = Mode { finite: true, ..mode };
        let random = Random { bits: 0x1fff, count: 13 };
        assert_eq!(convert_stochastic(FloatKind::F16, 1e6f32.to_bits(), random, finite), 0x7bff);
    }
}
