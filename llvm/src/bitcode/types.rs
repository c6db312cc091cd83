//! The table of types of a file.
//!
//! Records name types by number. The model's pointers are opaque; what a pointer of an older file points to is kept
//! here, by number, for the records that leave it out (`load` and `getelementptr` before LLVM 3.7, `byval`).

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::bitstream::{Block, BlockInfo, Item, Nested, Record};
use crate::ReadError;
use crate::model::{Module, StructId, Type, TypeId};

/// One type of the file.
struct Entry {
    id: TypeId,
    /// Numbers of the types it is made of: of the pointee, of the elements, of the fields, of result and parameters.
    parts: Range<usize>,
}

/// The types of a file, by number.
#[derive(Default)]
pub struct TypeTable {
    entries: Vec<Option<Entry>>,
    parts: Vec<u32>,
    /// Types that are not in the file, made for results of instructions.
    derived: FxHashMap<(TypeId, Vec<u32>), u32>,
    /// Structs that were mentioned before they were defined.
    mentioned: FxHashMap<u32, StructId>,
}

/// Codes of records.
mod code {
    pub const NUMBER_OF_ENTRIES: u32 = 1;
    pub const VOID: u32 = 2;
    pub const FLOAT: u32 = 3;
    pub const DOUBLE: u32 = 4;
    pub const LABEL: u32 = 5;
    pub const OPAQUE: u32 = 6;
    pub const INTEGER: u32 = 7;
    pub const POINTER: u32 = 8;
    pub const FUNCTION_OLD: u32 = 9;
    pub const HALF: u32 = 10;
    pub const ARRAY: u32 = 11;
    pub const VECTOR: u32 = 12;
    pub const X86_FP80: u32 = 13;
    pub const FP128: u32 = 14;
    pub const PPC_FP128: u32 = 15;
    pub const METADATA: u32 = 16;
    pub const X86_MMX: u32 = 17;
    pub const STRUCT: u32 = 18;
    pub const STRUCT_NAME: u32 = 19;
    pub const NAMED_STRUCT: u32 = 20;
    pub const FUNCTION: u32 = 21;
    pub const TOKEN: u32 = 22;
    pub const BFLOAT: u32 = 23;
    pub const X86_AMX: u32 = 24;
    pub const OPAQUE_POINTER: u32 = 25;
    pub const TARGET: u32 = 26;
    pub const BYTE: u32 = 27;
}

impl TypeTable {
    /// The type with that number.
    pub fn id(&self, number: u32) -> Option<TypeId> {
        self.entries.get(number as usize)?.as_ref().map(|entry| entry.id)
    }

    /// The numbers of the types it is made of.
    pub fn parts(&self, number: u32) -> &[u32] {
        let entry = self.entries.get(number as usize).and_then(Option::as_ref);
        entry.map_or(&[], |entry| &self.parts[entry.parts.clone()])
    }

    /// The number of part `index`; any index of an array or vector.
    pub fn part(&self, module: &Module, number: u32, index: u64) -> Option<u32> {
        let parts = self.parts(number);
        match module.types.get(self.id(number)?) {
            Type::Array { .. } | Type::Vector { .. } => parts.first().copied(),
            Type::Struct { .. } | Type::Named(_) => parts.get(usize::try_from(index).ok()?).copied(),
            _ => None,
        }
    }

    /// What a pointer of an older file points to.
    pub fn pointee(&self, module: &Module, number: u32) -> Option<u32> {
        matches!(module.types.get(self.id(number)?), Type::Pointer(_)).then(|| self.parts(number).first().copied())?
    }

    /// The number of a type that may not be in the file.
    pub fn derive(&mut self, id: TypeId, parts: &[u32]) -> u32 {
        let key = (id, parts.to_vec());
        if let Some(number) = self.derived.get(&key) {
            return *number;
        }
        let number = self.entries.len() as u32;
        let entry = self.entry(id, parts);
        self.entries.push(Some(entry));
        self.derived.insert(key, number);
        number
    }

