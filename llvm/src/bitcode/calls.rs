//! Records of calls.

use cranelift_entity::packed_option::PackedOption;
use smallvec::SmallVec;

use super::Reader;
use super::codes;
use super::function::{Cursor, FunctionState};
use super::instructions::Made;
use crate::ReadError;
use crate::model::{
    AttributesId, BlockId, Call, CallId, CallingConvention, Flags, Instruction, Operand, TailCall, Type,
};

/// What stands before the callee.
struct Head {
    attributes: PackedOption<AttributesId>,
    convention: CallingConvention,
    tail: TailCall,
    flags: Flags,
    /// The record says the type of the function.
    typed: bool,
}

impl Reader<'_, '_> {
    pub(super) fn call(&mut self, f: &mut FunctionState, c: &mut Cursor<'_>) -> Result<Made, ReadError> {
        const EXPLICIT_TYPE: u64 = 1 << 15;
        const FAST_MATH: u64 = 1 << 17;
        let attributes = c.next()?;
        let attributes = self.attributes(c.record, attributes)?;
        let packed = c.next()?;
        let flags = if packed & FAST_MATH != 0 { codes::fast_math(c.next()?) } else { Flags::NONE };
        let tail = match packed {
            packed if packed & 1 << 14 != 0 => TailCall::MustTail,
            packed if packed & 1 << 16 != 0 => TailCall::NoTail,
            packed if packed & 1 != 0 => TailCall::Tail,
            _ => TailCall::None,
        };
        let convention = CallingConvention((packed >> 1 & 0x3ff) as u32);
        let head = Head { attributes, convention, tail, flags, typed: packed & EXPLICIT_TYPE != 0 };
        let (call, result) = self.callee_and_arguments(f, c, head)?;
        Ok((Instruction::Call(call), Some(result)))
    }

    pub(super) fn invoke(&mut self, f: &mut FunctionState, c: &mut Cursor<'_>) -> Result<Made, ReadError> {
        let head = self.invoke_head(c)?;
        let (normal, unwind) = (c.next()?, c.next()?);
        let normal = self.block_numbered(f, c.record, normal)?;
        let unwind = self.block_numbered(f, c.record, unwind)?;
        let (call, result) = self.callee_and_arguments(f, c, head)?;
        Ok((Instruction::Invoke { call, normal, unwind }, Some(result)))
    }

    pub(super) fn call_branch(&mut self, f: &mut FunctionState, c: &mut Cursor<'_>) -> Result<Made, ReadError> {
        let head = self.invoke_head(c)?;
        let normal = c.next()?;
        let mut targets: SmallVec<[Operand; 4]> = SmallVec::new();
        targets.push(self.block_numbered(f, c.record, normal)?.into());
        let count = c.next()?;
        for _ in 0..count {
            let block = c.next()?;
            targets.push(BlockId::into(self.block_numbered(f, c.record, block)?));
        }
        let (call, result) = self.callee_and_arguments(f, c, head)?;
        let targets = f.body.add_operands(&targets);
        Ok((Instruction::CallBranch { call, targets }, Some(result)))
    }

    fn invoke_head(&mut self, c: &mut Cursor<'_>) -> Result<Head, ReadError> {
        const EXPLICIT_TYPE: u64 = 1 << 13;
        let attributes = c.next()?;
        let attributes = self.attributes(c.record, attributes)?;
        let packed = c.next()?;
        let convention = CallingConvention((packed & 0x3ff) as u32);
        let typed = packed & EXPLICIT_TYPE != 0;
        Ok(Head { attributes, convention, tail: TailCall::None, flags: Flags::NONE, typed })
    }

    /// The call, and the number of the type of its result.
    fn callee_and_arguments(
        &mut self,
        f: &mut FunctionState,
        c: &mut Cursor<'_>,
        head: Head,
    ) -> Result<(CallId, u32), ReadError> {
        let stated = if head.typed { Some(c.next()? as u32) } else { None };
        let callee = self.typed(f, c)?;
        let ty = stated.or_else(|| self.types.pointee(self.module, callee.ty));
        let Some((ty, Type::Function { variadic, .. })) = ty.map(|ty| (ty, self.kind(ty))) else {
            return Err(c.error("a call does not say the type of the function"));
        };
        let parts: SmallVec<[u32; 8]> = SmallVec::from_slice(self.types.parts(ty));
        let Some((result, params)) = parts.split_first() else {
            return Err(c.error("the type of a function has no result"));
        };
        let mut arguments: SmallVec<[Operand; 8]> = SmallVec::new();
        for param in params {
            arguments.push(match self.kind(*param) {
                Type::Label => {
                    let block = c.next()?;
                    self.block_numbered(f, c.record, block)?.into()
                }
                _ => self.of_type(f, c, *param)?,
            });
        }
        while variadic && c.left() > 0 {
            arguments.push(self.typed(f, c)?.operand);
        }
        if c.left() > 0 {
            return Err(c.error("a call has more arguments than the function takes"));
        }
        let attributes = self.typed_attributes(head.attributes, ty);
        let bundles = std::mem::take(&mut f.bundles);
        let call = Call {
            callee: callee.operand,
            ty: self.type_id(c.record, u64::from(ty))?,
            arguments: f.body.add_operands(&arguments),
            convention: head.convention,
            attributes,
            tail: head.tail,
            flags: head.flags,
            bundles: f.body.add_bundles(&bundles),
        };
        Ok((f.body.calls.push(call), *result))
    }
}
