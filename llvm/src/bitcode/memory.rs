//! Records of instructions that access memory or compute addresses.

use smallvec::SmallVec;

use super::Reader;
use super::codes;
use super::function::{Cursor, FunctionState};
use super::instructions::{Made, code};
use crate::ReadError;
use crate::model::{Access, Alignment, Flags, Instruction, Operand, Ordering, Type};

impl Reader<'_, '_> {
    /// The address space of a pointer, or of the pointers of a vector.
    fn space(&self, ty: u32) -> Option<u32> {
        let scalar = self.module.types.scalar(self.types.id(ty)?);
        match self.module.types.get(scalar) {
            Type::Pointer(space) => Some(space),
            _ => None,
        }
    }

    /// The number of a pointer to what has the number `pointee`.
    fn pointer_to(&mut self, space: u32, pointee: u32) -> u32 {
        let id = self.module.types.pointer(space);
        self.types.derive(id, &[pointee])
    }

    /// What a pointer of an older file points to.
    fn pointee(&self, c: &Cursor<'_>, ty: u32) -> Result<u32, ReadError> {
        let found = self.types.pointee(self.module, ty);
        found.ok_or_else(|| c.error("an instruction does not say the type that it accesses"))
    }

    pub(super) fn element_pointer(&mut self, f: &mut FunctionState, c: &mut Cursor<'_>) -> Result<Made, ReadError> {
        let (flags, stated) = match c.record.code {
            code::GEP => {
                let flags = codes::address_flags(c.next()?);
                let ty = c.next()?;
                self.type_id(c.record, ty)?;
                (flags, Some(ty as u32))
            }
            code::INBOUNDS_GEP_OLD => (codes::address_flags(1), None),
            _ => (Flags::NONE, None),
        };
        let base = self.typed(f, c)?;
        let element = match stated {
            Some(ty) => ty,
            None => {
                // Of a vector of pointers, the type behind its element.
                let scalar = self.types.part(self.module, base.ty, 0).filter(|_| self.is_vector(base.ty));
                self.pointee(c, scalar.unwrap_or(base.ty))?
            }
        };
        let mut operands: SmallVec<[Operand; 8]> = SmallVec::new();
        operands.push(base.operand);
        let mut lanes = if self.is_vector(base.ty) { Some(base.ty) } else { None };
        let mut pointee = element;
        while c.left() > 0 {
            let index = self.typed(f, c)?;
            if operands.len() > 1 {
                let number = index.operand.constant().and_then(|constant| self.module.constants.integer(constant));
                pointee = self.types.part(self.module, pointee, number.unwrap_or(0)).unwrap_or(pointee);
            }
            if self.is_vector(index.ty) {
                lanes.get_or_insert(index.ty);
            }
            operands.push(index.operand);
        }
        let Some(space) = self.space(base.ty) else { return Err(c.error("address arithmetic starts from no pointer")) };
        let pointer = self.pointer_to(space, pointee);
        let ty = match lanes.and_then(|like| self.types.id(like)) {
            Some(like) => self.types.with_lanes_of(self.module, pointer, like),
            None => Some(pointer),
        };
        let (element, operands) = (self.type_id(c.record, u64::from(element))?, f.body.add_operands(&operands));
        Ok((Instruction::ElementPointer { flags, element, operands }, ty))
    }

    fn is_vector(&self, ty: u32) -> bool {
        matches!(self.kind(ty), Type::Vector { .. })
    }

    pub(super) fn alloca(&mut self, f: &mut FunctionState, c: &mut Cursor<'_>) -> Result<Made, ReadError> {
        const EXPLICIT_TYPE: u64 = 1 << 6;
        let (ty, count_ty, count, packed) = (c.next()?, c.next()?, c.next()?, c.next()?);
        self.type_id(c.record, ty)?;
        self.type_id(c.record, count_ty)?;
        let stated_space = c.optional();
        let (element, space) = match packed & EXPLICIT_TYPE {
            0 => (self.pointee(c, ty as u32)?, self.space(ty as u32).unwrap_or(0)),
            _ if c.record.values.len() > 4 => (ty as u32, stated_space as u32),
            _ => (ty as u32, self.default_stack_space()),
        };
        let count = self.absolute_of_type(f, c.record, count, count_ty as u32)?;
        let align = alignment(c, packed & 31 | (packed >> 8 & 7) << 5)?;
        let pointer = self.pointer_to(space, element);
        let ty = self.type_id(c.record, u64::from(element))?;
        Ok((Instruction::Alloca { ty, count, align }, Some(pointer)))
    }

