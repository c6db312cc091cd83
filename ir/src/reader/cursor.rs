//! A position in a stretch of tokens, and the errors of expecting something there.

use std::borrow::Cow;

use super::lexer::{Kind, Source, Token};
use super::{PResult, ReadError};

/// Walks the tokens of one item or statement; at its end it sees [`Kind::End`].
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'s, 'a> {
    src: &'s Source<'a>,
    at: usize,
    end: usize,
}

impl<'s, 'a> Cursor<'s, 'a> {
    /// Over the tokens `at..end`.
    pub fn new(src: &'s Source<'a>, at: usize, end: usize) -> Cursor<'s, 'a> {
        Cursor { src, at, end: end.min(src.tokens.len()) }
    }

    /// The tokens it walks over.
    pub fn source(&self) -> &'s Source<'a> {
        self.src
    }

    /// The bytes of the token that starts at a byte.
    pub fn span_at(&self, start: u32) -> std::ops::Range<usize> {
        let found = self.src.tokens.binary_search_by_key(&start, |token| token.start);
        found.ok().and_then(|at| self.src.tokens.get(at)).map_or(0..0, |token| token.span())
    }

    /// Index of the next token.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The next token; at the end an empty one right behind the last.
    pub fn token(&self) -> Token {
        self.ahead(0)
    }

    /// The token `n` after the next.
    pub fn ahead(&self, n: usize) -> Token {
        if self.at + n < self.end
            && let Some(token) = self.src.tokens.get(self.at + n)
        {
            return *token;
        }
        let last = self.end.checked_sub(1).and_then(|i| self.src.tokens.get(i)).map_or(0, |t| t.end);
        Token { kind: Kind::End, first_on_line: false, first_column: false, start: last, end: last }
    }

    /// Kind of the last token of the stretch.
    pub fn last_kind(&self) -> Kind {
        let last = self.end.checked_sub(1).filter(|last| *last >= self.at);
        last.and_then(|at| self.src.tokens.get(at)).map_or(Kind::End, |t| t.kind)
    }

    /// Kind of the next token.
    pub fn kind(&self) -> Kind {
        self.token().kind
    }

