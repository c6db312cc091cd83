//! Switches on numbers of which only a few can occur: several cases lead to one block with different arguments, some cases
//! never come, the default may have arguments or never come.

use ptxc_ir::{Block, BlockCall, Extra, Flags, IntCC, Opcode, Type, Value};

use super::body::{Body, mask};

/// What the blocks of one such switch have in common.
struct Tangle {
    /// Blocks with their parameters; each leads to later ones and to the last, where all ends.
    blocks: Vec<(Block, Vec<Type>)>,
    /// Values that are passed, few, so that many targets pass the same.
    pool: Vec<Value>,
    /// The head of a loop around the switch, with its parameters, and what is left of the rounds.
    head: Option<(Block, Vec<Type>, Value)>,
}

impl Body<'_> {
    /// One such switch, in a loop perhaps.
    pub fn tangled_switch(&mut self, loops: bool) {
        let (before, scope) = (self.control, self.scope.len());
        let types = [Type::I32, Type::I64, Type::I1, Type::I16];
        let mut blocks: Vec<(Block, Vec<Type>)> = Vec::new();
        for _ in 0..2 + self.rng.below(3) {
            let params: Vec<Type> = (0..self.rng.below(4)).map(|_| self.pick(&types, Type::I32)).collect();
            blocks.push((self.b.append_block(), params));
        }
        for (block, params) in &blocks {
            for ty in params {
                self.b.block_param(*block, *ty);
            }
        }
        let mut pool: Vec<Value> = types.iter().flat_map(|ty| [self.operand(*ty), self.constant(*ty)]).collect();
        let mut head = None;
        if loops && self.once_in(3) {
            let params = vec![Type::I32, Type::I32, self.pick(&types, Type::I32)];
            let block = self.b.append_block();
            let values: Vec<Value> = params.iter().map(|ty| self.b.block_param(block, *ty)).collect();
            let rounds = 1 + self.rng.below(4) as i64;
            let rounds = self.int(Type::I32, rounds);
            let start = [rounds, self.operand(params[1]), self.operand(params[2])];
            self.b.jump(block, &start);
            self.enter(block, scope);
            self.control.loops += 1;
            let one = self.int(Type::I32, 1);
            let left = self.op(Opcode::Sub, &[values[0], one]);
            pool.extend(&values[1..]);
            head = Some((block, params, left));
        }
        self.inside(false);
        let tangle = Tangle { blocks, pool, head };
        let inner = self.scope.len();
        self.switch_on_few(&tangle, 0);
        let last = tangle.blocks.len() - 1;
        for at in 0..last {
            self.enter(tangle.blocks[at].0, inner);
            if self.once_in(2) {
                self.integer();
            }
            self.go_on(&tangle, at + 1);
        }
        self.rejoin(before);
        self.enter(tangle.blocks[last].0, scope);
    }

    /// A target from this number on, with arguments from the pool or, now and then, from what is in scope.
    fn tangled_target(&mut self, tangle: &Tangle, from: usize) -> BlockCall {
        let at = from + self.rng.below(tangle.blocks.len() - from);
        let (block, params) = &tangle.blocks[at];
        let args: Vec<Value> = params.iter().map(|ty| self.pooled(tangle, *ty)).collect();
        self.b.func.dfg.block_call(*block, &args)
    }

    fn pooled(&mut self, tangle: &Tangle, ty: Type) -> Value {
        let fits: Vec<Value> = tangle.pool.iter().copied().filter(|value| self.b.ty(*value) == ty).collect();
        match self.rng.pick(&fits).copied() {
            Some(value) if !self.once_in(8) => value,
            _ => self.operand(ty),
        }
    }

    /// Ends a block of the tangle: with a jump, a branch, another switch, or back to the head.
    fn go_on(&mut self, tangle: &Tangle, from: usize) {
        match self.rng.below(5) {
            0 if from + 1 < tangle.blocks.len() => self.switch_on_few(tangle, from),
            1 | 2 if tangle.head.is_some() => {
                let Some((head, params, left)) = &tangle.head else { return };
                let zero = self.int(Type::I32, 0);
                let more = self.icmp(IntCC::Sgt, *left, zero);
                let mut again = vec![*left];
                for ty in &params[1..] {
                    again.push(self.pooled(tangle, *ty));
                }
                let then = self.b.func.dfg.block_call(*head, &again);
                let other = self.tangled_target(tangle, from);
                self.two_ways(more, then, other);
            }
            3 => {
                let condition = self.condition(false);
                let (then, other) = (self.tangled_target(tangle, from), self.tangled_target(tangle, from));
                self.two_ways(condition, then, other);
            }
            _ => {
                let target = self.tangled_target(tangle, from);
                self.b.inst(Opcode::Jump, Flags::EMPTY, Type::INVALID, &[], Extra::Jump(target));
            }
        }
    }

    fn two_ways(&mut self, condition: Value, then: BlockCall, other: BlockCall) {
        let extra = Extra::Branch { then, other, weights: (0, 0) };
        self.b.inst(Opcode::Br, Flags::EMPTY, Type::INVALID, &[condition], extra);
    }

    /// Ends the block with a switch on a number of which few bits are unknown.
    fn switch_on_few(&mut self, tangle: &Tangle, from: usize) {
        let ty = self.pick(&[Type::I32, Type::I32, Type::I64, Type::I8, Type::I16], Type::I32);
        let (value, possible) = self.few(ty);
        // All that occur, all but a run of neighbours, or some.
        let style = self.rng.below(4);
        let (first, count) = (self.rng.below(possible.len()), 1 + self.rng.below(3));
        let mut numbers: Vec<u128> = Vec::new();
        for (at, number) in possible.iter().enumerate() {
            let left_out = match style {
                0 => false,
                1 | 2 => (first..first + count).contains(&at),
                _ => self.once_in(4),
            };
            if !left_out {
                numbers.push(*number);
            }
        }
        let all_named = numbers.len() == possible.len();
        for _ in 0..self.rng.below(3) {
            // Numbers that do not occur.
            let number = self.rng.below(20) as u128;
            let number = if self.once_in(6) { mask(ty.scalar_bits()) - number } else { number };
            if !possible.contains(&number) {
                numbers.push(number);
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        if self.once_in(2) {
            numbers.reverse();
        }
        let mut cases: Vec<(u128, BlockCall)> = Vec::new();
        for number in numbers {
            cases.push((number, self.tangled_target(tangle, from)));
        }
        if all_named && self.once_in(2) {
            let never = self.b.append_block();
            let default = self.b.func.dfg.block_call(never, &[]);
            self.b.switch(value, default, cases);
            self.b.switch_to(never);
            self.b.inst(Opcode::Unreachable, Flags::EMPTY, Type::INVALID, &[], Extra::None);
            return;
        }
        let default = self.tangled_target(tangle, from);
        self.b.switch(value, default, cases);
    }

    /// A value with one to three unknown bits, and what it may be.
    fn few(&mut self, ty: Type) -> (Value, Vec<u128>) {
        let width = ty.scalar_bits();
        let value = self.operand(ty);
        if self.once_in(5) {
            let bits = 1 + self.rng.below(3) as u32;
            let amount = self.int(ty, i64::from(width - bits));
            return (self.op(Opcode::Lshr, &[value, amount]), (0..1 << bits).collect());
        }
        let mut free = self.pick(&[1u128, 3, 7, 7, 2, 5, 6, 12, 9, 14], 7);
        if self.once_in(6) {
            free |= 1 << (width - 1);
        }
        let mut value = self.masked(value, free);
        let fixed = if self.once_in(3) { self.rng.below(16) as u128 & !free } else { 0 };
        if fixed != 0 {
            let fixed = self.b.bits(ty, fixed);
            value = self.op(Opcode::Or, &[value, fixed]);
        }
        let possible = (0..16u128).flat_map(|low| [low, low | 1 << (width - 1)]).filter(|n| n & !free == 0);
        let mut possible: Vec<u128> = possible.map(|number| number | fixed).collect();
        possible.sort_unstable();
        possible.dedup();
        (value, possible)
    }
}
