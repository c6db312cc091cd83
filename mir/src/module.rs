//! A module: names, globals, functions, and what they share.

use crate::entities::{GlobalId, ProtoId, SymId};
use crate::function::{FuncKind, Function, FunctionAttrs};
use cranelift_entity::PrimaryMap;
use ptxc_targets::{OpcodeTable, PtxVersion, RegType, Target};
use rustc_hash::FxHashMap;

/// How a symbol is seen from other modules (PTX ISA, 11.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Linkage {
    /// `.visible`: defined here, usable elsewhere.
    #[default]
    Visible,
    /// Only here.
    Internal,
    /// `.weak`: one of several equal definitions is kept.
    Weak,
    /// `.common`: definitions of the same name share storage.
    Common,
    /// `.extern`: defined elsewhere.
    Extern,
}

/// The space of a global.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// `.global`
    Global,
    /// `.const`
    Const,
    /// `.shared`
    Shared,
    /// `.local`, per thread
    Local,
}

impl Space {
    /// The spelling without the dot.
    pub const fn text(self) -> &'static str {
        match self {
            Space::Global => "global",
            Space::Const => "const",
            Space::Shared => "shared",
            Space::Local => "local",
        }
    }
}

/// The names of a module. A name here is what the frontend wrote; emission makes it legal for PTX.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    names: PrimaryMap<SymId, String>,
    by_name: FxHashMap<String, SymId>,
}

impl Symbols {
    /// The symbol of that name, made if it is new.
    pub fn intern(&mut self, name: &str) -> SymId {
        if let Some(&id) = self.by_name.get(name) {
            return id;
        }
        let id = self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), id);
        id
    }

    /// The symbol of that name, if there is one.
    pub fn get(&self, name: &str) -> Option<SymId> {
        self.by_name.get(name).copied()
    }

    /// The name of a symbol.
    pub fn name(&self, symbol: SymId) -> &str {
        &self.names[symbol]
    }

    /// All symbols, in order of first mention.
    pub fn iter(&self) -> impl Iterator<Item = (SymId, &str)> {
        self.names.iter().map(|(id, name)| (id, name.as_str()))
    }

    /// Number of symbols.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// An address inside an initializer: eight bytes at `offset` hold `symbol + addend`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Byte offset in the initializer.
    pub offset: u64,
    /// Whose address.
    pub symbol: SymId,
    /// Added to the address, in bytes.
    pub addend: i64,
    /// `generic(symbol)`: the generic address instead of the one in the symbol's own space.
    pub generic: bool,
}

/// The initial content of a global.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GlobalInit {
    /// The bytes; what is missing at the end is zero. Bytes under a relocation are ignored.
    pub bytes: Vec<u8>,
    /// Addresses, in ascending order of offset, not overlapping.
    pub relocations: Vec<Relocation>,
}

/// A variable in global, constant, shared or local space.
#[derive(Clone, Debug)]
pub struct Global {
    /// Its name.
    pub symbol: SymId,
    /// Its space.
    pub space: Space,
    /// How others see it; [`Linkage::Extern`] declares only.
    pub linkage: Linkage,
    /// Alignment in bytes, a power of two.
    pub align: u32,
    /// Size in bytes; `None` is an array of unknown size, as dynamic shared memory is.
    pub size: Option<u64>,
    /// Initial content; `None` leaves it to PTX: zero in global and const space, undefined in shared.
    pub init: Option<GlobalInit>,
    /// `.attribute(.managed)`: unified memory, global space only.
    pub managed: bool,
}

/// The kinds of opaque global variables (PTX ISA, 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpaqueKind {
    /// `.texref`
    Texture,
    /// `.surfref`
    Surface,
    /// `.samplerref`
    Sampler,
}

impl OpaqueKind {
    /// The type's spelling without the dot.
    pub const fn text(self) -> &'static str {
        match self {
            OpaqueKind::Texture => "texref",
            OpaqueKind::Surface => "surfref",
            OpaqueKind::Sampler => "samplerref",
        }
    }
}

