//! `__nvvm_reflect`: questions about the compilation that are answered while translating.

use ptxc_ir::Type as IrType;

use super::body::Writer;
use super::constants::{fold, signed, unsigned};
use super::{Context, Fault, Result, Symbol};
use crate::model::{
    Call, CastOp, Constant, Definition, GlobalKind, Instruction, IntPredicate, Module, Operand, OperandKind, Type,
    ValueId,
};

/// Names of the function, as CUDA's headers and libdevice declare it.
pub(super) const REFLECT: &[&[u8]] = &[b"__nvvm_reflect", b"__nvvm_reflect_ocl"];

/// How many operations a decision may be behind the answer.
const MAX_STEPS: u32 = 8;

/// Whether a module asks such questions.
pub(super) fn asks(module: &Module) -> bool {
    let names = REFLECT.iter().copied().chain([&b"llvm.nvvm.reflect"[..], b"llvm.nvvm.reflect.p0"]);
    names.into_iter().any(|name| module.names.find(name).is_some_and(|name| module.find_global(name).is_some()))
}

impl Context<'_> {
    /// Bits of an integer type.
    fn bits(&self, ty: crate::model::TypeId) -> Option<u32> {
        match self.source.types.get(ty) {
            Type::Integer(bits) if bits <= 128 => Some(bits),
            _ => None,
        }
    }
}

impl Writer<'_, '_> {
    /// The value of a condition that follows from answers, so that code for other targets is not translated: it may
    /// hold what this target does not have.
    pub fn decided(&self, condition: Operand) -> Option<u128> {
        if self.cx.asks { self.known(condition, MAX_STEPS) } else { None }
    }

    fn known(&self, operand: Operand, steps: u32) -> Option<u128> {
        let bits = self.cx.bits(self.cx.source.type_of(self.body, operand)?)?;
        let value = match operand.kind() {
            OperandKind::Constant(constant) => return Some(unsigned(self.cx.integer(constant, 0).ok()??, bits)),
            OperandKind::Value(value) => value,
            OperandKind::Block(_) | OperandKind::Metadata(_) => return None,
        };
        let Definition::Instruction(inst) = self.body.values[value].definition else { return None };
        let steps = steps.checked_sub(1)?;
        match self.body.instructions[inst].instruction {
            Instruction::Call(call) => {
                let call = self.body.calls[call];
                let question = *self.body.operands(call.arguments).first()?;
                let asks = self.reflects(call.callee)
                    || self.callee_name(call.callee).is_some_and(|name| name.starts_with("llvm.nvvm.reflect"));
                asks.then(|| self.string(question)).flatten().map(|question| self.answer(&question) as u128)
            }
            Instruction::Cast { op: CastOp::ZExt | CastOp::Trunc, value, .. } => {
                Some(unsigned(self.known(value, steps)? as i128, bits))
            }
            Instruction::Binary { op, left, right, .. } => {
                let (a, b) = (self.known(left, steps)?, self.known(right, steps)?);
                Some(unsigned(fold(op, signed(a as i128, bits), signed(b as i128, bits), bits)?, bits))
            }
            Instruction::Select { condition, yes, no, .. } => {
                self.known(if self.known(condition, steps)? != 0 { yes } else { no }, steps)
            }
            Instruction::CompareInt { predicate, left, right, .. } => {
                let width = self.cx.bits(self.cx.source.type_of(self.body, left)?)?;
                let (a, b) = (self.known(left, steps)?, self.known(right, steps)?);
                let (sa, sb) = (signed(a as i128, width), signed(b as i128, width));
                Some(u128::from(match predicate {
                    IntPredicate::Eq => a == b,
                    IntPredicate::Ne => a != b,
                    IntPredicate::Ugt => a > b,
                    IntPredicate::Uge => a >= b,
                    IntPredicate::Ult => a < b,
                    IntPredicate::Ule => a <= b,
                    IntPredicate::Sgt => sa > sb,
                    IntPredicate::Sge => sa >= sb,
                    IntPredicate::Slt => sa < sb,
                    IntPredicate::Sle => sa <= sb,
                }))
            }
            _ => None,
        }
    }

    /// Whether a call asks such a question.
    pub fn reflects(&self, callee: Operand) -> bool {
        let source = self.cx.source;
        let Some(Constant::Global(global)) = callee.constant().map(|id| source.constants.get(id)) else { return false };
        let global = &source.globals[global];
        global.is_declaration() && global.name.is_some_and(|name| REFLECT.contains(&source.names.bytes(name)))
    }

    /// The answer.
    pub fn reflect(&mut self, call: Call, result: Option<ValueId>) -> Result<()> {
        let operands = self.body.operands(call.arguments);
        let question = operands.first().and_then(|operand| self.string(*operand));
        let Some(question) = question else {
            return Err(Fault::new("`__nvvm_reflect` asks for something that is no constant string"));
        };
        let answer = self.answer(&question);
        let value = self.b.iconst(IrType::I32, answer);
        self.finish(result, vec![value])
    }

    /// What is answered: the architecture, whether subnormals are flushed, that divisions and roots are exact; 0 to
    /// whatever is not known.
    pub fn answer(&self, question: &[u8]) -> i64 {
        match question {
            b"__CUDA_ARCH" => i64::from(self.cx.options.architecture),
            b"__CUDA_FTZ" => self.cx.source.flag_number("nvvm-reflect-ftz").map_or(0, |flag| i64::from(flag != 0)),
            b"__CUDA_PREC_DIV" | b"__CUDA_PREC_SQRT" => 1,
            _ => 0,
        }
    }

    /// The bytes of a constant string up to its zero.
    pub fn string(&self, operand: Operand) -> Option<Vec<u8>> {
        let source = self.cx.source;
        let address = self.cx.address(operand.constant()?, 0).ok()??;
        let (Symbol::Variable(variable), 0) = (address.symbol, address.offset) else { return None };
        let is = |id: &&crate::model::GlobalId| self.cx.symbols[**id] == Symbol::Variable(variable);
        let global = &source.globals[*source.order.iter().find(is)?];
        let GlobalKind::Variable(data) = &global.kind else { return None };
        match source.constants.get(data.initializer.expand()?) {
            Constant::Data(list) => {
                let bytes = source.constants.bytes(list);
                Some(bytes.split(|byte| *byte == 0).next().unwrap_or(bytes).to_vec())
            }
            Constant::Zero => Some(Vec::new()),
            _ => None,
        }
    }
}
