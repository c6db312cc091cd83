//! One PTX statement as data: read from text, written back.

use crate::Tok;
use crate::form::{Selector, mnemonic, spec_order};
use smallvec::SmallVec;
use std::fmt::Write as _;

/// A place in a statement's text, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// Length in bytes.
    pub len: u32,
}

/// What a node of the operand tree is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum NodeKind {
    /// A name: register, special register, variable, parameter, function or label.
    Name,
    /// An integer.
    Integer(i64),
    /// `0f3F800000` (`Some(false)`), `0d…` (`Some(true)`) or `1.5` (`None`); the text has the value.
    Float(Option<bool>),
    /// `_`
    Sink,
    /// `{…}` with that many elements, which follow.
    Vector(u16),
    /// `[…]` with that many parts, which follow.
    Address(u8),
    /// `a|b`; both follow.
    Pair,
    /// `(…)` with that many elements, which follow.
    Group(u16),
}

/// A node of the operand tree. Nodes are flat, in preorder.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Node<'a> {
    /// What it is.
    pub kind: NodeKind,
    /// The name or the number as written.
    pub text: &'a str,
    /// `!` stands before it.
    pub not: bool,
    /// `-` stands before it.
    pub minus: bool,
    /// `+ 4` or `- 4` after a name, in bytes.
    pub offset: Option<i64>,
    /// `[4]` after a name.
    pub index: bool,
    /// `.b0`, `.h1` and their like after a name.
    pub selector: Option<Selector>,
    /// Where it is.
    pub span: Span,
}

/// The predicate before a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guard<'a> {
    /// The predicate register.
    pub register: &'a str,
    /// `@!p`
    pub negated: bool,
}

/// One statement: `@p add.s32 %r1, %r2, 4;`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Statement<'a> {
    /// The predicate that guards it.
    pub guard: Option<Guard<'a>>,
    /// The mnemonic as written.
    pub mnemonic: &'a str,
    /// Where the mnemonic is.
    pub mnemonic_span: Span,
    /// `.unified` after an address.
    pub unified: bool,
    /// The operands, flat in preorder.
    pub nodes: Vec<Node<'a>>,
}

/// Text that is no statement.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// What was expected.
    pub message: String,
    /// Where, in bytes from the start of the text.
    pub at: usize,
}

/// Lists may nest this deep.
const MAX_DEPTH: usize = 8;

