//! Float operations and conversions. Results are exact: no flag that allows another one is used.

use ptxc_ir::{Extra, Flags, FloatCC, FloatKind, IntCC, Opcode, Type, Value};

use super::body::Body;

/// Operations of two operands; some are more frequent.
pub const BINARY: &[Opcode] = &[
    Opcode::Fadd,
    Opcode::Fadd,
    Opcode::Fsub,
    Opcode::Fmul,
    Opcode::Fmul,
    Opcode::Fdiv,
    Opcode::Fmin,
    Opcode::Fmax,
    Opcode::Fminimum,
    Opcode::Fmaximum,
];
const UNARY: &[Opcode] = &[
    Opcode::Fneg,
    Opcode::Fabs,
    Opcode::Fsqrt,
    Opcode::Frcp,
    Opcode::Ffloor,
    Opcode::Fceil,
    Opcode::Ftrunc,
    Opcode::Frint,
    Opcode::Fround,
    Opcode::Freeze,
];
const NARROW: &[FloatKind] = &[
    FloatKind::E4m3,
    FloatKind::E5m2,
    FloatKind::E2m3,
    FloatKind::E3m2,
    FloatKind::E2m1,
    FloatKind::Ue8m0,
    FloatKind::Tf32,
];

impl Body<'_> {
    /// A scalar float type.
    pub fn float_type(&mut self) -> Type {
        let floats = std::mem::take(&mut self.floats);
        let ty = self.pick(&floats, Type::F32);
        self.floats = floats;
        ty
    }

    /// One float operation, its result kept.
    pub fn float(&mut self) {
        let scalar = self.float_type();
        let ty = self.widened(scalar);
        let value = match self.rng.below(14) {
            _ if self.features.classes && self.once_in(6) => self.classes(),
            _ if self.features.signs && self.once_in(8) => self.signs(),
            _ if self.features.stochastic && self.once_in(10) => self.stochastic(),
            0..=3 => {
                let op = self.pick(BINARY, Opcode::Fadd);
                let (a, b) = (self.operand(ty), self.operand(ty));
                let flags = self.float_flags(op, ty);
                self.emit(op, flags, ty, &[a, b], Extra::None)
            }
            4 => {
                let (a, b, c) = (self.operand(ty), self.operand(ty), self.operand(ty));
                let flags = self.float_flags(Opcode::Fma, ty);
                self.emit(Opcode::Fma, flags, ty, &[a, b, c], Extra::None)
            }
            5 | 6 => {
                let op = self.pick(UNARY, Opcode::Fneg);
                let a = self.operand(ty);
                let flags = self.float_flags(op, ty);
                self.emit(op, flags, ty, &[a], Extra::None)
            }
            7 => {
                let (a, b) = (self.operand(ty), self.operand(ty));
                // The sign of a NaN is not specified.
                let sign = self.settled(b);
                self.op(Opcode::Copysign, &[a, sign])
            }
            8 => self.class(ty),
            9 => self.compare_floats(ty),
            10 | 11 => self.float_to_integer(ty),
            12 if self.features.narrow_floats => self.narrow(ty),
            _ => self.float_to_float(ty),
        };
        self.keep(value);
    }

    /// Rounding, flushing and saturation, where the type has them.
    fn float_flags(&mut self, op: Opcode, ty: Type) -> Flags {
        let mut flags = Flags::EMPTY;
        if !self.features.rounding || !self.once_in(3) {
            return flags;
        }
        let kind = ty.float_kind();
        let rounds = matches!(op, Opcode::Fadd | Opcode::Fsub | Opcode::Fmul | Opcode::Fdiv)
            || matches!(op, Opcode::Fma | Opcode::Fsqrt | Opcode::Frcp);
        let single = kind == Some(FloatKind::F32);
        if rounds && (single || kind == Some(FloatKind::F64)) {
            flags |= self.pick(&[Flags::EMPTY, Flags::RZ, Flags::RM, Flags::RP], Flags::EMPTY);
        }
        if single && op != Opcode::Freeze && self.once_in(3) {
            flags |= Flags::FTZ;
        }
        let saturates = matches!(op, Opcode::Fadd | Opcode::Fsub | Opcode::Fmul | Opcode::Fma);
        if saturates && single && self.once_in(4) {
            flags |= Flags::SAT;
        }
        flags
    }

    fn class(&mut self, ty: Type) -> Value {
        let a = self.operand(ty);
        // Both kinds of NaN or none: which one an operation gives is not specified.
        let nan = if self.once_in(2) { 3 } else { 0 };
        let mask = nan | (self.rng.below(256) as u64) << 2;
        self.emit(Opcode::Fclass, Flags::EMPTY, ty, &[a], Extra::Imm(mask))
    }

    fn compare_floats(&mut self, ty: Type) -> Value {
        let cc = self.pick(FloatCC::ALL, FloatCC::Olt);
        let (a, b) = (self.operand(ty), self.operand(ty));
        let holds = self.fcmp(cc, a, b);
        if self.once_in(2) {
            return holds;
        }
        let (x, y) = if self.once_in(2) { (a, b) } else { (self.operand(ty), self.operand(ty)) };
        self.select(holds, x, y)
    }

    fn float_to_integer(&mut self, ty: Type) -> Value {
        let scalar = self.int_type();
        let to = ty.with_scalar(scalar);
        let a = self.operand(ty);
        let rounding = [Flags::EMPTY, Flags::EMPTY, Flags::RN, Flags::RZ, Flags::RM, Flags::RP];
        let flags = if self.features.rounding { self.pick(&rounding, Flags::EMPTY) } else { Flags::EMPTY };
        let signed = self.once_in(2);
        if self.once_in(2) || scalar.scalar_bits() < 8 {
            let op = if signed { Opcode::FptosiSat } else { Opcode::FptouiSat };
            return self.emit(op, flags, to, &[a], Extra::None);
        }
        // In range by itself; NaN gives the bound.
        let op = if signed { Opcode::Fptosi } else { Opcode::Fptoui };
        let low = self.small(ty, if signed { -100 } else { 0 });
        let high = self.small(ty, 100);
        let above = self.op(Opcode::Fmax, &[a, low]);
        let inside = self.op(Opcode::Fmin, &[above, high]);
        self.emit(op, flags, to, &[inside], Extra::None)
    }

    /// A whole number as a constant.
    pub fn small(&mut self, ty: Type, number: i32) -> Value {
        let kind = ty.float_kind().unwrap_or(FloatKind::F32);
        let bits = ptxc_interp::float::from_int(kind, number as u128, 128, true, Default::default());
        self.b.bits(ty, bits.into())
    }

    fn float_to_float(&mut self, ty: Type) -> Value {
        let a = self.operand(ty);
        let scalar = self.float_type();
        let to = ty.with_scalar(scalar);
        self.between(a, to).unwrap_or(a)
    }

    /// A conversion that the verifier takes, if there is one.
    fn between(&mut self, value: Value, to: Type) -> Option<Value> {
        let from = self.b.ty(value);
        let op = [Opcode::Fptrunc, Opcode::Fpext].into_iter().find(|op| ptxc_ir::verifier::converts(*op, from, to))?;
        let single = from.scalar() == Type::F64 && to.scalar() == Type::F32;
        let rounds = self.features.rounding && op == Opcode::Fptrunc && single && self.once_in(3);
        let flags = if rounds { self.pick(&[Flags::RZ, Flags::RM, Flags::RP], Flags::EMPTY) } else { Flags::EMPTY };
        Some(self.emit(op, flags, to, &[value], Extra::None))
    }

    /// A test of the bits of an f32 without the sign, or of two of them.
    fn classes(&mut self) -> Value {
        let x = self.operand(Type::F32);
        let x = self.settled(x);
        let bits = self.convert(Opcode::Bitcast, x, Type::I32);
        let first = self.tested_bits(x, bits);
        if self.once_in(2) {
            return first;
        }
        let second = self.tested_bits(x, bits);
        let op = if self.once_in(2) { Opcode::And } else { Opcode::Or };
        self.op(op, &[first, second])
    }

    fn tested_bits(&mut self, x: Value, bits: Value) -> Value {
        let exponent = 0x7f80_0000u32;
        let near = |body: &mut Self, number: u32| number.wrapping_add(body.rng.below(3) as u32).wrapping_sub(1);
        let number = match self.rng.below(4) {
            0 => exponent,
            1 => 0x0080_0000,
            2 => (self.rng.below(256) as u32) << 23,
            _ => self.rng.bits() as u32 >> 1,
        };
        let number = if self.once_in(2) { number } else { near(self, number) };
        let (value, bound) = match self.rng.below(7) {
            0 | 1 => (self.masked(bits, 0x7fff_ffff), number),
            2 => (self.masked(bits, exponent.into()), number),
            3 => {
                let shifted = self.shift(Opcode::Lshr, bits, 23);
                (self.masked(shifted, 255), number >> 23)
            }
            4 => (self.shift(Opcode::Shl, bits, 1), number << 1),
            5 => (self.masked(bits, 0x007f_ffff), 0),
            _ => {
                let magnitude = if self.once_in(2) { self.op(Opcode::Fabs, &[x]) } else { x };
                let number = if number & 0x7fff_ffff > exponent { exponent } else { number };
                let bound = self.b.bits(Type::F32, number.into());
                let bound = if self.once_in(3) { x } else { bound };
                let cc = self.pick(FloatCC::ALL, FloatCC::Uno);
                return self.fcmp(cc, magnitude, bound);
            }
        };
        let value = match self.once_in(4) {
            true => {
                let least = self.rng.bits() as u32 >> (1 + self.rng.below(30));
                let least = self.int(Type::I32, -i64::from(least));
                self.op(Opcode::Add, &[value, least])
            }
            false => value,
        };
        let conditions = [IntCC::Eq, IntCC::Ne, IntCC::Ult, IntCC::Ule, IntCC::Ugt, IntCC::Uge, IntCC::Slt, IntCC::Sgt];
        let cc = self.pick(&conditions, IntCC::Eq);
        let bound = self.b.bits(Type::I32, bound.into());
        self.icmp(cc, value, bound)
    }

    /// The lesser or greater of two magnitudes, or nearly, with the sign of a product.
    fn signs(&mut self) -> Value {
        let scalar = self.float_type();
        let ty = if scalar.scalar_bits() == 16 && self.once_in(2) { scalar.with_lanes(2) } else { scalar };
        let int = Type::int(ty.bits());
        let (a, b) = (self.operand(ty), self.operand(ty));
        // The sign of a NaN is not specified.
        let (a, b) = (self.settled(a), self.settled(b));
        let extremes = [Opcode::Fmin, Opcode::Fmax, Opcode::Fminimum, Opcode::Fmaximum];
        let extreme = self.pick(&extremes, Opcode::Fmin);
        let x = self.op(Opcode::Fabs, &[a]);
        let y = if self.once_in(12) { b } else { self.op(Opcode::Fabs, &[b]) };
        let magnitude = self.op(extreme, &[x, y]);
        let (p, q) = (self.convert(Opcode::Bitcast, a, int), self.convert(Opcode::Bitcast, b, int));
        let sign = if self.once_in(12) { p } else { self.op(Opcode::Xor, &[p, q]) };
        if self.once_in(2) {
            let sign = self.convert(Opcode::Bitcast, sign, ty);
            return self.op(Opcode::Copysign, &[magnitude, sign]);
        }
        let top = 1u128 << (ty.scalar_bits() - 1);
        let bits = if ty.is_vector() { top << 16 | top } else { top };
        let sign = self.masked(sign, bits);
        // Of a NaN it stays one.
        let magnitude = self.convert(Opcode::Bitcast, magnitude, int);
        let result = self.op(Opcode::Xor, &[magnitude, sign]);
        self.convert(Opcode::Bitcast, result, ty)
    }

    /// To a format of at most 16 bits by random ones, and back.
    fn stochastic(&mut self) -> Value {
        let halves = [FloatKind::F16, FloatKind::Bf16];
        let quads = [FloatKind::E4m3, FloatKind::E5m2, FloatKind::E2m3, FloatKind::E3m2, FloatKind::E2m1];
        let (kind, lanes) = match self.once_in(3) {
            true => (self.pick(&halves, FloatKind::F16), 2),
            false => (self.pick(&quads, FloatKind::E4m3), 4),
        };
        let mut flags = if self.once_in(4) { Flags::EMPTY } else { Flags::SAT };
        if self.once_in(4) {
            flags |= Flags::RELU;
        }
        let wide = Type::F32.with_lanes(lanes);
        let (number, random) = (self.operand(wide), self.operand(Type::I32));
        let narrow = wide.with_scalar(Type::float(kind));
        let narrow = self.emit(Opcode::FptruncStochastic, flags, narrow, &[number, random], Extra::None);
        self.emit(Opcode::Fpext, Flags::EMPTY, wide, &[narrow], Extra::None)
    }

    /// To a narrow format and back.
    fn narrow(&mut self, ty: Type) -> Value {
        let kind = self.pick(NARROW, FloatKind::E4m3);
        let through = match kind {
            FloatKind::Tf32 => Type::F32,
            FloatKind::Ue8m0 => self.pick(&[Type::F32, Type::BF16], Type::F32),
            _ => self.pick(&[Type::F32, Type::F16], Type::F32),
        };
        let wide = ty.with_scalar(through);
        let a = self.operand(wide);
        // Scale factors round toward zero or up.
        let scale = kind == FloatKind::Ue8m0;
        let mut flags = if scale { self.pick(&[Flags::RZ, Flags::RP], Flags::RZ) } else { Flags::EMPTY };
        if kind != FloatKind::Tf32 && self.once_in(2) {
            flags |= Flags::SAT;
        }
        if !scale && kind != FloatKind::Tf32 && self.once_in(4) {
            flags |= Flags::RELU;
        }
        let narrow = self.emit(Opcode::Fptrunc, flags, wide.with_scalar(Type::float(kind)), &[a], Extra::None);
        self.emit(Opcode::Fpext, Flags::EMPTY, wide, &[narrow], Extra::None)
    }
}
