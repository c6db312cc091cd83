//! Products of 64 bits by words, sums that a flag decides, bytes and words that go into vectors, masks that are added, fields shifted alike.
//! Now and then a part is another one.

use ptxc_ir::{FloatCC, IntCC, Opcode, Type, Value};

use super::body::Body;

const WORD: u128 = u32::MAX as u128;

impl Body<'_> {
    /// One of them.
    pub(super) fn halves(&mut self) -> Value {
        match self.rng.below(7) {
            0 | 1 => self.product_by_words(),
            2 => self.sum_by_flag(),
            3 => self.bytes_put_in(),
            4 => self.added_masks(),
            5 => self.shifted_alike(),
            _ => self.sign_bits(),
        }
    }

    /// The low word of 64 bits.
    fn low(&mut self, value: Value) -> Value {
        if self.once_in(2) {
            return self.masked(value, WORD);
        }
        let word = self.convert(Opcode::Trunc, value, Type::I32);
        self.convert(Opcode::Zext, word, Type::I64)
    }

    /// Operands in any order.
    fn either(&mut self, op: Opcode, a: Value, b: Value) -> Value {
        if self.once_in(2) { self.op(op, &[a, b]) } else { self.op(op, &[b, a]) }
    }

    /// The upper or lower half of a product of 64 bits, or both.
    fn product_by_words(&mut self) -> Value {
        let (a, b) = (self.operand(Type::I64), self.operand(Type::I64));
        let [al, bl] = [a, b].map(|x| self.low(x));
        let [ah, bh] = [a, b].map(|x| self.shift(Opcode::Lshr, x, 32));
        let low = self.either(Opcode::Mul, al, bl);
        let (mut across, mut other) = (self.either(Opcode::Mul, al, bh), self.either(Opcode::Mul, ah, bl));
        if self.once_in(2) {
            (across, other) = (other, across);
        }
        if self.once_in(8) {
            other = across;
        }
        let high = self.either(Opcode::Mul, ah, bh);
        let carried = self.shift(Opcode::Lshr, low, 32);
        let (middle, upper) = match self.rng.below(3) {
            0 => {
                let first = self.either(Opcode::Add, across, carried);
                let below = self.low(first);
                let middle = self.either(Opcode::Add, other, below);
                let up = self.shift(Opcode::Lshr, first, 32);
                (middle, self.either(Opcode::Add, high, up))
            }
            1 => {
                let (x, y) = (self.low(across), self.low(other));
                let middle = self.either(Opcode::Add, x, y);
                let middle = self.either(Opcode::Add, middle, carried);
                let (x, y) = (self.shift(Opcode::Lshr, across, 32), self.shift(Opcode::Lshr, other, 32));
                let sum = self.either(Opcode::Add, x, y);
                (middle, self.either(Opcode::Add, high, sum))
            }
            _ => {
                let middle = self.either(Opcode::Add, other, carried);
                let below = self.low(across);
                let middle = self.either(Opcode::Add, middle, below);
                let up = self.shift(Opcode::Lshr, across, 32);
                (middle, self.either(Opcode::Add, high, up))
            }
        };
        let up = self.shift(Opcode::Lshr, middle, 32);
        let upper = self.either(Opcode::Add, upper, up);
        let up = self.shift(Opcode::Shl, middle, 32);
        let below = self.low(low);
        let lower = self.either(Opcode::Or, up, below);
        match self.rng.below(4) {
            0 => upper,
            1 => lower,
            2 => {
                let middle = self.either(Opcode::Add, across, other);
                let up = self.shift(Opcode::Shl, middle, 32);
                self.either(Opcode::Add, low, up)
            }
            _ => self.op(Opcode::Xor, &[upper, lower]),
        }
    }

    /// A sum or its first part, by a carry or any flag.
    fn sum_by_flag(&mut self) -> Value {
        let ty = self.pick(&[Type::I64, Type::I64, Type::I32], Type::I64);
        let (a, b) = (self.operand(ty), self.operand(ty));
        let sum = self.op(Opcode::Add, &[a, b]);
        let cc = self.pick(IntCC::ALL, IntCC::Ult);
        let cc = if self.once_in(2) { IntCC::Ult } else { cc };
        let with = if self.once_in(2) { b } else { a };
        let flag = self.icmp(cc, sum, with);
        let x = if self.once_in(2) { sum } else { self.operand(ty) };
        let one = self.int(ty, 1);
        let more = if self.once_in(2) { one } else { self.operand(ty) };
        let op = self.pick(&[Opcode::Add, Opcode::Sub], Opcode::Add);
        let changed = self.op(op, &[x, more]);
        if self.once_in(3) { self.select(flag, x, changed) } else { self.select(flag, changed, x) }
    }

    /// Bytes inserted into those of a word or of two.
    fn bytes_put_in(&mut self) -> Value {
        let ty = self.pick(&[Type::I64, Type::I32], Type::I64);
        let lanes = ty.scalar_bits() / 8;
        let number = self.operand(ty);
        let bytes = Type::I8.with_lanes(lanes);
        let mut vector = self.convert(Opcode::Bitcast, number, bytes);
        for _ in 0..1 + self.rng.below(3) {
            let word = self.operand(Type::I32);
            let byte =
                if self.once_in(4) { self.int(Type::I8, 0x5a) } else { self.convert(Opcode::Trunc, word, Type::I8) };
            let place = self.rng.below(lanes as usize) as i64;
            let place = self.int(Type::I32, place);
            vector = self.op(Opcode::Insert, &[vector, byte, place]);
        }
        let number = self.convert(Opcode::Bitcast, vector, ty);
        if self.once_in(2) { self.shift(Opcode::Lshr, number, 8) } else { number }
    }

    /// Words under masks that exclude each other, or nearly, added.
    fn added_masks(&mut self) -> Value {
        let (a, b, c) = (self.operand(Type::I32), self.operand(Type::I32), self.operand(Type::I32));
        let mask = self.rng.below(1 << 32) as u128;
        let (x, y) = if self.once_in(2) {
            let rest = if self.once_in(6) { !mask | 1 } else { !mask };
            (self.masked(a, mask), self.masked(b, rest & WORD))
        } else {
            let ones = self.int(Type::I32, -1);
            let other = self.op(Opcode::Xor, &[a, ones]);
            let other = if self.once_in(6) { a } else { other };
            (self.either(Opcode::And, a, b), self.either(Opcode::And, other, c))
        };
        let sum = self.either(Opcode::Add, x, y);
        let more = self.operand(Type::I32);
        if self.once_in(2) { self.op(Opcode::Xor, &[sum, more]) } else { sum }
    }

    /// Logic of words that are shifted alike.
    fn shifted_alike(&mut self) -> Value {
        let ty = self.pick(&[Type::I32, Type::I64], Type::I32);
        let op = self.pick(&[Opcode::Xor, Opcode::And, Opcode::Or], Opcode::Xor);
        let shift = self.pick(&[Opcode::Lshr, Opcode::Shl, Opcode::Ashr], Opcode::Lshr);
        let by = 1 + self.rng.below(30) as i64;
        let (a, b) = (self.operand(ty), self.operand(ty));
        let (x, y) = (self.shift(shift, a, by), self.shift(shift, b, by));
        let (p, q) = (self.operand(ty), self.operand(ty));
        let left = self.either(op, x, p);
        let right = if self.once_in(2) { self.either(op, y, q) } else { y };
        self.either(op, left, right)
    }

    /// A number whose sign is changed as a bit.
    fn sign_bits(&mut self) -> Value {
        let (int, float) = self.pick(&[(Type::I32, Type::F32), (Type::I64, Type::F64)], (Type::I32, Type::F32));
        let sign = 1u128 << (int.scalar_bits() - 1);
        let bits = self.operand(int);
        let (op, mask) =
            self.pick(&[(Opcode::And, sign - 1), (Opcode::Xor, sign), (Opcode::Or, sign)], (Opcode::Xor, sign));
        let mask = self.b.bits(int, mask);
        let changed = self.op(op, &[bits, mask]);
        let number = self.convert(Opcode::Bitcast, changed, float);
        let other = self.operand(int);
        let other = self.convert(Opcode::Bitcast, other, float);
        let flag = self.fcmp(FloatCC::Olt, number, other);
        let zero = self.int(int, 0);
        self.select(flag, bits, zero)
    }
}
