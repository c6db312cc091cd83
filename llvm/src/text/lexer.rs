//! Splits the text into tokens. A token is a kind and a range of the source; nothing is copied.

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// End of the text.
    End,
    /// A keyword, type or mnemonic: letters, digits, `-`, `$`, `.` and `_`, not starting with a digit.
    Word,
    /// A word, number or string before a colon; the colon is not part of the range.
    Label,
    /// `%name` or `%"name"`; the range includes sigil and quotes, as for the next ones.
    Local,
    /// `%12`.
    LocalNumber,
    /// `@name`.
    Global,
    /// `@12`.
    GlobalNumber,
    /// `$name`.
    Comdat,
    /// `!12`.
    MetadataNumber,
    /// `!name`.
    MetadataName,
    /// `!` before something else.
    Bang,
    /// `#12`.
    Group,
    /// `#dbg_value` and so on.
    Record,
    /// `^12`, an entry of a summary.
    Summary,
    /// `"text"`, the range includes the quotes.
    Text,
    /// A decimal integer.
    Integer,
    /// A decimal float.
    Float,
    /// `0x…`, also with a letter `H R K L M` after the `x`.
    Hex,
    /// A character that stands for itself: `= , * ( ) [ ] { } < > | :`.
    Punctuation(u8),
    /// Anything else.
    Bad,
}

/// A token: kind and range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: u32,
    pub(super) end: u32,
}

const SPACE: u8 = 1;
const WORD: u8 = 2;
const DIGIT: u8 = 4;
const WORD_START: u8 = 8;
const HEX: u8 = 16;
const COMMENT: u8 = 32;

/// Classes of every byte.
static CLASS: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut byte = 0;
    while byte < 256 {
        let c = byte as u8;
        let mut class = 0;
        if matches!(c, b' ' | b'\t' | b'\r' | b'\n' | 0) {
            class |= SPACE;
        }
        if c.is_ascii_alphabetic() || matches!(c, b'-' | b'$' | b'.' | b'_') {
            class |= WORD | WORD_START;
        }
        if c.is_ascii_digit() {
            class |= WORD | DIGIT;
        }
        if c.is_ascii_hexdigit() {
            class |= HEX;
        }
        if matches!(c, b';' | b'/') {
            class |= COMMENT;
        }
        table[byte] = class;
        byte += 1;
    }
    table
};

/// The first eight bytes of a word as a number, the first byte lowest; for choosing by [`key`] constants.
pub(super) const fn key(word: &[u8]) -> u64 {
    let mut number = 0;
    let mut at = 0;
    while at < word.len() && at < 8 {
        number |= (word[at] as u64) << (8 * at);
        at += 1;
    }
    number
}

