//! Which instructions may be executed where the program would not have come to them, or left out where it would have.

use super::{Chains, FunctionFacts, OpcodeFacts};
use ptxc_mir::{Function, GroupKind, Inst, Op, Operand};

/// What a load reads that needs no order: a load that nothing but these chains concerns may be left out.
const SILENT: Chains = Chains::WALL.union(Chains::GLOBAL).union(Chains::SHARED);

impl FunctionFacts<'_> {
    /// Whether an instruction may be executed although the program would not have come to it. It computes of registers
    /// alone, or reads what is certain to be there and never written: a parameter, or a constant variable within its
    /// bounds. What is convergent, ordered, guarded by the condition code or in flight is none of these.
    pub fn may_speculate(&self, func: &Function, inst: Inst) -> bool {
        let harmless = match func.insts[inst].op {
            Op::Copy(_) => true,
            Op::Ptx(_) => self.module.opcode(func, inst).is_some_and(|opcode| {
                let operands = func.inst_operands(inst);
                opcode.computes || reads_parameter(opcode, operands) || self.reads_constant(opcode, operands)
            }),
            Op::Call(_) | Op::Asm(_) => false,
        };
        harmless && self.of(func, inst).is_pure()
    }

    /// Whether an instruction may be left out where nobody reads its results: it computes, or loads without an order.
    pub fn may_skip(&self, func: &Function, inst: Inst) -> bool {
        let silent = match func.insts[inst].op {
            Op::Copy(_) => true,
            Op::Ptx(_) => self.module.opcode(func, inst).is_some_and(|opcode| opcode.computes || opcode.reads_only()),
            Op::Call(_) | Op::Asm(_) => false,
        };
        if !silent || !func.inst_operands(inst).iter().any(|operand| operand.def().is_some()) {
            return false;
        }
        let facts = self.of(func, inst);
        let reads_only = facts.accesses.iter().all(|access| !access.write);
        facts.writes.is_empty()
            && facts.reads.without(SILENT).is_empty()
            && reads_only
            && !facts.asynchronous
            && !facts.boundary
    }

    /// Whether it loads from a constant variable of the module, inside it and aligned.
    fn reads_constant(&self, opcode: &OpcodeFacts, operands: &[Operand]) -> bool {
        if !opcode.in_constant_space || !opcode.reads_only() || opcode.size == 0 {
            return false;
        }
        let at = operands.iter().position(|operand| matches!(operand, Operand::Open(GroupKind::Address, 1)));
        let address = at.and_then(|at| operands.get(at + 1));
        let Some(Operand::Sym(symbol, offset)) = address else { return false };
        let (Some(&(size, align)), Ok(offset)) = (self.module.constants.get(symbol), u64::try_from(*offset)) else {
            return false;
        };
        let bytes = u64::from(opcode.size);
        offset.saturating_add(bytes) <= size && offset % bytes == 0 && u64::from(align) % bytes == 0
    }
}

/// Whether it loads from a parameter of the function by its name.
fn reads_parameter(opcode: &OpcodeFacts, operands: &[Operand]) -> bool {
    let named = operands.iter().any(|operand| matches!(operand, Operand::Param(..)));
    named && opcode.loads && opcode.reads_only()
}
