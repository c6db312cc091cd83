//! Terminators.

use std::collections::hash_map::Entry;

use ptxc_ir::{Extra, Flags, FuncKind, Opcode, Type as IrType, Value};
use rustc_hash::FxHashMap;

use super::body::Writer;
use super::{Fault, Result};
use crate::model::{BlockId, ExceptionOp, InstId, Instruction, Metadata, MetadataId, Operand};

impl Writer<'_, '_> {
    /// The instructions that end blocks, and those of exception handling.
    pub fn terminator(&mut self, inst: InstId, instruction: &Instruction) -> Result<()> {
        match *instruction {
            Instruction::Return(list) => {
                let kernel = self.b.func.kind == FuncKind::Kernel;
                self.ret(self.body.operands(list).first().copied().filter(|_| !kernel))
            }
            Instruction::Jump(to) => {
                self.loop_hints(inst, &[to]);
                self.jump(to)
            }
            Instruction::Branch { condition, yes, no } => {
                if let Some(decided) = self.decided(condition) {
                    return self.jump(if decided != 0 { yes } else { no });
                }
                self.loop_hints(inst, &[yes, no]);
                self.branch(inst, condition, yes, no)
            }
            Instruction::Switch { value, default, cases } => {
                let cases = self.body.operands(cases);
                self.switch(value, default, cases)
            }
            Instruction::IndirectBranch { address, targets } => {
                let targets = self.body.operands(targets);
                self.indirect_branch(address, targets)
            }
            Instruction::Unreachable
            | Instruction::Exception {
                op: ExceptionOp::Resume | ExceptionOp::CatchRet | ExceptionOp::CleanupRet | ExceptionOp::CatchSwitch,
                ..
            } => {
                self.b.inst(Opcode::Unreachable, Flags::EMPTY, IrType::INVALID, &[], Extra::None);
                Ok(())
            }
            Instruction::Exception { .. } => Err(Fault::new("exceptions are not handled on a GPU")),
            Instruction::CallBranch { .. } => Err(Fault::new("`callbr` has no equivalent")),
            _ => Err(Fault::new("this instruction has no equivalent")),
        }
    }

    fn ret(&mut self, value: Option<Operand>) -> Result<()> {
        let mut values = Vec::new();
        if let Some(value) = value {
            let run = self.exact_parts(value)?;
            let parts = self.parts[run.range()].to_vec();
            let types = self.cx.module.sig_results(&self.b.func.sig);
            if types.len() != parts.len() {
                return Err(Fault::new("a function returns another type than its own"));
            }
            for (part, ty) in parts.into_iter().zip(types) {
                values.push(self.send(part, ty));
            }
        }
        if self.b.func.kind == FuncKind::Kernel && !values.is_empty() {
            return Err(Fault::new("a kernel returns a value"));
        }
        self.b.ret(&values);
        Ok(())
    }

    /// A value as it is passed to functions: short pointers are integers there.
    pub fn send(&mut self, value: Value, ty: IrType) -> Value {
        let own = self.b.ty(value);
        if own.is_ptr() && ty.is_int() { self.b.convert(Opcode::Ptrtoint, value, ty) } else { self.fit(value, ty) }
    }

    /// `br` to one block.
    pub fn jump(&mut self, to: BlockId) -> Result<()> {
        let arguments = self.branch_arguments(to)?;
        let target = self.target(to)?;
        self.b.jump(target, &arguments);
        Ok(())
    }

    fn branch(&mut self, inst: InstId, condition: Operand, yes: BlockId, no: BlockId) -> Result<()> {
        let condition = self.value(condition)?;
        let (yes_arguments, no_arguments) = (self.branch_arguments(yes)?, self.branch_arguments(no)?);
        let (yes, no) = (self.target(yes)?, self.target(no)?);
        let then = self.b.func.dfg.block_call(yes, &yes_arguments);
        let other = self.b.func.dfg.block_call(no, &no_arguments);
        let extra = Extra::Branch { then, other, weights: self.weights(inst) };
        self.b.inst(Opcode::Br, Flags::EMPTY, IrType::INVALID, &[condition], extra);
        Ok(())
    }