impl<'a> Statement<'a> {
    /// Reads one statement that ends in `;`.
    ///
    /// # Errors
    /// The text is no statement, or something follows it.
    pub fn parse(text: &'a str) -> Result<Statement<'a>, SyntaxError> {
        let mut statement = Statement::default();
        let end = statement.read(text, 0)?;
        let mut reader = Reader { text, at: end };
        reader.space();
        match reader.peek() {
            None => Ok(statement),
            Some(_) => Err(reader.error("expected the end of the text")),
        }
    }

    /// Reads the statement that starts at byte `from` into `self`, whose memory is used again.
    /// Returns the byte after its `;`.
    ///
    /// # Errors
    /// The text is no statement.
    pub fn read(&mut self, text: &'a str, from: usize) -> Result<usize, SyntaxError> {
        self.nodes.clear();
        self.guard = None;
        self.unified = false;
        let mut reader = Reader { text, at: from };
        reader.space();
        if reader.accept(b'@') {
            reader.space();
            let negated = reader.accept(b'!');
            reader.space();
            let register = reader.name().ok_or_else(|| reader.error("expected a predicate"))?;
            self.guard = Some(Guard { register, negated });
            reader.space();
        }
        let start = reader.at;
        self.mnemonic = reader.mnemonic();
        if self.mnemonic.is_empty() {
            return Err(reader.error("expected an instruction"));
        }
        self.mnemonic_span = span(start, reader.at);
        reader.space();
        if reader.accept(b';') {
            return Ok(reader.at);
        }
        loop {
            self.operand(&mut reader, 0)?;
            reader.space();
            if reader.accept(b';') {
                return Ok(reader.at);
            }
            if !reader.accept(b',') {
                return Err(reader.error("expected `,` or `;`"));
            }
            reader.space();
        }
    }

    fn operand(&mut self, reader: &mut Reader<'a>, depth: usize) -> Result<(), SyntaxError> {
        let place = self.nodes.len();
        let start = reader.at;
        self.half(reader, depth)?;
        reader.space();
        if reader.accept(b'|') {
            reader.space();
            let pair = node(NodeKind::Pair, "", span(start, start));
            self.nodes.insert(place, pair);
            self.half(reader, depth)?;
        }
        Ok(())
    }

    fn half(&mut self, reader: &mut Reader<'a>, depth: usize) -> Result<(), SyntaxError> {
        if depth > MAX_DEPTH {
            return Err(reader.error("too deeply nested"));
        }
        let start = reader.at;
        match reader.peek() {
            Some(b'{') => {
                let count = self.list(reader, b'}', depth)?;
                self.set_kind(count.0, NodeKind::Vector(count.1));
            }
            Some(b'(') => {
                if !self.mnemonic.starts_with("call")
                    && let Some(value) = reader.constant()
                {
                    let node = node(NodeKind::Integer(value), "", span(start, reader.at));
                    self.nodes.push(node);
                    return Ok(());
                }
                reader.at = start;
                let count = self.list(reader, b')', depth)?;
                self.set_kind(count.0, NodeKind::Group(count.1));
            }
            Some(b'[') => {
                let count = self.list(reader, b']', depth)?;
                if count.1 == 0 || count.1 > 64 {
                    return Err(reader.error("expected an address"));
                }
                self.set_kind(count.0, NodeKind::Address(count.1 as u8));
                if reader.rest().starts_with(".unified") {
                    reader.at += ".unified".len();
                    self.unified = true;
                }
            }
            _ => {
                let node = reader.leaf()?;
                self.nodes.push(node);
            }
        }
        Ok(())
    }

    fn set_kind(&mut self, place: usize, kind: NodeKind) {
        if let Some(node) = self.nodes.get_mut(place) {
            node.kind = kind;
        }
    }

    /// Reads `{a, b}`; returns the place of its node and the count.
    fn list(&mut self, reader: &mut Reader<'a>, close: u8, depth: usize) -> Result<(usize, u16), SyntaxError> {
        let place = self.nodes.len();
        self.nodes.push(node(NodeKind::Sink, "", span(reader.at, reader.at + 1)));
        reader.at += 1;
        reader.space();
        let mut count = 0u16;
        if reader.accept(close) {
            return Ok((place, 0));
        }
        loop {
            reader.space();
            self.operand(reader, depth + 1)?;
            count = count.checked_add(1).ok_or_else(|| reader.error("too many elements"))?;
            reader.space();
            if reader.accept(close) {
                return Ok((place, count));
            }
            if !reader.accept(b',') {
                let close = char::from(close);
                return Err(reader.error(&format!("expected `,` or `{close}`")));
            }
        }
    }

    /// The pieces of the mnemonic, with `unified` where an address has it.
    ///
    /// # Errors
    /// The first piece that no instruction has.
    pub fn toks(&self) -> Result<SmallVec<[Tok; 24]>, &'a str> {
        let mut toks = SmallVec::new();
        for piece in self.mnemonic.split('.') {
            toks.push(Tok::from_text(piece).ok_or(piece)?);
        }
        Ok(toks)
    }

    /// The statement as PTX, its modifiers in the specification's order.
    pub fn print(&self) -> String {
        let mut out = String::new();
        if let Some(guard) = self.guard {
            let _ = write!(out, "@{}{} ", if guard.negated { "!" } else { "" }, guard.register);
        }
        match self.toks() {
            Ok(toks) => out.push_str(&mnemonic(spec_order(&toks).into_iter())),
            Err(_) => out.push_str(self.mnemonic),
        }
        let mut at = 0;
        let mut first = true;
        while at < self.nodes.len() {
            out.push_str(if first { " " } else { ", " });
            first = false;
            at = self.print_node(at, &mut out);
        }
        out.push(';');
        out
    }

    /// Prints the tree at `at`; returns the node after it. Its depth was limited by the reader.
    fn print_node(&self, at: usize, out: &mut String) -> usize {
        let Some(node) = self.nodes.get(at) else {
            return at + 1;
        };
        let (open, close, count) = match node.kind {
            NodeKind::Vector(count) => ("{", "}", usize::from(count)),
            NodeKind::Group(count) => ("(", ")", usize::from(count)),
            NodeKind::Address(count) => ("[", if self.unified { "].unified" } else { "]" }, usize::from(count)),
            NodeKind::Pair => {
                let middle = self.print_node(at + 1, out);
                out.push('|');
                return self.print_node(middle, out);
            }
            _ => {
                print_leaf(node, out);
                return at + 1;
            }
        };
        out.push_str(open);
        let mut next = at + 1;
        for index in 0..count {
            if index > 0 {
                out.push_str(", ");
            }
            next = self.print_node(next, out);
        }
        out.push_str(close);
        next
    }
}

