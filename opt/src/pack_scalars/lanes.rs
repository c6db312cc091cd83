//! Which scalar, or which lane of which vector, a value is.

use ptxc_ir::{ConstData, Extra, Function, Inst, Opcode, Type, Value};
use smallvec::SmallVec;

/// Steps through insertions and shuffles.
const MAX_STEPS: u32 = 16;
/// Lanes of a vector that is looked at.
const MAX_LANES: u32 = 16;

/// Where a lane comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lane {
    /// A scalar.
    Scalar(Value),
    /// A lane of a vector that is not put together here.
    Of(Value, u32),
    /// Nothing in particular.
    Undefined,
}

/// The types that are packed.
fn is_packed(ty: Type) -> bool {
    matches!(ty.scalar(), Type::F16 | Type::BF16 | Type::F32)
}

/// The vector and the lane that a scalar is taken from.
pub(super) fn lane_of(func: &Function, value: Value) -> Option<(Value, u32)> {
    match scalar_source(func, scalar_of(func, value))? {
        Lane::Of(vector, lane) => Some((vector, lane)),
        _ => None,
    }
}

/// The scalar behind a lane that is put into a vector and taken out again; else the value.
pub(super) fn scalar_of(func: &Function, value: Value) -> Value {
    let mut value = func.dfg.resolve(value);
    for _ in 0..MAX_STEPS {
        match scalar_source(func, value) {
            Some(Lane::Scalar(scalar)) => value = scalar,
            _ => break,
        }
    }
    value
}

/// What an extraction takes.
fn scalar_source(func: &Function, value: Value) -> Option<Lane> {
    let inst = func.dfg.def_inst(value)?;
    if func.dfg.insts[inst].op != Opcode::Extract {
        return None;
    }
    let &[vector, index] = func.dfg.args(inst) else { return None };
    let index = u32::try_from(func.dfg.as_bits(index)?).ok()?;
    Some(source(func, vector, index))
}

/// Where a lane of a vector comes from.
fn source(func: &Function, vector: Value, lane: u32) -> Lane {
    let (mut vector, mut lane) = (func.dfg.resolve(vector), lane);
    for _ in 0..MAX_STEPS {
        if matches!(func.dfg.as_const(vector), Some(ConstData::Poison)) {
            return Lane::Undefined;
        }
        let Some(inst) = func.dfg.def_inst(vector) else { break };
        let args = func.dfg.args(inst);
        let data = &func.dfg.insts[inst];
        let next = match (data.op, args) {
            (Opcode::Vector, _) => match args.get(lane as usize) {
                Some(scalar) => return Lane::Scalar(func.dfg.resolve(*scalar)),
                None => return Lane::Undefined,
            },
            (Opcode::Splat, [scalar]) => return Lane::Scalar(func.dfg.resolve(*scalar)),
            (Opcode::Insert, [rest, scalar, index]) => match func.dfg.as_bits(*index) {
                Some(index) if index == u128::from(lane) => return Lane::Scalar(func.dfg.resolve(*scalar)),
                Some(_) => (*rest, lane),
                None => break,
            },
            (Opcode::Shuffle, [a, b]) => {
                let Extra::Mask(mask) = data.extra else { break };
                let width = func.dfg.ty(*a).lanes();
                match func.dfg.masks[mask].get(lane as usize).map(|k| u32::try_from(*k)) {
                    Some(Ok(k)) if k < width => (*a, k),
                    Some(Ok(k)) => (*b, k - width),
                    _ => return Lane::Undefined,
                }
            }
            _ => break,
        };
        (vector, lane) = (func.dfg.resolve(next.0), next.1);
    }
    Lane::Of(vector, lane)
}

/// The lanes of a vector of floats that an instruction puts together.
pub(super) fn lanes_built(func: &Function, inst: Inst) -> Option<SmallVec<[Lane; 8]>> {
    if !matches!(func.dfg.insts[inst].op, Opcode::Vector | Opcode::Insert) {
        return None;
    }
    let result = func.dfg.first_result(inst)?;
    let ty = func.dfg.ty(result);
    if !is_packed(ty) || !(2..=MAX_LANES).contains(&ty.lanes()) {
        return None;
    }
    let lane = |lane: u32| match source(func, result, lane) {
        Lane::Scalar(scalar) => {
            let scalar = scalar_of(func, scalar);
            scalar_source(func, scalar).unwrap_or(Lane::Scalar(scalar))
        }
        other => other,
    };
    Some((0..ty.lanes()).map(lane).collect())
}
