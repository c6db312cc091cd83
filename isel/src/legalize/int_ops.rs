//! Integer operations on `i16`, `i32` and `i64` that PTX has no instruction for.
//!
//! 16-bit ones are done in 32 bits as numbers of 16 bits in a container; here are the 32- and 64-bit ones, which have no
//! bits to spare.

use ptxc_ir::{Flags, Inst, IntCC, Opcode, Shape, Type, Value};

use super::context::Context;
use crate::rules::Pattern;

impl Context<'_> {
    /// Replaces an integer operation that is not legal.
    pub fn expand_integer(&mut self, inst: Inst) {
        let data = self.func.dfg.insts[inst].clone();
        let args = self.args(inst);
        let result = if data.ty == Type::I16 {
            self.expand_short(data.op, &args)
        } else if matches!(data.op, Opcode::Fshl | Opcode::Fshr) {
            self.funnel64(data.op, args[0], args[1], args[2])
        } else if data.op == Opcode::Clmul {
            self.carryless_product(args[0], args[1])
        } else if data.op.shape() == Shape::Binary {
            self.expand_saturating(data.op, args[0], args[1])
        } else {
            self.error(format!("internal: no expansion of {} {}", data.op.text(), data.ty));
            args[0]
        };
        self.replace(inst, &[result]);
    }

    /// A 16-bit operation in 32 bits.
    fn expand_short(&mut self, op: Opcode, args: &[Value]) -> Value {
        self.note(Pattern::LegalShort);
        let wide: smallvec::SmallVec<[Value; 3]> = args.iter().map(|v| self.resize(*v, Type::I32)).collect();
        for value in &wide {
            self.fits_unsigned(*value, 16);
        }
        let result = match wide[..] {
            [a] => self.narrow_unary(op, 16, a),
            [a, b] => self.narrow_binary(op, 16, a, b),
            [a, b, c] => self.narrow_funnel(op, 16, a, b, c),
            _ => args[0],
        };
        self.resize(result, Type::I16)
    }

    /// A 64-bit funnel shift by two 32-bit ones on the three words that can reach the result.
    fn funnel64(&mut self, op: Opcode, a: Value, b: Value, amount: Value) -> Value {
        self.note(Pattern::LegalFunnel64);
        let word = |this: &mut Self, value: Value| -> (Value, Value) {
            let shifted = this.bin_imm(Opcode::Lshr, value, 32);
            if this.func.dfg.as_bits(value).is_some() {
                let low = this.conv(Opcode::Trunc, value, Type::I32);
                return (low, this.conv(Opcode::Trunc, shifted, Type::I32));
            }
            let words = this.bitcast(value, Type::I32.with_lanes(2));
            (this.extract(words, 0), this.extract(words, 1))
        };
        let (a, b) = (word(self, a), word(self, b));
        let amount = self.conv(Opcode::Trunc, amount, Type::I32);
        let beyond = self.bin_imm(Opcode::And, amount, 32);
        let far = self.icmp_imm(IntCC::Ne, beyond, 0);
        let choose = |this: &mut Self, yes: [Value; 3], no: [Value; 3]| -> [Value; 3] {
            [0, 1, 2].map(|i| this.select(far, yes[i], no[i]))
        };
        // From the most to the least significant word.
        let [high, middle, low] = if op == Opcode::Fshl {
            choose(self, [a.0, b.1, b.0], [a.1, a.0, b.1])
        } else {
            choose(self, [a.1, a.0, b.1], [a.0, b.1, b.0])
        };
        let upper = self.funnel32(op, high, middle, amount);
        let lower = self.funnel32(op, middle, low, amount);
        let words = self.vector(Type::I32.with_lanes(2), &[lower, upper]);
        self.bitcast(words, Type::I64)
    }

    fn funnel32(&mut self, op: Opcode, a: Value, b: Value, amount: Value) -> Value {
        if let Some(k) = self.func.dfg.as_bits(amount)
            && k % 32 == 0
        {
            return if op == Opcode::Fshl { a } else { b };
        }
        self.tern(op, Flags::EMPTY, a, b, amount)
    }

    /// Product without carries of 32 or 64 bits: in 64 where the target has it, else a copy of one factor for each bit of
    /// the other.
    fn carryless_product(&mut self, a: Value, b: Value) -> Value {
        self.note(Pattern::LegalCarryless);
        let ty = self.ty(a);
        if self.features.carryless && ty == Type::I32 {
            let (a, b) = (self.conv(Opcode::Zext, a, Type::I64), self.conv(Opcode::Zext, b, Type::I64));
            let product = self.bin(Opcode::Clmul, a, b);
            return self.conv(Opcode::Trunc, product, Type::I32);
        }
        let upper = (ty == Type::I64).then(|| self.bin_imm(Opcode::Lshr, b, 32));
        let words = [Some(b), upper].map(|word| word.map(|word| self.conv(Opcode::Trunc, word, Type::I32)));
        let mut sum = self.imm(ty, 0);
        let possible = self.possible_bits(b);
        for bit in (0..self.unsigned_width(b).min(ty.bits())).filter(|bit| possible >> bit & 1 == 1) {
            let Some(word) = words[bit as usize / 32] else { break };
            // Copies of the bit.
            let at_top = self.bin_imm(Opcode::Shl, word, i64::from(31 - bit % 32));
            let mut kept = self.bin_imm(Opcode::Ashr, at_top, 31);
            if ty == Type::I64 {
                let both = self.vector(Type::I32.with_lanes(2), &[kept, kept]);
                kept = self.bitcast(both, ty);
            }
            let copy = self.bin_imm(Opcode::Shl, a, bit.into());
            let term = self.bin(Opcode::And, copy, kept);
            sum = self.bin(Opcode::Xor, sum, term);
        }
        sum
    }

    /// The bits that a value can have, as far as a mask or a constant says.
    fn possible_bits(&self, value: Value) -> u128 {
        let mask = match self.def(value) {
            Some((inst, Opcode::And)) => self.args(inst).get(1).and_then(|kept| self.func.dfg.as_bits(*kept)),
            _ => self.func.dfg.as_bits(value),
        };
        mask.unwrap_or(u128::MAX)
    }

    fn expand_saturating(&mut self, op: Opcode, a: Value, b: Value) -> Value {
        self.note(Pattern::LegalSaturating);
        let ty = self.ty(a);
        let bits = ty.bits();
        let most = self.bits(ty, (1u128 << (bits - 1)) - 1);
        match op {
            // min(a, most − b) + b
            Opcode::UaddSat => {
                let ones = self.imm(ty, -1);
                let room = self.bin(Opcode::Xor, b, ones);
                let a = self.bin(Opcode::Umin, a, room);
                self.bin(Opcode::Add, a, b)
            }
            // max(a, b) − b
            Opcode::UsubSat => {
                let a = self.bin(Opcode::Umax, a, b);
                self.bin(Opcode::Sub, a, b)
            }
            Opcode::SaddSat | Opcode::SsubSat => {
                let subtract = op == Opcode::SsubSat;
                let (r, overflow) = self.signed_sum_overflow(subtract, a, b);
                let sign = self.bin_imm(Opcode::Ashr, a, i64::from(bits) - 1);
                let limit = self.bin(Opcode::Xor, sign, most);
                self.select(overflow, limit, r)
            }
            _ => {
                let signed = op == Opcode::SshlSat;
                let r = self.bin(Opcode::Shl, a, b);
                let back = self.bin(if signed { Opcode::Ashr } else { Opcode::Lshr }, r, b);
                let lost = self.icmp(IntCC::Ne, back, a);
                let limit = if signed {
                    let sign = self.bin_imm(Opcode::Ashr, a, i64::from(bits) - 1);
                    self.bin(Opcode::Xor, sign, most)
                } else {
                    self.imm(ty, -1)
                };
                self.select(lost, limit, r)
            }
        }
    }

    fn signed_sum_overflow(&mut self, subtract: bool, a: Value, b: Value) -> (Value, Value) {
        let r = self.bin(if subtract { Opcode::Sub } else { Opcode::Add }, a, b);
        let from_a = self.bin(Opcode::Xor, a, r);
        let other = if subtract { self.bin(Opcode::Xor, a, b) } else { self.bin(Opcode::Xor, b, r) };
        let both = self.bin(Opcode::And, from_a, other);
        (r, self.icmp_imm(IntCC::Slt, both, 0))
    }

    /// Replaces an operation that reports overflow.
    pub fn expand_overflow(&mut self, inst: Inst) {
        self.note(Pattern::LegalOverflow);
        let data = self.func.dfg.insts[inst].clone();
        let args = self.args(inst);
        let (a, b) = (args[0], args[1]);
        let signed = matches!(data.op, Opcode::SaddOverflow | Opcode::SsubOverflow | Opcode::SmulOverflow);
        let (result, overflow) = match data.op {
            _ if data.ty == Type::I16 => {
                let (a, b) = (self.resize(a, Type::I32), self.resize(b, Type::I32));
                self.fits_unsigned(a, 16);
                self.fits_unsigned(b, 16);
                let (r, overflow) = self.narrow_overflow(data.op, 16, a, b);
                (self.resize(r, Type::I16), overflow)
            }
            Opcode::UaddOverflow => {
                let r = self.bin(Opcode::Add, a, b);
                (r, self.icmp(IntCC::Ult, r, a))
            }
            Opcode::UsubOverflow => (self.bin(Opcode::Sub, a, b), self.icmp(IntCC::Ult, a, b)),
            Opcode::SaddOverflow | Opcode::SsubOverflow => {
                self.signed_sum_overflow(data.op == Opcode::SsubOverflow, a, b)
            }
            _ if data.ty == Type::I32 => {
                let extension = if signed { Opcode::Sext } else { Opcode::Zext };
                let (a, b) = (self.conv(extension, a, Type::I64), self.conv(extension, b, Type::I64));
                let product = self.bin(Opcode::Mul, a, b);
                let low = self.conv(Opcode::Trunc, product, Type::I32);
                let upper = self.bin_imm(Opcode::Lshr, product, 32);
                let high = self.conv(Opcode::Trunc, upper, Type::I32);
                // What the upper half is when nothing is lost.
                let beyond = if signed { self.bin_imm(Opcode::Ashr, low, 31) } else { self.imm(Type::I32, 0) };
                (low, self.icmp(IntCC::Ne, high, beyond))
            }
            _ => {
                let low = self.bin(Opcode::Mul, a, b);
                let high = self.bin(if signed { Opcode::Smulh } else { Opcode::Umulh }, a, b);
                let beyond = if signed { self.bin_imm(Opcode::Ashr, low, 63) } else { self.imm(Type::I64, 0) };
                (low, self.icmp(IntCC::Ne, high, beyond))
            }
        };
        self.replace(inst, &[result, overflow]);
    }
}
