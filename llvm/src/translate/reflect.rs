//! `__nvvm_reflect`: questions about the compilation that are answered while translating.

use ptxc_ir::Type as IrType;

use super::body::Writer;
use super::{Fault, Result, Symbol};
use crate::model::{Call, Constant, GlobalKind, Operand, ValueId};

/// Names of the function, as CUDA's headers and libdevice declare it.
pub(super) const REFLECT: &[&[u8]] = &[b"__nvvm_reflect", b"__nvvm_reflect_ocl"];

impl Writer<'_, '_> {
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
