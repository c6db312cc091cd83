//! The body of a function: its values, blocks and the order of its parts.
//!
//! Values are numbered after those of the module: arguments, constants of the function, then results of instructions in
//! their order. What is used before it is defined gets its value in the model at once; the record gives its type.

use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;

use super::Reader;
use super::bitstream::{Block, Item, Nested, Record};
use super::codes::{self, block};
use super::globals::Definition;
use super::metadata::{About, Numbered, Owner};
use crate::ReadError;
use crate::model::{
    BlockId, Body, Bundle, ConstId, DebugLocation, DebugRecord, DebugRecordKind, GlobalKind, InstId, Instruction,
    LocalMetadata, LocalMetadataId, MetadataId, Operand, Type, TypeId, ValueId,
};

/// Codes of records that are no instructions.
mod code {
    pub const BLOCKS: u32 = 1;
    pub const LOCATION_AGAIN: u32 = 33;
    pub const LOCATION: u32 = 35;
    pub const BUNDLE: u32 = 55;
    pub const BLOCK_ADDRESS_USERS: u32 = 60;
    pub const RECORD_VALUE: u32 = 61;
    pub const RECORD_DECLARE: u32 = 62;
    pub const RECORD_ASSIGN: u32 = 63;
    pub const RECORD_VALUE_SIMPLE: u32 = 64;
    pub const RECORD_LABEL: u32 = 65;
    pub const RECORD_DECLARE_VALUE: u32 = 66;
}

/// Codes of a block of names.
const NAME_OF_VALUE: u32 = 1;
const NAME_OF_BLOCK: u32 = 2;

/// A value by number.
#[derive(Clone, Copy)]
pub struct Numbered32 {
    /// The value or constant.
    pub operand: Operand,
    /// Number of its type.
    pub ty: u32,
}

/// What is known while a body is read.
pub struct FunctionState {
    /// The body.
    pub body: Body,
    /// Values of the function; the first comes after those of the module.
    values: Vec<Numbered32>,
    /// Values that are used and not defined yet, by number, and where they are first used.
    forward: FxHashMap<u64, (ValueId, u32, usize)>,
    /// Number of blocks.
    pub blocks: u32,
    /// Blocks that ended.
    ended: u32,
    /// Instructions by their index in the file.
    instructions: Vec<InstId>,
    location: Option<MetadataId>,
    /// Bundles for the next call.
    pub bundles: Vec<Bundle>,
}

impl Owner for FunctionState {
    fn value(
        &mut self,
        reader: &mut Reader<'_, '_>,
        record: &Record,
        ty: u64,
        number: u64,
    ) -> Result<About, ReadError> {
        reader.type_id(record, ty)?;
        let operand = reader.value_of_type(self, record, number, ty as u32)?;
        Ok(match operand.constant() {
            Some(constant) => About::Constant(constant),
            None => About::Local(self.body.metadata.push(LocalMetadata::Value(operand))),
        })
    }

    fn list(&mut self, reader: &Reader<'_, '_>, parts: &[Numbered]) -> Option<LocalMetadataId> {
        let mut operands: Vec<Operand> = Vec::new();
        for part in parts {
            operands.push(match part {
                Numbered::Module(id) => reader.module.metadata.as_value((*id).into())?.into(),
                Numbered::Local(id) => match self.body.metadata[*id] {
                    LocalMetadata::Value(operand) => operand,
                    LocalMetadata::Arguments(_) => return None,
                },
            });
        }
        let operands = self.body.add_operands(&operands);
        Some(self.body.metadata.push(LocalMetadata::Arguments(operands)))
    }
}

impl FunctionState {
    /// The number of the next value in the module's count.
    fn next(&self, base: usize) -> u64 {
        (base + self.values.len()) as u64
    }
}

/// The operands of a record, one after the other.
pub struct Cursor<'r> {
    /// The record.
    pub record: &'r Record,
    /// Index of the next operand.
    pub at: usize,
}

