//! Numbers as constants: integers of any width and floats in all their spellings.

use rustc_apfloat::Float as _;
use rustc_apfloat::ieee::{BFloat, Double, Half, Quad, X87DoubleExtended};
use rustc_apfloat::{FloatConvert, Status};

use crate::model::Type;

/// Most digits of an integer; more than the widest integer of practical use has.
const MAX_DIGITS: usize = 20_000;

/// The two's complement of a decimal number, as 64-bit words, least significant first, enough for `bits` bits.
pub(super) fn integer_words(text: &[u8], bits: u32) -> Result<Vec<u64>, &'static str> {
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    if digits.len() > MAX_DIGITS {
        return Err("the integer has too many digits");
    }
    let mut words = vec![0u64; bits.div_ceil(64).max(1) as usize];
    let mut used = 1;
    for digit in digits {
        let mut carry = u64::from(digit.wrapping_sub(b'0'));
        for word in &mut words[..used] {
            let wide = u128::from(*word) * 10 + u128::from(carry);
            *word = wide as u64;
            carry = (wide >> 64) as u64;
        }
        if carry > 0 {
            match words.get_mut(used) {
                Some(word) => *word = carry,
                None => return Err("the integer does not fit its type"),
            }
            used += 1;
        }
    }
    fit(words, negative, bits)
}

/// A hexadecimal number `0x…` (as `u0x…` and `s0x…` write it) as words.
pub(super) fn hex_words(digits: &[u8], signed: bool, bits: u32) -> Result<Vec<u64>, &'static str> {
    let mut words = vec![0u64; bits.div_ceil(64).max(1) as usize];
    for (index, digit) in digits.iter().rev().enumerate() {
        let value = u64::from(char::from(*digit).to_digit(16).ok_or("wrong hexadecimal digit")?);
        match words.get_mut(index / 16) {
            Some(word) => *word |= value << (index % 16 * 4),
            None if value == 0 => {}
            None => return Err("the integer does not fit its type"),
        }
    }
    let width = digits.len() as u32 * 4;
    if signed && width < bits && width > 0 && words[(width - 1) as usize / 64] >> ((width - 1) % 64) & 1 == 1 {
        for bit in width..bits {
            words[bit as usize / 64] |= 1 << (bit % 64);
        }
    }
    fit(words, false, bits)
}

/// Checks that a magnitude fits `bits` bits, and negates it.
fn fit(mut words: Vec<u64>, negative: bool, bits: u32) -> Result<Vec<u64>, &'static str> {
    let top = bits % 64;
    let last = words.last().copied().unwrap_or(0);
    if top != 0 && last >> top != 0 {
        return Err("the integer does not fit its type");
    }
    if negative {
        let sign = (bits - 1) as usize;
        let high = words[sign / 64] >> (sign % 64) & 1 == 1;
        let only = words.iter().map(|word| word.count_ones()).sum::<u32>() == 1;
        if high && !only && bits > 1 {
            return Err("the integer does not fit its type");
        }
        let mut carry = true;
        for word in &mut words {
            let (sum, over) = (!*word).overflowing_add(u64::from(carry));
            *word = sum;
            carry = over;
        }
        if top != 0
            && let Some(last) = words.last_mut()
        {
            *last &= (1 << top) - 1;
        }
    }
    Ok(words)
}

/// The bits of a float constant: two words, least significant first.
type Bits = Result<[u64; 2], &'static str>;

fn narrow(bits: u128) -> [u64; 2] {
    [bits as u64, (bits >> 64) as u64]
}