    /// The address space of the stack that the data layout names, `-A5`.
    fn default_stack_space(&self) -> u32 {
        let layout = self.module.data_layout.map_or(&[][..], |name| self.module.names.bytes(name));
        let named = layout.split(|byte| *byte == b'-').find_map(|part| part.strip_prefix(b"A"));
        named.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok()).unwrap_or(0)
    }

    /// Ordering and scope of an atomic access, or those of a plain one.
    fn order(&mut self, c: &mut Cursor<'_>, atomic: bool) -> Result<(Ordering, crate::model::Name), ReadError> {
        if !atomic {
            return Ok((Ordering::NotAtomic, self.module.names.intern(b"")));
        }
        let (ordering, scope) = (codes::ordering(c.next()?), c.next()?);
        Ok((ordering, self.scope(scope)))
    }

    pub(super) fn load(&mut self, f: &mut FunctionState, c: &mut Cursor<'_>) -> Result<Made, ReadError> {
        let atomic = c.record.code == code::ATOMIC_LOAD;
        let address = self.typed(f, c)?;
        let fixed = if atomic { 4 } else { 2 };
        let ty = match c.left().checked_sub(fixed) {
            Some(0) => self.pointee(c, address.ty)?,
            _ => {
                let ty = c.next()?;
                self.type_id(c.record, ty)?;
                ty as u32
            }
        };
        let number = c.next()?;
        let align = alignment(c, number)?;
        let volatile = c.next()? != 0;
        let (ordering, scope) = self.order(c, atomic)?;
        let access = Access { align, volatile, ordering, scope };
        Ok((Instruction::Load { address: address.operand, access }, Some(ty)))
    }

    pub(super) fn store(&mut self, f: &mut FunctionState, c: &mut Cursor<'_>) -> Result<Made, ReadError> {
        let atomic = matches!(c.record.code, code::ATOMIC_STORE | code::ATOMIC_STORE_OLD);
        let address = self.typed(f, c)?;
        let value = match c.record.code {
            code::STORE | code::ATOMIC_STORE => self.typed(f, c)?.operand,
            _ => {
                let ty = self.pointee(c, address.ty)?;
                self.of_type(f, c, ty)?
            }
        };
        let number = c.next()?;
        let align = alignment(c, number)?;
        let volatile = c.next()? != 0;
        let (ordering, scope) = self.order(c, atomic)?;
        let access = Access { align, volatile, ordering, scope };
        Ok((Instruction::Store { value, address: address.operand, access }, None))
    }

    pub(super) fn rmw(&mut self, f: &mut FunctionState, c: &mut Cursor<'_>) -> Result<Made, ReadError> {
        let address = self.typed(f, c)?;
        let (value, ty) = match c.record.code {
            code::RMW => {
                let value = self.typed(f, c)?;
                (value.operand, value.ty)
            }
            _ => {
                let ty = self.pointee(c, address.ty)?;
                (self.of_type(f, c, ty)?, ty)
            }
        };
        let op = codes::rmw(c.next()?).ok_or_else(|| c.error("an atomic operation is of an unknown kind"))?;
        let volatile = c.next()? != 0;
        let (ordering, scope) = self.order(c, true)?;
        let number = c.optional();
        let align = alignment(c, number)?;
        let access = Access { align, volatile, ordering, scope };
        Ok((Instruction::Rmw { op, address: address.operand, value, access }, Some(ty)))
    }

    pub(super) fn compare_exchange(&mut self, f: &mut FunctionState, c: &mut Cursor<'_>) -> Result<(), ReadError> {
        let address = self.typed(f, c)?;
        let (expected, ty) = match c.record.code {
            code::COMPARE_EXCHANGE => {
                let expected = self.typed(f, c)?;
                (expected.operand, expected.ty)
            }
            _ => {
                let ty = self.pointee(c, address.ty)?;
                (self.of_type(f, c, ty)?, ty)
            }
        };
        let new = self.of_type(f, c, ty)?;
        let volatile = c.next()? != 0;
        let (ordering, scope) = self.order(c, true)?;
        let failure = if c.left() > 0 { codes::ordering(c.next()?) } else { weaker(ordering) };
        // The oldest files give the old value alone; being strong, success is then equality.
        let only_value = c.left() == 0;
        let weak = c.optional() != 0;
        let number = c.optional();
        let align = alignment(c, number)?;
        let access = Access { align, volatile, ordering, scope };
        let instruction =
            Instruction::CompareExchange { weak, failure, address: address.operand, expected, new, access };
        let bool = self.boolean();
        let fields = [self.type_id(c.record, u64::from(ty))?, self.type_id(c.record, u64::from(bool))?];
        let id = self.module.types.structure(false, &fields);
        let pair = self.types.derive(id, &[ty, bool]);
        if only_value {
            return Err(c.error("this atomic comparison is of a form that no LLVM since 3.5 writes"));
        }
        self.push(f, c.record, instruction, Some(pair))?;
        Ok(())
    }
}

/// The ordering on failure that an ordering implies.
fn weaker(ordering: Ordering) -> Ordering {
    match ordering {
        Ordering::Release => Ordering::Monotonic,
        Ordering::AcqRel => Ordering::Acquire,
        other => other,
    }
}

/// An alignment, of which the file has one more than the logarithm; 0 is none.
fn alignment(c: &Cursor<'_>, number: u64) -> Result<Alignment, ReadError> {
    match number {
        0 => Ok(Alignment::NONE),
        1..=33 => Ok(Alignment::from_bytes(1 << (number - 1)).unwrap_or(Alignment::NONE)),
        _ => Err(c.error("an alignment is larger than any")),
    }
}
