//! Operations on two results of one kind, done once on what they were made of: signs, comparisons,
//! parities, halves.

use ptxc_ir::{Extra, Flags, FloatCC, Function, Inst, IntCC, Opcode, Type, Value};

use super::{before, constant, int_width, made_by, mask};
use crate::rules::{Found, Rule};

/// A cheaper way to the same result.
pub(super) fn rewrite(func: &mut Function, inst: Inst) -> Option<Found> {
    if func.dfg.insts[inst].op == Opcode::Trunc {
        return average_up(func, inst);
    }
    let &[p, q] = func.dfg.args(inst) else { return None };
    let (p, q) = (func.dfg.resolve(p), func.dfg.resolve(q));
    match func.dfg.insts[inst].op {
        Opcode::And | Opcode::Or if func.dfg.ty(p) == Type::I1 => {
            signs(func, inst, p, q).or_else(|| float_conditions(func, inst, p, q))
        }
        Opcode::And => parities(func, inst, p, q).or_else(|| low_bits(func, inst, p, q)),
        _ => None,
    }
}

/// The number whose sign a flag asks for, and whether it asks for a negative one.
fn sign(func: &Function, flag: Value) -> Option<(Value, bool)> {
    let test = func.dfg.def_inst(flag).filter(|test| func.dfg.insts[*test].op == Opcode::Icmp)?;
    let (&[x, with], Extra::IntCC(cc)) = (func.dfg.args(test), func.dfg.insts[test].extra) else { return None };
    let all = mask(int_width(func.dfg.ty(x)).filter(|width| matches!(width, 32 | 64))?);
    let with = constant(func, with)?;
    match cc {
        IntCC::Slt if with == 0 => Some((func.dfg.resolve(x), true)),
        IntCC::Sge if with == 0 => Some((func.dfg.resolve(x), false)),
        IntCC::Sle if with == all => Some((func.dfg.resolve(x), true)),
        IntCC::Sgt if with == all => Some((func.dfg.resolve(x), false)),
        _ => None,
    }
}

/// Three signs that are asked for alike: that of three numbers joined. Of two numbers, one comparison takes the other's result
/// already.
fn signs(func: &mut Function, inst: Inst, p: Value, q: Value) -> Option<Found> {
    let op = func.dfg.insts[inst].op;
    let (joined, last) = [(p, q), (q, p)].into_iter().find_map(|(joined, last)| {
        let last = sign(func, last)?;
        let parts = made_by(func, joined, op)?;
        let &[a, b] = &parts[..] else { return None };
        Some(([sign(func, a)?, sign(func, b)?], last))
    })?;
    let [(x, first), (y, second)] = joined;
    let (z, negative) = last;
    if first != negative || second != negative || func.dfg.ty(x) != func.dfg.ty(z) || func.dfg.ty(y) != func.dfg.ty(z) {
        return None;
    }
    // All negative: all have the bit. All not: none has it.
    let with = if (op == Opcode::And) == negative { Opcode::And } else { Opcode::Or };
    let mut builder = before(func, inst);
    let both = builder.binary(with, x, y);
    let all = builder.binary(with, both, z);
    let cc = if negative { IntCC::Slt } else { IntCC::Sge };
    Some((Rule::JoinSigns, builder.icmp_imm(cc, all, 0)))
}

/// Bits for less, greater, equal and unordered.
const OUTCOMES: [(FloatCC, u8); 14] = [
    (FloatCC::Olt, 1),
    (FloatCC::Ogt, 2),
    (FloatCC::One, 3),
    (FloatCC::Oeq, 4),
    (FloatCC::Ole, 5),
    (FloatCC::Oge, 6),
    (FloatCC::Ord, 7),
    (FloatCC::Uno, 8),
    (FloatCC::Ult, 9),
    (FloatCC::Ugt, 10),
    (FloatCC::Une, 11),
    (FloatCC::Ueq, 12),
    (FloatCC::Ule, 13),
    (FloatCC::Uge, 14),
];