/// Reads tokens one after the other.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'a> {
    source: &'a [u8],
    position: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(source: &'a [u8]) -> Lexer<'a> {
        Lexer { source, position: 0 }
    }

    /// Goes on at another place.
    pub(super) fn seek(&mut self, at: u32) {
        self.position = at as usize;
    }

    #[inline(always)]
    fn byte(&self, at: usize) -> u8 {
        self.source.get(at).copied().unwrap_or(0)
    }

    /// [`key`] of the token.
    #[inline]
    pub(super) fn key(&self, token: Token) -> u64 {
        let start = token.start as usize;
        let len = (token.end - token.start) as usize;
        match self.source.get(start..start + 8).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok()) {
            Some(bytes) if len < 8 => u64::from_le_bytes(bytes) & ((1 << (8 * len)) - 1),
            Some(bytes) => u64::from_le_bytes(bytes),
            None => key(&self.source[start..token.end as usize]),
        }
    }

    #[inline(always)]
    fn is(&self, at: usize, class: u8) -> bool {
        CLASS[self.byte(at) as usize] & class != 0
    }

    /// Goes on while bytes are of the class.
    #[inline(always)]
    fn run(&self, at: usize, class: u8) -> usize {
        let rest = self.source.get(at..).unwrap_or(&[]);
        at + rest.iter().position(|byte| CLASS[*byte as usize] & class == 0).unwrap_or(rest.len())
    }

    /// The byte that the token after the last one starts with, 0 at the end.
    #[inline]
    pub(super) fn peek(&self) -> u8 {
        let mut ahead = Lexer { source: self.source, position: self.position };
        ahead.skip_space();
        ahead.byte(ahead.position)
    }

    /// Skips what stands before a token: mostly one space, nothing, or a line end with the indentation of instructions.
    #[inline(always)]
    fn skip_space(&mut self) {
        match self.byte(self.position) {
            b' ' => self.position += 1,
            b'\n' if self.byte(self.position + 1) == b' ' && self.byte(self.position + 2) == b' ' => self.position += 3,
            _ => {}
        }
        if self.is(self.position, SPACE | COMMENT) {
            self.skip_more_space();
        }
    }

    #[inline(never)]
    fn skip_more_space(&mut self) {
        loop {
            // Comments stand in column 50.
            self.position = self.skip_chunks(self.position, |byte| byte == b' ');
            self.position = self.run(self.position, SPACE);
            match self.source.get(self.position) {
                Some(b';') => {
                    let start = self.skip_chunks(self.position, |byte| byte != b'\n');
                    let rest = &self.source[start..];
                    self.position = start + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                }
                Some(b'/') if self.byte(self.position + 1) == b'*' => {
                    let rest = &self.source[self.position..];
                    let end = rest.windows(2).skip(2).position(|pair| pair == b"*/");
                    self.position += end.map_or(rest.len(), |at| at + 4);
                }
                _ => return,
            }
        }
    }

    /// Goes on by sixteen bytes while all of them are so.
    #[inline(always)]
    fn skip_chunks(&self, at: usize, so: impl Fn(u8) -> bool) -> usize {
        let rest = self.source.get(at..).unwrap_or(&[]);
        let chunks = rest.chunks_exact(16);
        // No early exit inside of a chunk, so that it is one comparison of vectors.
        at + 16 * chunks.take_while(|chunk| chunk.iter().fold(true, |all, byte| all & so(*byte))).count()
    }

    /// The next token.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Token {
        self.skip_space();
        let start = self.position;
        let Some(first) = self.source.get(start).copied() else {
            return Token { kind: Kind::End, start: start as u32, end: start as u32 };
        };
        let (kind, end) = match first {
            b',' | b'=' | b'(' | b')' | b'[' | b']' | b'{' | b'}' => (Kind::Punctuation(first), start + 1),
            b'a'..=b'z' => self.word(start),
            b'%' => self.named(start, Kind::Local, Kind::LocalNumber),
            b'0'..=b'9' => match self.run(start, DIGIT) {
                end if matches!(self.byte(end), b'.' | b':' | b'x') => self.number(start),
                end => (Kind::Integer, end),
            },
            _ => self.scan(first, start),
        };
        self.position = if kind == Kind::Label { end + 1 } else { end };
        Token { kind, start: start as u32, end: end as u32 }
    }

    #[inline(never)]
    fn scan(&self, first: u8, start: usize) -> (Kind, usize) {
        match first {
            b'@' => self.named(start, Kind::Global, Kind::GlobalNumber),
            b'!' => self.metadata(start),
            b'#' => match self.byte(start + 1) {
                b'0'..=b'9' => (Kind::Group, self.run(start + 1, DIGIT)),
                b'a'..=b'z' => (Kind::Record, self.run(start + 1, WORD)),
                _ => (Kind::Bad, start + 1),
            },
            b'^' => (Kind::Summary, self.run(start + 1, DIGIT)),
            b'"' => self.text(start),
            b'+' => self.number(start),
            b'-' if self.is(start + 1, DIGIT) => self.number(start),
            b'$' if self.byte(start + 1) == b'"' || self.is(start + 1, WORD) => self.comdat(start),
            _ if CLASS[first as usize] & WORD_START != 0 => self.word(start),
            b'*' | b'<' | b'>' | b'|' | b':' | b'/' => (Kind::Punctuation(first), start + 1),
            _ => (Kind::Bad, start + 1),
        }
    }

    #[inline(always)]
    fn word(&self, start: usize) -> (Kind, usize) {
        let end = self.run(start, WORD);
        if self.byte(end) == b':' { (Kind::Label, end) } else { (Kind::Word, end) }
    }

    fn comdat(&self, start: usize) -> (Kind, usize) {
        let end = self.name_end(start + 1);
        match self.byte(end) {
            b':' if self.byte(start + 1) != b'"' => (Kind::Label, end),
            _ => (Kind::Comdat, end),
        }
    }

    /// The end of a name or quoted name.
    fn name_end(&self, at: usize) -> usize {
        if self.byte(at) == b'"' { self.quoted(at).unwrap_or(self.source.len()) } else { self.run(at, WORD) }
    }

    /// The end of a quoted string that starts at `at`, after its closing quote.
    fn quoted(&self, at: usize) -> Option<usize> {
        let rest = self.source.get(at + 1..)?;
        Some(at + 2 + rest.iter().position(|byte| *byte == b'"')?)
    }

    fn text(&self, start: usize) -> (Kind, usize) {
        match self.quoted(start) {
            Some(end) if self.byte(end) == b':' => (Kind::Label, end),
            Some(end) => (Kind::Text, end),
            None => (Kind::Bad, self.source.len()),
        }
    }

    #[inline(always)]
    fn named(&self, start: usize, name: Kind, number: Kind) -> (Kind, usize) {
        match self.byte(start + 1) {
            b'"' => match self.quoted(start + 1) {
                Some(end) => (name, end),
                None => (Kind::Bad, self.source.len()),
            },
            b'0'..=b'9' => (number, self.run(start + 1, DIGIT)),
            byte if CLASS[byte as usize] & WORD_START != 0 => (name, self.run(start + 1, WORD)),
            _ => (Kind::Bad, start + 1),
        }
    }

    fn metadata(&self, start: usize) -> (Kind, usize) {
        match self.byte(start + 1) {
            b'0'..=b'9' => (Kind::MetadataNumber, self.run(start + 1, DIGIT)),
            byte if CLASS[byte as usize] & WORD_START != 0 || byte == b'\\' => {
                let mut end = start + 1;
                loop {
                    end = self.run(end, WORD);
                    if self.byte(end) != b'\\' {
                        return (Kind::MetadataName, end);
                    }
                    end += 1;
                }
            }
            _ => (Kind::Bang, start + 1),
        }
    }

    #[inline(never)]
    fn number(&self, start: usize) -> (Kind, usize) {
        let signed = !self.is(start, DIGIT);
        let digits = start + usize::from(signed);
        if !self.is(digits, DIGIT) {
            // `+inf`, `+nan` and so on.
            let end = self.run(digits, WORD);
            return if end > digits { (Kind::Word, end) } else { (Kind::Bad, start + 1) };
        }
        if self.byte(digits) == b'0' && self.byte(digits + 1) == b'x' {
            let from = digits + 2;
            let from = from + usize::from(matches!(self.byte(from), b'H' | b'R' | b'K' | b'L' | b'M'));
            return (Kind::Hex, self.run(from, HEX));
        }
        let mut end = self.run(digits, DIGIT);
        if self.byte(end) == b':' {
            return (Kind::Label, end);
        }
        if self.byte(end) != b'.' {
            return (Kind::Integer, end);
        }
        end = self.run(end + 1, DIGIT);
        if matches!(self.byte(end), b'e' | b'E') {
            let exponent = end + 1 + usize::from(matches!(self.byte(end + 1), b'+' | b'-'));
            if self.is(exponent, DIGIT) {
                end = self.run(exponent, DIGIT);
            }
        }
        (Kind::Float, end)
    }
}

