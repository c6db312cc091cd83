//! Text to [`Module`].
//!
//! The text is cut into tokens once, the tokens into items (a token that starts a line and can start an item starts
//! one), and items are read in three rounds: types; headers of globals and functions; initializers and bodies. So
//! symbols and types may be used above their definition. A body is cut into statements the same way, and all blocks and
//! results are made before any operand is read, so values may be used above their definition too. An error costs the
//! statement or the item it stands in; the reader goes on with the next.
//!
//! Decides what the text says; whether that is a valid program is the verifier's business. Only what the module could
//! not express is refused here (unknown names, operands that do not have the type written before them, numbers that do
//! not fit, results that are not there).

mod body;
mod constants;
mod control;
mod cursor;
mod instructions;
mod items;
mod lexer;
mod memory;
mod target;
mod types;

use std::fmt;
use std::ops::Range;

use cranelift_entity::{EntityRef, SecondaryMap};

pub(crate) use constants::parse_float;

use crate::entities::{Block, FuncId, GlobalId, Inst};
use crate::module::Module;

/// Most errors of one run; what follows is not read.
pub const MAX_ERRORS: usize = 100;
/// Most scalar or vector leaves of an aggregate in a signature.
pub const MAX_SIGNATURE_LEAVES: u64 = 1024;

/// What is wrong with the text, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    /// One line that names what is wrong and what was expected.
    pub message: String,
    /// Bytes of the text it is about.
    pub span: Range<usize>,
    /// Further places with what they have to do with it.
    pub notes: Vec<(String, Range<usize>)>,
}

impl ReadError {
    /// An error without notes.
    pub fn new(message: impl Into<String>, span: Range<usize>) -> ReadError {
        ReadError { message: one_line(message.into()), span, notes: Vec::new() }
    }

    /// Stands for an error that follows from one that is reported already; it is dropped where errors are collected.
    fn consequence() -> ReadError {
        ReadError::new("", 0..0)
    }

    fn is_consequence(&self) -> bool {
        self.message.is_empty()
    }

    /// Adds a note.
    #[must_use]
    pub fn note(mut self, message: impl Into<String>, span: Range<usize>) -> ReadError {
        self.notes.push((message.into(), span));
        self
    }

    /// `line:col: message` in `text`.
    pub fn with_position(&self, text: &str) -> String {
        let (line, col) = line_col(text, self.span.start);
        format!("{line}:{col}: {}", self.message)
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ReadError {}

/// Line and column (in characters), both from 1, of a byte of the text.
pub fn line_col(text: &str, offset: usize) -> (usize, usize) {
    let offset = offset.min(text.len());
    let before = &text.as_bytes()[..offset];
    let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let line = before.iter().filter(|b| **b == b'\n').count() + 1;
    let col = before[line_start..].iter().filter(|b| **b & 0xc0 != 0x80).count() + 1;
    (line, col)
}

/// The message with control characters, which names may hold, escaped.
pub(crate) fn one_line(message: String) -> String {
    if !message.contains(char::is_control) {
        return message;
    }
    let escape = |c: char| if c.is_control() { c.escape_debug().to_string() } else { c.to_string() };
    message.chars().map(escape).collect()
}

/// First byte of the line that holds a byte.
fn line_start(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(&[]);
    before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1)
}

pub(crate) type PResult<T> = Result<T, Box<ReadError>>;

/// Where the parts of one function stand in the text.
#[derive(Clone, Default, Debug)]
pub struct FuncSpans {
    /// The whole header, up to the body.
    pub header: Range<usize>,
    /// The name with its sigil.
    pub name: Range<usize>,
    /// Each instruction, without its comment.
    insts: SecondaryMap<Inst, (u32, u32)>,
    /// Each block's label.
    blocks: SecondaryMap<Block, (u32, u32)>,
}

impl FuncSpans {
    /// Bytes of an instruction; empty at 0 for one that is not from the text.
    pub fn inst(&self, inst: Inst) -> Range<usize> {
        let (start, end) = self.insts[inst];
        start as usize..end as usize
    }

    /// Bytes of a block's label.
    pub fn block(&self, block: Block) -> Range<usize> {
        let (start, end) = self.blocks[block];
        start as usize..end as usize
    }
}

/// Where the parts of a module stand in the text it was read from.
#[derive(Clone, Default, Debug)]
pub struct SpanMap {
    funcs: SecondaryMap<FuncId, FuncSpans>,
    globals: SecondaryMap<GlobalId, (u32, u32)>,
}

impl SpanMap {
    /// Spans of a function.
    pub fn func(&self, func: FuncId) -> &FuncSpans {
        &self.funcs[func]
    }

    /// Says where a function's header stands, for readers of other languages.
    pub fn set_func(&mut self, func: FuncId, span: Range<usize>) {
        let spans = &mut self.funcs[func];
        spans.header = span.clone();
        spans.name = span;
    }

    /// Says where instructions, given by their numbers, stand: all at the byte `at`.
    pub fn set_insts(&mut self, func: FuncId, insts: Range<usize>, at: usize) {
        let spans = &mut self.funcs[func];
        let at = u32::try_from(at).unwrap_or(0);
        for inst in insts {
            spans.insts[Inst::new(inst)] = (at, at.saturating_add(1));
        }
    }

    /// Says where a global stands.
    pub fn set_global(&mut self, global: GlobalId, span: Range<usize>) {
        let place = |byte| u32::try_from(byte).unwrap_or(0);
        self.globals[global] = (place(span.start), place(span.end));
    }

    /// The name of a global, with its sigil.
    pub fn global(&self, global: GlobalId) -> Range<usize> {
        let (start, end) = self.globals[global];
        start as usize..end as usize
    }
}

/// Reads a module.
///
/// # Errors
/// Everything that is wrong with the text, in the order of the text, at most [`MAX_ERRORS`].
pub fn read_module(text: &str) -> Result<Module, Vec<ReadError>> {
    read_module_with_spans(text).map(|(module, _)| module)
}

/// Reads a module and keeps where its parts stand in the text.
///
/// # Errors
/// As [`read_module`].
pub fn read_module_with_spans(text: &str) -> Result<(Module, SpanMap), Vec<ReadError>> {
    if u32::try_from(text.len()).is_err() {
        return Err(vec![ReadError::new("the text is longer than 4 GiB", 0..0)]);
    }
    let mut errors = Vec::new();
    let source = lexer::lex(text, &mut errors);
    let lexical: Vec<usize> = errors.iter().map(|e| line_start(text, e.span.start)).collect();
    let (module, spans) = items::read(&source, &mut errors);
    // What the parser misses in a line that is not lexically right says nothing new.
    let mut number = 0;
    errors.retain(|e| {
        number += 1;
        number <= lexical.len() || lexical.binary_search(&line_start(text, e.span.start)).is_err()
    });
    if errors.is_empty() {
        return Ok((module, spans));
    }
    errors.sort_by_key(|e| (e.span.start, e.span.end));
    errors.truncate(MAX_ERRORS);
    Err(errors)
}
