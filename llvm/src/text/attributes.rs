//! Attributes of functions, parameters, results and variables.

use cranelift_entity::packed_option::PackedOption;
use smallvec::SmallVec;

use super::lexer::{Kind, key};
use super::numbers;
use super::parser::{MAX_SPELLING, Parser, Result};
use crate::model::{Attribute, AttributeSetId, AttributeValue, Type, TypeId};

/// Bits of `memory(…)`: 1 reads, 2 writes, two bits a place: argument memory, inaccessible memory, other, errno.
mod memory {
    pub(super) const ARGUMENTS: u64 = 3;
    pub(super) const INACCESSIBLE: u64 = 3 << 2;
    pub(super) const ERRNO: u64 = 3 << 6;
    pub(super) const ALL: u64 = 0xff;
    pub(super) const READS: u64 = 0x55;
    pub(super) const WRITES: u64 = 0xaa;
}

/// The sets of a function or call: a group or two.
pub(super) type AttributeSets = SmallVec<[AttributeSetId; 4]>;

const NOUNDEF: u64 = key(b"noundef");
const I1: u64 = key(b"i1");
const I8: u64 = key(b"i8");
const I32: u64 = key(b"i32");
const I64: u64 = key(b"i64");
const FLOAT: u64 = key(b"float");
const PTR: u64 = key(b"ptr");
const VOID: u64 = key(b"void");

/// Words behind which a number in parentheses stands.
const NUMBERED: &[&[u8]] = &[b"dereferenceable", b"dereferenceable_or_null", b"alignstack", b"dead_on_return"];

/// Words behind which a type in parentheses stands.
const TYPED: &[&[u8]] = &[b"byval", b"sret", b"byref", b"inalloca", b"preallocated", b"elementtype"];

/// Classes of floats in `nofpclass(…)`.
const FLOAT_CLASSES: &[(&[u8], u64)] = &[
    (b"all", 0x3ff),
    (b"nan", 0x3),
    (b"snan", 0x1),
    (b"qnan", 0x2),
    (b"inf", 0x204),
    (b"ninf", 0x4),
    (b"pinf", 0x200),
    (b"norm", 0x108),
    (b"nnorm", 0x8),
    (b"pnorm", 0x100),
    (b"sub", 0x90),
    (b"nsub", 0x10),
    (b"psub", 0x80),
    (b"zero", 0x60),
    (b"nzero", 0x20),
    (b"pzero", 0x40),
];

/// What `captures(…)` names.
const CAPTURES: &[(&[u8], u64)] =
    &[(b"none", 0), (b"address_is_null", 1), (b"address", 3), (b"read_provenance", 4), (b"provenance", 12)];

/// Kinds of allocation functions.
const ALLOCATIONS: &[(&str, u64)] =
    &[("alloc", 1), ("realloc", 2), ("free", 4), ("uninitialized", 8), ("zeroed", 16), ("aligned", 32)];

