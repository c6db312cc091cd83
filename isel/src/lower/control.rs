//! Terminators: branches with block arguments, switches as compare trees and jump tables, returns.

use ptxc_ir::{Block, Extra, Flags, Inst, Opcode, Type, Value};
use ptxc_mir as mir;
use ptxc_mir::{Operand, RegClass, Terminator, VReg};
use ptxc_targets::tok;

use super::{Lower, Uses};

/// Fewest cases worth a jump table, and the most table entries per case.
const MIN_TABLE_CASES: usize = 6;
const MAX_ENTRIES_PER_CASE: u64 = 3;
/// Cases compared one after the other rather than split again.
const LINEAR_CASES: usize = 3;

/// A switch under selection.
struct Switch {
    reg: VReg,
    wide: bool,
    default: mir::BlockCall,
    /// Sorted by key.
    cases: Vec<(u64, mir::BlockCall)>,
    uniform: bool,
}

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

    fn end_block(&mut self, block: mir::Block, terminator: Terminator) {
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
    fn target(&mut self, target: &ptxc_ir::BlockCall) -> mir::BlockCall {
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
            return Terminator::Jump(if bits & 1 != 0 { then } else { otherwise });
        }
        let mut negated = false;
        if let Some(inner) = self.negation(condition) {
            condition = inner;
            negated = true;
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

    fn switch(&mut self, inst: Inst, block: mir::Block) {
        let data = &self.ir.dfg.insts[inst];
        let Extra::Switch(id) = data.extra else { return };
        let value = self.arg(inst, 0);
        let ty = self.ty(value);
        if !matches!(ty, Type::I32 | Type::I64) {
            self.error(inst, format!("`switch {ty}` is not legal"));
            return;
        }
        let table = &self.ir.dfg.switches[id];
        let default = self.target(&table.default);
        let mut cases = Vec::with_capacity(table.cases.len());
        for (key, target) in &table.cases {
            cases.push((*key as u64, self.target(target)));
        }
        cases.sort_by_key(|(key, _)| *key);
        if let Some(bits) = self.const_bits(value) {
            let hit = cases.iter().find(|(key, _)| u128::from(*key) == bits).map_or(default, |(_, t)| *t);
            self.end_block(block, Terminator::Jump(hit));
            return;
        }
        let reg = self.reg_of(value);
        let switch =
            Switch { reg, wide: ty == Type::I64, default, cases, uniform: data.flags.contains(Flags::UNIFORM) };
        self.decide(&switch, block);
    }

    /// Emits the decision: the given block first, further ones behind it.
    fn decide(&mut self, switch: &Switch, block: mir::Block) {
        let mut work = vec![(block, 0, switch.cases.len())];
        let mut made = Vec::new();
        while let Some((at, low, high)) = work.pop() {
            let outer = (at != block).then(|| std::mem::take(&mut self.emitted));
            self.decide_range(switch, at, low, high, &mut work, &mut made);
            if let Some(outer) = outer {
                let inner = std::mem::replace(&mut self.emitted, outer);
                self.func.blocks[at].insts.extend_from_slice(&inner);
            }
        }
        if !made.is_empty() {
            self.extra_blocks.push((block, made));
        }
    }

    fn decide_range(
        &mut self,
        switch: &Switch,
        at: mir::Block,
        low: usize,
        high: usize,
        work: &mut Vec<(mir::Block, usize, usize)>,
        made: &mut Vec<mir::Block>,
    ) {
        let cases = &switch.cases[low..high];
        let (Some(first), Some(last)) = (cases.first(), cases.last()) else {
            self.end_block(at, Terminator::Jump(switch.default));
            return;
        };
        let span = (last.0 - first.0).saturating_add(1);
        if cases.len() >= MIN_TABLE_CASES && span <= MAX_ENTRIES_PER_CASE * cases.len() as u64 {
            self.jump_table(switch, at, low, high, made);
            return;
        }
        if cases.len() <= LINEAR_CASES {
            let (key, target) = *first;
            let pred = self.compare_key(switch, tok::EQ, key);
            let otherwise = if cases.len() == 1 {
                switch.default
            } else {
                let next = self.extra_block(made);
                work.push((next, low + 1, high));
                self.func.block_call(next, &[])
            };
            self.end_block(
                at,
                Terminator::CondBra { pred, negated: false, uniform: switch.uniform, then: target, otherwise },
            );
            return;
        }
        let middle = low + cases.len() / 2;
        let pred = self.compare_key(switch, tok::LT, switch.cases[middle].0);
        let (below, above) = (self.extra_block(made), self.extra_block(made));
        work.push((above, middle, high));
        work.push((below, low, middle));
        let (then, otherwise) = (self.func.block_call(below, &[]), self.func.block_call(above, &[]));
        self.end_block(at, Terminator::CondBra { pred, negated: false, uniform: switch.uniform, then, otherwise });
    }

    fn extra_block(&mut self, made: &mut Vec<mir::Block>) -> mir::Block {
        let block = self.func.blocks.push(mir::BlockData::default());
        made.push(block);
        block
    }

    /// Compares the operand with a key, unsigned.
    fn compare_key(&mut self, switch: &Switch, comparison: ptxc_targets::Tok, key: u64) -> VReg {
        let pred = self.new_reg(RegClass::Pred);
        let suffix = if switch.wide { tok::U64 } else { tok::U32 };
        let imm = if switch.wide { key as i64 } else { i64::from(key as u32) };
        let operands = [Operand::Def(pred), Operand::Use(switch.reg), Operand::Imm(imm)];
        self.emit_toks(&[tok::SETP, comparison, suffix], &operands);
        pred
    }

    /// `brx.idx` after a bounds check (PTX ISA 9.7.12, brx.idx).
    fn jump_table(&mut self, switch: &Switch, at: mir::Block, low: usize, high: usize, made: &mut Vec<mir::Block>) {
        let cases = &switch.cases[low..high];
        let (first, last) = (cases[0].0, cases[cases.len() - 1].0);
        let mut index = switch.reg;
        if first != 0 {
            let suffix = if switch.wide { tok::S64 } else { tok::S32 };
            let negative = (first as i64).wrapping_neg();
            let imm = if switch.wide { negative } else { i64::from(negative as i32) };
            index = self.binary_imm(&[tok::ADD, suffix], index, imm);
        }
        let relative = Switch {
            reg: index,
            wide: switch.wide,
            default: switch.default,
            cases: Vec::new(),
            uniform: switch.uniform,
        };
        let pred = self.compare_key(&relative, tok::GT, last - first);
        let table = self.extra_block(made);
        let otherwise = self.func.block_call(table, &[]);
        self.end_block(
            at,
            Terminator::CondBra { pred, negated: false, uniform: switch.uniform, then: switch.default, otherwise },
        );
        let outer = std::mem::take(&mut self.emitted);
        if switch.wide {
            index = self.convert_register(index, RegClass::B32, &[tok::CVT, tok::U32, tok::U64]);
        }
        let inner = std::mem::replace(&mut self.emitted, outer);
        self.func.blocks[table].insts.extend_from_slice(&inner);
        let mut targets = Vec::new();
        let mut next = cases.iter().peekable();
        for key in first..=last {
            let hit = next.next_if(|(case, _)| *case == key);
            targets.push(hit.map_or(switch.default, |(_, target)| *target));
        }
        self.end_block(table, Terminator::BrxIdx { index, uniform: switch.uniform, targets });
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
