//! Rounding and saturation by masks and choices, ranges that are joined, masks and shifts in every order: what
//! `opt/src/combine_instructions/` and `isel/src/legalize/moved_masks.rs` know another way to. Now and then a constant is
//! a little wrong.

use ptxc_ir::{IntCC, Opcode, Type, Value};

use super::body::{Body, mask};

impl Body<'_> {
    /// One of them.
    pub(super) fn rounded(&mut self) -> Value {
        let ty = self.pick(&[Type::I32, Type::I32, Type::I64], Type::I32);
        match self.rng.below(9) {
            0 => self.copies(ty),
            1 => self.wrapped(ty),
            2 if self.features.division => self.floor(ty),
            3 => self.multiple(ty),
            4 => self.range(ty),
            5 => self.upper(ty),
            6 => self.bit_as_mask(ty),
            7 => self.moved_mask(ty),
            _ => self.within_word(),
        }
    }

    /// A number that is wrong by one now and then.
    fn about(&mut self, number: i64) -> i64 {
        if self.once_in(6) { number + 1 } else { number }
    }

    fn any_order(&mut self) -> IntCC {
        self.pick(&[IntCC::Ult, IntCC::Ule, IntCC::Ugt, IntCC::Uge, IntCC::Sge], IntCC::Ult)
    }

    /// A sum or difference with copies of a comparison.
    fn copies(&mut self, ty: Type) -> Value {
        let (a, b) = (self.operand(ty), self.operand(ty));
        let adds = self.once_in(2);
        let value = self.op(if adds { Opcode::Add } else { Opcode::Sub }, &[a, b]);
        let cc = self.any_order();
        let flag = if adds { self.icmp(cc, value, b) } else { self.icmp(cc, a, b) };
        let mut copies = self.convert(Opcode::Sext, flag, ty);
        if self.once_in(3) {
            let ones = self.int(ty, -1);
            copies = self.op(Opcode::Xor, &[copies, ones]);
        }
        self.op(if adds { Opcode::Or } else { Opcode::And }, &[value, copies])
    }

    /// A number less another where it is not smaller.
    fn wrapped(&mut self, ty: Type) -> Value {
        let s = self.operand(ty);
        let number = 1 + self.rng.below(200) as i64;
        let limit = if self.once_in(3) { self.operand(ty) } else { self.int(ty, number) };
        let taken = if self.once_in(6) { self.int(ty, number) } else { limit };
        let less = self.op(Opcode::Sub, &[s, taken]);
        let cc = self.any_order();
        let flag = self.icmp(cc, s, limit);
        if matches!(cc, IntCC::Ult | IntCC::Ule) { self.select(flag, s, less) } else { self.select(flag, less, s) }
    }

    /// A quotient or a remainder rounded down.
    fn floor(&mut self, ty: Type) -> Value {
        let a = self.operand(ty);
        let number = if self.once_in(2) { 1 << (1 + self.rng.below(20)) } else { 2 + self.rng.below(1000) as i64 };
        let by = self.int(ty, number);
        let rest = self.op(Opcode::Srem, &[a, by]);
        let more = self.about(number);
        let more = self.int(ty, more);
        let sum = self.op(Opcode::Add, &[rest, more]);
        let zero = self.int(ty, 0);
        match self.rng.below(3) {
            0 => self.op(Opcode::Srem, &[sum, by]),
            1 => {
                let negative = self.icmp(IntCC::Slt, rest, zero);
                self.select(negative, sum, rest)
            }
            _ => {
                let quotient = self.op(Opcode::Sdiv, &[a, by]);
                let one = self.int(ty, 1);
                let less = self.op(Opcode::Sub, &[quotient, one]);
                let negative = self.icmp(IntCC::Slt, rest, zero);
                self.select(negative, less, quotient)
            }
        }
    }

    /// A number less its low bits, or the next multiple.
    fn multiple(&mut self, ty: Type) -> Value {
        let x = self.operand(ty);
        let low = (1i64 << (1 + self.rng.below(10))) - 1;
        let low = self.about(low);
        let masked = self.masked(x, low as u128);
        if self.once_in(2) {
            return self.op(Opcode::Sub, &[x, masked]);
        }
        let step = self.about(low + 1);
        let step = self.int(ty, step);
        let sum = self.op(Opcode::Add, &[x, step]);
        let next = self.op(Opcode::Sub, &[sum, masked]);
        let zero = self.int(ty, 0);
        let whole = self.icmp(IntCC::Eq, masked, zero);
        self.select(whole, x, next)
    }

    /// A small number in one of two ranges, or in none.
    fn range(&mut self, ty: Type) -> Value {
        let x = self.operand(ty);
        let x = self.masked(x, 127);
        let start = self.rng.below(90) as i64;
        let count = 1 + self.rng.below(30) as i64;
        let next = match self.rng.below(3) {
            0 => self.about(start + count),
            1 => start ^ 32,
            _ => self.rng.below(90) as i64,
        };
        let other = if self.once_in(3) { 1 + self.rng.below(30) as i64 } else { count };
        let inside = self.once_in(2);
        let flags = [(start, count), (next, other)].map(|(start, count)| {
            let start = self.int(ty, -start);
            let moved = self.op(Opcode::Add, &[x, start]);
            let count = self.int(ty, count);
            self.icmp(if inside { IntCC::Ult } else { IntCC::Uge }, moved, count)
        });
        self.op(if inside { Opcode::Or } else { Opcode::And }, &flags)
    }

    /// Upper bits compared, or the sign of a part.
    fn upper(&mut self, ty: Type) -> Value {
        let (x, y) = (self.operand(ty), self.operand(ty));
        let by = 1 + self.rng.below(31) as i64;
        let other = self.about(by).min(31);
        let (p, q) = (self.shift(Opcode::Lshr, x, by), self.shift(Opcode::Lshr, y, other));
        let q = if self.once_in(2) { self.int(ty, 0) } else { q };
        let cc = if self.once_in(2) { IntCC::Eq } else { IntCC::Ne };
        self.icmp(cc, p, q)
    }

    /// The lowest or highest bit as a mask.
    fn bit_as_mask(&mut self, ty: Type) -> Value {
        let (x, y) = (self.operand(ty), self.operand(ty));
        let width = i64::from(ty.scalar_bits());
        if self.once_in(2) {
            let kept = self.about(1);
            let bit = self.masked(x, kept as u128);
            let zero = self.int(ty, 0);
            let copies = self.op(Opcode::Sub, &[zero, bit]);
            return self.op(Opcode::And, &[copies, y]);
        }
        let by = width - self.about(1);
        let bit = self.shift(Opcode::Lshr, x, by);
        let factor = self.rng.below(1 << 20) as i64;
        let factor = self.int(ty, factor);
        self.op(Opcode::Mul, &[bit, factor])
    }

    /// A mask before or behind a shift, in logic or as an amount.
    fn moved_mask(&mut self, ty: Type) -> Value {
        let (x, y) = (self.operand(ty), self.operand(ty));
        let width = ty.scalar_bits();
        if self.once_in(2) {
            let kept = self.rng.below(usize::MAX) as u128 & mask(width);
            let masked = self.masked(x, kept);
            let by = self.rng.below(width as usize) as i64;
            let op = if self.once_in(2) { Opcode::Shl } else { Opcode::Lshr };
            let shifted = self.shift(op, masked, by);
            let op = self.pick(&[Opcode::And, Opcode::Or, Opcode::Xor], Opcode::Or);
            return self.op(op, &[shifted, y]);
        }
        let by = 1 + self.rng.below(4) as i64;
        let kept = self.about(31 >> by);
        let amount = if self.once_in(2) {
            let number = self.masked(y, kept as u128);
            self.shift(Opcode::Shl, number, by)
        } else {
            let number = self.shift(Opcode::Shl, y, by);
            self.masked(number, (kept << by) as u128)
        };
        let amount = self.masked(amount, mask(5));
        let op = self.pick(&[Opcode::Shl, Opcode::Lshr, Opcode::Ashr], Opcode::Lshr);
        let shifted = self.op(op, &[x, amount]);
        if self.once_in(2) { self.masked(shifted, 255) } else { shifted }
    }

    /// 64 bits kept within 32.
    fn within_word(&mut self) -> Value {
        let x = self.operand(Type::I64);
        let far = self.rng.below(33) as i64;
        let x = self.shift(Opcode::Ashr, x, far);
        let value = if self.once_in(2) {
            let most = self.about(u32::MAX.into());
            let most = self.int(Type::I64, most);
            self.op(Opcode::Umin, &[x, most])
        } else {
            let (least, most) = (self.about(i32::MIN.into()), self.about(i32::MAX.into()));
            let limits = [(Opcode::Smin, most), (Opcode::Smax, least)];
            let order = if self.once_in(2) { [0, 1] } else { [1, 0] };
            order.into_iter().fold(x, |value, index| {
                let (op, limit) = limits[index];
                let limit = self.int(Type::I64, limit);
                self.op(op, &[value, limit])
            })
        };
        self.convert(Opcode::Trunc, value, Type::I32)
    }
}
