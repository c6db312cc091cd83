//! Integer operations.

use ptxc_ir::{Extra, Flags, IntCC, Opcode, Type, Value};

use super::body::{Body, mask};

/// Defined for all operands; some are more frequent.
pub const PLAIN: &[Opcode] = &[
    Opcode::Add,
    Opcode::Add,
    Opcode::Sub,
    Opcode::Sub,
    Opcode::Mul,
    Opcode::Mul,
    Opcode::And,
    Opcode::Or,
    Opcode::Xor,
    Opcode::Smin,
    Opcode::Smax,
    Opcode::Umin,
    Opcode::Umax,
    Opcode::Umulh,
    Opcode::Smulh,
    Opcode::Clmul,
    Opcode::UaddSat,
    Opcode::SaddSat,
    Opcode::UsubSat,
    Opcode::SsubSat,
];
const SHIFTS: &[Opcode] = &[
    Opcode::Shl,
    Opcode::Lshr,
    Opcode::Ashr,
    Opcode::Shl,
    Opcode::Lshr,
    Opcode::Ashr,
    Opcode::UshlSat,
    Opcode::SshlSat,
];
const UNARY: &[Opcode] =
    &[Opcode::Abs, Opcode::Ctpop, Opcode::Ctlz, Opcode::Cttz, Opcode::Bswap, Opcode::Bitreverse, Opcode::Freeze];
const OVERFLOW: &[Opcode] = &[
    Opcode::UaddOverflow,
    Opcode::SaddOverflow,
    Opcode::UsubOverflow,
    Opcode::SsubOverflow,
    Opcode::UmulOverflow,
    Opcode::SmulOverflow,
];

