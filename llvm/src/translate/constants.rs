//! Constants as addresses and numbers, without instructions: what initializers and instructions have in common.

use super::types::MAX_DEPTH;
use super::values::same_number;
use super::{Context, Fault, Result, Symbol};
use crate::model::{BinaryOp, CastOp, ConstId, Constant, GlobalKind, Type, TypeId};

/// An address that is known before the program runs: a symbol, or nothing, plus bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Address {
    /// The symbol; [`Symbol::None`] for a number.
    pub symbol: Symbol,
    /// Bytes added.
    pub offset: i64,
}

impl Context<'_> {
    /// The address that a pointer constant is; `None` when it is none that is known, or one of a vector.
    pub fn address(&self, id: ConstId, depth: u32) -> Result<Option<Address>> {
        if depth > MAX_DEPTH {
            return Err(Fault::new(format!("a constant is nested deeper than {MAX_DEPTH}")));
        }
        let constants = &self.source.constants;
        let null = Address { symbol: Symbol::None, offset: 0 };
        Ok(match constants.get(id) {
            Constant::Zero if self.is_pointer(constants.ty(id)) => Some(null),
            Constant::Global(global) | Constant::DsoLocalEquivalent(global) | Constant::NoCfi(global) => {
                if let GlobalKind::Alias(aliasee) | GlobalKind::IFunc(aliasee) = self.source.globals[global].kind {
                    return self.address(aliasee, depth + 1);
                }
                match self.symbols[global] {
                    Symbol::None => None,
                    symbol => Some(Address { symbol, offset: 0 }),
                }
            }
            Constant::PointerAuth(list) => match constants.list(list).first() {
                Some(pointer) => self.address(*pointer, depth + 1)?,
                None => None,
            },
            Constant::Cast { op: CastOp::BitCast, value } => self.address(value, depth + 1)?,
            Constant::Cast { op: CastOp::AddrSpaceCast, value } => {
                let address = self.address(value, depth + 1)?;
                // What number another number becomes is known when the program runs; symbols keep their space.
                address.filter(|a| {
                    a.symbol != Symbol::None || self.cast_keeps_number(constants.ty(value), constants.ty(id))
                })
            }
            Constant::Cast { op: CastOp::IntToPtr, value } => match self.source.constants.get(value) {
                // To an integer and back is the same pointer.
                Constant::Cast { op: CastOp::PtrToInt | CastOp::PtrToAddr, value } => self.address(value, depth + 1)?,
                _ => {
                    let number = self.integer(value, depth + 1)?;
                    number.map(|offset| Address { offset: offset as i64, ..null })
                }
            },
            Constant::ElementPointer { element, operands, .. } => {
                let Some((pointer, indices)) = constants.list(operands).split_first() else { return Ok(None) };
                let Some(base) = self.address(*pointer, depth + 1)? else { return Ok(None) };
                let offset = self.constant_offset(element, indices, depth + 1)?;
                offset.map(|offset| Address { offset: base.offset.wrapping_add(offset), ..base })
            }
            _ => None,
        })
    }

    /// Whether a cast between these pointer types leaves every address the number that it is.
    fn cast_keeps_number(&self, from: TypeId, to: TypeId) -> bool {
        let space = |ty| match self.source.types.get(ty) {
            Type::Pointer(number) => self.space(number).ok(),
            _ => None,
        };
        same_number(space(from), space(to))
    }

    /// Whether a pointer constant is a number (null, mostly) that is cast to a space where it is another number.
    pub fn casts_number(&self, id: ConstId) -> bool {
        let constants = &self.source.constants;
        match constants.get(id) {
            Constant::Cast { op: CastOp::AddrSpaceCast, value } => {
                matches!(self.address(value, 0), Ok(Some(Address { symbol: Symbol::None, .. })))
                    && !self.cast_keeps_number(constants.ty(value), constants.ty(id))
            }
            _ => false,
        }
    }

    fn is_pointer(&self, ty: TypeId) -> bool {
        matches!(self.source.types.get(ty), Type::Pointer(_))
    }

    /// Bytes that indices add when all are constant.
    fn constant_offset(&self, element: TypeId, indices: &[ConstId], depth: u32) -> Result<Option<i64>> {
        let mut steps = self.steps(element);
        let mut offset = 0i64;
        for index in indices {
            let Some(index) = self.integer(*index, depth)? else { return Ok(None) };
            match steps.next(self, Some(index as i64))? {
                Step::Bytes(bytes) => offset = offset.wrapping_add(bytes),
                Step::Stride(stride) => offset = offset.wrapping_add((index as i64).wrapping_mul(stride as i64)),
            }
        }
        Ok(Some(offset))
    }

    /// Begins to follow the indices of address arithmetic.
    pub fn steps(&self, element: TypeId) -> Steps {
        Steps { ty: element, first: true }
    }

    /// The number that an integer constant is, as far as that is known before the program runs.
    pub fn integer(&self, id: ConstId, depth: u32) -> Result<Option<i128>> {
        if depth > MAX_DEPTH {
            return Err(Fault::new(format!("a constant is nested deeper than {MAX_DEPTH}")));
        }
        let constants = &self.source.constants;
        let Type::Integer(bits) = self.source.types.get(constants.ty(id)) else { return Ok(None) };
        if bits > 128 {
            return Ok(None);
        }
        let number = match constants.get(id) {
            Constant::Integer(value) => Some(i128::from(value)),
            Constant::WideInteger(list) => {
                Some(constants.words(list).iter().rev().fold(0u128, |all, word| all << 64 | u128::from(*word)) as i128)
            }
            Constant::Zero | Constant::Undef => Some(0),
            Constant::Cast { op: CastOp::PtrToInt | CastOp::PtrToAddr, value } => {
                match self.address(value, depth + 1)? {
                    Some(Address { symbol: Symbol::None, offset }) => Some(i128::from(offset)),
                    _ => None,
                }
            }
            Constant::Cast { op: CastOp::Trunc | CastOp::SExt | CastOp::BitCast, value } => {
                self.integer(value, depth + 1)?
            }
            Constant::Cast { op: CastOp::ZExt, value } => {
                let from = match self.source.types.get(constants.ty(value)) {
                    Type::Integer(bits) => bits,
                    _ => 128,
                };
                self.integer(value, depth + 1)?.map(|v| unsigned(v, from) as i128)
            }
            Constant::Binary { op, left, right, .. } => {
                match (self.integer(left, depth + 1)?, self.integer(right, depth + 1)?) {
                    (Some(a), Some(b)) => fold(op, a, b, bits),
                    _ => None,
                }
            }
            _ => None,
        };
        Ok(number.map(|number| signed(number, bits)))
    }
}

