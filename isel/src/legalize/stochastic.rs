//! `fptrunc_stochastic`: rounding by random bits.
//!
//! Where the target has `cvt.rs` (PTX ISA 9.7.10.24) it is a target operation on all lanes at once. Elsewhere, and for the
//! 8-bit floats without `sat`, which it has not, the sum that carries is computed: of a normal result the bits of the f32
//! and the random bits below the last place that stays; of a subnormal one the number as a multiple of the least
//! one, with as many binary places as there are random bits. Both are exact, so the results are those of the instruction.

use ptxc_ir::{Flags, FloatKind, GroupKind, Inst, IntCC, Opcode, TargetOp, TargetOperand, Type, Value};
use ptxc_targets::{Tok, tok};
use smallvec::SmallVec;

use super::bits::BitString;
use super::context::Context;
use super::narrow_float::{Layout, layout};
use super::parts::{Lane, Lanes};
use crate::rules::Pattern;

impl Context<'_> {
    /// The conversion.
    pub fn visit_stochastic(&mut self, inst: Inst) {
        let data = &self.func.dfg.insts[inst];
        let (flags, to) = (data.flags, data.ty);
        let args = self.args(inst);
        let Some(kind) = to.float_kind() else { return };
        let lanes = self.lanes_of(args[0]);
        let result = self.func.dfg.result(inst, 0);
        let fp8 = matches!(kind, FloatKind::E4m3 | FloatKind::E5m2);
        if self.features.stochastic && (!fp8 || flags.contains(Flags::SAT)) {
            if kind.is_narrow() {
                self.note(Pattern::LegalStochasticQuad);
                let word = self.stochastic_quad(kind, flags, &lanes, args[1]);
                let mut string = BitString::default();
                self.push_bits(&mut string, word, 32);
                let parts = self.parts_from_bits(&mut string, to);
                self.set_parts(result, &parts);
            } else {
                self.note(Pattern::LegalStochasticPair);
                let pair = self.stochastic_pair(flags, to, &lanes, args[1]);
                self.set_parts(result, &[pair]);
            }
            self.func.layout.remove_inst(inst);
            return;
        }
        let Some(layout) = layout(kind) else { return };
        self.note(Pattern::LegalStochastic);
        let lanes: Lanes = lanes
            .iter()
            .enumerate()
            .map(|(element, lane)| {
                let (random, count) = self.random_bits(kind, args[1], element as i64);
                let code = self.encode_stochastic(flags, &layout, lane.lo, random, count);
                if kind.is_narrow() {
                    return Lane::from(code);
                }
                let half = self.conv(Opcode::Trunc, code, Type::I16);
                self.bitcast(half, to.scalar()).into()
            })
            .collect();
        self.finish(inst, &lanes);
    }

    /// `cvt.rs` of two numbers; the upper one comes first.
    fn stochastic_pair(&mut self, flags: Flags, to: Type, lanes: &[Lane], word: Value) -> Value {
        let mut toks: SmallVec<[Tok; 12]> = SmallVec::from_slice(&[tok::CVT, tok::RS]);
        toks.extend(flags.contains(Flags::RELU).then_some(tok::RELU));
        toks.extend(flags.contains(Flags::SAT).then_some(tok::SATFINITE));
        toks.push(if to.scalar() == Type::F16 { tok::F16X2 } else { tok::BF16X2 });
        toks.push(tok::F32);
        // A pair of bf16 has no type of registers of its own.
        let result = if to.scalar() == Type::F16 { to } else { Type::I32 };
        let pair = self.target_op(&toks, &[lanes[1].lo, lanes[0].lo, word], result);
        self.bitcast(pair, to)
    }

    /// `cvt.rs` of four numbers, the uppermost first, as bytes of a word.
    fn stochastic_quad(&mut self, kind: FloatKind, flags: Flags, lanes: &[Lane], word: Value) -> Value {
        let mut toks: SmallVec<[Tok; 12]> = SmallVec::from_slice(&[tok::CVT, tok::RS]);
        toks.extend(flags.contains(Flags::RELU).then_some(tok::RELU));
        let ty = match kind {
            FloatKind::E4m3 => tok::E4M3X4,
            FloatKind::E5m2 => tok::E5M2X4,
            FloatKind::E2m3 => tok::E2M3X4,
            FloatKind::E3m2 => tok::E3M2X4,
            _ => tok::E2M1X4,
        };
        toks.extend([tok::SATFINITE, ty, tok::F32]);
        let mut args: SmallVec<[Value; 5]> = lanes.iter().rev().map(|lane| lane.lo).collect();
        args.push(word);
        let mut operands = vec![TargetOperand::Result(0), TargetOperand::Group(GroupKind::Vector, 4)];
        operands.extend((0..5).map(TargetOperand::Arg));
        let nibbles = kind == FloatKind::E2m1;
        let result = if nibbles { Type::I16 } else { Type::I32 };
        let made = self.builder().target(TargetOp::Known { toks, guard: None, operands }, &args, &[result]);
        let made = self.func.dfg.result(made, 0);
        if nibbles { self.spread_nibbles(made) } else { made }
    }

    /// Four nibbles of a half, each in a byte of a word.
    fn spread_nibbles(&mut self, half: Value) -> Value {
        let word = self.conv(Opcode::Zext, half, Type::I32);
        let upper = self.bin_imm(Opcode::Shl, word, 8);
        let bytes = self.bin(Opcode::Or, word, upper);
        let bytes = self.bin_imm(Opcode::And, bytes, 0x00ff_00ff);
        let upper = self.bin_imm(Opcode::Shl, bytes, 4);
        let spread = self.bin(Opcode::Or, bytes, upper);
        self.bin_imm(Opcode::And, spread, 0x0f0f_0f0f)
    }

    /// The random bits of an element and how many they are (`ir/LANGUAGE.md` says which).
    fn random_bits(&mut self, kind: FloatKind, word: Value, element: i64) -> (Value, u32) {
        let pair = element / 2;
        let half = match kind {
            FloatKind::F16 => {
                let half = self.bin_imm(Opcode::Lshr, word, 16 * element);
                return (self.bin_imm(Opcode::And, half, 0x1fff), 13);
            }
            FloatKind::Bf16 => {
                let half = self.bin_imm(Opcode::Lshr, word, 16 * element);
                return (self.bin_imm(Opcode::And, half, 0xffff), 16);
            }
            FloatKind::E2m1 => {
                let own = self.bin_imm(Opcode::Lshr, word, 8 * pair);
                let low = self.bin_imm(Opcode::And, own, 0xff);
                let high = self.bin_imm(Opcode::Lshr, own, 8);
                let high = self.bin_imm(Opcode::And, high, 0xff00);
                self.bin(Opcode::Or, low, high)
            }
            _ => {
                let half = self.bin_imm(Opcode::Lshr, word, 16 * pair);
                self.bin_imm(Opcode::And, half, 0xffff)
            }
        };
        if element % 2 == 0 {
            return (half, 16);
        }
        // Backward.
        let reversed = self.un(Opcode::Bitreverse, half);
        (self.bin_imm(Opcode::Lshr, reversed, 16), 16)
    }

    /// The code of an f32 in an `i32` container.
    fn encode_stochastic(&mut self, flags: Flags, layout: &Layout, single: Value, random: Value, count: u32) -> Value {
        let bits = self.bitcast(single, Type::I32);
        let magnitude = self.bin_imm(Opcode::And, bits, 0x7fff_ffff);
        let drop = 23 - layout.fraction;
        let placed = self.bin_imm(Opcode::Shl, random, (drop - count).into());
        let sum = self.bin(Opcode::Add, magnitude, placed);
        let mut code = self.bin_imm(Opcode::Lshr, sum, drop.into());
        // bf16 has the exponents of f32, subnormal ones too.
        if layout.bias != 127 {
            let rebias = i64::from(127 - layout.bias) << layout.fraction;
            let normal = self.bin_imm(Opcode::Sub, code, rebias);
            let places = count as i32 + layout.bias - 1 + layout.fraction as i32;
            let scale = self.bits(Type::F32, super::convert::power_of_two(Type::F32, places));
            let absolute = self.un(Opcode::Fabs, single);
            let scaled = self.bin_flags(Opcode::Fmul, Flags::EMPTY, absolute, scale);
            let fixed = self.conv_flags(Opcode::FptouiSat, Flags::EMPTY, scaled, Type::I32);
            let sum = self.bin(Opcode::Add, fixed, random);
            let subnormal = self.bin_imm(Opcode::Lshr, sum, count.into());
            let least = i64::from(128 - layout.bias) << 23;
            let small = self.icmp_imm(IntCC::Ult, magnitude, least);
            code = self.select(small, subnormal, normal);
        }
        let limit = if flags.contains(Flags::SAT) { layout.most } else { layout.overflow };
        self.finish_code(flags, layout, limit, single, code)
    }
}