impl Body<'_> {
    /// One integer operation, its result kept.
    pub fn integer(&mut self) {
        let scalar = self.int_type();
        let ty = self.widened(scalar);
        let value = match self.rng.below(16) {
            0..=5 => self.plain_integer(ty),
            6 | 7 => {
                let op = self.pick(SHIFTS, Opcode::Shl);
                let (value, amount) = (self.operand(ty), self.shift_amount(ty));
                self.op(op, &[value, amount])
            }
            8 => self.unary_integer(ty),
            9 => self.overflow(ty),
            10 => {
                let op = if self.once_in(2) { Opcode::Fshl } else { Opcode::Fshr };
                let (a, b) = (self.operand(ty), self.operand(ty));
                let amount = if self.once_in(2) { self.shift_amount(ty) } else { self.operand(ty) };
                let b = if self.once_in(3) { a } else { b };
                self.op(op, &[a, b, amount])
            }
            11 if self.features.division => self.divide(ty),
            12 if self.features.flags => self.promised(ty),
            13 if self.features.guarded_poison => self.guarded(ty),
            14 => self.resize_any(ty),
            _ => self.compare_integers(ty),
        };
        self.keep(value);
    }

    fn plain_integer(&mut self, ty: Type) -> Value {
        let op = self.pick(PLAIN, Opcode::Add);
        let a = self.operand(ty);
        let b = if self.once_in(12) { a } else { self.operand(ty) };
        self.op(op, &[a, b])
    }

    fn unary_integer(&mut self, ty: Type) -> Value {
        let op = self.pick(UNARY, Opcode::Abs);
        let op = if op == Opcode::Bswap && !ty.scalar_bits().is_multiple_of(16) { Opcode::Ctpop } else { op };
        let a = self.operand(ty);
        self.op(op, &[a])
    }

    /// An amount below the width.
    pub fn shift_amount(&mut self, ty: Type) -> Value {
        let width = ty.scalar_bits();
        if self.once_in(2) || width == 1 {
            let amount = self.rng.below(width as usize) as i64;
            return self.int(ty, amount);
        }
        let value = self.operand(ty);
        if self.once_in(4) {
            // The width itself fits every type but i1.
            let width = self.b.bits(ty, u128::from(width));
            return self.op(Opcode::Urem, &[value, width]);
        }
        self.masked(value, mask(width.ilog2()))
    }

    /// A value below two to the power of `bits`.
    fn bounded(&mut self, ty: Type, bits: u32) -> Value {
        let value = self.operand(ty);
        self.masked(value, mask(bits))
    }

    fn divide(&mut self, ty: Type) -> Value {
        let signed = self.once_in(2) && ty.scalar_bits() > 1;
        let op = match (signed, self.once_in(2)) {
            (true, true) => Opcode::Sdiv,
            (true, false) => Opcode::Srem,
            (false, true) => Opcode::Udiv,
            (false, false) => Opcode::Urem,
        };
        let dividend = self.operand(ty);
        let divisor = self.divisor(ty, signed);
        self.op(op, &[dividend, divisor])
    }

    /// Not zero; where signed, not -1 either.
    fn divisor(&mut self, ty: Type, signed: bool) -> Value {
        let width = ty.scalar_bits();
        let all = mask(width);
        let fits = |bits: u128| bits & all != 0 && !(signed && bits & all == all);
        if self.once_in(2) {
            let random = u128::from(self.rng.bits()) << 64 | u128::from(self.rng.bits());
            let shift = self.rng.below(width as usize) as u32;
            let bits = match self.rng.below(6) {
                0 => 1 << shift,
                1 => (1u128 << shift).wrapping_neg(),
                2 => mask(shift + 1),
                3 => random % 17,
                4 => random,
                _ => (random % 100).wrapping_neg(),
            };
            if fits(bits) {
                return self.b.bits(ty, bits);
            }
        }
        let value = self.operand(ty);
        let value = if signed { self.masked(value, all >> 1) } else { value };
        // In i2 the one positive number is 1.
        let one = self.int(ty, 1);
        self.op(Opcode::Or, &[value, one])
    }

    fn overflow(&mut self, ty: Type) -> Value {
        let op = self.pick(OVERFLOW, Opcode::UaddOverflow);
        let (a, b) = (self.operand(ty), self.operand(ty));
        let (sum, lost) = self.overflows(op, a, b);
        self.keep(lost);
        sum
    }

    /// An operation with flags whose promise holds.
    fn promised(&mut self, ty: Type) -> Value {
        let width = ty.scalar_bits();
        let with = |body: &mut Self, op, flags, args: &[Value]| body.emit(op, flags, ty, args, Extra::None);
        let wrap = [Flags::NSW, Flags::NUW, Flags::NSW | Flags::NUW];
        let flags = self.pick(&wrap, Flags::NSW);
        if width < 6 {
            return self.plain_integer(ty);
        }
        let shift = 1 + self.rng.below(width as usize / 2 - 1) as i64;
        let amount = self.int(ty, shift);
        match self.rng.below(8) {
            0 => {
                let (a, b) = (self.bounded(ty, width - 2), self.bounded(ty, width - 2));
                with(self, Opcode::Add, flags, &[a, b])
            }
            1 => {
                let (a, b) = (self.bounded(ty, width - 1), self.bounded(ty, width - 1));
                let more = self.op(Opcode::Or, &[a, b]);
                with(self, Opcode::Sub, flags, &[more, b])
            }
            2 => {
                let (a, b) = (self.bounded(ty, width / 2 - 1), self.bounded(ty, width / 2 - 1));
                with(self, Opcode::Mul, flags, &[a, b])
            }
            3 => {
                let a = self.bounded(ty, width / 2 - 1);
                with(self, Opcode::Shl, flags, &[a, amount])
            }
            4 => {
                let bits = u128::from(self.rng.bits()) << 64 | u128::from(self.rng.bits());
                let (a, b) = (self.operand(ty), self.operand(ty));
                let (a, b) = (self.masked(a, bits), self.masked(b, !bits));
                with(self, Opcode::Or, Flags::DISJOINT, &[a, b])
            }
            5 => {
                let a = self.operand(ty);
                let shifted = self.op(Opcode::Shl, &[a, amount]);
                let op = if self.once_in(2) { Opcode::Lshr } else { Opcode::Ashr };
                with(self, op, Flags::EXACT, &[shifted, amount])
            }
            6 if self.features.division => {
                let a = self.bounded(ty, width / 2 - 1);
                let factor = 1 + self.rng.below(1 << (width / 2 - 1).min(10)) as i64;
                let factor = self.int(ty, factor);
                let product = self.op(Opcode::Mul, &[a, factor]);
                let op = if self.once_in(2) { Opcode::Udiv } else { Opcode::Sdiv };
                with(self, op, Flags::EXACT, &[product, factor])
            }
            _ => {
                let a = self.bounded(ty, width - 1);
                let wider = self.int_type();
                if wider.scalar_bits() <= width {
                    return a;
                }
                let wide = ty.with_scalar(wider);
                self.emit(Opcode::Zext, Flags::NNEG, wide, &[a], Extra::None)
            }
        }
    }

    /// A result that may be poison behind a select that then takes another.
    fn guarded(&mut self, ty: Type) -> Value {
        let width = ty.scalar_bits();
        let (a, b, other) = (self.operand(ty), self.operand(ty), self.operand(ty));
        if width > 1 && self.once_in(2) {
            let op = self.pick(&[Opcode::Shl, Opcode::Lshr, Opcode::Ashr], Opcode::Shl);
            let limit = self.b.bits(ty, u128::from(width));
            let shifted = self.op(op, &[a, b]);
            let fits = self.icmp(IntCC::Ult, b, limit);
            return self.select(fits, shifted, other);
        }
        let (op, check, flags) = self.pick(
            &[
                (Opcode::Add, Opcode::SaddOverflow, Flags::NSW),
                (Opcode::Sub, Opcode::SsubOverflow, Flags::NSW),
                (Opcode::Mul, Opcode::SmulOverflow, Flags::NSW),
                (Opcode::Add, Opcode::UaddOverflow, Flags::NUW),
                (Opcode::Sub, Opcode::UsubOverflow, Flags::NUW),
                (Opcode::Mul, Opcode::UmulOverflow, Flags::NUW),
            ],
            (Opcode::Add, Opcode::SaddOverflow, Flags::NSW),
        );
        let (_, lost) = self.overflows(check, a, b);
        let result = self.emit(op, flags, ty, &[a, b], Extra::None);
        self.select(lost, other, result)
    }

    /// Another width, and perhaps back.
    fn resize_any(&mut self, ty: Type) -> Value {
        let scalar = self.int_type();
        let other = ty.with_scalar(scalar);
        let value = self.operand(ty);
        let resized = self.resized(value, other);
        if self.once_in(3) { self.resized(resized, ty) } else { resized }
    }

    fn compare_integers(&mut self, ty: Type) -> Value {
        let cc = self.pick(IntCC::ALL, IntCC::Eq);
        let (a, b) = (self.operand(ty), self.operand(ty));
        let holds = self.icmp(cc, a, b);
        if self.features.flags && !ty.is_vector() && self.once_in(8) {
            // Holds for all: a promise to the optimizer.
            let all = self.b.bits(ty, mask(ty.scalar_bits()));
            let always = self.icmp(IntCC::Ule, a, all);
            self.b.inst(Opcode::Assume, Flags::EMPTY, Type::INVALID, &[always], Extra::None);
        }
        if self.once_in(2) {
            return holds;
        }
        let result = self.any_type();
        let condition = if ty.is_vector() && result.lanes() != ty.lanes() { self.operand(Type::I1) } else { holds };
        let condition = match (self.b.ty(condition).is_vector(), result.is_vector()) {
            (true, false) => self.operand(Type::I1),
            _ => condition,
        };
        let (x, y) = (self.operand(result), self.operand(result));
        self.select(condition, x, y)
    }
}
