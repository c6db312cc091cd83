//! Blocks of constants.
//!
//! Constants may use constants that follow them, so a block is read whole and made afterwards, operands first. That
//! needs no recursion: what is waiting for operands stands on a stack of its own.

use std::ops::Range;

use smallvec::SmallVec;

use super::Reader;
use super::bitstream::{Block, Item, Nested, Record};
use super::codes;
use crate::ReadError;
use crate::model::{
    Assembly, BlockAddress, BlockId, CastOp, ConstId, Constant, Flags, FloatPredicate, GlobalId, IntPredicate, Type,
    TypeId,
};
use cranelift_entity::EntityRef;

/// Codes of records.
mod code {
    pub const SET_TYPE: u32 = 1;
    pub const NULL: u32 = 2;
    pub const UNDEF: u32 = 3;
    pub const INTEGER: u32 = 4;
    pub const WIDE_INTEGER: u32 = 5;
    pub const FLOAT: u32 = 6;
    pub const AGGREGATE: u32 = 7;
    pub const STRING: u32 = 8;
    pub const C_STRING: u32 = 9;
    pub const BINARY: u32 = 10;
    pub const CAST: u32 = 11;
    pub const GEP_OLD: u32 = 12;
    pub const SELECT: u32 = 13;
    pub const EXTRACT_ELEMENT: u32 = 14;
    pub const INSERT_ELEMENT: u32 = 15;
    pub const SHUFFLE: u32 = 16;
    pub const COMPARE: u32 = 17;
    pub const ASSEMBLY_OLD: u32 = 18;
    pub const SHUFFLE_OF_TYPE: u32 = 19;
    pub const INBOUNDS_GEP: u32 = 20;
    pub const BLOCK_ADDRESS: u32 = 21;
    pub const DATA: u32 = 22;
    pub const ASSEMBLY_WITH_DIALECT: u32 = 23;
    pub const GEP_WITH_RANGE_INDEX: u32 = 24;
    pub const UNARY: u32 = 25;
    pub const POISON: u32 = 26;
    pub const DSO_LOCAL_EQUIVALENT: u32 = 27;
    pub const ASSEMBLY_WITH_UNWIND: u32 = 28;
    pub const NO_CFI: u32 = 29;
    pub const ASSEMBLY: u32 = 30;
    pub const GEP_WITH_RANGE: u32 = 31;
    pub const GEP: u32 = 32;
    pub const POINTER_AUTH: u32 = 33;
    pub const POINTER_AUTH_WITH_SYMBOL: u32 = 34;
    pub const BYTE: u32 = 35;
    pub const WIDE_BYTE: u32 = 36;
}

/// A constant of the block at hand.
struct Pending {
    ty: u32,
    code: u32,
    values: Range<usize>,
    at: usize,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Unmade,
    Waiting,
    Made(ConstId),
}

/// The constants of one block.
struct Batch {
    pending: Vec<Pending>,
    pool: Vec<u64>,
    /// Number of the first.
    base: usize,
}

/// A record that is kept in a pool.
#[derive(Clone, Copy)]
struct Kept<'b> {
    ty: u32,
    code: u32,
    values: &'b [u64],
    at: usize,
}

impl Kept<'_> {
    fn error(&self, message: impl Into<String>) -> ReadError {
        ReadError::new(self.at, message)
    }

    fn get(&self, index: usize) -> Result<u64, ReadError> {
        self.values.get(index).copied().ok_or_else(|| self.error("the record of a constant is too short"))
    }
}

impl Batch {
    fn kept(&self, index: usize) -> Kept<'_> {
        let Pending { ty, code, ref values, at, .. } = self.pending[index];
        Kept { ty, code, values: &self.pool[values.clone()], at }
    }
}

/// A constant and the number of its type in the file.
#[derive(Clone, Copy)]
pub struct Numbered {
    /// The constant.
    pub id: ConstId,
    /// Number of its type.
    pub ty: u32,
}

