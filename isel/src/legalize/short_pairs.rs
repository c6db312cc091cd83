//! Operations on pairs of 16-bit integers that lie in one 32-bit register (`<2 x i16>`).
//!
//! Sums, minima and maxima are one instruction where the target has the packed form (PTX ISA 9.7.1, `add.u16x2`);
//! logic always is. The rest is computed on whole words: what is wanted of the upper lane is right in the upper half of
//! a 32-bit result when nothing comes in from below, what is wanted of the lower lane in the lower half whatever stands
//! above it, and [`Context::halves_joined`] takes one half of each. What neither way says is left to the lanes.
//!
//! Decides how operations on pairs are written; that pairs are one register is [`super::parts`]'s.

use ptxc_ir::{ConstData, Flags, Inst, IntCC, Opcode, Type, Value};
use smallvec::SmallVec;

use super::context::Context;
use super::parts::{Lane, Lanes, Parts};
use crate::rules::Pattern;

/// The type of a pair.
pub(super) const PAIR: Type = Type::I16.with_lanes(2);
/// The upper half of a word.
const UPPER: i64 = -0x1_0000;

/// `lane` in both halves of a word, as the signed number that `imm` takes.
fn both(lane: u16) -> i64 {
    i64::from((u32::from(lane) * 0x1_0001) as i32)
}

