//! Float operations and conversions that the target lacks, on legal scalars.
//!
//! f16 and bf16 arithmetic is done in f32 and rounded again where that is exact: a format of p bits may be rounded from
//! one of at least 2p + 2 bits for `+ − × ÷ √` (f16 has 11 bits, bf16 8, f32 24), directed modes from any wider format.
//! A fused multiply-add has no such margin; it is done in f64, for bf16 rounded to odd, which keeps what the last
//! rounding needs to know.

use ptxc_ir::{Extra, Flags, FloatCC, Inst, IntCC, Opcode, Rounding, Type, Value};
use ptxc_targets::{Tok, tok};

use super::context::Context;
use super::helpers::Helper;
use crate::rules::Pattern;

/// The flags that say how an operation rounds.
fn rounding_flags(flags: Flags) -> Flags {
    flags.intersect(Flags::RN | Flags::RZ | Flags::RM | Flags::RP)
}

impl Context<'_> {
    /// Whether a float operation stays: the target has it, or it is one that selection refuses with a reason.
    pub fn is_float_op_kept(&self, inst: Inst) -> bool {
        let data = &self.func.dfg.insts[inst];
        if self.features.float_op(data.op, data.flags, data.ty) {
            return true;
        }
        if data.ty == Type::F64 {
            return false;
        }
        let function = matches!(data.op, Opcode::Fsin | Opcode::Fcos | Opcode::Fexp2 | Opcode::Flog2 | Opcode::Ftanh);
        let small = matches!(data.ty, Type::F16 | Type::BF16);
        let by_formula = data.op == Opcode::Ftanh && data.ty == Type::F32 && data.flags.contains(Flags::AFN);
        function && !small && !by_formula
    }

    /// Replaces a float operation.
    pub fn expand_float(&mut self, inst: Inst) {
        let data = self.func.dfg.insts[inst].clone();
        let args = self.args(inst);
        let result = if matches!(data.ty, Type::F16 | Type::BF16) {
            self.expand_half(data.op, data.flags, data.ty, &args)
        } else {
            self.expand_wide_float(data.op, data.flags, data.ty, &args)
        };
        self.replace(inst, &[result]);
    }

    fn expand_wide_float(&mut self, op: Opcode, flags: Flags, ty: Type, args: &[Value]) -> Value {
        match op {
            Opcode::Frem => self.remainder(flags, ty, args[0], args[1]),
            Opcode::Fround => self.round_half_away(flags, args[0]),
            Opcode::Fminimum | Opcode::Fmaximum => {
                let plain = if op == Opcode::Fminimum { Opcode::Fmin } else { Opcode::Fmax };
                let r = self.bin_flags(plain, flags, args[0], args[1]);
                self.note(Pattern::LegalNanWins);
                let unordered = self.fcmp(FloatCC::Uno, Flags::EMPTY, args[0], args[1]);
                let nan = self.bits(ty, if ty == Type::F32 { 0x7fff_ffff } else { 0x7ff8_0000_0000_0000 });
                self.select(unordered, nan, r)
            }
            Opcode::Frsqrt => {
                self.note(Pattern::LegalRsqrt);
                let root = self.un_flags(Opcode::Fsqrt, flags, args[0]);
                self.un_flags(Opcode::Frcp, flags, root)
            }
            Opcode::Fsin | Opcode::Fcos | Opcode::Fexp2 | Opcode::Flog2 | Opcode::Ftanh if ty == Type::F64 => {
                self.error(format!("`{}` on f64 has no instruction; call a library function", op.text()));
                args[0]
            }
            Opcode::Ftanh => self.approximate_tanh(flags, args[0]),
            _ if flags.contains(Flags::RELU) => {
                let r = self.value(op, flags.without(Flags::RELU), ty, args, Extra::None);
                self.positive_part(r)
            }
            _ if flags.contains(Flags::SAT) => {
                let r = self.value(op, flags.without(Flags::SAT), ty, args, Extra::None);
                let (zero, one) = (self.bits(ty, 0), self.bits(ty, super::convert::power_of_two(ty, 0)));
                let r = self.bin_flags(Opcode::Fmax, Flags::EMPTY, r, zero);
                self.bin_flags(Opcode::Fmin, Flags::EMPTY, r, one)
            }
            _ => {
                self.error(format!("internal: no expansion of {} {ty}", op.text()));
                args[0]
            }
        }
    }

    /// Zero for negative numbers and −0; NaN stays.
    fn positive_part(&mut self, value: Value) -> Value {
        self.note(Pattern::LegalRelu);
        let ty = self.ty(value);
        let zero = self.bits(ty, 0);
        let negative = self.fcmp(FloatCC::Ole, Flags::EMPTY, value, zero);
        self.select(negative, zero, value)
    }

    fn remainder(&mut self, flags: Flags, ty: Type, x: Value, y: Value) -> Value {
        self.note(Pattern::LegalRemainder);
        if flags.contains(Flags::AFN) {
            let quotient = self.bin_flags(Opcode::Fdiv, flags, x, y);
            let whole = self.un(Opcode::Ftrunc, quotient);
            let negative = self.un(Opcode::Fneg, whole);
            return self.tern(Opcode::Fma, Flags::EMPTY, negative, y, x);
        }
        let helper = if ty == Type::F32 { Helper::RemainderF32 } else { Helper::RemainderF64 };
        self.call_helper(helper, &[x, y])[0]
    }

    /// Toward zero, then one away from zero when the fraction is a half or more; the fraction is exact.
    fn round_half_away(&mut self, flags: Flags, x: Value) -> Value {
        self.note(Pattern::LegalRoundAway);
        let ty = self.ty(x);
        let whole = self.un_flags(Opcode::Ftrunc, flags, x);
        let fraction = self.bin_flags(Opcode::Fsub, Flags::EMPTY, x, whole);
        let fraction = self.un(Opcode::Fabs, fraction);
        let half = self.bits(ty, super::convert::power_of_two(ty, -1));
        let one = self.bits(ty, super::convert::power_of_two(ty, 0));
        let far = self.fcmp(FloatCC::Oge, Flags::EMPTY, fraction, half);
        let step = self.bin_flags(Opcode::Copysign, Flags::EMPTY, one, x);
        let away = self.bin_flags(Opcode::Fadd, Flags::EMPTY, whole, step);
        let r = self.select(far, away, whole);
        self.bin_flags(Opcode::Copysign, Flags::EMPTY, r, x)
    }

    /// 1 − 2 / (2^(2x·log2 e) + 1), under `afn`.
    fn approximate_tanh(&mut self, flags: Flags, x: Value) -> Value {
        self.note(Pattern::LegalTanh);
        let constant = |this: &mut Self, k: f32| this.bits(Type::F32, u128::from(k.to_bits()));
        let (factor, one, two) =
            (constant(self, 2.0 * std::f32::consts::LOG2_E), constant(self, 1.0), constant(self, -2.0));
        let exponent = self.bin_flags(Opcode::Fmul, flags, x, factor);
        let power = self.un_flags(Opcode::Fexp2, flags, exponent);
        let sum = self.bin_flags(Opcode::Fadd, flags, power, one);
        let inverse = self.un_flags(Opcode::Frcp, flags, sum);
        self.tern(Opcode::Fma, flags, inverse, two, one)
    }

    /// A float of at most 32 bits as f32.
    pub fn as_single(&mut self, value: Value) -> Value {
        self.conv_flags(Opcode::Fpext, Flags::EMPTY, value, Type::F32)
    }

    /// Subnormal f16 numbers, given in f32, become zero of the same sign.
    fn flush_half(&mut self, value: Value) -> Value {
        self.note(Pattern::LegalFlushHalf);
        let magnitude = self.un(Opcode::Fabs, value);
        let least = self.bits(Type::F32, super::convert::power_of_two(Type::F32, -14));
        let small = self.fcmp(FloatCC::Olt, Flags::EMPTY, magnitude, least);
        let zero = self.bits(Type::F32, 0);
        let zero = self.bin_flags(Opcode::Copysign, Flags::EMPTY, zero, value);
        self.select(small, zero, value)
    }

    fn expand_half(&mut self, op: Opcode, flags: Flags, ty: Type, args: &[Value]) -> Value {
        let exact = rounding_flags(flags.without(Flags::RN)).is_empty()
            && !flags.contains(Flags::FTZ)
            && !flags.contains(Flags::SAT);
        if ty == Type::BF16
            && self.features.bf16_fma
            && exact
            && matches!(op, Opcode::Fadd | Opcode::Fsub | Opcode::Fmul)
        {
            return self.bf16_by_fma(op, flags, args[0], args[1]);
        }
        if op == Opcode::Fma && !flags.contains(Flags::FTZ) {
            return self.half_fma(flags, ty, args);
        }
        self.note(Pattern::LegalHalfBySingle);
        let flush = flags.contains(Flags::FTZ) && ty == Type::F16;
        let flags = if ty == Type::F16 { flags.without(Flags::FTZ) } else { flags };
        let mut singles: smallvec::SmallVec<[Value; 3]> = args.iter().map(|v| self.as_single(*v)).collect();
        if flush {
            singles = singles.into_iter().map(|v| self.flush_half(v)).collect();
        }
        let mut r = self.value(op, flags, Type::F32, &singles, Extra::None);
        r = self.conv_flags(Opcode::Fptrunc, rounding_flags(flags), r, ty);
        if flush {
            let single = self.as_single(r);
            let flushed = self.flush_half(single);
            r = self.conv_flags(Opcode::Fptrunc, Flags::EMPTY, flushed, ty);
        }
        r
    }

    /// Sums and products as fused multiply-adds with 1, −1 and −0, which leave value and sign of zero as they are.
    fn bf16_by_fma(&mut self, op: Opcode, flags: Flags, a: Value, b: Value) -> Value {
        self.note(Pattern::LegalBf16ByFma);
        let constant = |this: &mut Self, bits: u128| this.bits(Type::BF16, bits);
        match op {
            Opcode::Fadd => {
                let one = constant(self, 0x3f80);
                self.tern(Opcode::Fma, flags, a, one, b)
            }
            Opcode::Fsub => {
                let minus_one = constant(self, 0xbf80);
                self.tern(Opcode::Fma, flags, b, minus_one, a)
            }
            _ => {
                let minus_zero = constant(self, 0x8000);
                self.tern(Opcode::Fma, flags, a, b, minus_zero)
            }
        }
    }

    fn half_fma(&mut self, flags: Flags, ty: Type, args: &[Value]) -> Value {
        self.note(Pattern::LegalHalfFma);
        if flags.contains(Flags::RELU) || flags.contains(Flags::SAT) {
            let plain = flags.without(Flags::RELU | Flags::SAT);
            let r = self.tern(Opcode::Fma, plain, args[0], args[1], args[2]);
            let r = if flags.contains(Flags::RELU) { self.positive_part(r) } else { r };
            if !flags.contains(Flags::SAT) {
                return r;
            }
            let (zero, one) = (self.bits(ty, 0), self.bits(ty, if ty == Type::F16 { 0x3c00 } else { 0x3f80 }));
            let r = self.bin_flags(Opcode::Fmax, Flags::EMPTY, r, zero);
            return self.bin_flags(Opcode::Fmin, Flags::EMPTY, r, one);
        }
        let wide: smallvec::SmallVec<[Value; 3]> =
            args.iter().map(|v| self.conv_flags(Opcode::Fpext, Flags::EMPTY, *v, Type::F64)).collect();
        let fused = |this: &mut Self, flags: Flags| this.tern(Opcode::Fma, flags, wide[0], wide[1], wide[2]);
        let rounding = rounding_flags(flags);
        // In f64 the sum of an f16 product and an f16 is exact wherever its rounding to f16 is in doubt.
        if ty == Type::F16 || flags.rounding() != Rounding::Nearest {
            let r = fused(self, rounding);
            return self.conv_flags(Opcode::Fptrunc, rounding, r, ty);
        }
        let [zero, down, up] = [Flags::RZ, Flags::RM, Flags::RP].map(|mode| fused(self, mode));
        let odd = self.rounded_to_odd(zero, down, up);
        self.conv_flags(Opcode::Fptrunc, Flags::EMPTY, odd, ty)
    }

    /// A result rounded to odd, from the three directed roundings: inexact results end in a set bit.
    fn rounded_to_odd(&mut self, toward_zero: Value, down: Value, up: Value) -> Value {
        self.note(Pattern::LegalRoundToOdd);
        let ty = self.ty(toward_zero);
        let int = Type::int(ty.bits());
        let [bits, down, up] = [toward_zero, down, up].map(|v| self.bitcast(v, int));
        let inexact = self.icmp(IntCC::Ne, down, up);
        let sticky = self.conv(Opcode::Zext, inexact, int);
        let bits = self.bin(Opcode::Or, bits, sticky);
        self.bitcast(bits, ty)
    }

    /// An f64 as f32 rounded to odd, to be rounded further.
    pub fn truncate_to_odd(&mut self, value: Value) -> Value {
        let [zero, down, up] =
            [Flags::RZ, Flags::RM, Flags::RP].map(|mode| self.conv_flags(Opcode::Fptrunc, mode, value, Type::F32));
        self.rounded_to_odd(zero, down, up)
    }

    /// Replaces a comparison.
    pub fn expand_float_compare(&mut self, inst: Inst) {
        self.note(Pattern::LegalFloatCompare);
        let data = self.func.dfg.insts[inst].clone();
        let Extra::FloatCC(cc) = data.extra else { return };
        let args = self.args(inst);
        let result = match cc {
            FloatCC::True => self.bool(true),
            FloatCC::False => self.bool(false),
            _ => {
                let (mut a, mut b) = (self.as_single(args[0]), self.as_single(args[1]));
                if data.ty == Type::F16 && data.flags.contains(Flags::FTZ) {
                    (a, b) = (self.flush_half(a), self.flush_half(b));
                }
                self.fcmp(cc, data.flags, a, b)
            }
        };
        self.replace(inst, &[result]);
    }

    /// Whether a conversion is one instruction (or none).
    pub fn is_conversion_legal(&self, inst: Inst) -> bool {
        let data = &self.func.dfg.insts[inst];
        let from = self.ty(self.func.dfg.args(inst)[0]);
        let to = data.ty;
        let bf16 = from == Type::BF16 || to == Type::BF16;
        match data.op {
            // Pairs and narrow formats were made where the target has them.
            Opcode::Fptrunc | Opcode::Fpext if from.is_vector() || to.is_vector() => true,
            Opcode::Fptrunc if data.flags.contains(Flags::RELU) || data.flags.contains(Flags::SAT) => {
                !bf16 && to != Type::TF32 && self.features.half_min_max && from == Type::F32
            }
            Opcode::Fptrunc | Opcode::Fpext => self.is_float_pair_legal(from, to, data.flags),
            Opcode::Fptosi | Opcode::Fptoui => from != Type::BF16 || self.features.bf16,
            Opcode::FptosiSat | Opcode::FptouiSat => {
                (from == Type::F32 || from == Type::F16) && matches!(to, Type::I16 | Type::I32)
            }
            Opcode::Sitofp | Opcode::Uitofp => {
                to != Type::BF16 || (self.features.bf16 && data.flags.rounding() == Rounding::Nearest)
            }
            _ => true,
        }
    }

    fn is_float_pair_legal(&self, from: Type, to: Type, flags: Flags) -> bool {
        if from == to {
            return false;
        }
        let simple = matches!(flags.rounding(), Rounding::Nearest | Rounding::Zero);
        match (from, to) {
            (Type::F16 | Type::F32 | Type::F64, Type::F16 | Type::F32 | Type::F64) => true,
            (Type::BF16 | Type::TF32, Type::F32) => true,
            (Type::F32, Type::BF16) => self.features.bf16_fma && simple && !flags.contains(Flags::FTZ),
            (Type::F32, Type::TF32) => self.features.bf16 && simple,
            _ => false,
        }
    }

    /// Replaces a conversion.
    pub fn expand_conversion(&mut self, inst: Inst) {
        let data = self.func.dfg.insts[inst].clone();
        let value = self.args(inst)[0];
        let (from, to) = (self.ty(value), data.ty);
        let result = match data.op {
            Opcode::Fptrunc | Opcode::Fpext => self.convert_float(data.flags, value, to),
            Opcode::Fptosi | Opcode::Fptoui => {
                let single = self.as_single(value);
                self.conv_flags(data.op, data.flags, single, to)
            }
            Opcode::FptosiSat | Opcode::FptouiSat if from == Type::BF16 => {
                let single = self.as_single(value);
                self.conv_flags(data.op, data.flags, single, to)
            }
            Opcode::FptosiSat | Opcode::FptouiSat => self.saturating_convert(data.op, data.flags, value, to),
            _ => self.integer_to_bf16(data.op, data.flags, value),
        };
        self.replace(inst, &[result]);
    }

    fn convert_float(&mut self, flags: Flags, value: Value, to: Type) -> Value {
        let from = self.ty(value);
        let rounding = rounding_flags(flags);
        if from == to {
            return value;
        }
        if flags.contains(Flags::RELU) {
            let value = self.positive_part(value);
            return self.conv_flags(Opcode::Fptrunc, flags.without(Flags::RELU), value, to);
        }
        if flags.contains(Flags::SAT) {
            self.note(Pattern::LegalSaturate);
            let (zero, one) = (self.bits(from, 0), self.bits(from, super::convert::power_of_two(from, 0)));
            let low = self.bin_flags(Opcode::Fmax, Flags::EMPTY, value, zero);
            let value = self.bin_flags(Opcode::Fmin, Flags::EMPTY, low, one);
            return self.conv_flags(Opcode::Fptrunc, flags.without(Flags::SAT), value, to);
        }
        match (from, to) {
            (Type::F32, Type::BF16) => self.round_bits(value, rounding, 16, to),
            (Type::F32, Type::TF32) => self.round_bits(value, rounding, 13, to),
            (Type::F64, Type::BF16 | Type::TF32) => {
                let odd = match flags.rounding() {
                    Rounding::Nearest => self.truncate_to_odd(value),
                    _ => self.conv_flags(Opcode::Fptrunc, rounding, value, Type::F32),
                };
                self.conv_flags(Opcode::Fptrunc, rounding, odd, to)
            }
            // Everything else goes through f32, which holds f16, bf16 and tf32 exactly.
            _ => {
                let single = self.as_single(value);
                let op = if to == Type::F64 { Opcode::Fpext } else { Opcode::Fptrunc };
                self.conv_flags(op, rounding, single, to)
            }
        }
    }

    /// An f32 rounded so that its low `drop` bits are zero, as bf16 or tf32.
    fn round_bits(&mut self, value: Value, rounding: Flags, drop: u32, to: Type) -> Value {
        self.note(Pattern::LegalRoundBits);
        let bits = self.bitcast(value, Type::I32);
        let below = (1i64 << drop) - 1;
        let increment = match rounding.rounding() {
            Rounding::Nearest => {
                let last = self.bin_imm(Opcode::Lshr, bits, drop.into());
                let odd = self.bin_imm(Opcode::And, last, 1);
                self.bin_imm(Opcode::Add, odd, below >> 1)
            }
            Rounding::Zero => self.imm(Type::I32, 0),
            mode => {
                // Away from zero on the side the mode looks to.
                let (up, zero) = (self.imm(Type::I32, below), self.imm(Type::I32, 0));
                let (negative, positive) = if mode == Rounding::Up { (zero, up) } else { (up, zero) };
                self.by_sign(bits, negative, positive)
            }
        };
        let rounded = self.bin(Opcode::Add, bits, increment);
        let is_nan = self.fcmp(FloatCC::Uno, Flags::EMPTY, value, value);
        let nan = self.imm(Type::I32, 0x7fff_ffff);
        let rounded = self.select(is_nan, nan, rounded);
        if to == Type::TF32 {
            let kept = self.bin_imm(Opcode::And, rounded, !below);
            return self.bitcast(kept, to);
        }
        let high = self.bin_imm(Opcode::Lshr, rounded, drop.into());
        let high = self.conv(Opcode::Trunc, high, Type::I16);
        self.bitcast(high, to)
    }

    /// `cvt` clamps by itself; NaN, for which it gives other values where f64 or 64 bits take part (PTX ISA 9.7.9.22),
    /// is set to 0.
    fn saturating_convert(&mut self, op: Opcode, flags: Flags, value: Value, to: Type) -> Value {
        self.note(Pattern::LegalConvertSaturating);
        let from = self.ty(value);
        let signed = op == Opcode::FptosiSat;
        let round = match flags.explicit_rounding() {
            Some(Rounding::Nearest) => tok::RNI,
            Some(Rounding::Down) => tok::RMI,
            Some(Rounding::Up) => tok::RPI,
            _ => tok::RZI,
        };
        let int: Tok = match (to, signed) {
            (Type::I16, true) => tok::S16,
            (Type::I16, false) => tok::U16,
            (Type::I32, true) => tok::S32,
            (Type::I32, false) => tok::U32,
            (_, true) => tok::S64,
            (_, false) => tok::U64,
        };
        let float = match from {
            Type::F16 => tok::F16,
            Type::F32 => tok::F32,
            _ => tok::F64,
        };
        let r = self.target_op(&[tok::CVT, round, int, float], &[value], to);
        let is_nan = self.fcmp(FloatCC::Uno, Flags::EMPTY, value, value);
        let zero = self.imm(to, 0);
        self.select(is_nan, zero, r)
    }

    /// Through f32 rounded to odd, which is wide enough to round to bf16 from.
    fn integer_to_bf16(&mut self, op: Opcode, flags: Flags, value: Value) -> Value {
        self.note(Pattern::LegalIntegerToBf16);
        let rounding = rounding_flags(flags);
        let single = if flags.rounding() == Rounding::Nearest {
            let [zero, down, up] =
                [Flags::RZ, Flags::RM, Flags::RP].map(|mode| self.conv_flags(op, mode, value, Type::F32));
            self.rounded_to_odd(zero, down, up)
        } else {
            self.conv_flags(op, rounding, value, Type::F32)
        };
        self.conv_flags(Opcode::Fptrunc, rounding, single, Type::BF16)
    }
}
