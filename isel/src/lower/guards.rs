//! Shifts that a choice guards against amounts of the width and more: shifts of PTX clamp (PTX ISA 9.7.8, shl and shr).

use ptxc_ir::{Extra, Inst, IntCC, Opcode, Type, Value};

use super::Lower;

impl Lower<'_> {
    /// `n < width ? a << n : what is left of it`, as a and the amount, for one of the three shifts.
    pub(super) fn guarded_shift(&self, inst: Inst, op: Opcode) -> Option<(Value, Value)> {
        let data = &self.ir.dfg.insts[inst];
        let (ty, width) = (data.ty, i64::from(data.ty.bits()));
        if data.op != Opcode::Select || !matches!(ty, Type::I16 | Type::I32 | Type::I64) {
            return None;
        }
        let (inside, outside) = self.guard(inst, width)?;
        let shift = self.pure_def(inside.1).filter(|shift| self.ir.dfg.insts[*shift].op == op)?;
        let (a, n) = (self.arg(shift, 0), self.arg(shift, 1));
        // A wide amount is taken to 32 bits, in which the bits above would be lost.
        let fits = ty.bits() <= 32 || self.is_extended_word(n);
        let left =
            if op == Opcode::Ashr { self.is_all_sign(outside, a, width) } else { self.const_i64(outside) == Some(0) };
        let same = n == inside.0 || self.is_extension_of(n, inside.0);
        (same && fits && left && self.const_i64(n).is_none()).then_some((a, n))
    }

    /// The amount and the value of the way where it is less than the width, and the value of the other way.
    fn guard(&self, choice: Inst, width: i64) -> Option<((Value, Value), Value)> {
        let test = self.pure_def(self.arg(choice, 0))?;
        let Extra::IntCC(cc) = self.ir.dfg.insts[test].extra else { return None };
        if self.ir.dfg.insts[test].op != Opcode::Icmp {
            return None;
        }
        let bound = self.const_i64(self.arg(test, 1))?;
        let below_first = match cc {
            IntCC::Ult if bound == width => true,
            IntCC::Ule if bound == width - 1 => true,
            IntCC::Uge if bound == width => false,
            IntCC::Ugt if bound == width - 1 => false,
            _ => return None,
        };
        let (then, other) = (self.arg(choice, 1), self.arg(choice, 2));
        let (inside, outside) = if below_first { (then, other) } else { (other, then) };
        Some(((self.arg(test, 0), inside), outside))
    }

    /// A number of 64 bits that is one of 32 with zeros above.
    fn is_extended_word(&self, value: Value) -> bool {
        self.pure_def(value).is_some_and(|inst| {
            self.ir.dfg.insts[inst].op == Opcode::Zext && self.ir.dfg.ty(self.arg(inst, 0)) == Type::I32
        })
    }

    /// A narrower number with zeros above: less than the width where that is.
    fn is_extension_of(&self, value: Value, narrow: Value) -> bool {
        self.pure_def(value)
            .is_some_and(|inst| self.ir.dfg.insts[inst].op == Opcode::Zext && self.arg(inst, 0) == narrow)
    }

    /// The copies of the sign of `a`.
    fn is_all_sign(&self, value: Value, a: Value, width: i64) -> bool {
        self.pure_def(value).is_some_and(|inst| {
            self.ir.dfg.insts[inst].op == Opcode::Ashr
                && self.arg(inst, 0) == a
                && self.const_i64(self.arg(inst, 1)) == Some(width - 1)
        })
    }
}
