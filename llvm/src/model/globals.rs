//! Variables, functions, aliases and comdats.

use cranelift_entity::packed_option::PackedOption;

use super::body::Body;
use super::entities::{AttributesId, ComdatId, ConstId, MetadataId, Name, TypeId};
use super::words::{CallingConvention, ComdatKind, Linkage, UnnamedAddress, Visibility};

/// A symbol of the module. Readers make an entry when they meet the name and define it later.
#[derive(Clone, Debug)]
pub struct Global {
    /// Name; `None` for a numbered one.
    pub name: Option<Name>,
    /// Address space of its address.
    pub space: u32,
    /// Type of the contents, function type of a function; `None` while the kind is [`GlobalKind::Unknown`].
    pub ty: PackedOption<TypeId>,
    /// Linkage.
    pub linkage: Linkage,
    /// Visibility.
    pub visibility: Visibility,
    /// `dllimport` or `dllexport`.
    pub dll_storage: bool,
    /// `dso_local`.
    pub dso_local: bool,
    /// `unnamed_addr`.
    pub unnamed_address: UnnamedAddress,
    /// Alignment in bytes; 0 when not given.
    pub align: u64,
    /// `section`.
    pub section: Option<Name>,
    /// `comdat`.
    pub comdat: PackedOption<ComdatId>,
    /// Metadata attachments: kind and node, in the order of the file.
    pub attachments: Vec<(Name, MetadataId)>,
    /// Place in the file.
    pub at: u32,
    /// What it is.
    pub kind: GlobalKind,
}

impl Global {
    /// A symbol that is mentioned and not defined yet.
    pub fn unknown(name: Option<Name>, space: u32, at: u32) -> Global {
        Global {
            name,
            space,
            ty: None.into(),
            linkage: Linkage::External,
            visibility: Visibility::Default,
            dll_storage: false,
            dso_local: false,
            unnamed_address: UnnamedAddress::None,
            align: 0,
            section: None,
            comdat: None.into(),
            attachments: Vec::new(),
            at,
            kind: GlobalKind::Unknown,
        }
    }

    /// The function, when it is one.
    pub fn function(&self) -> Option<&Function> {
        match &self.kind {
            GlobalKind::Function(function) => Some(function),
            _ => None,
        }
    }

    /// Whether it is defined elsewhere.
    pub fn is_declaration(&self) -> bool {
        match &self.kind {
            GlobalKind::Unknown => true,
            GlobalKind::Variable(variable) => variable.initializer.is_none(),
            GlobalKind::Function(function) => function.body.is_none(),
            GlobalKind::Alias(_) | GlobalKind::IFunc(_) => false,
        }
    }
}

/// What a symbol is.
#[derive(Clone, Debug)]
pub enum GlobalKind {
    /// Mentioned only. Readers refuse files that leave any.
    Unknown,
    /// A variable.
    Variable(Variable),
    /// A function.
    Function(Box<Function>),
    /// Another name for this address.
    Alias(ConstId),
    /// A function chosen by this resolver.
    IFunc(ConstId),
}

/// A variable.
#[derive(Clone, Debug, Default)]
pub struct Variable {
    /// `constant`: never written.
    pub constant: bool,
    /// `thread_local`.
    pub thread_local: bool,
    /// `externally_initialized`.
    pub externally_initialized: bool,
    /// Initial contents; `None` for a declaration.
    pub initializer: PackedOption<ConstId>,
    /// Attributes, under [`super::Attributes::function`].
    pub attributes: PackedOption<AttributesId>,
}

/// A function.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// Calling convention.
    pub convention: CallingConvention,
    /// Attributes.
    pub attributes: PackedOption<AttributesId>,
    /// `gc`.
    pub gc: Option<Name>,
    /// `prefix` data.
    pub prefix: PackedOption<ConstId>,
    /// `prologue` data.
    pub prologue: PackedOption<ConstId>,
    /// `personality`.
    pub personality: PackedOption<ConstId>,
    /// Body; `None` for a declaration.
    pub body: Option<Body>,
}

/// A group of symbols that a linker keeps or drops together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Comdat {
    /// Name.
    pub name: Name,
    /// How one is chosen.
    pub kind: ComdatKind,
}