impl<'r> Cursor<'r> {
    /// From the first operand on.
    pub fn new(record: &'r Record) -> Cursor<'r> {
        Cursor { record, at: 0 }
    }

    /// The next operand.
    pub fn next(&mut self) -> Result<u64, ReadError> {
        let value = self.record.get(self.at);
        self.at += 1;
        value.ok_or_else(|| self.record.error("the record of an instruction is too short"))
    }

    /// The next operand, or 0 when there is none.
    pub fn optional(&mut self) -> u64 {
        let value = self.record.get(self.at).unwrap_or(0);
        self.at += 1;
        value
    }

    /// How many operands are left.
    pub fn left(&self) -> usize {
        self.record.values.len().saturating_sub(self.at)
    }

    /// An error about the record.
    pub fn error(&self, message: impl Into<String>) -> ReadError {
        self.record.error(message)
    }
}

impl Reader<'_, '_> {
    /// Reads a body.
    pub(super) fn read_function(&mut self, definition: Definition, nested: Nested) -> Result<(), ReadError> {
        if !definition.wanted {
            return Ok(());
        }
        let mut f = FunctionState {
            body: Body::default(),
            values: Vec::new(),
            forward: FxHashMap::default(),
            blocks: 0,
            ended: 0,
            instructions: Vec::new(),
            location: None,
            bundles: Vec::new(),
        };
        let mut block = Block::enter(self.bytes, nested, &self.info);
        let params: Vec<u32> = self.types.parts(definition.ty).iter().skip(1).copied().collect();
        self.spend(block.position(), params.len() as u64)?;
        for (index, ty) in params.into_iter().enumerate() {
            let Some(id) = self.types.id(ty) else {
                return Err(ReadError::new(block.position(), "a parameter has no type"));
            };
            let value = f.body.add_argument(index as u32, id);
            f.values.push(Numbered32 { operand: value.into(), ty });
        }
        let known_metadata = self.numbers.len();
        let mut record = Record::default();
        let mut names: Option<Nested> = None;
        let mut attachments: Vec<Nested> = Vec::new();
        loop {
            match block.next(&mut record)? {
                Item::End => break,
                Item::Record => self.function_record(&mut f, &record, block.remaining())?,
                Item::Block(nested) => match nested.id {
                    block::CONSTANTS => self.function_constants(&mut f, nested)?,
                    block::METADATA => self.function_metadata(&mut f, nested)?,
                    block::SYMBOLS => names = Some(nested),
                    block::ATTACHMENTS => attachments.push(nested),
                    _ => {}
                },
            }
        }
        let end = block.position();
        if let Some(nested) = names {
            self.value_names(&mut f, nested)?;
        }
        for nested in attachments {
            self.function_attachments(&mut f, definition, nested)?;
        }
        self.numbers.truncate(known_metadata);
        self.check_finished(&f, end)?;
        if let GlobalKind::Function(function) = &mut self.module.globals[definition.global].kind {
            function.body = Some(f.body);
        }
        Ok(())
    }

    fn check_finished(&self, f: &FunctionState, end: usize) -> Result<(), ReadError> {
        // The first in the file, not in the table.
        if let Some((number, (_, _, at))) = f.forward.iter().min_by_key(|(number, (_, _, at))| (*at, **number)) {
            return Err(ReadError::new(*at, format!("value {number} is used and not defined")));
        }
        if f.ended < f.blocks || f.blocks == 0 {
            return Err(ReadError::new(end, "the last block of a function does not end"));
        }
        if !f.bundles.is_empty() {
            return Err(ReadError::new(end, "operand bundles stand before no call"));
        }
        Ok(())
    }

    fn function_record(&mut self, f: &mut FunctionState, record: &Record, left: u64) -> Result<(), ReadError> {
        match record.code {
            code::BLOCKS => {
                let count = record.get(0).unwrap_or(0);
                if f.blocks != 0 || count == 0 || count > left {
                    return Err(record.error(format!("a function this long cannot have {count} blocks")));
                }
                f.blocks = count as u32;
                for _ in 0..count {
                    f.body.add_block(None);
                }
                f.body.start_block(BlockId::new(0));
                Ok(())
            }
            code::BLOCK_ADDRESS_USERS => Ok(()),
            code::LOCATION => self.location(f, record),
            code::LOCATION_AGAIN => {
                self.set_location(f, record)?;
                Ok(())
            }
            code::BUNDLE => self.bundle(f, record),
            code::RECORD_VALUE
            | code::RECORD_DECLARE
            | code::RECORD_ASSIGN
            | code::RECORD_VALUE_SIMPLE
            | code::RECORD_LABEL
            | code::RECORD_DECLARE_VALUE => self.debug_record(f, record),
            _ => self.instruction(f, record),
        }
    }

