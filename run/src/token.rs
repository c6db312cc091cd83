//! Directive lines as tokens.
//!
//! A line is one when it begins, after blanks, with `;!`. One that is indented by two blanks or more behind that goes on
//! with the directive before. `;` starts a comment.

use std::ops::Range;

use crate::error::Error;

/// What a token is.
#[derive(Clone, PartialEq, Debug)]
pub enum Kind {
    /// A name or keyword.
    Word(String),
    /// A name after `@`.
    Symbol(String),
    /// A whole number.
    Whole(i128),
    /// A decimal number.
    Real(f64),
    /// A text in quotes.
    Text(Vec<u8>),
    /// A sign.
    Sign(&'static str),
    /// The end of a directive.
    Line,
}

/// A token with its place.
#[derive(Clone, PartialEq, Debug)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Bytes of the text.
    pub span: Range<usize>,
}

/// Signs, longer ones before those that they begin with.
const SIGNS: &[&str] = &[
    "<<", ">>", "==", "!=", "<=", ">=", "..", "+", "-", "*", "/", "%", "&", "|", "^", "!", "<", ">", "=", "(", ")",
    "[", "]", "{", "}", ",", ":", "'",
];

/// Tokens of all directive lines, each directive ended by [`Kind::Line`].
///
/// # Errors
/// A character or number that is none, an unclosed text.
pub fn tokens(text: &str) -> Result<Vec<Token>, Error> {
    let mut out: Vec<Token> = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let at = start;
        start += line.len();
        let blank = line.len() - line.trim_start().len();
        let Some(body) = line.trim_start().strip_prefix(";!") else { continue };
        let goes_on = body.starts_with("  ") || body.starts_with('\t');
        if !goes_on {
            end(&mut out);
        }
        let mut lexer = Lexer { text: body.trim_end(), base: at + blank + 2, at: 0 };
        while let Some(token) = lexer.next()? {
            out.push(token);
        }
    }
    end(&mut out);
    Ok(out)
}

/// Ends the directive that has begun, if one has.
fn end(out: &mut Vec<Token>) {
    if let Some(last) = out.last().filter(|last| last.kind != Kind::Line) {
        let span = last.span.end..last.span.end;
        out.push(Token { kind: Kind::Line, span });
    }
}

struct Lexer<'a> {
    text: &'a str,
    base: usize,
    at: usize,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Length of the longest start of the rest whose characters pass.
    fn run(&self, from: usize, pass: impl Fn(char) -> bool) -> usize {
        let rest = self.rest().get(from..).unwrap_or_default();
        from + rest.find(|c| !pass(c)).unwrap_or(rest.len())
    }

    fn token(&mut self, kind: Kind, length: usize) -> Token {
        let span = self.base + self.at..self.base + self.at + length;
        self.at += length;
        Token { kind, span }
    }

    fn next(&mut self) -> Result<Option<Token>, Error> {
        self.at += self.run(0, char::is_whitespace);
        let Some(first) = self.rest().chars().next().filter(|c| *c != ';') else { return Ok(None) };
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if first.is_ascii_digit() {
            return self.number().map(Some);
        }
        if word(first) {
            let length = self.run(0, word);
            let kind = Kind::Word(self.rest()[..length].to_owned());
            return Ok(Some(self.token(kind, length)));
        }
        match first {
            '@' => {
                let length = self.run(1, |c| word(c) || matches!(c, '.' | '$' | '-'));
                let kind = Kind::Symbol(self.rest()[1..length].to_owned());
                Ok(Some(self.token(kind, length)))
            }
            '"' => self.quoted().map(Some),
            _ => match SIGNS.iter().find(|sign| self.rest().starts_with(**sign)) {
                Some(sign) => Ok(Some(self.token(Kind::Sign(sign), sign.len()))),
                None => {
                    let at = self.base + self.at;
                    Err(Error::new(format!("`{first}` means nothing here"), at..at + first.len_utf8()))
                }
            },
        }
    }

    /// `12`, `0xff`, `1_000`, `1.5`, `2e-3`. Two dots after a number are a range.
    fn number(&mut self) -> Result<Token, Error> {
        let digits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut length = self.run(0, digits);
        let hex = self.rest().starts_with("0x");
        let mut real = false;
        let after = |this: &Self, at: usize| this.rest().as_bytes().get(at).copied().unwrap_or(0);
        if !hex && after(self, length) == b'.' && after(self, length + 1) != b'.' {
            real = true;
            length = self.run(length + 1, digits);
        }
        let exponent = |text: &str| !hex && text.ends_with(['e', 'E']);
        if exponent(&self.rest()[..length]) && matches!(after(self, length), b'-' | b'+') {
            length = self.run(length + 1, digits);
        }
        let text = self.rest()[..length].replace('_', "");
        real |= !hex && text.contains(['e', 'E']);
        let kind = if real {
            text.parse().ok().map(Kind::Real)
        } else if let Some(digits) = text.strip_prefix("0x") {
            // All ones in 128 bits are -1, as in the IR.
            u128::from_str_radix(digits, 16).ok().map(|n| Kind::Whole(n as i128))
        } else {
            text.parse().ok().map(Kind::Whole)
        };
        let span = self.base + self.at..self.base + self.at + length;
        let kind = kind.ok_or_else(|| Error::new(format!("`{text}` is no number"), span))?;
        Ok(self.token(kind, length))
    }

    /// `"text"` with `\hh` and `\\`, as in the IR.
    fn quoted(&mut self) -> Result<Token, Error> {
        let bytes = self.rest().as_bytes();
        let mut out = Vec::new();
        let mut at = 1;
        loop {
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') if bytes.get(at + 1) == Some(&b'\\') => {
                    out.push(b'\\');
                    at += 2;
                }
                Some(b'\\') => {
                    let hex = self.rest().get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
                    let place = self.base + self.at + at;
                    out.push(hex.ok_or_else(|| Error::new("`\\` needs two hexadecimal digits", place..place + 1))?);
                    at += 3;
                }
                Some(byte) => {
                    out.push(*byte);
                    at += 1;
                }
                None => {
                    let place = self.base + self.at;
                    return Err(Error::new("the text is not closed", place..place + at));
                }
            }
        }
        Ok(self.token(Kind::Text(out), at + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        tokens(text).unwrap().into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn only_directive_lines_count() {
        assert_eq!(kinds("; a\nkernel\n  ;! x ; comment\n"), [Kind::Word("x".into()), Kind::Line]);
    }

    #[test]
    fn numbers() {
        let numbers = [Kind::Whole(1000), Kind::Whole(255), Kind::Real(1.5), Kind::Real(2e-3), Kind::Real(1e5)];
        assert_eq!(kinds(";! 1_000 0xff 1.5 2e-3 1e5")[..5], numbers);
        assert_eq!(kinds(";! 0..3")[..3], [Kind::Whole(0), Kind::Sign(".."), Kind::Whole(3)]);
        assert!(tokens(";! 12ab").is_err());
    }

    #[test]
    fn indented_lines_go_on() {
        let directives = |text: &str| kinds(text).iter().filter(|k| **k == Kind::Line).count();
        assert_eq!(directives(";! a\n;!   b\n;! c"), 2);
        assert_eq!(directives(";! a\n; comment\nx\n;!\tb\n"), 1);
        assert_eq!(directives(";!\n;! ; nothing\n"), 0);
    }

    #[test]
    fn places_are_those_of_the_file() {
        let found = tokens("x\n ;! ab?").unwrap_err();
        assert_eq!(found.span, 8..9);
        assert!(tokens(";! \"ab").is_err());
    }
}
