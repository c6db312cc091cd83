//! A module of LLVM IR as data, filled by both readers and read by the translation.
//!
//! Everything lies in arenas and is named by 32-bit ids. Strings, types and constants are interned: equal ones have
//! equal ids. Readers make an entry when a name is first mentioned ([`Module::global`], [`Body::add_value`],
//! [`Body::add_block`], [`MetadataTable::add`], [`Types::named`]) and define it later, so nothing is patched.
//! A second file can be read into the same module, since readers keep their own tables of numbers.
//!
//! Invariant: the model holds no syntax (numbers of values, order of sections) and no meaning (sizes, what an
//! intrinsic does).

mod attributes;
mod body;
mod constants;
mod entities;
mod globals;
mod instructions;
mod interner;
mod metadata;
mod names;
mod type_text;
mod types;
mod uses;
mod words;

use cranelift_entity::PrimaryMap;
use rustc_hash::FxHashMap;

pub use attributes::{Attribute, AttributeTable, AttributeValue, Attributes};
pub use body::{Block, Body, DebugRecord, Definition, InstructionData, LocalMetadata, Value};
pub use constants::{Assembly, BlockAddress, Constant, Constants, TypedConstant};
pub use entities::{
    AssemblyId, AttributeSetId, AttributesId, BlockAddressId, BlockId, CallId, ComdatId, ConstId, GlobalId, InstId,
    LocalMetadataId, MetadataId, Name, StructId, TypeId, ValueId,
};
pub use globals::{Comdat, Function, Global, GlobalKind, Variable};
pub use instructions::{Access, Alignment, Bundle, Call, Instruction, Operand, OperandKind};
pub use interner::List;
pub use metadata::{
    DebugBlock, DebugFile, DebugLocation, DebugSubprogram, DebugUnit, Emission, Field, FieldValue, Metadata,
    MetadataRef, MetadataTable,
};
pub use names::Names;
pub use type_text::type_text;
pub use types::{NamedStruct, StructBody, Type, Types};
pub use uses::Uses;
pub use words::{
    BinaryOp, CallingConvention, CastOp, ComdatKind, DebugRecordKind, ExceptionOp, Flags, FloatPredicate, IntPredicate,
    Linkage, Ordering, RmwOp, TailCall, UnnamedAddress, Visibility,
};

/// A module.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// Strings.
    pub names: Names,
    /// Types.
    pub types: Types,
    /// Constants.
    pub constants: Constants,
    /// Metadata.
    pub metadata: MetadataTable,
    /// Attributes.
    pub attributes: AttributeTable,
    /// Symbols, in the order of mention; see [`Module::order`].
    pub globals: PrimaryMap<GlobalId, Global>,
    /// Defined and declared symbols in the order of the file.
    pub order: Vec<GlobalId>,
    /// Comdats.
    pub comdats: PrimaryMap<ComdatId, Comdat>,
    /// Named metadata, `!nvvm.annotations = !{ … }`, in the order of the file.
    pub named_metadata: Vec<(Name, Vec<MetadataId>)>,
    /// `source_filename`.
    pub source_filename: Option<Name>,
    /// `target datalayout`, as written.
    pub data_layout: Option<Name>,
    /// `target triple`.
    pub triple: Option<Name>,
    /// `module asm`, a line each.
    pub assembly: Vec<Name>,
    symbols: FxHashMap<Name, GlobalId>,
}

impl Module {
    /// An empty module.
    pub fn new() -> Module {
        Module::default()
    }

    /// The symbol of that name, made as an unknown one in address space `space` when it is new.
    pub fn global(&mut self, name: Name, space: u32, at: u32) -> GlobalId {
        let globals = &mut self.globals;
        *self.symbols.entry(name).or_insert_with(|| globals.push(Global::unknown(Some(name), space, at)))
    }

    /// The symbol of that name.
    pub fn find_global(&self, name: Name) -> Option<GlobalId> {
        self.symbols.get(&name).copied()
    }

    /// A new symbol that has no name, or whose name is not to be found (a local one of a second file).
    pub fn add_global(&mut self, name: Option<Name>, space: u32, at: u32) -> GlobalId {
        self.globals.push(Global::unknown(name, space, at))
    }

    /// The constant that is the address of a symbol.
    pub fn address_of(&mut self, global: GlobalId) -> ConstId {
        let ty = self.types.pointer(self.globals[global].space);
        self.constants.intern(ty, Constant::Global(global))
    }

    /// A constant that holds metadata, as an argument of an intrinsic.
    pub fn metadata_operand(&mut self, metadata: MetadataId) -> ConstId {
        let ty = self.types.intern(Type::Metadata);
        self.constants.intern(ty, Constant::Metadata(metadata))
    }

    /// The nodes of a named metadata.
    pub fn named_metadata(&self, name: &str) -> &[MetadataId] {
        let found = self.names.find(name.as_bytes());
        let entry = self.named_metadata.iter().find(|(entry, _)| Some(*entry) == found);
        entry.map_or(&[], |(_, nodes)| nodes)
    }

    /// The value of a module flag, an operand of its node.
    pub fn flag(&self, name: &str) -> Option<MetadataRef> {
        let wanted = self.names.find(name.as_bytes())?;
        self.named_metadata("llvm.module.flags").iter().find_map(|node| match self.metadata.node(*node) {
            [_, key, value] if self.metadata.as_text(*key) == Some(wanted) => Some(*value),
            _ => None,
        })
    }

    /// The value of a module flag that is an integer.
    pub fn flag_number(&self, name: &str) -> Option<u64> {
        self.constants.integer(self.metadata.as_value(self.flag(name)?)?)
    }

    /// Type of an operand of a body. Blocks have the type `label`; there may be none in the module, hence `None`.
    pub fn type_of(&self, body: &Body, operand: Operand) -> Option<TypeId> {
        match operand.kind() {
            OperandKind::Value(value) => Some(body.values[value].ty),
            OperandKind::Constant(constant) => Some(self.constants.ty(constant)),
            OperandKind::Block(_) | OperandKind::Metadata(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
