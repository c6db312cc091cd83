//! Bodies of functions.
//!
//! Values and blocks get their ids when they are first mentioned, so a forward reference is only an id that is defined
//! later. Instructions are stored in the order of the body; a block is a run of them.

use std::ops::Range;

use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, PrimaryMap};

use super::entities::{BlockId, CallId, InstId, LocalMetadataId, MetadataId, Name, TypeId, ValueId};
use super::instructions::{Bundle, Call, Instruction, Operand};
use super::interner::List;
use super::words::DebugRecordKind;

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Definition {
    /// Nowhere yet.
    Unknown,
    /// The argument with that index.
    Argument(u32),
    /// The instruction.
    Instruction(InstId),
}

/// A value of the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Value {
    /// Type.
    pub ty: TypeId,
    /// Definition.
    pub definition: Definition,
}

/// An instruction with what belongs to each.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct InstructionData {
    /// The instruction.
    pub instruction: Instruction,
    /// Result; `None` when it has none.
    pub result: PackedOption<ValueId>,
    /// `!dbg`: a [`super::Metadata::Location`].
    pub location: PackedOption<MetadataId>,
    /// Place in the file.
    pub at: u32,
}

/// A block.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Name; `None` for a numbered one.
    pub name: Option<Name>,
    /// First instruction.
    pub start: u32,
    /// After the last instruction; 0 while undefined.
    pub end: u32,
}

/// Metadata that names values of the function, as an argument of an intrinsic or in a debug record.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum LocalMetadata {
    /// One value.
    Value(Operand),
    /// `!DIArgList(…)`, in [`Body::operands`].
    Arguments(List),
}

/// A debug record before an instruction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DebugRecord {
    /// The instruction that follows.
    pub before: InstId,
    /// Which.
    pub kind: DebugRecordKind,
    /// Arguments: constants of metadata, or local metadata.
    pub arguments: List,
    /// Location.
    pub location: PackedOption<MetadataId>,
}

/// The body of a function.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// Values: the arguments in their order, then in the order of mention.
    pub values: PrimaryMap<ValueId, Value>,
    /// Blocks, in the order of mention.
    pub blocks: PrimaryMap<BlockId, Block>,
    /// Blocks in the order of the body; the first is the entry.
    pub order: Vec<BlockId>,
    /// Instructions in the order of the body.
    pub instructions: PrimaryMap<InstId, InstructionData>,
    /// Calls.
    pub calls: PrimaryMap<CallId, Call>,
    /// Local metadata.
    pub metadata: PrimaryMap<LocalMetadataId, LocalMetadata>,
    /// Metadata attachments other than `!dbg`: instruction, kind, node; in the order of instructions.
    pub attachments: Vec<(InstId, Name, MetadataId)>,
    /// Debug records, in order.
    pub records: Vec<DebugRecord>,
    /// Names of values that have one, in no order.
    pub names: Vec<(ValueId, Name)>,
    operands: Vec<Operand>,
    words: Vec<u32>,
    bundles: Vec<Bundle>,
}

impl Body {
    /// The operands of all lists.
    pub(super) fn operand_pool(&self) -> &[Operand] {
        &self.operands
    }

    /// The operands of a list.
    pub fn operands(&self, list: List) -> &[Operand] {
        list.of(&self.operands)
    }

    /// The numbers of a list.
    pub fn words(&self, list: List) -> &[u32] {
        list.of(&self.words)
    }

    /// The bundles of a list.
    pub fn bundles(&self, list: List) -> &[Bundle] {
        list.of(&self.bundles)
    }

    /// Adds operands to the pool.
    pub fn add_operands(&mut self, operands: &[Operand]) -> List {
        List::push(&mut self.operands, operands)
    }

    /// Adds numbers to the pool.
    pub fn add_words(&mut self, words: &[u32]) -> List {
        List::push(&mut self.words, words)
    }

    /// Adds bundles to the pool.
    pub fn add_bundles(&mut self, bundles: &[Bundle]) -> List {
        List::push(&mut self.bundles, bundles)
    }

    /// Removes everything and keeps the room, for the next body.
    pub fn clear(&mut self) {
        self.values.clear();
        self.blocks.clear();
        self.order.clear();
        self.instructions.clear();
        self.calls.clear();
        self.metadata.clear();
        self.attachments.clear();
        self.records.clear();
        self.names.clear();
        self.operands.clear();
        self.words.clear();
        self.bundles.clear();
    }

    /// Makes a value of that type without a definition.
    pub fn add_value(&mut self, ty: TypeId) -> ValueId {
        self.values.push(Value { ty, definition: Definition::Unknown })
    }

    /// Makes the next argument.
    pub fn add_argument(&mut self, index: u32, ty: TypeId) -> ValueId {
        self.values.push(Value { ty, definition: Definition::Argument(index) })
    }

    /// Makes a block without a place.
    pub fn add_block(&mut self, name: Option<Name>) -> BlockId {
        self.blocks.push(Block { name, start: 0, end: 0 })
    }

    /// Opens a block at the end of the body.
    pub fn start_block(&mut self, block: BlockId) {
        let here = self.instructions.len() as u32;
        self.blocks[block].start = here;
        self.blocks[block].end = here;
        self.order.push(block);
    }

    /// Appends an instruction to the last block and defines its result.
    pub fn push(&mut self, instruction: Instruction, result: Option<ValueId>, at: u32) -> InstId {
        let data = InstructionData { instruction, result: result.into(), location: None.into(), at };
        let id = self.instructions.push(data);
        if let Some(result) = result {
            self.values[result].definition = Definition::Instruction(id);
        }
        if let Some(last) = self.order.last() {
            self.blocks[*last].end = id.as_u32() + 1;
        }
        id
    }

    /// The instructions of a block, in order.
    pub fn block(&self, block: BlockId) -> impl DoubleEndedIterator<Item = InstId> + ExactSizeIterator + use<> {
        let range: Range<u32> = self.blocks[block].start..self.blocks[block].end;
        range.map(|index| InstId::new(index as usize))
    }

    /// The metadata attached to an instruction, but for `!dbg`.
    pub fn attachments(&self, inst: InstId) -> &[(InstId, Name, MetadataId)] {
        let start = self.attachments.partition_point(|entry| entry.0 < inst);
        let end = start + self.attachments[start..].partition_point(|entry| entry.0 == inst);
        &self.attachments[start..end]
    }
}
