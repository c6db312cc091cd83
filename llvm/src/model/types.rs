//! Types. Pointers are opaque: readers of older files drop what they point to, and keep it where it has a meaning
//! (`byval`, `sret` and others become attributes with a type).

use cranelift_entity::{EntityRef, PrimaryMap};

use super::entities::{Name, StructId, TypeId};
use super::interner::{Interner, List, hash_of};

/// What a type is. Lists lie in the pools of [`Types`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// `void`.
    Void,
    /// `half`.
    Half,
    /// `bfloat`.
    BFloat,
    /// `float`.
    Float,
    /// `double`.
    Double,
    /// `x86_fp80`.
    X86Fp80,
    /// `fp128`.
    Fp128,
    /// `ppc_fp128`.
    PpcFp128,
    /// `x86_amx` or `x86_mmx`.
    X86Vector,
    /// `label`, the type of a block.
    Label,
    /// `metadata`.
    Metadata,
    /// `token`.
    Token,
    /// `iN`, N from 1 to 2^23.
    Integer(u32),
    /// `bN`: N bits of memory that may hold a part of a pointer (LLVM 22 and later).
    Byte(u32),
    /// `ptr addrspace(N)`.
    Pointer(u32),
    /// `[len x element]`.
    Array {
        /// Number of elements.
        len: u64,
        /// Element type.
        element: TypeId,
    },
    /// `<len x element>`.
    Vector {
        /// Number of elements, the least one when scalable.
        len: u32,
        /// `vscale x`.
        scalable: bool,
        /// Element type.
        element: TypeId,
    },
    /// A struct without a name.
    Struct {
        /// `<{ … }>`: no padding.
        packed: bool,
        /// Field types, in [`Types::list`].
        fields: List,
    },
    /// A struct with a name or number; its fields are in [`Types::structs`].
    Named(StructId),
    /// The type of functions.
    Function {
        /// Result.
        result: TypeId,
        /// Parameters, in [`Types::list`].
        params: List,
        /// `...`.
        variadic: bool,
    },
    /// `target("name", types…, integers…)`.
    Target {
        /// Name.
        name: Name,
        /// Type parameters, in [`Types::list`].
        types: List,
        /// Integer parameters, in [`Types::words`].
        words: List,
    },
}

/// A named struct.
#[derive(Clone, Debug, Default)]
pub struct NamedStruct {
    /// Name without `%`; `None` for a numbered one.
    pub name: Option<Name>,
    /// Fields; `None` while opaque.
    pub body: Option<StructBody>,
}

/// The fields of a named struct.
#[derive(Clone, Copy, Debug)]
pub struct StructBody {
    /// No padding.
    pub packed: bool,
    /// Field types, in [`Types::list`].
    pub fields: List,
}

/// All types of a module.
#[derive(Clone, Debug, Default)]
pub struct Types {
    kinds: PrimaryMap<TypeId, Type>,
    /// Named structs.
    pub structs: PrimaryMap<StructId, NamedStruct>,
    list: Vec<TypeId>,
    words: Vec<u32>,
    index: Interner,
}

impl Types {
    /// What the type is.
    pub fn get(&self, ty: TypeId) -> Type {
        self.kinds[ty]
    }

    /// Number of types.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there is no type yet.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The types of a list.
    pub fn list(&self, list: List) -> &[TypeId] {
        list.of(&self.list)
    }

    /// The integers of a list.
    pub fn words(&self, list: List) -> &[u32] {
        list.of(&self.words)
    }

    /// The id of a type without lists.
    pub fn intern(&mut self, ty: Type) -> TypeId {
        let hash = hash_of(&ty);
        let kinds = &self.kinds;
        match self.index.find(hash, |entry| kinds[TypeId::new(entry as usize)] == ty) {
            Some(found) => TypeId::new(found as usize),
            None => self.add(hash, ty),
        }
    }

    fn add(&mut self, hash: u64, ty: Type) -> TypeId {
        let id = self.kinds.push(ty);
        self.index.insert(hash, id.as_u32());
        id
    }

