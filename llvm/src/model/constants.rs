//! Constants and constant expressions.

use cranelift_entity::{EntityRef, PrimaryMap};

use super::entities::{AssemblyId, BlockAddressId, ConstId, GlobalId, MetadataId, Name, TypeId};
use super::interner::{Interner, List, hash_of};
use super::types::{Type, Types};
use super::words::{BinaryOp, CastOp, Flags, FloatPredicate, IntPredicate};

/// What a constant is. Lists lie in the pools of [`Constants`].
///
/// There is one form for each value: zero of an aggregate or pointer is `Zero`; arrays and vectors whose elements are
/// all integers of 8, 16, 32 or 64 bits or floats of 16, 32 or 64 bits are `Data`, other ones `Aggregate`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Constant {
    /// An integer of at most 64 bits, zero-extended from its width.
    Integer(u64),
    /// A wider integer: 64-bit words, least significant first, as many as its width needs. In [`Constants::words`].
    WideInteger(List),
    /// The bits of a `half`, `bfloat`, `float` or `double`, zero-extended.
    Float(u64),
    /// The bits of a float of 80 or 128 bits: two words, least significant first. In [`Constants::words`].
    WideFloat(List),
    /// Null, of pointers and target types; `zeroinitializer` of aggregates and vectors.
    Zero,
    /// `undef`.
    Undef,
    /// `poison`.
    Poison,
    /// `none`, of tokens.
    NoToken,
    /// Parts of an array, struct or vector, in [`Constants::list`].
    Aggregate(List),
    /// Elements of an array or vector, little-endian bytes one after the other, in [`Constants::bytes`].
    Data(List),
    /// Address of a global.
    Global(GlobalId),
    /// Address of a block.
    BlockAddress(BlockAddressId),
    /// `dso_local_equivalent @f`.
    DsoLocalEquivalent(GlobalId),
    /// `no_cfi @f`.
    NoCfi(GlobalId),
    /// `ptrauth (…)`: pointer, key and the rest, in [`Constants::list`].
    PointerAuth(List),
    /// Inline assembly; only as callee.
    Assembly(AssemblyId),
    /// Metadata as an argument of an intrinsic; the type is `metadata`.
    Metadata(MetadataId),
    /// `fneg`.
    Negate(ConstId),
    /// A conversion to the type of the constant.
    Cast {
        /// Which.
        op: CastOp,
        /// Operand.
        value: ConstId,
    },
    /// Arithmetic.
    Binary {
        /// Which.
        op: BinaryOp,
        /// `nuw nsw exact`.
        flags: Flags,
        /// Left.
        left: ConstId,
        /// Right.
        right: ConstId,
    },
    /// Integer or pointer comparison.
    CompareInt {
        /// Which.
        predicate: IntPredicate,
        /// Left.
        left: ConstId,
        /// Right.
        right: ConstId,
    },
    /// Float comparison.
    CompareFloat {
        /// Which.
        predicate: FloatPredicate,
        /// Left.
        left: ConstId,
        /// Right.
        right: ConstId,
    },
    /// `select`.
    Select {
        /// Condition.
        condition: ConstId,
        /// Value when true.
        yes: ConstId,
        /// Value when false.
        no: ConstId,
    },
    /// Address arithmetic.
    ElementPointer {
        /// `inbounds nusw nuw`.
        flags: Flags,
        /// Type that the first index steps over.
        element: TypeId,
        /// Pointer and indices, in [`Constants::list`].
        operands: List,
    },
    /// `extractelement`.
    ExtractElement {
        /// Vector.
        vector: ConstId,
        /// Index.
        index: ConstId,
    },
    /// `insertelement`.
    InsertElement {
        /// Vector.
        vector: ConstId,
        /// Element.
        element: ConstId,
        /// Index.
        index: ConstId,
    },
    /// `shufflevector`.
    Shuffle {
        /// First vector.
        left: ConstId,
        /// Second vector.
        right: ConstId,
        /// Indices, in [`Constants::mask`]; -1 is poison.
        mask: List,
    },
}

/// A constant with its type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TypedConstant {
    /// Type.
    pub ty: TypeId,
    /// Value.
    pub constant: Constant,
}

/// Address of a block taken as a constant: `blockaddress(@function, %block)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BlockAddress {
    /// Function.
    pub function: GlobalId,
    /// The block in the function's body; readers set it when they know it.
    pub block: Option<super::entities::BlockId>,
}

/// Inline assembly.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Assembly {
    /// Text.
    pub text: Name,
    /// Constraints, as written.
    pub constraints: Name,
    /// `sideeffect`.
    pub side_effect: bool,
    /// `alignstack`.
    pub align_stack: bool,
    /// `inteldialect`.
    pub intel: bool,
    /// `unwind`.
    pub unwind: bool,
}