/// A texture, surface or sampler reference of the module.
#[derive(Clone, Copy, Debug)]
pub struct Opaque {
    /// Its name.
    pub symbol: SymId,
    /// What it is.
    pub kind: OpaqueKind,
    /// How others see it.
    pub linkage: Linkage,
}

/// The type of a parameter (PTX ISA, 7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamType {
    /// `.param .u64 x`
    Scalar(RegType),
    /// `.param .align A .b8 x[size]`; the alignment is in the declaration.
    Bytes(u32),
    /// An opaque reference as a kernel parameter, `.param .texref x`.
    Opaque(OpaqueKind),
}

/// The `.ptr` attribute of a kernel parameter (PTX ISA, 5.1.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ParamPtr {
    /// The space it points into; `None` is generic.
    pub space: Option<Space>,
    /// Alignment of what it points to, in bytes.
    pub align: u32,
}

/// One parameter or result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ParamDecl {
    /// The name the frontend gave; emission derives the PTX name from the function and the index.
    pub name: String,
    /// Its type.
    pub ty: ParamType,
    /// Alignment in bytes, used for [`ParamType::Bytes`].
    pub align: u32,
    /// Kernel parameters: what it points to.
    pub ptr: Option<ParamPtr>,
}

impl ParamDecl {
    /// A scalar parameter without attributes.
    pub fn scalar(name: &str, ty: RegType) -> ParamDecl {
        ParamDecl { name: name.to_owned(), ty: ParamType::Scalar(ty), align: u32::from(ty.bits() / 8), ptr: None }
    }

    /// An aggregate passed by value.
    pub fn bytes(name: &str, size: u32, align: u32) -> ParamDecl {
        ParamDecl { name: name.to_owned(), ty: ParamType::Bytes(size), align, ptr: None }
    }
}

/// Parameters and results of a function, declaration or prototype.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signature {
    /// The parameters in order.
    pub params: Vec<ParamDecl>,
    /// The results: none or one, aggregates being one `.b8` array.
    pub returns: Vec<ParamDecl>,
    /// `.noreturn`, for prototypes.
    pub noreturn: bool,
}

/// A function defined elsewhere.
#[derive(Clone, Debug)]
pub struct FunctionDecl {
    /// Its name.
    pub name: SymId,
    /// Kernel or function.
    pub kind: FuncKind,
    /// Parameters and results.
    pub signature: Signature,
    /// Launch bounds and properties.
    pub attrs: FunctionAttrs,
}

/// A source file for `.file`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The number that locations use, from 1.
    pub number: u32,
    /// Its path.
    pub path: String,
}

/// Everything that becomes one PTX file.
pub struct Module {
    /// For what it is compiled.
    pub target: Target,
    /// The `.version` asked for; `None` is the lowest that works.
    pub ptx_version: Option<PtxVersion>,
    /// The mnemonics that instructions refer to.
    pub opcodes: OpcodeTable,
    /// The names.
    pub symbols: Symbols,
    /// Variables.
    pub globals: PrimaryMap<GlobalId, Global>,
    /// Textures, surfaces and samplers.
    pub opaques: Vec<Opaque>,
    /// Signatures of indirect calls.
    pub prototypes: PrimaryMap<ProtoId, Signature>,
    /// Functions with bodies.
    pub functions: Vec<Function>,
    /// Functions defined elsewhere.
    pub declarations: Vec<FunctionDecl>,
    /// Source files.
    pub files: Vec<SourceFile>,
}

impl Module {
    /// An empty module.
    pub fn new(target: Target) -> Module {
        Module {
            target,
            ptx_version: None,
            opcodes: OpcodeTable::new(),
            symbols: Symbols::default(),
            globals: PrimaryMap::new(),
            opaques: Vec::new(),
            prototypes: PrimaryMap::new(),
            functions: Vec::new(),
            declarations: Vec::new(),
            files: Vec::new(),
        }
    }

    /// The prototype of that signature, made if it is new. Linear in the number of prototypes, of which a module has
    /// few; a frontend with many keeps its own map.
    pub fn prototype(&mut self, signature: Signature) -> ProtoId {
        match self.prototypes.iter().find(|(_, s)| **s == signature) {
            Some((id, _)) => id,
            None => self.prototypes.push(signature),
        }
    }
}
