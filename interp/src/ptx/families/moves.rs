//! `mov` (PTX ISA 9.7.10.3, 9.7.10.4): copies, addresses, special registers, packing and unpacking.

use ptxc_ir::Space;

use crate::machine::{Stop, special};
use crate::ptx::At;
use crate::ptx::instruction::Instruction;
use crate::ptx::operand::{FRAME, Operand, Register, Slot, Symbol};
use crate::ptx::program::Operation;
use crate::ptx::types::{Type, low_bits};

/// Decodes `mov`.
pub fn decode(i: &mut Instruction<'_>) -> Result<Option<Operation>, String> {
    let ty = i.ty()?;
    let (to, from) = (i.operand(0)?.clone(), i.operand(1)?.clone());
    let pieces = |i: &mut Instruction<'_>, list: &[Operand], width: u32| -> Result<Vec<Slot>, String> {
        list.iter().map(|operand| i.value(operand, Type::bits_of(width))).collect()
    };
    Ok(Some(match (&to, &from) {
        (Operand::Vector(_), Operand::Vector(from)) => {
            let list: Vec<Operation> = i
                .dest_vector(0)?
                .into_iter()
                .zip(from)
                .filter_map(|(to, from)| to.map(|to| one(i, to, from, ty)))
                .collect::<Result<_, _>>()?;
            Operation::then(move |at| list.iter().try_for_each(|one| (one.execute)(at).map(|_| ())))
        }
        (Operand::Vector(_), from) => {
            let to = i.dest_vector(0)?;
            let width = ty.width() / to.len().max(1) as u32;
            let from = i.value(from, ty)?;
            let wide = ty.width() > 64;
            let slots: Vec<Option<Slot>> = to.into_iter().map(|r| r.map(|r| r.slot)).collect();
            Operation::compute(move |at| unpack(at, &slots, from, width, wide))
        }
        (_, Operand::Vector(from)) => {
            let to = i.dest(0)?;
            let width = ty.width() / from.len().max(1) as u32;
            let from = pieces(i, from, width)?;
            Operation::compute(move |at| pack(at, to, &from, width))
        }
        (_, from) => {
            let to = i.dest(0)?;
            one(i, to, from, ty)?
        }
    }))
}

/// A scalar to a register.
fn one(i: &mut Instruction<'_>, to: Register, from: &Operand, ty: Type) -> Result<Operation, String> {
    let (slot, all) = (to.slot, low_bits(ty.width()));
    Ok(match from {
        Operand::Special(register) => {
            let register = *register;
            Operation::then(move |at| {
                let values = special(register, at.world, at.who).map_err(Stop::new)?;
                at.set(slot, &values);
                Ok(())
            })
        }
        Operand::Address(symbol, offset) => address(i, slot, *symbol, *offset, None)?,
        from => {
            let from = i.value(from, ty)?;
            if ty.width() > 64 {
                return Ok(Operation::compute(move |at| {
                    at.map1(slot, from, |x| x);
                    at.map1(slot + 1, from + 1, |x| x);
                }));
            }
            Operation::compute(move |at| at.map1(slot, from, |x| x & all))
        }
    })
}

/// The address of a variable plus bytes, in its own space or in another.
pub fn address(
    i: &mut Instruction<'_>,
    to: Slot,
    symbol: Symbol,
    offset: i64,
    as_generic: Option<Space>,
) -> Result<Operation, String> {
    if let Symbol::Frame(at_byte) = symbol {
        let add = offset.wrapping_add(at_byte as i64);
        let window = as_generic.map_or(0, |space| crate::memory::to_generic(space, 0));
        return Ok(Operation::compute(move |at| {
            at.map1(to, FRAME, |x| x.wrapping_add_signed(add).wrapping_add(window))
        }));
    }
    let from = i.symbol(symbol, offset, as_generic.is_some())?;
    Ok(Operation::compute(move |at| at.map1(to, from, |x| x)))
}

fn unpack(at: &mut At<'_, '_>, to: &[Option<Slot>], from: Slot, width: u32, wide: bool) {
    for lane in at.lanes() {
        let bits = if wide { at.wide(from, lane) } else { at.lane(from, lane).into() };
        for (index, to) in to.iter().enumerate() {
            if let Some(to) = to {
                at.put(*to, lane, (bits >> (index as u32 * width)) as u64 & low_bits(width));
            }
        }
    }
}

fn pack(at: &mut At<'_, '_>, to: Register, from: &[Slot], width: u32) {
    for lane in at.lanes() {
        let part =
            |index: usize, slot: &Slot| u128::from(at.lane(*slot, lane) & low_bits(width)) << (index as u32 * width);
        let bits = from.iter().enumerate().fold(0, |bits, (index, slot)| bits | part(index, slot));
        if to.bits() > 64 {
            at.put_wide(to.slot, lane, bits);
        } else {
            at.put(to.slot, lane, bits as u64);
        }
    }
}
