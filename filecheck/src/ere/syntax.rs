//! Parses a POSIX extended regular expression into a tree.
//!
//! The dialect is the one FileCheck patterns are written in: newline-sensitive POSIX ERE over bytes,
//! `\1` to `\9` as back-references, any other escaped character standing for itself, and
//! `[[:<:]]` / `[[:>:]]` for word boundaries. It does not match anything; see [`super::Regex`].

use std::fmt;

/// Why a regular expression was refused. The texts are those POSIX gives to the corresponding codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyntaxError {
    /// `[` without its `]`.
    Brackets,
    /// `(` without `)`, or the reverse.
    Parentheses,
    /// `{` of a repetition without its `}`.
    Braces,
    /// A repetition count above 255, or an upper bound below the lower one.
    RepetitionCount,
    /// A range whose end sorts before its start.
    Range,
    /// `[:name:]` with an unknown name.
    CharacterClass,
    /// `[.name.]` or `[=name=]` with an unknown name.
    CollatingElement,
    /// `*`, `+`, `?` or `{n}` with nothing to repeat.
    RepetitionOperand,
    /// A branch with nothing in it.
    Empty,
    /// A back-reference to a group that is not complete at that point.
    BackReference,
    /// The text ends in a single backslash.
    TrailingBackslash,
    /// Groups nested, or repetitions expanded, beyond what this implementation accepts.
    TooLarge,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Brackets => "brackets ([ ]) not balanced",
            Self::Parentheses => "parentheses not balanced",
            Self::Braces => "braces not balanced",
            Self::RepetitionCount => "invalid repetition count(s)",
            Self::Range => "invalid character range",
            Self::CharacterClass => "invalid character class",
            Self::CollatingElement => "invalid collating element",
            Self::RepetitionOperand => "repetition-operator operand invalid",
            Self::Empty => "empty (sub)expression",
            Self::BackReference => "invalid backreference number",
            Self::TrailingBackslash => "trailing backslash (\\)",
            Self::TooLarge => "regular expression too large",
        })
    }
}

impl std::error::Error for SyntaxError {}

/// A set of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    /// The set of one byte.
    pub fn single(byte: u8) -> Self {
        let mut set = Self::default();
        set.insert(byte);
        set
    }

    /// Adds a byte.
    pub fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    /// Adds all bytes of another set.
    pub fn extend(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word |= other);
    }

    /// Takes a byte out.
    pub fn remove(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] &= !(1 << (byte & 63));
    }

    /// Whether the byte is in the set.
    pub fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] & (1 << (byte & 63)) != 0
    }

    /// Every byte that is not in the set.
    pub fn complement(self) -> Self {
        Self(self.0.map(|word| !word))
    }

    /// Adds the other case of every ASCII letter in the set.
    pub fn fold_case(&mut self) {
        for byte in b'a'..=b'z' {
            let upper = byte.to_ascii_uppercase();
            if self.contains(byte) || self.contains(upper) {
                self.insert(byte);
                self.insert(upper);
            }
        }
    }

    /// The set as maximal runs, in order.
    pub fn ranges(&self) -> impl Iterator<Item = (u8, u8)> + '_ {
        let mut next = 0u16;
        std::iter::from_fn(move || {
            while next < 256 && !self.contains(next as u8) {
                next += 1;
            }
            if next == 256 {
                return None;
            }
            let start = next as u8;
            while next < 256 && self.contains(next as u8) {
                next += 1;
            }
            Some((start, (next - 1) as u8))
        })
    }
}

/// One node of the tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Matches the empty string.
    Empty,
    /// One byte.
    Byte(u8),
    /// One byte out of a set.
    Set(Box<ByteSet>),
    /// `^`: at the start of the text or after a newline.
    LineStart,
    /// `$`: at the end of the text or before a newline.
    LineEnd,
    /// `[[:<:]]`.
    WordStart,
    /// `[[:>:]]`.
    WordEnd,
    /// A parenthesized group with its number, from 1.
    Group(u32, Box<Node>),
    /// One after the other.
    Concat(Vec<Node>),
    /// Any one of these.
    Alternate(Vec<Node>),
    /// `min` to `max` times (`None`: without limit).
    Repeat(Box<Node>, u32, Option<u32>),
    /// The text that a group matched.
    BackReference(u32),
}

/// A parsed expression.
pub struct Parsed {
    /// The tree.
    pub root: Node,
    /// How many groups it has.
    pub groups: u32,
    /// Whether a back-reference occurs in it.
    pub has_back_reference: bool,
}