impl Context<'_> {
    /// An operation on a vector of 16-bit integers, pair by pair, an odd last lane alone. Tells whether it was one.
    pub fn visit_short_pairs(&mut self, inst: Inst) -> bool {
        let data = &self.func.dfg.insts[inst];
        let (op, ty) = (data.op, data.ty);
        if !ty.is_vector() || ty.scalar() != Type::I16 || ty.lanes() < 2 {
            return false;
        }
        if ty == PAIR && self.features.pair_op_16(op) && !self.has_constant_pair(inst) {
            return true;
        }
        let operands: SmallVec<[Parts; 3]> = self.args(inst).into_iter().map(|v| self.parts_of(v)).collect();
        let mut results = Parts::new();
        for index in 0..operands[0].len() {
            let args: SmallVec<[Value; 3]> = operands.iter().map(|parts| parts[index]).collect();
            let result = if self.ty(args[0]) == PAIR { self.short_pair(op, &args) } else { self.lone_short(op, &args) };
            match result {
                Some(result) => results.push(result),
                None => return false,
            }
        }
        self.set_parts(self.func.dfg.result(inst, 0), &results);
        self.func.layout.remove_inst(inst);
        true
    }

    /// Whether both operands are constant: such an operation is folded on its words.
    fn has_constant_pair(&self, inst: Inst) -> bool {
        self.args(inst).iter().all(|v| self.func.dfg.as_const(*v).is_some())
    }

    fn lone_short(&mut self, op: Opcode, args: &[Value]) -> Option<Value> {
        let result = match *args {
            [a] => self.lane_unary(op, Flags::EMPTY, Type::I16, a.into()),
            [a, b] => self.lane_binary(op, Flags::EMPTY, Type::I16, a.into(), b.into()),
            [a, b, c] => self.lane_ternary(op, Flags::EMPTY, Type::I16, a.into(), b.into(), c.into()),
            _ => return None,
        };
        Some(result.lo)
    }

    /// One pair; `None` when its lanes are computed one by one.
    fn short_pair(&mut self, op: Opcode, args: &[Value]) -> Option<Value> {
        use Opcode::*;
        if self.features.pair_op_16(op) && !args.iter().all(|v| self.func.dfg.as_const(*v).is_some()) {
            return Some(self.value(op, Flags::EMPTY, PAIR, args, ptxc_ir::Extra::None));
        }
        let packed = self.features.short_pairs;
        match (op, args) {
            (Abs, [a]) if packed => {
                let zero = self.pair_of_both(0);
                let negative = self.pair_difference(zero, *a);
                self.short_pair(Smax, &[*a, negative])
            }
            (And | Or | Xor, [a, b]) => {
                let (a, b) = (self.pair_word(*a), self.pair_word(*b));
                let word = self.bin(op, a, b);
                Some(self.word_pair(word))
            }
            (Add, [a, b]) => Some(self.pair_sum(*a, *b)),
            (Sub, [a, b]) => Some(self.pair_difference(*a, *b)),
            (Mul, [a, b]) => Some(self.pair_product(*a, *b)),
            (Smin | Smax | Umin | Umax, [a, b]) => Some(self.pair_extreme(op, *a, *b)),
            (Shl | Lshr | Ashr, [a, n]) => Some(self.pair_shift(op, *a, *n)),
            (Fshl | Fshr, [a, b, n]) => self.pair_funnel(op, *a, *b, *n),
            (Umulh | Smulh, [a, b]) => Some(self.pair_high_product(op, *a, *b)),
            // min(a, 65535 − b) + b
            (UaddSat, [a, b]) if packed => {
                self.note(Pattern::LegalShortSaturating);
                let room = self.pair_not(*b);
                let least = self.short_pair(Umin, &[*a, room])?;
                self.short_pair(Add, &[least, *b])
            }
            // max(a, b) − b
            (UsubSat, [a, b]) if packed => {
                self.note(Pattern::LegalShortSaturating);
                let most = self.short_pair(Umax, &[*a, *b])?;
                Some(self.pair_difference(most, *b))
            }
            _ => None,
        }
    }

    /// Comparison of two vectors of 16-bit integers, a predicate a lane. Tells whether it was one.
    pub fn compare_short_pairs(&mut self, inst: Inst, cc: IntCC) -> bool {
        let data = &self.func.dfg.insts[inst];
        if !data.ty.is_vector() || data.ty.scalar() != Type::I16 {
            return false;
        }
        let args = self.args(inst);
        let (left, right) = (self.parts_of(args[0]), self.parts_of(args[1]));
        let mut lanes = Lanes::new();
        for (a, b) in left.into_iter().zip(right) {
            if self.ty(a) == PAIR {
                let found = self.compare_pair(cc, a, b);
                lanes.extend(found.map(Lane::from));
            } else {
                lanes.push(self.icmp(cc, a, b).into());
            }
        }
        self.finish(inst, &lanes);
        true
    }

    /// The lower lanes are compared at the top of a word with zeros below. The upper ones are where they are: what stands
    /// below them is taken out of one side such that it cannot decide.
    fn compare_pair(&mut self, cc: IntCC, a: Value, b: Value) -> [Value; 2] {
        self.note(Pattern::LegalShortCompare);
        let (a, b) = (self.pair_word(a), self.pair_word(b));
        match cc {
            IntCC::Eq | IntCC::Ne => {
                let differs = self.bin(Opcode::Xor, a, b);
                let low = self.bin_imm(Opcode::And, differs, 0xffff);
                let high = self.bin_imm(Opcode::And, differs, UPPER);
                [low, high].map(|half| self.icmp_imm(cc, half, 0))
            }
            _ => {
                let (low_a, low_b) = (self.bin_imm(Opcode::Shl, a, 16), self.bin_imm(Opcode::Shl, b, 16));
                let low = self.icmp(cc, low_a, low_b);
                let high_b = match cc {
                    IntCC::Slt | IntCC::Ult | IntCC::Sge | IntCC::Uge => self.bin_imm(Opcode::And, b, UPPER),
                    _ => self.bin_imm(Opcode::Or, b, 0xffff),
                };
                [low, self.icmp(cc, a, high_b)]
            }
        }
    }

    /// `select` between vectors of 16-bit lanes by a predicate a lane: whole words are selected, then joined.
    pub fn select_pairs(&mut self, inst: Inst) -> bool {
        let data = &self.func.dfg.insts[inst];
        let scalar = data.ty.scalar();
        if !data.ty.is_vector() || scalar.scalar_bits() != 16 || !self.features.paired(scalar) {
            return false;
        }
        let args = self.args(inst);
        let conditions = self.lanes_of(args[0]);
        let (left, right) = (self.parts_of(args[1]), self.parts_of(args[2]));
        let mut results = Parts::new();
        for ((conditions, a), b) in conditions.chunks(2).zip(left).zip(right) {
            results.push(match conditions {
                [low, high] if low != high => {
                    self.note(Pattern::LegalShortSelect);
                    let ty = self.ty(a);
                    let (a, b) = (self.pair_word(a), self.pair_word(b));
                    let low = self.select_frozen(low.lo, a, b);
                    let high = self.select_frozen(high.lo, a, b);
                    let word = self.halves_joined(low, high);
                    self.word_as(word, ty)
                }
                _ => self.select(conditions[0].lo, a, b),
            });
        }
        self.set_parts(self.func.dfg.result(inst, 0), &results);
        self.func.layout.remove_inst(inst);
        true
    }

    fn select_frozen(&mut self, condition: Value, a: Value, b: Value) -> Value {
        let chosen = self.select(condition, a, b);
        if chosen == a || chosen == b { chosen } else { self.un(Opcode::Freeze, chosen) }
    }

    /// A pair as the word it lies in. A lane that is poison must not spoil the other.
    pub fn pair_word(&mut self, pair: Value) -> Value {
        match self.func.dfg.as_const(pair).cloned() {
            Some(ConstData::Vector(lanes)) => {
                let bits = lanes.iter().map(|lane| self.func.dfg.as_bits(*lane).unwrap_or(0));
                let bits = bits.enumerate().fold(0, |word, (index, lane)| word | lane << (16 * index));
                return self.bits(Type::I32, bits);
            }
            Some(_) => return self.imm(Type::I32, 0),
            None => {}
        }
        if let Some((inst, Opcode::Bitcast)) = self.def(pair) {
            let source = self.args(inst)[0];
            return self.bitcast(source, Type::I32);
        }
        if let Some(word) = self.words.get(&pair) {
            return *word;
        }
        let frozen = self.un(Opcode::Freeze, pair);
        let word = self.bitcast(frozen, Type::I32);
        self.words.insert(pair, word);
        word
    }

    /// A word as a pair of integers.
    pub fn word_pair(&mut self, word: Value) -> Value {
        self.word_as(word, PAIR)
    }

    /// A word as a pair of this type.
    fn word_as(&mut self, word: Value, ty: Type) -> Value {
        match self.func.dfg.as_bits(word) {
            Some(bits) => {
                let lanes = [bits & 0xffff, bits >> 16].map(|lane| self.bits(ty.scalar(), lane));
                self.vector(ty, &lanes)
            }
            None => self.bitcast(word, ty),
        }
    }

    fn pair_of_both(&mut self, lane: u16) -> Value {
        let word = self.imm(Type::I32, both(lane));
        self.word_pair(word)
    }

    /// The lower half of one word and the upper half of another.
    fn halves_joined(&mut self, low: Value, high: Value) -> Value {
        let low = self.bin_imm(Opcode::And, low, 0xffff);
        let high = self.bin_imm(Opcode::And, high, UPPER);
        self.bin(Opcode::Or, low, high)
    }

    /// The upper half of one word below the upper half of another.
    fn upper_halves_joined(&mut self, low: Value, high: Value) -> Value {
        let low = self.bin_imm(Opcode::Lshr, low, 16);
        let high = self.bin_imm(Opcode::And, high, UPPER);
        self.bin(Opcode::Or, low, high)
    }

    fn pair_not(&mut self, pair: Value) -> Value {
        let word = self.pair_word(pair);
        let word = self.bin_imm(Opcode::Xor, word, -1);
        self.word_pair(word)
    }

    fn pair_sum(&mut self, a: Value, b: Value) -> Value {
        if self.features.short_pairs && self.func.dfg.as_const(a).or(self.func.dfg.as_const(b)).is_none() {
            return self.value(Opcode::Add, Flags::EMPTY, PAIR, &[a, b], ptxc_ir::Extra::None);
        }
        let (a, b) = (self.pair_word(a), self.pair_word(b));
        self.sum_by_halves(Opcode::Add, a, b)
    }

    /// Nothing is carried into the upper half where the lower half of one operand is zero.
    fn sum_by_halves(&mut self, op: Opcode, a: Value, b: Value) -> Value {
        self.note(Pattern::LegalShortSum);
        let low = self.bin(op, a, b);
        let above = self.bin_imm(Opcode::And, b, UPPER);
        let high = self.bin(op, a, above);
        let word = self.halves_joined(low, high);
        self.word_pair(word)
    }

    /// The packed form has no difference: a − b is the complement of the sum of a's complement and b.
    fn pair_difference(&mut self, a: Value, b: Value) -> Value {
        let word = self.pair_word(b);
        let constant = self.func.dfg.as_bits(word);
        if self.features.short_pairs {
            self.note(Pattern::LegalShortDifference);
        }
        if let (Some(bits), true) = (constant, self.features.short_pairs) {
            let negative = |lane: u128| (lane as u16).wrapping_neg();
            let bits = u128::from(negative(bits)) | u128::from(negative(bits >> 16)) << 16;
            let word = self.bits(Type::I32, bits);
            let negative = self.word_pair(word);
            return self.packed_sum(a, negative);
        }
        if !self.features.short_pairs {
            let a = self.pair_word(a);
            return self.sum_by_halves(Opcode::Sub, a, word);
        }
        let from = self.pair_word(a);
        if self.func.dfg.as_bits(from) == Some(0) {
            let (not, one) = (self.pair_not(b), self.pair_of_both(1));
            return self.packed_sum(not, one);
        }
        let not = self.pair_not(a);
        let sum = self.packed_sum(not, b);
        self.pair_not(sum)
    }

    /// A sum by the packed instruction, or a constant.
    fn packed_sum(&mut self, a: Value, b: Value) -> Value {
        if self.func.dfg.as_const(a).is_some() && self.func.dfg.as_const(b).is_some() {
            let (a, b) = (self.pair_word(a), self.pair_word(b));
            return self.sum_by_halves(Opcode::Add, a, b);
        }
        self.value(Opcode::Add, Flags::EMPTY, PAIR, &[a, b], ptxc_ir::Extra::None)
    }

    /// The lower half of a product needs the lower halves only; the upper lane's is in the upper half when one factor
    /// has zeros below.
    fn pair_product(&mut self, a: Value, b: Value) -> Value {
        self.note(Pattern::LegalShortProduct);
        let (a, b) = (self.pair_word(a), self.pair_word(b));
        let (a, b) = if self.func.dfg.as_bits(a).is_some() { (b, a) } else { (a, b) };
        if let Some((low, high)) = self.func.dfg.as_bits(b).map(|bits| (bits as u16, (bits >> 16) as u16))
            && low == high
            && low.is_power_of_two()
        {
            return self.shift_by(Opcode::Shl, a, low.trailing_zeros());
        }
        let low = self.bin(Opcode::Mul, a, b);
        let high = if self.func.dfg.as_bits(b).is_some() {
            let (a, b) = (self.bin_imm(Opcode::And, a, UPPER), self.bin_imm(Opcode::Lshr, b, 16));
            self.bin(Opcode::Mul, a, b)
        } else {
            let (a, b) = (self.bin_imm(Opcode::Lshr, a, 16), self.bin_imm(Opcode::And, b, UPPER));
            self.bin(Opcode::Mul, a, b)
        };
        let word = self.halves_joined(low, high);
        self.word_pair(word)
    }

    fn pair_high_product(&mut self, op: Opcode, a: Value, b: Value) -> Value {
        self.note(Pattern::LegalShortHighProduct);
        let (a, b) = (self.pair_word(a), self.pair_word(b));
        let signed = op == Opcode::Smulh;
        let lower = |this: &mut Self, word: Value| {
            if signed {
                let short = this.conv(Opcode::Trunc, word, Type::I16);
                this.conv(Opcode::Sext, short, Type::I32)
            } else {
                this.bin_imm(Opcode::And, word, 0xffff)
            }
        };
        let shift = if signed { Opcode::Ashr } else { Opcode::Lshr };
        let (low_a, low_b) = (lower(self, a), lower(self, b));
        let (high_a, high_b) = (self.bin_imm(shift, a, 16), self.bin_imm(shift, b, 16));
        let low = self.bin(Opcode::Mul, low_a, low_b);
        let high = self.bin(Opcode::Mul, high_a, high_b);
        let word = self.upper_halves_joined(low, high);
        self.word_pair(word)
    }

    /// Of two words the one that is larger is so by its upper half, unless these are equal.
    fn pair_extreme(&mut self, op: Opcode, a: Value, b: Value) -> Value {
        self.note(Pattern::LegalShortExtreme);
        let (a, b) = (self.pair_word(a), self.pair_word(b));
        let (low_a, low_b) = (self.bin_imm(Opcode::Shl, a, 16), self.bin_imm(Opcode::Shl, b, 16));
        let low = self.bin(op, low_a, low_b);
        let high = self.bin(op, a, b);
        let word = self.upper_halves_joined(low, high);
        self.word_pair(word)
    }

    fn pair_shift(&mut self, op: Opcode, a: Value, amounts: Value) -> Value {
        self.note(Pattern::LegalShortShift);
        let (a, amounts) = (self.pair_word(a), self.pair_word(amounts));
        if let Some(bits) = self.func.dfg.as_bits(amounts)
            && bits & 0xffff == bits >> 16
        {
            // A shift by the width or more is poison.
            return self.shift_by(op, a, (bits as u32 & 0xffff).min(15));
        }
        let low_amount = self.bin_imm(Opcode::And, amounts, 0xffff);
        let high_amount = self.bin_imm(Opcode::Lshr, amounts, 16);
        let shift = |this: &mut Self, value: Value, amount: Value| {
            let shifted = this.bin(op, value, amount);
            // Too large an amount makes this lane poison, not both.
            let is_known = this.func.dfg.as_bits(amount).is_some_and(|n| n < 16) || shifted == value;
            if is_known { shifted } else { this.un(Opcode::Freeze, shifted) }
        };
        let word = if op == Opcode::Shl {
            let low = shift(self, a, low_amount);
            let above = self.bin_imm(Opcode::And, a, UPPER);
            let high = shift(self, above, high_amount);
            self.halves_joined(low, high)
        } else {
            let at_top = self.bin_imm(Opcode::Shl, a, 16);
            let low = shift(self, at_top, low_amount);
            let high = shift(self, a, high_amount);
            self.upper_halves_joined(low, high)
        };
        self.word_pair(word)
    }

    /// Both lanes of a word shifted by the same number of bits, less than 16.
    fn shift_by(&mut self, op: Opcode, a: Value, amount: u32) -> Value {
        let k = i64::from(amount);
        let word = match op {
            _ if amount == 0 => a,
            Opcode::Shl => {
                let shifted = self.bin_imm(Opcode::Shl, a, k);
                self.bin_imm(Opcode::And, shifted, both(0xffff << amount))
            }
            Opcode::Lshr => {
                let shifted = self.bin_imm(Opcode::Lshr, a, k);
                self.bin_imm(Opcode::And, shifted, both(0xffff >> amount))
            }
            // Signs over the bytes of their lanes.
            _ if amount == 15 => self.permute(a, a, 0xbb99),
            _ if amount == 8 => self.permute(a, a, 0xb391),
            // The sign's place flipped and subtracted again extends the sign.
            _ if self.features.short_pairs => {
                let sign = 0x8000u16 >> amount;
                let shifted = self.bin_imm(Opcode::Lshr, a, k);
                let kept = self.bin_imm(Opcode::And, shifted, both(0xffff >> amount));
                let flipped = self.bin_imm(Opcode::Xor, kept, both(sign));
                let (flipped, less) = (self.word_pair(flipped), self.pair_of_both(sign.wrapping_neg()));
                return self.packed_sum(flipped, less);
            }
            _ => {
                let at_top = self.bin_imm(Opcode::Shl, a, 16);
                let low = self.bin_imm(Opcode::Ashr, at_top, k);
                let high = self.bin_imm(Opcode::Ashr, a, k);
                self.upper_halves_joined(low, high)
            }
        };
        self.word_pair(word)
    }

    /// Lanes of two pairs side by side, shifted by the same constant.
    fn pair_funnel(&mut self, op: Opcode, a: Value, b: Value, amounts: Value) -> Option<Value> {
        let amounts = self.pair_word(amounts);
        let bits = self.func.dfg.as_bits(amounts)?;
        let (low, high) = (bits as u32 & 15, (bits >> 16) as u32 & 15);
        if low != high {
            return None;
        }
        self.note(Pattern::LegalShortFunnel);
        let left = if op == Opcode::Fshl { low } else { 16 - low };
        match (left, low) {
            (0, _) => return Some(a),
            (16, _) => return Some(b),
            _ => {}
        }
        let (a, b) = (self.pair_word(a), self.pair_word(b));
        let upper = self.bin_imm(Opcode::Shl, a, left.into());
        let upper = self.bin_imm(Opcode::And, upper, both(0xffff << left));
        let lower = self.bin_imm(Opcode::Lshr, b, (16 - left).into());
        let lower = self.bin_imm(Opcode::And, lower, both(0xffff >> (16 - left)));
        let word = self.bin(Opcode::Or, upper, lower);
        Some(self.word_pair(word))
    }
}
