//! Conversions from and to the 4-, 6- and 8-bit floats.
//!
//! Where the target has the packed `cvt` (PTX ISA 9.7.9.22) it is used on pairs of lanes, a lone lane with a zero beside
//! it. Elsewhere the bits are computed: on the way in by rounding the significand as an integer (and, for subnormals,
//! by adding a power of two that leaves the result in the low bits of the sum); on the way out by placing exponent and
//! significand in an f32 and multiplying by the ratio of the biases, which is exact.

use ptxc_ir::{Flags, FloatCC, FloatKind, IntCC, Opcode, Rounding, Type, Value};
use ptxc_targets::tok;

use super::context::Context;
use super::parts::{Lane, Lanes};
use crate::rules::Pattern;

/// The layout of a format of at most 16 bits.
pub(super) struct Layout {
    /// Significand bits stored.
    pub fraction: u32,
    /// Exponent bias.
    pub bias: i32,
    /// Code of the largest finite number.
    pub most: i64,
    /// Code that an overflow without `sat` gives; equal to `most` for formats without infinity and NaN.
    pub overflow: i64,
    /// Code of NaN, or of what stands for it.
    pub nan: i64,
    /// Position of the sign bit.
    pub sign: i64,
}

/// The layout of a format that has sign, exponent and significand.
pub(super) fn layout(kind: FloatKind) -> Option<Layout> {
    let row = |fraction, bias, most, overflow, nan, sign| Layout { fraction, bias, most, overflow, nan, sign };
    match kind {
        FloatKind::E4m3 => Some(row(3, 7, 0x7e, 0x7f, 0x7f, 7)),
        FloatKind::E5m2 => Some(row(2, 15, 0x7b, 0x7c, 0x7f, 7)),
        FloatKind::E2m3 => Some(row(3, 1, 0x1f, 0x1f, 0x1f, 5)),
        FloatKind::E3m2 => Some(row(2, 3, 0x1f, 0x1f, 0x1f, 5)),
        FloatKind::E2m1 => Some(row(1, 1, 0x07, 0x07, 0x07, 3)),
        FloatKind::F16 => Some(row(10, 15, 0x7bff, 0x7c00, 0x7fff, 15)),
        FloatKind::Bf16 => Some(row(7, 127, 0x7f7f, 0x7f80, 0x7fff, 15)),
        _ => None,
    }
}

fn is_fp8(ty: Type) -> bool {
    matches!(ty.float_kind(), Some(FloatKind::E4m3 | FloatKind::E5m2))
}

