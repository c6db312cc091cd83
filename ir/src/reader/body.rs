//! A function's body: statements, blocks, values.
//!
//! Two rounds over the statements. The first makes every block with its parameters and every instruction with its
//! results (still without types), so that the second, which reads operands, knows all names. Types of results follow
//! from what is written, except those of `gep`, which follow from its pointer and are settled at the end.

use std::borrow::Cow;

use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::constants::constants_of;
use super::cursor::{Cursor, clip, counted, hint, hint_name};
use super::lexer::{Kind, Source, Token};
use super::types::{Context, starts_type, value_type};
use super::{FuncSpans, PResult, ReadError};
use crate::dfg::{ConstData, Dfg, SourceLoc, ValueDef};
use crate::entities::{Block, FuncId, Inst, Value};
use crate::flags::Flags;
use crate::instruction::{Extra, InstData, ValueList};
use crate::layout::Layout;
use crate::opcode::Opcode;
use crate::types::Type;

/// Types of an instruction's results; `INVALID` where they are not known yet.
pub(super) type Results = SmallVec<[Type; 4]>;

/// An instruction as read.
pub(super) struct Parsed {
    pub data: InstData,
    pub results: Results,
}

/// A statement that is an instruction.
struct Statement {
    inst: Inst,
    /// Tokens behind the `=`, if there is one.
    tokens: (usize, usize),
    /// The names left of `=`.
    names: (usize, usize),
}

/// The state of reading one body.
pub(super) struct Body<'m, 'a> {
    pub cx: &'m mut Context<'a>,
    pub func: FuncId,
    pub dfg: Dfg,
    layout: Layout,
    /// Values by name, with the first byte of the name: small entries, since large functions miss the cache here.
    values: FxHashMap<Cow<'a, str>, (Value, u32)>,
    blocks: FxHashMap<Cow<'a, str>, (Block, u32)>,
    /// Types that operands must have, for values whose type was not known when they were read.
    expected: Vec<(Value, Type, Token)>,
    /// `gep`s whose pointer's type was not known when they were read.
    geps: Vec<Inst>,
    current: Option<Block>,
    /// It is reported already that instructions stand before the first label.
    headless: bool,
}