impl Reader<'_, '_> {
    /// Reads a block of constants, of which the first has the number `base`. Operands with smaller numbers are found
    /// by `known`, which gives `None` for values that are no constants.
    pub fn read_constants(
        &mut self,
        nested: Nested,
        base: usize,
        known: &dyn Fn(&Self, usize) -> Option<ConstId>,
    ) -> Result<Vec<Numbered>, ReadError> {
        let mut batch = self.collect(nested, base)?;
        let mut stack: Vec<usize> = Vec::new();
        let mut operands: SmallVec<[u64; 8]> = SmallVec::new();
        for first in 0..batch.pending.len() {
            stack.push(first);
            while let Some(index) = stack.last().copied() {
                if matches!(batch.pending[index].state, State::Made(_)) {
                    stack.pop();
                    continue;
                }
                let kept = batch.kept(index);
                operands.clear();
                operands_of(&kept, &mut operands);
                let waiting = operands.iter().filter_map(|operand| {
                    let local = usize::try_from(*operand).ok()?.checked_sub(base)?;
                    (batch.pending.get(local)?.state == State::Unmade).then_some(local)
                });
                let waiting: SmallVec<[usize; 8]> = waiting.collect();
                if waiting.is_empty() {
                    let made = self.make(&batch, index, known)?;
                    batch.pending[index].state = State::Made(made);
                    stack.pop();
                } else {
                    batch.pending[index].state = State::Waiting;
                    stack.extend(waiting);
                }
            }
        }
        let made = batch.pending.iter().filter_map(|pending| match pending.state {
            State::Made(id) => Some(Numbered { id, ty: pending.ty }),
            _ => None,
        });
        Ok(made.collect())
    }

    fn collect(&mut self, nested: Nested, base: usize) -> Result<Batch, ReadError> {
        let mut block = Block::enter(self.bytes, nested, &self.info);
        let mut record = Record::default();
        let mut batch = Batch { pending: Vec::new(), pool: Vec::new(), base };
        let mut ty: Option<u32> = None;
        loop {
            match block.next(&mut record)? {
                Item::End => return Ok(batch),
                Item::Block(_) => {}
                Item::Record if record.code == code::SET_TYPE => {
                    let number = record.get(0).unwrap_or(u64::MAX);
                    self.type_id(&record, number)?;
                    ty = Some(number as u32);
                }
                Item::Record => {
                    let Some(ty) = ty else { return Err(record.error("a constant has no type")) };
                    let start = batch.pool.len();
                    batch.pool.extend_from_slice(&record.values);
                    let values = start..batch.pool.len();
                    batch.pending.push(Pending { ty, code: record.code, values, at: record.at, state: State::Unmade });
                }
            }
        }
    }

