//! Vectors.

use ptxc_ir::{ConstData, Flags, Opcode, Type as IrType, Value};

use super::word;
use crate::model::Flags as SourceFlags;
use crate::translate::body::Writer;
use crate::translate::intrinsics::Site;
use crate::translate::{Fault, Result};

/// `vector.reduce.fadd`, `fmul`: from a first value on, in order unless the order does not matter.
pub(super) fn reduce_from<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let (start, vector) = (w.arg(site, 0)?, w.arg(site, 1)?);
    let (whole, step) = match word(words) {
        "fadd" => (Opcode::ReduceFadd, Opcode::Fadd),
        _ => (Opcode::ReduceFmul, Opcode::Fmul),
    };
    let (ty, scalar) = (w.b.ty(vector), w.b.ty(start));
    let flags = w.site_flags(Flags::EMPTY, step, scalar, site);
    let mut value = start;
    if site.call.flags.has(SourceFlags::REASSOC) {
        let flags = w.site_flags(Flags::EMPTY, whole, ty, site);
        let all = w.op(whole, flags, ty, &[vector]);
        value = w.op(step, flags_for(flags, step), scalar, &[start, all]);
    } else {
        for lane in w.lanes(vector) {
            value = w.op(step, flags, scalar, &[value, lane]);
        }
    }
    w.finish(site.result, vec![value])
}

fn flags_for(flags: Flags, op: Opcode) -> Flags {
    Flags::from_bits(flags.bits() & op.info().flags)
}

/// `vector.reverse`, `splice`, `interleave2`, `deinterleave2`.
pub(super) fn permute<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let first = w.arg(site, 0)?;
    let lanes = w.b.ty(first).lanes() as i32;
    let parts = match word(words) {
        "reverse" => {
            let mask: Vec<i32> = (0..lanes).rev().collect();
            vec![w.permute(first, first, &mask)?]
        }
        "splice" => {
            let second = w.arg(site, 1)?;
            let from = w.number(site.argument(2)?).and_then(|n| i32::try_from(n).ok());
            let from = from.ok_or_else(|| Fault::new("its start is no constant"))?;
            let from = if from < 0 { lanes + from } else { from };
            let mask: Vec<i32> = (from..from.saturating_add(lanes)).collect();
            vec![w.permute(first, second, &mask)?]
        }
        "interleave2" => {
            let second = w.arg(site, 1)?;
            let mask: Vec<i32> = (0..2 * lanes).map(|lane| lane / 2 + lane % 2 * lanes).collect();
            vec![w.permute(first, second, &mask)?]
        }
        _ => {
            let half = |odd: i32| (0..lanes / 2).map(|lane| 2 * lane + odd).collect::<Vec<i32>>();
            vec![w.permute(first, first, &half(0))?, w.permute(first, first, &half(1))?]
        }
    };
    w.finish(site.result, parts)
}

/// `vector.insert`, `vector.extract`.
pub(super) fn subvector<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, words: &[String]) -> Result<()> {
    let whole = w.arg(site, 0)?;
    let insert = word(words) == "insert";
    let at = w.number(site.argument(if insert { 2 } else { 1 })?).and_then(|n| i32::try_from(n).ok());
    let at = at.ok_or_else(|| Fault::new("its index is no constant"))?;
    let lanes = w.b.ty(whole).lanes() as i32;
    let value = if insert {
        let part = w.arg(site, 1)?;
        let count = w.b.ty(part).lanes() as i32;
        let widen: Vec<i32> = (0..lanes).map(|lane| if lane < count { lane } else { -1 }).collect();
        let wide = w.permute(part, part, &widen)?;
        let inside = |lane: i32| (at..at.saturating_add(count)).contains(&lane);
        let mask: Vec<i32> = (0..lanes).map(|lane| if inside(lane) { lanes + lane - at } else { lane }).collect();
        w.permute(whole, wide, &mask)?
    } else {
        let count = w.wanted(site)?.lanes() as i32;
        let mask: Vec<i32> = (at..at.saturating_add(count)).collect();
        w.permute(whole, whole, &mask)?
    };
    w.finish(site.result, vec![value])
}

/// `stepvector`: 0, 1, 2 …
pub(super) fn step_vector<'m>(w: &mut Writer<'_, 'm>, site: &Site<'m>, _: &[String]) -> Result<()> {
    let ty: IrType = w.wanted(site)?;
    let lanes: Vec<Value> = (0..ty.lanes()).map(|lane| w.b.iconst(ty.scalar(), i64::from(lane))).collect();
    let value = w.b.func.dfg.constant(ty, ConstData::Vector(lanes));
    w.finish(site.result, vec![value])
}
