//! The output buffer: text and numbers without the formatting machinery and without allocation.

/// PTX text under construction.
#[derive(Debug, Default)]
pub(crate) struct Text {
    /// What was written so far.
    pub out: String,
}

impl Text {
    pub fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    pub fn char(&mut self, c: char) {
        self.out.push(c);
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
        for &digit in &digits[at..] {
            self.out.push(char::from(digit));
        }
    }

    pub fn signed(&mut self, n: i64) {
        if n < 0 {
            self.out.push('-');
        }
        self.unsigned(n.unsigned_abs());
    }

    /// `+n`, `+-n`, or nothing for 0: PTX has no `-n` in addresses.
    pub fn offset(&mut self, n: i64) {
        if n != 0 {
            self.out.push('+');
            self.signed(n);
        }
    }

    /// Upper-case hexadecimal with leading zeros.
    pub fn hex(&mut self, n: u64, digits: u32) {
        for i in (0..digits).rev() {
            let nibble = (n >> (4 * i)) as u32 & 15;
            self.out.push(char::from_digit(nibble, 16).unwrap_or('0').to_ascii_uppercase());
        }
    }

    /// A string literal of the `.file` and `.pragma` directives. PTX has no escapes, so what would end the literal or
    /// the line is replaced.
    pub fn quoted(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            self.out.push(match c {
                '"' => '\'',
                '\\' => '/',
                c if c.is_control() => '?',
                c => c,
            });
        }
        self.out.push('"');
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
        assert_eq!(t.out, "-9223372036854775808 18446744073709551615 3F800000+-4+12");
    }
}