    /// Appends an instruction. `ty` is the number of the type of its result, if it has one.
    pub(super) fn push(
        &mut self,
        f: &mut FunctionState,
        record: &Record,
        instruction: Instruction,
        ty: Option<u32>,
    ) -> Result<InstId, ReadError> {
        if f.ended >= f.blocks {
            return Err(record.error("an instruction stands in no block"));
        }
        let result = match ty.map(|ty| (ty, self.types.id(ty))) {
            None => None,
            Some((_, None)) => return Err(record.error("the result of an instruction has no type")),
            Some((_, Some(id))) if self.module.types.get(id) == Type::Void => None,
            Some((ty, Some(id))) => Some(self.result(f, record, ty, id)?),
        };
        let at = self.place(record);
        let inst = f.body.push(instruction, result, at);
        f.instructions.push(inst);
        if instruction.is_terminator() {
            f.ended += 1;
            if f.ended < f.blocks {
                f.body.start_block(BlockId::new(f.ended as usize));
            }
        }
        Ok(inst)
    }

    /// The value of the next number.
    fn result(&mut self, f: &mut FunctionState, record: &Record, ty: u32, id: TypeId) -> Result<ValueId, ReadError> {
        let number = f.next(self.values.len());
        let value = match f.forward.remove(&number) {
            Some((value, _, _)) if f.body.values[value].ty != id => {
                return Err(record.error(format!("value {number} was used with another type")));
            }
            Some((value, _, _)) => value,
            None => f.body.add_value(id),
        };
        f.values.push(Numbered32 { operand: value.into(), ty });
        Ok(value)
    }

    /// The value with that number, if it is defined.
    fn defined(&self, f: &FunctionState, number: u64) -> Option<Numbered32> {
        let number = usize::try_from(number).ok()?;
        match number.checked_sub(self.values.len()) {
            None => {
                let value = self.values[number];
                Some(Numbered32 { operand: value.constant.into(), ty: value.ty })
            }
            Some(index) => f.values.get(index).copied(),
        }
    }

    /// The number that an operand means.
    fn absolute(&self, f: &FunctionState, operand: u64) -> u64 {
        if self.version == 0 {
            return operand;
        }
        // Differences are taken in 32 bits, so that forward ones wrap around.
        u64::from((f.next(self.values.len()) as u32).wrapping_sub(operand as u32))
    }

    /// The value with that number and type, which may be defined later.
    fn value_of_type(
        &mut self,
        f: &mut FunctionState,
        record: &Record,
        number: u64,
        ty: u32,
    ) -> Result<Operand, ReadError> {
        if let Some(known) = self.defined(f, number) {
            return Ok(known.operand);
        }
        if let Some((value, _, _)) = f.forward.get(&number) {
            return Ok((*value).into());
        }
        let Some(id) = self.types.id(ty) else { return Err(record.error("a value has no type")) };
        if number > u64::from(u32::MAX) || matches!(self.module.types.get(id), Type::Void) {
            return Err(record.error(format!("there is no value {number}")));
        }
        let value = f.body.add_value(id);
        f.forward.insert(number, (value, ty, record.at));
        Ok(value.into())
    }

    /// An operand that says its type when it is not defined yet.
    pub(super) fn typed(&mut self, f: &mut FunctionState, c: &mut Cursor<'_>) -> Result<Numbered32, ReadError> {
        let operand = c.next()?;
        let number = self.absolute(f, operand);
        if let Some(known) = self.defined(f, number) {
            return Ok(known);
        }
        let ty = c.next()?;
        if self.kind(u32::try_from(ty).unwrap_or(u32::MAX)) == Type::Metadata {
            let metadata = self.metadata(number);
            return Ok(Numbered32 { operand: self.metadata_operand(metadata), ty: ty as u32 });
        }
        self.type_id(c.record, ty)?;
        let operand = self.value_of_type(f, c.record, number, ty as u32)?;
        Ok(Numbered32 { operand, ty: ty as u32 })
    }

    /// An operand of a known type.
    pub(super) fn of_type(&mut self, f: &mut FunctionState, c: &mut Cursor<'_>, ty: u32) -> Result<Operand, ReadError> {
        let operand = c.next()?;
        let number = self.absolute(f, operand);
        if self.kind(ty) == Type::Metadata {
            let metadata = self.metadata(number);
            return Ok(self.metadata_operand(metadata));
        }
        let value = self.value_of_type(f, c.record, number, ty)?;
        self.check_type(f, c.record, value, ty)?;
        Ok(value)
    }

