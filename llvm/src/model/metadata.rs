//! Metadata. The debug information that reaches `.loc` and `.file` has fields of its own; the rest is kept as it is
//! written.

use cranelift_entity::PrimaryMap;
use cranelift_entity::packed_option::PackedOption;
use rustc_hash::FxHashMap;

use super::entities::{ConstId, MetadataId, Name};
use super::interner::List;

/// An operand of a node: metadata, or `null`.
pub type MetadataRef = PackedOption<MetadataId>;

/// What a piece of metadata is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metadata {
    /// Mentioned, not defined (yet).
    Unknown,
    /// `!"text"`.
    Text(Name),
    /// A constant, `i32 1` or `ptr @kernel`.
    Value(ConstId),
    /// `!{ … }`; operands in [`MetadataTable::operands`].
    Node {
        /// `distinct`.
        distinct: bool,
        /// Operands.
        operands: List,
    },
    /// `!DILocation`.
    Location(DebugLocation),
    /// `!DIFile`.
    File(DebugFile),
    /// `!DISubprogram`.
    Subprogram(DebugSubprogram),
    /// `!DILexicalBlock` and `!DILexicalBlockFile`.
    Block(DebugBlock),
    /// `!DICompileUnit`.
    Unit(DebugUnit),
    /// `!DIExpression`; words in [`MetadataTable::words`].
    Expression(List),
    /// `!DIArgList`; operands in [`MetadataTable::operands`].
    Arguments(List),
    /// Any other specialized node.
    Other {
        /// `DIBasicType`, `DIDerivedType`, `GenericDINode` …
        kind: Name,
        /// `distinct`.
        distinct: bool,
        /// Fields, in [`MetadataTable::fields`]. Bitcode gives the operands without names, in their order.
        fields: List,
    },
}

/// A place in a source file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DebugLocation {
    /// `distinct`.
    pub distinct: bool,
    /// Line from 1; 0 is unknown.
    pub line: u32,
    /// Column from 1; 0 is unknown.
    pub column: u32,
    /// Subprogram or block.
    pub scope: MetadataRef,
    /// The location of the call that was inlined.
    pub inlined_at: MetadataRef,
    /// Made by the compiler.
    pub implicit: bool,
}

/// A source file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DebugFile {
    /// Name, relative to the directory or absolute.
    pub filename: Option<Name>,
    /// Directory.
    pub directory: Option<Name>,
}

/// A function of the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DebugSubprogram {
    /// `distinct`.
    pub distinct: bool,
    /// Name in the source.
    pub name: Option<Name>,
    /// Name of the symbol, when another.
    pub linkage_name: Option<Name>,
    /// Enclosing scope.
    pub scope: MetadataRef,
    /// File.
    pub file: MetadataRef,
    /// Line of the declaration.
    pub line: u32,
    /// Line where the body starts.
    pub scope_line: u32,
    /// Compile unit.
    pub unit: MetadataRef,
}

/// A block of the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DebugBlock {
    /// `distinct`.
    pub distinct: bool,
    /// Enclosing scope.
    pub scope: MetadataRef,
    /// File.
    pub file: MetadataRef,
    /// Line; 0 in `!DILexicalBlockFile`.
    pub line: u32,
    /// Column; 0 in `!DILexicalBlockFile`.
    pub column: u32,
}

/// A compile unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DebugUnit {
    /// Main file.
    pub file: MetadataRef,
    /// Compiler.
    pub producer: Option<Name>,
    /// `isOptimized`.
    pub optimized: bool,
    /// What is to be emitted.
    pub emission: Emission,
}

/// Emission kinds of a compile unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Emission {
    /// `NoDebug`.
    #[default]
    None,
    /// `FullDebug`.
    Full,
    /// `LineTablesOnly`.
    Lines,
    /// `DebugDirectivesOnly`.
    Directives,
}

/// A field of a specialized node without a form of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// Name of the field; `None` in bitcode.
    pub name: Option<Name>,
    /// Value.
    pub value: FieldValue,
}

