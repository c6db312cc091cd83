//! Functions with a variable number of arguments.
//!
//! They take a pointer to a buffer in place of the dots. A caller puts the further arguments there one after the other,
//! each at its natural alignment; `va_list` is a pointer into the buffer. Clang and LLVM pass them the same way.

use ptxc_ir::{Extra, Flags, MemAttrs, Opcode, Type as IrType, Value};

use super::body::Writer;
use super::{Fault, Result};
use crate::model::{AttributeValue, Call, Operand, TypeId, ValueId};

impl Writer<'_, '_> {
    /// The pointer to the further arguments of the present function.
    fn further_arguments(&self) -> Result<Value> {
        self.variadic.ok_or_else(|| Fault::new("`va_start` in a function without `...`"))
    }

    /// Puts the arguments from the `fixed`th on into a buffer and gives its address.
    pub fn pack_arguments(&mut self, call: Call, fixed: usize) -> Result<Value> {
        let operands: &[Operand] = self.body.operands(call.arguments);
        let (mut at, mut most, mut places) = (0u64, 1u64, Vec::new());
        for (index, operand) in operands.iter().enumerate().skip(fixed) {
            let object = self.object_of(call, index);
            let ty = match object {
                Some(ty) => ty,
                None => self.type_of(*operand)?,
            };
            let layout = self.cx.layout.of(self.cx.source, ty)?;
            at = at.next_multiple_of(layout.align);
            most = most.max(layout.align);
            places.push((*operand, ty, object.is_some(), at, layout));
            at += layout.size;
        }
        if places.is_empty() {
            return Ok(self.b.bits(IrType::PTR, 0));
        }
        let buffer = self.cx.bytes(at.max(1))?;
        let buffer = self.entry_alloca(buffer, most as u32);
        for (operand, ty, object, offset, layout) in places {
            let to = self.b.byte_offset(buffer, offset as i64);
            if object {
                let from = self.address(operand)?;
                let size = self.b.iconst(IrType::I64, layout.size as i64);
                let align = layout.align as u32;
                let extra = Extra::Copy { dst_align: align, src_align: align, volatile: false };
                self.b.inst(Opcode::Memcpy, Flags::EMPTY, IrType::INVALID, &[to, from, size], extra);
            } else {
                let run = self.exact_parts(operand)?;
                let parts = self.parts[run.range()].to_vec();
                self.store_value(ty, &parts, to, MemAttrs::aligned(layout.align))?;
            }
        }
        Ok(self.fit(buffer, IrType::PTR))
    }

    /// The type of the object that an argument passes by value.
    fn object_of(&self, call: Call, index: usize) -> Option<TypeId> {
        let source = self.cx.source;
        source.attributes.param(call.attributes, index).iter().find_map(|attribute| match attribute.value {
            AttributeValue::Type(ty) if source.names.bytes(attribute.name) == b"byval" => Some(ty),
            _ => None,
        })
    }

    /// `va_start`.
    pub fn start_arguments(&mut self, list: Operand) -> Result<()> {
        let buffer = self.further_arguments()?;
        let list = self.address(list)?;
        self.b.store(buffer, list, MemAttrs::aligned(8));
        Ok(())
    }

    /// `va_copy`.
    pub fn copy_arguments(&mut self, to: Operand, from: Operand) -> Result<()> {
        let (to, from) = (self.address(to)?, self.address(from)?);
        let buffer = self.b.load(IrType::PTR, from, MemAttrs::aligned(8));
        self.b.store(buffer, to, MemAttrs::aligned(8));
        Ok(())
    }

    /// `va_arg`: the next argument of the list.
    pub fn next_argument(&mut self, list: Operand, result: Option<ValueId>) -> Result<()> {
        let result = result.ok_or_else(|| Fault::new("`va_arg` has no result"))?;
        let ty = self.body.values[result].ty;
        let layout = self.cx.layout.of(self.cx.source, ty)?;
        let list = self.address(list)?;
        let attrs = MemAttrs::aligned(8);
        let buffer = self.b.load(IrType::PTR, list, attrs);
        let mut number = self.b.convert(Opcode::Ptrtoint, buffer, IrType::I64);
        if layout.align > 1 {
            number = self.b.binary_imm(Opcode::Add, number, layout.align as i64 - 1);
            number = self.b.binary_imm(Opcode::And, number, -(layout.align as i64));
        }
        let at = self.b.convert(Opcode::Inttoptr, number, IrType::PTR);
        let parts = self.load_value(ty, at, MemAttrs::aligned(layout.align))?;
        let next = self.b.byte_offset(at, layout.size as i64);
        self.b.store(next, list, attrs);
        self.define(result, &parts);
        Ok(())
    }
}