/// All constants of a module.
#[derive(Clone, Debug, Default)]
pub struct Constants {
    entries: PrimaryMap<ConstId, TypedConstant>,
    list: Vec<ConstId>,
    words: Vec<u64>,
    bytes: Vec<u8>,
    mask: Vec<i32>,
    index: Interner,
    /// Inline assembly.
    pub assembly: PrimaryMap<AssemblyId, Assembly>,
    /// Addresses of blocks.
    pub block_addresses: PrimaryMap<BlockAddressId, BlockAddress>,
}

/// Bytes of an element that may stand in [`Constant::Data`].
fn data_width(ty: Type) -> Option<usize> {
    match ty {
        Type::Integer(bits @ (8 | 16 | 32 | 64)) => Some(bits as usize / 8),
        Type::Half | Type::BFloat => Some(2),
        Type::Float => Some(4),
        Type::Double => Some(8),
        _ => None,
    }
}

impl Constants {
    /// What the constant is.
    pub fn get(&self, id: ConstId) -> Constant {
        self.entries[id].constant
    }

    /// Type of the constant.
    pub fn ty(&self, id: ConstId) -> TypeId {
        self.entries[id].ty
    }

    /// Number of constants.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no constant yet.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The constants of a list.
    pub fn list(&self, list: List) -> &[ConstId] {
        list.of(&self.list)
    }

    /// The words of a wide integer or float.
    pub fn words(&self, list: List) -> &[u64] {
        list.of(&self.words)
    }

    /// The bytes of [`Constant::Data`].
    pub fn bytes(&self, list: List) -> &[u8] {
        list.of(&self.bytes)
    }

    /// The indices of a shuffle.
    pub fn mask(&self, list: List) -> &[i32] {
        list.of(&self.mask)
    }

    /// The value of an integer constant of at most 64 bits.
    pub fn integer(&self, id: ConstId) -> Option<u64> {
        match self.get(id) {
            Constant::Integer(value) => Some(value),
            _ => None,
        }
    }

