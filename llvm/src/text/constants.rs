//! Constants and constant expressions.

use cranelift_entity::packed_option::PackedOption;

use super::lexer::{Kind, Token, key, unquote};
use super::numbers;
use super::parser::{Parser, PendingBlock, Result, parse_number, spelling_slot};
use crate::model::{
    Assembly, BinaryOp, BlockAddress, CastOp, ConstId, Constant, Flags, FloatPredicate, GlobalId, IntPredicate, Type,
    TypeId,
};

/// Widest integer that may have constants other than null, undef and poison.
const MAX_CONSTANT_BITS: u32 = 4096;

/// Most elements that `splat` makes.
const MAX_SPLAT: u32 = 1 << 12;

/// The words of [`Flags::WORDS`] as numbers; none has more than eight bytes.
const FLAG_KEYS: [u64; Flags::WORDS.len()] = {
    let mut keys = [0; Flags::WORDS.len()];
    let mut at = 0;
    while at < keys.len() {
        keys[at] = key(Flags::WORDS[at].0.as_bytes());
        at += 1;
    }
    keys
};

const FLOAT: u64 = key(b"float");
const DOUBLE: u64 = key(b"double");
const PTR: u64 = key(b"ptr");

/// Class of types that an operation takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Integer,
    Float,
    Pointer,
    IntegerOrPointer,
}

impl Class {
    fn name(self) -> &'static str {
        match self {
            Class::Integer => "integers",
            Class::Float => "floats",
            Class::Pointer => "pointers",
            Class::IntegerOrPointer => "integers or pointers",
        }
    }
}