impl Parser<'_> {
    /// The attributes of a parameter or result that are next, up to something that is none: a type, a value or
    /// punctuation. `pointee` is what the parameter's typed pointer points to, in older files.
    pub(super) fn value_attributes(&mut self, pointee: Option<TypeId>) -> Result<PackedOption<AttributeSetId>> {
        if !self.at_value_attribute() {
            return Ok(None.into());
        }
        let mut attributes: SmallVec<[Attribute; 4]> = SmallVec::new();
        if self.key() == NOUNDEF {
            let noundef = self.attribute(pointee)?;
            if !self.at_value_attribute() {
                let sets = &mut self.module.attributes;
                return Ok(Some(*self.noundef.get_or_insert_with(|| sets.intern_set(&[noundef]))).into());
            }
            attributes.push(noundef);
        }
        while self.at_value_attribute() {
            attributes.push(self.attribute(pointee)?);
        }
        Ok(Some(self.module.attributes.intern_set(&attributes)).into())
    }

    /// Whether an attribute of a parameter or result is next.
    #[inline]
    fn at_value_attribute(&self) -> bool {
        match self.token.kind {
            Kind::Text => true,
            Kind::Word => match self.key() {
                I1 | I8 | I32 | I64 | FLOAT | PTR | VOID => false,
                NOUNDEF => true,
                _ => !is_value_word(self.text()) && !is_type_word(self.text()),
            },
            _ => false,
        }
    }

    /// The attributes of a function or call, groups included; ends before words for which `stop` holds and anything
    /// that is none.
    pub(super) fn function_attributes(&mut self, stop: fn(&[u8]) -> bool) -> Result<AttributeSets> {
        let mut sets = AttributeSets::new();
        let mut attributes = Vec::new();
        loop {
            match self.token.kind {
                Kind::Group => {
                    let token = self.take();
                    let number = self.sigil_number(token)?;
                    sets.push(self.group(number));
                }
                Kind::Text => attributes.push(self.attribute(None)?),
                Kind::Word if !stop(self.text()) => attributes.push(self.attribute(None)?),
                _ => break,
            }
        }
        if !attributes.is_empty() {
            self.name_memory(&mut attributes);
            sets.push(self.module.attributes.intern_set(&attributes));
        }
        Ok(sets)
    }

    fn group(&mut self, number: u32) -> AttributeSetId {
        if let Some(set) = self.groups.get(number) {
            return set;
        }
        let set = self.module.attributes.add_set(&[]);
        self.groups.set(number, set);
        set
    }

    /// `attributes #0 = { … }`.
    pub(super) fn attribute_group(&mut self) -> Result<()> {
        self.bump();
        if self.token.kind != Kind::Group {
            return self.expected("the number of an attribute group");
        }
        let token = self.take();
        let number = self.sigil_number(token)?;
        let set = self.group(number);
        self.expect(b'=')?;
        self.expect(b'{')?;
        let mut attributes = Vec::new();
        while !self.eat(b'}') {
            attributes.push(self.attribute(None)?);
        }
        self.name_memory(&mut attributes);
        self.module.attributes.define_set(set, &attributes);
        Ok(())
    }

    fn attribute(&mut self, pointee: Option<TypeId>) -> Result<Attribute> {
        if self.token.kind == Kind::Text {
            let name = self.string("an attribute")?;
            let value = if self.eat(b'=') { self.string("the value of an attribute")? } else { self.common.no_name };
            return Ok(Attribute { name, value: AttributeValue::Text(value) });
        }
        let word = self.word("an attribute")?;
        let name = self.module.names.intern(word);
        let value = match word {
            b"align" | b"alignstack" if self.eat(b'=') => AttributeValue::Number(self.number("an alignment")?),
            b"align" if !self.at(b'(') => AttributeValue::Number(self.number("an alignment")?),
            b"align" => AttributeValue::Number(self.parenthesized("an alignment")?),
            _ if NUMBERED.contains(&word) && self.at(b'(') => AttributeValue::Number(self.parenthesized("a number")?),
            _ if TYPED.contains(&word) => match (self.eat(b'('), pointee) {
                (true, _) => {
                    let ty = self.ty()?;
                    self.expect(b')')?;
                    AttributeValue::Type(ty)
                }
                (false, Some(ty)) => AttributeValue::Type(ty),
                (false, None) => AttributeValue::Word,
            },
            b"uwtable" => AttributeValue::Number(self.unwind_table()?),
            b"memory" => AttributeValue::Number(self.memory_effects()?),
            b"nofpclass" => AttributeValue::Number(self.float_classes()?),
            b"captures" => AttributeValue::Number(self.captures()?),
            b"allocsize" | b"vscale_range" => AttributeValue::Number(self.pair(word == b"allocsize")?),
            b"allockind" => AttributeValue::Number(self.allocation_kind()?),
            b"range" => self.known_range()?,
            b"initializes" => self.initializes()?,
            _ if self.at(b'(') => {
                let start = self.token.start;
                self.skip_balanced()?;
                let text = &self.source[start as usize..self.previous_end as usize];
                AttributeValue::Text(self.module.names.intern(text))
            }
            _ => AttributeValue::Word,
        };
        Ok(Attribute { name, value })
    }

    fn unwind_table(&mut self) -> Result<u64> {
        if !self.eat(b'(') {
            return Ok(2);
        }
        let kind = self.word_of("`sync` or `async`", |word| match word {
            b"sync" => Some(1),
            b"async" => Some(2),
            _ => None,
        })?;
        self.expect(b')')?;
        Ok(kind)
    }

    fn memory_effects(&mut self) -> Result<u64> {
        self.expect(b'(')?;
        let mut effects = 0;
        loop {
            let places = if self.token.kind == Kind::Label {
                let token = self.take();
                match self.bytes(token) {
                    b"argmem" => memory::ARGUMENTS,
                    b"inaccessiblemem" => memory::INACCESSIBLE,
                    b"errnomem" => memory::ERRNO,
                    // A kind of memory of a target, none of ours.
                    _ => 0,
                }
            } else {
                memory::ALL
            };
            let access = self.word_of("`none`, `read`, `write` or `readwrite`", |word| match word {
                b"none" => Some(0),
                b"read" => Some(memory::READS),
                b"write" => Some(memory::WRITES),
                b"readwrite" => Some(memory::ALL),
                _ => None,
            })?;
            effects = effects & !places | access & places;
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b')')?;
        Ok(effects)
    }

    /// Replaces the words that functions had before LLVM 16 by `memory`.
    fn name_memory(&mut self, attributes: &mut Vec<Attribute>) {
        let (mut effects, mut found) = (memory::ALL, false);
        let names = &self.module.names;
        attributes.retain(|attribute| {
            let mask = match (attribute.value, names.bytes(attribute.name)) {
                (AttributeValue::Word, b"readnone") => 0,
                (AttributeValue::Word, b"readonly") => memory::READS,
                (AttributeValue::Word, b"writeonly") => memory::WRITES,
                (AttributeValue::Word, b"argmemonly") => memory::ARGUMENTS,
                (AttributeValue::Word, b"inaccessiblememonly") => memory::INACCESSIBLE,
                (AttributeValue::Word, b"inaccessiblemem_or_argmemonly") => memory::ARGUMENTS | memory::INACCESSIBLE,
                _ => return true,
            };
            effects &= mask;
            found = true;
            false
        });
        if found {
            let name = self.module.names.intern(b"memory");
            attributes.push(Attribute { name, value: AttributeValue::Number(effects) });
        }
    }

    fn float_classes(&mut self) -> Result<u64> {
        self.expect(b'(')?;
        let mut classes = 0;
        while !self.eat(b')') {
            if self.token.kind == Kind::Integer {
                classes |= self.number("a mask of classes")?;
                continue;
            }
            classes |= self.word_of("a class of floats", |word| find(FLOAT_CLASSES, word))?;
        }
        Ok(classes)
    }

    fn captures(&mut self) -> Result<u64> {
        self.expect(b'(')?;
        let (mut other, mut result) = (0, None);
        loop {
            let of_result = self.token.kind == Kind::Label;
            if of_result {
                self.bump();
            }
            let what = self.word_of("what is captured", |word| find(CAPTURES, word))?;
            if of_result || result.is_some() {
                result = Some(result.unwrap_or(0) | what);
            } else {
                other |= what;
            }
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b')')?;
        Ok(other << 4 | result.unwrap_or(other))
    }

    /// `(a)` or `(a, b)`: a in the high half. Without b: all ones for `allocsize`, else a again.
    fn pair(&mut self, allocation: bool) -> Result<u64> {
        self.expect(b'(')?;
        let first = u64::from(self.small_number("a number")?);
        let missing = if allocation { u64::from(u32::MAX) } else { first };
        let second = if self.eat(b',') { u64::from(self.small_number("a number")?) } else { missing };
        self.expect(b')')?;
        Ok(first << 32 | second)
    }

    fn allocation_kind(&mut self) -> Result<u64> {
        self.expect(b'(')?;
        let text = self.string("kinds of allocation")?;
        self.expect(b')')?;
        let text = self.module.names.text(text);
        let known = |kind: &str| ALLOCATIONS.iter().find(|(word, _)| *word == kind).map_or(0, |(_, bit)| *bit);
        Ok(text.split(',').fold(0, |kinds, kind| kinds | known(kind)))
    }

    /// A number of `bits` bits as words.
    fn wide_number(&mut self, bits: u32) -> Result<Vec<u64>> {
        if self.token.kind != Kind::Integer || bits > 4096 {
            return self.expected("an integer");
        }
        match numbers::integer_words(self.text(), bits) {
            Ok(words) => {
                self.bump();
                Ok(words)
            }
            Err(message) => self.error(message),
        }
    }

    /// A range; one in the same spelling as before is skipped and has the same words.
    fn known_range(&mut self) -> Result<AttributeValue> {
        let start = self.token.start;
        let rest = &self.source[start as usize..];
        let end = rest.iter().take(MAX_SPELLING).position(|byte| *byte == b')');
        let text = end.map_or(&[][..], |end| &rest[..end + 1]);
        if let Some(known) = self.known_ranges.get(text).copied() {
            self.skip_to(start + text.len() as u32);
            return Ok(known);
        }
        let range = self.range()?;
        // A comment may have a parenthesis.
        if self.previous_end == start + text.len() as u32 {
            self.known_ranges.insert(text, range);
        }
        Ok(range)
    }

    fn range(&mut self) -> Result<AttributeValue> {
        self.expect(b'(')?;
        let token = self.token;
        let ty = self.ty()?;
        let Type::Integer(bits) = self.module.types.get(ty) else {
            return Err(self.error_at(token, "a range is one of integers"));
        };
        let mut words = self.wide_number(bits)?;
        self.expect(b',')?;
        words.extend(self.wide_number(bits)?);
        self.expect(b')')?;
        Ok(AttributeValue::Range { bits, words: self.module.attributes.add_words(&words) })
    }

    fn initializes(&mut self) -> Result<AttributeValue> {
        self.expect(b'(')?;
        let mut words = Vec::new();
        loop {
            self.expect(b'(')?;
            words.extend(self.wide_number(64)?);
            self.expect(b',')?;
            words.extend(self.wide_number(64)?);
            self.expect(b')')?;
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b')')?;
        Ok(AttributeValue::Numbers(self.module.attributes.add_words(&words)))
    }
}

