//! The output buffer: text and numbers without the formatting machinery and without allocation.

/// PTX text under construction. Bytes, since most of what is written is short and ASCII.
#[derive(Debug, Default)]
pub(crate) struct Text {
    out: Vec<u8>,
}

impl Text {
    pub fn with_capacity(bytes: usize) -> Text {
        Text { out: Vec::with_capacity(bytes) }
    }

    /// The finished text. Only whole strings and characters were written, so it is UTF-8.
    pub fn finish(self) -> String {
        String::from_utf8(self.out).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
    }

    pub fn push(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    pub fn char(&mut self, c: char) {
        match u8::try_from(c) {
            Ok(byte) if byte.is_ascii() => self.out.push(byte),
            _ => self.push(c.encode_utf8(&mut [0; 4])),
        }
    }

    pub fn unsigned(&mut self, mut n: u64) {
        let mut digits = [0u8; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (n % 10) as u8;
            n /= 10;
            if n == 0 {
                break;
            }
        }
        self.out.extend_from_slice(&digits[at..]);
    }

    pub fn signed(&mut self, n: i64) {
        if n < 0 {
            self.out.push(b'-');
        }
        self.unsigned(n.unsigned_abs());
    }

    /// `+n`, `+-n`, or nothing for 0: PTX has no `-n` in addresses.
    pub fn offset(&mut self, n: i64) {
        if n != 0 {
            self.out.push(b'+');
            self.signed(n);
        }
    }

    /// Upper-case hexadecimal with leading zeros.
    pub fn hex(&mut self, n: u64, digits: u32) {
        for i in (0..digits).rev() {
            self.out.push(b"0123456789ABCDEF"[(n >> (4 * i)) as usize & 15]);
        }
    }

    /// A string literal of the `.file` and `.pragma` directives. PTX has no escapes, so what would end the literal or
    /// the line is replaced.
    pub fn quoted(&mut self, text: &str) {
        self.char('"');
        for c in text.chars() {
            self.char(match c {
                '"' => '\'',
                '\\' => '/',
                c if c.is_control() => '?',
                c => c,
            });
        }
        self.char('"');
    }
}

#[cfg(test)]
mod tests {
    use super::Text;

    #[test]
    fn numbers() {
        let mut t = Text::default();
        t.signed(i64::MIN);
        t.char(' ');
        t.unsigned(u64::MAX);
        t.char(' ');
        t.hex(0x3f80_0000, 8);
        t.offset(0);
        t.offset(-4);
        t.offset(12);
        assert_eq!(t.finish(), "-9223372036854775808 18446744073709551615 3F800000+-4+12");
    }
}