    /// A vector of as many lanes as that of `like`, or the element itself when that is no vector.
    pub fn with_lanes_of(&mut self, module: &mut Module, element: u32, like: TypeId) -> Option<u32> {
        match module.types.get(like) {
            Type::Vector { len, scalable, .. } => self.vector(module, element, len, scalable),
            _ => Some(element),
        }
    }

    /// A vector.
    pub fn vector(&mut self, module: &mut Module, element: u32, len: u32, scalable: bool) -> Option<u32> {
        let id = module.types.intern(Type::Vector { len, scalable, element: self.id(element)? });
        Some(self.derive(id, &[element]))
    }

    fn entry(&mut self, id: TypeId, parts: &[u32]) -> Entry {
        let start = self.parts.len();
        self.parts.extend_from_slice(parts);
        Entry { id, parts: start..self.parts.len() }
    }

    /// Reads the block.
    pub fn read(
        &mut self,
        bytes: &[u8],
        nested: Nested,
        info: &BlockInfo,
        module: &mut Module,
    ) -> Result<(), ReadError> {
        let mut block = Block::enter(bytes, nested, info);
        let mut record = Record::default();
        let mut next = 0;
        let mut name: Vec<u8> = Vec::new();
        loop {
            match block.next(&mut record)? {
                Item::End => break,
                Item::Block(_) => {}
                Item::Record if record.code == code::NUMBER_OF_ENTRIES => {
                    let count = record.get(0).unwrap_or(0);
                    if count > block.remaining() {
                        return Err(record.error(format!("a block this long cannot hold {count} types")));
                    }
                    if self.entries.len() < count as usize {
                        self.entries.resize_with(count as usize, || None);
                    }
                }
                Item::Record if record.code == code::STRUCT_NAME => name = record.text(0),
                Item::Record => {
                    if next as usize >= self.entries.len() {
                        return Err(record.error("there are more types than were announced"));
                    }
                    self.define(module, &record, next, &mut name)?;
                    next += 1;
                }
            }
        }
        self.entries.truncate(next as usize);
        if let Some(number) = self.mentioned.keys().find(|number| **number >= next) {
            return Err(ReadError::new(block.position(), format!("type {number} is used and not defined")));
        }
        Ok(())
    }

    /// The type with that number, which may be a struct that is defined later.
    fn mention(&mut self, module: &mut Module, record: &Record, number: u64) -> Result<TypeId, ReadError> {
        let undefined = || record.error(format!("there is no type {number}"));
        let number = u32::try_from(number).map_err(|_| undefined())?;
        match self.entries.get(number as usize) {
            None => Err(undefined()),
            Some(Some(entry)) => Ok(entry.id),
            Some(None) => {
                let (structure, id) = module.types.named(None);
                self.mentioned.insert(number, structure);
                self.entries[number as usize] = Some(Entry { id, parts: 0..0 });
                Ok(id)
            }
        }
    }

    /// The types with these numbers.
    fn mentions(&mut self, module: &mut Module, record: &Record, numbers: &[u64]) -> Result<Vec<TypeId>, ReadError> {
        numbers.iter().map(|number| self.mention(module, record, *number)).collect()
    }

