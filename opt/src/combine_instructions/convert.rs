//! Extensions and truncations.

use ptxc_ir::{Flags, Function, Inst, KnownBits, Opcode, Type, Value};

use crate::rules::Found;
use crate::rules::Rule::*;

use super::{before, int_width, made_by};

/// A cheaper way to the same result.
pub(super) fn rewrite(func: &mut Function, known: &KnownBits, inst: Inst) -> Option<Found> {
    let op = func.dfg.insts[inst].op;
    if !matches!(op, Opcode::Zext | Opcode::Sext | Opcode::Trunc | Opcode::Sitofp) {
        return None;
    }
    let &[a] = func.dfg.args(inst) else { return None };
    let to = func.dfg.ty(func.dfg.first_result(inst)?);
    let from = int_width(func.dfg.ty(a))?;
    if op == Opcode::Sext && from > 1 && known.is_not_negative(func, a) {
        return Some((SextNonnegative, before(func, inst).convert_flags(Opcode::Zext, Flags::NNEG, a, to)));
    }
    let width = int_width(to)?;
    for inner_op in [Opcode::Zext, Opcode::Sext, Opcode::Trunc] {
        let Some(inner) = made_by(func, a, inner_op) else { continue };
        let x = *inner.first()?;
        let inside = int_width(func.dfg.ty(x))?;
        return match (inner_op, op) {
            // What was added is taken away again, all of it or a part.
            (Opcode::Zext | Opcode::Sext, Opcode::Trunc) => Some((TruncExtended, resized(func, inst, inner_op, x, to))),
            (Opcode::Trunc, Opcode::Trunc) => Some((TruncTrunc, before(func, inst).convert(Opcode::Trunc, x, to))),
            (Opcode::Zext, Opcode::Zext | Opcode::Sext) => {
                Some((ExtendZext, before(func, inst).convert(Opcode::Zext, x, to)))
            }
            (Opcode::Sext, Opcode::Sext) => Some((SextSext, before(func, inst).convert(Opcode::Sext, x, to))),
            // What was taken away was zero.
            (Opcode::Trunc, Opcode::Zext) if known.of(func, x).most() >> from == 0 => {
                Some((ZextTruncZero, resized(func, inst, Opcode::Zext, x, to)))
            }
            // Taken away and added as zeros: a mask, in the type that is there.
            (Opcode::Trunc, Opcode::Zext) if inside == width => {
                let mut builder = before(func, inst);
                let kept = builder.bits(to, (1u128 << from) - 1);
                Some((ZextTruncMask, builder.binary(Opcode::And, x, kept)))
            }
            _ => None,
        };
    }
    None
}

/// A value in another width, extended as `op` does where that is wider.
fn resized(func: &mut Function, inst: Inst, op: Opcode, value: Value, to: Type) -> Value {
    let (from, width) = (func.dfg.ty(value).scalar_bits(), to.scalar_bits());
    match from.cmp(&width) {
        std::cmp::Ordering::Equal => value,
        std::cmp::Ordering::Less => before(func, inst).convert(op, value, to),
        std::cmp::Ordering::Greater => before(func, inst).convert(Opcode::Trunc, value, to),
    }
}
