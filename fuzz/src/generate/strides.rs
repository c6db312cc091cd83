//! Loops whose addresses grow evenly.

use ptxc_ir::{Extra, Flags, IntCC, MemAttrs, MemType, Opcode, Space, Type, Value};

use super::body::{Area, Body};

/// Most rounds of such a loop.
const ROUNDS: u64 = 3;

/// A counter whose values, as an extension reads them, are places in an area plus `less`.
#[derive(Clone, Copy)]
struct Counter {
    ty: Type,
    start: i64,
    step: i64,
    /// What the addition promises, and keeps.
    flags: Flags,
    extension: Opcode,
    less: i64,
}

impl Body<'_> {
    /// One to three of the loops. False when there is no memory.
    pub fn strides(&mut self) -> bool {
        let count = 1 + self.rng.below(3);
        (0..count).all(|_| self.stride())
    }

    /// A loop of up to three rounds, or none, whose counter is the index of accesses: one that goes up or down, passes zero
    /// or the greatest signed number, or wraps. Another one, that promises nothing, ends the loop.
    fn stride(&mut self) -> bool {
        let fits = |area: &Area| area.size >= 16 && area.home != Space::Param;
        let Some(area) = self.area(fits) else { return false };
        let counter = self.counter(area.size / 4);
        let (before, scope) = (self.control, self.scope.len());
        let asked = self.operand(Type::I32);
        let rounds = self.masked(asked, 1);
        let rounds = if self.once_in(2) { self.op_imm(Opcode::Add, rounds, ROUNDS as i64 - 1) } else { rounds };
        let factor = self.operand(Type::I32);
        let factor = self.masked(factor, 1);
        let first = self.int(counter.ty, counter.start);
        let (zero, sum) = (self.int(Type::I32, 0), self.operand(Type::I32));
        let [head, exit] = [vec![counter.ty, Type::I32, Type::I32], vec![Type::I32, counter.ty]].map(|types| {
            let block = self.b.append_block();
            for ty in types {
                self.b.block_param(block, ty);
            }
            block
        });
        if self.once_in(3) {
            let some = self.icmp(IntCC::Ne, rounds, zero);
            self.b.br(some, (head, &[first, zero, sum]), (exit, &[sum, first]));
        } else {
            self.b.jump(head, &[first, zero, sum]);
        }
        self.enter(head, scope);
        self.inside(false);
        self.control.loops += 1;
        let params = self.b.func.dfg.block_params(head).to_vec();
        let [i, k, s] = [0, 1, 2].map(|at| params.get(at).copied().unwrap_or(zero));
        let index = self.place(&counter, i, factor);
        let at = self.word_at(&area, index);
        let mut sum = self.access_word(at, area.private, s);
        if self.once_in(2) {
            let again = self.word_at(&area, index);
            sum = self.access_word(again, area.private, sum);
        }
        let step = self.int(counter.ty, counter.step);
        let next = self.b.binary_flags(Opcode::Add, counter.flags, i, step);
        let next_k = self.op_imm(Opcode::Add, k, 1);
        let more = self.icmp(IntCC::Slt, next_k, rounds);
        let left = if self.once_in(3) { i } else { next };
        self.b.br(more, (head, &[next, next_k, sum]), (exit, &[sum, left]));
        self.rejoin(before);
        self.enter(exit, scope);
        self.scope.truncate(scope);
        let out = self.b.func.dfg.block_params(exit).to_vec();
        out.into_iter().for_each(|value| self.keep(value));
        true
    }

    fn op_imm(&mut self, op: Opcode, value: Value, number: i64) -> Value {
        let ty = self.b.ty(value);
        let number = self.int(ty, number);
        self.op(op, &[value, number])
    }

    /// A counter over so many places, at least four.
    fn counter(&mut self, places: u64) -> Counter {
        let ty = self.pick(&[Type::I8, Type::I16, Type::I32, Type::I64], Type::I32);
        let highest = 1i64 << (ty.bits().min(63) - 1);
        let both = Flags::NSW | Flags::NUW;
        let plain = Counter { ty, start: 0, step: 1, flags: both, extension: Opcode::Zext, less: 0 };
        let mut counter = match self.rng.below(6) {
            0 => Counter { flags: Flags::NSW, start: -2, extension: Opcode::Sext, less: -2, ..plain },
            1 if ty != Type::I64 => Counter { flags: Flags::NUW, start: highest - 2, less: highest - 2, ..plain },
            2 => Counter { flags: Flags::NSW, start: 3, step: -1, ..plain },
            // Around: 2, 3, 0, and places of three bits in threes.
            3 if self.features.odd_ints => Counter { ty: Type::int(2), flags: Flags::EMPTY, start: 2, ..plain },
            4 if self.features.odd_ints && places >= 8 => {
                Counter { ty: Type::int(3), flags: Flags::EMPTY, start: 5, step: 2, ..plain }
            }
            _ => plain,
        };
        if counter.extension == Opcode::Zext
            && counter.less == 0
            && counter.flags.contains(Flags::NSW)
            && self.once_in(2)
        {
            counter.extension = Opcode::Sext;
        }
        // Some promise nothing.
        if !self.features.flags || self.once_in(4) {
            counter.flags = Flags::EMPTY;
        }
        counter
    }

    /// The place that a counter stands for: extended, less what it begins at, perhaps times a number that is zero or one.
    fn place(&mut self, counter: &Counter, i: Value, factor: Value) -> Value {
        let wide = counter.ty == Type::I64;
        let scaled = self.features.flags && counter.less == 0 && counter.ty == Type::I32 && self.once_in(2);
        let i = if scaled {
            let flags = if counter.extension == Opcode::Zext { Flags::NUW } else { Flags::NSW };
            self.b.binary_flags(Opcode::Mul, flags, i, factor)
        } else {
            i
        };
        let index = if wide { i } else { self.convert(counter.extension, i, Type::I64) };
        if counter.less == 0 { index } else { self.op_imm(Opcode::Add, index, -counter.less) }
    }

    /// The address of a word of an area.
    fn word_at(&mut self, area: &Area, index: Value) -> Value {
        match self.rng.below(3) {
            0 => self.b.gep(MemType::Value(Type::I32), area.base, &[index]),
            1 => {
                let bytes = self.op_imm(Opcode::Shl, index, 2);
                self.b.gep(MemType::Value(Type::I8), area.base, &[bytes])
            }
            _ => {
                let bytes = self.op_imm(Opcode::Mul, index, 4);
                self.b.gep(MemType::Value(Type::I8), area.base, &[bytes])
            }
        }
    }

    /// Loads a word and adds it to a sum; where it may, stores that.
    fn access_word(&mut self, at: Value, private: bool, sum: Value) -> Value {
        let mem = MemAttrs::aligned(4);
        let loaded = self.b.load(Type::I32, at, mem);
        self.loaded.insert(loaded);
        let sum = self.emit(Opcode::Xor, Flags::EMPTY, Type::I32, &[sum, loaded], Extra::None);
        let sum = self.op_imm(Opcode::Mul, sum, 0x9e37_79b1);
        if private && self.once_in(2) {
            self.b.store(sum, at, mem);
        }
        sum
    }
}
