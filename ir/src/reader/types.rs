//! Value types and memory types.

use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

use super::cursor::{Cursor, clip, hint, hint_name};
use super::lexer::Kind;
use super::{PResult, ReadError};
use crate::entities::AggId;
use crate::module::{MAX_AGG_DEPTH, Module};
use crate::types::{AggDef, FloatKind, MAX_INT_BITS, MAX_LANES, MemType, Space, Type};

/// The module being read and its named types.
pub(crate) struct Context<'a> {
    /// The module.
    pub module: Module,
    /// Types by name.
    pub named: FxHashMap<Cow<'a, str>, AggId>,
    /// Symbols whose declaration is reported as an error already.
    pub broken: FxHashSet<Cow<'a, str>>,
    /// The same for types.
    pub broken_types: FxHashSet<Cow<'a, str>>,
}

const WORDS: &[&str] = &[
    "i1", "i8", "i16", "i32", "i64", "i128", "f16", "bf16", "tf32", "f32", "f64", "e4m3", "e5m2", "e2m3", "e3m2",
    "e2m1", "ue8m0", "ptr",
];

/// The scalar type spelled by a word, except `ptr`, whose space follows in brackets.
fn scalar_word(word: &str) -> Option<Type> {
    if let Some(digits) = word.strip_prefix('i')
        && !digits.is_empty()
        && digits.len() <= 3
        && !digits.starts_with('0')
        && digits.bytes().all(|b| b.is_ascii_digit())
    {
        let bits: u32 = digits.parse().ok()?;
        return (1..=MAX_INT_BITS).contains(&bits).then(|| Type::int(bits));
    }
    FloatKind::ALL.into_iter().find(|k| k.name() == word).map(Type::float)
}

/// True when the next tokens start a value type: a scalar's word or `<n x`.
pub(crate) fn starts_type(c: &Cursor) -> bool {
    match c.kind() {
        Kind::Word => c.is_word("ptr") || scalar_word(c.text()).is_some(),
        Kind::Lt => c.ahead(1).kind == Kind::Number && c.text_ahead(2) == "x",
        _ => false,
    }
}

fn scalar(c: &mut Cursor) -> PResult<Type> {
    let token = c.expect(Kind::Word, "a type")?;
    let word = c.lexeme(token);
    if word == "ptr" {
        if c.eat(Kind::Lt).is_none() {
            return Ok(Type::PTR);
        }
        let space = space(c)?;
        c.punct(Kind::Gt)?;
        return Ok(Type::ptr(space));
    }
    scalar_word(word).ok_or_else(|| {
        let is_int = word.len() > 1 && word.starts_with('i') && word[1..].bytes().all(|b| b.is_ascii_digit());
        let message = match is_int {
            true => format!("integers have 1 to {MAX_INT_BITS} bits, `{}` does not", clip(word)),
            false => format!("unknown type `{}`{}", clip(word), hint(word, WORDS.iter().copied())),
        };
        c.error_at(token, message)
    })
}

/// The name of a memory space.
pub(crate) fn space(c: &mut Cursor) -> PResult<Space> {
    let token = c.expect(Kind::Word, "a memory space")?;
    let word = c.lexeme(token);
    Space::from_name(word).ok_or_else(|| {
        let known = hint(word, Space::ALL.iter().map(|s| s.name()));
        c.error_at(token, format!("unknown memory space `{}`{known}", clip(word)))
    })
}

/// A value type: scalar or vector.
pub(crate) fn value_type(c: &mut Cursor) -> PResult<Type> {
    if c.kind() != Kind::Lt {
        return scalar(c);
    }
    c.advance();
    let token = c.token();
    let lanes = c.u32("the number of lanes")?;
    if !(1..=MAX_LANES).contains(&lanes) {
        return Err(c.error_at(token, format!("vectors have 1 to {MAX_LANES} lanes, not {lanes}")));
    }
    c.word("x")?;
    let scalar = scalar(c)?;
    c.punct(Kind::Gt)?;
    Ok(scalar.with_lanes(lanes))
}

impl<'a> Context<'a> {
    /// A memory type: value type or aggregate.
    pub fn mem_type(&mut self, c: &mut Cursor<'_, 'a>) -> PResult<MemType> {
        self.nested(c, MAX_AGG_DEPTH)
    }

    fn nested(&mut self, c: &mut Cursor<'_, 'a>, depth: u32) -> PResult<MemType> {
        let start = c.token();
        let Some(depth) = depth.checked_sub(1) else {
            return Err(c.error(format!("types are nested more than {MAX_AGG_DEPTH} deep")));
        };
        let def = match (start.kind, c.ahead(1).kind) {
            (Kind::Local, _) => {
                c.advance();
                let name = c.name(start)?;
                return match self.named.get(&name) {
                    Some(id) => Ok(MemType::Agg(*id)),
                    None if self.broken_types.contains(&name) => Err(Box::new(ReadError::consequence())),
                    None => {
                        let known = hint_name("%", &name, self.named.keys().map(AsRef::as_ref));
                        Err(c.error_at(start, format!("unknown type `%{}`{known}", clip(&name))))
                    }
                };
            }
            (Kind::LBrace, _) => {
                c.advance();
                AggDef::Struct { fields: self.fields(c, depth)?, packed: false }
            }
            (Kind::Lt, Kind::LBrace) => {
                c.advance();
                c.advance();
                let fields = self.fields(c, depth)?;
                c.punct(Kind::Gt)?;
                AggDef::Struct { fields, packed: true }
            }
            (Kind::LBracket, _) => {
                c.advance();
                let len = c.unsigned("the number of elements", u64::MAX)?;
                c.word("x")?;
                let elem = self.nested(c, depth)?;
                c.punct(Kind::RBracket)?;
                AggDef::Array { elem, len }
            }
            _ => return value_type(c).map(MemType::Value),
        };
        self.module
            .aggregate(def)
            .map(MemType::Agg)
            .ok_or_else(|| c.error_at(start, format!("types are nested more than {MAX_AGG_DEPTH} deep")))
    }

    fn fields(&mut self, c: &mut Cursor<'_, 'a>, depth: u32) -> PResult<Vec<MemType>> {
        let mut fields = Vec::new();
        c.list(Kind::RBrace, |c| {
            fields.push(self.nested(c, depth)?);
            Ok(())
        })?;
        Ok(fields)
    }

    /// How many values the type is in a signature; an error when there are too many.
    pub fn leaf_types(&self, c: &Cursor, ty: MemType) -> PResult<Vec<Type>> {
        if let MemType::Agg(id) = ty
            && self.module.agg(id).leaves > super::MAX_SIGNATURE_LEAVES
        {
            let leaves = self.module.agg(id).leaves;
            let limit = super::MAX_SIGNATURE_LEAVES;
            return Err(c.error(format!(
                "an aggregate of {leaves} values cannot be passed (the limit is {limit}); pass a pointer with `byval`"
            )));
        }
        Ok(self.module.leaf_types(ty))
    }
}
