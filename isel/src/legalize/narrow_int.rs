//! Integers of a width that no register has, computed in a wider container.
//!
//! A container's upper bits are unspecified; each operation extends its operands only where upper bits reach the
//! result, and records what it knows of the result's. `bits` is always smaller than the container. 16-bit operations
//! that PTX lacks come here too, in a 32-bit container.

use ptxc_ir::{IntCC, Opcode, Type, Value};

use super::context::Context;
use crate::rules::Pattern;

impl Context<'_> {
    fn extended(&mut self, signed: bool, value: Value, bits: u32) -> Value {
        if signed { self.sign_extended(value, bits) } else { self.zero_extended(value, bits) }
    }

    /// A one-operand operation.
    pub fn narrow_unary(&mut self, op: Opcode, bits: u32, a: Value) -> Value {
        self.note(Pattern::LegalNarrowUnary);
        let ty = self.ty(a);
        let spare = i64::from(ty.bits() - bits);
        match op {
            Opcode::Abs => {
                let a = self.sign_extended(a, bits);
                let r = self.un(op, a);
                self.fits_unsigned(r, bits)
            }
            Opcode::Ctpop => {
                let a = self.zero_extended(a, bits);
                let r = self.un(op, a);
                self.fits_unsigned(r, 7.min(bits))
            }
            Opcode::Ctlz => {
                let a = self.zero_extended(a, bits);
                let r = self.un(op, a);
                let r = self.bin_imm(Opcode::Sub, r, spare);
                self.fits_unsigned(r, 7.min(bits))
            }
            Opcode::Cttz => {
                let stop = self.bits(ty, 1 << bits);
                let a = self.bin(Opcode::Or, a, stop);
                let r = self.un(op, a);
                self.fits_unsigned(r, 7.min(bits))
            }
            // Both bring the low bits to the top of the container.
            Opcode::Bswap | Opcode::Bitreverse => {
                let r = self.un(op, a);
                let r = self.bin_imm(Opcode::Lshr, r, spare);
                self.fits_unsigned(r, bits)
            }
            _ => a,
        }
    }

    /// A two-operand operation.
    pub fn narrow_binary(&mut self, op: Opcode, bits: u32, a: Value, b: Value) -> Value {
        self.note(Pattern::LegalNarrowBinary);
        match op {
            Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Clmul | Opcode::And | Opcode::Or | Opcode::Xor => {
                let r = self.bin(op, a, b);
                self.record_logic(op, a, b, r)
            }
            Opcode::Shl => {
                let amount = self.zero_extended(b, bits);
                self.bin(op, a, amount)
            }
            Opcode::Lshr | Opcode::Ashr => {
                let signed = op == Opcode::Ashr;
                let (a, amount) = (self.extended(signed, a, bits), self.zero_extended(b, bits));
                let r = self.bin(op, a, amount);
                self.record(signed, r, bits)
            }
            Opcode::Udiv | Opcode::Urem | Opcode::Umin | Opcode::Umax => self.extended_binary(op, false, bits, a, b),
            Opcode::Sdiv | Opcode::Srem | Opcode::Smin | Opcode::Smax => self.extended_binary(op, true, bits, a, b),
            Opcode::Umulh | Opcode::Smulh => self.narrow_high_product(op == Opcode::Smulh, bits, a, b),
            _ => self.narrow_saturating(op, bits, a, b),
        }
    }

    fn record(&mut self, signed: bool, value: Value, bits: u32) -> Value {
        if signed { self.fits_signed(value, bits) } else { self.fits_unsigned(value, bits) }
    }

    fn record_logic(&mut self, op: Opcode, a: Value, b: Value, r: Value) -> Value {
        let (wa, wb) = (self.unsigned_width(a), self.unsigned_width(b));
        let (sa, sb) = (self.signed_width(a), self.signed_width(b));
        match op {
            Opcode::And => {
                self.fits_unsigned(r, wa.min(wb));
                self.fits_signed(r, sa.max(sb))
            }
            Opcode::Or | Opcode::Xor => {
                self.fits_unsigned(r, wa.max(wb));
                self.fits_signed(r, sa.max(sb))
            }
            _ => r,
        }
    }

    fn extended_binary(&mut self, op: Opcode, signed: bool, bits: u32, a: Value, b: Value) -> Value {
        let (a, b) = (self.extended(signed, a, bits), self.extended(signed, b, bits));
        let r = self.bin(op, a, b);
        // The one signed quotient that does not fit, the minimum by −1, is undefined behaviour.
        self.record(signed, r, bits)
    }

    fn narrow_high_product(&mut self, signed: bool, bits: u32, a: Value, b: Value) -> Value {
        self.note(Pattern::LegalNarrowHighProduct);
        let ty = self.ty(a);
        let (a, b) = (self.extended(signed, a, bits), self.extended(signed, b, bits));
        let low = self.bin(Opcode::Mul, a, b);
        if 2 * bits <= ty.bits() {
            let shift = if signed { Opcode::Ashr } else { Opcode::Lshr };
            let r = self.bin_imm(shift, low, i64::from(bits));
            return self.record(signed, r, bits);
        }
        let high = self.bin(if signed { Opcode::Smulh } else { Opcode::Umulh }, a, b);
        let amount = self.imm(ty, i64::from(bits));
        self.tern(Opcode::Fshr, ptxc_ir::Flags::EMPTY, high, low, amount)
    }

    /// The largest (and smallest) number of so many bits.
    fn limits(&mut self, ty: Type, signed: bool, bits: u32) -> (Value, Value) {
        if !signed {
            return (self.bits(ty, (1 << bits) - 1), self.imm(ty, 0));
        }
        (self.bits(ty, (1 << (bits - 1)) - 1), self.bits(ty, (-1i128 << (bits - 1)) as u128))
    }

    fn narrow_saturating(&mut self, op: Opcode, bits: u32, a: Value, b: Value) -> Value {
        self.note(Pattern::LegalNarrowSaturating);
        let ty = self.ty(a);
        let signed = matches!(op, Opcode::SaddSat | Opcode::SsubSat | Opcode::SshlSat);
        let (most, least) = self.limits(ty, signed, bits);
        let a = self.extended(signed, a, bits);
        if matches!(op, Opcode::UshlSat | Opcode::SshlSat) {
            let amount = self.zero_extended(b, bits);
            let shifted = self.bin(Opcode::Shl, a, amount);
            let kept = self.extended(signed, shifted, bits);
            let back = self.bin(if signed { Opcode::Ashr } else { Opcode::Lshr }, kept, amount);
            let lost = self.icmp(IntCC::Ne, back, a);
            let limit = if signed { self.by_sign(a, least, most) } else { most };
            let r = self.select(lost, limit, kept);
            return self.record(signed, r, bits);
        }
        let b = self.extended(signed, b, bits);
        let sum =
            self.bin(if matches!(op, Opcode::UaddSat | Opcode::SaddSat) { Opcode::Add } else { Opcode::Sub }, a, b);
        let r = match op {
            Opcode::UaddSat => self.bin(Opcode::Umin, sum, most),
            Opcode::UsubSat => self.bin(Opcode::Smax, sum, least),
            _ => {
                let r = self.bin(Opcode::Smin, sum, most);
                self.bin(Opcode::Smax, r, least)
            }
        };
        self.record(signed, r, bits)
    }

    /// `a < 0 ? negative : other`.
    pub fn by_sign(&mut self, a: Value, negative: Value, other: Value) -> Value {
        let is_negative = self.icmp_imm(IntCC::Slt, a, 0);
        self.select(is_negative, negative, other)
    }

    /// An overflow operation: result and overflow.
    pub fn narrow_overflow(&mut self, op: Opcode, bits: u32, a: Value, b: Value) -> (Value, Value) {
        self.note(Pattern::LegalNarrowOverflow);
        let signed = matches!(op, Opcode::SaddOverflow | Opcode::SsubOverflow | Opcode::SmulOverflow);
        let ty = self.ty(a);
        let (a, b) = (self.extended(signed, a, bits), self.extended(signed, b, bits));
        let plain = match op {
            Opcode::UaddOverflow | Opcode::SaddOverflow => Opcode::Add,
            Opcode::UsubOverflow | Opcode::SsubOverflow => Opcode::Sub,
            _ => Opcode::Mul,
        };
        if plain == Opcode::Mul && 2 * bits > ty.bits() {
            return self.narrow_wide_product(signed, bits, a, b);
        }
        let r = self.bin(plain, a, b);
        let overflow = if op == Opcode::UsubOverflow {
            self.icmp(IntCC::Ult, a, b)
        } else {
            let kept = self.extended(signed, r, bits);
            self.icmp(IntCC::Ne, kept, r)
        };
        (r, overflow)
    }

    /// Product and overflow where the product does not fit the container.
    fn narrow_wide_product(&mut self, signed: bool, bits: u32, a: Value, b: Value) -> (Value, Value) {
        if self.ty(a) == Type::I32 {
            let op = if signed { Opcode::Sext } else { Opcode::Zext };
            let (a, b) = (self.conv(op, a, Type::I64), self.conv(op, b, Type::I64));
            let product = self.bin(Opcode::Mul, a, b);
            let kept = self.extended(signed, product, bits);
            let overflow = self.icmp(IntCC::Ne, kept, product);
            return (self.conv(Opcode::Trunc, product, Type::I32), overflow);
        }
        let low = self.bin(Opcode::Mul, a, b);
        let high = self.bin(if signed { Opcode::Smulh } else { Opcode::Umulh }, a, b);
        let kept = self.extended(signed, low, bits);
        let cut = self.icmp(IntCC::Ne, kept, low);
        let beyond = if signed { self.bin_imm(Opcode::Ashr, low, 63) } else { self.imm(Type::I64, 0) };
        let above = self.icmp(IntCC::Ne, high, beyond);
        (kept, self.bin(Opcode::Or, cut, above))
    }

    /// Funnel shift: the amount is taken modulo the width.
    pub fn narrow_funnel(&mut self, op: Opcode, bits: u32, a: Value, b: Value, amount: Value) -> Value {
        self.note(Pattern::LegalNarrowFunnel);
        let ty = self.ty(a);
        let amount = self.zero_extended(amount, bits);
        let amount = if bits.is_power_of_two() {
            self.bin_imm(Opcode::And, amount, i64::from(bits) - 1)
        } else {
            self.bin_imm(Opcode::Urem, amount, i64::from(bits))
        };
        let width = self.imm(ty, i64::from(bits));
        let rest = self.bin(Opcode::Sub, width, amount);
        let low = self.zero_extended(b, bits);
        // `rest` may be the whole width, which is less than the container: no amount is out of range.
        let (up, down) = if op == Opcode::Fshl { (amount, rest) } else { (rest, amount) };
        let high = self.bin(Opcode::Shl, a, up);
        let low = self.bin(Opcode::Lshr, low, down);
        self.bin(Opcode::Or, high, low)
    }

    /// Comparison.
    pub fn narrow_compare(&mut self, cc: IntCC, bits: u32, a: Value, b: Value) -> Value {
        self.note(Pattern::LegalNarrowCompare);
        let (a, b) = (self.extended(cc.is_signed(), a, bits), self.extended(cc.is_signed(), b, bits));
        self.icmp(cc, a, b)
    }
}