impl Context<'_> {
    /// `fptrunc` or `fpext` where one side is a narrow format; scalar types of the lanes are given.
    pub fn convert_narrow_floats(&mut self, op: Opcode, flags: Flags, from: Type, to: Type, lanes: &[Lane]) -> Lanes {
        let narrow_from = from.float_kind().is_some_and(FloatKind::is_narrow);
        let narrow_to = to.float_kind().is_some_and(FloatKind::is_narrow);
        if narrow_from && narrow_to {
            let middle = self.convert_narrow_floats(Opcode::Fpext, Flags::EMPTY, from, Type::F32, lanes);
            return self.convert_narrow_floats(Opcode::Fptrunc, flags, Type::F32, to, &middle);
        }
        if narrow_from { self.extend_narrow(from, to, lanes) } else { self.truncate_narrow(op, flags, from, to, lanes) }
    }

    fn truncate_narrow(&mut self, op: Opcode, flags: Flags, from: Type, to: Type, lanes: &[Lane]) -> Lanes {
        if self.has_truncation_from_halves(flags, from, to) {
            let flags =
                if to.float_kind() == Some(FloatKind::Ue8m0) || is_fp8(to) { flags } else { flags | Flags::SAT };
            return self.truncate_pairs(op, flags, from, to, lanes);
        }
        let native = self.has_packed_truncation(flags, to);
        let singles: Lanes = lanes
            .iter()
            .map(|lane| match from {
                Type::F64 => self.truncate_to_odd(lane.lo).into(),
                Type::F32 => *lane,
                _ => self.conv_flags(Opcode::Fpext, Flags::EMPTY, lane.lo, Type::F32).into(),
            })
            .collect();
        if !native {
            return singles.iter().map(|lane| self.encode(flags, to, lane.lo).into()).collect();
        }
        // Formats without infinity and NaN saturate in any case.
        let flags = if is_fp8(to) { flags } else { flags | Flags::SAT };
        if to.float_kind() == Some(FloatKind::E2m1) {
            return self.truncate_to_nibbles(flags, &singles);
        }
        self.truncate_pairs(op, flags, Type::F32, to, &singles)
    }

    /// Lanes of f32, f16 or bf16 two at a time by the packed conversion.
    fn truncate_pairs(&mut self, op: Opcode, flags: Flags, from: Type, to: Type, lanes: &[Lane]) -> Lanes {
        self.note(Pattern::LegalNarrowPairs);
        let mut result = Lanes::new();
        for pair in lanes.chunks(2) {
            let second = pair.get(1).map_or_else(|| self.bits(from, 0), |lane| lane.lo);
            let source = self.vector(from.with_lanes(2), &[pair[0].lo, second]);
            let packed = self.conv_flags(op, flags, source, to.with_lanes(2));
            let bits = self.bitcast(packed, Type::I16);
            let word = self.conv(Opcode::Zext, bits, Type::I32);
            result.push(word.into());
            if pair.len() == 2 {
                let high = self.bin_imm(Opcode::Lshr, word, 8);
                result.push(self.fits_unsigned(high, 8).into());
            }
        }
        result
    }

    /// Lanes of f32 as e2m1, of which two lie in a byte, the first in the low bits.
    fn truncate_to_nibbles(&mut self, flags: Flags, lanes: &[Lane]) -> Lanes {
        self.note(Pattern::LegalNarrowNibbles);
        let mut toks = vec![tok::CVT, tok::RN, tok::SATFINITE];
        toks.extend(flags.contains(Flags::RELU).then_some(tok::RELU));
        toks.extend([tok::E2M1X2, tok::F32]);
        let mut result = Lanes::new();
        for pair in lanes.chunks(2) {
            let second = pair.get(1).map_or_else(|| self.bits(Type::F32, 0), |lane| lane.lo);
            let byte = self.target_op(&toks, &[second, pair[0].lo], Type::I8);
            let word = self.conv(Opcode::Zext, byte, Type::I32);
            let low = self.bin_imm(Opcode::And, word, 0xf);
            result.push(self.fits_unsigned(low, 4).into());
            if pair.len() == 2 {
                let high = self.bin_imm(Opcode::Lshr, word, 4);
                result.push(self.fits_unsigned(high, 4).into());
            }
        }
        result
    }

    /// Whether the target converts pairs of halves of this type to this format with these flags.
    fn has_truncation_from_halves(&self, flags: Flags, from: Type, to: Type) -> bool {
        let nearest = flags.rounding() == Rounding::Nearest;
        match (from, to.float_kind()) {
            (Type::BF16, Some(FloatKind::Ue8m0)) => self.has_packed_truncation(flags, to),
            (Type::F16, _) if is_fp8(to) => self.has_packed_truncation(flags, to),
            (Type::BF16, _) if is_fp8(to) => self.features.fp8_from_bf16 && self.has_packed_truncation(flags, to),
            (Type::F16 | Type::BF16, Some(FloatKind::E2m3 | FloatKind::E3m2)) => self.features.fp8_from_bf16 && nearest,
            _ => false,
        }
    }

    /// Whether the target converts pairs of f32 to this format with these flags.
    fn has_packed_truncation(&self, flags: Flags, to: Type) -> bool {
        let nearest = flags.rounding() == Rounding::Nearest;
        match to.float_kind() {
            Some(FloatKind::Ue8m0) => {
                self.features.fp4
                    && matches!(flags.rounding(), Rounding::Zero | Rounding::Up)
                    && flags.contains(Flags::SAT)
            }
            _ if is_fp8(to) => self.features.fp8 && nearest && flags.contains(Flags::SAT),
            _ => self.features.fp4 && nearest,
        }
    }

    fn extend_narrow(&mut self, from: Type, to: Type, lanes: &[Lane]) -> Lanes {
        let native = if is_fp8(from) { self.features.fp8 } else { self.features.fp4 };
        let scale = from.float_kind() == Some(FloatKind::Ue8m0);
        if native && scale && matches!(to, Type::F32 | Type::BF16) {
            return self.extend_scales(to, lanes);
        }
        if !native || scale {
            return lanes
                .iter()
                .map(|lane| {
                    let single = self.decode(from, lane.lo);
                    self.single_as(single, to).into()
                })
                .collect();
        }
        let mut result = Lanes::new();
        for pair in lanes.chunks(2) {
            let low = pair[0].lo;
            let halves = if from.float_kind() == Some(FloatKind::E2m1) {
                self.extend_nibbles(low, pair.get(1).map(|lane| lane.lo))
            } else {
                let packed = self.pair_of_bytes(from, low, pair.get(1).map(|lane| lane.lo));
                self.conv_flags(Opcode::Fpext, Flags::EMPTY, packed, Type::F16.with_lanes(2))
            };
            for index in 0..pair.len() {
                let half = self.extract(halves, index as u32);
                result.push(self.half_as(half, to).into());
            }
        }
        result
    }

    /// Two codes of eight bits as a pair.
    fn pair_of_bytes(&mut self, ty: Type, low: Value, high: Option<Value>) -> Value {
        let bits = match high {
            Some(high) => self.permute(low, high, 0x40),
            None => low,
        };
        let bits = self.conv(Opcode::Trunc, bits, Type::I16);
        self.bitcast(bits, ty.with_lanes(2))
    }

    /// Two codes of e2m1 as a pair of f16.
    fn extend_nibbles(&mut self, low: Value, high: Option<Value>) -> Value {
        self.note(Pattern::LegalExtendNibbles);
        let low = self.zero_extended(low, 4);
        let both = match high {
            Some(high) => {
                let high = self.bin_imm(Opcode::Shl, high, 4);
                self.bin(Opcode::Or, low, high)
            }
            None => low,
        };
        let byte = self.conv(Opcode::Trunc, both, Type::I8);
        self.target_op(&[tok::CVT, tok::RN, tok::F16X2, tok::E2M1X2], &[byte], Type::F16.with_lanes(2))
    }

    /// Scale factors as bf16, which holds them exactly, or f32.
    fn extend_scales(&mut self, to: Type, lanes: &[Lane]) -> Lanes {
        self.note(Pattern::LegalExtendScales);
        let from = Type::float(FloatKind::Ue8m0);
        let mut result = Lanes::new();
        for pair in lanes.chunks(2) {
            let packed = self.pair_of_bytes(from, pair[0].lo, pair.get(1).map(|lane| lane.lo));
            let halves = self.conv_flags(Opcode::Fpext, Flags::EMPTY, packed, Type::BF16.with_lanes(2));
            for index in 0..pair.len() {
                let half = self.extract(halves, index as u32);
                result.push(if to == Type::BF16 { half } else { self.as_single(half) }.into());
            }
        }
        result
    }

    fn half_as(&mut self, half: Value, to: Type) -> Value {
        match to {
            Type::F16 => half,
            Type::BF16 => {
                let single = self.conv_flags(Opcode::Fpext, Flags::EMPTY, half, Type::F32);
                self.conv_flags(Opcode::Fptrunc, Flags::EMPTY, single, to)
            }
            _ => self.conv_flags(Opcode::Fpext, Flags::EMPTY, half, to),
        }
    }

    fn single_as(&mut self, single: Value, to: Type) -> Value {
        match to {
            Type::F32 => single,
            Type::F64 => self.conv_flags(Opcode::Fpext, Flags::EMPTY, single, to),
            _ => self.conv_flags(Opcode::Fptrunc, Flags::EMPTY, single, to),
        }
    }

    /// The code of an f32, in an `i32` container.
    fn encode(&mut self, flags: Flags, to: Type, single: Value) -> Value {
        self.note(Pattern::LegalEncode);
        let bits = self.bitcast(single, Type::I32);
        let magnitude = self.bin_imm(Opcode::And, bits, 0x7fff_ffff);
        let Some(layout) = to.float_kind().and_then(layout) else {
            return self.encode_exponent(flags, magnitude);
        };
        let nearest = match flags.rounding() {
            Rounding::Nearest => true,
            Rounding::Zero => false,
            _ => {
                self.error(format!("conversion to {to} rounds to nearest (`rn`) or toward zero (`rz`) only"));
                true
            }
        };
        let code = self.encode_finite(nearest, &layout, single, magnitude);
        let limit = if flags.contains(Flags::SAT) || !nearest { layout.most } else { layout.overflow };
        self.finish_code(flags, &layout, limit, single, code)
    }

    /// The code of a number from that of its magnitude, which becomes `limit` where it is beyond the largest: with the
    /// sign, `relu`, and what stands for NaN.
    pub(super) fn finish_code(
        &mut self,
        flags: Flags,
        layout: &Layout,
        limit: i64,
        single: Value,
        code: Value,
    ) -> Value {
        let bits = self.bitcast(single, Type::I32);
        let above = self.icmp_imm(IntCC::Ugt, code, layout.most);
        let limit = self.imm(Type::I32, limit);
        let code = self.select(above, limit, code);
        let sign = self.bin_imm(Opcode::Lshr, bits, 31);
        let negative = self.bin_imm(Opcode::Shl, sign, layout.sign);
        let mut code = self.bin(Opcode::Or, code, negative);
        if flags.contains(Flags::RELU) {
            let zero = self.imm(Type::I32, 0);
            code = self.by_sign(bits, zero, code);
        }
        let is_nan = self.fcmp(FloatCC::Uno, Flags::EMPTY, single, single);
        let nan = self.imm(Type::I32, layout.nan);
        let code = self.select(is_nan, nan, code);
        self.fits_unsigned(code, layout.sign as u32 + 1)
    }

    /// The code of a magnitude, beyond `most` when it is too large.
    fn encode_finite(&mut self, nearest: bool, layout: &Layout, single: Value, magnitude: Value) -> Value {
        let drop = 23 - layout.fraction;
        let mut rounded = magnitude;
        if nearest {
            let odd = self.bin_imm(Opcode::Lshr, magnitude, drop.into());
            let odd = self.bin_imm(Opcode::And, odd, 1);
            rounded = self.bin_imm(Opcode::Add, magnitude, (1 << (drop - 1)) - 1);
            rounded = self.bin(Opcode::Add, rounded, odd);
        }
        let code = self.bin_imm(Opcode::Lshr, rounded, drop.into());
        let rebias = i64::from(127 - layout.bias) << layout.fraction;
        let normal = self.bin_imm(Opcode::Sub, code, rebias);
        // One unit of the subnormal grid is the unit in the last place of `grid`.
        let unit = 1 - layout.bias - layout.fraction as i32;
        let grid = self.bits(Type::F32, u128::from(((unit + 23) as f32).exp2().to_bits()));
        let absolute = self.un(Opcode::Fabs, single);
        let rounding = if nearest { Flags::EMPTY } else { Flags::RZ };
        let sum = self.bin_flags(Opcode::Fadd, rounding, absolute, grid);
        let sum = self.bitcast(sum, Type::I32);
        let base = self.bitcast(grid, Type::I32);
        let subnormal = self.bin(Opcode::Sub, sum, base);
        let least = i64::from(128 - layout.bias) << 23;
        let small = self.icmp_imm(IntCC::Ult, magnitude, least);
        self.select(small, subnormal, normal)
    }

    /// The exponent-only format: 2^(code − 127), 255 for NaN.
    fn encode_exponent(&mut self, flags: Flags, magnitude: Value) -> Value {
        let rounded = match flags.rounding() {
            Rounding::Zero | Rounding::Down => magnitude,
            Rounding::Up => {
                // 2^-127 is a subnormal f32, which has code 0 already.
                let least = self.icmp_imm(IntCC::Ule, magnitude, 0x40_0000);
                let up = self.bin_imm(Opcode::Add, magnitude, 0x7f_ffff);
                let zero = self.imm(Type::I32, 0);
                self.select(least, zero, up)
            }
            Rounding::Nearest => {
                self.error("conversion to ue8m0 rounds toward zero (`rz`) or up (`rp`)");
                magnitude
            }
        };
        let code = self.bin_imm(Opcode::Lshr, rounded, 23);
        let limit = self.imm(Type::I32, if flags.contains(Flags::SAT) { 0xfe } else { 0xff });
        let code = self.bin(Opcode::Umin, code, limit);
        let is_nan = self.icmp_imm(IntCC::Ugt, magnitude, 0x7f80_0000);
        let nan = self.imm(Type::I32, 0xff);
        let code = self.select(is_nan, nan, code);
        self.fits_unsigned(code, 8)
    }

    /// The f32 of a code in a container.
    fn decode(&mut self, from: Type, code: Value) -> Value {
        self.note(Pattern::LegalDecode);
        let Some(layout) = from.float_kind().and_then(layout) else {
            return self.decode_exponent(code);
        };
        let magnitude = self.bin_imm(Opcode::And, code, (1 << layout.sign) - 1);
        let placed = self.bin_imm(Opcode::Shl, magnitude, i64::from(23 - layout.fraction));
        let float = self.bitcast(placed, Type::F32);
        let ratio = self.bits(Type::F32, u128::from(((127 - layout.bias) as f32).exp2().to_bits()));
        let mut value = self.bin_flags(Opcode::Fmul, Flags::EMPTY, float, ratio);
        let e5m2 = from.float_kind() == Some(FloatKind::E5m2);
        if e5m2 {
            // Infinity and NaN keep their significand under an all-ones exponent.
            let ones = self.bin_imm(Opcode::Or, placed, 0x7f80_0000);
            let ones = self.bitcast(ones, Type::F32);
            let is_special = self.icmp_imm(IntCC::Uge, magnitude, layout.overflow);
            value = self.select(is_special, ones, value);
        }
        let sign = self.bin_imm(Opcode::Shl, code, 31 - layout.sign);
        let sign = self.bin_imm(Opcode::And, sign, i64::from(i32::MIN));
        let bits = self.bitcast(value, Type::I32);
        let mut bits = self.bin(Opcode::Or, bits, sign);
        if is_fp8(from) {
            // The NaN that the conversions of the machine give.
            let last = if e5m2 { layout.overflow } else { layout.nan - 1 };
            let is_nan = self.icmp_imm(IntCC::Ugt, magnitude, last);
            let nan = self.imm(Type::I32, 0x7fff_ffff);
            bits = self.select(is_nan, nan, bits);
        }
        self.bitcast(bits, Type::F32)
    }

    fn decode_exponent(&mut self, code: Value) -> Value {
        let code = self.zero_extended(code, 8);
        let normal = self.bin_imm(Opcode::Shl, code, 23);
        let least = self.imm(Type::I32, 0x40_0000);
        let is_least = self.icmp_imm(IntCC::Eq, code, 0);
        let bits = self.select(is_least, least, normal);
        let nan = self.imm(Type::I32, 0x7fff_ffff);
        let is_nan = self.icmp_imm(IntCC::Eq, code, 0xff);
        let bits = self.select(is_nan, nan, bits);
        self.bitcast(bits, Type::F32)
    }
}
