//! Bodies of a random module: blocks, branches, and operands for the instructions.

use super::instructions::{Operands, build};
use super::items::{random_bits, signature};
use super::{Options, Rng};
use crate::builder::FunctionBuilder;
use crate::dfg::{ConstData, LoopHints, SourceLoc};
use crate::entities::{Block, FuncId, Value};
use crate::flags::Flags;
use crate::instruction::{BlockCall, Extra};
use crate::layout::Layout;
use crate::module::{FuncKind, Function, GlobalKind, Linkage, Module};
use crate::opcode::Opcode;
use crate::types::{MemType, Scalar, Space, Type};

/// Gives every function that is no declaration a body.
pub(super) fn bodies(module: &mut Module, rng: &mut Rng, options: &Options) {
    let ids: Vec<FuncId> = module.func_ids().collect();
    for id in ids {
        if module.funcs[id].linkage == Linkage::Extern {
            continue;
        }
        let sig = module.funcs[id].sig.clone();
        let mut func = Function::new("", FuncKind::Func, sig);
        let mut body = Body { module, rng, options, visible: Vec::new(), entry_values: 0 };
        body.fill(&mut func);
        module.funcs[id].dfg = func.dfg;
        module.funcs[id].layout = std::mem::replace(&mut func.layout, Layout::new());
    }
}

/// What the random functions draw operands from.
struct Body<'m> {
    module: &'m Module,
    rng: &'m mut Rng,
    options: &'m Options,
    /// Values that dominate the present position: those of the entry block, then those of the block.
    visible: Vec<Value>,
    entry_values: usize,
}

impl Operands for Body<'_> {
    fn rng(&mut self) -> &mut Rng {
        self.rng
    }

    fn module(&self) -> &Module {
        self.module
    }

    fn calls(&self) -> bool {
        self.options.calls
    }

    fn value(&mut self, b: &mut FunctionBuilder, ty: Type) -> Value {
        // Some tries: the list holds values of all types.
        for _ in 0..8 {
            match self.rng.pick(&self.visible) {
                Some(value) if b.ty(*value) == ty => return *value,
                _ => {}
            }
        }
        self.constant(b, ty)
    }

    fn mem_type(&mut self) -> MemType {
        let aggregates: Vec<MemType> = self.module.aggregates().map(|(id, _)| MemType::Agg(id)).collect();
        self.rng.pick(&aggregates).copied().unwrap_or(MemType::Value(Type::F32))
    }

    fn signature(&mut self) -> crate::module::Signature {
        let types = [self.mem_type(), MemType::Value(Type::I32), MemType::Value(Type::PTR)];
        let fits = |ty: &MemType| matches!(ty, MemType::Value(_)) || self.module.layout_of(*ty).size < 64;
        let types: Vec<MemType> = types.into_iter().filter(fits).collect();
        signature(self.module, self.rng, &types)
    }
}

