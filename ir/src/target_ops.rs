//! Between operands of target operations and the instruction table of `ptxc-targets`.
//!
//! Decides which register type a value has for PTX and which value type a result of the table has here; reader and
//! verifier ask the table through this.

use ptxc_targets::{FormError, RegType, Shape, Tok};
use smallvec::SmallVec;

use crate::dfg::Dfg;
use crate::entities::Value;
use crate::instruction::{GroupKind, TargetOperand};
use crate::module::{GlobalKind, Module};
use crate::types::{FloatKind, Scalar, Space, Type};

/// The type of the register that holds a value of this type whole: integers and packed vectors are untyped bits. `None`
/// for values that no one register holds.
pub fn register_type(ty: Type) -> Option<RegType> {
    let bits = match (ty.kind()?, ty.bits()) {
        _ if ty == Type::I1 => return Some(RegType::Pred),
        (Scalar::Float(FloatKind::F32), 32) => return Some(RegType::F32),
        (Scalar::Float(FloatKind::F64), 64) => return Some(RegType::F64),
        (_, bits) => bits,
    };
    match bits {
        8 => Some(RegType::B8),
        16 => Some(RegType::B16),
        32 => Some(RegType::B32),
        64 => Some(RegType::B64),
        128 => Some(RegType::B128),
        _ => None,
    }
}

/// The type of a result that the table says is in a register of this type.
pub fn result_type(ty: RegType) -> Type {
    match ty {
        RegType::Pred => Type::I1,
        RegType::F16 => Type::F16,
        RegType::F16x2 => Type::F16.with_lanes(2),
        RegType::F32 => Type::F32,
        RegType::F64 => Type::F64,
        _ => match ty.bits() {
            // Opaque types: handles of 64 bits.
            0 => Type::I64,
            bits => Type::int(u32::from(bits)),
        },
    }
}

/// The state space that the table calls an IR space by.
fn table_space(space: Space) -> ptxc_targets::Space {
    match space {
        Space::Generic => ptxc_targets::Space::Generic,
        Space::Global => ptxc_targets::Space::Global,
        Space::Shared | Space::SharedCluster => ptxc_targets::Space::Shared,
        Space::Const => ptxc_targets::Space::Const,
        Space::Local => ptxc_targets::Space::Local,
        Space::Param => ptxc_targets::Space::Param,
        Space::Tensor => ptxc_targets::Space::Tensor,
    }
}

/// The operands' shapes for the table. `register` and `result` give the register types of arguments and results. `None` when
/// a value is in no one register or an index is out of range.
pub(crate) fn shapes(
    module: &Module,
    operands: &[TargetOperand],
    register: &dyn Fn(u16) -> Option<RegType>,
    result: &dyn Fn(u16) -> Option<RegType>,
) -> Option<SmallVec<[Shape; 24]>> {
    let mut out = SmallVec::new();
    for (at, operand) in operands.iter().enumerate() {
        out.push(match *operand {
            TargetOperand::Result(index) => Shape::Register(result(index)?),
            TargetOperand::Arg(index) | TargetOperand::InOut { arg: index, .. } => Shape::Register(register(index)?),
            TargetOperand::ArgNot(_) => Shape::NegatedPredicate,
            TargetOperand::ResultPart { result: index, lanes } => Shape::Selected(result(index)?, lanes.selector()),
            TargetOperand::Part { arg, lanes, minus: true } => {
                Shape::Minus(register(arg)?, lanes.map(|lanes| lanes.selector()))
            }
            TargetOperand::Part { arg, lanes: Some(lanes), .. } => Shape::Selected(register(arg)?, lanes.selector()),
            TargetOperand::Part { arg, .. } => Shape::Register(register(arg)?),
            TargetOperand::Imm(value) => Shape::Integer(value),
            TargetOperand::F32(_) => Shape::Float(Some(false)),
            TargetOperand::F64(_) => Shape::Float(Some(true)),
            TargetOperand::Sink => Shape::Sink,
            TargetOperand::Sreg(register) if register.lanes() > 1 => {
                Shape::WideRegister(register.ty(), register.lanes())
            }
            TargetOperand::Sreg(register) => Shape::SpecialOf(register.ty()),
            TargetOperand::Global(id, _) => match module.globals.get(id)?.kind {
                GlobalKind::Variable(space) => Shape::Variable(table_space(space)),
                GlobalKind::Texture => Shape::Opaque(RegType::Texref),
                GlobalKind::Surface => Shape::Opaque(RegType::Surfref),
                GlobalKind::Sampler => Shape::Opaque(RegType::Samplerref),
            },
            TargetOperand::Offset(_) => continue,
            TargetOperand::Group(kind, len) => group(kind, len, operands.get(at + 1..)?)?,
        });
    }
    Some(out)
}

fn group(kind: GroupKind, len: u16, rest: &[TargetOperand]) -> Option<Shape> {
    Some(match kind {
        GroupKind::Vector => Shape::Vector(len),
        GroupKind::Paren => Shape::Group(len),
        GroupKind::Pair => Shape::Pair,
        GroupKind::Address => {
            // Offsets are parts for the IR and not for the table.
            let mut at = 0;
            let mut parts = 0u8;
            for _ in 0..len {
                let operand = rest.get(at)?;
                parts = parts.checked_add(u8::from(!matches!(operand, TargetOperand::Offset(_))))?;
                at += operand_len(rest.get(at..)?);
            }
            Shape::Address(parts)
        }
    })
}

/// How many entries the first operand takes, with its parts.
pub(crate) fn operand_len(operands: &[TargetOperand]) -> usize {
    let mut at = 0;
    let mut open = 1usize;
    while open > 0 && at < operands.len() {
        if let TargetOperand::Group(_, len) = operands[at] {
            open += usize::from(len);
        }
        open -= 1;
        at += 1;
    }
    at
}

/// What the table makes of an operation.
///
/// # Errors
/// No form fits, with the table's message.
pub(crate) fn resolve(toks: &[Tok], shapes: &[Shape]) -> Result<ptxc_targets::Form, FormError> {
    ptxc_targets::resolve(toks, shapes)
}

/// The form of a known target operation whose results have these types, to ask for effects and requirements.
///
/// # Errors
/// The table does not have it; the message says what is wrong.
pub fn form(
    module: &Module,
    dfg: &Dfg,
    toks: &[Tok],
    args: &[Value],
    operands: &[TargetOperand],
    results: &[Type],
) -> Result<ptxc_targets::Form, FormError> {
    let result = |index: u16| register_type(*results.get(usize::from(index))?);
    let arg = |index: u16| register_type(dfg.ty(*args.get(usize::from(index))?));
    match shapes(module, operands, &arg, &result) {
        Some(shapes) => resolve(toks, &shapes),
        None => Err(FormError::Operands("an operand or result is in no one register".to_string())),
    }
}
