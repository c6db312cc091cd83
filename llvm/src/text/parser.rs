//! The position in the text, what is known of the file so far, and the small steps all parts of the reader share.

use cranelift_entity::EntityRef;
use cranelift_entity::packed_option::PackedOption;
use rustc_hash::FxHashMap;

use super::lexer::{Kind, Lexer, Token, key, unquote};
use super::locals::Locals;
use crate::ReadError;
use crate::model::{
    AttributeSetId, AttributeValue, ComdatId, ConstId, GlobalId, MetadataId, Module, Name, Operand, Type, TypeId,
};

/// How deep types, constants and inline metadata may be nested.
const MAX_DEPTH: u32 = 200;

/// The longest spelling of several tokens that is remembered.
pub(super) const MAX_SPELLING: usize = 64;

/// Result of every part of the reader. The error is boxed to keep the good case small.
pub(super) type Result<T> = std::result::Result<T, Box<ReadError>>;

/// A table by number that does not trust the numbers to be small.
#[derive(Clone, Debug)]
pub(super) struct Numbered<T: EntityRef + cranelift_entity::packed_option::ReservedValue> {
    dense: Vec<PackedOption<T>>,
    sparse: FxHashMap<u32, T>,
}

/// Numbers from here on go to a map.
const DENSE: u32 = 1 << 22;

impl<T: EntityRef + cranelift_entity::packed_option::ReservedValue> Default for Numbered<T> {
    fn default() -> Self {
        Numbered { dense: Vec::new(), sparse: FxHashMap::default() }
    }
}

impl<T: EntityRef + cranelift_entity::packed_option::ReservedValue> Numbered<T> {
    pub(super) fn get(&self, number: u32) -> Option<T> {
        match self.dense.get(number as usize) {
            Some(entry) => entry.expand(),
            None => self.sparse.get(&number).copied(),
        }
    }

    pub(super) fn set(&mut self, number: u32, value: T) {
        if number < DENSE {
            if self.dense.len() <= number as usize {
                self.dense.resize(number as usize + 1, None.into());
            }
            self.dense[number as usize] = Some(value).into();
        } else {
            self.sparse.insert(number, value);
        }
    }
}

/// Types that are met all the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Common {
    pub(super) void: TypeId,
    pub(super) i1: TypeId,
    pub(super) i8: TypeId,
    pub(super) i16: TypeId,
    pub(super) i32: TypeId,
    pub(super) i64: TypeId,
    pub(super) float: TypeId,
    pub(super) double: TypeId,
    pub(super) ptr: TypeId,
    pub(super) metadata: TypeId,
    pub(super) token: TypeId,
    pub(super) label: TypeId,
    /// The empty name.
    pub(super) no_name: Name,
    /// `dbg`.
    pub(super) dbg: Name,
}

impl Common {
    fn new(module: &mut Module) -> Common {
        let types = &mut module.types;
        Common {
            void: types.intern(Type::Void),
            i1: types.integer(1),
            i8: types.integer(8),
            i16: types.integer(16),
            i32: types.integer(32),
            i64: types.integer(64),
            float: types.intern(Type::Float),
            double: types.intern(Type::Double),
            ptr: types.pointer(0),
            metadata: types.intern(Type::Metadata),
            token: types.intern(Type::Token),
            label: types.intern(Type::Label),
            no_name: module.names.intern(b""),
            dbg: module.names.intern(b"dbg"),
        }
    }
}

/// A block whose address was taken before its function was read.
#[derive(Clone, Debug)]
pub(super) struct PendingBlock {
    pub(super) address: crate::model::BlockAddressId,
    pub(super) block: Token,
}