    /// Makes a constant whose operands are made.
    fn make(
        &mut self,
        batch: &Batch,
        index: usize,
        known: &dyn Fn(&Self, usize) -> Option<ConstId>,
    ) -> Result<ConstId, ReadError> {
        let kept = batch.kept(index);
        let Some(ty) = self.types.id(kept.ty) else { return Err(kept.error("a constant has no type")) };
        let find = |reader: &Self, number: u64| -> Result<ConstId, ReadError> {
            let number = usize::try_from(number).unwrap_or(usize::MAX);
            let found = match number.checked_sub(batch.base) {
                None => known(reader, number),
                Some(local) => match batch.pending.get(local).map(|pending| pending.state) {
                    Some(State::Made(id)) => Some(id),
                    Some(State::Waiting) => return Err(kept.error("a constant contains itself")),
                    _ => None,
                },
            };
            found.ok_or_else(|| kept.error(format!("there is no constant {number}")))
        };
        match kept.code {
            code::NULL => Ok(self.module.constants.zero(&self.module.types, ty)),
            code::UNDEF => Ok(self.module.constants.intern(ty, Constant::Undef)),
            code::POISON => Ok(self.module.constants.intern(ty, Constant::Poison)),
            code::INTEGER | code::BYTE | code::WIDE_INTEGER | code::WIDE_BYTE => self.integer(&kept, ty),
            code::FLOAT => self.float(&kept, ty),
            code::AGGREGATE => {
                let mut parts: SmallVec<[ConstId; 8]> = SmallVec::new();
                for number in kept.values {
                    parts.push(find(self, *number)?);
                }
                self.check_parts(&kept, ty, &parts)?;
                Ok(self.module.constants.aggregate(&self.module.types, ty, &parts))
            }
            code::STRING | code::C_STRING | code::DATA => self.data(&kept, ty),
            code::ASSEMBLY_OLD | code::ASSEMBLY_WITH_DIALECT | code::ASSEMBLY_WITH_UNWIND | code::ASSEMBLY => {
                self.assembly(&kept, ty)
            }
            code::GEP_OLD | code::INBOUNDS_GEP | code::GEP_WITH_RANGE_INDEX | code::GEP_WITH_RANGE | code::GEP => {
                self.constant_element_pointer(&kept, ty, &find)
            }
            code::BLOCK_ADDRESS => {
                let function = find(self, kept.get(1)?)?;
                let function = self.symbol_of(&kept, function)?;
                // Blocks get their ids in the order of their numbers.
                let number = u32::try_from(kept.get(2)?).ok().filter(|number| *number < u32::MAX);
                let Some(number) = number else { return Err(kept.error("a block has too large a number")) };
                let address = BlockAddress { function, block: Some(BlockId::new(number as usize)) };
                let id = self.module.constants.block_addresses.push(address);
                Ok(self.module.constants.intern(ty, Constant::BlockAddress(id)))
            }
            code::DSO_LOCAL_EQUIVALENT | code::NO_CFI => {
                let global = find(self, kept.get(1)?)?;
                let global = self.symbol_of(&kept, global)?;
                let constant = match kept.code {
                    code::NO_CFI => Constant::NoCfi(global),
                    _ => Constant::DsoLocalEquivalent(global),
                };
                Ok(self.module.constants.intern(ty, constant))
            }
            code::POINTER_AUTH | code::POINTER_AUTH_WITH_SYMBOL => {
                let mut operands: SmallVec<[ConstId; 5]> = SmallVec::new();
                for number in kept.values {
                    operands.push(find(self, *number)?);
                }
                Ok(self.module.constants.pointer_auth(ty, &operands))
            }
            _ => self.expression(&kept, ty, &find),
        }
    }

    /// The parts of an aggregate have the types that it says.
    fn check_parts(&self, kept: &Kept<'_>, ty: TypeId, parts: &[ConstId]) -> Result<(), ReadError> {
        let count = match self.module.types.get(ty) {
            Type::Array { len, .. } => len,
            Type::Vector { len, .. } => u64::from(len),
            _ => self.module.types.fields(ty).map_or(u64::MAX, |(_, fields)| fields.len() as u64),
        };
        let fits = |(index, part): (usize, &ConstId)| {
            self.module.types.part(ty, index as u64) == Some(self.module.constants.ty(*part))
        };
        if count != parts.len() as u64 || !parts.iter().enumerate().all(fits) {
            return Err(kept.error("the parts of a constant do not have the types that its type says"));
        }
        Ok(())
    }

    fn symbol_of(&self, kept: &Kept<'_>, constant: ConstId) -> Result<GlobalId, ReadError> {
        match self.module.constants.get(constant) {
            Constant::Global(global) => Ok(global),
            _ => Err(kept.error("a constant is about a symbol and names none")),
        }
    }

    fn integer(&mut self, kept: &Kept<'_>, ty: TypeId) -> Result<ConstId, ReadError> {
        let bits = match self.module.types.get(ty) {
            Type::Integer(bits) | Type::Byte(bits) => bits as usize,
            _ => return Err(kept.error("an integer constant has a type that is no integer")),
        };
        let mut words: SmallVec<[u64; 2]> = kept.values.iter().map(|word| codes::signed(*word) as u64).collect();
        if matches!(kept.code, code::INTEGER | code::BYTE) {
            words.truncate(1);
            // A number of one word is extended by its sign.
            if words.first().is_some_and(|word| (*word as i64) < 0) {
                self.spend(kept.at, bits as u64 / 64)?;
                words.resize(bits.div_ceil(64), u64::MAX);
            }
        }
        if words.is_empty() {
            return Err(kept.error("an integer constant has no value"));
        }
        self.spend(kept.at, bits as u64 / 64)?;
        Ok(self.module.constants.wide_integer(&self.module.types, ty, &words))
    }

