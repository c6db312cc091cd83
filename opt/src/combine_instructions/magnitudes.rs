//! Tests of the bits of an f32 that are comparisons of its magnitude: what libraries and compilers write for `isnan`,
//! `isinf`, `isfinite`, `isnormal` and the like.
//!
//! Magnitudes are ordered as their bits are, with NaN beyond infinity. A comparison of floats takes the magnitude of an
//! operand by itself, one of integers needs a mask first. Only f32: comparisons of f64 are slow on many GPUs, and those of halves
//! need more instructions than those of integers.

use ptxc_ir::{Extra, Flags, FloatCC, Function, Inst, IntCC, Opcode, Type, Value};

use crate::rules::{Found, Rule};

use super::{before, constant, made_by, made_exactly_by};

/// Bits of the magnitude, and of the fraction below the exponent.
const MAGNITUDE: u64 = 0x7fff_ffff;
const FRACTION: u32 = 23;
/// Bits of infinity.
const INFINITY: u64 = 0x7f80_0000;

/// A cheaper way to the same result.
pub(super) fn rewrite(func: &mut Function, inst: Inst) -> Option<Found> {
    match func.dfg.insts[inst].op {
        Opcode::Icmp => comparison(func, inst),
        Opcode::And | Opcode::Or => parts(func, inst).or_else(|| unordered(func, inst)),
        _ => None,
    }
}

/// An integer that is the magnitude bits of an f32, of which `cut` are shifted out and `zeros` shifted in below.
struct Bits {
    x: Value,
    cut: u32,
    zeros: u32,
}

impl Bits {
    /// The least magnitude for which the integer is at least `bound`.
    fn least(&self, bound: u64) -> u64 {
        bound.div_ceil(1 << self.zeros) << self.cut
    }
}

/// The f32 whose bits an integer is, perhaps without the sign.
fn float_behind(func: &Function, value: Value) -> Option<Value> {
    let x = *made_by(func, value, Opcode::Bitcast)?.first()?;
    (func.dfg.ty(x) == Type::F32 && func.dfg.ty(value) == Type::I32).then_some(x)
}

/// The integer as bits of a magnitude.
fn bits_of_magnitude(func: &Function, value: Value) -> Option<Bits> {
    if let Some(x) = float_behind(func, value) {
        let x = *made_exactly_by(func, x, Opcode::Fabs)?.first()?;
        return Some(Bits { x, cut: 0, zeros: 0 });
    }
    let inst = func.dfg.def_inst(value)?;
    let op = func.dfg.insts[inst].op;
    let args = made_by(func, value, op)?;
    let &[a, b] = &args[..] else { return None };
    let n = constant(func, b)?;
    match (op, n) {
        (Opcode::And, MAGNITUDE) => Some(Bits { x: float_behind(func, a)?, cut: 0, zeros: 0 }),
        (Opcode::And, INFINITY) => Some(Bits { x: float_behind(func, a)?, cut: FRACTION, zeros: FRACTION }),
        (Opcode::And, 255) => {
            let shifted = made_by(func, a, Opcode::Lshr)?;
            let by = constant(func, *shifted.get(1)?)?;
            (by == FRACTION.into()).then_some(())?;
            Some(Bits { x: float_behind(func, *shifted.first()?)?, cut: FRACTION, zeros: 0 })
        }
        (Opcode::Shl, 1) => Some(Bits { x: float_behind(func, a)?, cut: 0, zeros: 1 }),
        (Opcode::Lshr, _) => {
            let inner = bits_of_magnitude(func, a)?;
            let exponent = inner.zeros <= 1 && n == u64::from(FRACTION + inner.zeros) && inner.cut == 0
                || inner.cut == FRACTION && inner.zeros == FRACTION && n == FRACTION.into();
            exponent.then_some(Bits { x: inner.x, cut: FRACTION, zeros: 0 })
        }
        _ => None,
    }
}

/// Magnitudes from `low` to before `high`, or the others.
struct Interval {
    low: u64,
    high: u64,
    inside: bool,
}

