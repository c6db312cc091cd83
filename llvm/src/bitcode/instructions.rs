//! Records of instructions that compute, and of those that end blocks. Memory and calls have rooms of their own.

use smallvec::SmallVec;

use super::Reader;
use super::bitstream::Record;
use super::codes;
use super::constants::{float_predicate, int_predicate, is_float};
use super::function::{Cursor, FunctionState};
use crate::ReadError;
use crate::model::{ExceptionOp, Flags, Instruction, Operand, Type};

/// Codes of records.
pub(super) mod code {
    pub const BINARY: u32 = 2;
    pub const CAST: u32 = 3;
    pub const GEP_OLD: u32 = 4;
    pub const SELECT_OLD: u32 = 5;
    pub const EXTRACT_ELEMENT: u32 = 6;
    pub const INSERT_ELEMENT: u32 = 7;
    pub const SHUFFLE: u32 = 8;
    pub const COMPARE_OLD: u32 = 9;
    pub const RETURN: u32 = 10;
    pub const BRANCH: u32 = 11;
    pub const SWITCH: u32 = 12;
    pub const INVOKE: u32 = 13;
    pub const UNREACHABLE: u32 = 15;
    pub const PHI: u32 = 16;
    pub const ALLOCA: u32 = 19;
    pub const LOAD: u32 = 20;
    pub const VARIADIC_ARGUMENT: u32 = 23;
    pub const STORE_OLD: u32 = 24;
    pub const EXTRACT_VALUE: u32 = 26;
    pub const INSERT_VALUE: u32 = 27;
    pub const COMPARE: u32 = 28;
    pub const SELECT: u32 = 29;
    pub const INBOUNDS_GEP_OLD: u32 = 30;
    pub const INDIRECT_BRANCH: u32 = 31;
    pub const CALL: u32 = 34;
    pub const FENCE: u32 = 36;
    pub const COMPARE_EXCHANGE_OLD: u32 = 37;
    pub const RMW_OLD: u32 = 38;
    pub const RESUME: u32 = 39;
    pub const LANDING_PAD_OLD: u32 = 40;
    pub const ATOMIC_LOAD: u32 = 41;
    pub const ATOMIC_STORE_OLD: u32 = 42;
    pub const GEP: u32 = 43;
    pub const STORE: u32 = 44;
    pub const ATOMIC_STORE: u32 = 45;
    pub const COMPARE_EXCHANGE: u32 = 46;
    pub const LANDING_PAD: u32 = 47;
    pub const CLEANUP_RETURN: u32 = 48;
    pub const CATCH_RETURN: u32 = 49;
    pub const CATCH_PAD: u32 = 50;
    pub const CLEANUP_PAD: u32 = 51;
    pub const CATCH_SWITCH: u32 = 52;
    pub const UNARY: u32 = 56;
    pub const CALL_BRANCH: u32 = 57;
    pub const FREEZE: u32 = 58;
    pub const RMW: u32 = 59;
}

impl Reader<'_, '_> {
    /// Reads the record of an instruction.
    pub(super) fn instruction(&mut self, f: &mut FunctionState, record: &Record) -> Result<(), ReadError> {
        let c = &mut Cursor::new(record);
        let (instruction, ty) = match record.code {
            code::BINARY => self.binary(f, c)?,
            code::CAST => self.cast(f, c)?,
            code::UNARY => {
                let value = self.typed(f, c)?;
                let (op, flags) = (c.next()?, codes::fast_math(c.optional()));
                if op != 0 {
                    return Err(c.error("arithmetic of one operand is of an unknown kind"));
                }
                (Instruction::Negate { flags, value: value.operand }, Some(value.ty))
            }
            code::FREEZE => {
                let value = self.typed(f, c)?;
                (Instruction::Freeze(value.operand), Some(value.ty))
            }
            code::SELECT | code::SELECT_OLD => self.select(f, c)?,
            code::COMPARE | code::COMPARE_OLD => self.compare(f, c)?,
            code::EXTRACT_ELEMENT | code::INSERT_ELEMENT | code::SHUFFLE => self.vector(f, c)?,
            code::EXTRACT_VALUE | code::INSERT_VALUE => self.aggregate(f, c)?,
            code::GEP | code::GEP_OLD | code::INBOUNDS_GEP_OLD => self.element_pointer(f, c)?,
            code::PHI => self.phi(f, c)?,
            code::ALLOCA => self.alloca(f, c)?,
            code::LOAD | code::ATOMIC_LOAD => self.load(f, c)?,
            code::STORE | code::STORE_OLD | code::ATOMIC_STORE | code::ATOMIC_STORE_OLD => self.store(f, c)?,
            code::COMPARE_EXCHANGE | code::COMPARE_EXCHANGE_OLD => return self.compare_exchange(f, c),
            code::RMW | code::RMW_OLD => self.rmw(f, c)?,
            code::FENCE => {
                let (ordering, scope) = (codes::ordering(c.next()?), c.next()?);
                (Instruction::Fence { ordering, scope: self.scope(scope) }, None)
            }
            code::CALL => self.call(f, c)?,
            code::INVOKE => self.invoke(f, c)?,
            code::CALL_BRANCH => self.call_branch(f, c)?,
            code::VARIADIC_ARGUMENT => {
                let list = c.next()? as u32;
                let list = self.of_type(f, c, list)?;
                let ty = c.next()?;
                self.type_id(record, ty)?;
                (Instruction::VariadicArgument(list), Some(ty as u32))
            }
            code::RETURN | code::BRANCH | code::SWITCH | code::INDIRECT_BRANCH | code::UNREACHABLE => {
                (self.terminator(f, c)?, None)
            }
            _ => self.exception(f, c)?,
        };
        self.push(f, record, instruction, ty)?;
        Ok(())
    }