    /// Element `index` of [`Constant::Data`] with elements of type `element`: its bits, zero-extended.
    pub fn data_element(&self, list: List, element: Type, index: usize) -> Option<u64> {
        let width = data_width(element)?;
        let bytes = self.bytes(list).get(index * width..(index + 1) * width)?;
        Some(bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte)))
    }

    /// The id of a constant without lists.
    pub fn intern(&mut self, ty: TypeId, constant: Constant) -> ConstId {
        let entry = TypedConstant { ty, constant };
        let hash = hash_of(&entry);
        let entries = &self.entries;
        match self.index.find(hash, |id| entries[ConstId::new(id as usize)] == entry) {
            Some(found) => ConstId::new(found as usize),
            None => self.add(hash, entry),
        }
    }

    fn add(&mut self, hash: u64, entry: TypedConstant) -> ConstId {
        let id = self.entries.push(entry);
        self.index.insert(hash, id.as_u32());
        id
    }

    /// The constant of type `ty` whose form `matches` accepts, or the one that `make` makes.
    fn with_list(
        &mut self,
        ty: TypeId,
        hash: u64,
        matches: impl Fn(&Constants, Constant) -> bool,
        make: impl FnOnce(&mut Constants) -> Constant,
    ) -> ConstId {
        let found = self.index.find(hash, |id| {
            let entry = self.entries[ConstId::new(id as usize)];
            entry.ty == ty && matches(self, entry.constant)
        });
        if let Some(found) = found {
            return ConstId::new(found as usize);
        }
        let constant = make(self);
        self.add(hash, TypedConstant { ty, constant })
    }

    /// An integer of type `ty`, given as 64-bit words, least significant first; bits beyond the width are dropped and
    /// missing words are zero.
    pub fn wide_integer(&mut self, types: &Types, ty: TypeId, words: &[u64]) -> ConstId {
        let bits = match types.get(ty) {
            Type::Integer(bits) | Type::Byte(bits) => bits as usize,
            _ => 64,
        };
        if bits <= 64 {
            let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            return self.intern(ty, Constant::Integer(words.first().copied().unwrap_or(0) & mask));
        }
        let mut wide = words.to_vec();
        wide.resize(bits.div_ceil(64), 0);
        if let Some(last) = wide.last_mut()
            && !bits.is_multiple_of(64)
        {
            *last &= (1 << (bits % 64)) - 1;
        }
        let hash = hash_of(&(1u8, ty, &wide));
        let same = |all: &Constants, c| matches!(c, Constant::WideInteger(list) if all.words(list) == wide);
        self.with_list(ty, hash, same, |all| Constant::WideInteger(List::push(&mut all.words, &wide)))
    }

    /// A float of 80 or 128 bits from two words, least significant first.
    pub fn wide_float(&mut self, ty: TypeId, words: [u64; 2]) -> ConstId {
        let hash = hash_of(&(2u8, ty, words));
        let same = |all: &Constants, c| matches!(c, Constant::WideFloat(list) if all.words(list) == words);
        self.with_list(ty, hash, same, |all| Constant::WideFloat(List::push(&mut all.words, &words)))
    }

    /// Zero of any type: the integer or float 0, null, or `zeroinitializer`.
    pub fn zero(&mut self, types: &Types, ty: TypeId) -> ConstId {
        match types.get(ty) {
            Type::Integer(_) | Type::Byte(_) => self.wide_integer(types, ty, &[0]),
            Type::Half | Type::BFloat | Type::Float | Type::Double => self.intern(ty, Constant::Float(0)),
            Type::X86Fp80 | Type::Fp128 | Type::PpcFp128 => self.wide_float(ty, [0, 0]),
            _ => self.intern(ty, Constant::Zero),
        }
    }

    /// Whether the constant is the zero of its type.
    pub fn is_zero(&self, id: ConstId) -> bool {
        match self.get(id) {
            Constant::Zero | Constant::Integer(0) | Constant::Float(0) => true,
            Constant::WideInteger(list) | Constant::WideFloat(list) => self.words(list).iter().all(|word| *word == 0),
            _ => false,
        }
    }

    /// An array, struct or vector of type `ty` from its parts, in its one form.
    pub fn aggregate(&mut self, types: &Types, ty: TypeId, parts: &[ConstId]) -> ConstId {
        if parts.iter().all(|part| self.is_zero(*part)) {
            return self.intern(ty, Constant::Zero);
        }
        if parts.iter().all(|part| self.get(*part) == Constant::Poison) {
            return self.intern(ty, Constant::Poison);
        }
        if parts.iter().all(|part| self.get(*part) == Constant::Undef) {
            return self.intern(ty, Constant::Undef);
        }
        if let Type::Array { element, .. } | Type::Vector { element, .. } = types.get(ty)
            && let Some(width) = data_width(types.get(element))
            && let Some(bytes) = self.data_of(parts, width)
        {
            return self.data(ty, &bytes);
        }
        let hash = hash_of(&(3u8, ty, parts));
        let same = |all: &Constants, c| matches!(c, Constant::Aggregate(list) if all.list(list) == parts);
        self.with_list(ty, hash, same, |all| Constant::Aggregate(List::push(&mut all.list, parts)))
    }

    fn data_of(&self, parts: &[ConstId], width: usize) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(parts.len() * width);
        for part in parts {
            match self.get(*part) {
                Constant::Integer(bits) | Constant::Float(bits) => {
                    bytes.extend_from_slice(&bits.to_le_bytes()[..width]);
                }
                _ => return None,
            }
        }
        Some(bytes)
    }

    /// An array or vector of type `ty` whose elements are these little-endian bytes (a string, for example).
    pub fn data(&mut self, ty: TypeId, bytes: &[u8]) -> ConstId {
        if bytes.iter().all(|byte| *byte == 0) {
            return self.intern(ty, Constant::Zero);
        }
        let hash = hash_of(&(4u8, ty, bytes));
        let same = |all: &Constants, c| matches!(c, Constant::Data(list) if all.bytes(list) == bytes);
        self.with_list(ty, hash, same, |all| Constant::Data(List::push(&mut all.bytes, bytes)))
    }

    /// A `getelementptr` expression; `operands` are the pointer and the indices.
    pub fn element_pointer(&mut self, ty: TypeId, flags: Flags, element: TypeId, operands: &[ConstId]) -> ConstId {
        let hash = hash_of(&(5u8, ty, flags, element, operands));
        let same = |all: &Constants, c| match c {
            Constant::ElementPointer { flags: f, element: e, operands: o } => {
                f == flags && e == element && all.list(o) == operands
            }
            _ => false,
        };
        self.with_list(ty, hash, same, |all| Constant::ElementPointer {
            flags,
            element,
            operands: List::push(&mut all.list, operands),
        })
    }

    /// A `shufflevector` expression; -1 in `mask` is poison.
    pub fn shuffle(&mut self, ty: TypeId, left: ConstId, right: ConstId, mask: &[i32]) -> ConstId {
        let hash = hash_of(&(6u8, ty, left, right, mask));
        let same = |all: &Constants, c| match c {
            Constant::Shuffle { left: l, right: r, mask: m } => l == left && r == right && all.mask(m) == mask,
            _ => false,
        };
        self.with_list(ty, hash, same, |all| Constant::Shuffle { left, right, mask: List::push(&mut all.mask, mask) })
    }

    /// A `ptrauth` expression.
    pub fn pointer_auth(&mut self, ty: TypeId, operands: &[ConstId]) -> ConstId {
        let hash = hash_of(&(7u8, ty, operands));
        let same = |all: &Constants, c| matches!(c, Constant::PointerAuth(list) if all.list(list) == operands);
        self.with_list(ty, hash, same, |all| Constant::PointerAuth(List::push(&mut all.list, operands)))
    }
}