fn print_leaf(node: &Node, out: &mut String) {
    let sign = match (node.not, node.minus) {
        (true, _) => "!",
        (_, true) => "-",
        _ => "",
    };
    out.push_str(sign);
    match node.kind {
        NodeKind::Sink => out.push('_'),
        NodeKind::Integer(value) if node.text.is_empty() => {
            let _ = write!(out, "{value}");
        }
        _ => out.push_str(node.text),
    }
    if let Some(offset) = node.offset {
        let _ = if node.index { write!(out, "[{offset}]") } else { write!(out, "+{offset}") };
    }
}

fn span(start: usize, end: usize) -> Span {
    Span { start: start as u32, len: end.saturating_sub(start) as u32 }
}

fn node<'a>(kind: NodeKind, text: &'a str, span: Span) -> Node<'a> {
    Node { kind, text, not: false, minus: false, offset: None, index: false, selector: None, span }
}

/// A place in PTX text.
pub(crate) struct Reader<'a> {
    pub text: &'a str,
    pub at: usize,
}

/// Bytes of names after the first.
pub(crate) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

impl<'a> Reader<'a> {
    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(crate) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    pub(crate) fn error(&self, message: &str) -> SyntaxError {
        SyntaxError { message: message.to_owned(), at: self.at }
    }

    pub(crate) fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Skips white space and comments.
    #[inline]
    pub(crate) fn space(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b' ' | b'\n' | b'\t' | b'\r' | 0x0c => self.at += 1,
                b'/' => {
                    if !self.comment() {
                        return;
                    }
                }
                _ => return,
            }
        }
    }

    /// Skips a comment; false where there is none.
    #[cold]
    fn comment(&mut self) -> bool {
        let bytes = self.text.as_bytes();
        let rest = bytes.get(self.at + 2..).unwrap_or(&[]);
        self.at = match bytes.get(self.at + 1) {
            Some(b'/') => rest.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| self.at + 2 + at),
            Some(b'*') => {
                let close = rest.windows(2).position(|pair| pair == b"*/");
                close.map_or(bytes.len(), |length| self.at + 2 + length + 2)
            }
            _ => return false,
        };
        true
    }

    /// A name, without a component after a dot.
    pub(crate) fn name(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        match bytes.get(start) {
            Some(byte) if byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'%') => {}
            _ => return None,
        }
        let mut end = start + 1;
        while bytes.get(end).is_some_and(|byte| is_name(*byte)) {
            end += 1;
        }
        self.at = end;
        self.text.get(start..end)
    }

    fn mnemonic(&mut self) -> &'a str {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut end = start;
        while let Some(&byte) = bytes.get(end) {
            let double = byte == b':' && bytes.get(end + 1) == Some(&b':');
            let number = byte == b':'
                && end > start
                && bytes[end - 1].is_ascii_digit()
                && bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
            if byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.' || number {
                end += 1;
            } else if double {
                end += 2;
            } else {
                break;
            }
        }
        self.at = end;
        self.text.get(start..end).unwrap_or("")
    }

    fn leaf(&mut self) -> Result<Node<'a>, SyntaxError> {
        let start = self.at;
        let not = self.accept(b'!');
        let minus = !not && self.accept(b'-');
        if not || minus {
            self.space();
        }
        let begin = self.at;
        if let Some(byte) = self.peek()
            && (byte.is_ascii_digit() || matches!(byte, b'(' | b'~' | b'.' | b'-' | b'+'))
        {
            self.at = start;
            return self.number(start).ok_or_else(|| self.error("expected a number"));
        }
        let Some(name) = self.name() else {
            return Err(self.error("expected an operand"));
        };
        let _ = begin;
        let mut leaf = node(NodeKind::Name, name, span(start, self.at));
        if name == "_" {
            leaf.kind = NodeKind::Sink;
        } else if name == "WARP_SZ" {
            leaf.kind = NodeKind::Integer(32);
        }
        leaf.not = not;
        leaf.minus = minus;
        if self.peek() == Some(b'.') {
            self.component(&mut leaf);
        }
        let before = self.at;
        self.space();
        match self.peek() {
            Some(b'[') => {
                self.at += 1;
                self.space();
                leaf.offset = self.constant();
                leaf.index = true;
                self.space();
                if leaf.offset.is_none() || !self.accept(b']') {
                    return Err(self.error("expected a constant and `]`"));
                }
            }
            Some(b'+') => {
                self.at += 1;
                self.space();
                leaf.offset = Some(self.constant().ok_or_else(|| self.error("expected a constant"))?);
            }
            _ => self.at = before,
        }
        leaf.span = span(start, self.at);
        Ok(leaf)
    }

    /// `.x` of a special or vector register, or a video selector.
    fn component(&mut self, leaf: &mut Node<'a>) {
        let start = self.at + 1 - leaf.text.len() - 1;
        let dot = self.at;
        self.at += 1;
        let Some(part) = self.name() else {
            self.at = dot;
            return;
        };
        leaf.text = self.text.get(start..self.at).unwrap_or(leaf.text);
        leaf.selector = selector(part);
    }

    /// A number or a constant expression.
    fn number(&mut self, start: usize) -> Option<Node<'a>> {
        let rest = self.rest();
        let minus = rest.starts_with('-');
        let digits = rest.trim_start_matches(['-', ' ']);
        let skipped = rest.len() - digits.len();
        if let Some(kind) = float_kind(digits) {
            let bytes = digits.as_bytes();
            let mut end = 0;
            while let Some(&byte) = bytes.get(end) {
                let exponent_sign =
                    matches!(byte, b'+' | b'-') && kind.is_none() && end > 0 && matches!(bytes[end - 1], b'e' | b'E');
                if !(byte.is_ascii_alphanumeric() || byte == b'.' || exponent_sign) {
                    break;
                }
                end += 1;
            }
            self.at += skipped + end;
            let text = self.text.get(start + skipped..self.at)?;
            let mut leaf = node(NodeKind::Float(kind), text, span(start, self.at));
            leaf.minus = minus;
            return Some(leaf);
        }
        let value = self.constant()?;
        Some(node(NodeKind::Integer(value), "", span(start, self.at)))
    }

    /// A constant integer expression (PTX ISA 4.6): operators by precedence, in one loop.
    pub(crate) fn constant(&mut self) -> Option<i64> {
        crate::constant::constant(self)
    }
}

