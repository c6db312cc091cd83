//! Types. Typed pointers, which files before LLVM 15 have, become opaque ones.

use super::lexer::{Kind, key};
use super::parser::{MAX_SPELLING, Parser, Result, parse_number, spelling_slot};
use crate::model::{Name, Type, TypeId};

const PTR: u64 = key(b"ptr");
const I1: u64 = key(b"i1");
const I8: u64 = key(b"i8");
const I32: u64 = key(b"i32");
const I64: u64 = key(b"i64");
const FLOAT: u64 = key(b"float");

/// The widest integer.
const MAX_BITS: u64 = 1 << 23;

impl<'a> Parser<'a> {
    /// A type, `void` included.
    pub(super) fn ty(&mut self) -> Result<TypeId> {
        match self.frequent_type() {
            Some(ty) => Ok(ty),
            None => self.other_type(),
        }
    }

    #[inline(never)]
    fn other_type(&mut self) -> Result<TypeId> {
        self.nested(|parser| {
            let base = parser.plain_type()?;
            parser.pointee = None;
            // Pointers and parameter lists behind a type are rare since pointers are opaque.
            match parser.token.kind {
                Kind::Punctuation(b'*' | b'(') => parser.type_suffixes(base),
                Kind::Word if parser.text() == b"addrspace" => parser.type_suffixes(base),
                _ => Ok(base),
            }
        })
    }

    /// Takes one of the types that are everywhere, unless something may follow that changes it.
    #[inline(always)]
    fn frequent_type(&mut self) -> Option<TypeId> {
        if self.token.kind != Kind::Word {
            return None;
        }
        let common = &self.common;
        let ty = match self.key() {
            PTR => common.ptr,
            I32 => common.i32,
            I64 => common.i64,
            FLOAT => common.float,
            I1 => common.i1,
            I8 => common.i8,
            _ => return None,
        };
        // `addrspace`, `*` or the parameters of a function type.
        if matches!(self.peek(), b'a' | b'*' | b'(') {
            return None;
        }
        self.bump();
        self.pointee = None;
        Some(ty)
    }

    /// A type of values.
    pub(super) fn value_type(&mut self) -> Result<TypeId> {
        // These are all types of values.
        match self.frequent_type() {
            Some(ty) => Ok(ty),
            None => self.other_value_type(),
        }
    }

    #[inline(never)]
    fn other_value_type(&mut self) -> Result<TypeId> {
        let token = self.token;
        let ty = self.other_type()?;
        match self.module.types.get(ty) {
            Type::Void => Err(self.error_at(token, "a value cannot have the type `void`")),
            Type::Function { .. } => Err(self.error_at(token, "a value cannot have the type of a function")),
            _ => Ok(ty),
        }
    }

    fn plain_type(&mut self) -> Result<TypeId> {
        match self.token.kind {
            Kind::Word => self.word_type(),
            Kind::Local => {
                let token = self.take();
                let name = self.sigil_name(token);
                Ok(self.named_type(name))
            }
            Kind::LocalNumber => {
                let token = self.take();
                let number = self.sigil_number(token)?;
                Ok(self.numbered_type(number))
            }
            Kind::Punctuation(b'[' | b'<') => self.bracketed_type(),
            Kind::Punctuation(b'{') => {
                let fields = self.fields()?;
                Ok(self.module.types.structure(false, &fields))
            }
            _ => self.expected("a type"),
        }
    }

    /// The named struct type of that name, opaque when it is new.
    pub(super) fn named_type(&mut self, name: Name) -> TypeId {
        let types = &mut self.module.types;
        *self.named_types.entry(name).or_insert_with(|| types.named(Some(name)).1)
    }

    /// The numbered struct type, opaque when it is new.
    pub(super) fn numbered_type(&mut self, number: u32) -> TypeId {
        if let Some(ty) = self.numbered_types.get(number) {
            return ty;
        }
        let ty = self.module.types.named(None).1;
        self.numbered_types.set(number, ty);
        ty
    }

    fn word_type(&mut self) -> Result<TypeId> {
        let common = &self.common;
        let ty = match self.text() {
            b"i32" => common.i32,
            b"float" => common.float,
            b"i64" => common.i64,
            b"i1" => common.i1,
            b"i8" => common.i8,
            b"i16" => common.i16,
            b"void" => common.void,
            b"double" => common.double,
            b"label" => common.label,
            b"metadata" => common.metadata,
            b"token" => common.token,
            b"ptr" => {
                self.bump();
                return match self.address_space()? {
                    None => Ok(self.common.ptr),
                    Some(space) => Ok(self.pointer_type(space)),
                };
            }
            b"target" => return self.target_type(),
            other => match rare_type(other) {
                Some(kind) => self.module.types.intern(kind),
                None => return self.integer_type(other),
            },
        };
        self.bump();
        Ok(ty)
    }

    fn integer_type(&mut self, word: &[u8]) -> Result<TypeId> {
        let Some((sigil @ (b'i' | b'b'), digits)) = word.split_first() else { return self.expected("a type") };
        match parse_number(digits) {
            Some(bits @ 1..=MAX_BITS) => {
                self.bump();
                let kind = if *sigil == b'i' { Type::Integer(bits as u32) } else { Type::Byte(bits as u32) };
                Ok(self.module.types.intern(kind))
            }
            Some(_) => self.error("an integer type has from 1 to 8388608 bits"),
            None => self.expected("a type"),
        }
    }

