//! Blocks of metadata: strings, nodes and their names, attachments.
//!
//! Metadata is numbered through: strings first, then nodes in their order; a function's own metadata goes on from the
//! module's. A number that is mentioned before it is defined gets its entry in the model at once.

use rustc_hash::FxHashMap;

use super::Reader;
use super::bitstream::{Block, BlockInfo, Item, Nested, Record};
use super::debug_info;
use crate::ReadError;
use crate::model::{ConstId, GlobalId, LocalMetadataId, Metadata, MetadataId, MetadataRef, Name};

/// Codes of records.
pub(super) mod code {
    pub const STRING_OLD: u32 = 1;
    pub const VALUE: u32 = 2;
    pub const NODE: u32 = 3;
    pub const NAME: u32 = 4;
    pub const DISTINCT_NODE: u32 = 5;
    pub const KIND: u32 = 6;
    pub const LOCATION: u32 = 7;
    pub const OLD_NODE: u32 = 8;
    pub const OLD_FUNCTION_NODE: u32 = 9;
    pub const NAMED_NODE: u32 = 10;
    pub const ATTACHMENT: u32 = 11;
    pub const STRINGS: u32 = 35;
    pub const GLOBAL_ATTACHMENT: u32 = 36;
    pub const INDEX_OFFSET: u32 = 38;
    pub const INDEX: u32 = 39;
    pub const ARGUMENTS: u32 = 46;
}

/// What a number of metadata stands for.
#[derive(Clone, Copy, Debug)]
pub enum Numbered {
    /// Metadata of the module.
    Module(MetadataId),
    /// Metadata that names a value of the function.
    Local(LocalMetadataId),
}

/// The metadata of a file by number.
#[derive(Default)]
pub struct Numbers {
    defined: Vec<Numbered>,
    /// Entries of numbers that are mentioned before their definition.
    mentioned: FxHashMap<u64, MetadataId>,
    /// Kinds of attachments.
    kinds: FxHashMap<u64, Name>,
}

impl Numbered {
    /// The metadata of the module.
    fn module(self) -> Option<MetadataId> {
        match self {
            Numbered::Module(id) => Some(id),
            Numbered::Local(_) => None,
        }
    }
}

/// What metadata about a value is about.
pub enum About {
    /// A constant.
    Constant(ConstId),
    /// A value of the function, as metadata of its body.
    Local(LocalMetadataId),
}

/// The module or the function that a block of metadata belongs to.
pub trait Owner {
    /// The value with that number, by the number of its type.
    fn value(&mut self, reader: &mut Reader<'_, '_>, record: &Record, ty: u64, number: u64)
    -> Result<About, ReadError>;

    /// A list of metadata about values, when it names any of a function.
    fn list(&mut self, reader: &Reader<'_, '_>, parts: &[Numbered]) -> Option<LocalMetadataId>;
}

impl Numbers {
    /// How many are defined.
    pub fn len(&self) -> usize {
        self.defined.len()
    }

    /// Forgets what a function added.
    pub fn truncate(&mut self, len: usize) {
        self.defined.truncate(len);
        self.mentioned.retain(|number, _| *number < len as u64);
    }
}

impl Reader<'_, '_> {
    /// The metadata with that number.
    pub fn metadata(&mut self, number: u64) -> Numbered {
        if let Some(known) = usize::try_from(number).ok().and_then(|number| self.numbers.defined.get(number)) {
            return *known;
        }
        let table = &mut self.module.metadata;
        let id = self.numbers.mentioned.entry(number).or_insert_with(|| table.add(Metadata::Unknown));
        Numbered::Module(*id)
    }

    /// The metadata of the module with that number.
    pub fn module_metadata(&mut self, number: u64) -> MetadataId {
        match self.metadata(number) {
            Numbered::Module(id) => id,
            // A node cannot name values of a function; what it would mean is unknown.
            Numbered::Local(_) => self.module.metadata.add(Metadata::Unknown),
        }
    }

    /// The metadata whose number is one less; 0 is null.
    pub fn optional_metadata(&mut self, number: u64) -> MetadataRef {
        number.checked_sub(1).map(|number| self.module_metadata(number)).into()
    }

    /// The string whose number is one less; 0 is none.
    pub fn optional_text(&mut self, number: u64) -> Option<Name> {
        let id = self.optional_metadata(number);
        self.module.metadata.as_text(id)
    }

    fn define(&mut self, metadata: Numbered) {
        let number = self.numbers.defined.len() as u64;
        if let (Some(id), Numbered::Module(made)) = (self.numbers.mentioned.remove(&number), metadata) {
            // What was mentioned has an entry already: it becomes what was made.
            let content = self.module.metadata.get(made);
            self.module.metadata.entries[id] = content;
            self.numbers.defined.push(Numbered::Module(id));
            return;
        }
        self.numbers.defined.push(metadata);
    }

