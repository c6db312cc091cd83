//! Replaces instructions whose result is known: a constant, or one of the operands.
//!
//! One walk in layout order, then one sweep over the uses. What a result is comes from [`crate::fold`] (constants) and
//! [`crate::identities`] (operands); this file takes constants apart into scalars and puts results together.

use ptxc_ir::{ConstData, Extra, Flags, FloatKind, Function, Inst, Opcode, Shape, Type, Value};
use smallvec::SmallVec;

use crate::edit::{resolve_all_uses, resolve_uses_of};
use crate::fold::{Scalar, float, integer};
use crate::identities;
use crate::pass::Context;

/// The scalars of a constant, one per lane.
type Lanes = SmallVec<[Scalar; 4]>;
/// The values that replace an instruction's results.
type Replacement = SmallVec<[Value; 2]>;

/// The pass.
pub fn fold_constants(func: &mut Function, ctx: &Context<'_>) -> bool {
    let mut changed = false;
    let mut block = func.layout.entry();
    while let Some(current) = block {
        let mut next = func.layout.first_inst(current);
        while let Some(inst) = next {
            next = func.layout.next_inst(inst);
            resolve_uses_of(func, inst);
            if let Some(values) = replacement(func, ctx, inst) {
                let results: SmallVec<[Value; 2]> = func.dfg.results(inst).collect();
                for (result, value) in results.into_iter().zip(values) {
                    func.dfg.alias(result, value);
                }
                func.layout.remove_inst(inst);
                changed = true;
            }
        }
        block = func.layout.next_block(current);
    }
    if changed {
        resolve_all_uses(func);
    }
    changed
}

/// The values an instruction's results are known to equal.
fn replacement(func: &mut Function, ctx: &Context<'_>, inst: Inst) -> Option<Replacement> {
    if func.dfg.num_results(inst) == 0 {
        return None;
    }
    constants(func, inst).or_else(|| {
        let (rule, value) = identities::operand_equal_to(func, ctx, inst)?;
        let result = func.dfg.first_result(inst)?;
        if func.dfg.ty(result) != func.dfg.ty(value) || result == value {
            return None;
        }
        ctx.note(inst, rule);
        Some(SmallVec::from_slice(&[value]))
    })
}

/// Evaluates an instruction all of whose operands are constants.
fn constants(func: &mut Function, inst: Inst) -> Option<Replacement> {
    let shape = func.dfg.insts[inst].op.shape();
    match shape {
        Shape::Unary
        | Shape::Binary
        | Shape::BinaryOverflow
        | Shape::Ternary
        | Shape::FloatClass
        | Shape::Convert
        | Shape::IntCompare
        | Shape::FloatCompare => elementwise(func, inst),
        Shape::BuildVector | Shape::Splat => vector(func, inst),
        _ => None,
    }
}

/// What evaluation of one scalar needs to know of the instruction.
struct Operation {
    op: Opcode,
    flags: Flags,
    /// Scalar type of the operands.
    from: Type,
    /// Scalar type of the first result.
    to: Type,
    extra: Extra,
}

fn elementwise(func: &mut Function, inst: Inst) -> Option<Replacement> {
    let dfg = &func.dfg;
    let args: SmallVec<[Lanes; 3]> = dfg.args(inst).iter().map(|v| lanes(func, *v)).collect::<Option<_>>()?;
    let result_ty = dfg.ty(dfg.first_result(inst)?);
    let arg_ty = dfg.ty(*dfg.args(inst).first()?);
    if arg_ty.lanes() != result_ty.lanes() {
        return None;
    }
    let data = &dfg.insts[inst];
    let operation =
        Operation { op: data.op, flags: data.flags, from: arg_ty.scalar(), to: result_ty.scalar(), extra: data.extra };
    let count = args.iter().map(SmallVec::len).min()?;
    let mut first = Lanes::with_capacity(count);
    let mut second = Lanes::new();
    for lane in 0..count {
        let scalars: SmallVec<[Scalar; 3]> = args.iter().map(|lanes| lanes[lane]).collect();
        let (value, overflow) = evaluate(&operation, &scalars)?;
        first.push(value);
        second.extend(overflow);
    }
    let mut out = Replacement::new();
    out.push(constant(func, result_ty, &first));
    if !second.is_empty() {
        out.push(constant(func, result_ty.as_bool(), &second));
    }
    Some(out)
}

/// Evaluates one scalar; the second result is the overflow bit of the operations that have one.
fn evaluate(operation: &Operation, args: &[Scalar]) -> Option<(Scalar, Option<Scalar>)> {
    let op = operation.op;
    let overflows = op.shape() == Shape::BinaryOverflow;
    let mut bits: SmallVec<[u128; 3]> = SmallVec::new();
    for arg in args {
        match arg {
            Scalar::Bits(value) => bits.push(*value),
            // Any value is a correct result of freezing poison; zero is the cheapest.
            Scalar::Poison if op == Opcode::Freeze => return Some((Scalar::Bits(0), None)),
            Scalar::Poison => return Some((Scalar::Poison, overflows.then_some(Scalar::Poison))),
        }
    }
    if op == Opcode::Freeze {
        return Some((Scalar::Bits(*bits.first()?), None));
    }
    if overflows {
        let (value, wrong) = integer::overflow(op, operation.from.scalar_bits(), *bits.first()?, *bits.get(1)?)?;
        return Some((Scalar::Bits(value), Some(Scalar::Bits(wrong.into()))));
    }
    evaluate_bits(operation, &bits).map(|value| (value, None))
}