/// The bits of a decimal float (or integer spelling) of type `ty`, rounded to nearest.
pub(super) fn decimal(text: &[u8], ty: Type) -> Bits {
    let text = std::str::from_utf8(text).map_err(|_| "wrong number")?;
    let trimmed = text.strip_prefix('+').unwrap_or(text);
    fn with<F: rustc_apfloat::Float>(text: &str) -> Bits {
        F::from_str_r(text, rustc_apfloat::Round::NearestTiesToEven)
            .map(|parsed| narrow(parsed.value.to_bits()))
            .map_err(|_| "wrong number")
    }
    match ty {
        Type::Float => trimmed.parse::<f32>().map(|v| [u64::from(v.to_bits()), 0]).map_err(|_| "wrong number"),
        Type::Double => trimmed.parse::<f64>().map(|v| [v.to_bits(), 0]).map_err(|_| "wrong number"),
        Type::Half => with::<Half>(trimmed),
        Type::BFloat => with::<BFloat>(trimmed),
        Type::X86Fp80 => with::<X87DoubleExtended>(trimmed),
        Type::Fp128 | Type::PpcFp128 => with::<Quad>(trimmed),
        _ => Err("a float constant must have a float type"),
    }
}

/// The bits of `0x…` with or without a letter. Without, the digits are the bits of a double, which is converted.
pub(super) fn hexadecimal(text: &[u8], ty: Type) -> Bits {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    let (letter, digits) = match digits.split_first() {
        Some((letter @ (b'H' | b'R' | b'K' | b'L' | b'M'), rest)) => (*letter, rest),
        _ => (0, digits),
    };
    let wanted = match ty {
        Type::Half => b'H',
        Type::BFloat => b'R',
        Type::X86Fp80 => b'K',
        Type::Fp128 => b'L',
        Type::PpcFp128 => b'M',
        Type::Float | Type::Double => 0,
        _ => return Err("a float constant must have a float type"),
    };
    let plain = letter == 0 && matches!(ty, Type::Half | Type::BFloat);
    if letter != wanted && !plain {
        return Err("this spelling of a float does not belong to its type");
    }
    let bits = hex_number(digits)?;
    match letter {
        // The low half is written first.
        b'L' | b'M' => Ok([(bits >> 64) as u64, bits as u64]),
        b'K' => Ok(narrow(bits)),
        0 => from_double(u64::try_from(bits).map_err(|_| "the float has too many digits")?, ty),
        _ => u16::try_from(bits).map(|bits| [u64::from(bits), 0]).map_err(|_| "the float has too many digits"),
    }
}

/// The digits of `f0x…`: the bits of the type itself.
pub(super) fn exact_bits(digits: &[u8], ty: Type) -> Bits {
    let bits = hex_number(digits)?;
    let width = match ty {
        Type::Half | Type::BFloat => 16,
        Type::Float => 32,
        Type::Double => 64,
        Type::X86Fp80 => 80,
        Type::Fp128 | Type::PpcFp128 => 128,
        _ => return Err("a float constant must have a float type"),
    };
    if width < 128 && bits >> width != 0 {
        return Err("the float has too many digits");
    }
    Ok(narrow(bits))
}

fn hex_number(digits: &[u8]) -> Result<u128, &'static str> {
    if digits.is_empty() || digits.len() > 32 {
        return Err("the float has a wrong number of digits");
    }
    let mut bits = 0u128;
    for digit in digits {
        bits = bits << 4 | u128::from(char::from(*digit).to_digit(16).ok_or("wrong hexadecimal digit")?);
    }
    Ok(bits)
}

/// A value given as the bits of a double, in type `ty`, which must hold it.
fn from_double(bits: u64, ty: Type) -> Bits {
    if ty == Type::Double {
        return Ok([bits, 0]);
    }
    let double = Double::from_bits(u128::from(bits));
    fn to<F: rustc_apfloat::Float>(double: Double) -> Bits
    where
        Double: FloatConvert<F>,
    {
        let mut loses = false;
        let converted: rustc_apfloat::StatusAnd<F> = double.convert(&mut loses);
        if loses && !double.is_nan() || converted.status.contains(Status::OVERFLOW) {
            return Err("the float does not fit its type exactly");
        }
        Ok(narrow(converted.value.to_bits()))
    }
    match ty {
        // A NaN keeps its payload; a signalling one stays signalling.
        Type::Float if double.is_nan() => {
            let payload = (bits >> 29) as u32 & 0x007f_ffff;
            Ok([u64::from((bits >> 32) as u32 & 0x8000_0000 | 0x7f80_0000 | payload.max(1)), 0])
        }
        Type::Float => to::<rustc_apfloat::ieee::Single>(double),
        Type::Half => to::<Half>(double),
        Type::BFloat => to::<BFloat>(double),
        _ => Err("this spelling of a float does not belong to its type"),
    }
}