    /// Whether values of the type are floats or vectors of them.
    fn is_float_like(&self, ty: u32) -> bool {
        let Some(id) = self.types.id(ty) else { return false };
        is_float(self.module.types.get(self.module.types.scalar(id)))
    }

    fn binary(&mut self, f: &mut FunctionState, c: &mut Cursor<'_>) -> Result<Made, ReadError> {
        let left = self.typed(f, c)?;
        let right = self.of_type(f, c, left.ty)?;
        let op = codes::binary(c.next()?, self.is_float_like(left.ty));
        let op = op.ok_or_else(|| c.error("arithmetic is of an unknown kind"))?;
        let flags = codes::arithmetic_flags(op, c.optional());
        Ok((Instruction::Binary { op, flags, left: left.operand, right }, Some(left.ty)))
    }

    fn cast(&mut self, f: &mut FunctionState, c: &mut Cursor<'_>) -> Result<Made, ReadError> {
        let value = self.typed(f, c)?;
        let ty = c.next()?;
        self.type_id(c.record, ty)?;
        let op = codes::cast(c.next()?).ok_or_else(|| c.error("a conversion is of an unknown kind"))?;
        let flags = codes::cast_flags(op, c.optional());
        Ok((Instruction::Cast { op, flags, value: value.operand }, Some(ty as u32)))
    }

    fn select(&mut self, f: &mut FunctionState, c: &mut Cursor<'_>) -> Result<Made, ReadError> {
        let yes = self.typed(f, c)?;
        let no = self.of_type(f, c, yes.ty)?;
        let condition = match c.record.code {
            code::SELECT => self.typed(f, c)?.operand,
            _ => {
                let bool = self.boolean();
                self.of_type(f, c, bool)?
            }
        };
        let flags = codes::fast_math(c.optional());
        Ok((Instruction::Select { flags, condition, yes: yes.operand, no }, Some(yes.ty)))
    }

    /// The number of `i1`.
    pub(super) fn boolean(&mut self) -> u32 {
        let id = self.module.types.integer(1);
        self.types.derive(id, &[])
    }

    fn compare(&mut self, f: &mut FunctionState, c: &mut Cursor<'_>) -> Result<Made, ReadError> {
        let left = self.typed(f, c)?;
        let right = self.of_type(f, c, left.ty)?;
        let (number, flags) = (c.next()?, c.optional());
        let bool = self.boolean();
        let like = self.type_id(c.record, u64::from(left.ty))?;
        let ty = self.types.with_lanes_of(self.module, bool, like);
        let left = left.operand;
        let instruction = match (int_predicate(number), float_predicate(number)) {
            (Some(predicate), _) => {
                let flags = if flags & 1 != 0 { Flags::SAMESIGN } else { Flags::NONE };
                Instruction::CompareInt { predicate, flags, left, right }
            }
            (_, Some(predicate)) => {
                Instruction::CompareFloat { predicate, flags: codes::fast_math(flags), left, right }
            }
            _ => return Err(c.error("a comparison is of an unknown kind")),
        };
        Ok((instruction, ty))
    }

