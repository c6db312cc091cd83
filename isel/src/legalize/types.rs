//! The pass that leaves only legal types: dispatch by shape, in an order where definitions come before uses.
//!
//! Instructions whose operands and results are legal already stay as they are. Whether the target has an operation on
//! a legal type is asked later ([`super::operations`]); what is emitted here need only have legal types.

use ptxc_ir::builder::Cursor;
use ptxc_ir::{Block, BlockCall, Extra, Inst, IntCC, Opcode, Scalar, Shape, Type, Value};
use ptxc_targets::SpecialReg;
use smallvec::SmallVec;

use super::context::Context;
use super::parts::{Lane, Lanes, Parts};
use crate::rules::Pattern;

impl Context<'_> {
    /// Rewrites every reachable block; `order` is a reverse postorder.
    pub fn legalize_types(&mut self, order: &[Block]) {
        let entry = order.first().copied();
        for block in order {
            if Some(*block) != entry {
                self.split_block_params(*block);
            }
        }
        for block in order {
            self.extensions.clear();
            self.words.clear();
            let mut next = self.func.layout.first_inst(*block);
            if Some(*block) == entry
                && let Some(first) = next
            {
                self.rewrite_at(first);
                self.current = None;
                self.import_params(*block);
            }
            while let Some(inst) = next {
                next = self.func.layout.next_inst(inst);
                self.rewrite_at(inst);
                self.visit(inst);
            }
        }
        self.current = None;
    }

    /// Replaces block parameters of illegal types by parameters for their parts.
    fn split_block_params(&mut self, block: Block) {
        let old: SmallVec<[Value; 8]> = SmallVec::from_slice(self.func.dfg.block_params(block));
        if old.iter().all(|v| self.features.legal_value(self.ty(*v))) {
            return;
        }
        let mut params: Vec<Value> = Vec::new();
        for value in old {
            let ty = self.ty(value);
            if self.features.legal_value(ty) {
                params.push(value);
                continue;
            }
            let types = self.part_types(ty);
            let parts: Parts = types.iter().map(|ty| self.func.dfg.append_block_param(block, *ty)).collect();
            params.extend_from_slice(&parts);
            self.parts.set(value, &parts);
        }
        self.set_block_params(block, &params);
    }

    /// Makes these values, all parameters of the block, its parameters in this order.
    pub fn set_block_params(&mut self, block: Block, params: &[Value]) {
        self.func.dfg.blocks[block].params = self.func.dfg.list(params);
        self.func.dfg.retain_block_params(block, |_, _| true);
    }

    /// Replaces branch arguments of illegal types by their parts.
    fn split_branch_args(&mut self, inst: Inst) {
        let mut lists: SmallVec<[SmallVec<[Value; 8]>; 2]> = SmallVec::new();
        let dfg = &self.func.dfg;
        dfg.for_each_target(inst, |t| lists.push(SmallVec::from_slice(t.args.as_slice(&dfg.pool))));
        let legal = |v: &Value| self.features.legal_value(self.ty(*v));
        if lists.iter().all(|list| list.iter().all(legal)) {
            return;
        }
        let lists: SmallVec<[Vec<Value>; 2]> =
            lists.iter().map(|list| list.iter().flat_map(|v| self.parts_of(*v)).collect()).collect();
        let mut lists = lists.into_iter();
        self.func.dfg.for_each_target_mut(inst, |target: &mut BlockCall, pool| {
            if let Some(list) = lists.next() {
                target.args = ptxc_ir::ValueList::from_slice(&list, pool);
            }
        });
    }

    /// True when operands and results all have legal types.
    fn is_type_legal(&self, inst: Inst) -> bool {
        let dfg = &self.func.dfg;
        dfg.args(inst).iter().all(|v| self.features.legal_value(dfg.ty(*v)))
            && dfg.results(inst).all(|v| self.features.legal_value(dfg.ty(v)))
    }

    fn visit(&mut self, inst: Inst) {
        let op = self.func.dfg.insts[inst].op;
        match op.shape() {
            Shape::Unary | Shape::Binary | Shape::Ternary | Shape::BinaryOverflow => self.visit_arithmetic(inst),
            Shape::FloatClass | Shape::IntCompare | Shape::FloatCompare | Shape::Select => self.visit_choice(inst),
            Shape::Convert => self.visit_conversion(inst),
            Shape::ConvertRandom => self.visit_stochastic(inst),
            Shape::BuildVector | Shape::Extract | Shape::Insert | Shape::Shuffle | Shape::Splat | Shape::Reduce => {
                self.visit_vector(inst);
            }
            Shape::Load => self.visit_load(inst),
            Shape::Store => self.visit_store(inst),
            Shape::AtomicRmw | Shape::Cmpxchg => self.visit_atomic(inst),
            Shape::Gep => self.visit_gep(inst),
            Shape::Call | Shape::CallIndirect | Shape::Return | Shape::Target | Shape::Asm => {
                self.visit_boundary(inst);
            }
            Shape::Sreg => self.split_register(inst),
            Shape::Jump | Shape::Branch => self.split_branch_args(inst),
            Shape::Switch => {
                self.split_branch_args(inst);
                self.visit_switch(inst);
            }
            Shape::Shuffle4 | Shape::MatchAny | Shape::MatchAll => self.visit_exchange(inst),
            Shape::Alloca
            | Shape::IsSpace
            | Shape::Fence
            | Shape::MemCopy
            | Shape::MemSet
            | Shape::Nullary
            | Shape::Predicate
            | Shape::BarrierSync
            | Shape::BarrierReduce
            | Shape::WarpMask
            | Shape::Vote
            | Shape::Ballot
            | Shape::ActiveMask
            | Shape::Redux
            | Shape::Elect => {}
        }
    }

    /// A special register of several components is read component by component.
    fn split_register(&mut self, inst: Inst) {
        let data = self.func.dfg.insts[inst].clone();
        let Extra::Sreg(register) = data.extra else { return };
        if register.lanes() <= 1 {
            return;
        }
        let scalar = self.ty(self.func.dfg.result(inst, 0)).scalar();
        let mut lanes = Lanes::new();
        for component in ["x", "y", "z", "w"].iter().take(usize::from(register.lanes())) {
            let name = format!("{}.{component}", register.name());
            // The fourth component, which has no name of its own, reads as zero.
            lanes.push(match SpecialReg::from_name(&name) {
                Some(part) => self.builder().sreg(part, scalar).into(),
                None => self.imm(scalar, 0).into(),
            });
        }
        self.finish(inst, &lanes);
    }

    fn visit_arithmetic(&mut self, inst: Inst) {
        let data = &self.func.dfg.insts[inst];
        let (op, flags, ty) = (data.op, data.flags, data.ty);
        let legal = self.is_type_legal(inst);
        if op == Opcode::Freeze {
            if !legal {
                let args = self.args(inst);
                let parts = self.parts_of(args[0]);
                let parts: Parts = parts.into_iter().map(|part| self.freeze_part(part)).collect();
                self.set_parts(self.func.dfg.result(inst, 0), &parts);
                self.func.layout.remove_inst(inst);
            }
            return;
        }
        let logic = matches!(op, Opcode::And | Opcode::Or | Opcode::Xor);
        if legal && !ty.is_vector() && (ty != Type::I1 || logic) {
            return;
        }
        if op.shape() != Shape::BinaryOverflow && (self.visit_short_pairs(inst) || self.visit_byte_words(inst)) {
            return;
        }
        let pair = ty.scalar().with_lanes(2);
        if ty.is_float_like() && self.features.paired(ty.scalar()) && self.features.float_op(op, flags, pair) {
            if !legal {
                self.pairwise(inst);
            }
            return;
        }
        self.lanewise(inst);
    }

    /// A part whose value is the same at every use. Poison is not, and what is recorded of the width of a part need not
    /// hold when the value is poison, so the frozen part forgets it.
    fn freeze_part(&mut self, part: Value) -> Value {
        let bits = self.ty(part).bits();
        let is_known = self.func.dfg.as_bits(part).is_some();
        let is_narrow = self.unsigned_width(part) < bits || self.signed_width(part) < bits;
        let is_constant = self.func.dfg.as_const(part).is_some();
        if !is_known && (is_constant || is_narrow) { self.un(Opcode::Freeze, part) } else { part }
    }

    /// A float operation on each pair of lanes at once.
    fn pairwise(&mut self, inst: Inst) {
        self.note(Pattern::LegalPairs);
        let data = &self.func.dfg.insts[inst];
        let (op, flags) = (data.op, data.flags);
        let operands: SmallVec<[Parts; 3]> = self.args(inst).into_iter().map(|v| self.parts_of(v)).collect();
        let mut results = Parts::new();
        for index in 0..operands[0].len() {
            let args: SmallVec<[Value; 3]> = operands.iter().map(|parts| parts[index]).collect();
            let ty = self.ty(args[0]);
            results.push(self.value(op, flags, ty, &args, Extra::None));
        }
        self.set_parts(self.func.dfg.result(inst, 0), &results);
        self.func.layout.remove_inst(inst);
    }

    fn lanewise(&mut self, inst: Inst) {
        let data = &self.func.dfg.insts[inst];
        let (op, flags, ty, vector) = (data.op, data.flags, data.ty.scalar(), data.ty.is_vector());
        if vector {
            self.note(Pattern::LegalLanes);
        }
        let operands: SmallVec<[Lanes; 3]> = self.args(inst).into_iter().map(|v| self.lanes_of(v)).collect();
        let (mut results, mut second) = (Lanes::new(), Lanes::new());
        for index in 0..operands[0].len() {
            let lane = |operand: usize| operands[operand][index];
            let result = match operands.len() {
                1 => self.lane_unary(op, flags, ty, lane(0)),
                2 if op.shape() == Shape::BinaryOverflow => {
                    let (result, overflow) = self.lane_overflow(op, ty, lane(0), lane(1));
                    second.push(overflow);
                    result
                }
                2 => self.lane_binary(op, flags, ty, lane(0), lane(1)),
                _ => self.lane_ternary(op, flags, ty, lane(0), lane(1), lane(2)),
            };
            results.push(result);
        }
        if !second.is_empty() {
            self.set_lanes(self.func.dfg.result(inst, 1), &second);
        }
        self.finish(inst, &results);
    }

    fn visit_choice(&mut self, inst: Inst) {
        let data = self.func.dfg.insts[inst].clone();
        let args = self.args(inst);
        let kept = match data.op {
            Opcode::Icmp => data.ty != Type::I1 && !data.ty.is_vector(),
            Opcode::Fcmp | Opcode::Fclass => !data.ty.is_vector(),
            _ => !self.ty(args[0]).is_vector(),
        };
        if kept && self.is_type_legal(inst) {
            return;
        }
        if data.op == Opcode::Select && !self.ty(args[0]).is_vector() {
            let (a, b) = (self.parts_of(args[1]), self.parts_of(args[2]));
            let parts: Parts = a.iter().zip(&b).map(|(a, b)| self.select_part(args[0], *a, *b)).collect();
            self.set_parts(self.func.dfg.result(inst, 0), &parts);
            self.func.layout.remove_inst(inst);
            return;
        }
        let by_pairs = match data.extra {
            Extra::IntCC(cc) => self.compare_short_pairs(inst, cc),
            _ => data.op == Opcode::Select && self.select_pairs(inst),
        };
        if by_pairs {
            return;
        }
        let scalar = data.ty.scalar();
        let operands: SmallVec<[Lanes; 3]> = args.iter().map(|v| self.lanes_of(*v)).collect();
        let mut results = Lanes::new();
        for index in 0..operands[0].len() {
            let lane = |operand: usize| operands[operand][index];
            results.push(match data.extra {
                Extra::IntCC(cc) => self.lane_icmp(cc, scalar, lane(0), lane(1)).into(),
                Extra::FloatCC(cc) => self.lane_fcmp(cc, data.flags, lane(0), lane(1)).into(),
                Extra::Imm(_) => self.value(data.op, data.flags, scalar, &[lane(0).lo], data.extra).into(),
                _ => self.lane_select(lane(0).lo, lane(1), lane(2)),
            });
        }
        self.finish(inst, &results);
    }

    /// Index operands become `i32` or `i64`; vectors of pointers are addressed lane by lane.
    fn visit_gep(&mut self, inst: Inst) {
        let data = self.func.dfg.insts[inst].clone();
        if self.is_type_legal(inst)
            && self.func.dfg.args(inst)[1..].iter().all(|v| matches!(self.ty(*v), Type::I32 | Type::I64))
        {
            return;
        }
        let args = self.args(inst);
        let lanes: SmallVec<[Lanes; 4]> = args.iter().map(|v| self.lanes_of(*v)).collect();
        let count = lanes.iter().map(|l| l.len()).max().unwrap_or(1);
        let mut results = Lanes::new();
        for index in 0..count {
            let mut operands: SmallVec<[Value; 4]> = SmallVec::new();
            for (operand, lanes) in lanes.iter().enumerate() {
                let lane = lanes[index.min(lanes.len() - 1)];
                let ty = self.ty(args[operand]).scalar();
                operands.push(if operand == 0 { lane.lo } else { self.gep_index(ty, lane) });
            }
            let Some(base) = operands.first().map(|v| self.ty(*v)) else { return };
            let gep = self.builder().inst_with_results(data.op, data.flags, data.ty, &operands, data.extra, &[base]);
            results.push(self.func.dfg.result(gep, 0).into());
        }
        self.finish(inst, &results);
    }

    fn gep_index(&mut self, ty: Type, lane: Lane) -> Value {
        match ty.kind() {
            Some(Scalar::Int(bits)) if bits < 32 => self.lane_integer(Opcode::Sext, ty, lane, Type::I32).lo,
            Some(Scalar::Int(bits)) if bits != 32 => self.lane_integer(Opcode::Sext, ty, lane, Type::I64).lo,
            _ => lane.lo,
        }
    }

    /// Switches on other integers become switches on `i32` or `i64`; wider ones than that branch on the high limb first.
    fn visit_switch(&mut self, inst: Inst) {
        let data = self.func.dfg.insts[inst].clone();
        if matches!(data.ty, Type::I32 | Type::I64) {
            return;
        }
        let args = self.args(inst);
        let lane = self.scalar(args[0]);
        let bits = data.ty.scalar_bits();
        if bits > 64 {
            self.wide_switch(inst, lane, bits);
            return;
        }
        let to = if bits <= 32 { Type::I32 } else { Type::I64 };
        let value = self.lane_as_unsigned(data.ty, lane, to);
        let Extra::Switch(id) = data.extra else { return };
        let table = self.func.dfg.switches[id].clone();
        self.builder().switch(value, table.default, table.cases);
        self.func.layout.remove_inst(inst);
    }

    /// One comparison and branch per case, in blocks placed after the present one.
    fn wide_switch(&mut self, inst: Inst, lane: Lane, bits: u32) {
        self.note(Pattern::LegalSwitchWide);
        let Extra::Switch(id) = self.func.dfg.insts[inst].extra else { return };
        let Some(mut block) = self.func.layout.inst_block(inst) else { return };
        let table = self.func.dfg.switches[id].clone();
        let limbs = self.limbs(lane);
        let limbs = self.wide_extended(false, bits, limbs);
        self.func.layout.remove_inst(inst);
        for (case, target) in &table.cases {
            self.cursor = Cursor::End(block);
            let key = (self.bits(Type::I64, *case), self.bits(Type::I64, case >> 64));
            let equal = self.wide_compare(IntCC::Eq, 128, limbs, key);
            let next = self.builder().block_after(block);
            let otherwise = self.func.dfg.block_call(next, &[]);
            let extra = Extra::Branch { then: *target, other: otherwise, weights: (0, 0) };
            self.inst(Opcode::Br, ptxc_ir::Flags::EMPTY, Type::INVALID, &[equal], extra);
            block = next;
        }
        self.cursor = Cursor::End(block);
        self.inst(Opcode::Jump, ptxc_ir::Flags::EMPTY, Type::INVALID, &[], Extra::Jump(table.default));
    }
}