/// `inf`, `nan`, `qnan` with a sign, `nan(0x…)` and `snan(0x…)`: exponent and quiet bit by type.
pub(super) fn special(word: &[u8], payload: Option<&[u8]>, ty: Type) -> Option<Bits> {
    let (negative, name) = match word.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, word),
    };
    let (width, mantissa): (u32, u32) = match ty {
        Type::Half => (16, 10),
        Type::BFloat => (16, 7),
        Type::Float => (32, 23),
        Type::Double => (64, 52),
        Type::Fp128 => (128, 112),
        _ => return None,
    };
    let exponent = ((1u128 << (width - 1 - mantissa)) - 1) << mantissa;
    let quiet = 1u128 << (mantissa - 1);
    let sign = u128::from(negative) << (width - 1);
    let payload = match payload.map(|digits| hex_number(digits.strip_prefix(b"0x").unwrap_or(digits))) {
        None => 0,
        Some(Ok(bits)) if bits >> mantissa == 0 => bits,
        Some(Ok(_)) => return Some(Err("the payload of the NaN is too large")),
        Some(Err(message)) => return Some(Err(message)),
    };
    let bits = match name {
        b"inf" => exponent,
        b"nan" | b"qnan" => exponent | quiet | payload,
        b"snan" if payload & !quiet != 0 => exponent | payload & !quiet,
        b"snan" => exponent | quiet >> 1,
        _ => return None,
    };
    Some(Ok(narrow(sign | bits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        assert_eq!(integer_words(b"-1", 8), Ok(vec![0xff]));
        assert_eq!(integer_words(b"-128", 8), Ok(vec![0x80]));
        assert!(integer_words(b"-129", 8).is_err());
        assert!(integer_words(b"256", 8).is_err());
        assert_eq!(integer_words(b"18446744073709551616", 128), Ok(vec![0, 1]));
        assert_eq!(integer_words(b"-1", 70), Ok(vec![u64::MAX, 0x3f]));
        assert_eq!(hex_words(b"ff", true, 16), Ok(vec![0xffff]));
    }

    #[test]
    fn floats() {
        assert_eq!(decimal(b"1.5", Type::Float), Ok([0x3fc0_0000, 0]));
        assert_eq!(decimal(b"1.0e+00", Type::Half), Ok([0x3c00, 0]));
        assert_eq!(decimal(b"-0.0", Type::BFloat), Ok([0x8000, 0]));
        assert_eq!(hexadecimal(b"0x3FF8000000000000", Type::Float), Ok([0x3fc0_0000, 0]));
        assert_eq!(hexadecimal(b"0x7FF8000000000000", Type::Float), Ok([0x7fc0_0000, 0]));
        assert_eq!(hexadecimal(b"0x7FF0000020000000", Type::Float), Ok([0x7f80_0001, 0]));
        assert_eq!(hexadecimal(b"0x7FF0000000000000", Type::Float), Ok([0x7f80_0000, 0]));
        assert!(hexadecimal(b"0x3FF8000000000001", Type::Float).is_err());
        assert_eq!(hexadecimal(b"0xH3C00", Type::Half), Ok([0x3c00, 0]));
        assert_eq!(exact_bits(b"3F800000", Type::Float), Ok([0x3f80_0000, 0]));
        assert_eq!(special(b"-inf", None, Type::Half), Some(Ok([0xfc00, 0])));
        assert_eq!(special(b"+qnan", None, Type::BFloat), Some(Ok([0x7fc0, 0])));
    }
}