fn find(table: &[(&[u8], u64)], word: &[u8]) -> Option<u64> {
    table.iter().find(|(name, _)| *name == word).map(|(_, bits)| *bits)
}

/// Whether a value may start with the word.
fn is_value_word(word: &[u8]) -> bool {
    match word {
        b"true" | b"false" | b"null" | b"undef" | b"poison" | b"zeroinitializer" | b"none" | b"c" | b"splat" => true,
        b"asm" | b"blockaddress" | b"dso_local_equivalent" | b"no_cfi" | b"ptrauth" => true,
        b"getelementptr" | b"icmp" | b"fcmp" | b"fneg" | b"select" => true,
        b"extractelement" | b"insertelement" | b"shufflevector" | b"nan" | b"qnan" | b"snan" | b"inf" => true,
        _ if matches!(word, [b'+' | b'-', ..] | [b'f' | b'u' | b's', b'0', b'x', ..]) => true,
        _ => crate::model::CastOp::from_word(word).is_some() || crate::model::BinaryOp::from_word(word).is_some(),
    }
}

/// Whether a type starts with the word.
fn is_type_word(word: &[u8]) -> bool {
    match word {
        b"void" | b"half" | b"bfloat" | b"float" | b"double" | b"x86_fp80" | b"fp128" | b"ppc_fp128" => true,
        b"x86_mmx" | b"x86_amx" | b"label" | b"metadata" | b"token" | b"ptr" | b"target" => true,
        [b'i' | b'b', digits @ ..] => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}
