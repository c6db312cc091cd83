//! Attribute groups and the lists of groups that functions and calls use.

use cranelift_entity::packed_option::PackedOption;
use rustc_hash::FxHashMap;

use super::Reader;
use super::bitstream::{Block, Item, Nested, Record};
use super::codes;
use crate::ReadError;
use crate::model::{Attribute, AttributeSetId, AttributeValue, AttributesId, Type};

/// Which the attributes of a group are for.
const OF_FUNCTION: u64 = 0xffff_ffff;

/// Record of a group, and of a list of groups.
const GROUP: u32 = 3;
const LIST: u32 = 2;
const OLD_LIST: u32 = 1;

/// A group: what it is for (0 the result, then the parameters from 1) and its attributes.
#[derive(Clone, Copy)]
struct Group {
    of: u64,
    set: AttributeSetId,
}

/// Attribute lists of a file.
#[derive(Default)]
pub struct Lists {
    groups: FxHashMap<u64, Group>,
    lists: Vec<AttributesId>,
    /// Lists with the types of parameters filled in, by list and function type.
    typed: FxHashMap<(AttributesId, u32), AttributesId>,
}

impl Reader<'_, '_> {
    /// The attributes with that number; 0 is none.
    pub fn attributes(&self, record: &Record, number: u64) -> Result<PackedOption<AttributesId>, ReadError> {
        let Some(index) = number.checked_sub(1) else { return Ok(None.into()) };
        let found = usize::try_from(index).ok().and_then(|index| self.lists.lists.get(index));
        found.map(|id| (*id).into()).ok_or_else(|| record.error(format!("there is no attribute list {number}")))
    }

    /// The same, where `byval` and its like of an older file get the type that the parameter points to.
    pub fn typed_attributes(&mut self, attributes: PackedOption<AttributesId>, ty: u32) -> PackedOption<AttributesId> {
        let Some(id) = attributes.expand() else { return attributes };
        if let Some(known) = self.lists.typed.get(&(id, ty)) {
            return (*known).into();
        }
        let lists = self.module.attributes.get(id);
        let function = self.module.attributes.sets(lists.function).to_vec();
        let mut params = self.module.attributes.params(lists.params).to_vec();
        for (index, set) in params.iter_mut().enumerate() {
            let pointer = self.types.parts(ty).get(index + 1).copied();
            let pointee = pointer.and_then(|pointer| self.types.pointee(self.module, pointer));
            let pointee = pointee.and_then(|pointee| self.types.id(pointee));
            if let (Some(old), Some(pointee)) = (set.expand(), pointee) {
                let mut all = self.module.attributes.set(old).to_vec();
                let untyped = |a: &Attribute| {
                    a.value == AttributeValue::Word && codes::is_about_pointee(self.module.names.bytes(a.name))
                };
                if all.iter().any(untyped) {
                    for attribute in all.iter_mut().filter(|attribute| untyped(attribute)) {
                        attribute.value = AttributeValue::Type(pointee);
                    }
                    *set = self.module.attributes.add_set(&all).into();
                }
            }
        }
        let typed = self.module.attributes.attributes(&function, lists.result, &params);
        self.lists.typed.insert((id, ty), typed);
        typed.into()
    }

    /// Reads the block of groups.
    pub fn read_attribute_groups(&mut self, nested: Nested) -> Result<(), ReadError> {
        let mut block = Block::enter(self.bytes, nested, &self.info);
        let mut record = Record::default();
        loop {
            match block.next(&mut record)? {
                Item::End => return Ok(()),
                Item::Record if record.code == GROUP => {
                    let (Some(number), Some(of)) = (record.get(0), record.get(1)) else {
                        return Err(record.error("the record of an attribute group is too short"));
                    };
                    let attributes = self.group(&record)?;
                    let set = self.module.attributes.add_set(&attributes);
                    self.lists.groups.insert(number, Group { of, set });
                }
                Item::Record | Item::Block(_) => {}
            }
        }
    }

