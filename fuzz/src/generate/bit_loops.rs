//! Loops over the bits of a number: counts, parities, reversals, products with and without carries, places of the first and last
//! one, in several spellings, for all bits or some. Now and then a part is a little wrong.

use ptxc_ir::{Block, IntCC, Opcode, Type, Value};

use super::body::Body;

/// What a loop carries.
struct Carried {
    round: Value,
    up: Value,
    down: Value,
    sum: Value,
}

/// How the number that is read loses its bits.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    Down,
    Up,
    Clear,
}

impl Body<'_> {
    /// A loop over the bits of a number.
    pub(super) fn bit_loop(&mut self) {
        let ty = self.pick(&[Type::I32, Type::I32, Type::I64, Type::I16], Type::I32);
        let counter = self.pick(&[Type::I32, ty], Type::I32);
        let (before, scope) = (self.control, self.scope.len());
        let types = [counter, ty, ty, ty];
        let (header, exit) = (self.block_of(&types), self.block_of(&[counter, ty, ty]));
        let number = self.operand(ty);
        let first = [
            self.int(counter, 0),
            self.operand(ty),
            number,
            if self.once_in(2) { self.int(ty, 0) } else { self.operand(ty) },
        ];
        let change = self.pick(&[Change::Down, Change::Down, Change::Down, Change::Up, Change::Clear], Change::Down);
        let rounds = if self.once_in(3) { Some(1 + self.rng.below(ty.scalar_bits() as usize) as i64) } else { None };
        let rounds = rounds.or(self.once_in(3).then_some(i64::from(ty.scalar_bits())));
        let zero = self.int(ty, 0);
        // A search is without end for zero.
        let searches = rounds.is_none() && self.once_in(3) && change != Change::Clear;
        if searches || self.once_in(3) {
            let empty = self.icmp(IntCC::Eq, number, zero);
            self.b.br(empty, (exit, &[first[0], first[3], first[1]]), (header, &first));
        } else {
            self.b.jump(header, &first);
        }
        self.enter(header, scope);
        self.inside(false);
        let params = self.b.func.dfg.block_params(header).to_vec();
        let [round, up, down, sum] = params[..] else { return };
        let now = Carried { round, up, down, sum };
        if searches {
            self.search(&now, change, header, exit);
        } else if self.once_in(2) {
            let body = self.block_of(&[]);
            let more = self.goes_on(&now, rounds);
            self.b.br(more, (body, &[]), (exit, &[round, sum, up]));
            self.b.switch_to(body);
            let next = self.next(&now, change);
            self.b.jump(header, &[next.round, next.up, next.down, next.sum]);
        } else {
            let next = self.next(&now, change);
            let more = self.goes_on(&next, rounds);
            let again = [next.round, next.up, next.down, next.sum];
            let left = if self.once_in(2) { &now } else { &next };
            self.b.br(more, (header, &again), (exit, &[left.round, next.sum, left.up]));
        }
        self.rejoin(before);
        self.enter(exit, scope);
        // What the sum of the loop could have begun with.
        if self.once_in(2)
            && let Some(sum) = self.b.func.dfg.block_params(exit).get(1).copied()
        {
            let total = self.op(Opcode::Add, &[sum, first[1]]);
            self.keep(total);
        }
    }

    /// Until the lowest or highest bit is set.
    fn search(&mut self, now: &Carried, change: Change, header: Block, exit: Block) {
        let ty = self.b.ty(now.down);
        let zero = self.int(ty, 0);
        let found = if change == Change::Up {
            self.icmp(IntCC::Slt, now.down, zero)
        } else {
            let bit = self.masked(now.down, 1);
            self.icmp(IntCC::Ne, bit, zero)
        };
        let next = self.next(now, change);
        self.b.br(
            found,
            (exit, &[now.round, now.down, now.down]),
            (header, &[next.round, next.up, next.down, next.sum]),
        );
    }

    /// Whether there are rounds left, or bits.
    fn goes_on(&mut self, at: &Carried, rounds: Option<i64>) -> Value {
        if let Some(rounds) = rounds {
            let end = self.int(self.b.ty(at.round), rounds);
            let cc = self.pick(&[IntCC::Ult, IntCC::Slt], IntCC::Ult);
            return self.icmp(cc, at.round, end);
        }
        let ty = self.b.ty(at.down);
        let zero = self.int(ty, 0);
        self.icmp(IntCC::Ne, at.down, zero)
    }

    /// The next round.
    fn next(&mut self, now: &Carried, change: Change) -> Carried {
        let (ty, counter) = (self.b.ty(now.down), self.b.ty(now.round));
        let (one, minus) = (self.int(ty, 1), self.int(ty, -1));
        let down = match change {
            Change::Down => self.op(Opcode::Lshr, &[now.down, one]),
            Change::Up => self.op(Opcode::Shl, &[now.down, one]),
            Change::Clear => {
                let less = self.op(Opcode::Add, &[now.down, minus]);
                self.op(Opcode::And, &[now.down, less])
            }
        };
        let step = self.int(counter, 1);
        let round = self.op(Opcode::Add, &[now.round, step]);
        let up = self.op(Opcode::Shl, &[now.up, one]);
        let sum = self.added(now, change);
        Carried { round, up, down, sum }
    }

    /// The sum with what a bit adds to it.
    fn added(&mut self, now: &Carried, change: Change) -> Value {
        let ty = self.b.ty(now.down);
        let (zero, last) = (self.int(ty, 0), self.int(ty, i64::from(ty.scalar_bits()) - 1));
        let bit = if change == Change::Up {
            self.op(Opcode::Lshr, &[now.down, last])
        } else {
            let kept = if self.once_in(12) { 2 } else { 1 };
            self.masked(now.down, kept)
        };
        let op = self.pick(&[Opcode::Xor, Opcode::Xor, Opcode::Add, Opcode::Or], Opcode::Xor);
        let one = self.int(ty, 1);
        let sum = if self.once_in(3) { self.op(Opcode::Shl, &[now.sum, one]) } else { now.sum };
        if self.once_in(2) {
            return self.op(op, &[sum, bit]);
        }
        let copied = if sum == now.sum { now.up } else { self.operand(ty) };
        let copy = match self.rng.below(4) {
            0 => {
                let spread = self.op(Opcode::Sub, &[zero, bit]);
                self.op(Opcode::And, &[copied, spread])
            }
            1 => self.op(Opcode::Mul, &[copied, bit]),
            2 => {
                let set = self.icmp(IntCC::Ne, bit, zero);
                self.select(set, copied, zero)
            }
            _ => {
                let (clear, whole) = (self.icmp(IntCC::Eq, bit, zero), self.op(op, &[sum, copied]));
                return self.select(clear, sum, whole);
            }
        };
        self.op(op, &[sum, copy])
    }
}
