//! Addresses and their spaces (PTX ISA 9.7.10.16 to 9.7.10.27), and hints, which do nothing.

use ptxc_ir::Space;

use super::moves;
use crate::memory::{RANK_SHIFT, from_generic, to_generic, to_space};
use crate::ptx::instruction::Instruction;
use crate::ptx::operand::{Operand, Slot};
use crate::ptx::program::Operation;
use crate::ptx::types::{Type, low_bits};

/// Decodes the family.
pub fn decode(i: &mut Instruction<'_>) -> Result<Option<Operation>, String> {
    Ok(Some(match i.head() {
        "cvta" => cvta(i)?,
        "isspacep" => isspacep(i)?,
        "mapa" => mapa(i)?,
        "getctarank" => rank(i)?,
        "createpolicy" => {
            let d = i.dest(0)?.slot;
            Operation::compute(move |at| at.map1(d, d, |_| 0))
        }
        "prefetch" | "prefetchu" | "applypriority" | "discard" => Operation::compute(|_| {}),
        _ => return Ok(None),
    }))
}

/// A source that is an address: a register, or a variable, whose address goes into the destination first.
fn source(i: &mut Instruction<'_>, to: Slot, ty: Type) -> Result<(Slot, Option<Operation>), String> {
    match *i.operand(1)? {
        Operand::Address(symbol, offset) => Ok((to, Some(moves::address(i, to, symbol, offset, None)?))),
        _ => Ok((i.source(1, ty)?, None)),
    }
}

fn after(first: Option<Operation>, then: Operation) -> Operation {
    match first {
        None => then,
        Some(first) => Operation::new(move |at| {
            (first.execute)(at)?;
            (then.execute)(at)
        }),
    }
}

fn cvta(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let space = i.space(Space::Generic);
    let d = i.dest(0)?;
    let (to, all) = (d.slot, low_bits(d.bits()));
    if i.has("to") {
        let from = i.source(1, i.ty()?)?;
        return Ok(Operation::compute(move |at| at.map1(to, from, |x| to_space(space, x) & all)));
    }
    if let Operand::Address(symbol, offset) = *i.operand(1)? {
        let space = symbol.space();
        return moves::address(i, to, symbol, offset, Some(space));
    }
    let from = i.source(1, i.ty()?)?;
    Ok(Operation::compute(move |at| at.map1(to, from, |x| to_generic(space, x) & all)))
}

fn isspacep(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let space = i.space(Space::Generic);
    let d = i.dest(0)?.slot;
    let from = i.source(1, Type::bits_of(64))?;
    Ok(Operation::compute(move |at| {
        at.map1(d, from, |x| {
            let (found, address) = from_generic(x);
            u64::from(match (space, found) {
                (Space::SharedCluster, Space::Shared) => true,
                (Space::Shared, Space::Shared) => address >> RANK_SHIFT == 0,
                _ => space == found,
            })
        });
    }))
}

/// Whether addresses are those of shared memory itself, and not generic ones.
fn in_space(i: &Instruction<'_>) -> bool {
    i.has("shared::cluster")
}

/// `mapa`: the same variable in another block of the cluster.
fn mapa(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let d = i.dest(0)?;
    let (from, first) = source(i, d.slot, i.ty()?)?;
    let rank = i.source(2, Type::bits_of(32))?;
    let window = if in_space(i) { 0 } else { to_generic(Space::Shared, 0) };
    let operation = Operation::compute(move |at| {
        at.map2(d.slot, from, rank, |x, rank| {
            let offset = x.wrapping_sub(window) & low_bits(RANK_SHIFT);
            window + offset + ((rank + 1) << RANK_SHIFT)
        });
    });
    Ok(after(first, operation))
}

/// `getctarank`: the rank of the block that an address belongs to.
fn rank(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let d = i.dest(0)?;
    let (from, first) = source(i, d.slot, i.ty()?)?;
    let window = if in_space(i) { 0 } else { to_generic(Space::Shared, 0) };
    let operation = Operation::compute(move |at| {
        let own = u64::from(at.world.team.rank);
        at.map1(d.slot, from, |x| (x.wrapping_sub(window) >> RANK_SHIFT).checked_sub(1).unwrap_or(own) & low_bits(32));
    });
    Ok(after(first, operation))
}