/// The reader.
pub(super) struct Parser<'a> {
    pub(super) source: &'a [u8],
    lexer: Lexer<'a>,
    /// The token that comes next.
    pub(super) token: Token,
    /// End of the token before.
    pub(super) previous_end: u32,
    pub(super) module: &'a mut Module,
    pub(super) common: Common,
    pub(super) named_types: FxHashMap<Name, TypeId>,
    pub(super) numbered_types: Numbered<TypeId>,
    pub(super) numbered_globals: Numbered<GlobalId>,
    pub(super) next_global: u32,
    pub(super) groups: Numbered<AttributeSetId>,
    pub(super) numbered_metadata: Numbered<MetadataId>,
    /// Metadata in the order of mention, with the places.
    pub(super) mentioned_metadata: Vec<(MetadataId, u32)>,
    pub(super) comdats: FxHashMap<Name, ComdatId>,
    pub(super) pending_blocks: FxHashMap<GlobalId, Vec<PendingBlock>>,
    pub(super) locals: Locals,
    /// What the typed pointer that was read last points to, in older files.
    pub(super) pointee: Option<TypeId>,
    /// Room for lists of operands under construction.
    pub(super) scratch: Vec<Vec<Operand>>,
    pub(super) scratch_types: Vec<TypeId>,
    pub(super) scratch_sets: Vec<PackedOption<AttributeSetId>>,
    /// Integer constants met lately, by value and type.
    pub(super) recent_integers: [(u64, TypeId, ConstId); 256],
    /// Float constants met lately, by spelling and type.
    pub(super) recent_floats: [(&'a [u8], TypeId, ConstId); 256],
    /// Types in brackets met lately, by spelling.
    pub(super) recent_types: [(&'a [u8], TypeId); 256],
    /// Kinds of metadata met lately, by spelling.
    pub(super) recent_kinds: [(&'a [u8], Name); 16],
    /// `range(…)` by spelling: each mention is the same words.
    pub(super) known_ranges: FxHashMap<&'a [u8], AttributeValue>,
    /// By name: the address of the symbol.
    pub(super) known_symbols: Vec<PackedOption<ConstId>>,
    /// The set of `noundef` alone.
    pub(super) noundef: Option<AttributeSetId>,
    /// Pointers to the first spaces.
    pointers: [PackedOption<TypeId>; 8],
    depth: u32,
}

impl<'a> Parser<'a> {
    pub(super) fn new(source: &'a [u8], module: &'a mut Module) -> Parser<'a> {
        let mut lexer = Lexer::new(source);
        let token = lexer.next();
        let common = Common::new(module);
        Parser {
            source,
            lexer,
            token,
            previous_end: 0,
            module,
            common,
            named_types: FxHashMap::default(),
            numbered_types: Numbered::default(),
            numbered_globals: Numbered::default(),
            next_global: 0,
            groups: Numbered::default(),
            numbered_metadata: Numbered::default(),
            mentioned_metadata: Vec::new(),
            comdats: FxHashMap::default(),
            pending_blocks: FxHashMap::default(),
            locals: Locals::default(),
            pointee: None,
            scratch: Vec::new(),
            scratch_types: Vec::new(),
            scratch_sets: Vec::new(),
            recent_integers: [(0, common.void, ConstId::from_u32(0)); 256],
            recent_floats: [(&[], common.void, ConstId::from_u32(0)); 256],
            recent_types: [(&[], common.void); 256],
            recent_kinds: [(&[], common.no_name); 16],
            known_ranges: FxHashMap::default(),
            known_symbols: Vec::new(),
            noundef: None,
            pointers: [None.into(); 8],
            depth: 0,
        }
    }

    /// The bytes of a token.
    #[inline(always)]
    pub(super) fn bytes(&self, token: Token) -> &'a [u8] {
        &self.source[token.start as usize..token.end as usize]
    }

    /// The bytes of the next token.
    #[inline(always)]
    pub(super) fn text(&self) -> &'a [u8] {
        self.bytes(self.token)
    }

    /// Goes to the next token.
    #[inline(never)]
    pub(super) fn bump(&mut self) {
        self.previous_end = self.token.end;
        self.token = self.lexer.next();
    }

    /// Takes the next token.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Token {
        let token = self.token;
        self.bump();
        token
    }

    /// The first byte of the token after the next one.
    pub(super) fn peek(&self) -> u8 {
        self.lexer.peek()
    }

    /// Goes on behind the place `end`, up to which the text is taken as one token.
    pub(super) fn skip_to(&mut self, end: u32) {
        self.token.end = end;
        self.lexer.seek(end);
        self.bump();
    }

    /// The first eight bytes of the next token as a number.
    #[inline(always)]
    pub(super) fn key(&self) -> u64 {
        self.lexer.key(self.token)
    }

    /// Whether a comma with something else than metadata behind it is next.
    #[inline]
    pub(super) fn at_more(&self) -> bool {
        self.at(b',') && self.peek() != b'!'
    }

    /// The token after the next one.
    pub(super) fn second(&self) -> Token {
        self.lexer.clone().next()
    }

    /// An error at the next token.
    #[cold]
    #[inline(never)]
    pub(super) fn error<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(self.error_at(self.token, message))
    }

    /// An error at a token.
    #[cold]
    #[inline(never)]
    pub(super) fn error_at(&self, token: Token, message: impl Into<String>) -> Box<ReadError> {
        let len = (token.end - token.start) as usize;
        Box::new(ReadError { message: message.into(), at: token.start as usize, len })
    }

    /// An error that says what was expected instead of the next token.
    #[cold]
    #[inline(never)]
    pub(super) fn expected<T>(&self, what: &str) -> Result<T> {
        let found = match self.token.kind {
            Kind::End => "the end of the text".to_owned(),
            Kind::Bad if self.text().first() == Some(&b'"') => "a string without end".to_owned(),
            _ => {
                let text = self.text();
                let shown = String::from_utf8_lossy(&text[..text.len().min(40)]).into_owned();
                format!("`{shown}`")
            }
        };
        self.error(format!("expected {what}, found {found}"))
    }

    /// Whether the next token is this character.
    #[inline(always)]
    pub(super) fn at(&self, punctuation: u8) -> bool {
        self.token.kind == Kind::Punctuation(punctuation)
    }

    /// Takes this character if it is next.
    #[inline(always)]
    pub(super) fn eat(&mut self, punctuation: u8) -> bool {
        let found = self.at(punctuation);
        if found {
            self.bump();
        }
        found
    }

    /// Takes this character.
    #[inline(always)]
    pub(super) fn expect(&mut self, punctuation: u8) -> Result<()> {
        if self.eat(punctuation) { Ok(()) } else { self.expected_character(punctuation) }
    }

    #[cold]
    #[inline(never)]
    fn expected_character(&self, punctuation: u8) -> Result<()> {
        self.expected(&format!("`{}`", char::from(punctuation)))
    }

    /// Whether the next token is this word.
    #[inline(always)]
    pub(super) fn at_word(&self, word: &[u8]) -> bool {
        self.token.kind == Kind::Word && self.text() == word
    }

    /// Takes this word if it is next.
    #[inline(always)]
    pub(super) fn eat_word(&mut self, word: &[u8]) -> bool {
        let found = self.at_word(word);
        if found {
            self.bump();
        }
        found
    }

    /// Takes this word.
    #[inline(always)]
    pub(super) fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word.as_bytes()) { Ok(()) } else { self.expected_word(word) }
    }

    #[cold]
    #[inline(never)]
    fn expected_word(&self, word: &str) -> Result<()> {
        self.expected(&format!("`{word}`"))
    }

    /// Takes a word.
    pub(super) fn word(&mut self, what: &str) -> Result<&'a [u8]> {
        if self.token.kind != Kind::Word {
            return self.expected(what);
        }
        let token = self.take();
        Ok(self.bytes(token))
    }

    /// Takes a word of a set, by its parser.
    pub(super) fn word_of<T>(&mut self, what: &str, find: impl Fn(&[u8]) -> Option<T>) -> Result<T> {
        let found = if self.token.kind == Kind::Word { find(self.text()) } else { None };
        match found {
            Some(found) => {
                self.bump();
                Ok(found)
            }
            None => self.expected(what),
        }
    }

    /// Takes an unsigned integer of at most 64 bits.
    pub(super) fn number(&mut self, what: &str) -> Result<u64> {
        if self.token.kind != Kind::Integer {
            return self.expected(what);
        }
        match parse_number(self.text()) {
            Some(number) => {
                self.bump();
                Ok(number)
            }
            None => self.error(format!("{what} is too large")),
        }
    }

    /// Takes an unsigned integer of at most 32 bits.
    pub(super) fn small_number(&mut self, what: &str) -> Result<u32> {
        let token = self.token;
        let number = self.number(what)?;
        u32::try_from(number).map_err(|_| self.error_at(token, format!("{what} is too large")))
    }

    /// The number of a token like `%12`, after its sigil.
    #[inline]
    pub(super) fn sigil_number(&self, token: Token) -> Result<u32> {
        let digits = &self.bytes(token)[1..];
        // The lexer made sure that these are digits; nine of them always fit.
        if (1..10).contains(&digits.len()) {
            return Ok(digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit.wrapping_sub(b'0') & 15)));
        }
        let number = parse_number(&self.bytes(token)[1..]).and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| self.error_at(token, "the number is too large"))
    }

    /// The interned name of a token with a sigil; escapes of quoted names are resolved.
    pub(super) fn sigil_name(&mut self, token: Token) -> Name {
        let bytes = &self.bytes(token)[1..];
        self.name_of(bytes)
    }

    /// The interned name of bytes that may be quoted.
    pub(super) fn name_of(&mut self, bytes: &[u8]) -> Name {
        match bytes {
            [b'"', inner @ .., b'"'] if !inner.contains(&b'\\') => self.module.names.intern(inner),
            [b'"', ..] => self.module.names.intern(&unquote(bytes)),
            _ => self.module.names.intern(bytes),
        }
    }

    /// Takes a string.
    pub(super) fn string(&mut self, what: &str) -> Result<Name> {
        if self.token.kind != Kind::Text {
            return self.expected(what);
        }
        let token = self.take();
        let bytes = self.bytes(token);
        Ok(self.name_of(bytes))
    }

    /// `(N)`.
    pub(super) fn parenthesized(&mut self, what: &str) -> Result<u64> {
        self.expect(b'(')?;
        let number = self.number(what)?;
        self.expect(b')')?;
        Ok(number)
    }

    /// `ptr addrspace(space)`.
    pub(super) fn pointer_type(&mut self, space: u32) -> TypeId {
        match self.pointers.get_mut(space as usize) {
            Some(known) => match known.expand() {
                Some(ty) => ty,
                None => {
                    let ty = self.module.types.pointer(space);
                    *known = Some(ty).into();
                    ty
                }
            },
            None => self.module.types.pointer(space),
        }
    }

    /// `addrspace(N)` if it is next. `addrspace("A")` and the other letters name the space 0 of NVPTX.
    #[inline(always)]
    pub(super) fn address_space(&mut self) -> Result<Option<u32>> {
        if self.eat_word(b"addrspace") { self.space_number() } else { Ok(None) }
    }

    fn space_number(&mut self) -> Result<Option<u32>> {
        self.expect(b'(')?;
        let space = if self.token.kind == Kind::Text {
            self.bump();
            0
        } else {
            let token = self.token;
            let space = self.small_number("an address space")?;
            if space >= 1 << 24 {
                return Err(self.error_at(token, "the address space is too large"));
            }
            space
        };
        self.expect(b')')?;
        Ok(Some(space))
    }

    /// Runs `inner` one level deeper.
    pub(super) fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return self.error(format!("nested more than {MAX_DEPTH} levels deep"));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Skips tokens up to the one that closes the bracket that is next.
    pub(super) fn skip_balanced(&mut self) -> Result<()> {
        let mut open = 0u32;
        loop {
            match self.token.kind {
                Kind::Punctuation(b'(' | b'{' | b'[') => open += 1,
                Kind::Punctuation(b')' | b'}' | b']') => open = open.saturating_sub(1),
                Kind::End => return self.expected("a closing bracket"),
                _ => {}
            }
            self.bump();
            if open == 0 {
                return Ok(());
            }
        }
    }

    /// A symbol as messages call it.
    pub(super) fn global_name(&self, id: GlobalId) -> String {
        match self.module.globals[id].name {
            Some(name) => format!("@{}", self.module.names.text(name)),
            None => "a symbol without name".to_owned(),
        }
    }
}

/// Where a spelling is remembered in a table of 256 entries: by its first and last bytes.
#[inline]
pub(super) fn spelling_slot(text: &[u8]) -> usize {
    let bits = match (text.first_chunk(), text.last_chunk()) {
        (Some(first), Some(last)) => u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(32),
        _ => key(text),
    };
    (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize
}

/// A decimal number without sign.
pub(super) fn parse_number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    let mut number = 0u64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
    }
    Some(number)
}