    fn vector(&mut self, f: &mut FunctionState, c: &mut Cursor<'_>) -> Result<Made, ReadError> {
        let vector = self.typed(f, c)?;
        let Some(element) = self.types.part(self.module, vector.ty, 0) else {
            return Err(c.error("an operation on vectors has no vector"));
        };
        match c.record.code {
            code::EXTRACT_ELEMENT => {
                let index = self.typed(f, c)?.operand;
                Ok((Instruction::ExtractElement { vector: vector.operand, index }, Some(element)))
            }
            code::INSERT_ELEMENT => {
                let value = self.of_type(f, c, element)?;
                let index = self.typed(f, c)?.operand;
                let instruction = Instruction::InsertElement { vector: vector.operand, element: value, index };
                Ok((instruction, Some(vector.ty)))
            }
            _ => {
                let right = self.of_type(f, c, vector.ty)?;
                let mask = self.typed(f, c)?;
                let Some(constant) = mask.operand.constant() else {
                    return Err(c.error("the mask of a shuffle is no constant"));
                };
                let scalable = matches!(self.kind(mask.ty), Type::Vector { scalable: true, .. });
                let mask = self.shuffle_mask(c.record.at, constant)?;
                let words: SmallVec<[u32; 16]> = mask.iter().map(|lane| *lane as u32).collect();
                let ty = self.types.vector(self.module, element, mask.len() as u32, scalable);
                let mask = f.body.add_words(&words);
                Ok((Instruction::Shuffle { left: vector.operand, right, mask }, ty))
            }
        }
    }

    fn aggregate(&mut self, f: &mut FunctionState, c: &mut Cursor<'_>) -> Result<Made, ReadError> {
        let aggregate = self.typed(f, c)?;
        let inserted = match c.record.code {
            code::INSERT_VALUE => Some(self.typed(f, c)?),
            _ => None,
        };
        let mut path: SmallVec<[u32; 4]> = SmallVec::new();
        let mut ty = aggregate.ty;
        while c.left() > 0 {
            let index = c.next()?;
            let part =
                self.types.part(self.module, ty, index).filter(|_| !matches!(self.kind(ty), Type::Vector { .. }));
            let (Some(part), Ok(index)) = (part, u32::try_from(index)) else {
                return Err(c.error(format!("an aggregate has no part {index}")));
            };
            if matches!(self.kind(ty), Type::Array { len, .. } if u64::from(index) >= len) {
                return Err(c.error(format!("an array has no element {index}")));
            }
            ty = part;
            path.push(index);
        }
        let path = f.body.add_words(&path);
        let aggregate_operand = aggregate.operand;
        match inserted {
            None => Ok((Instruction::ExtractValue { aggregate: aggregate_operand, path }, Some(ty))),
            Some(value) if self.types.id(value.ty) != self.types.id(ty) => {
                Err(c.error("a value is put into an aggregate where its type does not belong"))
            }
            Some(value) => {
                let instruction = Instruction::InsertValue { aggregate: aggregate_operand, value: value.operand, path };
                Ok((instruction, Some(aggregate.ty)))
            }
        }
    }

    fn phi(&mut self, f: &mut FunctionState, c: &mut Cursor<'_>) -> Result<Made, ReadError> {
        let ty = c.next()?;
        self.type_id(c.record, ty)?;
        let mut incoming: SmallVec<[Operand; 8]> = SmallVec::new();
        while c.left() >= 2 {
            incoming.push(self.signed_of_type(f, c, ty as u32)?);
            let block = c.next()?;
            incoming.push(self.block_numbered(f, c.record, block)?.into());
        }
        let flags = codes::fast_math(c.optional());
        let incoming = f.body.add_operands(&incoming);
        Ok((Instruction::Phi { flags, incoming }, Some(ty as u32)))
    }

    fn terminator(&mut self, f: &mut FunctionState, c: &mut Cursor<'_>) -> Result<Instruction, ReadError> {
        match c.record.code {
            code::RETURN => {
                let value = if c.left() == 0 { None } else { Some(self.typed(f, c)?.operand) };
                Ok(Instruction::Return(f.body.add_operands(value.as_slice())))
            }
            code::BRANCH => {
                let first = c.next()?;
                let first = self.block_numbered(f, c.record, first)?;
                if c.left() == 0 {
                    return Ok(Instruction::Jump(first));
                }
                let second = c.next()?;
                let no = self.block_numbered(f, c.record, second)?;
                let bool = self.boolean();
                let condition = self.of_type(f, c, bool)?;
                Ok(Instruction::Branch { condition, yes: first, no })
            }
            code::SWITCH => self.switch(f, c),
            code::INDIRECT_BRANCH => {
                let ty = c.next()? as u32;
                let address = self.of_type(f, c, ty)?;
                let mut targets: SmallVec<[Operand; 8]> = SmallVec::new();
                while c.left() > 0 {
                    let block = c.next()?;
                    targets.push(self.block_numbered(f, c.record, block)?.into());
                }
                Ok(Instruction::IndirectBranch { address, targets: f.body.add_operands(&targets) })
            }
            _ => Ok(Instruction::Unreachable),
        }
    }