/// The magnitudes for which a comparison with a constant holds.
fn interval(bits: &Bits, cc: IntCC, bound: u64) -> Option<Interval> {
    let end = MAGNITUDE + 1;
    // Less than a sign bit, so that signed comparisons with what is not negative are unsigned ones.
    if cc.is_signed() && (bits.cut == 0 && bits.zeros == 1 || bound > MAGNITUDE) {
        return None;
    }
    let (low, high, inside) = match cc.unsigned() {
        IntCC::Ult => (0, bits.least(bound), true),
        IntCC::Ule => (0, bits.least(bound + 1), true),
        IntCC::Ugt => (bits.least(bound + 1), end, true),
        IntCC::Uge => (bits.least(bound), end, true),
        // Whether bits are zero is one instruction already.
        _ if bound == 0 || bound & ((1 << bits.zeros) - 1) != 0 => return None,
        other => (bits.least(bound), bits.least(bound + (1 << bits.zeros)), other == IntCC::Eq),
    };
    Some(Interval { low, high: high.min(end), inside })
}

fn comparison(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[value, bound] = func.dfg.args(inst) else { return None };
    let Extra::IntCC(cc) = func.dfg.insts[inst].extra else { return None };
    if func.dfg.ty(value) != Type::I32 {
        return None;
    }
    let bound = constant(func, bound)?;
    let value = func.dfg.resolve(value);
    if let Some(bits) = bits_of_magnitude(func, value) {
        return compared(func, inst, bits.x, &interval(&bits, cc, bound)?);
    }
    // A range: the distance from its least number.
    let sum = made_by(func, value, Opcode::Add)?;
    let &[value, least] = &sum[..] else { return None };
    let least = u64::from((constant(func, least)? as u32).wrapping_neg());
    let bits = bits_of_magnitude(func, value)?;
    let (size, inside) = match cc {
        IntCC::Ult => (bound, true),
        IntCC::Ule => (bound + 1, true),
        IntCC::Ugt => (bound + 1, false),
        IntCC::Uge => (bound, false),
        _ => return None,
    };
    // Neither end goes around.
    if least + size > 1 << 32 {
        return None;
    }
    let high = bits.least(least + size).min(MAGNITUDE + 1);
    compared(func, inst, bits.x, &Interval { low: bits.least(least), high, inside })
}

/// The comparison of floats that asks whether a magnitude lies in an interval, or two of them.
fn compared(func: &mut Function, inst: Inst, x: Value, wanted: &Interval) -> Option<Found> {
    let Interval { low, high, inside } = *wanted;
    let end = MAGNITUDE + 1;
    // Among NaN nothing is told apart.
    if low >= high || low > INFINITY + 1 || high > INFINITY + 1 && high != end || low == 0 && high == end {
        return None;
    }
    let mut builder = before(func, inst);
    let one = |cc: FloatCC| if inside { cc } else { cc.inverse() };
    if low == 0 && high == INFINITY + 1 || low == INFINITY + 1 {
        let cc = one(if low == 0 { FloatCC::Ord } else { FloatCC::Uno });
        return Some((Rule::MagnitudeCompare, builder.fcmp(cc, Flags::EMPTY, x, x)));
    }
    let magnitude = builder.unary(Opcode::Fabs, x);
    let mut ask = |cc: FloatCC, bits: u64| {
        let number = builder.bits(Type::F32, bits.into());
        builder.fcmp(cc, Flags::EMPTY, magnitude, number)
    };
    let single = match (low, high) {
        (0, _) => Some((FloatCC::Olt, high)),
        _ if high == end => Some((FloatCC::Uge, low)),
        _ if high == low + 1 => Some((FloatCC::Oeq, low)),
        // Infinity is the last of them.
        _ if high == INFINITY + 1 => Some((FloatCC::Oge, low)),
        _ => None,
    };
    if let Some((cc, number)) = single {
        return Some((Rule::MagnitudeCompare, ask(one(cc), number)));
    }
    let (above, below) = (ask(one(FloatCC::Oge), low), ask(one(FloatCC::Olt), high));
    let join = if inside { Opcode::And } else { Opcode::Or };
    Some((Rule::MagnitudeRange, builder.binary(join, above, below)))
}

/// The condition, the magnitude's number and the constant of a comparison of a magnitude with infinity.
fn against_infinity(func: &Function, flag: Value) -> Option<(FloatCC, Value)> {
    let (cc, x, bound, flags) = float_comparison(func, flag)?;
    let magnitude = made_exactly_by(func, x, Opcode::Fabs)?;
    let is_infinity = func.dfg.as_bits(bound) == Some(INFINITY.into());
    (flags.is_empty() && is_infinity && func.dfg.ty(x) == Type::F32).then_some((cc, *magnitude.first()?))
}

