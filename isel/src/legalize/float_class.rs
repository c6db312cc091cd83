//! `fclass`: tests on the bits, as few as the mask allows.

use ptxc_ir::{Extra, Flags, FloatCC, Inst, IntCC, Opcode, Type, Value};

use super::context::Context;
use crate::rules::Pattern;

/// Classes by magnitude, from zero upward, and the bits of the mask that name each: negative, positive.
const CLASSES: [(u64, u64); 6] = [(5, 6), (4, 7), (3, 8), (2, 9), (0, 0), (1, 1)];

impl Context<'_> {
    /// Replaces `fclass`: intervals of the magnitude are accepted for either sign, then each sign.
    pub fn expand_float_class(&mut self, inst: Inst) {
        self.note(Pattern::LegalFloatClass);
        let data = self.func.dfg.insts[inst].clone();
        let Extra::Imm(mask) = data.extra else { return };
        let value = self.args(inst)[0];
        let has = |bit: u64| mask >> bit & 1 == 1;
        let negative = CLASSES.map(|(bit, _)| has(bit));
        let positive = CLASSES.map(|(_, bit)| has(bit));
        if self.ty(value) == Type::F32
            && negative == positive
            && let Some(result) = self.in_interval(positive, value)
        {
            self.replace(inst, &[result]);
            return;
        }
        let (sign, magnitude, bounds) = self.class_operands(value);
        let result = if negative == positive {
            self.in_classes(positive, magnitude, &bounds)
        } else {
            let below = self.in_classes(negative, magnitude, &bounds);
            let above = self.in_classes(positive, magnitude, &bounds);
            let not_sign = self.not(sign);
            let below = self.bin(Opcode::And, below, sign);
            let above = self.bin(Opcode::And, above, not_sign);
            self.bin(Opcode::Or, below, above)
        };
        self.replace(inst, &[result]);
    }

    /// Whether the magnitude of an f32 lies in one run of classes of numbers that begins above zero and ends below NaN: two
    /// comparisons, in which taking the magnitude costs nothing.
    fn in_interval(&mut self, chosen: [bool; 6], value: Value) -> Option<Value> {
        let bounds: [u128; 4] = [1, 0x0080_0000, 0x7f80_0000, 0x7f80_0001];
        let first = chosen.iter().position(|on| *on)?;
        let end = chosen.iter().rposition(|on| *on)? + 1;
        if first == 0 || end > 4 || chosen[first..end].contains(&false) || end - first == 1 && first == 3 {
            return None;
        }
        let magnitude = self.un(Opcode::Fabs, value);
        let low = self.bits(Type::F32, bounds[first - 1]);
        let above = self.fcmp(FloatCC::Oge, Flags::EMPTY, magnitude, low);
        if end == 4 {
            return Some(above);
        }
        let high = self.bits(Type::F32, bounds[end - 1]);
        let below = self.fcmp(FloatCC::Olt, Flags::EMPTY, magnitude, high);
        Some(self.bin(Opcode::And, above, below))
    }

    /// Sign, magnitude bits, and the least magnitude of each class followed by one past the last.
    fn class_operands(&mut self, value: Value) -> (Value, Value, [u128; 7]) {
        let ty = self.ty(value);
        let (fraction, exponent) = match ty {
            Type::F16 => (10, 5),
            Type::BF16 => (7, 8),
            Type::F32 => (23, 8),
            _ => (52, 11),
        };
        let infinity = ((1u128 << exponent) - 1) << fraction;
        let quiet = infinity | 1 << (fraction - 1);
        let bounds = [0, 1, 1 << fraction, infinity, infinity + 1, quiet, 1 << (fraction + exponent)];
        let bits = self.bitcast(value, Type::int(ty.bits()));
        let sign = self.icmp_imm(IntCC::Slt, bits, 0);
        let mask = self.bits(Type::int(ty.bits()), (1 << (ty.bits() - 1)) - 1);
        (sign, self.bin(Opcode::And, bits, mask), bounds)
    }

    /// Whether the magnitude lies in a chosen class: one range test per run of neighbouring classes.
    fn in_classes(&mut self, chosen: [bool; 6], magnitude: Value, bounds: &[u128; 7]) -> Value {
        let ty = self.ty(magnitude);
        let mut result = self.bool(false);
        let mut class = 0;
        while class < chosen.len() {
            if !chosen[class] {
                class += 1;
                continue;
            }
            let first = class;
            while class < chosen.len() && chosen[class] {
                class += 1;
            }
            let (low, high) = (bounds[first], bounds[class]);
            let offset = self.bits(ty, low);
            let shifted = self.bin(Opcode::Sub, magnitude, offset);
            let test = if first == 0 && class == chosen.len() {
                self.bool(true)
            } else if high - low == 1 {
                self.icmp(IntCC::Eq, magnitude, offset)
            } else {
                let size = self.bits(ty, high - low);
                self.icmp(IntCC::Ult, shifted, size)
            };
            result = self.bin(Opcode::Or, result, test);
        }
        result
    }
}