    /// Text of the next token.
    pub fn text(&self) -> &'a str {
        self.src.lexeme(self.token())
    }

    /// Text of the token `n` after the next.
    pub fn text_ahead(&self, n: usize) -> &'a str {
        self.src.lexeme(self.ahead(n))
    }

    /// Text of any token.
    pub fn lexeme(&self, token: Token) -> &'a str {
        self.src.lexeme(token)
    }

    /// The name that a token spells.
    pub fn name(&self, token: Token) -> PResult<Cow<'a, str>> {
        self.src.name(token).map_err(Box::new)
    }

    /// The bytes of a string token.
    pub fn string(&self, token: Token) -> PResult<Vec<u8>> {
        self.src.string(token).map_err(Box::new)
    }

    /// Takes the next token.
    pub fn advance(&mut self) -> Token {
        let token = self.token();
        if self.at < self.end {
            self.at += 1;
        }
        token
    }

    /// Takes the next token if it is of this kind.
    pub fn eat(&mut self, kind: Kind) -> Option<Token> {
        (self.kind() == kind).then(|| self.advance())
    }

    /// True when the next token is this word.
    pub fn is_word(&self, word: &str) -> bool {
        self.kind() == Kind::Word && self.text() == word
    }

    /// Takes the next token if it is this word.
    pub fn eat_word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        if is {
            self.advance();
        }
        is
    }

    /// Takes a token of this kind; `what` says what it would have been.
    pub fn expect(&mut self, kind: Kind, what: &str) -> PResult<Token> {
        if self.kind() == kind { Ok(self.advance()) } else { Err(self.expected(what)) }
    }

    /// Takes a punctuation mark.
    pub fn punct(&mut self, kind: Kind) -> PResult<Token> {
        self.expect(kind, kind.describe())
    }

    /// Takes this word.
    pub fn word(&mut self, word: &str) -> PResult<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.expected(&format!("`{word}`"))) }
    }

    /// The error that something else than the next token should stand here.
    pub fn expected(&self, what: &str) -> Box<ReadError> {
        let token = self.token();
        let found = match token.kind {
            Kind::End => "the end of the line".to_string(),
            _ => format!("`{}`", clip(self.text())),
        };
        Box::new(ReadError::new(format!("expected {what}, found {found}"), token.span()))
    }

    /// An error about a token.
    pub fn error_at(&self, token: Token, message: impl Into<String>) -> Box<ReadError> {
        Box::new(ReadError::new(message, token.span()))
    }

    /// An error about the next token.
    pub fn error(&self, message: impl Into<String>) -> Box<ReadError> {
        self.error_at(self.token(), message)
    }

    /// Nothing may be left.
    pub fn finish(&self, what: &str) -> PResult<()> {
        if self.kind() == Kind::End {
            return Ok(());
        }
        Err(self.error(format!("unexpected `{}` after the {what}", clip(self.text()))))
    }

    /// A number that fits in 32 bits without sign.
    pub fn u32(&mut self, what: &str) -> PResult<u32> {
        self.unsigned(what, u64::from(u32::MAX)).map(|n| n as u32)
    }

    /// A number from 0 to `max`.
    pub fn unsigned(&mut self, what: &str, max: u64) -> PResult<u64> {
        let token = self.expect(Kind::Number, what)?;
        match integer(self.lexeme(token)) {
            Some((false, n)) if n <= u128::from(max) => Ok(n as u64),
            _ => Err(self.error_at(token, format!("expected {what}, a number from 0 to {max}"))),
        }
    }

    /// An alignment: a power of two up to 2^30.
    pub fn alignment(&mut self) -> PResult<u32> {
        let token = self.token();
        let n = self.u32("an alignment")?;
        if n.is_power_of_two() && n <= 1 << 30 {
            return Ok(n);
        }
        Err(self.error_at(token, format!("an alignment is a power of two up to 2^30, not {n}")))
    }

    /// Items separated by commas up to `close`, which is taken too.
    pub fn list(&mut self, close: Kind, mut item: impl FnMut(&mut Self) -> PResult<()>) -> PResult<()> {
        if self.eat(close).is_some() {
            return Ok(());
        }
        loop {
            item(self)?;
            if self.eat(close).is_some() {
                return Ok(());
            }
            if self.eat(Kind::Comma).is_none() {
                return Err(self.expected(&format!("`,` or {}", close.describe())));
            }
        }
    }
}

/// At most 40 characters of a lexeme, for messages.
pub(crate) fn clip(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(40) {
        Some((at, _)) => Cow::Owned(format!("{}…", &text[..at])),
        None => Cow::Borrowed(text),
    }
}

/// Sign and magnitude of a decimal or `0x` integer.
pub(crate) fn integer(text: &str) -> Option<(bool, u128)> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let magnitude = match digits.strip_prefix("0x") {
        Some(hex) if hex.bytes().all(|b| b.is_ascii_hexdigit()) => u128::from_str_radix(hex, 16).ok()?,
        Some(_) => return None,
        None if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().ok()?,
        None => return None,
    };
    Some((negative, magnitude))
}

/// `1 name`, `2 names`.
pub(crate) fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Most names that are searched for a likely spelling.
const MAX_CANDIDATES: usize = 4096;

/// The candidate closest to `word`, if it is close enough to be a misspelling of it.
pub(crate) fn nearest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    // Of many names some are always close, and looking at all of them takes long.
    if !(3..=40).contains(&word.len()) || candidates.size_hint().0 > MAX_CANDIDATES {
        return None;
    }
    let limit = (word.len() / 3).clamp(1, 3);
    candidates
        .filter(|c| c.len().abs_diff(word.len()) <= limit)
        .map(|c| (edit_distance(word.as_bytes(), c.as_bytes()), c))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, c)| c)
}

/// Insertions, deletions, replacements and exchanges of neighbours that make `b` of `a`.
fn edit_distance(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut cost = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                cost = cost.min(before[j - 1] + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// `; did you mean …`, or nothing.
pub(crate) fn hint<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> String {
    hint_name("", word, candidates)
}

/// As [`hint`], for names behind a sigil.
pub(crate) fn hint_name<'c>(sigil: &str, word: &str, candidates: impl Iterator<Item = &'c str>) -> String {
    nearest(word, candidates).map_or_else(String::new, |c| format!("; did you mean `{sigil}{c}`?"))
}