/// The exponent of infinity and NaN, and whether the fraction below it is zero, asked one by one.
fn parts(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[p, q] = func.dfg.args(inst) else { return None };
    let all = func.dfg.insts[inst].op == Opcode::And;
    let (p, q) = (func.dfg.resolve(p), func.dfg.resolve(q));
    [(p, q), (q, p)].into_iter().find_map(|(exponent, fraction)| {
        let (cc, x) = against_infinity(func, exponent)?;
        (cc == if all { FloatCC::Uge } else { FloatCC::Olt }).then_some(())?;
        let test = made_by(func, fraction, Opcode::Icmp)?;
        let Extra::IntCC(zero) = func.dfg.insts[func.dfg.def_inst(fraction)?].extra else { return None };
        let &[masked, nothing] = &test[..] else { return None };
        let masked = made_by(func, masked, Opcode::And)?;
        let &[bits, mask] = &masked[..] else { return None };
        let is_fraction = constant(func, mask) == Some((1 << FRACTION) - 1) && constant(func, nothing) == Some(0);
        (is_fraction && float_behind(func, bits) == Some(x)).then_some(())?;
        let is_nan = match zero {
            IntCC::Ne => all,
            IntCC::Eq => !all,
            _ => return None,
        };
        let mut builder = before(func, inst);
        let value = if is_nan {
            builder.fcmp(if all { FloatCC::Uno } else { FloatCC::Ord }, Flags::EMPTY, x, x)
        } else {
            let magnitude = builder.unary(Opcode::Fabs, x);
            let infinity = builder.bits(Type::F32, INFINITY.into());
            builder.fcmp(if all { FloatCC::Oeq } else { FloatCC::Une }, Flags::EMPTY, magnitude, infinity)
        };
        Some((Rule::NanParts, value))
    })
}

/// Condition, operands and flags of a comparison of floats.
fn float_comparison(func: &Function, flag: Value) -> Option<(FloatCC, Value, Value, Flags)> {
    let args = made_by(func, flag, Opcode::Fcmp)?;
    let data = &func.dfg.insts[func.dfg.def_inst(flag)?];
    let Extra::FloatCC(cc) = data.extra else { return None };
    match args[..] {
        [a, b] => Some((cc, a, b, data.flags)),
        _ => None,
    }
}

/// The condition that is true for NaN as well, or the one that is not.
fn with_nan(cc: FloatCC, holds: bool) -> Option<FloatCC> {
    use FloatCC::{Oeq, Oge, Ogt, Ole, Olt, One, Ueq, Uge, Ugt, Ule, Ult, Une};
    let pairs = [(Oeq, Ueq), (Ogt, Ugt), (Oge, Uge), (Olt, Ult), (Ole, Ule), (One, Une)];
    let (ordered, unordered) = pairs.into_iter().find(|(o, u)| cc == *o || cc == *u)?;
    Some(if holds { unordered } else { ordered })
}

/// A test for NaN beside a comparison of the same number, or of its magnitude, with a constant: one comparison.
fn unordered(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[p, q] = func.dfg.args(inst) else { return None };
    if func.dfg.ty(p) != Type::I1 {
        return None;
    }
    let wanted = if func.dfg.insts[inst].op == Opcode::Or { FloatCC::Uno } else { FloatCC::Ord };
    let (p, q) = (func.dfg.resolve(p), func.dfg.resolve(q));
    [(p, q), (q, p)].into_iter().find_map(|(nan, other)| {
        let tested = super::compare::tested_for_nan(func, nan, wanted)?;
        let (cc, x, bound, flags) = float_comparison(func, other)?;
        let same = x == tested || made_by(func, x, Opcode::Fabs).is_some_and(|of| of[..] == [tested]);
        let number = func.dfg.as_bits(bound)?;
        let infinity = infinity(func.dfg.ty(bound))?;
        let is_number = number & ((1 << (func.dfg.ty(bound).scalar_bits() - 1)) - 1) <= infinity;
        let cc = with_nan(cc, wanted == FloatCC::Uno).filter(|_| same && is_number)?;
        Some((Rule::JoinUnordered, before(func, inst).fcmp(cc, flags.intersect(Flags::FTZ), x, bound)))
    })
}

fn infinity(ty: Type) -> Option<u128> {
    match ty {
        Type::F16 => Some(0x7c00),
        Type::BF16 => Some(0x7f80),
        Type::F32 => Some(INFINITY.into()),
        Type::F64 => Some(0x7ff0_0000_0000_0000),
        _ => None,
    }
}
