//! Text to tokens: one pass over the bytes, no allocation but the token vector.
//!
//! Decides what a token is. Numbers and names are only delimited here; what they mean is the parser's business.

use std::borrow::Cow;
use std::ops::Range;

use super::ReadError;

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// `%name` or `%"name"`.
    Local,
    /// `@name` or `@"name"`.
    Symbol,
    /// A bare word: keyword, opcode, label, type.
    Word,
    /// Starts with a digit, or with a minus sign before a digit, `inf` or `nan`.
    Number,
    /// `"…"`.
    String,
    /// `(`
    LParen,
    /// `)`
    RParen,
    /// `[`
    LBracket,
    /// `]`
    RBracket,
    /// `{`
    LBrace,
    /// `}`
    RBrace,
    /// `<`
    Lt,
    /// `>`
    Gt,
    /// `,`
    Comma,
    /// `:`
    Colon,
    /// `=`
    Eq,
    /// `+`
    Plus,
    /// `-` alone
    Minus,
    /// `->`
    Arrow,
    /// `!`
    Bang,
    /// `@` alone
    At,
    /// `|`
    Pipe,
    /// Nothing is left.
    End,
}

impl Kind {
    /// How messages name the kind.
    pub fn describe(self) -> &'static str {
        match self {
            Kind::Local => "a `%name`",
            Kind::Symbol => "an `@name`",
            Kind::Word => "a word",
            Kind::Number => "a number",
            Kind::String => "a string",
            Kind::LParen => "`(`",
            Kind::RParen => "`)`",
            Kind::LBracket => "`[`",
            Kind::RBracket => "`]`",
            Kind::LBrace => "`{`",
            Kind::RBrace => "`}`",
            Kind::Lt => "`<`",
            Kind::Gt => "`>`",
            Kind::Comma => "`,`",
            Kind::Colon => "`:`",
            Kind::Eq => "`=`",
            Kind::Plus => "`+`",
            Kind::Minus => "`-`",
            Kind::Arrow => "`->`",
            Kind::Bang => "`!`",
            Kind::At => "`@`",
            Kind::Pipe => "`|`",
            Kind::End => "the end",
        }
    }
}

/// One token: its bytes in the text and where it stands in its line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    /// What it is.
    pub kind: Kind,
    /// It is the first of its line.
    pub first_on_line: bool,
    /// It stands in the first column.
    pub first_column: bool,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Token {
    /// The bytes it covers.
    pub fn span(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// The text with its tokens.
pub(crate) struct Source<'a> {
    /// The text.
    pub text: &'a str,
    /// Its tokens, in order.
    pub tokens: Vec<Token>,
}

impl<'a> Source<'a> {
    /// The text of a token.
    pub fn lexeme(&self, token: Token) -> &'a str {
        self.text.get(token.span()).unwrap_or("")
    }

    /// The name behind the sigil of a `%name` or `@name`, or a word or quoted label, with quotes and escapes removed.
    pub fn name(&self, token: Token) -> Result<Cow<'a, str>, ReadError> {
        let text = self.lexeme(token);
        let bare = match token.kind {
            Kind::Local | Kind::Symbol => text.get(1..).unwrap_or(""),
            _ => text,
        };
        if !bare.starts_with('"') {
            return Ok(Cow::Borrowed(bare));
        }
        let inner = bare.get(1..bare.len().saturating_sub(1)).unwrap_or("");
        if !inner.contains('\\') {
            return Ok(Cow::Borrowed(inner));
        }
        let bytes = unescape(inner, token)?;
        String::from_utf8(bytes).map(Cow::Owned).map_err(|_| ReadError::new("the name is not UTF-8", token.span()))
    }

    /// The bytes of a string token.
    pub fn string(&self, token: Token) -> Result<Vec<u8>, ReadError> {
        let text = self.lexeme(token);
        unescape(text.get(1..text.len().saturating_sub(1)).unwrap_or(""), token)
    }
}

/// Replaces `\hh` by the byte.
fn unescape(inner: &str, token: Token) -> Result<Vec<u8>, ReadError> {
    let bytes = inner.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if *byte != b'\\' {
            out.push(*byte);
            at += 1;
            continue;
        }
        let digits = inner.get(at + 1..at + 3).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        match digits.and_then(|d| u8::from_str_radix(d, 16).ok()) {
            Some(value) => out.push(value),
            None => {
                let message = "an escape in a string is `\\` and two hexadecimal digits";
                return Err(ReadError::new(message, token.span()));
            }
        }
        at += 3;
    }
    Ok(out)
}

const START: u8 = 1;
const INSIDE: u8 = 2;
const DIGIT: u8 = 4;

/// What each byte may be part of.
static CLASS: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut b = 0;
    while b < 256 {
        let c = b as u8;
        if c.is_ascii_alphabetic() || c == b'_' || c == b'.' || c == b'$' {
            table[b] = START | INSIDE;
        } else if c.is_ascii_digit() {
            table[b] = INSIDE | DIGIT;
        } else if c == b'-' {
            table[b] = INSIDE;
        }
        b += 1;
    }
    table
};

struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
    tokens: Vec<Token>,
    first_on_line: bool,
    line_start: usize,
}

