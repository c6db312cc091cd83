//! Operands and attributes of memory operations.

use smallvec::{SmallVec, smallvec};

use super::PResult;
use super::body::{Body, Parsed};
use super::cursor::{Cursor, clip, hint};
use super::items::parenthesized;
use super::lexer::Kind;
use super::types::{space, value_type};
use crate::entities::Value;
use crate::instruction::{Extra, MemAttrs};
use crate::opcode::{AtomicOp, CacheOp, L1Evict, L2Evict, Opcode, Ordering, Scope, Shape};
use crate::types::{Space, Type};

/// What follows the operands of an access.
struct Attributes {
    mem: MemAttrs,
    policy: Option<Value>,
    /// The failure order of `cmpxchg`: the second order given.
    failure: Option<Ordering>,
}

const ATTRIBUTES: &[&str] = &[
    "align",
    "volatile",
    "invariant",
    "relaxed",
    "acquire",
    "release",
    "acq_rel",
    "seq_cst",
    "scope",
    "cache",
    "l1",
    "l2",
    "prefetch",
    "policy",
];

/// `(word)`, looked up.
fn code<T>(c: &mut Cursor, what: &str, find: impl Fn(&str) -> Option<T>, known: impl Fn(&str) -> String) -> PResult<T> {
    c.punct(Kind::LParen)?;
    let token = c.expect(Kind::Word, what)?;
    let word = c.lexeme(token);
    let found =
        find(word).ok_or_else(|| c.error_at(token, format!("`{}` is not {what}{}", clip(word), known(word))))?;
    c.punct(Kind::RParen)?;
    Ok(found)
}

/// `scope(…)` without the word.
fn scope(c: &mut Cursor) -> PResult<Scope> {
    code(c, "a scope", Scope::from_text, |w| hint(w, Scope::ALL.iter().map(|s| s.text())))
}

/// An order of an atomic access.
fn order(c: &Cursor) -> Option<Ordering> {
    let order = (c.kind() == Kind::Word).then(|| Ordering::from_text(c.text())).flatten()?;
    (order != Ordering::NotAtomic).then_some(order)
}