    fn float(&mut self, kept: &Kept<'_>, ty: TypeId) -> Result<ConstId, ReadError> {
        let first = kept.get(0)?;
        let words = match self.module.types.get(ty) {
            Type::Half | Type::BFloat => return Ok(self.module.constants.intern(ty, Constant::Float(first & 0xffff))),
            Type::Float => return Ok(self.module.constants.intern(ty, Constant::Float(first & 0xffff_ffff))),
            Type::Double => return Ok(self.module.constants.intern(ty, Constant::Float(first))),
            // The significand is written apart from the rest.
            Type::X86Fp80 => [kept.get(1)? & 0xffff | first << 16, first >> 48],
            Type::Fp128 | Type::PpcFp128 => [first, kept.get(1)?],
            _ => return Err(kept.error("a float constant has a type that is no float")),
        };
        Ok(self.module.constants.wide_float(ty, words))
    }

    /// Arrays and vectors of numbers.
    fn data(&mut self, kept: &Kept<'_>, ty: TypeId) -> Result<ConstId, ReadError> {
        let (len, element) = match self.module.types.get(ty) {
            Type::Array { len, element } => (len, element),
            Type::Vector { len, element, .. } => (u64::from(len), element),
            _ => return Err(kept.error("a constant of elements has a type without elements")),
        };
        let width = match self.module.types.get(element) {
            Type::Integer(8) | Type::Byte(8) => 1,
            Type::Integer(16) | Type::Byte(16) | Type::Half | Type::BFloat => 2,
            Type::Integer(32) | Type::Byte(32) | Type::Float => 4,
            Type::Integer(64) | Type::Byte(64) | Type::Double => 8,
            _ => return Err(kept.error("a constant of elements has elements of another kind")),
        };
        let ends = u64::from(kept.code == code::C_STRING);
        if len != kept.values.len() as u64 + ends || (kept.code != code::DATA && width != 1) {
            return Err(kept.error("a constant has more or fewer elements than its type"));
        }
        let mut bytes = Vec::with_capacity(kept.values.len() * width + 1);
        kept.values.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()[..width]));
        bytes.resize(bytes.len() + ends as usize, 0);
        Ok(self.module.constants.data(ty, &bytes))
    }

    fn assembly(&mut self, kept: &Kept<'_>, ty: TypeId) -> Result<ConstId, ReadError> {
        let start = usize::from(kept.code == code::ASSEMBLY);
        let flags = kept.get(start)?;
        let mut at = start + 1;
        let mut text = || -> Result<Vec<u8>, ReadError> {
            let length = usize::try_from(kept.get(at)?).unwrap_or(usize::MAX);
            let bytes = kept.values.get(at + 1..).and_then(|rest| rest.get(..length));
            let bytes = bytes.ok_or_else(|| kept.error("inline assembly is longer than its record"))?;
            at += 1 + length;
            Ok(bytes.iter().map(|byte| *byte as u8).collect())
        };
        let (text, constraints) = (text()?, text()?);
        let assembly = Assembly {
            text: self.module.names.intern(&text),
            constraints: self.module.names.intern(&constraints),
            side_effect: flags & 1 != 0,
            align_stack: flags & 2 != 0,
            intel: flags & 4 != 0 && kept.code != code::ASSEMBLY_OLD,
            unwind: flags & 8 != 0,
        };
        let id = self.module.constants.assembly.push(assembly);
        Ok(self.module.constants.intern(ty, Constant::Assembly(id)))
    }

    fn constant_element_pointer(
        &mut self,
        kept: &Kept<'_>,
        ty: TypeId,
        find: &dyn Fn(&Self, u64) -> Result<ConstId, ReadError>,
    ) -> Result<ConstId, ReadError> {
        let layout = gep_layout(kept)?;
        let pairs = kept.values.get(layout.operands..).unwrap_or(&[]);
        let mut operands: SmallVec<[ConstId; 8]> = SmallVec::new();
        for pair in pairs.chunks_exact(2) {
            operands.push(find(self, pair[1])?);
        }
        let element = match layout.element {
            Some(number) => u32::try_from(number).ok().and_then(|number| self.types.id(number)),
            None => {
                let pointer = pairs.first().and_then(|number| u32::try_from(*number).ok());
                let pointee = pointer.and_then(|pointer| self.types.pointee(self.module, pointer));
                pointee.and_then(|number| self.types.id(number))
            }
        };
        let Some(element) = element.filter(|_| !operands.is_empty()) else {
            return Err(kept.error("address arithmetic says neither what it starts from nor over what it steps"));
        };
        Ok(self.module.constants.element_pointer(ty, layout.flags, element, &operands))
    }

    fn expression(
        &mut self,
        kept: &Kept<'_>,
        ty: TypeId,
        find: &dyn Fn(&Self, u64) -> Result<ConstId, ReadError>,
    ) -> Result<ConstId, ReadError> {
        let operand = |reader: &Self, index: usize| find(reader, kept.get(index)?);
        let constant = match kept.code {
            code::UNARY => Constant::Negate(operand(self, 1)?),
            code::BINARY => {
                let (left, right) = (operand(self, 1)?, operand(self, 2)?);
                let scalar = self.module.types.get(self.module.types.scalar(self.module.constants.ty(left)));
                let op = codes::binary(kept.get(0)?, is_float(scalar));
                let op = op.ok_or_else(|| kept.error("arithmetic of constants is of an unknown kind"))?;
                let flags = codes::arithmetic_flags(op, kept.values.get(3).copied().unwrap_or(0));
                Constant::Binary { op, flags, left, right }
            }
            code::CAST => {
                let op = codes::cast(kept.get(0)?);
                let op = op.ok_or_else(|| kept.error("a conversion of a constant is of an unknown kind"))?;
                let value = operand(self, 2)?;
                // Between pointers that point to different things in older files, there is nothing to convert.
                if op == CastOp::BitCast && self.module.constants.ty(value) == ty {
                    return Ok(value);
                }
                Constant::Cast { op, value }
            }
            code::SELECT => {
                Constant::Select { condition: operand(self, 0)?, yes: operand(self, 1)?, no: operand(self, 2)? }
            }
            code::EXTRACT_ELEMENT => {
                let index = kept.values.len().saturating_sub(1).max(2);
                Constant::ExtractElement { vector: operand(self, 1)?, index: operand(self, index)? }
            }
            code::INSERT_ELEMENT => {
                let index = kept.values.len().saturating_sub(1).max(2);
                let (vector, element) = (operand(self, 0)?, operand(self, 1)?);
                Constant::InsertElement { vector, element, index: operand(self, index)? }
            }
            code::SHUFFLE | code::SHUFFLE_OF_TYPE => {
                let first = usize::from(kept.code == code::SHUFFLE_OF_TYPE);
                let (left, right) = (operand(self, first)?, operand(self, first + 1)?);
                let mask = operand(self, first + 2)?;
                let mask = self.shuffle_mask(kept.at, mask)?;
                return Ok(self.module.constants.shuffle(ty, left, right, &mask));
            }
            code::COMPARE => {
                let (left, right, number) = (operand(self, 1)?, operand(self, 2)?, kept.get(3)?);
                match (int_predicate(number), float_predicate(number)) {
                    (Some(predicate), _) => Constant::CompareInt { predicate, left, right },
                    (_, Some(predicate)) => Constant::CompareFloat { predicate, left, right },
                    _ => return Err(kept.error("a comparison of constants is of an unknown kind")),
                }
            }
            unknown => return Err(kept.error(format!("there is no kind of constant with number {unknown}"))),
        };
        Ok(self.module.constants.intern(ty, constant))
    }

    /// The numbers of a shuffle's mask; -1 is any.
    pub fn shuffle_mask(&mut self, at: usize, mask: ConstId) -> Result<Vec<i32>, ReadError> {
        let ty = self.module.constants.ty(mask);
        let Type::Vector { len, element, .. } = self.module.types.get(ty) else {
            return Err(ReadError::new(at, "the mask of a shuffle is no vector"));
        };
        self.spend(at, u64::from(len))?;
        let element = self.module.types.get(element);
        let constants = &self.module.constants;
        let number = |part: &ConstId| match constants.get(*part) {
            Constant::Undef | Constant::Poison => Some(-1),
            _ => constants.integer(*part).map(|number| number as i32),
        };
        let mask = match constants.get(mask) {
            Constant::Zero => Some(vec![0; len as usize]),
            Constant::Undef | Constant::Poison => Some(vec![-1; len as usize]),
            Constant::Aggregate(list) => constants.list(list).iter().map(number).collect(),
            Constant::Data(list) => {
                let element = |index| constants.data_element(list, element, index).map(|number| number as i32);
                (0..len as usize).map(element).collect()
            }
            _ => None,
        };
        mask.ok_or_else(|| ReadError::new(at, "the mask of a shuffle is no constant of numbers"))
    }
}