    /// Defines the next number as that content.
    fn define_content(&mut self, content: Metadata) {
        let number = self.numbers.defined.len() as u64;
        let id = match self.numbers.mentioned.remove(&number) {
            Some(id) => {
                self.module.metadata.entries[id] = content;
                id
            }
            None => self.module.metadata.add(content),
        };
        self.numbers.defined.push(Numbered::Module(id));
    }

    /// Reads a block of metadata of the module or of a function.
    pub fn read_metadata(&mut self, nested: Nested, owner: &mut dyn Owner) -> Result<(), ReadError> {
        let mut block = Block::enter(self.bytes, nested, &self.info);
        let mut record = Record::default();
        let mut name: Vec<u8> = Vec::new();
        loop {
            match block.next(&mut record)? {
                Item::End => return Ok(()),
                Item::Block(_) => {}
                Item::Record => match record.code {
                    code::NAME => name = record.text(0),
                    code::NAMED_NODE => {
                        let nodes: Vec<u64> = record.values.clone();
                        let nodes = nodes.into_iter().map(|number| self.module_metadata(number)).collect();
                        self.add_named(std::mem::take(&mut name), nodes);
                    }
                    code::KIND => self.add_kind(&record)?,
                    code::GLOBAL_ATTACHMENT => self.attach_to_global(&record)?,
                    code::INDEX_OFFSET | code::INDEX => {}
                    code::STRINGS => self.strings(&record)?,
                    code::STRING_OLD => {
                        let text = self.module.names.intern(&record.text(0));
                        let id = self.module.metadata.text(text);
                        self.define(Numbered::Module(id));
                    }
                    code::VALUE | code::ARGUMENTS | code::OLD_NODE | code::OLD_FUNCTION_NODE => {
                        self.about_values(&record, owner)?;
                    }
                    code::NODE | code::DISTINCT_NODE => {
                        let operands: Vec<MetadataRef> =
                            record.values.iter().map(|number| self.optional_metadata(*number)).collect();
                        let operands = self.module.metadata.add_operands(&operands);
                        let distinct = record.code == code::DISTINCT_NODE;
                        self.define_content(Metadata::Node { distinct, operands });
                    }
                    code::LOCATION => {
                        let location = debug_info::location(self, &record)?;
                        self.define_content(Metadata::Location(location));
                    }
                    _ => {
                        let content = debug_info::read(self, &record)?;
                        self.define_content(content);
                    }
                },
            }
        }
    }

    /// Appends to a named node, which another file may have, too.
    fn add_named(&mut self, name: Vec<u8>, nodes: Vec<MetadataId>) {
        let name = self.module.names.intern(&name);
        match self.module.named_metadata.iter_mut().find(|(known, _)| *known == name) {
            Some((_, all)) => all.extend(nodes),
            None => self.module.named_metadata.push((name, nodes)),
        }
    }

    fn about_values(&mut self, record: &Record, owner: &mut dyn Owner) -> Result<(), ReadError> {
        match record.code {
            code::VALUE => {
                let (Some(ty), Some(value)) = (record.get(0), record.get(1)) else {
                    return Err(record.error("metadata about a value names none"));
                };
                match owner.value(self, record, ty, value)? {
                    About::Constant(constant) => {
                        let id = self.module.metadata.value(constant);
                        self.define(Numbered::Module(id));
                    }
                    About::Local(id) => self.define(Numbered::Local(id)),
                }
            }
            code::ARGUMENTS => {
                let numbers: Vec<Numbered> = record.values.iter().map(|number| self.metadata(*number)).collect();
                if let Some(id) = owner.list(self, &numbers) {
                    self.define(Numbered::Local(id));
                    return Ok(());
                }
                let operands: Vec<MetadataRef> = numbers.iter().map(|number| number.module().into()).collect();
                let operands = self.module.metadata.add_operands(&operands);
                self.define_content(Metadata::Arguments(operands));
            }
            // Pairs of types and values; metadata is a value there.
            _ => {
                let mut operands: Vec<MetadataRef> = Vec::new();
                for pair in record.values.chunks_exact(2) {
                    use crate::model::Type;
                    let ty = self.kind(u32::try_from(pair[0]).unwrap_or(u32::MAX));
                    operands.push(match ty {
                        Type::Metadata => self.module_metadata(pair[1]).into(),
                        Type::Void => None.into(),
                        _ => match owner.value(self, record, pair[0], pair[1])? {
                            About::Constant(constant) => self.module.metadata.value(constant).into(),
                            About::Local(_) => None.into(),
                        },
                    });
                }
                let operands = self.module.metadata.add_operands(&operands);
                self.define_content(Metadata::Node { distinct: false, operands });
            }
        }
        Ok(())
    }

