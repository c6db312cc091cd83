//! Integers of 65 to 128 bits, as two 64-bit limbs.
//!
//! Sums and differences are carry chains of target operations (PTX ISA 9.7.2), which the assembler turns into
//! three-input adds with carry; everything else is 64-bit arithmetic. The upper bits of the high limb of an integer
//! narrower than 128 bits are unspecified, as those of a container are.

use ptxc_ir::{Flags, IntCC, Opcode, TargetOp, TargetOperand, Type, Value};
use ptxc_targets::{Tok, tok};
use smallvec::SmallVec;

use super::context::Context;
use super::helpers::Helper;
use super::parts::Lane;
use crate::rules::Pattern;

/// Low and high limb.
pub(super) type Limbs = (Value, Value);

impl Context<'_> {
    /// The limbs of a wide lane.
    pub fn limbs(&mut self, lane: Lane) -> Limbs {
        match lane.hi {
            Some(hi) => (lane.lo, hi),
            None => (lane.lo, self.imm(Type::I64, 0)),
        }
    }

    /// Places a target operation with one register result and plain register operands.
    pub fn target_op(&mut self, toks: &[Tok], args: &[Value], result: Type) -> Value {
        let sources = (0..args.len()).map(|i| TargetOperand::Arg(i as u16));
        let operands = std::iter::once(TargetOperand::Result(0)).chain(sources).collect();
        let op = TargetOp::Known { toks: SmallVec::from_slice(toks), guard: None, operands };
        let inst = self.builder().target(op, args, &[result]);
        self.func.dfg.result(inst, 0)
    }

    /// The number with the bits above its width cleared, or copied from its sign.
    pub fn wide_extended(&mut self, signed: bool, bits: u32, a: Limbs) -> Limbs {
        let hi = match (bits < 128, signed) {
            (false, _) => a.1,
            (true, true) => self.sign_extended(a.1, bits - 64),
            (true, false) => self.zero_extended(a.1, bits - 64),
        };
        (a.0, hi)
    }

    /// Sum.
    pub fn wide_add(&mut self, a: Limbs, b: Limbs) -> Limbs {
        self.note(Pattern::LegalWideSum);
        if self.is_zero(b.0) {
            return (a.0, self.bin(Opcode::Add, a.1, b.1));
        }
        if self.is_zero(a.0) {
            return (b.0, self.bin(Opcode::Add, a.1, b.1));
        }
        let lo = self.target_op(&[tok::ADD, tok::CC, tok::U64], &[a.0, b.0], Type::I64);
        let hi = self.target_op(&[tok::ADDC, tok::U64], &[a.1, b.1], Type::I64);
        (lo, hi)
    }

    /// Difference.
    pub fn wide_sub(&mut self, a: Limbs, b: Limbs) -> Limbs {
        self.note(Pattern::LegalWideDifference);
        if self.is_zero(b.0) {
            return (a.0, self.bin(Opcode::Sub, a.1, b.1));
        }
        let lo = self.target_op(&[tok::SUB, tok::CC, tok::U64], &[a.0, b.0], Type::I64);
        let hi = self.target_op(&[tok::SUBC, tok::U64], &[a.1, b.1], Type::I64);
        (lo, hi)
    }

    fn is_zero(&self, value: Value) -> bool {
        self.func.dfg.as_bits(value) == Some(0)
    }

    /// Low 128 bits of the product.
    pub fn wide_mul(&mut self, a: Limbs, b: Limbs) -> Limbs {
        self.note(Pattern::LegalWideProduct);
        let lo = self.bin(Opcode::Mul, a.0, b.0);
        if self.is_sign_extended(a) && self.is_sign_extended(b) {
            return (lo, self.bin(Opcode::Smulh, a.0, b.0));
        }
        if a == b {
            self.note(Pattern::LegalWideSquare);
            // Both products of different limbs are the same one.
            let hi = self.bin(Opcode::Umulh, a.0, a.0);
            let twice = self.bin_imm(Opcode::Shl, a.1, 1);
            let cross = self.bin(Opcode::Mul, a.0, twice);
            return (lo, self.bin(Opcode::Add, hi, cross));
        }
        let mut hi = if self.is_zero(a.0) || self.is_zero(b.0) {
            self.imm(Type::I64, 0)
        } else {
            self.bin(Opcode::Umulh, a.0, b.0)
        };
        for (x, y) in [(a.0, b.1), (a.1, b.0)] {
            let cross = self.bin(Opcode::Mul, x, y);
            hi = self.bin(Opcode::Add, hi, cross);
        }
        (lo, hi)
    }

    /// Whether the high limb is copies of the low one's sign.
    fn is_sign_extended(&self, a: Limbs) -> bool {
        let Some((inst, Opcode::Ashr)) = self.def(a.1) else { return false };
        let args = self.args(inst);
        args[0] == a.0 && self.func.dfg.as_bits(args[1]) == Some(63)
    }

    /// Low 128 bits of the product without carries.
    fn wide_carryless_product(&mut self, a: Limbs, b: Limbs) -> Limbs {
        self.note(Pattern::LegalWideCarryless);
        let lo = self.bin(Opcode::Clmul, a.0, b.0);
        let mut hi = if self.features.carryless {
            let zero = self.imm(Type::I64, 0);
            self.target_op(&[tok::CLMAD, tok::HI, tok::U64], &[a.0, b.0, zero], Type::I64)
        } else {
            // The product backward is that of the factors backward, one bit further up.
            let (x, y) = (self.un(Opcode::Bitreverse, a.0), self.un(Opcode::Bitreverse, b.0));
            let backward = self.bin(Opcode::Clmul, x, y);
            let product = self.un(Opcode::Bitreverse, backward);
            self.bin_imm(Opcode::Lshr, product, 1)
        };
        for (x, y) in [(a.0, b.1), (a.1, b.0)] {
            if !self.is_zero(x) && !self.is_zero(y) {
                let cross = self.bin(Opcode::Clmul, x, y);
                hi = self.bin(Opcode::Xor, hi, cross);
            }
        }
        (lo, hi)
    }

    /// Full 256-bit unsigned product as four limbs, low first.
    fn wide_full_product(&mut self, a: Limbs, b: Limbs) -> [Value; 4] {
        let zero = self.imm(Type::I64, 0);
        let low = self.bin(Opcode::Mul, a.0, b.0);
        let carry0 = self.bin(Opcode::Umulh, a.0, b.0);
        let cross1 = (self.bin(Opcode::Mul, a.0, b.1), self.bin(Opcode::Umulh, a.0, b.1));
        let cross2 = (self.bin(Opcode::Mul, a.1, b.0), self.bin(Opcode::Umulh, a.1, b.0));
        let top = (self.bin(Opcode::Mul, a.1, b.1), self.bin(Opcode::Umulh, a.1, b.1));
        // A product and two numbers more fit twice the width.
        let first = self.wide_add(cross1, (carry0, zero));
        let second = self.wide_add(cross2, (first.0, zero));
        let middle = self.wide_add((first.1, zero), (second.1, zero));
        let upper = self.wide_add(top, middle);
        [low, second.0, upper.0, upper.1]
    }

    /// High half of the double-width product.
    fn wide_high_product(&mut self, signed: bool, bits: u32, a: Limbs, b: Limbs) -> Limbs {
        self.note(Pattern::LegalWideHighProduct);
        let (a, b) = (self.wide_extended(signed, bits, a), self.wide_extended(signed, bits, b));
        let product = self.wide_full_product(a, b);
        let mut upper = (product[2], product[3]);
        if signed {
            // A negative operand was read as itself plus 2^128: take the other operand off the upper half.
            for (x, y) in [(a, b), (b, a)] {
                let sign = self.bin_imm(Opcode::Ashr, x.1, 63);
                let masked = (self.bin(Opcode::And, y.0, sign), self.bin(Opcode::And, y.1, sign));
                upper = self.wide_sub(upper, masked);
            }
        }
        if bits == 128 {
            return upper;
        }
        // Bits `bits` to `2 * bits - 1` of the product; those of a narrower number start in the second limb.
        let amount = self.imm(Type::I64, i64::from(bits - 64));
        let lo = self.tern(Opcode::Fshr, Flags::EMPTY, upper.0, product[1], amount);
        let hi = self.tern(Opcode::Fshr, Flags::EMPTY, upper.1, upper.0, amount);
        (lo, hi)
    }

    fn wide_logic(&mut self, op: Opcode, a: Limbs, b: Limbs) -> Limbs {
        self.note(Pattern::LegalWideLogic);
        (self.bin(op, a.0, b.0), self.bin(op, a.1, b.1))
    }

    /// `cond ? a : b`.
    pub fn wide_select(&mut self, cond: Value, a: Limbs, b: Limbs) -> Limbs {
        (self.select(cond, a.0, b.0), self.select(cond, a.1, b.1))
    }

    /// Shift by an amount less than 128, given as an `i64`.
    pub fn wide_shift(&mut self, op: Opcode, a: Limbs, amount: Value) -> Limbs {
        self.note(Pattern::LegalWideShift);
        if let Some(k) = self.func.dfg.as_bits(amount) {
            return self.wide_shift_by(op, a, (k & 127) as i64);
        }
        let inner = self.bin_imm(Opcode::And, amount, 63);
        let beyond = self.bin_imm(Opcode::And, amount, 64);
        let far = self.icmp_imm(IntCC::Ne, beyond, 0);
        if op == Opcode::Shl {
            let joined = self.tern(Opcode::Fshl, Flags::EMPTY, a.1, a.0, inner);
            let low = self.bin(Opcode::Shl, a.0, inner);
            let zero = self.imm(Type::I64, 0);
            return self.wide_select(far, (zero, low), (low, joined));
        }
        let joined = self.tern(Opcode::Fshr, Flags::EMPTY, a.1, a.0, inner);
        let high = self.bin(op, a.1, inner);
        let fill = if op == Opcode::Ashr { self.bin_imm(Opcode::Ashr, a.1, 63) } else { self.imm(Type::I64, 0) };
        self.wide_select(far, (high, fill), (joined, high))
    }

    fn wide_shift_by(&mut self, op: Opcode, a: Limbs, amount: i64) -> Limbs {
        let inner = amount & 63;
        let fill = match op {
            Opcode::Ashr => self.bin_imm(Opcode::Ashr, a.1, 63),
            _ => self.imm(Type::I64, 0),
        };
        let joined = |this: &mut Self, funnel: Opcode| {
            let by = this.imm(Type::I64, inner);
            if inner == 0 {
                if funnel == Opcode::Fshl { a.1 } else { a.0 }
            } else {
                this.tern(funnel, Flags::EMPTY, a.1, a.0, by)
            }
        };
        match (op, amount >= 64) {
            (Opcode::Shl, true) => (fill, self.bin_imm(Opcode::Shl, a.0, inner)),
            (Opcode::Shl, false) => (self.bin_imm(Opcode::Shl, a.0, inner), joined(self, Opcode::Fshl)),
            (_, true) => (self.bin_imm(op, a.1, inner), fill),
            (_, false) => (joined(self, Opcode::Fshr), self.bin_imm(op, a.1, inner)),
        }
    }

    /// Comparison.
    pub fn wide_compare(&mut self, cc: IntCC, bits: u32, a: Limbs, b: Limbs) -> Value {
        self.note(Pattern::LegalWideCompare);
        let (a, b) = (self.wide_extended(cc.is_signed(), bits, a), self.wide_extended(cc.is_signed(), bits, b));
        if matches!(cc, IntCC::Eq | IntCC::Ne) {
            let differ = self.wide_logic(Opcode::Xor, a, b);
            let any = self.bin(Opcode::Or, differ.0, differ.1);
            return self.icmp_imm(cc, any, 0);
        }
        let low_cc = match cc {
            IntCC::Slt => IntCC::Ult,
            IntCC::Sle => IntCC::Ule,
            IntCC::Sgt => IntCC::Ugt,
            IntCC::Sge => IntCC::Uge,
            other => other,
        };
        let strict = match cc {
            IntCC::Sle => IntCC::Slt,
            IntCC::Sge => IntCC::Sgt,
            IntCC::Ule => IntCC::Ult,
            IntCC::Uge => IntCC::Ugt,
            other => other,
        };
        let high = self.icmp(strict, a.1, b.1);
        let same = self.icmp(IntCC::Eq, a.1, b.1);
        let low = self.icmp(low_cc, a.0, b.0);
        let tie = self.bin(Opcode::And, same, low);
        self.bin(Opcode::Or, high, tie)
    }

    fn is_negative(&mut self, a: Limbs) -> Value {
        self.icmp_imm(IntCC::Slt, a.1, 0)
    }

    /// Two's complement negation.
    pub fn wide_negate(&mut self, a: Limbs) -> Limbs {
        let zero = self.imm(Type::I64, 0);
        self.wide_sub((zero, zero), a)
    }

    /// A one-operand operation.
    pub fn wide_unary(&mut self, op: Opcode, bits: u32, a: Limbs) -> Limbs {
        self.note(Pattern::LegalWideUnary);
        let zero = self.imm(Type::I64, 0);
        let spare = 128 - i64::from(bits);
        match op {
            Opcode::Abs => {
                let a = self.wide_extended(true, bits, a);
                let negative = self.is_negative(a);
                let negated = self.wide_negate(a);
                self.wide_select(negative, negated, a)
            }
            Opcode::Ctpop => {
                let a = self.wide_extended(false, bits, a);
                let (lo, hi) = (self.un(op, a.0), self.un(op, a.1));
                (self.bin(Opcode::Add, lo, hi), zero)
            }
            Opcode::Ctlz => {
                let a = self.wide_extended(false, bits, a);
                let (lo, hi) = (self.un(op, a.0), self.un(op, a.1));
                let above = self.bin_imm(Opcode::Add, lo, 64);
                let empty = self.icmp_imm(IntCC::Eq, a.1, 0);
                let count = self.select(empty, above, hi);
                (self.bin_imm(Opcode::Sub, count, spare), zero)
            }
            Opcode::Cttz => {
                let hi = if bits < 128 { self.or_bit(a.1, bits - 64) } else { a.1 };
                let (low, high) = (self.un(op, a.0), self.un(op, hi));
                let above = self.bin_imm(Opcode::Add, high, 64);
                let empty = self.icmp_imm(IntCC::Eq, a.0, 0);
                (self.select(empty, above, low), zero)
            }
            Opcode::Bswap | Opcode::Bitreverse => {
                let turned = (self.un(op, a.1), self.un(op, a.0));
                self.wide_shift_by(Opcode::Lshr, turned, spare)
            }
            _ => a,
        }
    }

    fn or_bit(&mut self, value: Value, bit: u32) -> Value {
        let stop = self.bits(Type::I64, 1 << bit);
        self.bin(Opcode::Or, value, stop)
    }

    /// A two-operand operation; `amount_or_b` is a limb pair like `a`.
    pub fn wide_binary(&mut self, op: Opcode, bits: u32, a: Limbs, b: Limbs) -> Limbs {
        match op {
            Opcode::Add => self.wide_add(a, b),
            Opcode::Sub => self.wide_sub(a, b),
            Opcode::Mul => self.wide_mul(a, b),
            Opcode::Clmul => self.wide_carryless_product(a, b),
            Opcode::And | Opcode::Or | Opcode::Xor => self.wide_logic(op, a, b),
            Opcode::Shl => self.wide_shift(op, a, b.0),
            Opcode::Lshr | Opcode::Ashr => {
                let a = self.wide_extended(op == Opcode::Ashr, bits, a);
                self.wide_shift(op, a, b.0)
            }
            Opcode::Umulh | Opcode::Smulh => self.wide_high_product(op == Opcode::Smulh, bits, a, b),
            Opcode::Udiv | Opcode::Urem | Opcode::Sdiv | Opcode::Srem => self.wide_division(op, bits, a, b),
            Opcode::Umin | Opcode::Umax | Opcode::Smin | Opcode::Smax => {
                let cc = match op {
                    Opcode::Umin => IntCC::Ult,
                    Opcode::Umax => IntCC::Ugt,
                    Opcode::Smin => IntCC::Slt,
                    _ => IntCC::Sgt,
                };
                self.note(Pattern::LegalWideExtreme);
                let first = self.wide_compare(cc, bits, a, b);
                self.wide_select(first, a, b)
            }
            _ => self.wide_saturating(op, bits, a, b),
        }
    }

    /// Division through the helper function for 128-bit numbers; signs are handled here.
    fn wide_division(&mut self, op: Opcode, bits: u32, a: Limbs, b: Limbs) -> Limbs {
        self.note(Pattern::LegalWideDivision);
        let signed = matches!(op, Opcode::Sdiv | Opcode::Srem);
        let (mut a, mut b) = (self.wide_extended(signed, bits, a), self.wide_extended(signed, bits, b));
        let (sign_a, sign_b) = (a.1, b.1);
        if signed {
            a = self.wide_unary(Opcode::Abs, 128, a);
            b = self.wide_unary(Opcode::Abs, 128, b);
        }
        let results = self.call_helper(Helper::DivideI128, &[a.0, a.1, b.0, b.1]);
        let is_quotient = matches!(op, Opcode::Udiv | Opcode::Sdiv);
        let r = if is_quotient { (results[0], results[1]) } else { (results[2], results[3]) };
        if !signed {
            return r;
        }
        let sign = if is_quotient { self.bin(Opcode::Xor, sign_a, sign_b) } else { sign_a };
        let negative = self.icmp_imm(IntCC::Slt, sign, 0);
        let negated = self.wide_negate(r);
        self.wide_select(negative, negated, r)
    }

    fn wide_limits(&mut self, signed: bool, bits: u32) -> (Limbs, Limbs) {
        let all = if bits == 128 { u128::MAX } else { (1u128 << bits) - 1 };
        let most = if signed { all >> 1 } else { all };
        let least = if signed { !most } else { 0 };
        let limbs = |this: &mut Self, k: u128| (this.bits(Type::I64, k), this.bits(Type::I64, k >> 64));
        (limbs(self, most), limbs(self, least))
    }

    fn wide_saturating(&mut self, op: Opcode, bits: u32, a: Limbs, b: Limbs) -> Limbs {
        self.note(Pattern::LegalWideSaturating);
        let signed = matches!(op, Opcode::SaddSat | Opcode::SsubSat | Opcode::SshlSat);
        let (most, least) = self.wide_limits(signed, bits);
        let plain = match op {
            Opcode::UaddSat => Opcode::UaddOverflow,
            Opcode::SaddSat => Opcode::SaddOverflow,
            Opcode::UsubSat => Opcode::UsubOverflow,
            Opcode::SsubSat => Opcode::SsubOverflow,
            _ => {
                let a = self.wide_extended(signed, bits, a);
                let shifted = self.wide_shift(Opcode::Shl, a, b.0);
                let kept = self.wide_extended(signed, bits, shifted);
                let back = self.wide_shift(if signed { Opcode::Ashr } else { Opcode::Lshr }, kept, b.0);
                let lost = self.wide_compare(IntCC::Ne, 128, back, a);
                let negative = if signed { self.is_negative(a) } else { self.bool(false) };
                let limit = self.wide_select(negative, least, most);
                return self.wide_select(lost, limit, kept);
            }
        };
        let (r, overflow) = self.wide_overflow(plain, bits, a, b);
        let limit = match op {
            Opcode::UaddSat => most,
            Opcode::UsubSat => least,
            // A sum that overflows has the sign that its first operand has not.
            _ => {
                let a = self.wide_extended(true, bits, a);
                let negative = self.is_negative(a);
                self.wide_select(negative, least, most)
            }
        };
        self.wide_select(overflow, limit, r)
    }

    /// An overflow operation: result and overflow.
    pub fn wide_overflow(&mut self, op: Opcode, bits: u32, a: Limbs, b: Limbs) -> (Limbs, Value) {
        self.note(Pattern::LegalWideOverflow);
        let signed = matches!(op, Opcode::SaddOverflow | Opcode::SsubOverflow | Opcode::SmulOverflow);
        let (a, b) = (self.wide_extended(signed, bits, a), self.wide_extended(signed, bits, b));
        if matches!(op, Opcode::UmulOverflow | Opcode::SmulOverflow) {
            return self.wide_product_overflow(signed, bits, a, b);
        }
        let subtract = matches!(op, Opcode::UsubOverflow | Opcode::SsubOverflow);
        let r = if subtract { self.wide_sub(a, b) } else { self.wide_add(a, b) };
        let overflow = match op {
            Opcode::UsubOverflow => self.wide_compare(IntCC::Ult, 128, a, b),
            _ if bits < 128 => {
                let kept = self.wide_extended(signed, bits, r);
                self.wide_compare(IntCC::Ne, 128, kept, r)
            }
            Opcode::UaddOverflow => self.wide_compare(IntCC::Ult, 128, r, a),
            _ => {
                let from_a = self.bin(Opcode::Xor, a.1, r.1);
                let other = if subtract { self.bin(Opcode::Xor, a.1, b.1) } else { self.bin(Opcode::Xor, b.1, r.1) };
                let both = self.bin(Opcode::And, from_a, other);
                self.icmp_imm(IntCC::Slt, both, 0)
            }
        };
        (r, overflow)
    }

    fn wide_product_overflow(&mut self, signed: bool, bits: u32, a: Limbs, b: Limbs) -> (Limbs, Value) {
        let r = self.wide_mul(a, b);
        let high = self.wide_high_product(signed, 128, a, b);
        let kept = self.wide_extended(signed, bits, r);
        let fill = if signed { self.bin_imm(Opcode::Ashr, r.1, 63) } else { self.imm(Type::I64, 0) };
        let above = self.wide_compare(IntCC::Ne, 128, high, (fill, fill));
        if bits == 128 {
            return (r, above);
        }
        let cut = self.wide_compare(IntCC::Ne, 128, kept, r);
        (r, self.bin(Opcode::Or, above, cut))
    }

    /// Funnel shift: the amount is taken modulo the width.
    pub fn wide_funnel(&mut self, op: Opcode, bits: u32, a: Limbs, b: Limbs, amount: Limbs) -> Limbs {
        self.note(Pattern::LegalWideFunnel);
        let amount = if bits == 128 {
            self.bin_imm(Opcode::And, amount.0, 127)
        } else {
            // 2^64 modulo the width times the high limb, plus the low limb, modulo the width again: both fit 64 bits.
            let (lo, hi) = self.wide_extended(false, bits, amount);
            let width = i64::from(bits);
            let factor = ((1u128 << 64) % bits as u128) as i64;
            let hi = self.bin_imm(Opcode::Urem, hi, width);
            let hi = self.bin_imm(Opcode::Mul, hi, factor);
            let lo = self.bin_imm(Opcode::Urem, lo, width);
            let sum = self.bin(Opcode::Add, hi, lo);
            self.bin_imm(Opcode::Urem, sum, width)
        };
        let low = self.wide_extended(false, bits, b);
        // Two steps keep every amount below 128 where the rest is the whole width.
        let last = self.imm(Type::I64, i64::from(bits) - 1);
        let rest = self.bin(Opcode::Sub, last, amount);
        let (high, low) = if op == Opcode::Fshl {
            let low = self.wide_shift_by(Opcode::Lshr, low, 1);
            (self.wide_shift(Opcode::Shl, a, amount), self.wide_shift(Opcode::Lshr, low, rest))
        } else {
            let high = self.wide_shift_by(Opcode::Shl, a, 1);
            (self.wide_shift(Opcode::Shl, high, rest), self.wide_shift(Opcode::Lshr, low, amount))
        };
        self.wide_logic(Opcode::Or, high, low)
    }
}