    fn define(
        &mut self,
        module: &mut Module,
        record: &Record,
        number: u32,
        name: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let operand = |index: usize| record.get(index).ok_or_else(|| record.error("the record of a type is too short"));
        let narrow = |value: u64| u32::try_from(value).map_err(|_| record.error("a number of a type is too large"));
        let ty = match record.code {
            code::VOID => Type::Void,
            code::FLOAT => Type::Float,
            code::DOUBLE => Type::Double,
            code::LABEL => Type::Label,
            code::HALF => Type::Half,
            code::BFLOAT => Type::BFloat,
            code::X86_FP80 => Type::X86Fp80,
            code::FP128 => Type::Fp128,
            code::PPC_FP128 => Type::PpcFp128,
            code::METADATA => Type::Metadata,
            code::X86_MMX | code::X86_AMX => Type::X86Vector,
            code::TOKEN => Type::Token,
            code::INTEGER | code::BYTE => {
                let bits = narrow(operand(0)?)?;
                if bits == 0 || bits > 1 << 23 {
                    return Err(record.error(format!("an integer cannot have {bits} bits")));
                }
                if record.code == code::BYTE { Type::Byte(bits) } else { Type::Integer(bits) }
            }
            code::OPAQUE_POINTER => Type::Pointer(narrow(operand(0)?)?),
            code::POINTER => {
                let pointee = narrow(operand(0)?)?;
                let id = module.types.pointer(narrow(record.get(1).unwrap_or(0))?);
                return self.place(record, number, id, &[pointee]);
            }
            code::ARRAY | code::VECTOR => {
                let part = narrow(operand(1)?)?;
                let element = self.mention(module, record, operand(1)?)?;
                let len = operand(0)?;
                let ty = match record.code {
                    code::ARRAY => Type::Array { len, element },
                    _ => Type::Vector { len: narrow(len)?, scalable: record.get(2).unwrap_or(0) != 0, element },
                };
                let id = module.types.intern(ty);
                return self.place(record, number, id, &[part]);
            }
            _ => return self.define_composed(module, record, number, name),
        };
        let id = module.types.intern(ty);
        self.place(record, number, id, &[])
    }

    /// Structs, functions and types of targets.
    fn define_composed(
        &mut self,
        module: &mut Module,
        record: &Record,
        number: u32,
        name: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let first = match record.code {
            code::OPAQUE => record.values.len(),
            code::STRUCT | code::NAMED_STRUCT | code::FUNCTION => 1,
            code::FUNCTION_OLD => 2,
            code::TARGET => return self.define_target(module, record, number, name),
            unknown => return Err(record.error(format!("there is no kind of type with number {unknown}"))),
        };
        let named = record.values.get(first..).unwrap_or_default();
        let ids = self.mentions(module, record, named)?;
        let parts: Vec<u32> = named.iter().map(|part| *part as u32).collect();
        let flag = record.get(0).unwrap_or(0) != 0;
        let id = match record.code {
            code::STRUCT => module.types.structure(flag, &ids),
            code::FUNCTION | code::FUNCTION_OLD => {
                let Some((result, params)) = ids.split_first() else {
                    return Err(record.error("a function type has no result"));
                };
                module.types.function(*result, params, flag)
            }
            _ => {
                let text = std::mem::take(name);
                let text = (!text.is_empty()).then(|| module.names.intern(&text));
                let (structure, id) = match self.mentioned.remove(&number) {
                    Some(structure) => {
                        module.types.structs[structure].name = text;
                        (structure, module.types.intern(Type::Named(structure)))
                    }
                    None => module.types.named(text),
                };
                if record.code == code::NAMED_STRUCT {
                    module.types.define(structure, flag, &ids);
                }
                id
            }
        };
        self.place(record, number, id, &parts)
    }

    fn define_target(
        &mut self,
        module: &mut Module,
        record: &Record,
        number: u32,
        name: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let count = record.get(0).unwrap_or(0);
        let count = usize::try_from(count).ok().filter(|count| *count < record.values.len());
        let Some(count) = count else {
            return Err(record.error("a type of a target has fewer parameters than it says"));
        };
        let types = self.mentions(module, record, &record.values[1..=count])?;
        let words: Vec<u32> = record.values[count + 1..].iter().map(|word| *word as u32).collect();
        let text = module.names.intern(&std::mem::take(name));
        let id = module.types.target(text, &types, &words);
        self.place(record, number, id, &[])
    }

    fn place(&mut self, record: &Record, number: u32, id: TypeId, parts: &[u32]) -> Result<(), ReadError> {
        if self.mentioned.contains_key(&number) {
            return Err(record.error(format!("type {number} contains itself and is no struct with a name")));
        }
        let entry = self.entry(id, parts);
        self.entries[number as usize] = Some(entry);
        Ok(())
    }
}