impl Parser<'_> {
    /// `T constant`.
    pub(super) fn typed_constant(&mut self) -> Result<ConstId> {
        let ty = self.value_type()?;
        self.constant(ty)
    }

    /// A constant of type `ty`.
    pub(super) fn constant(&mut self, ty: TypeId) -> Result<ConstId> {
        match self.token.kind {
            Kind::Integer => self.integer_constant(ty),
            Kind::Float | Kind::Hex => self.recent_float(ty),
            Kind::Global | Kind::GlobalNumber => self.global_constant(ty),
            Kind::Punctuation(b'[' | b'{' | b'<') => self.nested(|parser| parser.aggregate_constant(ty)),
            Kind::Word => self.nested(|parser| parser.word_constant(ty)),
            Kind::Local | Kind::LocalNumber => self.error("a value of a function cannot stand in a constant"),
            _ => self.expected("a value"),
        }
    }

    fn integer_constant(&mut self, ty: TypeId) -> Result<ConstId> {
        let (Type::Integer(bits) | Type::Byte(bits)) = self.module.types.get(ty) else {
            return self.error(format!("an integer cannot have the type {}", self.type_name(ty)));
        };
        let text = self.text();
        let (negative, digits) = match text.split_first() {
            Some((b'-', rest)) => (true, rest),
            Some((b'+', rest)) => (false, rest),
            _ => (false, text),
        };
        let id = match parse_number(digits) {
            // Fits whatever the sign.
            Some(number) if bits <= 64 && bits > 1 && number >> (bits - 1) == 0 => {
                let value = if negative { number.wrapping_neg() } else { number };
                self.recent_integer(ty, value & u64::MAX >> (64 - bits))
            }
            _ => {
                self.check_constant_width(bits)?;
                match numbers::integer_words(text, bits) {
                    Ok(words) => self.module.constants.wide_integer(&self.module.types, ty, &words),
                    Err(message) => return self.error(message),
                }
            }
        };
        self.bump();
        Ok(id)
    }

    /// The float constant of the next token; most have been met shortly before, in the same spelling.
    fn recent_float(&mut self, ty: TypeId) -> Result<ConstId> {
        let text = self.text();
        let slot = spelling_slot(text);
        let (known, known_type, id) = self.recent_floats[slot];
        if known_type == ty && known == text {
            self.bump();
            return Ok(id);
        }
        let kind = self.module.types.get(ty);
        let decimal = self.token.kind == Kind::Float;
        let bits = if decimal { numbers::decimal(text, kind) } else { numbers::hexadecimal(text, kind) };
        let id = self.float_constant(ty, bits)?;
        self.recent_floats[slot] = (text, ty, id);
        Ok(id)
    }

    /// The integer constant; most have been met shortly before.
    pub(super) fn recent_integer(&mut self, ty: TypeId, value: u64) -> ConstId {
        let slot = (value ^ u64::from(ty.as_u32()) << 4) as usize % self.recent_integers.len();
        let (known, known_type, id) = self.recent_integers[slot];
        if known == value && known_type == ty {
            return id;
        }
        let id = self.module.constants.intern(ty, Constant::Integer(value));
        self.recent_integers[slot] = (value, ty, id);
        id
    }

    fn check_constant_width(&self, bits: u32) -> Result<()> {
        if bits > MAX_CONSTANT_BITS {
            return self.error(format!("constants of more than {MAX_CONSTANT_BITS} bits are not supported"));
        }
        Ok(())
    }

    fn float_constant(&mut self, ty: TypeId, bits: std::result::Result<[u64; 2], &'static str>) -> Result<ConstId> {
        let bits = match bits {
            Ok(bits) => bits,
            Err(message) => return self.error(message),
        };
        self.bump();
        Ok(match self.module.types.get(ty) {
            Type::X86Fp80 | Type::Fp128 | Type::PpcFp128 => self.module.constants.wide_float(ty, bits),
            _ => self.module.constants.intern(ty, Constant::Float(bits[0])),
        })
    }

    /// The symbol that the next token names, in address space `space` when it is new.
    pub(super) fn global(&mut self, space: u32) -> Result<GlobalId> {
        let token = self.token;
        match token.kind {
            Kind::Global => {
                self.bump();
                let name = self.sigil_name(token);
                Ok(self.global_named(name, space, token.start))
            }
            Kind::GlobalNumber => {
                self.bump();
                let number = self.sigil_number(token)?;
                if let Some(id) = self.numbered_globals.get(number) {
                    return Ok(id);
                }
                let id = self.module.add_global(None, space, token.start);
                self.numbered_globals.set(number, id);
                Ok(id)
            }
            _ => self.expected("a symbol"),
        }
    }

    /// The address of the symbol that is next, as a pointer of type `ty`.
    fn global_constant(&mut self, ty: TypeId) -> Result<ConstId> {
        let token = self.token;
        let Type::Pointer(space) = self.module.types.get(ty) else {
            return self.error(format!("a symbol cannot have the type {}", self.type_name(ty)));
        };
        if token.kind == Kind::Global {
            return self.named_address(ty, space);
        }
        let id = self.global(space)?;
        self.address_in_space(id, ty, space, token)
    }

    /// The address of the symbol of which the name is next.
    fn named_address(&mut self, ty: TypeId, space: u32) -> Result<ConstId> {
        let token = self.take();
        let name = self.sigil_name(token);
        let index = name.as_u32() as usize;
        if let Some(known) = self.known_symbols.get(index).and_then(|known| known.expand())
            && self.module.constants.ty(known) == ty
        {
            return Ok(known);
        }
        let id = self.global_named(name, space, token.start);
        let address = self.address_in_space(id, ty, space, token)?;
        if self.known_symbols.len() <= index {
            self.known_symbols.resize(index + 1, None.into());
        }
        self.known_symbols[index] = Some(address).into();
        Ok(address)
    }

    fn address_in_space(&mut self, id: GlobalId, ty: TypeId, space: u32, token: Token) -> Result<ConstId> {
        let actual = self.module.globals[id].space;
        if actual != space {
            let name = self.global_name(id);
            let message = format!("`{name}` is in address space {actual} and used as a pointer to space {space}");
            return Err(self.error_at(token, message));
        }
        Ok(self.module.constants.intern(ty, Constant::Global(id)))
    }

    fn aggregate_constant(&mut self, ty: TypeId) -> Result<ConstId> {
        let token = self.token;
        let parts = match self.take().kind {
            Kind::Punctuation(b'[') => self.parts(ty, b']')?,
            Kind::Punctuation(b'{') => self.parts(ty, b'}')?,
            _ if self.eat(b'{') => {
                let parts = self.parts(ty, b'}')?;
                self.expect(b'>')?;
                parts
            }
            _ => self.parts(ty, b'>')?,
        };
        let len = match self.module.types.get(ty) {
            Type::Array { len, .. } => Some(len),
            Type::Vector { len, scalable: false, .. } => Some(u64::from(len)),
            _ => self.module.types.fields(ty).map(|(_, fields)| fields.len() as u64),
        };
        match len {
            Some(len) if len == parts.len() as u64 => {
                Ok(self.module.constants.aggregate(&self.module.types, ty, &parts))
            }
            Some(len) => {
                let message = format!("{} has {len} parts, {} are given", self.type_name(ty), parts.len());
                Err(self.error_at(token, message))
            }
            None => Err(self.error_at(token, format!("{} has no parts", self.type_name(ty)))),
        }
    }

    fn parts(&mut self, ty: TypeId, close: u8) -> Result<Vec<ConstId>> {
        let mut parts = Vec::new();
        if self.eat(close) {
            return Ok(parts);
        }
        loop {
            let token = self.token;
            let part = self.typed_constant()?;
            let wanted = self.module.types.part(ty, parts.len() as u64);
            let found = self.module.constants.ty(part);
            if wanted.is_some_and(|wanted| wanted != found) {
                let message =
                    format!("a part of {} cannot have the type {}", self.type_name(ty), self.type_name(found));
                return Err(self.error_at(token, message));
            }
            parts.push(part);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(close)?;
        Ok(parts)
    }

    fn word_constant(&mut self, ty: TypeId) -> Result<ConstId> {
        let token = self.token;
        let word = self.text();
        let kind = self.module.types.get(ty);
        let simple = match word {
            b"true" | b"false" if kind == Type::Integer(1) => Some(Constant::Integer(u64::from(word == b"true"))),
            b"true" | b"false" => return self.error(format!("a truth value cannot be {}", self.type_name(ty))),
            b"null" if matches!(kind, Type::Pointer(_) | Type::Target { .. }) => Some(Constant::Zero),
            b"null" => return self.error(format!("`null` cannot have the type {}", self.type_name(ty))),
            b"undef" => Some(Constant::Undef),
            b"poison" => Some(Constant::Poison),
            b"none" if kind == Type::Token => Some(Constant::NoToken),
            _ => None,
        };
        if let Some(constant) = simple {
            self.bump();
            return Ok(self.module.constants.intern(ty, constant));
        }
        match word {
            b"zeroinitializer" => {
                if let Type::Integer(bits) = kind {
                    self.check_constant_width(bits)?;
                }
                self.bump();
                Ok(self.module.constants.zero(&self.module.types, ty))
            }
            b"c" => self.string_constant(ty),
            b"splat" => self.splat(ty),
            b"asm" => self.assembly(ty),
            b"blockaddress" => self.block_address(ty),
            b"dso_local_equivalent" | b"no_cfi" => {
                self.bump();
                let Type::Pointer(space) = kind else { return self.expected("a pointer") };
                let id = self.global(space)?;
                let equivalent = word == b"dso_local_equivalent";
                let constant = if equivalent { Constant::DsoLocalEquivalent(id) } else { Constant::NoCfi(id) };
                Ok(self.module.constants.intern(ty, constant))
            }
            _ => {
                if let Some(bits) = self.float_word(word, kind)? {
                    return self.float_constant(ty, bits);
                }
                if let Some(id) = self.hex_integer(word, ty, kind)? {
                    return Ok(id);
                }
                self.expression(ty, token)
            }
        }
    }

    /// `+inf`, `-nan`, `nan(0x…)`, `f0x…`: the bits. Stands on the last token of it.
    fn float_word(&mut self, word: &[u8], kind: Type) -> Result<Option<std::result::Result<[u64; 2], &'static str>>> {
        let is_float = matches!(kind, Type::Half | Type::BFloat | Type::Float | Type::Double)
            || matches!(kind, Type::X86Fp80 | Type::Fp128 | Type::PpcFp128);
        if !is_float {
            return Ok(None);
        }
        if let Some(digits) = word.strip_prefix(b"f0x") {
            return Ok(Some(numbers::exact_bits(digits, kind)));
        }
        let with_payload = word.ends_with(b"nan") && self.second().kind == Kind::Punctuation(b'(');
        if !with_payload {
            return Ok(numbers::special(word, None, kind));
        }
        self.bump();
        self.expect(b'(')?;
        let payload = self.text();
        self.bump();
        if !self.at(b')') {
            return self.expected("`)`");
        }
        Ok(numbers::special(word, Some(payload), kind))
    }

    /// `u0x…` and `s0x…`.
    fn hex_integer(&mut self, word: &[u8], ty: TypeId, kind: Type) -> Result<Option<ConstId>> {
        let Type::Integer(bits) = kind else { return Ok(None) };
        let (signed, digits) = match (word.strip_prefix(b"u0x"), word.strip_prefix(b"s0x")) {
            (Some(digits), _) => (false, digits),
            (_, Some(digits)) => (true, digits),
            _ => return Ok(None),
        };
        self.check_constant_width(bits)?;
        match numbers::hex_words(digits, signed, bits) {
            Ok(words) => {
                self.bump();
                Ok(Some(self.module.constants.wide_integer(&self.module.types, ty, &words)))
            }
            Err(message) => self.error(message),
        }
    }

    fn string_constant(&mut self, ty: TypeId) -> Result<ConstId> {
        self.bump();
        let token = self.token;
        if token.kind != Kind::Text {
            return self.expected("a string");
        }
        self.bump();
        let bytes = unquote(self.bytes(token));
        let wanted = Type::Array { len: bytes.len() as u64, element: self.common.i8 };
        if self.module.types.get(ty) != wanted {
            let message = format!("a string of {} bytes cannot have the type {}", bytes.len(), self.type_name(ty));
            return Err(self.error_at(token, message));
        }
        Ok(self.module.constants.data(ty, &bytes))
    }

    fn splat(&mut self, ty: TypeId) -> Result<ConstId> {
        let token = self.take();
        self.expect(b'(')?;
        let part = self.typed_constant()?;
        self.expect(b')')?;
        let part_type = self.module.constants.ty(part);
        match self.module.types.get(ty) {
            Type::Vector { len, element, .. } if element == part_type && len <= MAX_SPLAT => {
                let parts = vec![part; len as usize];
                Ok(self.module.constants.aggregate(&self.module.types, ty, &parts))
            }
            _ => Err(self.error_at(token, format!("this splat cannot have the type {}", self.type_name(ty)))),
        }
    }

    /// `asm sideeffect … "text", "constraints"`.
    fn assembly(&mut self, ty: TypeId) -> Result<ConstId> {
        self.bump();
        let side_effect = self.eat_word(b"sideeffect");
        let align_stack = self.eat_word(b"alignstack");
        let intel = self.eat_word(b"inteldialect");
        let unwind = self.eat_word(b"unwind");
        let text = self.string("the text of the assembly")?;
        self.expect(b',')?;
        let constraints = self.string("the constraints of the assembly")?;
        let assembly = Assembly { text, constraints, side_effect, align_stack, intel, unwind };
        let id = self.module.constants.assembly.push(assembly);
        Ok(self.module.constants.intern(ty, Constant::Assembly(id)))
    }

    fn block_address(&mut self, ty: TypeId) -> Result<ConstId> {
        self.bump();
        self.expect(b'(')?;
        let Type::Pointer(space) = self.module.types.get(ty) else { return self.expected("a pointer") };
        let function = self.global(space)?;
        self.expect(b',')?;
        let block = self.take();
        if !matches!(block.kind, Kind::Local | Kind::LocalNumber) {
            return Err(self.error_at(block, "expected a block"));
        }
        self.expect(b')')?;
        let address = self.module.constants.block_addresses.push(BlockAddress { function, block: None });
        self.pending_blocks.entry(function).or_default().push(PendingBlock { address, block });
        Ok(self.module.constants.intern(ty, Constant::BlockAddress(address)))
    }

    /// The flags that are next.
    #[inline]
    pub(super) fn flags(&mut self) -> Flags {
        let mut flags = Flags::NONE;
        while self.token.kind == Kind::Word {
            let key = self.key();
            // Most words are no flags: types.
            if matches!(key, FLOAT | PTR | DOUBLE) || key >> 32 == 0 && key as u8 == b'i' {
                break;
            }
            let found = FLAG_KEYS.iter().position(|known| *known == key);
            let Some(index) = found.filter(|_| self.text().len() <= 8) else { break };
            flags = flags.with(Flags::WORDS[index].1);
            self.bump();
        }
        flags
    }

    fn expression(&mut self, ty: TypeId, token: Token) -> Result<ConstId> {
        let word = self.text();
        if let Some(op) = CastOp::from_word(word) {
            self.bump();
            return self.cast_expression(ty, op, token);
        }
        if let Some(op) = BinaryOp::from_word(word) {
            self.bump();
            return self.binary_expression(ty, op);
        }
        match word {
            b"getelementptr" => {
                self.bump();
                self.element_pointer_expression(ty, token)
            }
            b"icmp" | b"fcmp" => {
                self.bump();
                self.compare_expression(ty, word == b"icmp", token)
            }
            b"fneg" => {
                self.bump();
                let [value] = self.expression_operands()?;
                self.check_same(ty, value, token)?;
                Ok(self.module.constants.intern(ty, Constant::Negate(value)))
            }
            b"select" => {
                self.bump();
                let [condition, yes, no] = self.expression_operands()?;
                self.check_same(ty, yes, token)?;
                self.check_same(ty, no, token)?;
                Ok(self.module.constants.intern(ty, Constant::Select { condition, yes, no }))
            }
            b"extractelement" => {
                self.bump();
                let [vector, index] = self.expression_operands()?;
                Ok(self.module.constants.intern(ty, Constant::ExtractElement { vector, index }))
            }
            b"insertelement" => {
                self.bump();
                let [vector, element, index] = self.expression_operands()?;
                self.check_same(ty, vector, token)?;
                Ok(self.module.constants.intern(ty, Constant::InsertElement { vector, element, index }))
            }
            b"shufflevector" => {
                self.bump();
                let [left, right, mask] = self.expression_operands()?;
                let mask = self.mask_of(mask, token)?;
                Ok(self.module.constants.shuffle(ty, left, right, &mask))
            }
            b"ptrauth" => self.pointer_auth(ty),
            _ => self.expected("a value"),
        }
    }

    fn pointer_auth(&mut self, ty: TypeId) -> Result<ConstId> {
        self.bump();
        self.expect(b'(')?;
        let mut operands = vec![self.typed_constant()?];
        while self.eat(b',') {
            operands.push(self.typed_constant()?);
        }
        self.expect(b')')?;
        Ok(self.module.constants.pointer_auth(ty, &operands))
    }

    /// `(T a, T b, …)`, exactly so many.
    fn expression_operands<const N: usize>(&mut self) -> Result<[ConstId; N]> {
        self.expect(b'(')?;
        let mut operands = [ConstId::from_u32(0); N];
        for (index, operand) in operands.iter_mut().enumerate() {
            if index > 0 {
                self.expect(b',')?;
            }
            *operand = self.typed_constant()?;
        }
        self.expect(b')')?;
        Ok(operands)
    }

    fn check_same(&self, ty: TypeId, value: ConstId, token: Token) -> Result<()> {
        let found = self.module.constants.ty(value);
        if found == ty {
            return Ok(());
        }
        let message = format!("this has the type {}, expected {}", self.type_name(found), self.type_name(ty));
        Err(self.error_at(token, message))
    }

    fn cast_expression(&mut self, ty: TypeId, op: CastOp, token: Token) -> Result<ConstId> {
        self.flags();
        self.expect(b'(')?;
        let value = self.typed_constant()?;
        self.expect_word("to")?;
        let to = self.value_type()?;
        self.expect(b')')?;
        if to != ty {
            let message = format!("this has the type {}, expected {}", self.type_name(to), self.type_name(ty));
            return Err(self.error_at(token, message));
        }
        let from = self.module.constants.ty(value);
        self.check_cast(op, from, ty, token)?;
        // Between pointers that differed only in what they point to.
        if op == CastOp::BitCast && from == ty {
            return Ok(value);
        }
        Ok(self.module.constants.intern(ty, Constant::Cast { op, value }))
    }

    fn binary_expression(&mut self, ty: TypeId, op: BinaryOp) -> Result<ConstId> {
        let token = self.token;
        let flags = self.flags();
        let [left, right] = self.expression_operands()?;
        self.check_same(ty, left, token)?;
        self.check_same(ty, right, token)?;
        Ok(self.module.constants.intern(ty, Constant::Binary { op, flags, left, right }))
    }

    fn compare_expression(&mut self, ty: TypeId, integer: bool, token: Token) -> Result<ConstId> {
        let constant = if integer {
            let predicate = self.word_of("a comparison", IntPredicate::from_word)?;
            let [left, right] = self.expression_operands()?;
            self.check_same(self.module.constants.ty(left), right, token)?;
            Constant::CompareInt { predicate, left, right }
        } else {
            let predicate = self.word_of("a comparison", FloatPredicate::from_word)?;
            let [left, right] = self.expression_operands()?;
            self.check_same(self.module.constants.ty(left), right, token)?;
            Constant::CompareFloat { predicate, left, right }
        };
        Ok(self.module.constants.intern(ty, constant))
    }

    fn element_pointer_expression(&mut self, ty: TypeId, token: Token) -> Result<ConstId> {
        let mut flags = self.flags();
        if self.eat_word(b"inrange") {
            if self.at(b'(') {
                self.skip_balanced()?;
            }
            flags = flags.with(self.flags());
        }
        self.expect(b'(')?;
        let element = self.ty()?;
        let mut operands = Vec::new();
        while self.eat(b',') {
            self.eat_word(b"inrange");
            operands.push(self.typed_constant()?);
        }
        self.expect(b')')?;
        let Some(base) = operands.first() else {
            return Err(self.error_at(token, "`getelementptr` needs a pointer"));
        };
        if self.module.types.scalar(self.module.constants.ty(*base)) != self.module.types.scalar(ty) {
            return Err(self.error_at(token, format!("this address is not of type {}", self.type_name(ty))));
        }
        Ok(self.module.constants.element_pointer(ty, flags, element, &operands))
    }

    /// The numbers of a constant shuffle mask; -1 for undefined ones.
    pub(super) fn mask_of(&self, mask: ConstId, token: Token) -> Result<Vec<i32>> {
        let constants = &self.module.constants;
        let ty = constants.ty(mask);
        let wrong = || self.error_at(token, "the mask of a shuffle is a constant vector of i32");
        let Type::Vector { len, element, .. } = self.module.types.get(ty) else { return Err(wrong()) };
        if element != self.common.i32 || len > MAX_SPLAT {
            return Err(wrong());
        }
        let number = |id: ConstId| match constants.get(id) {
            Constant::Integer(value) => i32::try_from(value).ok(),
            Constant::Undef | Constant::Poison => Some(-1),
            _ => None,
        };
        let numbers: Option<Vec<i32>> = match constants.get(mask) {
            Constant::Zero => Some(vec![0; len as usize]),
            Constant::Undef | Constant::Poison => Some(vec![-1; len as usize]),
            Constant::Aggregate(list) => constants.list(list).iter().map(|part| number(*part)).collect(),
            Constant::Data(list) => (0..len as usize)
                .map(|index| constants.data_element(list, Type::Integer(32), index))
                .map(|value| value.and_then(|value| i32::try_from(value).ok()))
                .collect(),
            _ => None,
        };
        numbers.ok_or_else(wrong)
    }

    /// Whether the type, or the element of a vector type, is of the class.
    #[inline]
    pub(super) fn is(&self, ty: TypeId, class: Class) -> bool {
        match self.module.types.get(self.module.types.scalar(ty)) {
            Type::Integer(_) | Type::Byte(_) => matches!(class, Class::Integer | Class::IntegerOrPointer),
            Type::Pointer(_) => matches!(class, Class::Pointer | Class::IntegerOrPointer),
            Type::Half | Type::BFloat | Type::Float | Type::Double => class == Class::Float,
            Type::X86Fp80 | Type::Fp128 | Type::PpcFp128 => class == Class::Float,
            _ => false,
        }
    }

    /// An error unless the type is of the class.
    #[inline]
    pub(super) fn check_class(&self, ty: TypeId, class: Class, token: Token) -> Result<()> {
        if self.is(ty, class) { Ok(()) } else { self.wrong_class(ty, class, token) }
    }

    #[cold]
    #[inline(never)]
    fn wrong_class(&self, ty: TypeId, class: Class, token: Token) -> Result<()> {
        let message = format!("`{}` takes {}, not {}", self.shown(token), class.name(), self.type_name(ty));
        Err(self.error_at(token, message))
    }

    /// An error unless the conversion is one of these types.
    pub(super) fn check_cast(&self, op: CastOp, from: TypeId, to: TypeId, token: Token) -> Result<()> {
        let (source, target) = match op {
            CastOp::Trunc | CastOp::ZExt | CastOp::SExt => (Class::Integer, Class::Integer),
            CastOp::FPTrunc | CastOp::FPExt => (Class::Float, Class::Float),
            CastOp::FPToUI | CastOp::FPToSI => (Class::Float, Class::Integer),
            CastOp::UIToFP | CastOp::SIToFP => (Class::Integer, Class::Float),
            CastOp::PtrToInt | CastOp::PtrToAddr => (Class::Pointer, Class::Integer),
            CastOp::IntToPtr => (Class::Integer, Class::Pointer),
            CastOp::AddrSpaceCast => (Class::Pointer, Class::Pointer),
            CastOp::BitCast => return Ok(()),
        };
        let lanes = |ty| match self.module.types.get(ty) {
            Type::Vector { len, .. } => len,
            _ => 0,
        };
        if self.is(from, source) && self.is(to, target) && lanes(from) == lanes(to) {
            return Ok(());
        }
        let (from, to) = (self.type_name(from), self.type_name(to));
        Err(self.error_at(token, format!("`{}` does not convert {from} to {to}", op.word())))
    }

    /// The text of a token for a message.
    pub(super) fn shown(&self, token: Token) -> String {
        String::from_utf8_lossy(self.bytes(token)).into_owned()
    }

    /// Optional constant after a keyword: `prefix i32 1`.
    pub(super) fn constant_after(&mut self, word: &[u8]) -> Result<PackedOption<ConstId>> {
        if self.eat_word(word) { Ok(Some(self.typed_constant()?).into()) } else { Ok(None.into()) }
    }
}