/// Cuts `text` into tokens. Bytes that start none are reported and skipped.
pub(crate) fn lex<'a>(text: &'a str, errors: &mut Vec<ReadError>) -> Source<'a> {
    let mut lexer = Lexer {
        bytes: text.as_bytes(),
        at: 0,
        tokens: Vec::with_capacity(text.len() / 4),
        first_on_line: true,
        line_start: 0,
    };
    while let Some(byte) = lexer.peek(0) {
        if errors.len() >= super::MAX_ERRORS {
            break;
        }
        if let Err(error) = lexer.token(byte) {
            errors.push(error);
        }
    }
    Source { text, tokens: lexer.tokens }
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn class(&self, ahead: usize) -> u8 {
        self.peek(ahead).map_or(0, |b| CLASS[usize::from(b)])
    }

    fn push(&mut self, kind: Kind, start: usize) {
        self.tokens.push(Token {
            kind,
            first_on_line: self.first_on_line,
            first_column: start == self.line_start,
            start: start as u32,
            end: self.at as u32,
        });
        self.first_on_line = false;
    }

    fn token(&mut self, byte: u8) -> Result<(), ReadError> {
        let start = self.at;
        let single = match byte {
            b' ' | b'\t' | b'\r' => {
                self.at += 1;
                return Ok(());
            }
            b'\n' => {
                self.at += 1;
                self.first_on_line = true;
                self.line_start = self.at;
                return Ok(());
            }
            b';' => {
                let rest = &self.bytes[self.at..];
                self.at += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                return Ok(());
            }
            b'%' | b'@' => return self.sigil(byte, start),
            b'"' => {
                self.string()?;
                self.push(Kind::String, start);
                return Ok(());
            }
            b'-' => return self.minus(start),
            b'(' => Kind::LParen,
            b')' => Kind::RParen,
            b'[' => Kind::LBracket,
            b']' => Kind::RBracket,
            b'{' => Kind::LBrace,
            b'}' => Kind::RBrace,
            b'<' => Kind::Lt,
            b'>' => Kind::Gt,
            b',' => Kind::Comma,
            b':' => Kind::Colon,
            b'=' => Kind::Eq,
            b'+' => Kind::Plus,
            b'!' => Kind::Bang,
            b'|' => Kind::Pipe,
            _ if self.class(0) & START != 0 => {
                self.word();
                self.push(Kind::Word, start);
                return Ok(());
            }
            _ if self.class(0) & DIGIT != 0 => {
                self.number();
                self.push(Kind::Number, start);
                return Ok(());
            }
            _ => return Err(self.stray()),
        };
        self.at += 1;
        self.push(single, start);
        Ok(())
    }

    /// A byte that starts no token: skips the whole character.
    fn stray(&mut self) -> ReadError {
        let start = self.at;
        self.at += 1;
        while self.peek(0).is_some_and(|b| b & 0xc0 == 0x80) {
            self.at += 1;
        }
        let bytes = &self.bytes[start..self.at];
        let shown = std::str::from_utf8(bytes).ok().and_then(|s| s.chars().next()).unwrap_or('?');
        ReadError::new(format!("unexpected character `{}`", shown.escape_debug()), start..self.at)
    }

    /// Bare name characters; `-` does not take part in `->`, and `::` takes part between two of them.
    fn name(&mut self) {
        loop {
            let class = self.class(0);
            if class & INSIDE == 0 || (self.peek(0) == Some(b'-') && self.peek(1) == Some(b'>')) {
                return;
            }
            self.at += 1;
        }
    }

    fn word(&mut self) {
        self.name();
        while self.peek(0) == Some(b':') && self.peek(1) == Some(b':') && self.class(2) & (START | DIGIT) != 0 {
            self.at += 2;
            self.name();
            // `sp::2:4` is one piece.
            if self.peek(0) == Some(b':') && self.class(1) & DIGIT != 0 && self.bytes[self.at - 1].is_ascii_digit() {
                self.at += 1;
                self.name();
            }
        }
    }

    fn sigil(&mut self, byte: u8, start: usize) -> Result<(), ReadError> {
        self.at += 1;
        let kind = if byte == b'%' { Kind::Local } else { Kind::Symbol };
        if self.peek(0) == Some(b'"') {
            self.string()?;
        } else if self.class(0) & INSIDE != 0 {
            self.name();
        } else if byte == b'@' {
            self.push(Kind::At, start);
            return Ok(());
        } else {
            return Err(ReadError::new("expected a name after `%`", start..self.at));
        }
        self.push(kind, start);
        Ok(())
    }

    fn minus(&mut self, start: usize) -> Result<(), ReadError> {
        self.at += 1;
        let rest = &self.bytes[self.at..];
        if self.class(0) & DIGIT != 0 {
            self.number();
            self.push(Kind::Number, start);
        } else if rest.starts_with(b"inf") || rest.starts_with(b"nan") {
            self.at += 3;
            self.push(Kind::Number, start);
        } else if self.peek(0) == Some(b'>') {
            self.at += 1;
            self.push(Kind::Arrow, start);
        } else {
            self.push(Kind::Minus, start);
        }
        Ok(())
    }

    /// Digits, letters and points; a sign after the `e` of a decimal exponent.
    fn number(&mut self) {
        let first = self.at;
        loop {
            let sign = matches!(self.peek(0), Some(b'-' | b'+'))
                && matches!(self.bytes.get(self.at.wrapping_sub(1)), Some(b'e' | b'E'))
                && !matches!(self.bytes.get(first..first + 2), Some(b"0x" | b"0h" | b"0f" | b"0d"))
                && self.class(1) & DIGIT != 0;
            if self.class(0) & (START | DIGIT) == 0 && !sign {
                return;
            }
            self.at += 1;
        }
    }

    /// From one quotation mark to the next in the same line.
    fn string(&mut self) -> Result<(), ReadError> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek(0) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                None | Some(b'\n') => {
                    return Err(ReadError::new("the string has no closing `\"` in its line", start..self.at));
                }
                Some(_) => self.at += 1,
            }
        }
    }
}