impl Body<'_> {
    fn constant(&mut self, b: &mut FunctionBuilder, ty: Type) -> Value {
        if self.rng.once_in(12) {
            return b.func.dfg.poison(ty);
        }
        if ty.is_vector() {
            let mut lanes: Vec<Value> = (0..ty.lanes()).map(|_| self.constant(b, ty.scalar())).collect();
            if self.rng.once_in(3) {
                let first = lanes[0];
                lanes.fill(first);
            }
            return b.func.dfg.constant(ty, ConstData::Vector(lanes));
        }
        let Some(Scalar::Ptr(space)) = ty.kind() else {
            let bits = random_bits(self.rng, ty);
            return b.bits(ty, bits);
        };
        for (id, global) in &self.module.globals {
            let own = match global.kind {
                GlobalKind::Variable(own) => own,
                _ => Space::Global,
            };
            if own == space && self.rng.once_in(2) {
                let offset = if self.rng.once_in(2) { 0 } else { self.rng.below(256) as i64 - 128 };
                return b.global(id, offset, ty);
            }
        }
        if space == Space::Generic && self.rng.once_in(4) {
            let ids: Vec<FuncId> = self.module.func_ids().collect();
            if let Some(id) = self.rng.pick(&ids) {
                return b.func.dfg.constant(ty, ConstData::Func(*id));
            }
        }
        b.bits(ty, 0)
    }

    fn fill(&mut self, func: &mut Function) {
        let types = self.module.sig_params(&func.sig);
        let mut b = FunctionBuilder::new(func);
        let entry = b.entry_block(&types);
        let count = self.rng.below(self.options.blocks.max(1));
        let blocks: Vec<Block> = (0..count).map(|_| self.block(&mut b)).collect();
        self.visible = b.func.dfg.block_params(entry).to_vec();
        b.switch_to(entry);
        for _ in 0..self.rng.below(3) {
            build(self, &mut b, Opcode::Alloca);
        }
        self.instructions(&mut b, entry);
        self.entry_values = self.visible.len();
        self.terminator(&mut b, &blocks, 0);
        for (index, block) in blocks.iter().enumerate() {
            self.visible.truncate(self.entry_values);
            self.visible.extend_from_slice(b.func.dfg.block_params(*block));
            b.switch_to(*block);
            self.instructions(&mut b, *block);
            let from = if self.options.loops { 0 } else { index + 1 };
            self.terminator(&mut b, &blocks, from);
        }
        self.names(func);
    }

    fn block(&mut self, b: &mut FunctionBuilder) -> Block {
        let block = b.append_block();
        for _ in 0..self.rng.below(4) {
            let types = super::types::all_types();
            let ty = self.rng.pick(&types).copied().unwrap_or(Type::I32);
            b.block_param(block, ty);
        }
        let hints = LoopHints {
            unroll: self.rng.once_in(6).then(|| [0, 4, u32::MAX][self.rng.below(3)]),
            pipeline: self.rng.once_in(6).then(|| self.rng.below(5) as u32),
        };
        b.func.dfg.blocks[block].hints = hints;
        block
    }

    fn instructions(&mut self, b: &mut FunctionBuilder, block: Block) {
        for _ in 0..self.rng.below(self.options.insts + 1) {
            let Some(op) = self.rng.pick(Opcode::ALL).copied() else { return };
            let loc = match self.rng.below(5) {
                0 => SourceLoc { file: 7, line: 1 + self.rng.below(99) as u32, col: self.rng.below(9) as u32 },
                _ => SourceLoc::default(),
            };
            b.set_loc(loc);
            let before = b.func.layout.last_inst(block);
            if op == Opcode::Alloca || op.is_terminator() {
                continue;
            }
            build(self, b, op);
            let mut made = match before {
                Some(before) => b.func.layout.next_inst(before),
                None => b.func.layout.first_inst(block),
            };
            while let Some(inst) = made {
                self.visible.extend(b.func.dfg.results(inst));
                made = b.func.layout.next_inst(inst);
            }
        }
        b.set_loc(SourceLoc::default());
    }

    fn target(&mut self, b: &mut FunctionBuilder, block: Block) -> BlockCall {
        let types: Vec<Type> = b.func.dfg.block_params(block).iter().map(|v| b.ty(*v)).collect();
        let args: Vec<Value> = types.into_iter().map(|ty| self.value(b, ty)).collect();
        b.func.dfg.block_call(block, &args)
    }

    fn terminator(&mut self, b: &mut FunctionBuilder, blocks: &[Block], from: usize) {
        let ahead = blocks.get(from..).unwrap_or(&[]);
        let Some(first) = self.rng.pick(ahead).copied() else { return self.leave(b) };
        let second = self.rng.pick(ahead).copied().unwrap_or(first);
        let then = self.target(b, first);
        match self.rng.below(6) {
            0 => self.leave(b),
            1 => {
                b.inst(Opcode::Jump, Flags::EMPTY, Type::INVALID, &[], Extra::Jump(then));
            }
            2 => {
                let types = super::controlling_types(Opcode::Switch);
                let ty = self.rng.pick(&types).copied().unwrap_or(Type::I32);
                let value = self.value(b, ty);
                let mut seen: Vec<u128> = (0..self.rng.below(5)).map(|_| random_bits(self.rng, ty)).collect();
                seen.sort_unstable();
                seen.dedup();
                let cases = seen.into_iter().map(|bits| (bits, self.target(b, second))).collect();
                b.switch(value, then, cases);
            }
            _ => {
                let other = self.target(b, second);
                let condition = self.value(b, Type::I1);
                let weights = if self.rng.once_in(3) { (self.rng.below(9) as u16, 1) } else { (0, 0) };
                let flags = if self.rng.once_in(3) { Flags::UNIFORM } else { Flags::EMPTY };
                let extra = Extra::Branch { then, other, weights };
                b.inst(Opcode::Br, flags, Type::INVALID, &[condition], extra);
            }
        }
    }

    fn leave(&mut self, b: &mut FunctionBuilder) {
        let others = [Opcode::Unreachable, Opcode::Trap, Opcode::Exit];
        if self.rng.once_in(3)
            && let Some(op) = self.rng.pick(&others)
        {
            b.inst(*op, Flags::EMPTY, Type::INVALID, &[], Extra::None);
            return;
        }
        let types = self.module.sig_results(&b.func.sig);
        let values: Vec<Value> = types.into_iter().map(|ty| self.value(b, ty)).collect();
        b.ret(&values);
    }

    /// Names some values and blocks, also badly.
    fn names(&mut self, func: &mut Function) {
        let values: Vec<Value> = func.dfg.values().filter(|v| func.dfg.as_const(*v).is_none()).collect();
        for value in values {
            let name = match self.rng.below(8) {
                0 if self.options.odd_names => "same".to_string(),
                1 if self.options.odd_names => format!("v {}\"\\\u{7f}ü", self.rng.below(9)),
                2 if self.options.odd_names => "12".to_string(),
                3 if self.options.odd_names => "same.1".to_string(),
                4 => format!("v{}", value.as_u32()),
                _ => continue,
            };
            func.dfg.value_names.insert(value, name.into());
        }
        let blocks: Vec<Block> = func.layout.blocks().collect();
        for block in blocks {
            let name = match self.rng.below(6) {
                0 if self.options.odd_names => "loop".to_string(),
                1 if self.options.odd_names => "9 lives".to_string(),
                2 if self.options.odd_names => "block3".to_string(),
                3 => format!("b.{}", block.as_u32()),
                _ => continue,
            };
            func.dfg.block_names.insert(block, name.into());
        }
    }
}
