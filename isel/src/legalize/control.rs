//! The first pass: operations whose expansion needs control flow, on the types of the input.
//!
//! Blocks are walked from their last instruction to their first, so that cutting a block in two moves only what lies
//! between two cuts, and the whole pass stays linear.

use ptxc_ir::builder::Cursor;
use ptxc_ir::{Block, Extra, Flags, Inst, IntCC, Opcode, Shape, Type, Value};
use smallvec::SmallVec;

use super::context::Context;
use crate::rules::Pattern;

impl Context<'_> {
    /// Visits every instruction.
    pub fn expand_control(&mut self) {
        let blocks: Vec<Block> = self.func.layout.blocks().collect();
        if !blocks.iter().any(|block| self.func.layout.insts(*block).any(|inst| self.needs_control(inst))) {
            return;
        }
        if let Some(entry) = blocks.first() {
            self.gather_allocas(*entry);
        }
        for block in blocks {
            let mut last = self.func.layout.last_inst(block);
            while let Some(inst) = last {
                last = self.func.layout.prev_inst(inst);
                if self.needs_control(inst) {
                    self.rewrite_at(inst);
                    self.expand_with_control(inst);
                }
            }
        }
        self.current = None;
    }

    fn needs_control(&self, inst: Inst) -> bool {
        matches!(
            self.func.dfg.insts[inst].op.shape(),
            Shape::AtomicRmw | Shape::Cmpxchg | Shape::MemCopy | Shape::MemSet | Shape::Redux
        )
    }

    fn expand_with_control(&mut self, inst: Inst) {
        match self.func.dfg.insts[inst].op.shape() {
            Shape::AtomicRmw => self.expand_atomic_rmw(inst),
            Shape::Cmpxchg => self.expand_cmpxchg(inst),
            Shape::MemCopy => self.expand_copy(inst),
            Shape::MemSet => self.expand_set(inst),
            _ => self.expand_redux_loop(inst),
        }
    }

    /// Moves stack objects to the front of the entry block, where cutting the block leaves them.
    fn gather_allocas(&mut self, entry: Block) {
        let layout = &self.func.layout;
        let is_alloca = |inst: &Inst| self.func.dfg.insts[*inst].op == Opcode::Alloca;
        let Some(first) = layout.insts(entry).find(|inst| !is_alloca(inst)) else { return };
        let late: Vec<Inst> = layout.insts(entry).skip_while(is_alloca).filter(is_alloca).collect();
        for inst in late {
            self.func.layout.remove_inst(inst);
            self.func.layout.insert_inst_before(inst, first);
        }
    }

    /// Cuts a block before an instruction; the block that begins with it. The cursor goes to the end of the first half,
    /// which has no terminator yet.
    pub fn split_before(&mut self, inst: Inst) -> Option<Block> {
        let head = self.func.layout.inst_block(inst)?;
        let tail = self.builder().block_after(head);
        self.func.layout.split_off(inst, tail);
        self.cursor = Cursor::End(head);
        Some(tail)
    }

    /// A block placed right before `tail`, with parameters of these types.
    pub fn block_before(&mut self, tail: Block, params: &[Type]) -> (Block, SmallVec<[Value; 4]>) {
        let mut builder = self.builder();
        let block = match builder.func.layout.prev_block(tail) {
            Some(before) => builder.block_after(before),
            None => builder.append_block(),
        };
        let params = params.iter().map(|ty| builder.block_param(block, *ty)).collect();
        (block, params)
    }

    /// Unconditional branch at the cursor.
    pub fn jump(&mut self, block: Block, args: &[Value]) {
        self.builder().jump(block, args);
    }

    /// Conditional branch at the cursor.
    pub fn branch(&mut self, cond: Value, then: (Block, &[Value]), other: (Block, &[Value])) {
        self.builder().br(cond, then, other);
    }

    /// A loop over `i64` offsets from `start` (below `end`) by `step`, entered from the cursor when it runs at all; `body`
    /// emits one iteration. The cursor goes to the block after it, where `tail` continues; nothing jumps there yet.
    pub fn count_up(&mut self, tail: Block, range: (Value, Value), step: u64, body: impl FnOnce(&mut Self, Value)) {
        let (looping, params) = self.block_before(tail, &[Type::I64]);
        let (after, _) = self.block_before(tail, &[]);
        let enter = self.icmp(IntCC::Ult, range.0, range.1);
        self.branch(enter, (looping, &[range.0]), (after, &[]));
        self.cursor = Cursor::End(looping);
        body(self, params[0]);
        let next = self.bin_imm(Opcode::Add, params[0], step as i64);
        let more = self.icmp(IntCC::Ult, next, range.1);
        self.branch(more, (looping, &[next]), (after, &[]));
        self.cursor = Cursor::End(after);
    }

    /// A loop over `i64` offsets from `start` down to `end`, each iteration taking the offset `step` below the last.
    pub fn count_down(&mut self, tail: Block, range: (Value, Value), step: u64, body: impl FnOnce(&mut Self, Value)) {
        let (looping, params) = self.block_before(tail, &[Type::I64]);
        let (after, _) = self.block_before(tail, &[]);
        let enter = self.icmp(IntCC::Ugt, range.0, range.1);
        self.branch(enter, (looping, &[range.0]), (after, &[]));
        self.cursor = Cursor::End(looping);
        let next = self.bin_imm(Opcode::Sub, params[0], step as i64);
        body(self, next);
        let more = self.icmp(IntCC::Ugt, next, range.1);
        self.branch(more, (looping, &[next]), (after, &[]));
        self.cursor = Cursor::End(after);
    }

    fn redux_operation(op: Opcode) -> (Opcode, i64) {
        let infinity = i64::from(f32::INFINITY.to_bits());
        match op {
            Opcode::ReduxAdd => (Opcode::Add, 0),
            Opcode::ReduxSmin => (Opcode::Smin, i64::from(i32::MAX)),
            Opcode::ReduxSmax => (Opcode::Smax, i64::from(i32::MIN)),
            Opcode::ReduxUmin => (Opcode::Umin, -1),
            Opcode::ReduxUmax => (Opcode::Umax, 0),
            Opcode::ReduxAnd => (Opcode::And, -1),
            Opcode::ReduxOr => (Opcode::Or, 0),
            // A NaN gives way to every number; where NaN wins, infinity gives way.
            Opcode::ReduxFmin => (Opcode::Fmin, 0x7fff_ffff),
            Opcode::ReduxFmax => (Opcode::Fmax, 0x7fff_ffff),
            Opcode::ReduxFminimum => (Opcode::Fminimum, infinity),
            Opcode::ReduxFmaximum => (Opcode::Fmaximum, infinity | 1 << 31),
            _ => (Opcode::Xor, 0),
        }
    }

    /// `redux` where the target lacks it. Every thread of the mask takes the value of each of them in turn: the loop
    /// runs as often for all, so that its exchanges stay converged. A full mask is a butterfly instead.
    fn expand_redux_loop(&mut self, inst: Inst) {
        let data = self.func.dfg.insts[inst].clone();
        let ty = data.ty;
        if if ty == Type::F32 { self.features.redux_float } else { self.features.redux } {
            return;
        }
        let args = self.args(inst);
        let (op, identity) = Self::redux_operation(data.op);
        if self.func.dfg.as_bits(args[1]) == Some(0xffff_ffff) {
            let r = self.butterfly(op, args[0], args[1]);
            self.replace(inst, &[r]);
            return;
        }
        let Some(tail) = self.split_before(inst) else { return };
        self.note(Pattern::LegalReduxLoop);
        let (looping, params) = self.block_before(tail, &[Type::I32, ty]);
        let start = self.bits(ty, u128::from(identity as u32));
        self.jump(looping, &[args[1], start]);
        self.cursor = Cursor::End(looping);
        let lane = self.un(Opcode::Cttz, params[0]);
        let clamp = self.imm(Type::I32, 31);
        let operands = [args[0], lane, clamp, args[1]];
        let exchange =
            self.builder().inst_with_results(Opcode::ShflIdx, Flags::EMPTY, ty, &operands, Extra::None, &[ty]);
        let received = self.func.dfg.result(exchange, 0);
        let acc = self.bin_flags(op, Flags::EMPTY, params[1], received);
        let less = self.bin_imm(Opcode::Sub, params[0], 1);
        let left = self.bin(Opcode::And, params[0], less);
        let more = self.icmp_imm(IntCC::Ne, left, 0);
        self.branch(more, (looping, &[left, acc]), (tail, &[]));
        self.replace(inst, &[acc]);
    }
}