/// Two comparisons of the same floats.
fn float_conditions(func: &mut Function, inst: Inst, p: Value, q: Value) -> Option<Found> {
    let comparison = |flag: Value| {
        let test = func.dfg.def_inst(flag).filter(|test| func.dfg.insts[*test].op == Opcode::Fcmp)?;
        let (&[a, b], Extra::FloatCC(cc)) = (func.dfg.args(test), func.dfg.insts[test].extra) else { return None };
        let outcomes = OUTCOMES.iter().find(|row| row.0 == cc)?.1;
        Some((func.dfg.resolve(a), func.dfg.resolve(b), outcomes, func.dfg.insts[test].flags))
    };
    let ((a, b, first, flags), (c, d, second, others)) = (comparison(p)?, comparison(q)?);
    // Exchanged, less is greater.
    let second = match (c, d) {
        same if same == (a, b) => second,
        same if same == (b, a) => second & 12 | second >> 1 & 1 | second << 1 & 2,
        _ => return None,
    };
    let outcomes = if func.dfg.insts[inst].op == Opcode::And { first & second } else { first | second };
    if flags.contains(Flags::FTZ) != others.contains(Flags::FTZ) {
        return None;
    }
    let cc = OUTCOMES.iter().find(|row| row.1 == outcomes)?.0;
    let flags = flags.intersect(others);
    Some((Rule::JoinFloatConditions, before(func, inst).fcmp(cc, flags, a, b)))
}

/// The lowest bit of two numbers of ones: that of the ones of both.
fn parities(func: &mut Function, inst: Inst, sum: Value, one: Value) -> Option<Found> {
    if constant(func, one) != Some(1) {
        return None;
    }
    let parts = made_by(func, sum, Opcode::Xor).or_else(|| made_by(func, sum, Opcode::Add))?;
    let &[a, b] = &parts[..] else { return None };
    let (x, y) = (*made_by(func, a, Opcode::Ctpop)?.first()?, *made_by(func, b, Opcode::Ctpop)?.first()?);
    if int_width(func.dfg.ty(x)).is_none() || func.dfg.ty(x) != func.dfg.ty(y) {
        return None;
    }
    let mut builder = before(func, inst);
    let differ = builder.binary(Opcode::Xor, x, y);
    let ones = builder.unary(Opcode::Ctpop, differ);
    Some((Rule::JoinParities, builder.binary(Opcode::And, ones, one)))
}

/// `x & ((1 << n) - 1)` of 64 bits as `x & ~(-1 << n)`: a sum goes through both words, logic does not.
fn low_bits(func: &mut Function, inst: Inst, p: Value, q: Value) -> Option<Found> {
    let ty = func.dfg.ty(p);
    if ty != Type::I64 {
        return None;
    }
    let amount = |value: Value| {
        let sum = made_by(func, value, Opcode::Add).filter(|args| constant(func, args[1]) == Some(u64::MAX))?;
        let bit = made_by(func, sum[0], Opcode::Shl).filter(|args| constant(func, args[0]) == Some(1))?;
        bit.get(1).copied()
    };
    let (x, by) = amount(q).map(|by| (p, by)).or_else(|| amount(p).map(|by| (q, by)))?;
    let mut builder = before(func, inst);
    let ones = builder.bits(ty, u64::MAX.into());
    let upper = builder.binary(Opcode::Shl, ones, by);
    let low = builder.binary(Opcode::Xor, upper, ones);
    Some((Rule::LowBits, builder.binary(Opcode::And, x, low)))
}

/// Half of the sum of two words and one: the bits that either has, less half of those that differ.
fn average_up(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[wide] = func.dfg.args(inst) else { return None };
    if func.dfg.ty(wide) != Type::I64 || func.dfg.insts[inst].ty != Type::I32 {
        return None;
    }
    let halved = made_by(func, wide, Opcode::Ashr).or_else(|| made_by(func, wide, Opcode::Lshr))?;
    let sum = made_by(func, halved[0], Opcode::Add).filter(|_| constant(func, halved[1]) == Some(1))?;
    let parts = made_by(func, sum[0], Opcode::Add).filter(|_| constant(func, sum[1]) == Some(1))?;
    let word = |value: Value| {
        let word = *made_by(func, value, Opcode::Sext)?.first()?;
        (func.dfg.ty(word) == Type::I32).then_some(word)
    };
    let (a, b) = (word(parts[0])?, word(parts[1])?);
    let mut builder = before(func, inst);
    let either = builder.binary(Opcode::Or, a, b);
    let differ = builder.binary(Opcode::Xor, a, b);
    let half = builder.binary_imm(Opcode::Ashr, differ, 1);
    Some((Rule::SignedAverageUp, builder.binary(Opcode::Sub, either, half)))
}
