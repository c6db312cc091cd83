//! Initial contents of variables.
//!
//! Scalars, strings and arrays of numbers keep their type. Everything else becomes the bytes that LLVM's data layout
//! gives, with addresses between them, so that offsets are LLVM's whatever the IR's own layout is.

use ptxc_ir::{AggDef, Init, MemType, Space, Type as IrType};

use super::constants::{signed, unsigned};
use super::types::MAX_DEPTH;
use super::{Context, Fault, Result, Symbol};
use crate::model::{CastOp, ConstId, Constant, List, Type, TypeId};

/// Largest initializer that is not all zero, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// Bytes with addresses among them.
struct Image {
    bytes: Vec<u8>,
    /// Offset and address, in the order of the bytes.
    addresses: Vec<(u64, Init, IrType)>,
}

impl Context<'_> {
    /// The type and contents of a variable of type `ty` with this initializer.
    pub fn initializer(&mut self, ty: TypeId, constant: ConstId) -> Result<(MemType, Init)> {
        let source = self.source;
        match source.constants.get(constant) {
            Constant::Zero | Constant::Undef | Constant::Poison => return Ok((self.mem_type(ty)?, Init::Zero)),
            Constant::Data(list) => {
                if let Type::Array { element, .. } = source.types.get(ty) {
                    return self.array_of_numbers(ty, element, list);
                }
            }
            _ => {}
        }
        let layout = self.layout.of(source, ty)?;
        if layout.size > MAX_BYTES {
            return Err(Fault::new(format!("an initializer of {} bytes is too large", layout.size)));
        }
        let mut image = Image { bytes: vec![0; layout.size as usize], addresses: Vec::new() };
        self.write(constant, 0, &mut image, 0)?;
        if let Ok(scalar) = self.value_type(ty)
            && let Some(init) = scalar_init(scalar, &image)
        {
            return Ok((scalar.into(), init));
        }
        self.chunks(image)
    }

    fn array_of_numbers(&mut self, ty: TypeId, element: TypeId, list: List) -> Result<(MemType, Init)> {
        let source = self.source;
        let (kind, scalar) = (source.types.get(element), self.value_type(element)?);
        let bytes = source.constants.bytes(list);
        let mem = self.mem_type(ty)?;
        if scalar == IrType::I8 {
            return Ok((mem, Init::Bytes(bytes.to_vec())));
        }
        let count = bytes.len() / scalar.size().max(1) as usize;
        let number = |index| source.constants.data_element(list, kind, index).unwrap_or(0);
        Ok((mem, Init::List((0..count).map(|index| Init::Bits(u128::from(number(index)))).collect())))
    }

    /// A packed struct of byte arrays and addresses.
    fn chunks(&mut self, image: Image) -> Result<(MemType, Init)> {
        let (mut fields, mut list, mut at) = (Vec::new(), Vec::new(), 0usize);
        let end = image.bytes.len();
        let stops = image.addresses.into_iter().map(Some).chain([None]);
        for stop in stops {
            let next = stop.as_ref().map_or(end, |(offset, ..)| *offset as usize);
            if let Some(bytes) = image.bytes.get(at..next).filter(|bytes| !bytes.is_empty()) {
                fields.push(self.bytes(bytes.len() as u64)?);
                let zero = bytes.iter().all(|byte| *byte == 0);
                list.push(if zero { Init::Zero } else { Init::Bytes(bytes.to_vec()) });
            }
            let Some((_, init, ty)) = stop else { break };
            at = next + ty.size() as usize;
            fields.push(ty.into());
            list.push(init);
        }
        match (fields.as_slice(), list.pop()) {
            ([one], Some(init)) => Ok((*one, init)),
            (_, Some(last)) => {
                list.push(last);
                Ok((self.aggregate(AggDef::Struct { fields, packed: true })?, Init::List(list)))
            }
            (_, None) => Ok((self.bytes(0)?, Init::Zero)),
        }
    }

    fn write(&mut self, constant: ConstId, at: u64, image: &mut Image, depth: u32) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(Fault::new(format!("a constant is nested deeper than {MAX_DEPTH}")));
        }
        let source = self.source;
        let constants = &source.constants;
        let ty = constants.ty(constant);
        match constants.get(constant) {
            Constant::Zero | Constant::Undef | Constant::Poison => {}
            Constant::Float(bits) => put(image, at, u128::from(bits), self.layout.of(source, ty)?.store),
            Constant::WideFloat(list) => {
                let bits = constants.words(list).iter().rev().fold(0u128, |all, word| all << 64 | u128::from(*word));
                put(image, at, bits, 16);
            }
            Constant::Aggregate(list) => self.write_parts(ty, constants.list(list), at, image, depth)?,
            Constant::Data(list) => {
                let bytes = constants.bytes(list);
                if let Some(place) = image.bytes.get_mut(at as usize..at as usize + bytes.len()) {
                    place.copy_from_slice(bytes);
                }
            }
            _ => self.write_scalar(constant, ty, at, image)?,
        }
        Ok(())
    }

    fn write_parts(&mut self, ty: TypeId, parts: &[ConstId], at: u64, image: &mut Image, depth: u32) -> Result<()> {
        let source = self.source;
        match source.types.get(ty) {
            Type::Array { element, .. } => {
                let stride = self.layout.of(source, element)?.size;
                for (index, part) in parts.iter().enumerate() {
                    self.write(*part, at + index as u64 * stride, image, depth + 1)?;
                }
            }
            Type::Vector { element, .. } => {
                let bits = self.layout.scalar_bits(source, element)?;
                if bits % 8 == 0 {
                    for (index, part) in parts.iter().enumerate() {
                        self.write(*part, at + index as u64 * bits / 8, image, depth + 1)?;
                    }
                    return Ok(());
                }
                // Lanes lie bit by bit.
                for (index, part) in parts.iter().enumerate() {
                    let value = self.integer(*part, depth + 1)?.unwrap_or(0);
                    for bit in 0..bits.min(128) {
                        let place = index as u64 * bits + bit;
                        let byte = image.bytes.get_mut((at + place / 8) as usize);
                        if let (Some(byte), true) = (byte, value >> bit & 1 != 0) {
                            *byte |= 1 << (place % 8);
                        }
                    }
                }
            }
            _ => {
                let (_, offsets) = self.layout.structure(source, ty, 0)?;
                for (part, offset) in parts.iter().zip(offsets) {
                    self.write(*part, at + offset, image, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    fn write_scalar(&mut self, constant: ConstId, ty: TypeId, at: u64, image: &mut Image) -> Result<()> {
        let source = self.source;
        if let Type::Integer(bits) | Type::Byte(bits) = source.types.get(ty) {
            if let Constant::WideInteger(words) = source.constants.get(constant)
                && bits > 128
            {
                for (index, word) in source.constants.words(words).iter().enumerate() {
                    put(image, at + 8 * index as u64, u128::from(*word), 8);
                }
                return Ok(());
            }
            if let Some(number) = self.integer(constant, 0)? {
                put(image, at, unsigned(signed(number, bits), bits), u64::from(bits.div_ceil(8)));
                return Ok(());
            }
        }
        let pointer = match source.constants.get(constant) {
            Constant::Cast { op: CastOp::PtrToInt | CastOp::PtrToAddr, value } => value,
            _ => constant,
        };
        let size = self.layout.of(source, ty)?.store;
        let Some(address) = self.address(pointer, 0)? else {
            if self.casts_number(pointer) {
                return Err(Fault::new(
                    "the initializer casts null or a number to another address space: \
                     what address that is cannot be known before the program runs",
                ));
            }
            return Err(Fault::new(
                "the initializer is computed in a way that cannot be known before the program runs",
            ));
        };
        let (init, ty) = match address.symbol {
            Symbol::None => {
                put(image, at, address.offset as u64 as u128, size);
                return Ok(());
            }
            _ if size != 8 => return Err(Fault::new("the address in an initializer has not 64 bits")),
            Symbol::Function(func) if address.offset == 0 => (Init::Func(func), IrType::PTR),
            Symbol::Function(_) => return Err(Fault::new("an initializer holds an address inside a function")),
            Symbol::Variable(global) => {
                let own = match self.module.global_ptr(global).space() {
                    Some(space @ (Space::Global | Space::Const)) => space,
                    _ => return Err(Fault::new("the address of shared memory is not known before the program runs")),
                };
                // A pointer of the variable's own space is the address in it; any other is a generic address.
                let pointer_type = source.constants.ty(pointer);
                let generic = self.value_type(pointer_type)?.space() != Some(own);
                let ty = if generic { IrType::PTR } else { IrType::ptr(own) };
                (Init::Global { global, offset: address.offset, generic }, ty)
            }
        };
        image.addresses.push((at, init, ty));
        Ok(())
    }
}

fn put(image: &mut Image, at: u64, bits: u128, len: u64) {
    let len = len.min(16) as usize;
    if let Some(place) = image.bytes.get_mut(at as usize..at as usize + len) {
        place.copy_from_slice(&bits.to_le_bytes()[..len]);
    }
}

/// The initializer of a scalar whose whole image this is.
fn scalar_init(ty: IrType, image: &Image) -> Option<Init> {
    if let [(0, init, address)] = image.addresses.as_slice() {
        return (*address == ty).then(|| init.clone());
    }
    if !image.addresses.is_empty() || ty.is_vector() || ty.size() != image.bytes.len() as u64 {
        return None;
    }
    let bits = image.bytes.iter().rev().fold(0u128, |all, byte| all << 8 | u128::from(*byte));
    (!ty.is_ptr() || bits == 0).then_some(Init::Bits(bits))
}