    fn switch(&mut self, f: &mut FunctionState, c: &mut Cursor<'_>) -> Result<Instruction, ReadError> {
        /// Marks a form with ranges of cases that one version of LLVM wrote.
        const RANGES: u64 = 0x4b5;
        let ty = c.next()?;
        if ty >> 16 == RANGES {
            return Err(c.error("this switch has ranges of cases, which are not read"));
        }
        self.type_id(c.record, ty)?;
        let value = self.of_type(f, c, ty as u32)?;
        let default = c.next()?;
        let default = self.block_numbered(f, c.record, default)?;
        let mut cases: SmallVec<[Operand; 16]> = SmallVec::new();
        while c.left() >= 2 {
            let number = c.next()?;
            let case = self.constant(f, c.record, number)?;
            if self.types.id(ty as u32) != Some(self.module.constants.ty(case)) {
                return Err(c.error("a case has another type than what is compared"));
            }
            let block = c.next()?;
            cases.extend([case.into(), self.block_numbered(f, c.record, block)?.into()]);
        }
        Ok(Instruction::Switch { value, default, cases: f.body.add_operands(&cases) })
    }

    /// Exception handling, as far as is needed to know types and ends of blocks.
    fn exception(&mut self, f: &mut FunctionState, c: &mut Cursor<'_>) -> Result<Made, ReadError> {
        let mut operands: Vec<Operand> = Vec::new();
        let token = |reader: &mut Self| {
            let id = reader.module.types.intern(Type::Token);
            Some(reader.types.derive(id, &[]))
        };
        let (op, ty) = match c.record.code {
            code::RESUME => {
                operands.push(self.typed(f, c)?.operand);
                (ExceptionOp::Resume, None)
            }
            code::LANDING_PAD | code::LANDING_PAD_OLD => {
                let ty = c.next()?;
                self.type_id(c.record, ty)?;
                if c.record.code == code::LANDING_PAD_OLD {
                    self.typed(f, c)?;
                }
                let _cleanup = c.next()?;
                let count = c.next()?;
                for _ in 0..count {
                    let _kind = c.next()?;
                    operands.push(self.typed(f, c)?.operand);
                }
                (ExceptionOp::LandingPad, Some(ty as u32))
            }
            code::CLEANUP_RETURN | code::CATCH_RETURN => {
                let ty = token(self).unwrap_or(0);
                operands.push(self.of_type(f, c, ty)?);
                if c.left() > 0 {
                    let block = c.next()?;
                    operands.push(self.block_numbered(f, c.record, block)?.into());
                }
                let is_catch = c.record.code == code::CATCH_RETURN;
                (if is_catch { ExceptionOp::CatchRet } else { ExceptionOp::CleanupRet }, None)
            }
            code::CATCH_PAD | code::CLEANUP_PAD => {
                let ty = token(self).unwrap_or(0);
                operands.push(self.of_type(f, c, ty)?);
                let count = c.next()?;
                for _ in 0..count {
                    operands.push(self.typed(f, c)?.operand);
                }
                let is_catch = c.record.code == code::CATCH_PAD;
                (if is_catch { ExceptionOp::CatchPad } else { ExceptionOp::CleanupPad }, token(self))
            }
            code::CATCH_SWITCH => {
                let ty = token(self).unwrap_or(0);
                operands.push(self.of_type(f, c, ty)?);
                let count = c.next()?;
                for _ in 0..count {
                    let block = c.next()?;
                    operands.push(self.block_numbered(f, c.record, block)?.into());
                }
                if c.left() > 0 {
                    let block = c.next()?;
                    operands.push(self.block_numbered(f, c.record, block)?.into());
                }
                (ExceptionOp::CatchSwitch, token(self))
            }
            unknown => return Err(c.error(format!("there is no kind of instruction with number {unknown}"))),
        };
        let operands = f.body.add_operands(&operands);
        Ok((Instruction::Exception { op, operands }, ty))
    }
}

/// An instruction and the number of the type of its result.
pub(super) type Made = (Instruction, Option<u32>);