/// A selector of bytes or halves: a letter and digits.
pub(crate) fn selector(part: &str) -> Option<Selector> {
    let digits = part.get(1..)?.as_bytes();
    let count = digits.len() as u8;
    let highest = digits.iter().max()?.checked_sub(b'0')?;
    if !digits.iter().all(u8::is_ascii_digit) || count > 4 {
        return None;
    }
    let falls = digits.windows(2).all(|pair| pair[0] > pair[1]);
    match part.as_bytes()[0] {
        b'b' if count == 1 && highest < 4 => Some(Selector::Byte(highest)),
        b'h' if count == 1 && highest < 2 => Some(Selector::Half(highest)),
        b'b' if highest < 8 => Some(Selector::Bytes { count, mask: falls && highest < 4 }),
        b'h' if highest < 4 => Some(Selector::Halves { count, mask: falls && highest < 2 }),
        _ => None,
    }
}

/// Whether a number is floating point, and which notation.
fn float_kind(text: &str) -> Option<Option<bool>> {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.get(1)) {
        (Some(b'0'), Some(b'f' | b'F')) => Some(Some(false)),
        (Some(b'0'), Some(b'd' | b'D')) => Some(Some(true)),
        (Some(b'0'), Some(b'x' | b'X' | b'b' | b'B')) => None,
        _ => {
            let end = bytes.iter().position(|byte| !byte.is_ascii_digit())?;
            match bytes[end] {
                b'.' => Some(None),
                b'e' | b'E' => Some(None),
                _ => None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_print_back() {
        for text in [
            "add.s32 %r1, %r2, -4;",
            "@!%p1 ld.global.v2.f32 {%f1, %f2}, [%rd1+8];",
            "setp.eq.s32 %p1|%p2, %r1, %r2;",
            "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%rd0], [%rd1, {%r1, %r2}], [%rd2];",
            "mov.f32 %f1, 0f3F800000;",
            "bar.sync 0;",
            "ret;",
        ] {
            let statement = Statement::parse(text).unwrap();
            assert_eq!(statement.print(), text);
        }
    }

    #[test]
    fn bad_text_is_refused() {
        for text in ["", "add.s32 %r1", "add.s32 %r1,;", "add.s32 {%r1;", "@ add;", "add [];"] {
            assert!(Statement::parse(text).is_err(), "{text}");
        }
    }
}
