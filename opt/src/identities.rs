//! Instructions whose result is one of their operands, or zero, whatever the other operands are.
//!
//! Integers only, apart from float identities under `nnan`: hardware replaces a NaN by the canonical one, which an
//! operand need not be.

use ptxc_ir::{ConstData, Extra, Flags, Function, Inst, Opcode, Rounding, Type, Value};

use crate::addresses::constant_step;
use crate::fold::mask;
use crate::pass::Context;
use crate::rules::Rule::*;
use crate::rules::{Found, Rule};

/// The value that the (only) result of an instruction equals, when it is an operand or a new constant.
pub(crate) fn operand_equal_to(func: &mut Function, ctx: &Context<'_>, inst: Inst) -> Option<Found> {
    let op = func.dfg.insts[inst].op;
    match op {
        Opcode::Select => select(func, inst),
        Opcode::Gep => gep(func, ctx, inst),
        Opcode::Bitcast => same_type(func, inst),
        Opcode::Icmp => compare_with_itself(func, inst),
        Opcode::Extract => extract(func, inst),
        Opcode::Fadd | Opcode::Fsub | Opcode::Fmul | Opcode::Fdiv => float(func, inst),
        _ => integer(func, inst),
    }
}

/// `x + 0`, `x & -1`, `x ^ x` and the like.
fn integer(func: &mut Function, inst: Inst) -> Option<Found> {
    use Opcode::*;
    let op = func.dfg.insts[inst].op;
    let &[a, b] = func.dfg.args(inst) else { return None };
    let ty = func.dfg.ty(a);
    if !ty.is_int_like() {
        return None;
    }
    let (ca, cb) = (splat_bits(func, a), splat_bits(func, b));
    let ones = Some(mask(ty.scalar_bits()));
    let (zero, one) = (Some(0), Some(1));
    let same = a == b;
    match op {
        Add | Or | Xor if ca == zero => Some((ZeroLeft, b)),
        Add | Sub | Or | Xor | Shl | Lshr | Ashr if cb == zero => Some((ZeroRight, a)),
        Umax if cb == zero => Some((UmaxZeroRight, a)),
        Umax if ca == zero => Some((UmaxZeroLeft, b)),
        And | Umin if ca == ones => Some((OnesLeft, b)),
        And | Umin if cb == ones => Some((OnesRight, a)),
        And | Or | Smin | Smax | Umin | Umax if same => Some((SameOperands, a)),
        Sub | Xor if same => Some((SameCancel, func.dfg.bits(ty, 0))),
        Mul if ca == one => Some((OneLeft, b)),
        Mul | Udiv | Sdiv if cb == one => Some((OneRight, a)),
        And | Mul | Umin if ca == zero || cb == zero => Some((ZeroAbsorbs, func.dfg.bits(ty, 0))),
        Shl | Lshr | Ashr if ca == zero => Some((ShiftedZero, a)),
        Urem if cb == one => Some((RemainderOfOne, func.dfg.bits(ty, 0))),
        _ => None,
    }
}

/// `x + -0`, `x - 0`, `x * 1`, `x / 1` under `nnan`, in the default rounding, without `ftz` and `sat`.
fn float(func: &mut Function, inst: Inst) -> Option<Found> {
    let data = &func.dfg.insts[inst];
    let (op, flags) = (data.op, data.flags);
    let changes = flags.contains(Flags::FTZ) || flags.contains(Flags::SAT) || flags.rounding() != Rounding::Nearest;
    if changes || !flags.contains(Flags::NNAN) {
        return None;
    }
    let &[a, b] = func.dfg.args(inst) else { return None };
    let ty = func.dfg.ty(a);
    let minus_zero = Some(1u128 << (ty.scalar_bits() - 1));
    let kind = ty.float_kind()?;
    let one = crate::fold::float::from_integer(1, 8, false, kind, Rounding::Nearest);
    let (ca, cb) = (splat_bits(func, a), splat_bits(func, b));
    match op {
        Opcode::Fadd if cb == minus_zero => Some((FloatMinusZeroRight, a)),
        Opcode::Fadd if ca == minus_zero => Some((FloatMinusZeroLeft, b)),
        Opcode::Fsub if cb == Some(0) => Some((FloatSubZero, a)),
        Opcode::Fmul | Opcode::Fdiv if cb.is_some() && cb == one => Some((FloatOneRight, a)),
        Opcode::Fmul if ca.is_some() && ca == one => Some((FloatOneLeft, b)),
        _ => None,
    }
}

