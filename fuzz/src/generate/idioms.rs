//! What has an instruction of its own, written by others: bits counted, folded and reversed by shifts and masks,
//! remainders that are compared or whose quotient is wanted too, magnitudes, saturation, averages. Now and then a constant
//! is a little wrong.

use ptxc_ir::{IntCC, Opcode, TargetOp, TargetOperand, Type, Value};

use super::body::{Body, mask};

impl Body<'_> {
    /// One of them.
    pub(super) fn idiom(&mut self) -> Value {
        let ty = self.pick(&[Type::I32, Type::I32, Type::I64], Type::I32);
        if self.features.find_nth && self.once_in(5) {
            return self.nth();
        }
        match self.rng.below(14) {
            9.. => self.rounded(),
            0 => self.ones(ty),
            1 => self.folded(ty),
            2 => self.exchanged(ty),
            3 | 4 if self.features.division => self.divided(),
            5 => self.magnitude(),
            6 => self.limited(),
            7 => self.averaged(),
            _ => self.lowest(ty),
        }
    }

    /// The n-th bit that is set, from a place on, up or down.
    fn nth(&mut self) -> Value {
        let word = self.operand(Type::I32);
        let word = if self.once_in(3) { self.masked(word, 0x0101_8011) } else { word };
        let place = [0, 0, 31, self.rng.below(32) as i64];
        let place = self.pick(&place, 0);
        let mut args = vec![word, self.int(Type::I32, place)];
        let number = match self.rng.below(3) {
            0 => {
                let number = self.operand(Type::I8);
                self.b.convert(Opcode::Sext, number, Type::I32)
            }
            _ => {
                let number = self.rng.below(21) as i64 - 10;
                self.int(Type::I32, number)
            }
        };
        args.push(number);
        let toks = ["fns", "b32"].into_iter().filter_map(ptxc_targets::Tok::from_text).collect();
        let operands = std::iter::once(TargetOperand::Result(0)).chain((0..3).map(TargetOperand::Arg)).collect();
        let inst = self.b.target(TargetOp::Known { toks, guard: None, operands }, &args, &[Type::I32]);
        self.b.func.dfg.result(inst, 0)
    }

    /// Ones in the low half of every field of `2 * bits`; rarely one less.
    fn fields(&mut self, bits: u32, width: u32) -> u128 {
        let kept = mask(width) / (mask(bits) + 2);
        if self.once_in(40) { kept & !(1 << self.rng.below(width as usize)) } else { kept }
    }

    /// Ones counted in fields that grow.
    fn ones(&mut self, ty: Type) -> Value {
        let width = ty.scalar_bits();
        let value = self.operand(ty);
        let mut counts = value;
        let by_product = self.once_in(2);
        let mut bits = 1;
        while bits < if by_product { 8 } else { width } {
            let kept = self.fields(bits, width);
            let upper = self.shift(Opcode::Lshr, counts, i64::from(bits));
            counts = match self.rng.below(3) {
                0 if bits == 1 => {
                    let upper = self.masked(upper, kept);
                    self.op(Opcode::Sub, &[counts, upper])
                }
                1 if bits >= 4 => {
                    let sum = self.op(Opcode::Add, &[upper, counts]);
                    self.masked(sum, kept)
                }
                _ => {
                    let (upper, lower) = (self.masked(upper, kept), self.masked(counts, kept));
                    self.op(Opcode::Add, &[lower, upper])
                }
            };
            bits *= 2;
        }
        if !by_product {
            return counts;
        }
        let ones = self.b.bits(ty, mask(width) / 255);
        let product = self.op(Opcode::Mul, &[counts, ones]);
        self.shift(Opcode::Lshr, product, i64::from(width) - 8)
    }

    /// The upper half folded onto the lower one, again and again.
    fn folded(&mut self, ty: Type) -> Value {
        let mut value = self.operand(ty);
        let mut by = ty.scalar_bits() / 2;
        while by > 0 {
            let moved = self.shift(Opcode::Lshr, value, i64::from(by));
            value = self.op(Opcode::Xor, &[value, moved]);
            by /= 2;
        }
        let kept = if self.once_in(8) { 3 } else { 1 };
        self.masked(value, kept)
    }

    /// Neighbouring fields exchanged, of several sizes.
    fn exchanged(&mut self, ty: Type) -> Value {
        let width = ty.scalar_bits();
        let mut value = self.operand(ty);
        let all = !self.once_in(3);
        let mut bits = 1;
        while bits < width {
            if all || !self.once_in(4) {
                let kept = self.fields(bits, width);
                let down = self.shift(Opcode::Lshr, value, i64::from(bits));
                let down = self.masked(down, kept);
                let low = self.masked(value, kept);
                let up = self.shift(Opcode::Shl, low, i64::from(bits));
                value = self.op(Opcode::Or, &[down, up]);
            }
            bits *= 2;
            if bits == 8 && self.once_in(3) {
                return self.op(Opcode::Bswap, &[value]);
            }
        }
        value
    }

    /// A remainder by a constant compared with a number, or a remainder beside its quotient.
    fn divided(&mut self) -> Value {
        let ty = self.pick(&[Type::I8, Type::I16, Type::I32, Type::I64], Type::I32);
        let width = ty.scalar_bits();
        let signed = self.once_in(2);
        let (div, rem) = if signed { (Opcode::Sdiv, Opcode::Srem) } else { (Opcode::Udiv, Opcode::Urem) };
        let a = self.operand(ty);
        if self.once_in(3) {
            let divisor = self.operand(ty);
            let divisor = self.masked(divisor, mask(width) >> 1);
            let one = self.int(ty, 1);
            let divisor = self.op(Opcode::Or, &[divisor, one]);
            let ops = if self.once_in(2) { [div, rem] } else { [rem, div] };
            let (first, second) = (self.op(ops[0], &[a, divisor]), self.op(ops[1], &[a, divisor]));
            return self.op(Opcode::Xor, &[first, second]);
        }
        let most = (mask(width) >> 1).min(1 << 20) as usize;
        let number = match self.rng.below(3) {
            0 => 2 + self.rng.below(20) as i64,
            1 => 1 << self.rng.below(width as usize - 1),
            _ => 2 + self.rng.below(most - 2) as i64,
        };
        let number = if signed && number > 1 && self.once_in(3) { -number } else { number };
        let divisor = self.int(ty, number);
        let wanted = if self.once_in(2) { 0 } else { self.rng.below(12) as i64 - if signed { 4 } else { 0 } };
        let wanted = self.int(ty, wanted);
        let rest = self.op(rem, &[a, divisor]);
        let cc = if self.once_in(2) { IntCC::Eq } else { IntCC::Ne };
        self.icmp(cc, rest, wanted)
    }

    /// The magnitude of a number by a choice or by its sign.
    fn magnitude(&mut self) -> Value {
        let ty = self.pick(&[Type::I16, Type::I32, Type::I64], Type::I32);
        let x = self.operand(ty);
        let last = i64::from(ty.scalar_bits()) - 1;
        let value = match self.rng.below(3) {
            0 => {
                let (zero, limit) = (self.int(ty, 0), self.rng.below(3) as i64 - 1);
                let limit = self.int(ty, limit);
                let negative = self.op(Opcode::Sub, &[zero, x]);
                let cc = self.pick(&[IntCC::Slt, IntCC::Sle], IntCC::Slt);
                let below = self.icmp(cc, x, limit);
                self.select(below, negative, x)
            }
            1 => {
                let sign = self.shift(Opcode::Ashr, x, last);
                let sum = self.op(Opcode::Add, &[x, sign]);
                self.op(Opcode::Xor, &[sum, sign])
            }
            _ => {
                let sign = self.shift(Opcode::Ashr, x, last);
                let changed = self.op(Opcode::Xor, &[x, sign]);
                self.op(Opcode::Sub, &[changed, sign])
            }
        };
        if self.once_in(2) {
            return value;
        }
        let zero = self.int(ty, 0);
        self.op(Opcode::Sub, &[zero, value])
    }

    /// Sums and differences that stay within limits.
    fn limited(&mut self) -> Value {
        if self.once_in(2) {
            let (a, b) = (self.operand(Type::I32), self.operand(Type::I32));
            let (x, y) = (self.convert(Opcode::Sext, a, Type::I64), self.convert(Opcode::Sext, b, Type::I64));
            let op = if self.once_in(2) { Opcode::Add } else { Opcode::Sub };
            let sum = self.op(op, &[x, y]);
            let (least, most) = (self.int(Type::I64, i32::MIN.into()), self.int(Type::I64, i32::MAX.into()));
            let low = self.op(Opcode::Smin, &[sum, most]);
            let both = self.op(Opcode::Smax, &[low, least]);
            return self.convert(Opcode::Trunc, both, Type::I32);
        }
        let ty = self.pick(&[Type::I16, Type::I32, Type::I64], Type::I32);
        let (a, b) = (self.operand(ty), self.operand(ty));
        let cc = self.pick(&[IntCC::Ult, IntCC::Ule, IntCC::Ugt, IntCC::Uge], IntCC::Ult);
        if self.once_in(2) {
            let sum = self.op(Opcode::Add, &[a, b]);
            let (lost, all) = (self.icmp(cc, sum, b), self.int(ty, -1));
            return self.select(lost, all, sum);
        }
        let rest = self.op(Opcode::Sub, &[a, b]);
        let (lost, zero) = (self.icmp(cc, a, b), self.int(ty, 0));
        if self.once_in(2) { self.select(lost, zero, rest) } else { self.select(lost, rest, zero) }
    }

    /// Half of a sum.
    fn averaged(&mut self) -> Value {
        let (a, b) = (self.operand(Type::I32), self.operand(Type::I32));
        let op = if self.once_in(3) { Opcode::Zext } else { Opcode::Sext };
        let (x, y) = (self.convert(op, a, Type::I64), self.convert(op, b, Type::I64));
        let sum = self.op(Opcode::Add, &[x, y]);
        let op = if self.once_in(2) { Opcode::Ashr } else { Opcode::Lshr };
        let half = self.shift(op, sum, 1);
        self.convert(Opcode::Trunc, half, Type::I32)
    }

    /// Counts that guard against zero, tests for one bit, low bits cleared.
    fn lowest(&mut self, ty: Type) -> Value {
        let width = ty.scalar_bits();
        let x = self.operand(ty);
        let (zero, minus) = (self.int(ty, 0), self.int(ty, -1));
        match self.rng.below(3) {
            0 => {
                let op = if self.once_in(2) { Opcode::Ctlz } else { Opcode::Cttz };
                let count = self.op(op, &[x]);
                let is_zero = self.icmp(IntCC::Eq, x, zero);
                let less = i64::from(self.once_in(4));
                let other = self.int(ty, i64::from(width) - less);
                self.select(is_zero, other, count)
            }
            1 => {
                let less = self.op(Opcode::Add, &[x, minus]);
                let rest = self.op(Opcode::And, &[x, less]);
                let (none, some) = (self.icmp(IntCC::Eq, rest, zero), self.icmp(IntCC::Ne, x, zero));
                self.op(Opcode::And, &[none, some])
            }
            _ => {
                let by = 1 + self.rng.below(8) as i64;
                let down = self.shift(Opcode::Lshr, x, by);
                let factor = self.int(ty, 1 << by);
                self.op(Opcode::Mul, &[down, factor])
            }
        }
    }
}