/// Reads the body in `tokens` into the function.
pub(super) fn read<'a>(
    src: &Source<'a>,
    cx: &mut Context<'a>,
    func: FuncId,
    tokens: (usize, usize),
    names: &[(Cow<'a, str>, Token)],
    spans: &mut FuncSpans,
    errors: &mut Vec<ReadError>,
) {
    let before = errors.len();
    let mut body = Body {
        cx,
        func,
        dfg: Dfg::new(),
        layout: Layout::new(),
        values: FxHashMap::default(),
        blocks: FxHashMap::default(),
        expected: Vec::new(),
        geps: Vec::new(),
        current: None,
        headless: false,
    };
    let ranges = split(src, tokens);
    let mut statements = Vec::with_capacity(ranges.len());
    body.values.reserve(ranges.len());
    body.dfg.value_names.reserve(ranges.len());
    for (start, end) in ranges {
        let mut c = Cursor::new(src, start, end);
        let done = body.declare(&mut c, names, spans, &mut statements);
        collect(done, errors);
    }
    if body.layout.entry().is_none() && errors.len() == before {
        errors.push(ReadError::new("the function has no block", spans.name.clone()));
    }
    for statement in &statements {
        if errors.len() >= super::MAX_ERRORS {
            return;
        }
        let mut c = Cursor::new(src, statement.tokens.0, statement.tokens.1);
        let done = body.instruction(&mut c, statement, src);
        collect(done, errors);
    }
    body.settle(spans, errors);
    let function = &mut body.cx.module.funcs[func];
    function.dfg = body.dfg;
    function.layout = body.layout;
}

fn collect(result: PResult<()>, errors: &mut Vec<ReadError>) {
    if let Err(error) = result
        && !error.is_consequence()
        && errors.len() < super::MAX_ERRORS
    {
        errors.push(*error);
    }
}

/// Token ranges of the statements. One starts with the first token of a line outside brackets unless the line before
/// ends with a comma, behind the colon of a label, and, whatever brackets are open, with `%name =` at the start of a line.
fn split(src: &Source, (start, end): (usize, usize)) -> Vec<(usize, usize)> {
    let mut ranges = Vec::with_capacity((end - start) / 6);
    let (mut from, mut depth, mut fresh, mut after_comma) = (start, 0usize, true, false);
    let tokens = src.tokens.get(start..end).unwrap_or(&[]);
    for (offset, token) in tokens.iter().enumerate() {
        let at = start + offset;
        let definition = token.kind == Kind::Local && tokens.get(offset + 1).is_some_and(|t| t.kind == Kind::Eq);
        let starts = token.first_on_line && ((depth == 0 && !after_comma) || definition);
        if starts || fresh {
            if at > from {
                ranges.push((from, at));
            }
            from = at;
            depth = 0;
        }
        fresh = depth == 0 && token.kind == Kind::Colon;
        after_comma = token.kind == Kind::Comma;
        match token.kind {
            Kind::LParen | Kind::LBracket | Kind::LBrace => depth += 1,
            Kind::RParen | Kind::RBracket | Kind::RBrace => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    if end > from {
        ranges.push((from, end));
    }
    ranges
}

/// True when the statement is a label: a word or quoted name up to a colon, which ends no instruction.
fn is_label(c: &Cursor) -> bool {
    matches!(c.kind(), Kind::Word | Kind::String) && c.last_kind() == Kind::Colon
}

/// True for names that the printer makes up: they are not kept, so that numbers stay dense.
fn is_numbered(name: &str, prefix: &str) -> bool {
    let digits = name.strip_prefix(prefix).unwrap_or("");
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

impl<'a> Body<'_, 'a> {
    /// First round: makes the block or the instruction of a statement.
    fn declare(
        &mut self,
        c: &mut Cursor<'_, 'a>,
        params: &[(Cow<'a, str>, Token)],
        spans: &mut FuncSpans,
        statements: &mut Vec<Statement>,
    ) -> PResult<()> {
        if is_label(c) {
            return self.label(c, params, spans);
        }
        let start = c.token();
        let names = c.position();
        let mut count = 0;
        if c.kind() == Kind::Local {
            loop {
                c.expect(Kind::Local, "the name of a result")?;
                count += 1;
                if c.eat(Kind::Comma).is_none() {
                    break;
                }
            }
            if c.kind() != Kind::Eq {
                return Err(c.expected("`=` after the names of the results"));
            }
            c.advance();
        }
        let Some(block) = self.current else {
            if std::mem::replace(&mut self.headless, true) {
                return Err(Box::new(ReadError::consequence()));
            }
            return Err(c.error_at(start, "an instruction stands before the label of the first block"));
        };
        let args = ValueList::new();
        let extra = Extra::None;
        let inst = self.dfg.make_inst(InstData {
            op: Opcode::Unreachable,
            flags: Flags::EMPTY,
            ty: Type::INVALID,
            args,
            extra,
        });
        self.layout.append_inst(inst, block);
        let body = c.position();
        let mut rest = *c;
        while rest.kind() != Kind::End {
            rest.advance();
        }
        spans.insts[inst] = (start.start, rest.token().end);
        if count > 0 {
            let types: Results = std::iter::repeat_n(Type::INVALID, count).collect();
            self.dfg.make_results(inst, &types);
        }
        let mut naming = Cursor::new(c.source(), names, body);
        for value in self.dfg.results(inst) {
            let token = naming.advance();
            naming.advance();
            self.define(&naming, token, value)?;
        }
        statements.push(Statement { inst, tokens: (body, rest.position()), names: (names, body) });
        Ok(())
    }

    fn define(&mut self, c: &Cursor<'_, 'a>, token: Token, value: Value) -> PResult<()> {
        let name = c.name(token)?;
        if name.is_empty() {
            return Err(c.error_at(token, "a value's name is empty"));
        }
        if let Some((_, first)) = self.values.get(&name) {
            let error = ReadError::new(format!("`%{}` is defined twice", clip(&name)), token.span());
            return Err(Box::new(error.note("first here", c.span_at(*first))));
        }
        if !is_numbered(&name, "") {
            self.dfg.value_names.insert(value, name.as_ref().into());
        }
        self.values.insert(name, (value, token.start));
        Ok(())
    }

    /// `name(%a: type, …) annotations:`
    fn label(
        &mut self,
        c: &mut Cursor<'_, 'a>,
        params: &[(Cow<'a, str>, Token)],
        spans: &mut FuncSpans,
    ) -> PResult<()> {
        let token = c.advance();
        let name = c.name(token)?;
        let block = self.dfg.make_block();
        let entry = self.layout.entry().is_none();
        self.layout.append_block(block);
        self.current = Some(block);
        spans.blocks[block] = (token.start, token.end);
        if let Some((_, first)) = self.blocks.get(&name) {
            let error = ReadError::new(format!("the block `{}` is defined twice", clip(&name)), token.span());
            return Err(Box::new(error.note("first here", c.span_at(*first))));
        }
        if !is_numbered(&name, "block") {
            self.dfg.block_names.insert(block, name.as_ref().into());
        }
        self.blocks.insert(name, (block, token.start));
        if entry {
            let types = self.cx.module.sig_params(&self.cx.module.funcs[self.func].sig);
            for (ty, (_, token)) in types.into_iter().zip(params) {
                let value = self.dfg.append_block_param(block, ty);
                self.define(c, *token, value)?;
            }
        }
        if let Some(open) = c.eat(Kind::LParen) {
            if entry {
                return Err(c.error_at(open, "the entry block has no parameters besides the function's"));
            }
            c.list(Kind::RParen, |c| {
                let token = c.expect(Kind::Local, "a parameter `%name: type`")?;
                c.punct(Kind::Colon)?;
                let ty = value_type(c)?;
                let value = self.dfg.append_block_param(block, ty);
                self.define(c, token, value)
            })?;
        }
        while c.kind() == Kind::Word {
            self.annotation(c, block)?;
        }
        c.punct(Kind::Colon)?;
        c.finish("label")
    }

    fn annotation(&mut self, c: &mut Cursor<'_, 'a>, block: Block) -> PResult<()> {
        let token = c.advance();
        match c.lexeme(token) {
            "unroll" => {
                c.punct(Kind::LParen)?;
                let n = if c.eat_word("full") { u32::MAX } else { c.u32("a number or `full`")? };
                self.dfg.blocks[block].hints.unroll = Some(n);
            }
            "pipeline" => {
                c.punct(Kind::LParen)?;
                c.word("stages")?;
                c.punct(Kind::Eq)?;
                self.dfg.blocks[block].hints.pipeline = Some(c.u32("a number of stages")?);
            }
            word => return Err(c.error_at(token, format!("unknown loop annotation `{}`", clip(word)))),
        }
        c.punct(Kind::RParen).map(|_| ())
    }

    /// Second round: reads an instruction's operands.
    fn instruction(&mut self, c: &mut Cursor<'_, 'a>, statement: &Statement, src: &Source<'a>) -> PResult<()> {
        let inst = statement.inst;
        let op = c.token();
        let parsed = self.operation(c, self.dfg.num_results(inst))?;
        if c.eat_word("loc") {
            self.dfg.locs[inst] = location(c)?;
        }
        c.finish("instruction")?;
        let given = self.dfg.num_results(inst);
        let made = parsed.results.len();
        if given == 0 && made > 0 {
            self.dfg.make_results(inst, &parsed.results);
        } else if given != made {
            let named = Cursor::new(src, statement.names.0, statement.names.1).token();
            let message = format!(
                "`{}` has {}, {} left of `=`",
                clip(c.lexeme(op)),
                counted(made, "result"),
                counted(given, "name")
            );
            return Err(c.error_at(named, message));
        }
        for (value, ty) in self.dfg.results(inst).zip(&parsed.results) {
            self.dfg.set_ty(value, *ty);
        }
        self.dfg.insts[inst] = parsed.data;
        if parsed.results.first() == Some(&Type::INVALID) {
            self.geps.push(inst);
        }
        Ok(())
    }

    /// Gives late `gep`s their types, then checks the operands that waited for one.
    fn settle(&mut self, spans: &FuncSpans, errors: &mut Vec<ReadError>) {
        let mut waiting: SecondaryMap<Inst, bool> = SecondaryMap::new();
        self.geps.iter().for_each(|inst| waiting[*inst] = true);
        for first in std::mem::take(&mut self.geps) {
            if !waiting[first] {
                continue;
            }
            // Walk to a pointer whose type is known, then back.
            let mut path: Vec<Inst> = Vec::new();
            let mut at = Some(first);
            let mut ty = Type::INVALID;
            while let Some(inst) = at {
                if !waiting[inst] {
                    break;
                }
                waiting[inst] = false;
                path.push(inst);
                let Some(base) = self.dfg.args(inst).first().copied() else { break };
                ty = self.dfg.ty(base);
                at = match self.dfg.def(base) {
                    ValueDef::Result(inst, _) if ty.is_invalid() => Some(inst),
                    _ => None,
                };
            }
            if ty.is_invalid() {
                // In a cycle, or behind an instruction that is reported already.
                if errors.is_empty() {
                    let message = "the type of this address depends on itself";
                    errors.push(ReadError::new(message, spans.inst(first)));
                }
                continue;
            }
            for inst in path {
                if let Some(value) = self.dfg.first_result(inst) {
                    self.dfg.set_ty(value, ty);
                }
            }
        }
        for (value, expected, token) in std::mem::take(&mut self.expected) {
            let found = self.dfg.ty(value);
            if found != expected && !found.is_invalid() && errors.len() < super::MAX_ERRORS {
                errors.push(mismatch(expected, found, token));
            }
        }
    }

    /// The value that a `%name` token stands for.
    fn lookup(&self, c: &Cursor<'_, 'a>, token: Token) -> PResult<Value> {
        let name = c.name(token)?;
        if let Some((value, _)) = self.values.get(&name) {
            return Ok(*value);
        }
        let known = hint_name("%", &name, self.values.keys().map(AsRef::as_ref));
        Err(c.error_at(token, format!("unknown value `%{}`{known}", clip(&name))))
    }

    /// An operand of a known type: `%value`, `@symbol` or a constant.
    pub fn operand(&mut self, c: &mut Cursor<'_, 'a>, ty: Type) -> PResult<Value> {
        if c.kind() != Kind::Local {
            return self.constant(c, ty);
        }
        let token = c.advance();
        let value = self.lookup(c, token)?;
        let found = self.dfg.ty(value);
        if found.is_invalid() {
            self.expected.push((value, ty, token));
        } else if found != ty {
            return Err(Box::new(mismatch(ty, found, token)));
        }
        Ok(value)
    }

    /// An operand whose type is not written: a `%value` or `@symbol` has its own, a constant has `default` unless a type
    /// stands before it.
    pub fn any_operand(&mut self, c: &mut Cursor<'_, 'a>, default: Type) -> PResult<Value> {
        match c.kind() {
            Kind::Local => {
                let token = c.advance();
                self.lookup(c, token)
            }
            Kind::Symbol => {
                let (literal, ty) = self.cx.address(c)?;
                Ok(self.dfg.constant(ty, constants_of(literal)))
            }
            _ if starts_type(c) => {
                let ty = value_type(c)?;
                self.operand(c, ty)
            }
            _ => self.constant(c, default),
        }
    }

    /// A constant of a known type.
    fn constant(&mut self, c: &mut Cursor<'_, 'a>, ty: Type) -> PResult<Value> {
        if !ty.is_vector() {
            let literal = self.cx.scalar_literal(c, ty)?;
            return Ok(self.dfg.constant(ty, constants_of(literal)));
        }
        let (scalar, lanes) = (ty.scalar(), ty.lanes() as usize);
        if c.eat_word("poison") {
            return Ok(self.dfg.poison(ty));
        }
        if c.eat_word("zero") {
            return Ok(self.dfg.bits(ty, 0));
        }
        if c.eat_word("splat") {
            c.punct(Kind::LParen)?;
            let lane = self.constant(c, scalar)?;
            c.punct(Kind::RParen)?;
            return Ok(self.dfg.constant(ty, ConstData::Vector(vec![lane; lanes])));
        }
        let Some(open) = c.eat(Kind::Lt) else { return Err(c.expected(&format!("a value of type {ty}"))) };
        let mut list = Vec::with_capacity(lanes);
        c.list(Kind::Gt, |c| {
            list.push(self.constant(c, scalar)?);
            Ok(())
        })?;
        if list.len() != lanes {
            return Err(c.error_at(open, format!("{ty} has {}, {} given", counted(lanes, "lane"), list.len())));
        }
        Ok(self.dfg.constant(ty, ConstData::Vector(list)))
    }

    /// True for the first block.
    pub fn is_entry(&self, block: Block) -> bool {
        self.layout.entry() == Some(block)
    }

    /// The block that the next token names.
    pub fn block(&self, c: &mut Cursor<'_, 'a>) -> PResult<Block> {
        let token = c.token();
        if !matches!(token.kind, Kind::Word | Kind::String) {
            return Err(c.expected("the label of a block"));
        }
        c.advance();
        let name = c.name(token)?;
        match self.blocks.get(&name) {
            Some((block, _)) => Ok(*block),
            None => {
                let known = hint(&name, self.blocks.keys().map(AsRef::as_ref));
                Err(c.error_at(token, format!("unknown block `{}`{known}", clip(&name))))
            }
        }
    }

    /// A list of operands of known types in parentheses; `what`, for messages, takes them.
    pub fn arguments(
        &mut self,
        c: &mut Cursor<'_, 'a>,
        types: &[Type],
        what: &dyn Fn() -> String,
    ) -> PResult<SmallVec<[Value; 8]>> {
        let open = c.punct(Kind::LParen)?;
        let mut out = SmallVec::new();
        c.list(Kind::RParen, |c| {
            let Some(ty) = types.get(out.len()) else {
                return Err(c.error(too_many(&what(), types.len())));
            };
            out.push(self.operand(c, *ty)?);
            Ok(())
        })?;
        if out.len() != types.len() {
            return Err(c.error_at(open, too_few(&what(), types.len(), out.len())));
        }
        Ok(out)
    }
}

/// The message for one value too many.
pub(super) fn too_many(what: &str, takes: usize) -> String {
    format!("{what} takes {}, more are given", counted(takes, "value"))
}

/// The message for missing values.
pub(super) fn too_few(what: &str, takes: usize, given: usize) -> String {
    format!("{what} takes {}, {given} given", counted(takes, "value"))
}

fn mismatch(expected: Type, found: Type, token: Token) -> ReadError {
    ReadError::new(format!("expected a value of type {expected}, this one has type {found}"), token.span())
}

/// `(file, line, col)`
fn location(c: &mut Cursor) -> PResult<SourceLoc> {
    c.punct(Kind::LParen)?;
    let file = c.u32("the number of a file")?;
    c.punct(Kind::Comma)?;
    let token = c.token();
    let line = c.u32("a line")?;
    c.punct(Kind::Comma)?;
    let col = c.u32("a column")?;
    c.punct(Kind::RParen)?;
    if line == 0 {
        return Err(c.error_at(token, "lines are counted from 1"));
    }
    Ok(SourceLoc { file, line, col })
}