/// Which comparison of integers has that number.
pub fn int_predicate(number: u64) -> Option<IntPredicate> {
    IntPredicate::ALL.get(usize::try_from(number).ok()?.checked_sub(32)?).copied()
}

/// Which comparison of floats has that number.
pub fn float_predicate(number: u64) -> Option<FloatPredicate> {
    FloatPredicate::ALL.get(usize::try_from(number).ok()?).copied()
}

/// Whether the type is one of floats.
pub fn is_float(ty: Type) -> bool {
    use Type::*;
    matches!(ty, Half | BFloat | Float | Double | X86Fp80 | Fp128 | PpcFp128)
}

/// Where the parts of a record of address arithmetic stand.
struct GepLayout {
    element: Option<u64>,
    flags: Flags,
    operands: usize,
}

fn gep_layout(kept: &Kept<'_>) -> Result<GepLayout, ReadError> {
    let mut at = 0;
    let always_typed = matches!(kept.code, code::GEP | code::GEP_WITH_RANGE | code::GEP_WITH_RANGE_INDEX);
    let mut element = None;
    if always_typed || kept.values.len() % 2 == 1 {
        element = Some(kept.get(0)?);
        at = 1;
    }
    let flags = match kept.code {
        code::INBOUNDS_GEP => codes::address_flags(1),
        code::GEP_OLD => Flags::NONE,
        code::GEP_WITH_RANGE_INDEX => codes::address_flags(kept.get(at)? & 1),
        _ => codes::address_flags(kept.get(at)?),
    };
    at += usize::from(always_typed);
    if kept.code == code::GEP_WITH_RANGE {
        // The range of offsets that are used: its width, then both ends.
        let bits = kept.get(at)?;
        let words = if bits <= 64 {
            2
        } else {
            let counts = kept.get(at + 1)?;
            1 + (counts & 0xffff_ffff) as usize + (counts >> 32) as usize
        };
        at += 1 + words;
    }
    Ok(GepLayout { element, flags, operands: at })
}