    fn switch(&mut self, value: Operand, default: BlockId, cases: &[Operand]) -> Result<()> {
        let value = self.value(value)?;
        let bits = self.b.ty(value).scalar_bits();
        let arguments = self.branch_arguments(default)?;
        let target = self.target(default)?;
        let default = self.b.func.dfg.block_call(target, &arguments);
        let mut out = Vec::with_capacity(cases.len() / 2);
        // Cases that lead to one block pass it the same.
        let mut known: FxHashMap<BlockId, Vec<Value>> = FxHashMap::default();
        for pair in cases.chunks_exact(2) {
            let number = self.number(pair[0]).ok_or_else(|| Fault::new("a case of a switch is no number"))?;
            let to = pair[1].block().ok_or_else(|| Fault::new("a case of a switch names no block"))?;
            let arguments = match known.entry(to) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(self.branch_arguments(to)?),
            };
            let target = self.target(to)?;
            let call = self.b.func.dfg.block_call(target, arguments);
            out.push((super::constants::unsigned(number, bits), call));
        }
        self.b.switch(value, default, out);
        Ok(())
    }

    /// `indirectbr`: addresses of blocks are their numbers from 1, so it is a switch.
    fn indirect_branch(&mut self, address: Operand, targets: &[Operand]) -> Result<()> {
        let address = self.value(address)?;
        let number = self.b.convert(Opcode::Ptrtoint, address, IrType::I64);
        let mut blocks: Vec<BlockId> = targets.iter().filter_map(|target| target.block()).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let Some(last) = blocks.pop() else {
            self.b.inst(Opcode::Unreachable, Flags::EMPTY, IrType::INVALID, &[], Extra::None);
            return Ok(());
        };
        let arguments = self.branch_arguments(last)?;
        let target = self.target(last)?;
        let default = self.b.func.dfg.block_call(target, &arguments);
        let mut cases = Vec::with_capacity(blocks.len());
        for block in blocks {
            let arguments = self.branch_arguments(block)?;
            let target = self.target(block)?;
            let call = self.b.func.dfg.block_call(target, &arguments);
            cases.push((u128::from(block.as_u32()) + 1, call));
        }
        self.b.switch(number, default, cases);
        Ok(())
    }

    fn attachment(&self, inst: InstId, kind: &[u8]) -> Option<MetadataId> {
        if self.body.attachments.is_empty() {
            return None;
        }
        let names = &self.cx.source.names;
        let mut all = self.body.attachments(inst).iter();
        all.find(|(_, name, _)| names.bytes(*name) == kind).map(|(.., node)| *node)
    }

    /// Branch weights from `!prof`, scaled to 16 bits.
    fn weights(&self, inst: InstId) -> (u16, u16) {
        let Some(node) = self.attachment(inst, b"prof") else { return (0, 0) };
        let metadata = &self.cx.source.metadata;
        let number = |reference| metadata.as_value(reference).and_then(|id| self.cx.source.constants.integer(id));
        let numbers: Vec<u64> = metadata.node(node).iter().filter_map(|entry| number(*entry)).collect();
        let [yes, no] = numbers[..] else { return (0, 0) };
        let shift = 64u32.saturating_sub((yes | no).leading_zeros()).saturating_sub(16);
        ((yes >> shift) as u16, (no >> shift) as u16)
    }

    /// Hints of `!llvm.loop` on a branch back, for the loop that its target heads.
    fn loop_hints(&mut self, inst: InstId, targets: &[BlockId]) {
        let Some(node) = self.attachment(inst, b"llvm.loop") else { return };
        let here = self.numbers[self.source_block];
        let header = targets.iter().find(|to| (1..=here).contains(&self.numbers[**to]));
        let Some(header) = header.and_then(|to| self.blocks[*to].expand()) else { return };
        let metadata = &self.cx.source.metadata;
        for entry in metadata.node(node) {
            let Some(entry) = entry.expand() else { continue };
            let Metadata::Node { .. } = metadata.get(entry) else { continue };
            let [key, rest @ ..] = metadata.node(entry) else { continue };
            let Some(key) = metadata.as_text(*key) else { continue };
            let count = rest.first().and_then(|value| metadata.as_value(*value));
            let count = count.and_then(|id| self.cx.source.constants.integer(id));
            let unroll = match (self.cx.source.names.bytes(key), count) {
                (b"llvm.loop.unroll.disable", _) => Some(0),
                (b"llvm.loop.unroll.full", _) => Some(u32::MAX),
                (b"llvm.loop.unroll.count", Some(count)) => u32::try_from(count).ok(),
                _ => None,
            };
            if let Some(unroll) = unroll {
                self.b.func.dfg.blocks[header].hints.unroll = Some(unroll);
            }
        }
    }
}