impl<'a> Body<'_, 'a> {
    /// The comma list of attributes. `align` is the natural alignment.
    fn attributes(&mut self, c: &mut Cursor<'_, 'a>, op: Opcode, align: u64) -> PResult<Attributes> {
        let mut out = Attributes { mem: MemAttrs::aligned(align), policy: None, failure: None };
        while c.eat(Kind::Comma).is_some() {
            let token = c.token();
            if let Some(order) = order(c) {
                c.advance();
                if out.mem.order == Ordering::NotAtomic {
                    out.mem.order = order;
                } else if op == Opcode::Cmpxchg && out.failure.is_none() {
                    out.failure = Some(order);
                } else {
                    return Err(c.error_at(token, "a second order is given"));
                }
                continue;
            }
            c.expect(Kind::Word, "an attribute of the access")?;
            match c.lexeme(token) {
                "align" => out.mem.align_log2 = c.alignment()?.trailing_zeros() as u8,
                "volatile" => out.mem.volatile = true,
                "invariant" => out.mem.invariant = true,
                "scope" => out.mem.scope = scope(c)?,
                "cache" => {
                    let known = |w: &str| hint(w, CacheOp::ALL.iter().skip(1).map(|x| x.text()));
                    let find = |w: &str| CacheOp::from_text(w).filter(|x| *x != CacheOp::None);
                    out.mem.cache = code(c, "a cache operator", find, known)?;
                }
                "l1" => {
                    let known = |w: &str| hint(w, L1Evict::ALL.iter().skip(1).map(|x| x.text()));
                    let find = |w: &str| L1Evict::from_text(w).filter(|x| *x != L1Evict::None);
                    out.mem.l1 = code(c, "an L1 eviction priority", find, known)?;
                }
                "l2" => {
                    let known = |w: &str| hint(w, L2Evict::ALL.iter().skip(1).map(|x| x.text()));
                    let find = |w: &str| L2Evict::from_text(w).filter(|x| *x != L2Evict::None);
                    out.mem.l2 = code(c, "an L2 eviction priority", find, known)?;
                }
                "prefetch" => {
                    let size = parenthesized(c)?;
                    if !matches!(size, 64 | 128 | 256) {
                        return Err(c.error_at(token, format!("a prefetch is of 64, 128 or 256 bytes, not {size}")));
                    }
                    out.mem.prefetch = size as u16;
                }
                "policy" => {
                    c.punct(Kind::LParen)?;
                    out.policy = Some(self.operand(c, Type::I64)?);
                    c.punct(Kind::RParen)?;
                    out.mem.has_policy = true;
                }
                word => {
                    let known = hint(word, ATTRIBUTES.iter().copied());
                    return Err(c.error_at(token, format!("unknown attribute `{}` of an access{known}", clip(word))));
                }
            }
        }
        Ok(out)
    }

    pub(super) fn memory(&mut self, c: &mut Cursor<'_, 'a>, op: Opcode) -> PResult<Parsed> {
        match op.shape() {
            Shape::Load | Shape::Store => self.load_store(c, op),
            Shape::AtomicRmw | Shape::Cmpxchg => self.atomic(c, op),
            Shape::Fence => {
                let Some(order) = order(c) else { return Err(c.expected("an order")) };
                c.advance();
                let mut to = Scope::Sys;
                if c.eat(Kind::Comma).is_some() {
                    c.word("scope")?;
                    to = scope(c)?;
                }
                Ok(self.make(op, Type::INVALID, &[], Extra::Fence(order, to), smallvec![]))
            }
            Shape::MemCopy | Shape::MemSet => self.block_memory(c, op),
            Shape::Gep => self.gep(c, op),
            Shape::Alloca => self.alloca(c, op),
            _ => {
                let space = space(c)?;
                let pointer = self.any_operand(c, Type::PTR)?;
                Ok(self.make(op, Type::INVALID, &[pointer], Extra::Space(space), smallvec![Type::I1]))
            }
        }
    }

    fn load_store(&mut self, c: &mut Cursor<'_, 'a>, op: Opcode) -> PResult<Parsed> {
        let ty = value_type(c)?;
        let mut args: SmallVec<[Value; 4]> = SmallVec::new();
        if op == Opcode::Store {
            args.push(self.operand(c, ty)?);
        }
        c.punct(Kind::Comma)?;
        args.push(self.any_operand(c, Type::PTR)?);
        let attrs = self.attributes(c, op, ty.align())?;
        args.extend(attrs.policy);
        let results = if op == Opcode::Load { smallvec![ty] } else { smallvec![] };
        Ok(self.make(op, ty, &args, Extra::Mem(attrs.mem), results))
    }

    fn atomic(&mut self, c: &mut Cursor<'_, 'a>, op: Opcode) -> PResult<Parsed> {
        let mut rmw = AtomicOp::Xchg;
        if op == Opcode::AtomicRmw {
            let token = c.expect(Kind::Word, "an atomic operation")?;
            let word = c.lexeme(token);
            rmw = AtomicOp::from_text(word).ok_or_else(|| {
                let known = hint(word, AtomicOp::ALL.iter().map(|x| x.text()));
                c.error_at(token, format!("unknown atomic operation `{}`{known}", clip(word)))
            })?;
        }
        let ty = value_type(c)?;
        let mut args: SmallVec<[Value; 4]> = smallvec![self.any_operand(c, Type::PTR)?];
        let count = if op == Opcode::AtomicRmw { 1 } else { 2 };
        for _ in 0..count {
            c.punct(Kind::Comma)?;
            args.push(self.operand(c, ty)?);
        }
        let attrs = self.attributes(c, op, ty.align())?;
        args.extend(attrs.policy);
        if attrs.mem.order == Ordering::NotAtomic {
            return Err(c.expected("`,` and an order"));
        }
        if op == Opcode::AtomicRmw {
            return Ok(self.make(op, ty, &args, Extra::Rmw(rmw, attrs.mem), smallvec![ty]));
        }
        let Some(failure) = attrs.failure else {
            return Err(c.expected("`,` and the order of a failure"));
        };
        Ok(self.make(op, ty, &args, Extra::Cmpxchg(attrs.mem, failure), smallvec![ty, Type::I1]))
    }

    fn block_memory(&mut self, c: &mut Cursor<'_, 'a>, op: Opcode) -> PResult<Parsed> {
        let dst = self.any_operand(c, Type::PTR)?;
        c.punct(Kind::Comma)?;
        let second = if op == Opcode::Memset { Type::I8 } else { Type::PTR };
        let from = self.any_operand(c, second)?;
        c.punct(Kind::Comma)?;
        let size = self.any_operand(c, Type::I64)?;
        let mut aligns = Vec::with_capacity(2);
        let mut volatile = false;
        while c.eat(Kind::Comma).is_some() {
            let token = c.expect(Kind::Word, "`align` or `volatile`")?;
            match c.lexeme(token) {
                "volatile" => volatile = true,
                "align" if aligns.len() < if op == Opcode::Memset { 1 } else { 2 } => aligns.push(c.alignment()?),
                "align" => return Err(c.error_at(token, "an alignment too many is given")),
                word => return Err(c.error_at(token, format!("`{}` takes no attribute `{}`", op.text(), clip(word)))),
            }
        }
        let dst_align = aligns.first().copied().unwrap_or(1);
        let src_align = aligns.get(1).copied().unwrap_or(1);
        let extra = Extra::Copy { dst_align, src_align, volatile };
        Ok(self.make(op, Type::INVALID, &[dst, from, size], extra, smallvec![]))
    }

    fn gep(&mut self, c: &mut Cursor<'_, 'a>, op: Opcode) -> PResult<Parsed> {
        let over = self.cx.mem_type(c)?;
        c.punct(Kind::Comma)?;
        let mut args: SmallVec<[Value; 8]> = smallvec![self.any_operand(c, Type::PTR)?];
        while c.eat(Kind::Comma).is_some() {
            args.push(self.any_operand(c, Type::I64)?);
        }
        let ty = self.dfg.ty(args[0]);
        Ok(self.make(op, Type::INVALID, &args, Extra::Gep(over), smallvec![ty]))
    }

    fn alloca(&mut self, c: &mut Cursor<'_, 'a>, op: Opcode) -> PResult<Parsed> {
        let ty = self.cx.mem_type(c)?;
        let natural = self.cx.module.layout_of(ty).align;
        let (mut count, mut align) = (1, u32::try_from(natural).unwrap_or(16));
        while c.eat(Kind::Comma).is_some() {
            let token = c.expect(Kind::Word, "`count` or `align`")?;
            match c.lexeme(token) {
                "count" => count = c.u32("a number of elements")?,
                "align" => align = c.alignment()?,
                word => return Err(c.error_at(token, format!("`alloca` takes no attribute `{}`", clip(word)))),
            }
        }
        let extra = Extra::Alloca { ty, count, align };
        Ok(self.make(op, Type::INVALID, &[], extra, smallvec![Type::ptr(Space::Local)]))
    }
}
