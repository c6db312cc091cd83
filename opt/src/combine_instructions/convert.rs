//! Extensions and truncations.

use ptxc_ir::{Flags, Function, Inst, KnownBits, Opcode, Type, Value};

use crate::rules::Found;
use crate::rules::Rule::*;

use super::{before, constant, int_width, made_by, mask};

/// A cheaper way to the same result.
pub(super) fn rewrite(func: &mut Function, known: &KnownBits, inst: Inst) -> Option<Found> {
    let op = func.dfg.insts[inst].op;
    if matches!(op, Opcode::Uitofp | Opcode::Sitofp) {
        return number_of_flag(func, inst);
    }
    if matches!(op, Opcode::Or | Opcode::Xor | Opcode::Add) {
        return packed_conversions(func, inst);
    }
    if !matches!(op, Opcode::Zext | Opcode::Sext | Opcode::Trunc) {
        return None;
    }
    let &[a] = func.dfg.args(inst) else { return None };
    let to = func.dfg.ty(func.dfg.first_result(inst)?);
    let from = int_width(func.dfg.ty(a))?;
    if op == Opcode::Sext && from > 1 && known.is_not_negative(func, a) {
        return Some((SextNonnegative, before(func, inst).convert_flags(Opcode::Zext, Flags::NNEG, a, to)));
    }
    let width = int_width(to)?;
    if op == Opcode::Trunc
        && let Some(masked) = made_by(func, a, Opcode::And)
        && let &[x, kept] = &masked[..]
        && constant(func, kept).is_some_and(|kept| kept & mask(width) == mask(width))
    {
        return Some((TruncMasked, before(func, inst).convert(Opcode::Trunc, x, to)));
    }
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
            // What was taken away was copies of the sign.
            (Opcode::Trunc, Opcode::Sext) if inside == width && fits_signed(func, x, from) => Some((SextTruncRange, x)),
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

/// Two numbers that become halves whose bits are put together in a word: a pair, which is converted at once where the target does.
fn packed_conversions(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[a, b] = func.dfg.args(inst) else { return None };
    if func.dfg.ty(a) != Type::I32 {
        return None;
    }
    let only = |value: Value, op: Opcode| made_by(func, value, op)?.first().copied();
    let half = |value: Value| {
        let half = only(only(value, Opcode::Zext)?, Opcode::Bitcast)?;
        let converted = func.dfg.def_inst(half).filter(|inst| func.dfg.insts[*inst].op == Opcode::Fptrunc)?;
        let from = func.dfg.ty(*func.dfg.args(converted).first()?);
        let is_half = matches!(func.dfg.ty(half), Type::F16 | Type::BF16) && from == Type::F32;
        is_half.then(|| (half, func.dfg.ty(half), func.dfg.insts[converted].flags))
    };
    let upper = |value: Value| match made_by(func, value, Opcode::Shl)?[..] {
        [up, by] if func.dfg.as_bits(by) == Some(16) => half(up),
        _ => None,
    };
    let (a, b) = (func.dfg.resolve(a), func.dfg.resolve(b));
    let ((low, ty, flags), high) = [(a, b), (b, a)].into_iter().find_map(|(x, y)| Some((half(x)?, upper(y)?)))?;
    if (ty, flags) != (high.1, high.2) {
        return None;
    }
    let mut builder = before(func, inst);
    let pair = builder.vector(ty.with_lanes(2), &[low, high.0]);
    Some((PackedConversions, builder.convert(Opcode::Bitcast, pair, Type::I32)))
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

/// A flag as a float is a choice of two constants, which the assembler makes part of the comparison.
fn number_of_flag(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[a] = func.dfg.args(inst) else { return None };
    let to = func.dfg.ty(func.dfg.first_result(inst)?);
    let one: u128 = match to {
        Type::F16 => 0x3c00,
        Type::BF16 => 0x3f80,
        Type::F32 => 0x3f80_0000,
        Type::F64 => 0x3ff0_0000_0000_0000,
        _ => return None,
    };
    let signed = func.dfg.insts[inst].op == Opcode::Sitofp;
    let inner = |op: Opcode| made_by(func, a, op).and_then(|args| args.first().copied());
    let is_flag = |value: &Value| func.dfg.ty(*value) == Type::I1;
    let (flag, negative) = if is_flag(&a) {
        (a, signed)
    } else if let Some(flag) = inner(Opcode::Zext).filter(is_flag) {
        (flag, false)
    } else {
        (inner(Opcode::Sext).filter(|flag| is_flag(flag) && signed)?, true)
    };
    let sign = if negative { 1 << (to.bits() - 1) } else { 0 };
    let mut builder = before(func, inst);
    let (one, zero) = (builder.bits(to, one | sign), builder.bits(to, 0));
    Some((FlagToFloat, builder.select(flag, one, zero)))
}

/// Operations that the range of a value is followed through.
const MAX_RANGE_DEPTH: u32 = 4;

/// Whether a signed number fits so many bits.
pub(crate) fn fits_signed(func: &Function, value: Value, bits: u32) -> bool {
    let limit = 1i128 << (bits - 1);
    let (least, most) = signed_range(func, value, MAX_RANGE_DEPTH);
    -limit <= least && most < limit
}

/// The range that clamps and shifts leave of a signed number.
fn signed_range(func: &Function, value: Value, depth: u32) -> (i128, i128) {
    let width = func.dfg.ty(value).scalar_bits().min(127);
    let whole = (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1);
    if let Some(number) = func.dfg.as_signed(value) {
        return (number, number);
    }
    let Some(inst) = func.dfg.def_inst(value).filter(|_| depth > 0) else { return whole };
    let of = |index: usize| func.dfg.args(inst).get(index).map(|v| func.dfg.resolve(*v));
    let range = |index: usize| of(index).map_or(whole, |v| signed_range(func, v, depth - 1));
    match func.dfg.insts[inst].op {
        Opcode::Smin => {
            let (a, b) = (range(0), range(1));
            (a.0.min(b.0), a.1.min(b.1))
        }
        Opcode::Smax => {
            let (a, b) = (range(0), range(1));
            (a.0.max(b.0), a.1.max(b.1))
        }
        Opcode::Sext => range(0),
        Opcode::Ashr => match of(1).and_then(|by| func.dfg.as_bits(by)).filter(|by| *by < u128::from(width)) {
            Some(by) => {
                let (least, most) = range(0);
                (least >> by, most >> by)
            }
            None => whole,
        },
        _ => whole,
    }
}