/// The low bits as a signed number.
pub(super) fn signed(number: i128, bits: u32) -> i128 {
    let shift = 128 - bits.clamp(1, 128);
    number << shift >> shift
}

/// The low bits as an unsigned number.
pub(super) fn unsigned(number: i128, bits: u32) -> u128 {
    if bits >= 128 { number as u128 } else { number as u128 & ((1 << bits) - 1) }
}

/// Arithmetic on sign-extended numbers; the result's upper bits are of no meaning.
pub(super) fn fold(op: BinaryOp, a: i128, b: i128, bits: u32) -> Option<i128> {
    let (ua, ub) = (unsigned(a, bits), unsigned(b, bits));
    let amount = u32::try_from(ub).ok().filter(|n| *n < bits);
    Some(match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Shl => a.wrapping_shl(amount?),
        BinaryOp::LShr => (ua >> amount?) as i128,
        BinaryOp::AShr => a >> amount?,
        BinaryOp::UDiv => ua.checked_div(ub)? as i128,
        BinaryOp::SDiv => a.checked_div(b)?,
        _ => return None,
    })
}

/// One index of address arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// A field: that many bytes.
    Bytes(i64),
    /// An element: the index times that many bytes.
    Stride(u64),
}

/// Follows the indices of address arithmetic through a type.
pub(super) struct Steps {
    ty: TypeId,
    first: bool,
}

impl Steps {
    /// What the next index means; `constant` is its value where it is constant.
    pub fn next(&mut self, context: &Context, constant: Option<i64>) -> Result<Step> {
        let types = &context.source.types;
        if std::mem::take(&mut self.first) {
            return Ok(Step::Stride(context.layout.of(context.source, self.ty)?.size));
        }
        match types.get(self.ty) {
            Type::Array { element, .. } => {
                self.ty = element;
                Ok(Step::Stride(context.layout.of(context.source, element)?.size))
            }
            Type::Vector { element, .. } => {
                self.ty = element;
                Ok(Step::Stride(context.layout.scalar_bits(context.source, element)?.div_ceil(8)))
            }
            Type::Struct { .. } | Type::Named(_) => {
                let missing = || Fault::new("the index of a struct is no constant, or there is no such field");
                let index = constant.and_then(|index| u64::try_from(index).ok()).ok_or_else(missing)?;
                let (_, offsets) = context.layout.structure(context.source, self.ty, 0)?;
                let offset = usize::try_from(index).ok().and_then(|at| offsets.get(at)).ok_or_else(missing)?;
                self.ty = types.part(self.ty, index).ok_or_else(missing)?;
                Ok(Step::Bytes(*offset as i64))
            }
            _ => Err(Fault::new("an index steps into a value that has no parts")),
        }
    }
}
