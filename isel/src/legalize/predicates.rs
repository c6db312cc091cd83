//! Operations on `i1`: every integer operation on one bit is logic.
//!
//! As a signed number the set bit is −1. Cases that the language leaves undefined or poison take the shortest form.

use ptxc_ir::{IntCC, Opcode, Value};

use super::context::Context;
use crate::rules::Pattern;

impl Context<'_> {
    /// A one-operand integer operation on `i1`.
    pub fn predicate_unary(&mut self, op: Opcode, a: Value) -> Value {
        self.note(Pattern::LegalPredicateUnary);
        match op {
            Opcode::Ctlz | Opcode::Cttz => self.not(a),
            // abs(−1) wraps to −1; population count and bit reversal of one bit are the bit.
            _ => a,
        }
    }

    /// A two-operand integer operation on `i1`.
    pub fn predicate_binary(&mut self, op: Opcode, a: Value, b: Value) -> Value {
        self.note(Pattern::LegalPredicateBinary);
        match op {
            Opcode::And | Opcode::Or | Opcode::Xor => self.bin(op, a, b),
            Opcode::Add | Opcode::Sub => self.bin(Opcode::Xor, a, b),
            Opcode::Mul | Opcode::Clmul | Opcode::Umin | Opcode::Smax => self.bin(Opcode::And, a, b),
            Opcode::Umax | Opcode::Smin | Opcode::UaddSat | Opcode::SaddSat => self.bin(Opcode::Or, a, b),
            Opcode::UsubSat | Opcode::SsubSat => {
                let not_b = self.not(b);
                self.bin(Opcode::And, a, not_b)
            }
            Opcode::Urem | Opcode::Srem | Opcode::Umulh | Opcode::Smulh => self.bool(false),
            // A divisor is 1 (or −1) and a shift amount 0, or the result does not matter.
            _ => a,
        }
    }

    /// An overflow operation on `i1`: result and overflow.
    pub fn predicate_overflow(&mut self, op: Opcode, a: Value, b: Value) -> (Value, Value) {
        self.note(Pattern::LegalPredicateOverflow);
        match op {
            Opcode::UaddOverflow | Opcode::SaddOverflow => (self.bin(Opcode::Xor, a, b), self.bin(Opcode::And, a, b)),
            Opcode::UsubOverflow | Opcode::SsubOverflow => {
                let not_a = self.not(a);
                (self.bin(Opcode::Xor, a, b), self.bin(Opcode::And, not_a, b))
            }
            Opcode::SmulOverflow => {
                let both = self.bin(Opcode::And, a, b);
                (both, both)
            }
            _ => (self.bin(Opcode::And, a, b), self.bool(false)),
        }
    }

    /// A comparison of `i1`.
    pub fn predicate_compare(&mut self, cc: IntCC, a: Value, b: Value) -> Value {
        self.note(Pattern::LegalPredicateCompare);
        match cc {
            IntCC::Ne => self.bin(Opcode::Xor, a, b),
            IntCC::Eq => {
                let differ = self.bin(Opcode::Xor, a, b);
                self.not(differ)
            }
            IntCC::Ult | IntCC::Sgt => {
                let not_a = self.not(a);
                self.bin(Opcode::And, not_a, b)
            }
            IntCC::Ugt | IntCC::Slt => {
                let not_b = self.not(b);
                self.bin(Opcode::And, a, not_b)
            }
            IntCC::Ule | IntCC::Sge => {
                let not_a = self.not(a);
                self.bin(Opcode::Or, not_a, b)
            }
            IntCC::Uge | IntCC::Sle => {
                let not_b = self.not(b);
                self.bin(Opcode::Or, a, not_b)
            }
        }
    }
}
