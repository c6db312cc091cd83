//! Conversions between types of which one is not legal: odd integers, wide integers, vectors, pointers.
//!
//! Conversions of legal scalars that the target lacks are [`super::float_ops`]'s; narrow floats are
//! [`super::narrow_float`]'s.

use ptxc_ir::{Flags, FloatCC, FloatKind, Inst, IntCC, Opcode, Rounding, Type, Value};

use super::context::Context;
use super::parts::{Lane, Lanes, Parts, container};
use super::wide_int::Limbs;
use crate::rules::Pattern;

/// The bits of 2^exponent in f32 or f64; infinity when it is too large.
pub(super) fn power_of_two(ty: Type, exponent: i32) -> u128 {
    if ty == Type::F32 {
        return u128::from((exponent as f32).exp2().to_bits());
    }
    u128::from((f64::from(exponent)).exp2().to_bits())
}

fn is_narrow(ty: Type) -> bool {
    ty.float_kind().is_some_and(FloatKind::is_narrow)
}

impl Context<'_> {
    /// A conversion.
    pub fn visit_conversion(&mut self, inst: Inst) {
        let data = self.func.dfg.insts[inst].clone();
        if data.op == Opcode::Bitcast {
            self.visit_bitcast(inst);
            return;
        }
        let args = self.args(inst);
        let (from, to) = (self.ty(args[0]), data.ty);
        let floats = matches!(data.op, Opcode::Fptoui | Opcode::Fptosi | Opcode::FptouiSat | Opcode::FptosiSat);
        let from_bit = matches!(data.op, Opcode::Uitofp | Opcode::Sitofp) && from.scalar_bits() == 1;
        let special = (floats && to.scalar_bits() == 1) || from_bit || self.odd_pointer(data.op, from, to);
        if !from.is_vector() && self.is_legal_pair(from, to) && !special {
            return;
        }
        if let Some(parts) = self.convert_byte_words(data.op, args[0], to) {
            self.set_parts(self.func.dfg.result(inst, 0), &parts);
            self.func.layout.remove_inst(inst);
            return;
        }
        let lanes = self.lanes_of(args[0]);
        if is_narrow(from.scalar()) || is_narrow(to.scalar()) {
            let lanes = self.convert_narrow_floats(data.op, data.flags, from.scalar(), to.scalar(), &lanes);
            self.finish(inst, &lanes);
            return;
        }
        if let Some(parts) = self.packed_truncation(data.op, data.flags, from, to, &lanes) {
            self.set_parts(self.func.dfg.result(inst, 0), &parts);
            self.func.layout.remove_inst(inst);
            return;
        }
        let lanes: Lanes = lanes
            .iter()
            .map(|lane| self.convert_lane(data.op, data.flags, from.scalar(), to.scalar(), *lane))
            .collect();
        self.finish(inst, &lanes);
    }

    fn is_legal_pair(&self, from: Type, to: Type) -> bool {
        self.features.legal_value(from) && self.features.legal_value(to)
    }

    /// `ptrtoint` and `inttoptr` of another width than the pointer's.
    fn odd_pointer(&self, op: Opcode, from: Type, to: Type) -> bool {
        matches!(op, Opcode::Ptrtoint | Opcode::Inttoptr) && from.scalar_bits() != to.scalar_bits()
    }

    /// f32 lanes to f16 or bf16 two at a time, where the target has the packed conversion.
    fn packed_truncation(&mut self, op: Opcode, flags: Flags, from: Type, to: Type, lanes: &[Lane]) -> Option<Parts> {
        let packed = op == Opcode::Fptrunc
            && from.scalar() == Type::F32
            && matches!(to.scalar(), Type::F16 | Type::BF16)
            && self.features.packs_halves(flags);
        if !packed || lanes.len() < 2 {
            return None;
        }
        self.note(Pattern::LegalPackedTruncation);
        let pair = to.scalar().with_lanes(2);
        let mut parts = Parts::new();
        for lanes in lanes.chunks(2) {
            parts.push(match lanes {
                [a, b] => {
                    let source = self.vector(Type::F32.with_lanes(2), &[a.lo, b.lo]);
                    self.conv_flags(op, flags, source, pair)
                }
                _ => self.conv_flags(op, flags, lanes[0].lo, to.scalar()),
            });
        }
        Some(parts)
    }

    /// One lane of any conversion but `bitcast` and those of narrow floats.
    fn convert_lane(&mut self, op: Opcode, flags: Flags, from: Type, to: Type, lane: Lane) -> Lane {
        match op {
            Opcode::Trunc | Opcode::Zext | Opcode::Sext => self.lane_integer(op, from, lane, to),
            Opcode::Fptoui | Opcode::Fptosi | Opcode::FptouiSat | Opcode::FptosiSat => {
                self.float_to_integer(op, flags, from, to, lane.lo)
            }
            Opcode::Uitofp | Opcode::Sitofp => self.integer_to_float(op, flags, from, to, lane).into(),
            Opcode::Ptrtoint => {
                let address = Type::int(from.scalar_bits());
                let value = self.conv(op, lane.lo, address);
                self.lane_integer(Opcode::Zext, address, value.into(), to)
            }
            Opcode::Inttoptr => {
                let address = Type::int(to.scalar_bits());
                let value = self.lane_as_unsigned(from, lane, address);
                self.conv(op, value, to).into()
            }
            _ => self.conv_flags(op, flags, lane.lo, to).into(),
        }
    }

    fn float_to_integer(&mut self, op: Opcode, flags: Flags, from: Type, to: Type, value: Value) -> Lane {
        let bits = to.scalar_bits();
        let signed = matches!(op, Opcode::Fptosi | Opcode::FptosiSat);
        let saturating = matches!(op, Opcode::FptouiSat | Opcode::FptosiSat);
        if bits > 64 {
            let limbs = self.float_to_wide(signed, saturating, flags, bits, from, value);
            return Lane { lo: limbs.0, hi: Some(limbs.1) };
        }
        let hold = if bits == 1 { Type::I32 } else { container(bits) };
        let mut result = self.conv_flags(op, flags, value, hold);
        if hold.bits() == bits {
            return result.into();
        }
        if saturating {
            let most = ((1u64 << (bits - u32::from(signed))) - 1) as i64;
            let limit = self.imm(hold, most);
            result = self.bin(if signed { Opcode::Smin } else { Opcode::Umin }, result, limit);
            if signed {
                let limit = self.imm(hold, -most - 1);
                result = self.bin(Opcode::Smax, result, limit);
            }
        }
        if bits == 1 {
            return self.lane_integer(Opcode::Trunc, hold, result.into(), Type::I1);
        }
        if signed { self.fits_signed(result, bits) } else { self.fits_unsigned(result, bits) }.into()
    }

    fn integer_to_float(&mut self, op: Opcode, flags: Flags, from: Type, to: Type, lane: Lane) -> Value {
        let bits = from.scalar_bits();
        let signed = op == Opcode::Sitofp;
        if bits > 64 {
            let limbs = self.limbs(lane);
            let limbs = self.wide_extended(signed, bits, limbs);
            return self.wide_to_float(signed, flags, limbs, to);
        }
        let extension = if signed { Opcode::Sext } else { Opcode::Zext };
        let hold = if bits <= 16 { Type::I32 } else { container(bits) };
        let value = self.lane_integer(extension, from, lane, hold).lo;
        let value = if bits < self.ty(value).bits() && bits > 1 {
            if signed { self.sign_extended(value, bits) } else { self.zero_extended(value, bits) }
        } else {
            value
        };
        self.conv_flags(op, flags.without(Flags::NNEG), value, to)
    }

    /// A float as a 128-bit integer, toward zero unless a rounding mode is given.
    fn float_to_wide(&mut self, signed: bool, sat: bool, flags: Flags, bits: u32, from: Type, value: Value) -> Limbs {
        self.note(Pattern::LegalFloatToWide);
        let mut value = value;
        let mut ty = from;
        if matches!(ty, Type::F16 | Type::BF16) {
            ty = Type::F32;
            value = self.conv_flags(Opcode::Fpext, Flags::EMPTY, value, ty);
        }
        let round = match flags.explicit_rounding() {
            Some(Rounding::Nearest) => Some(Opcode::Frint),
            Some(Rounding::Down) => Some(Opcode::Ffloor),
            Some(Rounding::Up) => Some(Opcode::Fceil),
            _ => None,
        };
        if let Some(op) = round {
            value = self.un(op, value);
        }
        let magnitude = self.un(Opcode::Fabs, value);
        let down = self.bits(ty, power_of_two(ty, -64));
        let scaled = self.bin_flags(Opcode::Fmul, Flags::EMPTY, magnitude, down);
        let high = self.un(Opcode::Ftrunc, scaled);
        let up = power_of_two(ty, 64) | 1 << (ty.bits() - 1);
        let up = self.bits(ty, up);
        // Exact: the product has the significand of `high`, and the difference cancels its leading bits.
        let low = self.tern(Opcode::Fma, Flags::EMPTY, high, up, magnitude);
        let low = self.conv_flags(Opcode::Fptoui, Flags::EMPTY, low, Type::I64);
        let high = self.conv_flags(Opcode::Fptoui, Flags::EMPTY, high, Type::I64);
        let mut result = (low, high);
        if signed {
            let zero = self.bits(ty, 0);
            let negative = self.fcmp(FloatCC::Olt, Flags::EMPTY, value, zero);
            let negated = self.wide_negate(result);
            result = self.wide_select(negative, negated, result);
        }
        if sat { self.saturate_wide(signed, bits, ty, value, result) } else { result }
    }

    fn saturate_wide(&mut self, signed: bool, bits: u32, ty: Type, value: Value, result: Limbs) -> Limbs {
        let all = if bits == 128 { u128::MAX } else { (1u128 << bits) - 1 };
        let most = if signed { all >> 1 } else { all };
        let least = if signed { !most } else { 0 };
        let limbs = |this: &mut Self, k: u128| (this.bits(Type::I64, k), this.bits(Type::I64, k >> 64));
        let (most, least, zero) = (limbs(self, most), limbs(self, least), limbs(self, 0));
        let top = power_of_two(ty, (bits - u32::from(signed)) as i32);
        let above = self.bits(ty, top);
        let is_above = self.fcmp(FloatCC::Oge, Flags::EMPTY, value, above);
        let below = if signed { top | 1 << (ty.bits() - 1) } else { 0 };
        let below = self.bits(ty, below);
        let is_below = self.fcmp(FloatCC::Olt, Flags::EMPTY, value, below);
        let is_nan = self.fcmp(FloatCC::Uno, Flags::EMPTY, value, value);
        let result = self.wide_select(is_above, most, result);
        let result = self.wide_select(is_below, least, result);
        self.wide_select(is_nan, zero, result)
    }

    /// A 128-bit integer as a float, rounded once.
    fn wide_to_float(&mut self, signed: bool, flags: Flags, limbs: Limbs, to: Type) -> Value {
        self.note(Pattern::LegalWideToFloat);
        if !signed {
            return self.magnitude_to_float(flags, limbs, to);
        }
        let negative = self.icmp_imm(IntCC::Slt, limbs.1, 0);
        let negated = self.wide_negate(limbs);
        let magnitude = self.wide_select(negative, negated, limbs);
        let positive = self.magnitude_to_float(flags, magnitude, to);
        let mirrored = match flags.rounding() {
            Rounding::Down => self.magnitude_to_float(flags.without(Flags::RM) | Flags::RP, magnitude, to),
            Rounding::Up => self.magnitude_to_float(flags.without(Flags::RP) | Flags::RM, magnitude, to),
            _ => positive,
        };
        let mirrored = self.un(Opcode::Fneg, mirrored);
        self.select(negative, mirrored, positive)
    }

    /// The leading bits, the lowest of them set when any below was, scaled by a power of two. 64 leading bits suffice
    /// for f64; 32 are exact in f64 and enough for every narrower format to round from there.
    fn magnitude_to_float(&mut self, flags: Flags, limbs: Limbs, to: Type) -> Value {
        let zeros = self.wide_unary(Opcode::Ctlz, 128, limbs).0;
        let zeros = self.bin_imm(Opcode::And, zeros, 127);
        let (low, high) = self.wide_shift(Opcode::Shl, limbs, zeros);
        let direct = to == Type::F64;
        let (kept, dropped) = if direct {
            (high, low)
        } else {
            let rest = self.bin_imm(Opcode::And, high, 0xffff_ffff);
            (self.bin_imm(Opcode::Lshr, high, 32), self.bin(Opcode::Or, rest, low))
        };
        let inexact = self.icmp_imm(IntCC::Ne, dropped, 0);
        let sticky = self.conv(Opcode::Zext, inexact, Type::I64);
        let leading = self.bin(Opcode::Or, kept, sticky);
        let rounding = if direct { flags } else { Flags::EMPTY };
        let float = self.conv_flags(Opcode::Uitofp, rounding.without(Flags::NNEG), leading, Type::F64);
        // 2^(position of the lowest kept bit), as bits.
        let position = if direct { 64 } else { 96 };
        let bias = self.imm(Type::I64, 1023 + position);
        let exponent = self.bin(Opcode::Sub, bias, zeros);
        let scale = self.bin_imm(Opcode::Shl, exponent, 52);
        let scale = self.bitcast(scale, Type::F64);
        let result = self.bin_flags(Opcode::Fmul, Flags::EMPTY, float, scale);
        if direct { result } else { self.conv_flags(Opcode::Fptrunc, flags.without(Flags::NNEG), result, to) }
    }
}
