//! Threads that work together, in forms of older LLVM.

use ptxc_ir::{Extra, Flags, IntCC, Opcode, Type as IrType};

use super::word;
use crate::translate::body::Writer;
use crate::translate::intrinsics::Site;
use crate::translate::{Fault, Result};

/// `barrier0`: barrier 0 for all threads of the block.
pub(super) fn barrier_zero<'m>(w: &mut Writer<'_, 'm>, _: &Site<'m>, _: &[String]) -> Result<()> {
    let zero = w.b.iconst(IrType::I32, 0);
    w.b.inst(Opcode::BarrierSync, Flags::ALIGNED, IrType::INVALID, &[zero], Extra::None);
    Ok(())
}

/// `barrier0.popc` and the like: the predicate is an integer, and so is the result.
pub(super) fn barrier_zero_reduce<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let op = Opcode::from_text(&format!("barrier.red.{}", word(words)));
    let op = op.ok_or_else(|| Fault::new("what it reduces is not known"))?;
    let given = w.arg(site, 0)?;
    let predicate = if w.b.ty(given) == IrType::I1 { given } else { w.b.icmp_imm(IntCC::Ne, given, 0) };
    let zero = w.b.iconst(IrType::I32, 0);
    let made = w.b.inst(op, Flags::ALIGNED, IrType::INVALID, &[zero, predicate], Extra::None);
    let value = w.b.func.dfg.result(made, 0);
    let ty = w.wanted(site)?;
    let value = w.resize(value, ty, false);
    w.give(site, value)
}

/// `shfl` without a mask: the threads that are there take part.
pub(super) fn shuffle_without_mask<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let op = Opcode::from_text(&format!("shfl.{}", word(words)));
    let op = op.ok_or_else(|| Fault::new("its kind is not known"))?;
    let (x, lane, clamp) = (w.arg(site, 0)?, w.arg(site, 1)?, w.arg(site, 2)?);
    let mask = w.op(Opcode::ActiveMask, Flags::EMPTY, IrType::INVALID, &[]);
    let ty = w.b.ty(x);
    let results = match site.result {
        Some(result) => w.cx.shape(w.body.values[result].ty)?.parts.len(),
        None => 1,
    };
    let types: &[IrType] = if results > 1 { &[ty, IrType::I1] } else { &[ty] };
    let made = w.b.inst_with_results(op, Flags::EMPTY, ty, &[x, lane, clamp, mask], Extra::None, types);
    let parts = w.b.func.dfg.results(made).collect();
    w.finish(site.result, parts)
}

/// `vote` without a mask.
pub(super) fn vote_without_mask<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let op = Opcode::from_text(&format!("vote.{}", word(words)));
    let op = op.ok_or_else(|| Fault::new("its kind is not known"))?;
    let predicate = w.arg(site, 0)?;
    let mask = w.op(Opcode::ActiveMask, Flags::EMPTY, IrType::INVALID, &[]);
    let value = w.op(op, Flags::EMPTY, IrType::INVALID, &[predicate, mask]);
    w.give(site, value)
}

/// `nvvm.reflect`: the same as calling `__nvvm_reflect`.
pub(super) fn reflect<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    w.reflect(site.call, site.result)
}