/// The numbers of the constants that a record uses.
fn operands_of(kept: &Kept<'_>, out: &mut SmallVec<[u64; 8]>) {
    let mut take = |indices: &[usize]| out.extend(indices.iter().filter_map(|index| kept.values.get(*index).copied()));
    let last = kept.values.len().saturating_sub(1);
    match kept.code {
        code::AGGREGATE | code::POINTER_AUTH | code::POINTER_AUTH_WITH_SYMBOL => out.extend_from_slice(kept.values),
        code::UNARY | code::BLOCK_ADDRESS | code::DSO_LOCAL_EQUIVALENT | code::NO_CFI => take(&[1]),
        code::BINARY | code::COMPARE => take(&[1, 2]),
        code::CAST => take(&[2]),
        code::SELECT | code::SHUFFLE => take(&[0, 1, 2]),
        code::SHUFFLE_OF_TYPE => take(&[1, 2, 3]),
        code::EXTRACT_ELEMENT => take(&[1, last]),
        code::INSERT_ELEMENT => take(&[0, 1, last]),
        code::GEP_OLD | code::INBOUNDS_GEP | code::GEP_WITH_RANGE_INDEX | code::GEP_WITH_RANGE | code::GEP => {
            if let Ok(layout) = gep_layout(kept) {
                let pairs = kept.values.get(layout.operands..).unwrap_or(&[]);
                out.extend(pairs.iter().skip(1).step_by(2).copied());
            }
        }
        _ => {}
    }
}