    /// An array, vector or packed struct; one in the same spelling as shortly before is skipped.
    fn bracketed_type(&mut self) -> Result<TypeId> {
        let start = self.token.start;
        let text = self.bracketed_text();
        let slot = spelling_slot(text);
        let (known, ty) = self.recent_types[slot];
        if known == text && !text.is_empty() {
            self.skip_to(start + text.len() as u32);
            return Ok(ty);
        }
        let ty = if self.at(b'[') { self.array_type()? } else { self.vector_or_packed_struct()? };
        // Comments and quoted names may have brackets.
        if self.previous_end == start + text.len() as u32 {
            self.recent_types[slot] = (text, ty);
        }
        Ok(ty)
    }

    /// From the bracket that is next to the one that closes it, when that is near.
    fn bracketed_text(&self) -> &'a [u8] {
        let rest = &self.source[self.token.start as usize..];
        let mut open = 0;
        for (index, byte) in rest.iter().take(MAX_SPELLING).enumerate() {
            match byte {
                b'[' | b'<' => open += 1,
                b']' | b'>' if open == 1 => return &rest[..index + 1],
                b']' | b'>' => open -= 1,
                _ => {}
            }
        }
        &[]
    }

    fn array_type(&mut self) -> Result<TypeId> {
        self.expect(b'[')?;
        let len = self.number("the number of elements")?;
        self.expect_word("x")?;
        let element = self.value_type()?;
        self.expect(b']')?;
        Ok(self.module.types.intern(Type::Array { len, element }))
    }

    fn vector_or_packed_struct(&mut self) -> Result<TypeId> {
        self.expect(b'<')?;
        if self.at(b'{') {
            let fields = self.fields()?;
            self.expect(b'>')?;
            return Ok(self.module.types.structure(true, &fields));
        }
        let scalable = self.eat_word(b"vscale");
        if scalable {
            self.expect_word("x")?;
        }
        let token = self.token;
        let len = self.small_number("the number of elements")?;
        if len == 0 {
            return Err(self.error_at(token, "a vector has at least one element"));
        }
        self.expect_word("x")?;
        let token = self.token;
        let element = self.value_type()?;
        match self.module.types.get(element) {
            Type::Integer(_) | Type::Byte(_) | Type::Half | Type::BFloat | Type::Float | Type::Double => {}
            Type::Pointer(_) | Type::X86Fp80 | Type::Fp128 | Type::PpcFp128 | Type::Target { .. } => {}
            _ => return Err(self.error_at(token, "a vector has elements of integers, floats or pointers")),
        }
        self.expect(b'>')?;
        Ok(self.module.types.intern(Type::Vector { len, scalable, element }))
    }

    /// `{ T, … }`.
    pub(super) fn fields(&mut self) -> Result<Vec<TypeId>> {
        self.expect(b'{')?;
        let mut fields = Vec::new();
        if self.eat(b'}') {
            return Ok(fields);
        }
        loop {
            fields.push(self.value_type()?);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b'}')?;
        Ok(fields)
    }

    fn target_type(&mut self) -> Result<TypeId> {
        self.bump();
        self.expect(b'(')?;
        let name = self.string("the name of a target type")?;
        let (mut types, mut words) = (Vec::new(), Vec::new());
        while self.eat(b',') {
            if self.token.kind == Kind::Integer {
                words.push(self.small_number("an integer parameter")?);
            } else {
                types.push(self.ty()?);
            }
        }
        self.expect(b')')?;
        Ok(self.module.types.target(name, &types, &words))
    }

    /// `*`, `addrspace(N)*` and `(parameters)` behind a type.
    fn type_suffixes(&mut self, base: TypeId) -> Result<TypeId> {
        let mut ty = base;
        loop {
            if self.at(b'*') {
                self.bump();
                self.pointee = Some(ty);
                ty = self.common.ptr;
            } else if self.at_word(b"addrspace") {
                let space = self.address_space()?.unwrap_or(0);
                self.expect(b'*')?;
                self.pointee = Some(ty);
                ty = self.pointer_type(space);
            } else if self.at(b'(') {
                ty = self.function_type(ty)?;
                self.pointee = None;
            } else {
                return Ok(ty);
            }
        }
    }

    fn function_type(&mut self, result: TypeId) -> Result<TypeId> {
        self.expect(b'(')?;
        let (mut params, mut variadic) = (Vec::new(), false);
        while !self.at(b')') {
            if self.eat_word(b"...") {
                variadic = true;
                break;
            }
            params.push(self.value_type()?);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b')')?;
        Ok(self.module.types.function(result, &params, variadic))
    }

    /// A type as messages call it.
    pub(super) fn type_name(&self, ty: TypeId) -> String {
        crate::model::type_text(self.module, ty)
    }
}

fn rare_type(word: &[u8]) -> Option<Type> {
    Some(match word {
        b"half" => Type::Half,
        b"bfloat" => Type::BFloat,
        b"x86_fp80" => Type::X86Fp80,
        b"fp128" => Type::Fp128,
        b"ppc_fp128" => Type::PpcFp128,
        b"x86_amx" | b"x86_mmx" => Type::X86Vector,
        _ => return None,
    })
}
