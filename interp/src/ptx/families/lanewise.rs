//! Operations that compute each lane by itself, from functions over the bits of one lane.

use crate::ptx::instruction::Instruction;
use crate::ptx::operand::Slot;
use crate::ptx::program::Operation;
use crate::ptx::types::{Type, low_bits};

/// `d = f(a)`, on whole warps: `f` must be cheap, and defined for all bits.
pub fn unary(
    i: &mut Instruction<'_>,
    ty: Type,
    f: impl Fn(u64) -> u64 + Send + Sync + 'static,
) -> Result<Operation, String> {
    let (d, a) = (i.dest(0)?, i.source(1, ty)?);
    let (d, all) = (d.slot, low_bits(d.bits()));
    Ok(Operation::compute(move |at| at.map1(d, a, |x| f(x) & all)))
}

/// `d = f(a, b)`, as [`unary`].
pub fn binary(
    i: &mut Instruction<'_>,
    types: [Type; 2],
    f: impl Fn(u64, u64) -> u64 + Send + Sync + 'static,
) -> Result<Operation, String> {
    let (d, a, b) = (i.dest(0)?, i.source(1, types[0])?, i.source(2, types[1])?);
    let (d, all) = (d.slot, low_bits(d.bits()));
    Ok(Operation::compute(move |at| at.map2(d, a, b, |x, y| f(x, y) & all)))
}

/// `d = f(a, b, c)`, as [`unary`].
pub fn ternary(
    i: &mut Instruction<'_>,
    types: [Type; 3],
    f: impl Fn(u64, u64, u64) -> u64 + Send + Sync + 'static,
) -> Result<Operation, String> {
    let d = i.dest(0)?;
    let (a, b, c) = (i.source(1, types[0])?, i.source(2, types[1])?, i.source(3, types[2])?);
    let (d, all) = (d.slot, low_bits(d.bits()));
    Ok(Operation::compute(move |at| at.map3(d, a, b, c, |x, y, z| f(x, y, z) & all)))
}

/// `d = f(sources)` lane by lane, only where the step is executed: for what takes long.
pub fn slow<const N: usize>(
    i: &mut Instruction<'_>,
    types: [Type; N],
    f: impl Fn([u64; N]) -> u64 + Send + Sync + 'static,
) -> Result<Operation, String> {
    let d = i.dest(0)?;
    let mut sources = [0 as Slot; N];
    for (index, ty) in types.into_iter().enumerate() {
        sources[index] = i.source(index + 1, ty)?;
    }
    let (d, all) = (d.slot, low_bits(d.bits()));
    Ok(Operation::compute(move |at| at.each(d, |at, lane| f(sources.map(|slot| at.lane(slot, lane))) & all)))
}

/// As [`slow`], of results that hardware only approximates.
pub fn approximate<const N: usize>(
    i: &mut Instruction<'_>,
    types: [Type; N],
    f: impl Fn([u64; N]) -> u64 + Send + Sync + 'static,
) -> Result<Operation, String> {
    let operation = slow(i, types, f)?;
    Ok(Operation::new(move |at| {
        at.world.outcome.approximate = true;
        (operation.execute)(at)
    }))
}

/// A function of elements as one of the packed whole.
pub fn packed<const N: usize>(ty: Type, f: impl Fn([u64; N]) -> u64) -> impl Fn([u64; N]) -> u64 {
    let mask = ty.mask();
    move |sources| {
        (0..ty.count).fold(0, |result, index| {
            let shift = index * ty.element;
            result | (f(sources.map(|x| x >> shift & mask)) & mask) << shift
        })
    }
}
