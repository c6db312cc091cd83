//! How numbers are written: formats of numeric variables, and conversion to and from text.

use num_bigint::{BigInt, Sign};

/// The base and case of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    /// `%u`
    Unsigned,
    /// `%d`
    Signed,
    /// `%x`
    HexLower,
    /// `%X`
    HexUpper,
}

/// `%`, an optional `#`, an optional precision and a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub notation: Notation,
    /// Fewest digits; shorter numbers are padded with zeros.
    pub precision: u32,
    /// Whether `0x` precedes the digits.
    pub alternate: bool,
}

impl Format {
    pub const DEFAULT: Self = Self { notation: Notation::Unsigned, precision: 0, alternate: false };

    /// As messages name it.
    pub fn conversion(self) -> &'static str {
        match self.notation {
            Notation::Unsigned => "%u",
            Notation::Signed => "%d",
            Notation::HexLower => "%x",
            Notation::HexUpper => "%X",
        }
    }

    fn is_hexadecimal(self) -> bool {
        matches!(self.notation, Notation::HexLower | Notation::HexUpper)
    }

    /// A regular expression for every number in this format.
    pub fn wildcard(self) -> String {
        let (lead, first, digit) = match self.notation {
            Notation::Unsigned => ("", "[1-9]", "[0-9]"),
            Notation::Signed => ("-?", "[1-9]", "[0-9]"),
            Notation::HexLower => ("", "[1-9a-f]", "[0-9a-f]"),
            Notation::HexUpper => ("", "[1-9A-F]", "[0-9A-F]"),
        };
        let prefix = if self.alternate { "0x" } else { "" };
        match self.precision {
            0 => format!("{lead}{prefix}{digit}+"),
            precision => format!("{lead}{prefix}({first}{digit}*)?{digit}{{{precision}}}"),
        }
    }

    /// Writes a value; `None` when the format has no way to write a negative one.
    pub fn write(self, value: &BigInt) -> Option<String> {
        let negative = value.sign() == Sign::Minus;
        if negative && self.notation != Notation::Signed {
            return None;
        }
        let digits = match self.notation {
            Notation::Unsigned | Notation::Signed => value.magnitude().to_str_radix(10),
            Notation::HexLower => value.magnitude().to_str_radix(16),
            Notation::HexUpper => value.magnitude().to_str_radix(16).to_ascii_uppercase(),
        };
        let sign = if negative { "-" } else { "" };
        let prefix = if self.alternate { "0x" } else { "" };
        let width = self.precision as usize;
        Some(format!("{sign}{prefix}{digits:0>width$}"))
    }

    /// Reads what [`Self::wildcard`] matched.
    pub fn read(self, text: &[u8]) -> Option<BigInt> {
        let (negative, digits) = match text.strip_prefix(b"-") {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let digits = match self.alternate {
            true => digits.strip_prefix(b"0x").unwrap_or(digits),
            false => digits,
        };
        let radix = if self.is_hexadecimal() { 16 } else { 10 };
        let value = BigInt::parse_bytes(digits, radix)?;
        Some(if negative { -value } else { value })
    }
}

/// Reads digits from the start of `text`; returns the value and how many bytes it took.
/// Without `decimal_only`, `0x`, `0b`, `0o` and a leading `0` choose the base.
pub(crate) fn read_literal(text: &[u8], decimal_only: bool) -> Option<(BigInt, usize)> {
    let (radix, skipped) = match text {
        _ if decimal_only => (10, 0),
        [b'0', b'x' | b'X', ..] => (16, 2),
        [b'0', b'b' | b'B', ..] => (2, 2),
        [b'0', b'o', ..] => (8, 2),
        [b'0', digit, ..] if digit.is_ascii_digit() => (8, 1),
        _ => (10, 0),
    };
    let digits = text.get(skipped..)?;
    let count = digits.iter().take_while(|byte| char::from(**byte).is_digit(radix)).count();
    let value = BigInt::parse_bytes(&digits[..count], radix)?;
    Some((value, skipped + count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_with_sign_prefix_and_padding() {
        let format = Format { notation: Notation::HexUpper, precision: 8, alternate: true };
        assert_eq!(format.write(&BigInt::from(29)).unwrap(), "0x0000001D");
        let signed = Format { notation: Notation::Signed, precision: 4, alternate: false };
        assert_eq!(signed.write(&BigInt::from(-30)).unwrap(), "-0030");
        assert_eq!(Format::DEFAULT.write(&BigInt::from(-1)), None);
    }

    #[test]
    fn literals_choose_their_base() {
        assert_eq!(read_literal(b"0xfg", false), Some((BigInt::from(15), 3)));
        assert_eq!(read_literal(b"010", false), Some((BigInt::from(8), 3)));
        assert_eq!(read_literal(b"0xA", true), Some((BigInt::from(0), 1)));
        assert_eq!(read_literal(b"x", false), None);
    }

    #[test]
    fn what_a_wildcard_matches_reads_back() {
        let format = Format { notation: Notation::HexLower, precision: 0, alternate: true };
        assert_eq!(format.read(b"0xff"), Some(BigInt::from(255)));
        let huge = Format::DEFAULT.read(b"10000000000000000000000").unwrap();
        assert_eq!(huge.to_string(), "10000000000000000000000");
    }
}