    fn group(&mut self, record: &Record) -> Result<Vec<Attribute>, ReadError> {
        let mut values = Operands { record, at: 2 };
        let mut attributes = Vec::new();
        while values.at < record.values.len() {
            let attribute = match values.next()? {
                kind @ (3 | 4) => {
                    let key = values.text()?;
                    let text = if kind == 4 { values.text()? } else { Vec::new() };
                    let value = AttributeValue::Text(self.module.names.intern(&text));
                    Attribute { name: self.module.names.intern(&key), value }
                }
                kind => {
                    let number = values.next()?;
                    let name = self.module.names.intern(codes::attribute(number).as_bytes());
                    let value = match kind {
                        0 | 5 => AttributeValue::Word,
                        1 if codes::is_memory(number) => AttributeValue::Number(codes::memory_effects(values.next()?)),
                        1 => AttributeValue::Number(values.next()?),
                        6 => {
                            let ty = values.next()?;
                            AttributeValue::Type(self.type_id(record, ty)?)
                        }
                        7 => {
                            let bits = values.next()?;
                            let mut words = Vec::new();
                            values.range(bits, &mut words)?;
                            let words = self.module.attributes.add_words(&words);
                            AttributeValue::Range { bits: bits as u32, words }
                        }
                        8 => {
                            let count = values.next()?;
                            let bits = values.next()?;
                            let mut words = Vec::new();
                            for _ in 0..count {
                                values.range(bits, &mut words)?;
                            }
                            AttributeValue::Numbers(self.module.attributes.add_words(&words))
                        }
                        kind => return Err(record.error(format!("an attribute is of an unknown kind {kind}"))),
                    };
                    Attribute { name, value }
                }
            };
            attributes.push(attribute);
        }
        Ok(attributes)
    }

    /// Reads the block of lists.
    pub fn read_attribute_lists(&mut self, nested: Nested) -> Result<(), ReadError> {
        let mut block = Block::enter(self.bytes, nested, &self.info);
        let mut record = Record::default();
        loop {
            match block.next(&mut record)? {
                Item::End => return Ok(()),
                Item::Record if record.code == LIST => {
                    let list = self.list(&record)?;
                    self.lists.lists.push(list);
                }
                // Bit sets of LLVM before 3.3: nothing in them changes what the code does, except for kernels, which
                // such files name in metadata.
                Item::Record if record.code == OLD_LIST => {
                    let none = self.module.attributes.attributes(&[], None.into(), &[]);
                    self.lists.lists.push(none);
                }
                Item::Record | Item::Block(_) => {}
            }
        }
    }

    fn list(&mut self, record: &Record) -> Result<AttributesId, ReadError> {
        let mut function = Vec::new();
        let mut result: PackedOption<AttributeSetId> = None.into();
        let mut params: Vec<PackedOption<AttributeSetId>> = Vec::new();
        for number in &record.values {
            let Some(Group { of, set }) = self.lists.groups.get(number).copied() else {
                return Err(record.error(format!("there is no attribute group {number}")));
            };
            match of {
                OF_FUNCTION => function.push(set),
                0 => result = set.into(),
                param => {
                    let index = (param - 1) as usize;
                    if index >= params.len() {
                        self.spend(record.at, param - params.len() as u64)?;
                        params.resize(index + 1, None.into());
                    }
                    params[index] = set.into();
                }
            }
        }
        Ok(self.module.attributes.attributes(&function, result, &params))
    }

    /// The model's type with that number.
    pub fn type_id(&self, record: &Record, number: u64) -> Result<crate::model::TypeId, ReadError> {
        let number32 = u32::try_from(number).ok();
        let found = number32.and_then(|number| self.types.id(number));
        found.ok_or_else(|| record.error(format!("there is no type {number}")))
    }

    /// What kind of type has that number.
    pub fn kind(&self, number: u32) -> Type {
        self.types.id(number).map_or(Type::Void, |id| self.module.types.get(id))
    }
}

/// The operands of a record, one after the other.
struct Operands<'r> {
    record: &'r Record,
    at: usize,
}

impl Operands<'_> {
    fn next(&mut self) -> Result<u64, ReadError> {
        let value = self.record.get(self.at);
        self.at += 1;
        value.ok_or_else(|| self.record.error("the record of an attribute group ends early"))
    }

    /// The bytes up to a zero.
    fn text(&mut self) -> Result<Vec<u8>, ReadError> {
        let mut text = Vec::new();
        loop {
            match self.next()? {
                0 => return Ok(text),
                byte => text.push(byte as u8),
            }
        }
    }

    /// Lower and upper end of a range, as words.
    fn range(&mut self, bits: u64, words: &mut Vec<u64>) -> Result<(), ReadError> {
        if bits <= 64 {
            for _ in 0..2 {
                let end = codes::signed(self.next()?) as u64;
                words.push(if bits == 64 { end } else { end & ((1 << bits) - 1) });
            }
            return Ok(());
        }
        let counts = self.next()?;
        let width = bits.div_ceil(64);
        for count in [counts & 0xffff_ffff, counts >> 32] {
            if count > width || width > 128 {
                return Err(self.record.error("a range has more words than its type"));
            }
            for index in 0..width {
                words.push(if index < count { codes::signed(self.next()?) as u64 } else { 0 });
            }
        }
        Ok(())
    }
}
