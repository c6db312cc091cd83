//! Matrices of a warp: `mma`, `ldmatrix`, `stmatrix`, `movmatrix` (PTX ISA 9.7.16.5.14 to 9.7.16.5.17).
//!
//! Sparse products (`mma.sp`) and `stmatrix` of 8-bit elements are not executed: how their metadata and elements are
//! laid out, the manual says in figures alone.

use super::memory::{Way, addresses, read, write};
use crate::machine::{Flow, LANES, Lanes, Stop};
use crate::matrix::exchange::{self, Packing, Rows};
use crate::matrix::multiply::{Product, ScaleOperands};
use crate::memory::Access;
use crate::ptx::At;
use crate::ptx::instruction::Instruction;
use crate::ptx::operand::{Operand, Register, Slot};
use crate::ptx::program::Operation;
use crate::ptx::types::Type;

/// Decodes the family.
pub fn decode(i: &mut Instruction<'_>) -> Result<Option<Operation>, String> {
    Ok(Some(match i.head() {
        "mma" => multiply(i)?,
        "ldmatrix" => load(i)?,
        "stmatrix" => store(i)?,
        _ => transpose(i)?,
    }))
}

/// An operation that all lanes of a warp execute together (`.sync.aligned`).
pub fn aligned(execute: impl Fn(&mut At<'_, '_>) -> Result<(), Stop> + Send + Sync + 'static) -> Operation {
    Operation::new(move |at| {
        if at.mask != at.who.live {
            return Ok(Flow::Meet);
        }
        if at.mask != u32::MAX {
            return Err(Stop::new("threads of the warp are missing that have exited or never were"));
        }
        execute(at).map(|()| Flow::Next)
    })
}

fn gather(at: &At<'_, '_>, slots: &[Slot]) -> Vec<Lanes> {
    slots.iter().map(|slot| *at.get(*slot)).collect()
}

fn scatter(at: &mut At<'_, '_>, registers: &[Option<Register>], values: &[Lanes]) {
    for (register, lanes) in registers.iter().zip(values) {
        if let Some(register) = register {
            at.set(register.slot, lanes);
        }
    }
}

/// Byte and thread that select scale factors.
fn selectors(i: &mut Instruction<'_>, index: usize) -> Result<[Slot; 2], String> {
    let slots = i.source_vector(index, Type::bits_of(16))?;
    <[Slot; 2]>::try_from(slots).map_err(|_| "a selector has two parts".to_string())
}

fn multiply(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let modifiers = match i.pieces {
        ["mma", "sync", "aligned", modifiers @ ..] => modifiers,
        _ => return Err("sparse matrices are not known".to_string()),
    };
    let product = Product::parse(modifiers).ok_or_else(|| "the product is not known".to_string())?;
    let width = |bits: u32| Type::bits_of(bits.max(32));
    let d = i.dest_vector(0)?;
    let a = i.source_vector(1, width(product.a.bits()))?;
    let b = i.source_vector(2, width(product.b.bits()))?;
    let c = i.source_vector(3, width(product.accumulator.bits))?;
    let scales = match product.scale {
        None => None,
        Some(_) => {
            let word = Type::bits_of(32);
            Some((i.source(4, word)?, selectors(i, 5)?, i.source(6, word)?, selectors(i, 7)?))
        }
    };
    Ok(aligned(move |at| {
        let (left, right, start) = (gather(at, &a), gather(at, &b), gather(at, &c));
        let scales = match &scales {
            None => None,
            Some((a, select_a, b, select_b)) => {
                let select = |[byte, thread]: [Slot; 2]| -> Result<(u32, u32), Stop> {
                    let what = "a selector of scale factors";
                    Ok((at.uniform(byte, what)? as u32, at.uniform(thread, what)? as u32))
                };
                let (select_a, select_b) = (select(*select_a)?, select(*select_b)?);
                Some(ScaleOperands { a: at.get(*a), select_a, b: at.get(*b), select_b })
            }
        };
        let result = product.multiply(&left, &right, &start, scales);
        scatter(at, &d, &result);
        Ok(())
    }))
}

/// How many matrices are moved.
fn count(i: &Instruction<'_>) -> Result<usize, String> {
    match i.any(&["x1", "x2", "x4"]) {
        Some("x1") => Ok(1),
        Some("x2") => Ok(2),
        Some(_) => Ok(4),
        None => Err("no number of matrices is named".to_string()),
    }
}

fn rows(i: &Instruction<'_>) -> Rows {
    let packing = match i.any(&["b6x16_p32", "b4x16_p64", "s4"]) {
        Some("b6x16_p32") => Packing::Six,
        Some("b4x16_p64") => Packing::Four,
        Some(_) => Packing::SignedFour,
        None => Packing::Bytes,
    };
    match i.any(&["m8n8", "m16n16"]) {
        Some("m8n8") => Rows::Halves { transposed: i.has("trans") },
        Some(_) => Rows::Bytes(packing),
        None => Rows::Expanded(packing),
    }
}

fn load(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let kind = rows(i);
    let lanes = kind.per_matrix() * count(i)?;
    let to = i.dest_vector(0)?;
    let address = i.address(1)?;
    let way = Way::new(i, &address);
    if lanes > LANES {
        return Err("there are not as many lanes as rows".to_string());
    }
    Ok(aligned(move |at| {
        let addresses = addresses(at, &address);
        let mut rows = Vec::with_capacity(lanes);
        for (lane, address) in addresses.iter().enumerate().take(lanes) {
            let size = kind.row_bytes();
            let access = Access { space: way.space, address: *address, size, align: size.into() };
            let loaded = read(at, lane, &access, way.kind)?;
            if loaded.poison {
                return Err(Stop::lane("a row of a matrix is poison", lane));
            }
            rows.push(loaded.bits);
        }
        scatter(at, &to, &exchange::load(kind, &rows));
        Ok(())
    }))
}

fn store(i: &mut Instruction<'_>) -> Result<Operation, String> {
    if !i.has("m8n8") {
        return Err("elements of 8 bits are not known".to_string());
    }
    let matrices = count(i)?;
    let address = i.address(0)?;
    let way = Way::new(i, &address);
    let from = match i.operand(1)? {
        Operand::Vector(_) | Operand::Register(_) => i.source_vector(1, Type::bits_of(32))?,
        _ => return Err("the matrices are in no registers".to_string()),
    };
    if from.len() != matrices {
        return Err("there are not as many registers as matrices".to_string());
    }
    let transposed = i.has("trans");
    Ok(aligned(move |at| {
        let addresses = addresses(at, &address);
        let rows = exchange::store(transposed, &gather(at, &from));
        for (lane, row) in rows.into_iter().enumerate() {
            let access = Access { space: way.space, address: addresses[lane % LANES], size: 16, align: 16 };
            write(at, lane, &access, row, way.kind)?;
        }
        Ok(())
    }))
}

fn transpose(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let (d, a) = (i.dest(0)?.slot, i.source(1, Type::bits_of(32))?);
    Ok(aligned(move |at| {
        let turned = exchange::transpose(at.get(a));
        at.set(d, &turned);
        Ok(())
    }))
}
