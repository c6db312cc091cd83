//! Instructions of their own as others spell them: rotations and pairs that are shifted, low bits, the highest bit, wide products
//! of narrow ones, minima of lanes, bytes that are permuted again and again and added up. Now and then a constant is a little wrong.

use ptxc_ir::{Extra, Flags, IntCC, Opcode, TargetOp, TargetOperand, Type, Value};

use super::body::{Body, mask};

impl Body<'_> {
    /// One of them.
    pub(super) fn spelled(&mut self) -> Value {
        match self.rng.below(8) {
            0 => self.two_shifts(),
            1 => self.product_twice(),
            2 => self.safe_pair(),
            3 => self.low_bits(),
            4 => self.highest_bit(),
            5 => self.extended_product(),
            6 => self.chosen_lanes(),
            _ if self.once_in(2) => self.permuted(),
            _ => self.added_bytes(),
        }
    }

    fn joined(&mut self, a: Value, b: Value) -> Value {
        let op = self.pick(&[Opcode::Or, Opcode::Or, Opcode::Xor, Opcode::Add], Opcode::Or);
        if self.once_in(2) { self.op(op, &[a, b]) } else { self.op(op, &[b, a]) }
    }

    /// Shifts to both sides by amounts that make 64.
    fn two_variable_shifts(&mut self) -> Value {
        let ty = Type::I64;
        let a = self.operand(ty);
        let b = if self.once_in(3) { self.operand(ty) } else { a };
        let narrow = self.pick(&[ty, Type::I32], ty);
        let number = self.operand(narrow);
        let mut amount = self.masked(number, 63);
        let rest = if self.once_in(3) {
            // Some bits, so that nothing has to be masked.
            let one = self.int(narrow, 1);
            amount = self.op(Opcode::Or, &[amount, one]);
            let all = self.int(narrow, 64);
            self.op(Opcode::Sub, &[all, amount])
        } else {
            let from = self.pick(&[64, 64, 0, 63], 64);
            let from = self.int(narrow, from);
            let less = if self.once_in(2) { amount } else { number };
            let rest = self.op(Opcode::Sub, &[from, less]);
            self.masked(rest, 63)
        };
        let amounts = [amount, rest].map(|by| if narrow == ty { by } else { self.convert(Opcode::Zext, by, ty) });
        let (first, second) = if self.once_in(2) { (Opcode::Shl, Opcode::Lshr) } else { (Opcode::Lshr, Opcode::Shl) };
        let (x, y) = (self.op(first, &[a, amounts[0]]), self.op(second, &[b, amounts[1]]));
        self.joined(x, y)
    }

    /// Shifts to both sides by constants that make the width.
    fn two_shifts(&mut self) -> Value {
        if self.once_in(3) {
            return self.two_variable_shifts();
        }
        let ty = self.pick(&[Type::I64, Type::I64, Type::I32, Type::I16], Type::I64);
        let width = ty.scalar_bits() as i64;
        let left = if self.once_in(3) { width / 2 } else { 1 + self.rng.below(width as usize - 1) as i64 };
        let right = if self.once_in(8) { (width - left - 1).max(0) } else { width - left };
        let a = self.operand(ty);
        let b = if self.once_in(2) { a } else { self.operand(ty) };
        let (up, down) = (self.shift(Opcode::Shl, a, left), self.shift(Opcode::Lshr, b, right));
        let whole = self.joined(up, down);
        if self.once_in(3) { self.masked(whole, mask(ty.scalar_bits()) >> 5) } else { whole }
    }

    /// A rotated product whose factor was moved.
    fn product_twice(&mut self) -> Value {
        let ty = self.pick(&[Type::I64, Type::I32], Type::I64);
        let width = ty.scalar_bits();
        let a = self.operand(ty);
        let factor = (self.rng.below(usize::MAX) as u128 | 1) & mask(width);
        let left = 1 + self.rng.below(width as usize - 1) as u32;
        let moved = (factor << left) & mask(width);
        let moved = if self.once_in(8) { moved ^ 1 << self.rng.below(width as usize) } else { moved };
        let (factor, moved) = (self.b.bits(ty, factor), self.b.bits(ty, moved));
        let product = self.op(Opcode::Mul, &[a, factor]);
        let low = self.shift(Opcode::Lshr, product, i64::from(width - left));
        let high = self.op(Opcode::Mul, &[a, moved]);
        self.joined(high, low)
    }

    /// A pair shifted by an amount that may be zero.
    fn safe_pair(&mut self) -> Value {
        let (a, b) = (self.operand(Type::I32), self.operand(Type::I32));
        let number = self.operand(Type::I32);
        let amount = self.masked(number, 31);
        let last = self.pick(&[31, 31, 31, 31, 15], 31);
        let last = self.int(Type::I32, last);
        let rest = match self.rng.below(3) {
            0 => self.op(Opcode::Xor, &[amount, last]),
            1 => {
                let rest = self.op(Opcode::Sub, &[last, amount]);
                self.masked(rest, 31)
            }
            _ => {
                let ones = self.int(Type::I32, -1);
                let inverted = self.op(Opcode::Xor, &[number, ones]);
                self.masked(inverted, 31)
            }
        };
        let (far, near) = if self.once_in(2) { (Opcode::Lshr, Opcode::Shl) } else { (Opcode::Shl, Opcode::Lshr) };
        let first = self.shift(far, b, 1);
        let (up, down) = (self.op(near, &[a, amount]), self.op(far, &[first, rest]));
        self.joined(up, down)
    }

    /// Low bits of a number by a mask, or the mask alone, or moved.
    fn low_bits(&mut self) -> Value {
        let ty = Type::I32;
        let (value, number) = (self.operand(ty), self.operand(ty));
        let count = self.masked(number, 31);
        let (one, ones) = (self.int(ty, 1), self.int(ty, -1));
        let kept = match self.rng.below(3) {
            0 => {
                let bit = self.op(Opcode::Shl, &[one, count]);
                self.op(Opcode::Add, &[bit, ones])
            }
            1 => {
                let above = self.op(Opcode::Shl, &[ones, count]);
                self.op(Opcode::Xor, &[above, ones])
            }
            _ => {
                // From one bit to all.
                let count = self.op(Opcode::Add, &[count, one]);
                let all = self.int(ty, 32);
                let rest = self.op(Opcode::Sub, &[all, count]);
                self.op(Opcode::Lshr, &[ones, rest])
            }
        };
        match self.rng.below(5) {
            0 => kept,
            1 => {
                let by = self.masked(value, 31);
                self.op(Opcode::Shl, &[kept, by])
            }
            2 => {
                let (other, not) = (self.operand(ty), self.op(Opcode::Xor, &[kept, ones]));
                let (low, high) = (self.op(Opcode::And, &[value, kept]), self.op(Opcode::And, &[not, other]));
                self.op(Opcode::Or, &[low, high])
            }
            _ => {
                let low = if self.once_in(2) { [value, kept] } else { [kept, value] };
                let low = self.op(Opcode::And, &low);
                if self.once_in(3) { self.joined(low, number) } else { low }
            }
        }
    }

    /// The place of the highest bit, or of the highest that differs from the sign; what there is without one may be asked for.
    fn highest_bit(&mut self) -> Value {
        let ty = Type::I32;
        let value = self.operand(ty);
        let number = if self.once_in(2) {
            let by = if self.once_in(6) { 30 } else { 31 };
            let sign = self.shift(Opcode::Ashr, value, by);
            if self.once_in(2) { self.op(Opcode::Xor, &[value, sign]) } else { self.op(Opcode::Xor, &[sign, value]) }
        } else {
            value
        };
        let count = self.op(Opcode::Ctlz, &[number]);
        let last = self.int(ty, 31);
        let place = match self.rng.below(3) {
            0 => count,
            1 => self.op(Opcode::Xor, &[count, last]),
            _ => self.op(Opcode::Sub, &[last, count]),
        };
        if self.once_in(2) {
            return place;
        }
        let (zero, nothing) = (self.int(ty, 0), self.pick(&[-1, -1, -1, 0], -1));
        let nothing = self.int(ty, nothing);
        let none = self.icmp(IntCC::Eq, number, zero);
        self.select(none, nothing, place)
    }

    /// A product of 32 bits that fits, extended.
    fn extended_product(&mut self) -> Value {
        let signed = self.once_in(2);
        let (extension, flag) = if signed { (Opcode::Sext, Flags::NSW) } else { (Opcode::Zext, Flags::NUW) };
        let narrow = [(); 2].map(|()| self.operand(Type::I16));
        let [a, b] = narrow.map(|value| self.convert(extension, value, Type::I32));
        let product = match self.rng.below(3) {
            0 => {
                let by = 1 + self.rng.below(15) as i64;
                let by = self.int(Type::I32, by);
                self.emit(Opcode::Shl, flag, Type::I32, &[a, by], Extra::None)
            }
            // Without the promise now and then.
            1 => self.op(Opcode::Mul, &[a, b]),
            _ => self.emit(Opcode::Mul, flag, Type::I32, &[a, b], Extra::None),
        };
        let wide = self.convert(extension, product, Type::I64);
        if self.once_in(2) {
            return wide;
        }
        let more = self.operand(Type::I64);
        self.op(Opcode::Add, &[wide, more])
    }

    /// Both halves of two words, computed apart and put together.
    fn apart_lanes(&mut self) -> Value {
        let (a, b) = (self.operand(Type::I32), self.operand(Type::I32));
        let op = self.pick(&[Opcode::Add, Opcode::Smin, Opcode::Smax, Opcode::Umin, Opcode::Umax], Opcode::Add);
        let signed = matches!(op, Opcode::Smin | Opcode::Smax) != self.once_in(8);
        let (down, extend) = if signed { (Opcode::Ashr, Opcode::Sext) } else { (Opcode::Lshr, Opcode::Zext) };
        let narrow = self.once_in(2);
        let mut upper = Vec::new();
        let mut lower = Vec::new();
        for word in [a, b] {
            let high = self.shift(down, word, 16);
            let half = self.convert(Opcode::Trunc, word, Type::I16);
            if narrow {
                upper.push(self.convert(Opcode::Trunc, high, Type::I16));
                lower.push(half);
            } else {
                upper.push(high);
                let whole = op == Opcode::Add && self.once_in(2);
                lower.push(if whole { word } else { self.convert(extend, half, Type::I32) });
            }
        }
        if self.once_in(4) {
            let ty = self.b.ty(upper[0]);
            let (x, y) = (self.rng.below(40000) as i64 - 20000, self.rng.below(40000) as i64 - 20000);
            (upper[1], lower[1]) = (self.int(ty, x), self.int(ty, y));
        }
        let (mut high, mut low) = (self.op(op, &upper), self.op(op, &lower));
        if narrow {
            (high, low) = (self.convert(Opcode::Zext, high, Type::I32), self.convert(Opcode::Zext, low, Type::I32));
        } else if !self.once_in(4) || op != Opcode::Umin {
            low = self.masked(low, 0xffff);
        }
        let high = self.shift(Opcode::Shl, high, 16);
        self.op(Opcode::Or, &[high, low])
    }

    /// Lanes chosen by a comparison of them, or by their sign.
    fn chosen_lanes(&mut self) -> Value {
        if self.once_in(3) {
            return self.apart_lanes();
        }
        let types = [Type::I16.with_lanes(2), Type::I8.with_lanes(4), Type::I16.with_lanes(4), Type::I32.with_lanes(2)];
        let ty = self.pick(&types, types[0]);
        let (a, b) = (self.operand(ty), self.operand(ty));
        if self.once_in(3) {
            let zero = self.int(ty, 0);
            let negative = self.icmp(IntCC::Slt, a, zero);
            let op = if self.once_in(2) { Opcode::Sext } else { Opcode::Zext };
            return self.convert(op, negative, ty);
        }
        let cc = self.pick(IntCC::ALL, IntCC::Slt);
        let holds = self.icmp(cc, a, b);
        let c = self.operand(ty);
        let (x, y) = self.pick(&[(a, b), (b, a), (a, b), (b, a), (a, c)], (a, b));
        self.select(holds, x, y)
    }

    /// Permutations of the bytes of words, of each other.
    fn permuted(&mut self) -> Value {
        let mut words = vec![self.operand(Type::I32), self.operand(Type::I32)];
        for _ in 0..2 + self.rng.below(3) {
            let first = words[0];
            let (a, b) = (self.pick(&words, first), self.pick(&words, first));
            // Signs now and then.
            let signs = if self.once_in(3) { 0xffff } else { 0x7777 };
            let selector = self.rng.below(0x1_0000) as i64 & signs;
            let selector = self.int(Type::I32, selector);
            let toks = ["prmt", "b32"].into_iter().filter_map(ptxc_targets::Tok::from_text).collect();
            let operands = std::iter::once(TargetOperand::Result(0)).chain((0..3).map(TargetOperand::Arg)).collect();
            let op = TargetOp::Known { toks, guard: None, operands };
            let inst = self.b.target(op, &[a, b, selector], &[Type::I32]);
            let mut word = self.b.func.dfg.result(inst, 0);
            if self.once_in(4) {
                word = self.shift(Opcode::Lshr, word, 8);
            } else if self.once_in(4) {
                word = self.masked(word, 0xff00_ffff);
            }
            words.push(word);
        }
        words.last().copied().unwrap_or(words[0])
    }

    /// Bytes of words, added up.
    fn added_bytes(&mut self) -> Value {
        let words = [self.operand(Type::I32), self.operand(Type::I32)];
        let signed = self.once_in(2);
        let shift = if signed { Opcode::Ashr } else { Opcode::Lshr };
        let mut sum = if self.once_in(2) { self.operand(Type::I32) } else { self.int(Type::I32, 0) };
        for index in 0..2 + self.rng.below(5) {
            let word = if self.once_in(5) { words[1] } else { words[0] };
            let place = if self.once_in(6) { self.rng.below(4) as i64 } else { index as i64 % 4 };
            let byte = if self.once_in(2) {
                let top = self.shift(Opcode::Shl, word, 24 - 8 * place);
                self.shift(shift, top, 24)
            } else {
                let low = self.shift(Opcode::Lshr, word, 8 * place);
                let low = self.convert(Opcode::Trunc, low, Type::I8);
                self.convert(if signed { Opcode::Sext } else { Opcode::Zext }, low, Type::I32)
            };
            sum = self.op(Opcode::Add, &[sum, byte]);
        }
        sum
    }
}
