//! `fclass`: tests on the bits, as few as the mask allows.

use ptxc_ir::{Extra, Flags, FloatCC, Inst, IntCC, Opcode, Type, Value};

use smallvec::SmallVec;

use super::context::Context;
use crate::rules::Pattern;

/// The run of chosen classes, or of the others: where it begins and ends, and whether it is the chosen ones. None where there are
/// several of both, or nothing to tell apart.
fn one_run(chosen: &[bool]) -> Option<(usize, usize, bool)> {
    let run = |wanted: bool| {
        let first = chosen.iter().position(|on| *on == wanted)?;
        let end = chosen.iter().rposition(|on| *on == wanted)? + 1;
        chosen[first..end].iter().all(|on| *on == wanted).then_some((first, end, wanted))
    };
    if chosen.contains(&true) { run(true).or_else(|| run(false)) } else { None }
}

/// The comparison for a bound, which holds for NaN if that is asked for.
fn bound(greater: bool, strict: bool, nan: bool) -> FloatCC {
    match (greater, strict, nan) {
        (true, true, false) => FloatCC::Ogt,
        (true, true, true) => FloatCC::Ugt,
        (true, false, false) => FloatCC::Oge,
        (true, false, true) => FloatCC::Uge,
        (false, true, false) => FloatCC::Olt,
        (false, true, true) => FloatCC::Ult,
        (false, false, false) => FloatCC::Ole,
        (false, false, true) => FloatCC::Ule,
    }
}

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
        let by_comparisons = match self.ty(value) {
            Type::F64 => crate::dialect::has_fast_doubles(self.features.dialect.target),
            ty => ty == Type::F32,
        };
        if by_comparisons && let Some(result) = self.by_comparisons(mask, value) {
            self.replace(inst, &[result]);
            return;
        }
        if let Some(result) = self.one_sign_from_zero(&negative, &positive, value) {
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

    /// The mask of an f32 as one or two comparisons of floats, in which taking a magnitude costs nothing; of f64 as one. NaN of
    /// either kind count alike.
    fn by_comparisons(&mut self, mask: u64, value: Value) -> Option<Value> {
        let ty = self.ty(value);
        let has = |bit: u64| mask >> bit & 1 == 1;
        if has(0) != has(1) || has(5) != has(6) {
            return None;
        }
        let nan = has(0);
        let (least, infinity) = if ty == Type::F32 {
            (u128::from(f32::MIN_POSITIVE.to_bits()), u128::from(f32::INFINITY.to_bits()))
        } else {
            (u128::from(f64::MIN_POSITIVE.to_bits()), u128::from(f64::INFINITY.to_bits()))
        };
        let sign = 1 << (ty.bits() - 1);
        let is_even = [(2, 9), (3, 8), (4, 7)].into_iter().all(|(low, high)| has(low) == has(high));
        // Classes in rising order, and what is the least of each but the first: whether it is `>` or `>=`, and of what.
        let even = [(true, 0), (false, least), (false, infinity)];
        let rising =
            [(true, sign | infinity), (true, sign | least), (false, 0), (true, 0), (false, least), (false, infinity)];
        let (operand, classes, starts): (Value, &[u64], &[(bool, u128)]) = match is_even {
            true => (self.un(Opcode::Fabs, value), &[6, 7, 8, 9], &even),
            false => (value, &[2, 3, 4, 5, 7, 8, 9], &rising),
        };
        let chosen: SmallVec<[bool; 7]> = classes.iter().map(|bit| has(*bit)).collect();
        let (first, end, inside) = one_run(&chosen)?;
        // From the start of `first` to before the start of `end`.
        let above = first.checked_sub(1).and_then(|at| starts.get(at));
        let below = end.checked_sub(1).and_then(|at| starts.get(at));
        if ty == Type::F64 && above.is_some() && below.is_some() {
            return None;
        }
        let mut ask = |greater: bool, (strict, bits): (bool, u128)| {
            let number = self.bits(ty, bits);
            self.fcmp(bound(greater, strict, nan), Flags::EMPTY, operand, number)
        };
        Some(match (above, below) {
            (None, None) if nan => return None,
            (None, None) => self.fcmp(FloatCC::Ord, Flags::EMPTY, value, value),
            (Some(above), None) => ask(inside, (above.0 == inside, above.1)),
            (None, Some(below)) => ask(!inside, (below.0 != inside, below.1)),
            (Some(above), Some(below)) => {
                let above = ask(inside, (above.0 == inside, above.1));
                let below = ask(!inside, (below.0 != inside, below.1));
                self.bin(if inside { Opcode::And } else { Opcode::Or }, above, below)
            }
        })
    }

    /// Classes of one sign from its zero on, as one comparison of the bits.
    fn one_sign_from_zero(&mut self, negative: &[bool; 6], positive: &[bool; 6], value: Value) -> Option<Value> {
        let run = |classes: &[bool; 6]| {
            let end = classes.iter().position(|on| !*on)?;
            (end > 0 && !classes[end..].contains(&true)).then_some(end)
        };
        let none = [false; 6];
        let (cc, end) = if *negative == none {
            (IntCC::Ult, run(positive)?)
        } else if *positive == none {
            // The bits of negative numbers rise from the least integer.
            (IntCC::Slt, run(negative)?)
        } else {
            return None;
        };
        let (_, _, bounds) = self.class_operands(value);
        let int = Type::int(self.ty(value).bits());
        let sign = if cc == IntCC::Slt { 1 << (int.bits() - 1) } else { 0 };
        let bits = self.bitcast(value, int);
        let bound = self.bits(int, bounds[end] | sign);
        Some(self.icmp(cc, bits, bound))
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