fn evaluate_bits(operation: &Operation, bits: &[u128]) -> Option<Scalar> {
    let Operation { op, flags, from, extra, .. } = *operation;
    let width = from.scalar_bits();
    match (op.shape(), bits) {
        (Shape::Convert, [a]) => convert(operation, *a),
        (Shape::IntCompare, [a, b]) => match extra {
            Extra::IntCC(cc) => Some(Scalar::Bits(integer::compare(cc, width, *a, *b).into())),
            _ => None,
        },
        (Shape::FloatCompare, [a, b]) => match extra {
            Extra::FloatCC(cc) => {
                float::compare(cc, from.float_kind()?, flags, *a, *b).map(|holds| Scalar::Bits(holds.into()))
            }
            _ => None,
        },
        (Shape::FloatClass, [a]) => match extra {
            Extra::Imm(mask) => {
                let bit = float::class_bit(from.float_kind()?, *a)?;
                Some(Scalar::Bits((mask & bit != 0).into()))
            }
            _ => None,
        },
        (_, args) if from.is_float_like() => float::arithmetic(op, from.float_kind()?, flags, args).map(Scalar::Bits),
        (_, [a]) if from.is_int_like() => integer::unary(op, width, *a),
        (_, [a, b]) if from.is_int_like() => integer::binary(op, width, *a, *b),
        (_, [a, b, n]) if from.is_int_like() => integer::funnel(op, width, *a, *b, *n),
        _ => None,
    }
}

/// Evaluates a conversion of one scalar.
fn convert(operation: &Operation, a: u128) -> Option<Scalar> {
    let Operation { op, flags, from, to, .. } = *operation;
    let (from_width, to_width) = (from.scalar_bits(), to.scalar_bits());
    let clamps = flags.contains(Flags::SAT) || flags.contains(Flags::RELU);
    let plain = !clamps && !flags.contains(Flags::FTZ);
    let bits = match op {
        Opcode::Trunc => a & crate::fold::mask(to_width),
        Opcode::Zext => a,
        Opcode::Sext => crate::fold::sign_extend(a, from_width) as u128 & crate::fold::mask(to_width),
        Opcode::Bitcast if from_width == to_width => a,
        Opcode::Ptrtoint | Opcode::Inttoptr => a & crate::fold::mask(to_width),
        Opcode::Fptrunc | Opcode::Fpext if plain => {
            float::convert(a, from.float_kind()?, to.float_kind()?, flags.rounding())?
        }
        Opcode::Fptoui | Opcode::Fptosi | Opcode::FptouiSat | Opcode::FptosiSat => {
            let signed = matches!(op, Opcode::Fptosi | Opcode::FptosiSat);
            let saturate = matches!(op, Opcode::FptouiSat | Opcode::FptosiSat);
            float::to_integer(a, from.float_kind()?, flags, to_width, signed, saturate)?
        }
        Opcode::Uitofp | Opcode::Sitofp => {
            let kind: FloatKind = to.float_kind()?;
            float::from_integer(a, from_width, op == Opcode::Sitofp, kind, flags.rounding())?
        }
        _ => return None,
    };
    // The only pointer constant that is not an address is null.
    (bits == 0 || !to.is_ptr_like()).then_some(Scalar::Bits(bits))
}

/// `vector` and `splat` of constants.
fn vector(func: &mut Function, inst: Inst) -> Option<Replacement> {
    let ty = func.dfg.ty(func.dfg.first_result(inst)?);
    let mut scalars = Lanes::new();
    for arg in func.dfg.args(inst) {
        scalars.extend(lanes(func, *arg)?);
    }
    if func.dfg.insts[inst].op == Opcode::Splat {
        scalars = SmallVec::from_elem(*scalars.first()?, ty.lanes() as usize);
    }
    if scalars.len() != ty.lanes() as usize {
        return None;
    }
    Some(SmallVec::from_slice(&[constant(func, ty, &scalars)]))
}

/// The scalars of a constant; `None` when the value is no constant, or an address.
fn lanes(func: &Function, value: Value) -> Option<Lanes> {
    let scalar = |value: Value| match func.dfg.as_const(value)? {
        ConstData::Bits(bits) => Some(Scalar::Bits(*bits)),
        ConstData::Poison => Some(Scalar::Poison),
        _ => None,
    };
    let ty = func.dfg.ty(value);
    match func.dfg.as_const(value)? {
        ConstData::Vector(elements) => elements.iter().map(|v| scalar(*v)).collect(),
        ConstData::Poison => Some(SmallVec::from_elem(Scalar::Poison, ty.lanes() as usize)),
        // A vector-typed `Bits` is the all-zero vector only; anything else is written lane by lane.
        ConstData::Bits(bits) if ty.is_vector() => {
            (*bits == 0).then(|| SmallVec::from_elem(Scalar::Bits(0), ty.lanes() as usize))
        }
        _ => scalar(value).map(|s| SmallVec::from_slice(&[s])),
    }
}

/// The constant with these scalars.
fn constant(func: &mut Function, ty: Type, scalars: &[Scalar]) -> Value {
    let mut make = |scalar: &Scalar| match scalar {
        Scalar::Bits(bits) => func.dfg.constant(ty.scalar(), ConstData::Bits(*bits)),
        Scalar::Poison => func.dfg.poison(ty.scalar()),
    };
    match scalars {
        [single] if !ty.is_vector() => make(single),
        _ if scalars.iter().all(|s| *s == Scalar::Poison) => func.dfg.poison(ty),
        _ => {
            let elements = scalars.iter().map(make).collect();
            func.dfg.constant(ty, ConstData::Vector(elements))
        }
    }
}