    /// An operand of a `phi`, whose number is a signed difference.
    pub(super) fn signed_of_type(
        &mut self,
        f: &mut FunctionState,
        c: &mut Cursor<'_>,
        ty: u32,
    ) -> Result<Operand, ReadError> {
        let operand = c.next()?;
        let number = match self.version {
            0 => operand,
            _ => (f.next(self.values.len()) as i64).wrapping_sub(codes::signed(operand)) as u64 & 0xffff_ffff,
        };
        let value = self.value_of_type(f, c.record, number, ty)?;
        self.check_type(f, c.record, value, ty)?;
        Ok(value)
    }

    /// A constant of the function or module by its own number.
    pub(super) fn constant(&self, f: &FunctionState, record: &Record, number: u64) -> Result<ConstId, ReadError> {
        let found = self.defined(f, number).and_then(|value| value.operand.constant());
        found.ok_or_else(|| record.error(format!("there is no constant {number}")))
    }

    /// A value by its own number, which may be defined later.
    pub(super) fn absolute_of_type(
        &mut self,
        f: &mut FunctionState,
        record: &Record,
        number: u64,
        ty: u32,
    ) -> Result<Operand, ReadError> {
        self.value_of_type(f, record, number, ty)
    }

    fn check_type(&self, f: &FunctionState, record: &Record, value: Operand, ty: u32) -> Result<(), ReadError> {
        let found = self.module.type_of(&f.body, value);
        if found.is_some() && found != self.types.id(ty) {
            return Err(record.error("an operand has another type than its place"));
        }
        Ok(())
    }

    /// Metadata as an argument.
    fn metadata_operand(&mut self, metadata: Numbered) -> Operand {
        match metadata {
            Numbered::Module(id) => self.module.metadata_operand(id).into(),
            Numbered::Local(id) => id.into(),
        }
    }

    /// The block with that number.
    pub(super) fn block_numbered(&self, f: &FunctionState, record: &Record, number: u64) -> Result<BlockId, ReadError> {
        match u32::try_from(number) {
            Ok(number) if number < f.blocks => Ok(BlockId::new(number as usize)),
            _ => Err(record.error(format!("there is no block {number}"))),
        }
    }

    /// The location of the last instruction.
    fn location(&mut self, f: &mut FunctionState, record: &Record) -> Result<(), ReadError> {
        let [line, column, scope, inlined_at, ..] = record.values[..] else {
            return Err(record.error("the record of a location is too short"));
        };
        let location = DebugLocation {
            distinct: false,
            line: line as u32,
            column: column as u32,
            scope: self.optional_metadata(scope),
            inlined_at: self.optional_metadata(inlined_at),
            implicit: record.get(4).unwrap_or(0) != 0,
        };
        f.location = Some(self.module.metadata.location(location));
        self.set_location(f, record)
    }

    fn set_location(&mut self, f: &mut FunctionState, record: &Record) -> Result<(), ReadError> {
        match f.instructions.last() {
            Some(last) => f.body.instructions[*last].location = f.location.into(),
            None => return Err(record.error("a location stands before the first instruction")),
        }
        Ok(())
    }

    fn bundle(&mut self, f: &mut FunctionState, record: &Record) -> Result<(), ReadError> {
        let mut c = Cursor::new(record);
        let tag = c.next()?;
        let tag = usize::try_from(tag).ok().and_then(|tag| self.bundle_tags.get(tag)).copied();
        let Some(tag) = tag else { return Err(record.error("an operand bundle has an unknown tag")) };
        let mut operands = Vec::new();
        while c.left() > 0 {
            operands.push(self.typed(f, &mut c)?.operand);
        }
        let operands = f.body.add_operands(&operands);
        f.bundles.push(Bundle { tag, operands });
        Ok(())
    }

