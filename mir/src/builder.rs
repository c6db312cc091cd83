//! Appends instructions to a function.

use crate::entities::{AsmId, Block, CallId, Inst, LocId, SymId, VReg};
use crate::function::Function;
use crate::inst::{AsmData, BlockCall, CallData, Guard, InstData, Op, OperandRange, Terminator};
use crate::operand::{GroupKind, Operand};
use crate::types::RegClass;
use ptxc_targets::{Opcode, SpecialReg};
use smallvec::SmallVec;

/// A cursor at the end of a block. Everything is appended; scheduling is what reorders.
#[derive(Debug)]
pub struct FunctionBuilder<'f> {
    /// The function being built.
    pub func: &'f mut Function,
    block: Option<Block>,
    loc: LocId,
}

impl<'f> FunctionBuilder<'f> {
    /// A builder that stands in no block yet.
    pub fn new(func: &'f mut Function) -> FunctionBuilder<'f> {
        FunctionBuilder { func, block: None, loc: LocId::NONE }
    }

    /// Moves to the end of a block.
    pub fn switch_to(&mut self, block: Block) {
        self.block = Some(block);
    }

    /// The block it stands in.
    ///
    /// # Panics
    /// When [`FunctionBuilder::switch_to`] was never called.
    pub fn block(&self) -> Block {
        self.block.expect("the builder stands in no block")
    }

    /// Sets the location of the instructions that follow.
    pub fn set_loc(&mut self, loc: LocId) {
        self.loc = loc;
    }

    /// Makes a register.
    pub fn vreg(&mut self, class: RegClass) -> VReg {
        self.func.new_vreg(class)
    }

    /// Adds a parameter to a block and returns the register it defines.
    pub fn block_param(&mut self, block: Block, class: RegClass) -> VReg {
        let vreg = self.func.new_vreg(class);
        self.func.blocks[block].params.push(vreg);
        vreg
    }

    /// Appends an instruction with these operands in prefix form.
    pub fn emit(&mut self, opcode: Opcode, operands: &[Operand]) -> Inst {
        self.emit_op(Op::Ptx(opcode), None, operands)
    }

    /// Appends an instruction of any kind with these operands.
    pub fn emit_op(&mut self, op: Op, guard: Option<Guard>, operands: &[Operand]) -> Inst {
        let operands = self.func.add_operands(operands);
        self.append(op, guard, operands)
    }

    /// Begins an instruction; operands are pushed one by one.
    pub fn inst(&mut self, opcode: Opcode) -> InstBuilder<'_, 'f> {
        self.inst_op(Op::Ptx(opcode))
    }

    /// Begins an instruction of any kind.
    pub fn inst_op(&mut self, op: Op) -> InstBuilder<'_, 'f> {
        let start = self.func.operands.len() as u32;
        InstBuilder { builder: self, op, guard: None, start, open: SmallVec::new() }
    }

    /// Appends a register copy.
    pub fn copy(&mut self, to: VReg, from: VReg) -> Inst {
        let class = self.func.class(from);
        self.emit_op(Op::Copy(class), None, &[Operand::Def(to), Operand::Use(from)])
    }

    /// Appends a call. The operands are those that [`CallData`] asks for, in its order.
    pub fn call(&mut self, data: CallData, operands: &[Operand]) -> Inst {
        let id: CallId = self.func.calls.push(data);
        self.emit_op(Op::Call(id), None, operands)
    }

    /// Appends opaque inline assembly.
    pub fn asm(&mut self, data: AsmData, operands: &[Operand]) -> Inst {
        let id: AsmId = self.func.asms.push(data);
        self.emit_op(Op::Asm(id), None, operands)
    }

    /// A branch target with arguments.
    pub fn target(&mut self, block: Block, args: &[VReg]) -> BlockCall {
        self.func.block_call(block, args)
    }

    /// Ends the block.
    pub fn terminate(&mut self, terminator: Terminator) {
        let block = self.block();
        let data = &mut self.func.blocks[block];
        data.terminator = terminator;
        data.terminator_loc = self.loc;
    }

    /// Ends the block with a jump.
    pub fn jump(&mut self, block: Block, args: &[VReg]) {
        let target = self.target(block, args);
        self.terminate(Terminator::Jump(target));
    }

    /// Ends the block with a two-way branch.
    pub fn cond_bra(&mut self, pred: VReg, uniform: bool, then: BlockCall, otherwise: BlockCall) {
        self.terminate(Terminator::CondBra { pred, negated: false, uniform, then, otherwise });
    }

    fn append(&mut self, op: Op, guard: Option<Guard>, operands: OperandRange) -> Inst {
        let block = self.block();
        let inst = self.func.insts.push(InstData { op, guard, operands, loc: self.loc });
        self.func.blocks[block].insts.push(inst);
        inst
    }
}

/// An instruction under construction. [`InstBuilder::finish`] appends it.
#[derive(Debug)]
#[must_use = "an instruction is appended by finish()"]
pub struct InstBuilder<'b, 'f> {
    builder: &'b mut FunctionBuilder<'f>,
    op: Op,
    guard: Option<Guard>,
    start: u32,
    /// Slots of the groups that are open.
    open: SmallVec<[u32; 4]>,
}

impl InstBuilder<'_, '_> {
    /// Adds any operand.
    pub fn operand(self, operand: Operand) -> Self {
        self.builder.func.operands.push(operand);
        self
    }

