//! Address arithmetic with constants.

use ptxc_ir::{AggDef, Extra, Function, Inst, MemType, Module};

/// The bytes that a `gep` adds, when all its indices are constants and the sum is representable.
pub fn constant_step(func: &Function, module: &Module, gep: Inst) -> Option<i64> {
    let Extra::Gep(mut ty) = func.dfg.insts[gep].extra else { return None };
    let mut total = 0i64;
    for (position, index) in func.dfg.args(gep).iter().skip(1).enumerate() {
        let index = i64::try_from(func.dfg.as_signed(*index)?).ok()?;
        total = total.checked_add(step(module, &mut ty, position, index)?)?;
    }
    Some(total)
}

/// Bytes that index number `position` adds, and the type it leads to.
fn step(module: &Module, current: &mut MemType, position: usize, index: i64) -> Option<i64> {
    let size_of = |ty: MemType| i64::try_from(module.layout_of(ty).size).ok();
    if position == 0 {
        return size_of(*current)?.checked_mul(index);
    }
    match *current {
        MemType::Agg(id) => {
            let agg = module.agg(id);
            match &agg.def {
                AggDef::Array { elem, .. } => {
                    *current = *elem;
                    size_of(*elem)?.checked_mul(index)
                }
                AggDef::Struct { fields, .. } => {
                    let field = usize::try_from(index).ok()?;
                    *current = *fields.get(field)?;
                    i64::try_from(*agg.offsets.get(field)?).ok()
                }
            }
        }
        MemType::Value(ty) if ty.is_vector() && ty.scalar_bits() >= 8 => {
            *current = MemType::Value(ty.scalar());
            size_of(*current)?.checked_mul(index)
        }
        MemType::Value(_) => None,
    }
}