/// `select` with a known condition or equal arms.
fn select(func: &Function, inst: Inst) -> Option<Found> {
    let &[condition, a, b] = func.dfg.args(inst) else { return None };
    if a == b {
        return Some((SelectSame, a));
    }
    match splat_bits(func, condition)? {
        0 => Some((SelectKnown, b)),
        _ => Some((SelectKnown, a)),
    }
}

/// `icmp` of a value with itself. A comparison of poison is poison, for which any constant stands.
fn compare_with_itself(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[a, b] = func.dfg.args(inst) else { return None };
    let Extra::IntCC(cc) = func.dfg.insts[inst].extra else { return None };
    if a != b {
        return None;
    }
    let holds = crate::fold::integer::compare(cc, 1, 0, 0);
    let ty = func.dfg.ty(a).as_bool();
    Some((CompareSame, func.dfg.bits(ty, holds.into())))
}

/// Address arithmetic that adds nothing, or adds constants to a symbol's address.
fn gep(func: &mut Function, ctx: &Context<'_>, inst: Inst) -> Option<Found> {
    let &base = func.dfg.args(inst).first()?;
    let offset = constant_step(func, ctx.module, inst)?;
    if offset == 0 {
        return Some((GepZero, base));
    }
    let result_ty = func.dfg.ty(base);
    match func.dfg.as_const(base)? {
        ConstData::Global(global, at) => {
            let data = ConstData::Global(*global, at.checked_add(offset)?);
            Some((GepSymbol, func.dfg.constant(result_ty, data)))
        }
        _ => None,
    }
}

/// A conversion to the operand's own type, or to the one that it was converted from.
fn same_type(func: &Function, inst: Inst) -> Option<Found> {
    let &[a] = func.dfg.args(inst) else { return None };
    let result = func.dfg.first_result(inst)?;
    let ty = func.dfg.ty(result);
    if func.dfg.ty(a) == ty {
        return Some((SameType, a));
    }
    // There and back again.
    let maker = func.dfg.def_inst(a).filter(|maker| func.dfg.insts[*maker].op == Opcode::Bitcast)?;
    let from = func.dfg.resolve(*func.dfg.args(maker).first()?);
    (func.dfg.ty(from) == ty).then_some((CastBack, from))
}

/// `extract` at a constant lane of a vector that is built or constant; beyond the last lane the result is poison.
fn extract(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[vector, index] = func.dfg.args(inst) else { return None };
    let ty = func.dfg.ty(vector);
    let lane = func.dfg.as_bits(index)?;
    if lane >= u128::from(ty.lanes()) {
        return Some((ExtractBeyond, func.dfg.poison(ty.scalar())));
    }
    let lane = usize::try_from(lane).ok()?;
    if let Some(ConstData::Vector(elements)) = func.dfg.as_const(vector) {
        return elements.get(lane).map(|value| (ExtractConstant, *value));
    }
    let maker = func.dfg.def_inst(vector)?;
    let args = func.dfg.args(maker);
    let (rule, value): (Rule, _) = match func.dfg.insts[maker].op {
        Opcode::Vector => (ExtractVector, args.get(lane)),
        Opcode::Splat => (ExtractSplat, args.first()),
        _ => return None,
    };
    value.map(|value| (rule, func.dfg.resolve(*value)))
}

/// Bits of a scalar constant, or of a vector constant all of whose lanes are equal.
fn splat_bits(func: &Function, value: Value) -> Option<u128> {
    let ty: Type = func.dfg.ty(value);
    match func.dfg.as_const(value)? {
        ConstData::Bits(bits) => (!ty.is_vector() || *bits == 0).then_some(*bits),
        ConstData::Vector(elements) => {
            let first = func.dfg.as_bits(*elements.first()?)?;
            elements.iter().all(|v| func.dfg.as_bits(*v) == Some(first)).then_some(first)
        }
        _ => None,
    }
}