    /// Adds several operands in prefix form.
    pub fn operands(self, operands: &[Operand]) -> Self {
        self.builder.func.operands.extend_from_slice(operands);
        self
    }

    /// Adds a register that is written.
    pub fn def(self, vreg: VReg) -> Self {
        self.operand(Operand::Def(vreg))
    }

    /// Adds a register that is read.
    pub fn used(self, vreg: VReg) -> Self {
        self.operand(Operand::Use(vreg))
    }

    /// Adds an integer literal.
    pub fn imm(self, value: i64) -> Self {
        self.operand(Operand::Imm(value))
    }

    /// Adds a symbol's address.
    pub fn sym(self, symbol: SymId, offset: i32) -> Self {
        self.operand(Operand::Sym(symbol, offset))
    }

    /// Adds a special register.
    pub fn sreg(self, register: SpecialReg) -> Self {
        self.operand(Operand::SReg(register))
    }

    /// Adds `[base+offset]`.
    pub fn address(self, base: VReg, offset: i64) -> Self {
        let this = self.open(GroupKind::Address).used(base);
        let this = if offset == 0 { this } else { this.operand(Operand::Offset(offset)) };
        this.close()
    }

    /// Adds a vector of registers that are written; one register is added bare.
    pub fn def_vector(self, vregs: &[VReg]) -> Self {
        self.vector(vregs, Operand::Def)
    }

    /// Adds a vector of registers that are read; one register is added bare.
    pub fn used_vector(self, vregs: &[VReg]) -> Self {
        self.vector(vregs, Operand::Use)
    }

    /// Opens a group; [`InstBuilder::close`] ends it.
    pub fn open(mut self, kind: GroupKind) -> Self {
        self.open.push(self.builder.func.operands.len() as u32);
        self.operand(Operand::Open(kind, 0))
    }

    /// Ends the innermost open group.
    pub fn close(mut self) -> Self {
        if let Some(slot) = self.open.pop() {
            let length = self.builder.func.operands.len() - slot as usize - 1;
            if let Some(Operand::Open(_, n)) = self.builder.func.operands.get_mut(slot as usize) {
                *n = length as u16;
            }
        }
        self
    }

    /// Guards the instruction with a predicate.
    pub fn guard(mut self, pred: VReg, negated: bool) -> Self {
        self.guard = Some(Guard { pred, negated });
        self
    }

    /// Appends the instruction to the builder's block. Groups still open end here.
    pub fn finish(mut self) -> Inst {
        while !self.open.is_empty() {
            self = self.close();
        }
        let len = self.builder.func.operands.len() as u32 - self.start;
        self.builder.append(self.op, self.guard, OperandRange { start: self.start, len })
    }

    fn vector(self, vregs: &[VReg], make: fn(VReg) -> Operand) -> Self {
        if let [one] = vregs {
            return self.operand(make(*one));
        }
        let mut this = self.open(GroupKind::Vector);
        for &vreg in vregs {
            this = this.operand(make(vreg));
        }
        this.close()
    }
}