/// The bytes of a quoted string without quotes: `\hh` is a byte, `\\` a backslash.
pub(super) fn unquote(quoted: &[u8]) -> Vec<u8> {
    let inner = quoted.strip_prefix(b"\"").unwrap_or(quoted);
    let inner = inner.strip_suffix(b"\"").unwrap_or(inner);
    let mut bytes = Vec::with_capacity(inner.len());
    let mut at = 0;
    while let Some(plain) = inner[at..].iter().position(|byte| *byte == b'\\') {
        bytes.extend_from_slice(&inner[at..at + plain]);
        at += plain;
        let hex = |offset: usize| inner.get(at + offset).and_then(|c| char::from(*c).to_digit(16));
        match (hex(1), hex(2)) {
            (Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                bytes.push(b'\\');
                at += if inner.get(at + 1) == Some(&b'\\') { 2 } else { 1 };
            }
        }
    }
    bytes.extend_from_slice(&inner[at..]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(Kind, &str)> {
        let mut lexer = Lexer::new(text.as_bytes());
        let mut all = Vec::new();
        loop {
            let token = lexer.next();
            if token.kind == Kind::End {
                return all;
            }
            all.push((token.kind, &text[token.start as usize..token.end as usize]));
        }
    }

    #[test]
    fn tokens_of_an_instruction() {
        let found = kinds("%x.1 = add nsw i32 %0, -5, !dbg !7 ; comment");
        let expected = [
            (Kind::Local, "%x.1"),
            (Kind::Punctuation(b'='), "="),
            (Kind::Word, "add"),
            (Kind::Word, "nsw"),
            (Kind::Word, "i32"),
            (Kind::LocalNumber, "%0"),
            (Kind::Punctuation(b','), ","),
            (Kind::Integer, "-5"),
            (Kind::Punctuation(b','), ","),
            (Kind::MetadataName, "!dbg"),
            (Kind::MetadataNumber, "!7"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn labels_numbers_and_strings() {
        let found =
            kinds("12: \"a b\": entry: 1.5e-3 0xH3C00 f0x3F800000 +inf -inf c\"x\\00\" $\"a\" #3 #dbg_value !{");
        let expected = [
            (Kind::Label, "12"),
            (Kind::Label, "\"a b\""),
            (Kind::Label, "entry"),
            (Kind::Float, "1.5e-3"),
            (Kind::Hex, "0xH3C00"),
            (Kind::Word, "f0x3F800000"),
            (Kind::Word, "+inf"),
            (Kind::Word, "-inf"),
            (Kind::Word, "c"),
            (Kind::Text, "\"x\\00\""),
            (Kind::Comdat, "$\"a\""),
            (Kind::Group, "#3"),
            (Kind::Record, "#dbg_value"),
            (Kind::Bang, "!"),
            (Kind::Punctuation(b'{'), "{"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn escapes() {
        assert_eq!(unquote(b"\"a\\00\\\\b\\zz\""), b"a\0\\b\\zz");
    }
}