/// Groups may nest this deep; more is [`SyntaxError::TooLarge`].
const NESTING_LIMIT: u32 = 128;
/// The largest count POSIX promises for `{n}`.
const REPETITION_LIMIT: u32 = 255;

/// Parses `text`; with `ignore_case`, letters stand for both of their cases.
///
/// # Errors
/// The first thing that is wrong, as [`SyntaxError`].
pub fn parse(text: &[u8], ignore_case: bool) -> Result<Parsed, SyntaxError> {
    let mut parser =
        Parser { text, at: 0, ignore_case, groups: 0, complete: Vec::new(), has_back_reference: false, depth: 0 };
    let root = parser.alternation(false)?;
    Ok(Parsed { root, groups: parser.groups, has_back_reference: parser.has_back_reference })
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    ignore_case: bool,
    groups: u32,
    /// For each group, whether its `)` was seen: only those may be referred to.
    complete: Vec<bool>,
    has_back_reference: bool,
    depth: u32,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn alternation(&mut self, in_group: bool) -> Result<Node, SyntaxError> {
        let mut branches = Vec::new();
        loop {
            let mut parts = Vec::new();
            while let Some(byte) = self.peek() {
                if byte == b'|' || (in_group && byte == b')') {
                    break;
                }
                parts.push(self.repeated()?);
            }
            match parts.len() {
                0 => return Err(SyntaxError::Empty),
                1 => branches.append(&mut parts),
                _ => branches.push(Node::Concat(parts)),
            }
            if !self.eat(b'|') {
                break;
            }
        }
        Ok(if branches.len() == 1 { branches.remove(0) } else { Node::Alternate(branches) })
    }

    fn starts_repetition(&self) -> bool {
        match self.rest() {
            [b'*' | b'+' | b'?', ..] => true,
            [b'{', digit, ..] => digit.is_ascii_digit(),
            _ => false,
        }
    }

    fn repeated(&mut self) -> Result<Node, SyntaxError> {
        let atom = self.atom()?;
        if !self.starts_repetition() {
            return Ok(atom);
        }
        if matches!(atom, Node::LineStart) {
            return Err(SyntaxError::RepetitionOperand);
        }
        let (min, max) = match self.peek() {
            Some(b'*') => (0, None),
            Some(b'+') => (1, None),
            Some(b'?') => (0, Some(1)),
            _ => self.counts()?,
        };
        self.at += 1;
        if self.starts_repetition() {
            return Err(SyntaxError::RepetitionOperand);
        }
        Ok(Node::Repeat(Box::new(atom), min, max))
    }

    /// `{n}`, `{n,}` or `{n,m}`, leaving the closing brace as the next byte.
    fn counts(&mut self) -> Result<(u32, Option<u32>), SyntaxError> {
        self.at += 1;
        let min = self.count()?;
        let max = if !self.eat(b',') {
            Some(min)
        } else if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            Some(self.count()?)
        } else {
            None
        };
        if max.is_some_and(|max| max < min) {
            return Err(SyntaxError::RepetitionCount);
        }
        match self.peek() {
            Some(b'}') => Ok((min, max)),
            _ if self.rest().contains(&b'}') => Err(SyntaxError::RepetitionCount),
            _ => Err(SyntaxError::Braces),
        }
    }

    fn count(&mut self) -> Result<u32, SyntaxError> {
        let mut value = 0;
        while let Some(digit) = self.peek().filter(u8::is_ascii_digit) {
            value = value * 10 + u32::from(digit - b'0');
            if value > REPETITION_LIMIT {
                return Err(SyntaxError::RepetitionCount);
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn literal(&self, byte: u8) -> Node {
        if self.ignore_case && byte.is_ascii_alphabetic() {
            let mut set = ByteSet::single(byte);
            set.fold_case();
            Node::Set(Box::new(set))
        } else {
            Node::Byte(byte)
        }
    }

    fn atom(&mut self) -> Result<Node, SyntaxError> {
        let Some(byte) = self.peek() else {
            return Err(SyntaxError::Empty);
        };
        self.at += 1;
        match byte {
            b'(' => self.group(),
            b')' => Err(SyntaxError::Parentheses),
            b'^' => Ok(Node::LineStart),
            b'$' => Ok(Node::LineEnd),
            b'*' | b'+' | b'?' => Err(SyntaxError::RepetitionOperand),
            b'{' if self.peek().is_some_and(|byte| byte.is_ascii_digit()) => Err(SyntaxError::RepetitionOperand),
            b'.' => Ok(Node::Set(Box::new(ByteSet::single(b'\n').complement()))),
            b'[' => self.bracket(),
            b'\\' => self.escape(),
            _ => Ok(self.literal(byte)),
        }
    }

    fn group(&mut self) -> Result<Node, SyntaxError> {
        self.depth += 1;
        if self.depth > NESTING_LIMIT {
            return Err(SyntaxError::TooLarge);
        }
        self.groups += 1;
        let number = self.groups;
        self.complete.push(false);
        let inner = match self.peek() {
            None => return Err(SyntaxError::Parentheses),
            Some(b')') => Node::Empty,
            Some(_) => self.alternation(true)?,
        };
        if !self.eat(b')') {
            return Err(SyntaxError::Parentheses);
        }
        if let Some(complete) = self.complete.get_mut(number as usize - 1) {
            *complete = true;
        }
        self.depth -= 1;
        Ok(Node::Group(number, Box::new(inner)))
    }

    fn escape(&mut self) -> Result<Node, SyntaxError> {
        let Some(byte) = self.peek() else {
            return Err(SyntaxError::TrailingBackslash);
        };
        self.at += 1;
        if !(b'1'..=b'9').contains(&byte) {
            return Ok(self.literal(byte));
        }
        let number = u32::from(byte - b'0');
        if self.complete.get(number as usize - 1) != Some(&true) {
            return Err(SyntaxError::BackReference);
        }
        self.has_back_reference = true;
        Ok(Node::BackReference(number))
    }

    fn bracket(&mut self) -> Result<Node, SyntaxError> {
        for (text, node) in [(b"[:<:]]", Node::WordStart), (b"[:>:]]", Node::WordEnd)] {
            if self.rest().starts_with(text) {
                self.at += text.len();
                return Ok(node);
            }
        }
        let negated = self.eat(b'^');
        let mut set = ByteSet::default();
        // In front, these are themselves and begin no range.
        for byte in [b']', b'-'] {
            if self.eat(byte) {
                set.insert(byte);
                break;
            }
        }
        while self.peek() != Some(b']') {
            match self.rest() {
                [] => return Err(SyntaxError::Brackets),
                [b'-', b']', ..] => {
                    set.insert(b'-');
                    self.at += 1;
                }
                [b'-', ..] => return Err(SyntaxError::Range),
                _ => self.bracket_item(&mut set)?,
            }
        }
        self.at += 1;
        if self.ignore_case {
            set.fold_case();
        }
        if negated {
            set = set.complement();
            // Newline-sensitive matching: only an explicit newline matches one.
            set.remove(b'\n');
        }
        Ok(Node::Set(Box::new(set)))
    }

    fn bracket_item(&mut self, set: &mut ByteSet) -> Result<(), SyntaxError> {
        if self.rest().starts_with(b"[:") {
            let name = self.bracket_name(b':', SyntaxError::CharacterClass)?;
            let contains = character_class(&name).ok_or(SyntaxError::CharacterClass)?;
            (0..=127u8).filter(contains).for_each(|byte| set.insert(byte));
            return Ok(());
        }
        let start = self.range_end()?;
        let is_range = matches!(self.rest(), [b'-', end, ..] if *end != b']');
        if !is_range {
            set.insert(start);
            return Ok(());
        }
        self.at += 1;
        let end = self.range_end()?;
        if end < start {
            return Err(SyntaxError::Range);
        }
        (start..=end).for_each(|byte| set.insert(byte));
        Ok(())
    }

    /// One end of a range: a byte, or a single byte written as `[.x.]` or `[=x=]`.
    fn range_end(&mut self) -> Result<u8, SyntaxError> {
        for mark in [b'.', b'='] {
            if self.rest().starts_with(&[b'[', mark]) {
                let name = self.bracket_name(mark, SyntaxError::CollatingElement)?;
                return match name.as_slice() {
                    [byte] => Ok(*byte),
                    _ => Err(SyntaxError::CollatingElement),
                };
            }
        }
        let byte = self.peek().ok_or(SyntaxError::Brackets)?;
        self.at += 1;
        Ok(byte)
    }

    /// The name inside `[:name:]`, `[.name.]` or `[=name=]`.
    fn bracket_name(&mut self, mark: u8, error: SyntaxError) -> Result<Vec<u8>, SyntaxError> {
        let inner = self.rest().get(2..).unwrap_or_default();
        let length = inner.windows(2).position(|pair| pair == [mark, b']']).ok_or(if inner.contains(&b']') {
            error
        } else {
            SyntaxError::Brackets
        })?;
        let name = inner[..length].to_vec();
        self.at += length + 4;
        Ok(name)
    }
}

fn character_class(name: &[u8]) -> Option<fn(&u8) -> bool> {
    Some(match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| matches!(byte, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| matches!(byte, b' ' | b'\t'..=b'\r'),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}