    fn debug_record(&mut self, f: &mut FunctionState, record: &Record) -> Result<(), ReadError> {
        let kind = match record.code {
            code::RECORD_DECLARE => DebugRecordKind::Declare,
            code::RECORD_ASSIGN => DebugRecordKind::Assign,
            code::RECORD_LABEL => DebugRecordKind::Label,
            code::RECORD_DECLARE_VALUE => DebugRecordKind::DeclareValue,
            _ => DebugRecordKind::Value,
        };
        let mut c = Cursor::new(record);
        let location = c.next()?;
        let location = self.module_metadata(location);
        let mut operands = Vec::new();
        let mut tail = Vec::new();
        if record.code == code::RECORD_VALUE_SIMPLE {
            let (variable, expression) = (c.next()?, c.next()?);
            let value = self.typed(f, &mut c)?;
            operands.push(self.about_operand(f, value.operand));
            tail.extend([variable, expression]);
        } else {
            let rest: Vec<u64> = record.values.iter().skip(1).copied().collect();
            // The file puts variable and expression before the value, text after it.
            match (record.code, rest.as_slice()) {
                (code::RECORD_LABEL, _) => tail = rest,
                (_, [variable, expression, value, more @ ..]) => {
                    let value = self.metadata(*value);
                    operands.push(self.metadata_operand(value));
                    tail.extend([*variable, *expression]);
                    // An assignment goes on with its number, its address and the address's expression.
                    match more {
                        [assignment, expression, address] => tail.extend([*assignment, *address, *expression]),
                        _ => tail.extend_from_slice(more),
                    }
                }
                _ => return Err(record.error("the record of debug information is too short")),
            }
        }
        for number in tail {
            let metadata = self.metadata(number);
            operands.push(self.metadata_operand(metadata));
        }
        // The file puts records after the instruction that they stand before.
        let Some(before) = f.instructions.last().copied() else {
            return Err(record.error("debug information stands before no instruction"));
        };
        let arguments = f.body.add_operands(&operands);
        f.body.records.push(DebugRecord { before, kind, arguments, location: location.into() });
        Ok(())
    }

    /// Metadata that names a value.
    fn about_operand(&mut self, f: &mut FunctionState, value: Operand) -> Operand {
        match value.constant() {
            Some(constant) => {
                let metadata = self.module.metadata.value(constant);
                self.module.metadata_operand(metadata).into()
            }
            None => f.body.metadata.push(LocalMetadata::Value(value)).into(),
        }
    }

    fn function_constants(&mut self, f: &mut FunctionState, nested: Nested) -> Result<(), ReadError> {
        let base = f.next(self.values.len()) as usize;
        let values = &f.values;
        let known = |reader: &Reader<'_, '_>, number: usize| -> Option<ConstId> {
            match number.checked_sub(reader.values.len()) {
                None => Some(reader.values[number].constant),
                Some(index) => values.get(index).and_then(|value| value.operand.constant()),
            }
        };
        let constants = self.read_constants(nested, base, &known)?;
        f.values.extend(constants.into_iter().map(|made| Numbered32 { operand: made.id.into(), ty: made.ty }));
        Ok(())
    }

    fn function_metadata(&mut self, f: &mut FunctionState, nested: Nested) -> Result<(), ReadError> {
        self.read_metadata(nested, f)
    }

    fn value_names(&mut self, f: &mut FunctionState, nested: Nested) -> Result<(), ReadError> {
        let mut block = Block::enter(self.bytes, nested, &self.info);
        let mut record = Record::default();
        loop {
            match block.next(&mut record)? {
                Item::End => return Ok(()),
                Item::Block(_) => {}
                Item::Record => {
                    let Some(number) = record.get(0) else { continue };
                    let name = self.module.names.intern(&record.text(1));
                    match record.code {
                        NAME_OF_VALUE => {
                            let value = self.defined(f, number).and_then(|value| value.operand.value());
                            f.body.names.extend(value.map(|value| (value, name)));
                        }
                        NAME_OF_BLOCK => {
                            let block = self.block_numbered(f, &record, number)?;
                            f.body.blocks[block].name = Some(name);
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    fn function_attachments(
        &mut self,
        f: &mut FunctionState,
        definition: Definition,
        nested: Nested,
    ) -> Result<(), ReadError> {
        let instructions = &f.instructions;
        let attachments = &mut f.body.attachments;
        let mut outside = false;
        self.read_attachments(nested, definition.global, &mut |index, kind, node| match usize::try_from(index)
            .ok()
            .and_then(|index| instructions.get(index))
        {
            Some(inst) => attachments.push((*inst, kind, node)),
            None => outside = true,
        })?;
        attachments.sort_by_key(|(inst, ..)| *inst);
        if outside {
            return Err(ReadError::new(0, "metadata is attached to an instruction that does not exist"));
        }
        Ok(())
    }
}
