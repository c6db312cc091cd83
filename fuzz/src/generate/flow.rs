//! Branches, loops and switches. Regions have one entry and one way out, except for breaks, early exits and tangles.

use ptxc_ir::{Block, BlockCall, Extra, Flags, IntCC, LoopHints, Opcode, Type, Value};

use super::body::{Body, Control, mask};

/// Most nested regions.
const MOST_DEPTH: u32 = 4;
/// Most nested loops.
const MOST_LOOPS: u32 = 2;

impl Body<'_> {
    /// One region of control flow. False when none may be made here.
    pub fn region(&mut self) -> bool {
        if self.control.depth >= MOST_DEPTH {
            return false;
        }
        let features = *self.features;
        let loops = self.control.loops < MOST_LOOPS;
        match self.rng.below(21) {
            0..=2 if features.branches => self.branch(),
            3 | 4 if features.loops && loops => self.repeat(),
            5 if features.switches => self.switch(),
            6 if features.switches && loops => self.machine(),
            7 if features.tangles && loops => self.tangle(),
            8 if features.dense_switches => self.dense_switch(),
            9 if features.short_branches => self.short_branch(),
            10 if features.choices => self.choice(),
            12 | 13 if features.accumulators && features.floats && features.vectors && loops => self.accumulate(),
            11 if features.chained_branches => self.chained_branches(),
            14 if features.carried_pointers && features.generic_addresses && loops => self.carry_pointers(),
            20 if features.bit_loops && loops => self.bit_loop(),
            15 | 16 if features.branch_promises => self.branch_promises(),
            17 | 18 if features.tangled_switches => self.tangled_switch(loops),
            19 if features.compared_objects && features.allocas => return self.compare_objects(),
            _ => return false,
        }
        true
    }

    /// Types of the values that leave a region.
    fn outgoing(&mut self) -> Vec<Type> {
        (0..self.rng.below(4)).map(|_| self.any_type()).collect()
    }

    fn operands(&mut self, types: &[Type]) -> Vec<Value> {
        types.iter().map(|ty| self.operand(*ty)).collect()
    }

    fn block(&mut self, params: &[Type]) -> Block {
        let block = self.b.append_block();
        for ty in params {
            self.b.block_param(block, *ty);
        }
        block
    }

    /// Statements that share what is left of the fuel.
    fn inner(&mut self) {
        let most = 1 + self.rng.below(5) as u32;
        for _ in 0..most.min(self.fuel) {
            self.statement();
        }
    }

    /// Inside a region whose threads are all that were here before exactly if `together`.
    pub(super) fn inside(&mut self, together: bool) {
        self.control.depth += 1;
        if !together {
            self.control.uniform = false;
            self.control.lanes = None;
        }
    }

    fn jump(&mut self, to: Block, args: &[Value]) {
        self.b.jump(to, args);
    }

    /// `br`, said to be uniform where it is and the choice falls so.
    fn br(&mut self, condition: Value, then: (Block, &[Value]), other: (Block, &[Value])) {
        let promised = self.features.flags && self.is_uniform(condition) && self.once_in(3);
        let flags = if promised { Flags::UNIFORM } else { Flags::EMPTY };
        let then = self.b.func.dfg.block_call(then.0, then.1);
        let other = self.b.func.dfg.block_call(other.0, other.1);
        let weights = if self.once_in(6) { (9, 1) } else { (0, 0) };
        self.b.inst(Opcode::Br, flags, Type::INVALID, &[condition], Extra::Branch { then, other, weights });
    }

    fn branch(&mut self) {
        let prefer = self.control.uniform && self.once_in(2);
        let condition = self.condition(prefer);
        let together = self.is_uniform(condition);
        let types = self.outgoing();
        let (before, scope) = (self.control, self.scope.len());
        let named = self.features.warps && !together && self.control.lanes.is_some() && self.once_in(2);
        let lanes = if named { self.ballots(condition) } else { None };
        let mut arms = vec![self.block(&[])];
        let merge = self.block(&types);
        if self.once_in(3) {
            let args = self.operands(&types);
            self.br(condition, (arms[0], &[]), (merge, &args));
        } else {
            arms.push(self.block(&[]));
            self.br(condition, (arms[0], &[]), (arms[1], &[]));
        }
        for (which, block) in arms.into_iter().enumerate() {
            self.enter(block, scope);
            self.inside(together);
            if let Some(lanes) = lanes.and_then(|l| l.get(which).copied()) {
                self.control.lanes = Some(lanes);
            }
            self.inner();
            if which == 0 && self.features.early_exit && self.can_leave() && self.once_in(6) {
                self.left = true;
                self.leave();
            } else {
                let args = self.operands(&types);
                self.jump(merge, &args);
            }
            self.rejoin(before);
        }
        self.enter(merge, scope);
    }

    /// A branch around one or two operations and perhaps a store, on one side or both.
    fn short_branch(&mut self) {
        let condition = self.condition(false);
        let ty = self.any_type();
        let (before, scope) = (self.control, self.scope.len());
        let both = self.once_in(2);
        let mut arms = vec![self.block(&[])];
        let merge = self.block(&[ty]);
        let old = self.operand(ty);
        if both {
            arms.push(self.block(&[]));
            self.br(condition, (arms[0], &[]), (arms[1], &[]));
        } else {
            self.br(condition, (arms[0], &[]), (merge, &[old]));
        }
        for block in arms {
            self.enter(block, scope);
            self.inside(false);
            for _ in 0..self.rng.below(3) {
                self.integer();
            }
            self.leave_with_value(ty, merge, before);
        }
        self.enter(merge, scope);
    }

    /// A loop, or two in one another, that carries two or four floats, each updated by one operation with a lane of a vector.
    fn accumulate(&mut self) {
        let ty = self.float_type();
        let nested = self.once_in(3) && self.control.loops + 1 < MOST_LOOPS;
        let count = 2 * (1 + self.rng.below(2));
        let (before, scope) = (self.control, self.scope.len());
        let vectors: Vec<Value> = (0..2).map(|_| self.operand(ty.with_lanes(count as u32))).collect();
        let first: Vec<Value> =
            (0..count).map(|_| if self.once_in(2) { self.b.bits(ty, 0) } else { self.operand(ty) }).collect();
        let params: Vec<Type> = std::iter::once(Type::I32).chain(first.iter().map(|_| ty)).collect();
        let heads: Vec<Block> = (0..1 + usize::from(nested)).map(|_| self.block(&params)).collect();
        let exits: Vec<Block> = heads.iter().map(|_| self.block(&params[1..])).collect();
        let mut carried = first;
        for head in &heads {
            let zero = self.int(Type::I32, 0);
            let args: Vec<Value> = std::iter::once(zero).chain(carried).collect();
            self.jump(*head, &args);
            self.enter(*head, self.scope.len());
            self.inside(false);
            carried = self.b.func.dfg.block_params(*head)[1..].to_vec();
        }
        self.control.loops += heads.len() as u32;
        for _ in 0..1 + self.rng.below(2) {
            carried = self.accumulated(&vectors, &carried);
        }
        for (head, exit) in heads.iter().zip(&exits).rev() {
            let number = self.b.func.dfg.block_params(*head)[0];
            let one = self.int(Type::I32, 1);
            let next = self.op(Opcode::Add, &[number, one]);
            let bound = 1 + self.rng.below(3) as i64;
            let bound = self.int(Type::I32, bound);
            let more = self.icmp(IntCC::Slt, next, bound);
            let again: Vec<Value> = std::iter::once(next).chain(carried.iter().copied()).collect();
            self.br(more, (*head, &again), (*exit, &carried));
            self.b.switch_to(*exit);
            carried = self.b.func.dfg.block_params(*exit).to_vec();
        }
        self.rejoin(before);
        self.scope.truncate(scope);
        for value in carried {
            self.keep(value);
        }
    }

    /// Each of the values after one more operation. Rarely two of them change places, or one is read besides.
    fn accumulated(&mut self, vectors: &[Value], carried: &[Value]) -> Vec<Value> {
        let ops = [Opcode::Fadd, Opcode::Fmul, Opcode::Fma, Opcode::Fma, Opcode::Fmin, Opcode::Fmax];
        let op = self.pick(&ops, Opcode::Fma);
        let mut next: Vec<Value> = Vec::new();
        for (lane, value) in carried.iter().enumerate() {
            let index = self.int(Type::I32, lane as i64);
            let lanes: Vec<Value> = vectors
                .iter()
                .map(|vector| {
                    let from = self.b.ty(*vector);
                    self.emit(Opcode::Extract, Flags::EMPTY, from, &[*vector, index], Extra::None)
                })
                .collect();
            let op = if self.once_in(24) { Opcode::Fadd } else { op };
            let result = if op == Opcode::Fma {
                self.op(op, &[lanes[0], lanes[1], *value])
            } else if self.once_in(2) {
                self.op(op, &[lanes[0], *value])
            } else {
                self.op(op, &[*value, lanes[0]])
            };
            next.push(result);
        }
        if self.once_in(8) {
            next.swap(0, 1);
        }
        if self.once_in(6) {
            self.scope.push(carried[0]);
            self.integer();
        }
        next
    }

    /// Ends one way of a branch, perhaps with an access, and hands a value on.
    fn leave_with_value(&mut self, ty: Type, merge: Block, before: Control) {
        if self.features.memory && self.once_in(2) {
            self.access();
        }
        let value = self.operand(ty);
        self.jump(merge, &[value]);
        self.rejoin(before);
    }

    /// Two or three conditions that all have to hold, or of which one has to, or nearly so.
    fn chained_branches(&mut self) {
        let ty = self.any_type();
        let (before, scope) = (self.control, self.scope.len());
        let (merge, body) = (self.block(&[ty]), self.block(&[]));
        let old = self.operand(ty);
        let either = self.once_in(2);
        let length = 2 + self.rng.below(2);
        for at in 0..length {
            let last = at + 1 == length;
            let next = match (last, either) {
                (false, _) => self.block(&[]),
                (true, true) => merge,
                (true, false) => body,
            };
            let passed = if self.once_in(12) { self.operand(ty) } else { old };
            let args = [passed];
            let to = |block: Block| (block, if block == merge { args.as_slice() } else { &[] });
            let (on, away) = (to(next), to(if either { body } else { merge }));
            let condition = self.condition(false);
            if self.once_in(2) {
                self.br(condition, on, away)
            } else {
                self.br(condition, away, on)
            }
            if !last {
                self.enter(next, self.scope.len());
                if at == 0 {
                    self.inside(false);
                }
                for _ in 0..self.rng.below(3) {
                    self.integer();
                }
            }
        }
        self.rejoin(before);
        self.enter(body, scope);
        self.inside(false);
        self.integer();
        self.leave_with_value(ty, merge, before);
        self.enter(merge, scope);
    }

    /// A switch or a branch whose ways are one block and differ in constants: numbers that rise evenly, small ones, few.
    fn choice(&mut self) {
        let result = self.int_type();
        let scope = self.scope.len();
        let merge = self.block(&[result]);
        let style = self.rng.below(4);
        let (first, step) = (self.rng.below(40) as i64 - 20, self.rng.below(9) as i64 - 4);
        let made = |body: &mut Self, case: i64| match style {
            0 => body.int(result, first + step * case),
            1 => body.int(result, first + (case * case) % 7),
            2 => body.int(result, case * 5 % 3),
            _ => body.constant(result),
        };
        let other = self.operand(result);
        if self.once_in(5) {
            let condition = self.condition(false);
            let constant = made(self, 1);
            self.br(condition, (merge, &[constant]), (merge, &[other]));
            return self.enter(merge, scope);
        }
        let ty = self.pick(&[Type::I32, Type::I32, Type::I64, Type::I8, Type::I16], Type::I32);
        let value = self.operand(ty);
        let mut value = if self.once_in(4) { value } else { self.masked(value, 31) };
        let low = self.pick(&[0, 0, 1, -3, 60, 120], 0);
        if low != 0 {
            let low = self.int(ty, low);
            value = self.op(Opcode::Add, &[value, low]);
        }
        let all = mask(ty.scalar_bits());
        let start = low + self.rng.below(3) as i64 - 1;
        let mut calls: Vec<(u128, BlockCall)> = Vec::new();
        let gaps = self.once_in(2);
        for case in 0..1 + self.rng.below(16) as i64 {
            if gaps && self.once_in(4) {
                continue;
            }
            let constant = made(self, case);
            calls.push(((start + case) as u128 & all, self.b.func.dfg.block_call(merge, &[constant])));
        }
        let other = if self.once_in(2) { other } else { made(self, 0) };
        let default = self.b.func.dfg.block_call(merge, &[other]);
        self.b.switch(value, default, calls);
        self.enter(merge, scope);
    }

    /// A switch with a row of cases: most choose a constant, some do something.
    fn dense_switch(&mut self) {
        let ty = self.pick(&[Type::I32, Type::I32, Type::I64, Type::I8, Type::I16], Type::I32);
        let count = 4 + self.rng.below(20) as i64;
        let value = self.operand(ty);
        let mut value = if self.once_in(4) { value } else { self.masked(value, 31) };
        let low = self.pick(&[0, 0, 1, -3, 60, 100], 0);
        if low != 0 {
            let low = self.int(ty, low);
            value = self.op(Opcode::Add, &[value, low]);
        }
        let result = self.int_type();
        let all = mask(ty.scalar_bits());
        let (before, scope) = (self.control, self.scope.len());
        let merge = self.block(&[result]);
        let (mut targets, mut calls): (Vec<Block>, Vec<(u128, BlockCall)>) = (Vec::new(), Vec::new());
        let plain = self.once_in(2);
        for case in 0..count {
            if self.once_in(10) {
                continue;
            }
            let call = if plain || self.once_in(2) {
                let constant = self.constant(result);
                self.b.func.dfg.block_call(merge, &[constant])
            } else if self.once_in(3) && !targets.is_empty() {
                let block = self.pick(&targets, merge);
                self.b.func.dfg.block_call(block, &[])
            } else {
                let block = self.block(&[]);
                targets.push(block);
                self.b.func.dfg.block_call(block, &[])
            };
            calls.push(((low + case) as u128 & all, call));
        }
        self.end_in_switch(value, calls, &mut targets);
        for block in targets {
            self.enter(block, scope);
            self.inside(false);
            self.integer();
            let value = self.operand(result);
            self.jump(merge, &[value]);
            self.rejoin(before);
        }
        self.enter(merge, scope);
    }

    /// The lanes where the condition holds, and those where it does not, of those that are here.
    fn ballots(&mut self, condition: Value) -> Option<[Value; 2]> {
        let here = self.control.lanes?;
        let inst = self.b.inst(Opcode::VoteBallot, Flags::EMPTY, Type::INVALID, &[condition, here], Extra::None);
        let then = self.b.func.dfg.result(inst, 0);
        let other = self.op(Opcode::Xor, &[then, here]);
        Some([then, other])
    }

    fn hints(&mut self, header: Block) {
        let unroll = if self.once_in(4) { Some(self.pick(&[0, 2, u32::MAX], 0)) } else { None };
        self.b.func.dfg.blocks[header].hints = LoopHints { unroll, pipeline: None };
    }

    /// A loop that counts.
    fn repeat(&mut self) {
        let counter = self.pick(&[Type::I32, Type::I32, Type::I64, Type::I16], Type::I32);
        let count = if self.once_in(2) {
            let n = 1 + self.rng.below(5) as i64;
            self.int(counter, n)
        } else {
            let n = self.operand(counter);
            let n = self.masked(n, 3);
            let one = self.int(counter, 1);
            self.op(Opcode::Add, &[n, one])
        };
        let together = self.is_uniform(count);
        let carried = self.outgoing();
        let leaving = self.outgoing();
        let (before, scope) = (self.control, self.scope.len());
        let params: Vec<Type> = std::iter::once(counter).chain(carried.iter().copied()).collect();
        let header = self.block(&params);
        let exit = self.block(&leaving);
        self.hints(header);
        let zero = self.int(counter, 0);
        let mut first = vec![zero];
        first.extend(self.operands(&carried));
        self.jump(header, &first);
        self.enter(header, scope);
        let number = self.b.func.dfg.block_params(header).first().copied().unwrap_or(zero);
        // After a break that only some take, the next round is without them.
        let breaks = self.once_in(3);
        self.inside(together && !breaks);
        self.control.loops += 1;
        if self.control.uniform {
            self.uniform.insert(number);
        }
        // Tested above or below.
        let above = self.once_in(2);
        if above {
            let inside = self.icmp(IntCC::Ult, number, count);
            let body = self.block(&[]);
            let args = self.operands(&leaving);
            self.br(inside, (body, &[]), (exit, &args));
            self.b.switch_to(body);
        }
        self.inner();
        if breaks {
            let condition = self.condition(false);
            let rest = self.block(&[]);
            let args = self.operands(&leaving);
            self.br(condition, (exit, &args), (rest, &[]));
            self.b.switch_to(rest);
            self.inner();
        }
        let one = self.int(counter, 1);
        let flags = if self.features.flags && self.once_in(2) { Flags::NSW | Flags::NUW } else { Flags::EMPTY };
        let next = self.emit(Opcode::Add, flags, counter, &[number, one], Extra::None);
        let mut again = vec![next];
        again.extend(self.operands(&carried));
        if above {
            self.jump(header, &again);
        } else {
            let cc = self.pick(&[IntCC::Ult, IntCC::Slt, IntCC::Ne], IntCC::Ult);
            let more = self.icmp(cc, next, count);
            let args = self.operands(&leaving);
            self.br(more, (header, &again), (exit, &args));
        }
        self.rejoin(before);
        self.enter(exit, scope);
    }

    /// Different cases below a small bound, for a value of the type.
    fn cases(&mut self, ty: Type) -> Vec<u128> {
        let all = mask(ty.scalar_bits());
        let mut cases: Vec<u128> = (0..2 + self.rng.below(4)).map(|_| self.rng.below(8) as u128 & all).collect();
        cases.sort_unstable();
        cases.dedup();
        if self.once_in(4) && all > 7 {
            cases.push(all);
        }
        cases
    }

    /// Ends the block with a switch whose default is a new target.
    fn end_in_switch(&mut self, value: Value, calls: Vec<(u128, BlockCall)>, targets: &mut Vec<Block>) {
        let default = self.block(&[]);
        targets.push(default);
        let default = self.b.func.dfg.block_call(default, &[]);
        self.b.switch(value, default, calls);
    }

    fn switch(&mut self) {
        let ty = self.int_type();
        let value = self.operand(ty);
        let value = if self.once_in(4) { value } else { self.masked(value, 7) };
        let together = self.is_uniform(value);
        let types = self.outgoing();
        let cases = self.cases(ty);
        let (before, scope) = (self.control, self.scope.len());
        let merge = self.block(&types);
        let mut targets: Vec<Block> = Vec::new();
        let mut calls: Vec<(u128, BlockCall)> = Vec::new();
        for case in cases {
            // Some share a target, some go straight on.
            let call = match self.rng.below(4) {
                0 => {
                    let args = self.operands(&types);
                    self.b.func.dfg.block_call(merge, &args)
                }
                1 if !targets.is_empty() => {
                    let block = self.pick(&targets, merge);
                    self.b.func.dfg.block_call(block, &[])
                }
                _ => {
                    let block = self.block(&[]);
                    targets.push(block);
                    self.b.func.dfg.block_call(block, &[])
                }
            };
            calls.push((case, call));
        }
        self.end_in_switch(value, calls, &mut targets);
        for block in targets {
            self.enter(block, scope);
            self.inside(together);
            self.inner();
            let args = self.operands(&types);
            self.jump(merge, &args);
            self.rejoin(before);
        }
        self.enter(merge, scope);
    }

    /// A loop around a switch on a state that the cases choose, for a bounded number of rounds.
    fn machine(&mut self) {
        let carried = self.outgoing();
        let (before, scope) = (self.control, self.scope.len());
        let params: Vec<Type> = [Type::I32, Type::I32].into_iter().chain(carried.iter().copied()).collect();
        let header = self.block(&params);
        let exit = self.block(&carried);
        let state = self.index(4);
        let rounds = 1 + self.rng.below(6) as i64;
        let rounds = self.int(Type::I32, rounds);
        let mut first = vec![state, rounds];
        first.extend(self.operands(&carried));
        self.jump(header, &first);
        self.enter(header, scope);
        self.inside(false);
        self.control.loops += 1;
        let inner = self.scope.len();
        let params = self.b.func.dfg.block_params(header).to_vec();
        let [state, rounds, ..] = params[..] else { return };
        let control = self.control;
        let states: Vec<Block> = (0..3).map(|_| self.block(&[])).collect();
        let default = self.block(&[]);
        let to_default = self.b.func.dfg.block_call(default, &[]);
        let calls: Vec<(u128, BlockCall)> =
            states.iter().enumerate().map(|(i, b)| (i as u128, self.b.func.dfg.block_call(*b, &[]))).collect();
        self.b.switch(state, to_default, calls);
        for block in states.into_iter().chain([default]) {
            self.enter(block, inner);
            self.inner();
            let one = self.int(Type::I32, 1);
            let left = self.op(Opcode::Sub, &[rounds, one]);
            let next = self.index(4);
            let mut again = vec![next, left];
            again.extend(self.operands(&carried));
            let leaving = self.operands(&carried);
            let zero = self.int(Type::I32, 0);
            let more = self.icmp(IntCC::Ne, left, zero);
            self.br(more, (header, &again), (exit, &leaving));
            self.rejoin(control);
        }
        self.rejoin(before);
        self.enter(exit, scope);
    }

    /// Two blocks that lead to each other and are both entered from outside.
    fn tangle(&mut self) {
        let carried = self.outgoing();
        let (before, scope) = (self.control, self.scope.len());
        let params: Vec<Type> = std::iter::once(Type::I32).chain(carried.iter().copied()).collect();
        let blocks = [self.block(&params), self.block(&params)];
        let exit = self.block(&carried);
        let rounds = 1 + self.rng.below(6) as i64;
        let rounds = self.int(Type::I32, rounds);
        let condition = self.condition(false);
        let mut first = vec![rounds];
        first.extend(self.operands(&carried));
        let mut second = vec![rounds];
        second.extend(self.operands(&carried));
        self.br(condition, (blocks[0], &first), (blocks[1], &second));
        for (index, block) in blocks.into_iter().enumerate() {
            self.enter(block, scope);
            self.inside(false);
            self.control.loops += 1;
            let left = self.b.func.dfg.block_params(block).first().copied().unwrap_or(rounds);
            self.inner();
            let one = self.int(Type::I32, 1);
            let left = self.op(Opcode::Sub, &[left, one]);
            let zero = self.int(Type::I32, 0);
            let more = self.icmp(IntCC::Sgt, left, zero);
            let mut again = vec![left];
            again.extend(self.operands(&carried));
            let leaving = self.operands(&carried);
            self.br(more, (blocks[1 - index], &again), (exit, &leaving));
            self.rejoin(before);
        }
        self.enter(exit, scope);
    }
}
