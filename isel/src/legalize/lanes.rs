//! Scalar operations on lanes: each operation of the table on one lane of any representation.
//!
//! Legal scalars keep their operation (a later pass asks whether the target has it); everything else goes to the file
//! of its representation.

use ptxc_ir::{Flags, FloatCC, IntCC, Opcode, Type, Value};

use super::context::Context;
use super::parts::{Lane, Repr, container, repr};

impl Context<'_> {
    fn wide_lane(limbs: (Value, Value)) -> Lane {
        Lane { lo: limbs.0, hi: Some(limbs.1) }
    }

    /// One operand; `ty` is the scalar type of the language.
    pub fn lane_unary(&mut self, op: Opcode, flags: Flags, ty: Type, a: Lane) -> Lane {
        match repr(ty) {
            Repr::Legal if ty == Type::I1 => self.predicate_unary(op, a.lo).into(),
            Repr::Legal => self.un_flags(op, flags, a.lo).into(),
            Repr::Int(bits) => self.narrow_unary(op, bits, a.lo).into(),
            Repr::Wide(bits) => {
                let a = self.limbs(a);
                Self::wide_lane(self.wide_unary(op, bits, a))
            }
        }
    }

    /// Two operands.
    pub fn lane_binary(&mut self, op: Opcode, flags: Flags, ty: Type, a: Lane, b: Lane) -> Lane {
        match repr(ty) {
            Repr::Legal if ty == Type::I1 => self.predicate_binary(op, a.lo, b.lo).into(),
            Repr::Legal => self.bin_flags(op, flags, a.lo, b.lo).into(),
            Repr::Int(bits) => self.narrow_binary(op, bits, a.lo, b.lo).into(),
            Repr::Wide(bits) => {
                let (a, b) = (self.limbs(a), self.limbs(b));
                Self::wide_lane(self.wide_binary(op, bits, a, b))
            }
        }
    }

    /// Three operands: funnel shifts and `fma`.
    pub fn lane_ternary(&mut self, op: Opcode, flags: Flags, ty: Type, a: Lane, b: Lane, c: Lane) -> Lane {
        match repr(ty) {
            // A funnel shift of one bit by an amount modulo 1 is one of the operands.
            Repr::Legal if ty == Type::I1 => {
                if op == Opcode::Fshl {
                    a
                } else {
                    b
                }
            }
            Repr::Legal => self.tern(op, flags, a.lo, b.lo, c.lo).into(),
            Repr::Int(bits) => self.narrow_funnel(op, bits, a.lo, b.lo, c.lo).into(),
            Repr::Wide(bits) => {
                let (a, b, c) = (self.limbs(a), self.limbs(b), self.limbs(c));
                Self::wide_lane(self.wide_funnel(op, bits, a, b, c))
            }
        }
    }

    /// Result and overflow.
    pub fn lane_overflow(&mut self, op: Opcode, ty: Type, a: Lane, b: Lane) -> (Lane, Lane) {
        match repr(ty) {
            Repr::Legal if ty == Type::I1 => {
                let (r, o) = self.predicate_overflow(op, a.lo, b.lo);
                (r.into(), o.into())
            }
            Repr::Legal => {
                let (r, o) = self.builder().overflow(op, a.lo, b.lo);
                (r.into(), o.into())
            }
            Repr::Int(bits) => {
                let (r, o) = self.narrow_overflow(op, bits, a.lo, b.lo);
                (r.into(), o.into())
            }
            Repr::Wide(bits) => {
                let (a, b) = (self.limbs(a), self.limbs(b));
                let (r, o) = self.wide_overflow(op, bits, a, b);
                (Self::wide_lane(r), o.into())
            }
        }
    }

    /// Integer or pointer comparison.
    pub fn lane_icmp(&mut self, cc: IntCC, ty: Type, a: Lane, b: Lane) -> Value {
        match repr(ty) {
            Repr::Legal if ty == Type::I1 => self.predicate_compare(cc, a.lo, b.lo),
            Repr::Legal => self.icmp(cc, a.lo, b.lo),
            Repr::Int(bits) => self.narrow_compare(cc, bits, a.lo, b.lo),
            Repr::Wide(bits) => {
                let (a, b) = (self.limbs(a), self.limbs(b));
                self.wide_compare(cc, bits, a, b)
            }
        }
    }

    /// Float comparison.
    pub fn lane_fcmp(&mut self, cc: FloatCC, flags: Flags, a: Lane, b: Lane) -> Value {
        match cc {
            FloatCC::False => self.bool(false),
            FloatCC::True => self.bool(true),
            _ => self.fcmp(cc, flags, a.lo, b.lo),
        }
    }

    /// `cond ? a : b`.
    pub fn lane_select(&mut self, cond: Value, a: Lane, b: Lane) -> Lane {
        let lo = self.select_part(cond, a.lo, b.lo);
        let hi = match (a.hi, b.hi) {
            (Some(x), Some(y)) => Some(self.select_part(cond, x, y)),
            _ => None,
        };
        Lane { lo, hi }
    }

    /// `cond ? a : b` of two parts, keeping what is known of both.
    pub fn select_part(&mut self, cond: Value, a: Value, b: Value) -> Value {
        let (unsigned, signed) =
            (self.unsigned_width(a).max(self.unsigned_width(b)), self.signed_width(a).max(self.signed_width(b)));
        let r = self.select(cond, a, b);
        if self.ty(r).is_int() {
            self.fits_unsigned(r, unsigned);
            self.fits_signed(r, signed);
        }
        r
    }

    /// The integer of type `ty` as a value of exactly `to`, a legal integer type or `i8`: cut, or zero-extended.
    pub fn lane_as_unsigned(&mut self, ty: Type, lane: Lane, to: Type) -> Value {
        let lane = self.lane_integer(Opcode::Zext, ty, lane, to);
        lane.lo
    }

    /// `trunc`, `zext` or `sext` (whichever way the widths differ) from one integer type to another.
    pub fn lane_integer(&mut self, extension: Opcode, from: Type, lane: Lane, to: Type) -> Lane {
        let (n, m) = (from.scalar_bits(), to.scalar_bits());
        let signed = extension == Opcode::Sext;
        if n == m {
            return lane;
        }
        if m < n {
            return self.lane_truncate(from, lane, to);
        }
        // Widen within the source's container, then move to the destination's.
        let source = self.extend_in_place(signed, from, lane);
        if m > 64 {
            let (lo, hi) = match source.hi {
                Some(hi) => (source.lo, hi),
                None => {
                    let lo = self.widen(signed, source.lo, Type::I64);
                    let hi = if signed { self.bin_imm(Opcode::Ashr, lo, 63) } else { self.imm(Type::I64, 0) };
                    (lo, hi)
                }
            };
            return Self::wide_lane((lo, hi));
        }
        let value = self.move_container(signed, source.lo, container(m));
        if n < self.ty(value).bits() {
            if signed {
                self.fits_signed(value, n)
            } else {
                self.fits_unsigned(value, n)
            };
        }
        value.into()
    }

    fn extend_in_place(&mut self, signed: bool, from: Type, lane: Lane) -> Lane {
        match repr(from) {
            Repr::Legal => lane,
            Repr::Int(bits) if signed => self.sign_extended(lane.lo, bits).into(),
            Repr::Int(bits) => self.zero_extended(lane.lo, bits).into(),
            Repr::Wide(bits) => {
                let limbs = self.limbs(lane);
                Self::wide_lane(self.wide_extended(signed, bits, limbs))
            }
        }
    }

    fn widen(&mut self, signed: bool, value: Value, to: Type) -> Value {
        let r = self.conv(if signed { Opcode::Sext } else { Opcode::Zext }, value, to);
        let width = self.unsigned_width(value);
        if !signed { self.fits_unsigned(r, width) } else { r }
    }

    /// An extended number in another container, which may be narrower when the number fits it.
    fn move_container(&mut self, signed: bool, value: Value, to: Type) -> Value {
        if self.ty(value).bits() > to.bits() {
            self.conv(Opcode::Trunc, value, to)
        } else {
            self.widen(signed, value, to)
        }
    }

    fn lane_truncate(&mut self, from: Type, lane: Lane, to: Type) -> Lane {
        let m = to.scalar_bits();
        if m > 64 {
            return lane;
        }
        if m == 1 {
            let bit = self.bin_imm(Opcode::And, lane.lo, 1);
            return self.icmp_imm(IntCC::Ne, bit, 0).into();
        }
        let target = container(m);
        let value = lane.lo;
        let have = self.ty(value);
        if have == target {
            return value.into();
        }
        if have.bits() < target.bits() {
            // An i16 cut to 8 bits lives in a 32-bit container.
            debug_assert!(from.scalar_bits() > m);
            return self.conv(Opcode::Zext, value, target).into();
        }
        let (unsigned, signed) = (self.unsigned_width(value), self.signed_width(value));
        let r = self.conv(Opcode::Trunc, value, target);
        if unsigned < target.bits() {
            self.fits_unsigned(r, unsigned);
        }
        if signed < target.bits() {
            self.fits_signed(r, signed);
        }
        r.into()
    }
}