    /// Strings in bulk: their lengths as numbers of six bits, then their bytes.
    fn strings(&mut self, record: &Record) -> Result<(), ReadError> {
        let (Some(count), Some(offset)) = (record.get(0), record.get(1)) else {
            return Err(record.error("the record of metadata strings is too short"));
        };
        let blob = self.bytes.get(record.blob.clone()).unwrap_or(&[]);
        let split = usize::try_from(offset).ok().filter(|offset| *offset <= blob.len());
        let Some(split) = split else { return Err(record.error("the lengths of metadata strings are missing")) };
        let (lengths, mut chars) = blob.split_at(split);
        let mut lengths = Block::bits(lengths);
        if count > lengths.remaining() {
            return Err(record.error("there are fewer metadata strings than announced"));
        }
        for _ in 0..count {
            let length =
                lengths.variable(6).map_err(|_| record.error("the lengths of metadata strings are missing"))?;
            let length = usize::try_from(length).ok().filter(|length| *length <= chars.len());
            let Some(length) = length else { return Err(record.error("a metadata string is longer than its record")) };
            let (text, rest) = chars.split_at(length);
            chars = rest;
            let text = self.module.names.intern(text);
            let id = self.module.metadata.text(text);
            self.define(Numbered::Module(id));
        }
        Ok(())
    }

    fn add_kind(&mut self, record: &Record) -> Result<(), ReadError> {
        let Some(number) = record.get(0) else { return Err(record.error("a kind of metadata has no number")) };
        let name = self.module.names.intern(&record.text(1));
        self.numbers.kinds.insert(number, name);
        Ok(())
    }

    /// Reads the block of kinds.
    pub fn read_metadata_kinds(&mut self, nested: Nested) -> Result<(), ReadError> {
        let mut block = Block::enter(self.bytes, nested, &self.info);
        let mut record = Record::default();
        loop {
            match block.next(&mut record)? {
                Item::End => return Ok(()),
                Item::Record if record.code == code::KIND => self.add_kind(&record)?,
                Item::Record | Item::Block(_) => {}
            }
        }
    }

    /// The pairs of kind and node from operand `start` on.
    fn attachments(&mut self, record: &Record, start: usize) -> Result<Vec<(Name, MetadataId)>, ReadError> {
        let mut all = Vec::new();
        for pair in record.values.get(start..).unwrap_or(&[]).chunks_exact(2) {
            let Some(kind) = self.numbers.kinds.get(&pair[0]).copied() else {
                return Err(record.error(format!("there is no kind of metadata {}", pair[0])));
            };
            all.push((kind, self.module_metadata(pair[1])));
        }
        Ok(all)
    }

    fn attach_to_global(&mut self, record: &Record) -> Result<(), ReadError> {
        let global = record.get(0).and_then(|number| self.global_numbered(number));
        let Some(global) = global else { return Err(record.error("metadata is attached to no symbol")) };
        let attachments = self.attachments(record, 1)?;
        self.module.globals[global].attachments.extend(attachments);
        Ok(())
    }

    /// Reads a block of attachments of a function: of the function itself, and by the index of the instruction.
    pub fn read_attachments(
        &mut self,
        nested: Nested,
        function: GlobalId,
        each: &mut dyn FnMut(u64, Name, MetadataId),
    ) -> Result<(), ReadError> {
        let mut block = Block::enter(self.bytes, nested, &self.info);
        let mut record = Record::default();
        loop {
            match block.next(&mut record)? {
                Item::End => return Ok(()),
                Item::Record if record.code == code::ATTACHMENT => {
                    if record.values.len() % 2 == 0 {
                        let attachments = self.attachments(&record, 0)?;
                        self.module.globals[function].attachments.extend(attachments);
                    } else {
                        let instruction = record.values[0];
                        let attachments = self.attachments(&record, 1)?;
                        attachments.into_iter().for_each(|(kind, node)| each(instruction, kind, node));
                    }
                }
                Item::Record | Item::Block(_) => {}
            }
        }
    }
}

/// Reads a block of names: of bundle tags or scopes, one a record.
pub fn read_names(bytes: &[u8], nested: Nested, info: &BlockInfo) -> Result<Vec<Vec<u8>>, ReadError> {
    let mut block = Block::enter(bytes, nested, info);
    let mut record = Record::default();
    let mut names = Vec::new();
    loop {
        match block.next(&mut record)? {
            Item::End => return Ok(names),
            Item::Record => names.push(record.text(0)),
            Item::Block(_) => {}
        }
    }
}