/// The value of a [`Field`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldValue {
    /// A node or string, or `null`.
    Node(MetadataRef),
    /// A number; signed ones as two's complement.
    Number(u64),
    /// A word or several joined by `|`, such as `DW_TAG_member` or `DIFlagPublic`, or `true`.
    Word(Name),
    /// A list of nodes in braces, in [`MetadataTable::operands`].
    List(List),
}

/// All metadata of a module.
#[derive(Clone, Debug, Default)]
pub struct MetadataTable {
    /// The entries. Readers make an entry when they meet its number and define it later.
    pub entries: PrimaryMap<MetadataId, Metadata>,
    operands: Vec<MetadataRef>,
    words: Vec<u64>,
    fields: Vec<Field>,
    texts: FxHashMap<Name, MetadataId>,
    values: FxHashMap<ConstId, MetadataId>,
    locations: FxHashMap<DebugLocation, MetadataId>,
}

impl MetadataTable {
    /// What the metadata is.
    pub fn get(&self, id: MetadataId) -> Metadata {
        self.entries[id]
    }

    /// The operands of a list.
    pub fn operands(&self, list: List) -> &[MetadataRef] {
        list.of(&self.operands)
    }

    /// The words of an expression.
    pub fn words(&self, list: List) -> &[u64] {
        list.of(&self.words)
    }

    /// The fields of a list.
    pub fn fields(&self, list: List) -> &[Field] {
        list.of(&self.fields)
    }

    /// Operands of a node or argument list; empty for everything else.
    pub fn node(&self, id: MetadataId) -> &[MetadataRef] {
        match self.get(id) {
            Metadata::Node { operands, .. } | Metadata::Arguments(operands) => self.operands(operands),
            _ => &[],
        }
    }

    /// Adds operands to the pool.
    pub fn add_operands(&mut self, operands: &[MetadataRef]) -> List {
        List::push(&mut self.operands, operands)
    }

    /// Adds words of an expression to the pool.
    pub fn add_words(&mut self, words: &[u64]) -> List {
        List::push(&mut self.words, words)
    }

    /// Adds fields to the pool.
    pub fn add_fields(&mut self, fields: &[Field]) -> List {
        List::push(&mut self.fields, fields)
    }

    /// A new entry, defined or [`Metadata::Unknown`].
    pub fn add(&mut self, metadata: Metadata) -> MetadataId {
        self.entries.push(metadata)
    }

    /// A new node.
    pub fn add_node(&mut self, distinct: bool, operands: &[MetadataRef]) -> MetadataId {
        let operands = self.add_operands(operands);
        self.add(Metadata::Node { distinct, operands })
    }

    /// The entry of a string.
    pub fn text(&mut self, text: Name) -> MetadataId {
        let entries = &mut self.entries;
        *self.texts.entry(text).or_insert_with(|| entries.push(Metadata::Text(text)))
    }

    /// The entry of a constant.
    pub fn value(&mut self, value: ConstId) -> MetadataId {
        let entries = &mut self.entries;
        *self.values.entry(value).or_insert_with(|| entries.push(Metadata::Value(value)))
    }

    /// The entry of a location without a number, as bitcode writes them at instructions.
    pub fn location(&mut self, location: DebugLocation) -> MetadataId {
        let entries = &mut self.entries;
        *self.locations.entry(location).or_insert_with(|| entries.push(Metadata::Location(location)))
    }

    /// The string that the metadata is.
    pub fn as_text(&self, id: MetadataRef) -> Option<Name> {
        match self.get(id.expand()?) {
            Metadata::Text(name) => Some(name),
            _ => None,
        }
    }

    /// The constant that the metadata is.
    pub fn as_value(&self, id: MetadataRef) -> Option<ConstId> {
        match self.get(id.expand()?) {
            Metadata::Value(value) => Some(value),
            _ => None,
        }
    }
}
