//! Terminators: branches with block arguments, returns.

use ptxc_ir::{Block, Extra, Flags, Inst, Opcode, Type, Value};
use ptxc_mir as mir;
use ptxc_mir::Terminator;

use super::{Lower, Uses};
use crate::rules::Pattern;

impl Lower<'_> {
    pub(super) fn terminator(&mut self, inst: Inst, block: mir::Block) {
        let terminator = match self.ir.dfg.insts[inst].op {
            Opcode::Jump => self.jump(inst),
            Opcode::Br => self.branch(inst),
            Opcode::Switch => {
                self.switch(inst, block);
                return;
            }
            Opcode::Ret if self.ir.kind == ptxc_ir::FuncKind::Kernel => Terminator::Ret { uniform: false },
            Opcode::Ret => self.ret(inst),
            Opcode::Trap => Terminator::Trap,
            Opcode::Exit => Terminator::Exit,
            _ => Terminator::Unreachable,
        };
        self.end_block(block, terminator);
    }

    pub(super) fn end_block(&mut self, block: mir::Block, terminator: Terminator) {
        let data = &mut self.func.blocks[block];
        data.terminator = terminator;
        data.terminator_loc = self.loc;
    }

    fn jump(&mut self, inst: Inst) -> Terminator {
        match self.ir.dfg.insts[inst].extra {
            Extra::Jump(target) => Terminator::Jump(self.target(&target)),
            _ => Terminator::Unreachable,
        }
    }

    /// A branch target; only parameters that somebody uses are passed.
    pub(super) fn target(&mut self, target: &ptxc_ir::BlockCall) -> mir::BlockCall {
        let args: Vec<Value> = target.args.as_slice(&self.ir.dfg.pool).to_vec();
        let mut regs = Vec::new();
        for (index, arg) in args.into_iter().enumerate() {
            let Some(param) = self.ir.dfg.block_params(target.block).get(index) else { break };
            if self.uses[*param] != Uses::NONE {
                regs.extend(self.regs_of(arg));
            }
        }
        let block = self.machine_block(target.block);
        self.func.block_call(block, &regs)
    }

    fn machine_block(&self, block: Block) -> mir::Block {
        self.blocks[block].expand().unwrap_or(mir::Block::from_u32(0))
    }

    fn branch(&mut self, inst: Inst) -> Terminator {
        let data = &self.ir.dfg.insts[inst];
        let Extra::Branch { then, other, .. } = data.extra else { return Terminator::Unreachable };
        let uniform = data.flags.contains(Flags::UNIFORM);
        let (then, otherwise) = (self.target(&then), self.target(&other));
        let mut condition = self.arg(inst, 0);
        if let Some(bits) = self.const_bits(condition) {
            self.note(Pattern::BranchKnown);
            return Terminator::Jump(if bits & 1 != 0 { then } else { otherwise });
        }
        let mut negated = false;
        if let Some(inner) = self.negation(condition) {
            condition = inner;
            negated = true;
            self.note(Pattern::BranchNegated);
        }
        if uniform {
            self.note(Pattern::BranchUniform);
        }
        let pred = self.reg_of(condition);
        Terminator::CondBra { pred, negated, uniform, then, otherwise }
    }

    /// `a` of `xor i1 a, true`.
    fn negation(&self, value: Value) -> Option<Value> {
        let inst = self.pure_def(value)?;
        let data = &self.ir.dfg.insts[inst];
        (data.op == Opcode::Xor && data.ty == Type::I1).then_some(())?;
        let (a, b) = (self.arg(inst, 0), self.arg(inst, 1));
        match (self.ir.dfg.as_bits(a), self.ir.dfg.as_bits(b)) {
            (None, Some(1)) => Some(a),
            (Some(1), None) => Some(b),
            _ => None,
        }
    }

    /// Puts the blocks that expansions made right behind the block they belong to.
    pub(super) fn place_extra_blocks(&mut self) {
        if self.extra_blocks.is_empty() {
            return;
        }
        let mut behind: rustc_hash::FxHashMap<mir::Block, Vec<mir::Block>> = self.extra_blocks.drain(..).collect();
        let mut layout = Vec::with_capacity(self.func.blocks.len());
        for block in &self.func.layout {
            layout.push(*block);
            layout.extend(behind.remove(block).unwrap_or_default());
        }
        self.func.layout = layout;
    }
}