    /// `iN`.
    pub fn integer(&mut self, bits: u32) -> TypeId {
        self.intern(Type::Integer(bits))
    }

    /// `ptr addrspace(space)`.
    pub fn pointer(&mut self, space: u32) -> TypeId {
        self.intern(Type::Pointer(space))
    }

    /// `{ fields }` or `<{ fields }>`.
    pub fn structure(&mut self, packed: bool, fields: &[TypeId]) -> TypeId {
        let hash = hash_of(&(1u8, packed, fields));
        let found = self.index.find(hash, |entry| match self.kinds[TypeId::new(entry as usize)] {
            Type::Struct { packed: p, fields: f } => p == packed && f.of(&self.list) == fields,
            _ => false,
        });
        if let Some(found) = found {
            return TypeId::new(found as usize);
        }
        let fields = List::push(&mut self.list, fields);
        self.add(hash, Type::Struct { packed, fields })
    }

    /// A function type.
    pub fn function(&mut self, result: TypeId, params: &[TypeId], variadic: bool) -> TypeId {
        let hash = hash_of(&(2u8, result, params, variadic));
        let found = self.index.find(hash, |entry| match self.kinds[TypeId::new(entry as usize)] {
            Type::Function { result: r, params: p, variadic: v } => {
                r == result && v == variadic && p.of(&self.list) == params
            }
            _ => false,
        });
        if let Some(found) = found {
            return TypeId::new(found as usize);
        }
        let params = List::push(&mut self.list, params);
        self.add(hash, Type::Function { result, params, variadic })
    }

    /// `target("name", types…, words…)`.
    pub fn target(&mut self, name: Name, types: &[TypeId], words: &[u32]) -> TypeId {
        let hash = hash_of(&(3u8, name, types, words));
        let found = self.index.find(hash, |entry| match self.kinds[TypeId::new(entry as usize)] {
            Type::Target { name: n, types: t, words: w } => {
                n == name && t.of(&self.list) == types && w.of(&self.words) == words
            }
            _ => false,
        });
        if let Some(found) = found {
            return TypeId::new(found as usize);
        }
        let types = List::push(&mut self.list, types);
        let words = List::push(&mut self.words, words);
        self.add(hash, Type::Target { name, types, words })
    }

    /// A new named struct, opaque until [`Types::define`], and its type.
    pub fn named(&mut self, name: Option<Name>) -> (StructId, TypeId) {
        let id = self.structs.push(NamedStruct { name, body: None });
        (id, self.intern(Type::Named(id)))
    }

    /// Gives a named struct its fields.
    pub fn define(&mut self, id: StructId, packed: bool, fields: &[TypeId]) {
        let fields = List::push(&mut self.list, fields);
        self.structs[id].body = Some(StructBody { packed, fields });
    }

    /// Whether the struct is packed and its fields, of a named or unnamed struct. `None` for opaque structs and
    /// other types.
    pub fn fields(&self, ty: TypeId) -> Option<(bool, &[TypeId])> {
        match self.get(ty) {
            Type::Struct { packed, fields } => Some((packed, self.list(fields))),
            Type::Named(id) => self.structs[id].body.map(|body| (body.packed, self.list(body.fields))),
            _ => None,
        }
    }

    /// The type of part `index` of an aggregate or vector.
    pub fn part(&self, ty: TypeId, index: u64) -> Option<TypeId> {
        match self.get(ty) {
            Type::Array { element, .. } | Type::Vector { element, .. } => Some(element),
            _ => self.fields(ty)?.1.get(usize::try_from(index).ok()?).copied(),
        }
    }

    /// Element of a vector, or the type itself.
    pub fn scalar(&self, ty: TypeId) -> TypeId {
        match self.get(ty) {
            Type::Vector { element, .. } => element,
            _ => ty,
        }
    }

    /// Result, parameters and `...` of a function type.
    pub fn signature(&self, ty: TypeId) -> Option<(TypeId, &[TypeId], bool)> {
        match self.get(ty) {
            Type::Function { result, params, variadic } => Some((result, self.list(params), variadic)),
            _ => None,
        }
    }
}
