//! Shapes of several instructions that rules ask for by name.

use ptxc_ir::{Flags, Inst, IntCC, Opcode, Type, Value};

use super::Lower;

impl Lower<'_> {
    fn is_op(&self, inst: Inst, op: Opcode) -> bool {
        let data = &self.ir.dfg.insts[inst];
        data.op == op && data.ty == Type::I32
    }

    /// The operation of 32 bits that only this user wants.
    fn only_for_this(&self, value: Value, op: Opcode) -> Option<Inst> {
        self.single_use(value).filter(|inst| self.is_op(*inst, op))
    }

    /// The operation of 32 bits behind a value, whoever wants it.
    fn behind(&self, value: Value, op: Opcode) -> Option<Inst> {
        self.pure_def(value).filter(|inst| self.is_op(*inst, op))
    }

    /// `max(a, b) - min(a, b)`, or the choice of `a - b` and `b - a` by which is larger: whether
    /// the comparison is signed, a and b.
    pub(super) fn absolute_difference(&self, inst: Inst) -> Option<(bool, Value, Value)> {
        if self.is_op(inst, Opcode::Sub) {
            return self.larger_less_smaller(inst);
        }
        if !self.is_op(inst, Opcode::Select) {
            return None;
        }
        let compare = self.pure_def(self.arg(inst, 0))?;
        let data = &self.ir.dfg.insts[compare];
        let ptxc_ir::Extra::IntCC(cc) = data.extra else { return None };
        if data.op != Opcode::Icmp || self.arg_type(compare, 0) != Type::I32 {
            return None;
        }
        let (x, y) = (self.arg(compare, 0), self.arg(compare, 1));
        // Where they are equal both differences are zero.
        let (signed, first) = match cc {
            IntCC::Ugt | IntCC::Uge => (false, true),
            IntCC::Ult | IntCC::Ule => (false, false),
            IntCC::Sgt | IntCC::Sge => (true, true),
            IntCC::Slt | IntCC::Sle => (true, false),
            IntCC::Eq | IntCC::Ne => return None,
        };
        let (a, b) = if first { (x, y) } else { (y, x) };
        let is_difference = |value: Value, a: Value, b: Value| {
            self.only_for_this(value, Opcode::Sub).is_some_and(|i| self.arg(i, 0) == a && self.arg(i, 1) == b)
        };
        let both = is_difference(self.arg(inst, 1), a, b) && is_difference(self.arg(inst, 2), b, a);
        both.then_some((signed, a, b))
    }

    fn larger_less_smaller(&self, inst: Inst) -> Option<(bool, Value, Value)> {
        for (larger, smaller, signed) in [(Opcode::Umax, Opcode::Umin, false), (Opcode::Smax, Opcode::Smin, true)] {
            let Some(larger) = self.only_for_this(self.arg(inst, 0), larger) else { continue };
            let smaller = self.only_for_this(self.arg(inst, 1), smaller)?;
            let (a, b) = (self.arg(larger, 0), self.arg(larger, 1));
            let (c, d) = (self.arg(smaller, 0), self.arg(smaller, 1));
            return ((a, b) == (c, d) || (a, b) == (d, c)).then_some((signed, a, b));
        }
        None
    }

    /// Whether `sign` has the sign of the product of the two numbers whose magnitudes a minimum or maximum takes: their bits
    /// joined by `xor`, or the product itself where it is not NaN.
    pub(super) fn has_product_of_signs(&self, extreme: Inst, sign: Value) -> bool {
        let number = |index: usize| {
            let magnitude = self.pure_def(self.arg(extreme, index))?;
            let unflushed = !self.ir.dfg.insts[magnitude].flags.contains(Flags::FTZ);
            unflushed.then(|| self.arg(magnitude, 0))
        };
        let (Some(a), Some(b)) = (number(0), number(1)) else { return false };
        let Some(joined) = self.pure_def(self.bits_behind(sign)) else { return false };
        let data = &self.ir.dfg.insts[joined];
        let (p, q) = (self.bits_behind(a), self.bits_behind(b));
        let of = |x: Value, y: Value| [(a, b), (b, a), (p, q), (q, p)].contains(&(x, y));
        match data.op {
            Opcode::Xor => of(self.bits_behind(self.arg(joined, 0)), self.bits_behind(self.arg(joined, 1))),
            Opcode::Fmul => {
                let keeps_sign = data.flags.contains(Flags::NNAN) && !data.flags.contains(Flags::SAT);
                keeps_sign && self.bits_behind(sign) == sign && of(self.arg(joined, 0), self.arg(joined, 1))
            }
            _ => false,
        }
    }

    /// The value whose bits another one has.
    fn bits_behind(&self, value: Value) -> Value {
        let mut value = self.ir.dfg.resolve(value);
        // A cast of a cast is rare; what is hidden behind more of them is not found.
        for _ in 0..3 {
            match self.pure_def(value).filter(|inst| self.ir.dfg.insts[*inst].op == Opcode::Bitcast) {
                Some(cast) => value = self.arg(cast, 0),
                None => break,
            }
        }
        value
    }

    /// `(a << n) | (b >> m)` with n + m = 32 as a, b and the amount of the shift that `by` names.
    pub(super) fn funnel(&self, inst: Inst, by: Opcode) -> Option<(Value, Value, Value)> {
        if ![Opcode::Or, Opcode::Xor, Opcode::Add].iter().any(|op| self.is_op(inst, *op)) {
            return None;
        }
        let (x, y) = (self.arg(inst, 0), self.arg(inst, 1));
        let shifts = |x, y| Some((self.only_for_this(x, Opcode::Shl)?, self.only_for_this(y, Opcode::Lshr)?));
        let (left, right) = shifts(x, y).or_else(|| shifts(y, x))?;
        let (a, n) = (self.arg(left, 0), self.arg(left, 1));
        let (b, m) = (self.arg(right, 0), self.arg(right, 1));
        let (amount, other) = if by == Opcode::Shl { (n, m) } else { (m, n) };
        if let (Some(n), Some(m)) = (self.const_i64(n), self.const_i64(m)) {
            // One of the two directions is enough.
            return (by == Opcode::Shl && n > 0 && m > 0 && n + m == 32).then_some((a, b, amount));
        }
        if self.is_less(other, 32, amount) {
            // With an amount of zero the other shift is by the width, and the whole is undefined.
            return Some((a, b, amount));
        }
        // Both masked: an amount of zero makes the whole twice, which only `or` takes for the whole.
        let masked = |value: Value| {
            let inst = self.behind(value, Opcode::And)?;
            (self.const_i64(self.arg(inst, 1)) == Some(31)).then(|| self.arg(inst, 0))
        };
        let negated = masked(other)?;
        let plain = masked(amount).unwrap_or(amount);
        let opposite = self.is_less(negated, 0, plain) || self.is_less(negated, 32, plain);
        let opposite = opposite || self.is_less(negated, 0, amount) || self.is_less(negated, 32, amount);
        // The funnel shift masks by itself.
        (opposite && a == b && self.is_op(inst, Opcode::Or)).then_some((a, b, plain))
    }

    /// Whether `value` is `from - amount`.
    fn is_less(&self, value: Value, from: i64, amount: Value) -> bool {
        self.behind(value, Opcode::Sub)
            .is_some_and(|inst| self.const_i64(self.arg(inst, 0)) == Some(from) && self.arg(inst, 1) == amount)
    }

    /// The n of `(1 << n) - 1`, `~(-1 << n)` or `-1 >> (32 - n)`. No zero bits and all of them are undefined in one or the other.
    pub(super) fn mask_of_low_bits(&self, inst: Inst) -> Option<Value> {
        if self.is_op(inst, Opcode::Lshr) {
            let rest = self.behind(self.arg(inst, 1), Opcode::Sub)?;
            let ones = self.const_i64(self.arg(inst, 0)) == Some(-1);
            return (ones && self.const_i64(self.arg(rest, 0)) == Some(32)).then(|| self.arg(rest, 1));
        }
        let base = if self.is_op(inst, Opcode::Add) {
            1
        } else if self.is_op(inst, Opcode::Xor) {
            -1
        } else {
            return None;
        };
        if self.const_i64(self.arg(inst, 1)) != Some(-1) {
            return None;
        }
        let shift = self.only_for_this(self.arg(inst, 0), Opcode::Shl)?;
        let variable = self.const_i64(self.arg(shift, 1)).is_none();
        (variable && self.const_i64(self.arg(shift, 0)) == Some(base)).then(|| self.arg(shift, 1))
    }

    /// The a of `a ^ (a >> 31)`: the bits that differ from the sign.
    pub(super) fn without_sign(&self, inst: Inst) -> Option<Value> {
        if !self.is_op(inst, Opcode::Xor) {
            return None;
        }
        let (x, y) = (self.arg(inst, 0), self.arg(inst, 1));
        [(x, y), (y, x)].into_iter().find_map(|(a, copies)| {
            let shift = self.only_for_this(copies, Opcode::Ashr)?;
            (self.arg(shift, 0) == a && self.const_i64(self.arg(shift, 1)) == Some(31)).then_some(a)
        })
    }

    /// The word and the factor behind a shift that loses nothing signed and is extended: `a << n` as a product.
    pub(super) fn extended_shift(&self, inst: Inst) -> Option<(Value, i64)> {
        let data = &self.ir.dfg.insts[inst];
        if data.op != Opcode::Sext || data.ty != Type::I64 {
            return None;
        }
        let shift = self.only_for_this(self.arg(inst, 0), Opcode::Shl)?;
        // The factor of a signed product is positive.
        let by = self.const_i64(self.arg(shift, 1)).filter(|by| (0..=30).contains(by))?;
        self.ir.dfg.insts[shift].flags.contains(Flags::NSW).then(|| (self.arg(shift, 0), 1 << by))
    }

    /// The a and n of `(a << (32 - n)) >> (32 - n)`.
    pub(super) fn kept_low_bits(&self, inst: Inst) -> Option<(Value, Value)> {
        if !self.is_op(inst, Opcode::Ashr) && !self.is_op(inst, Opcode::Lshr) {
            return None;
        }
        let left = self.only_for_this(self.arg(inst, 0), Opcode::Shl)?;
        let by = self.arg(inst, 1);
        if self.arg(left, 1) != by {
            return None;
        }
        let inner = self.behind(by, Opcode::Sub)?;
        (self.const_i64(self.arg(inner, 0)) == Some(32)).then(|| (self.arg(left, 0), self.arg(inner, 1)))
    }

    /// The table, eight bytes in two words, and the index of `(c >> index * n) & m`, if the index is below four, or below eight and the
    /// first byte zero.
    pub(super) fn small_table(&self, inst: Inst) -> Option<(i64, i64, Value)> {
        if !self.is_op(inst, Opcode::And) {
            return None;
        }
        let kept = self.const_i64(self.arg(inst, 1)).filter(|kept| (1..=255).contains(kept))? as u32;
        let shift = self.only_for_this(self.arg(inst, 0), Opcode::Lshr)?;
        let all = self.const_i64(self.arg(shift, 0))? as u32;
        let amount = self.arg(shift, 1);
        let scaled = |op: Opcode| {
            let inst = self.only_for_this(amount, op)?;
            Some((self.arg(inst, 0), u32::try_from(self.const_i64(self.arg(inst, 1))?).ok()?))
        };
        let up = || scaled(Opcode::Shl).filter(|(_, by)| *by < 5).map(|(index, by)| (index, 1 << by));
        let (index, each) = scaled(Opcode::Mul).or_else(up)?;
        let most = self.possible_bits(index);
        if most > 7 || !(1..32).contains(&each) {
            return None;
        }
        // A shift by the width or more is undefined.
        let entry = |at: u32| u64::from(all.checked_shr(at * each).unwrap_or(0) & kept) << (8 * at);
        let table = (0..=most).fold(0, |table, at| table | entry(at));
        let fits = most <= 3 || table & 0xff == 0;
        fits.then(|| (i64::from(table as u32 as i32), i64::from((table >> 32) as u32 as i32), index))
    }
}
