//! Limits that a number keeps anyway, as products of short numbers do.

use ptxc_ir::{Function, Inst, Opcode, Type, Value};

use super::signed;
use crate::rules::{Found, Rule};

/// Operations that are looked through, one behind the other.
const MAX_DEPTH: u32 = 5;

/// The least and the greatest number that a word can be.
type Limits = (i64, i64);

/// What any word is.
const WORD: Limits = (i32::MIN as i64, i32::MAX as i64);

/// A minimum or maximum with a constant that decides nothing.
pub(super) fn rewrite(func: &Function, inst: Inst) -> Option<Found> {
    let &[x, limit] = func.dfg.args(inst) else { return None };
    if func.dfg.ty(x) != Type::I32 {
        return None;
    }
    let limit = signed(func, limit)?;
    let (least, most) = limits(func, x, MAX_DEPTH);
    match func.dfg.insts[inst].op {
        Opcode::Smax if limit <= least => Some((Rule::SmaxKept, x)),
        Opcode::Smin if limit >= most => Some((Rule::SminKept, x)),
        _ => None,
    }
}

/// Bounds of a word read as a signed number.
fn limits(func: &Function, value: Value, depth: u32) -> Limits {
    if let Some(number) = signed(func, value) {
        return (number, number);
    }
    let Some(inst) = func.dfg.def_inst(value).filter(|_| depth > 0) else { return WORD };
    let data = &func.dfg.insts[inst];
    let args = func.dfg.args(inst);
    let of = |index: usize| args.get(index).map_or(WORD, |value| limits(func, func.dfg.resolve(*value), depth - 1));
    let number = |index: usize| args.get(index).and_then(|value| signed(func, *value));
    let within = |least: i64, most: i64| if least >= WORD.0 && most <= WORD.1 { (least, most) } else { WORD };
    match data.op {
        Opcode::Sext | Opcode::Zext => {
            let bits = args.first().map_or(32, |value| func.dfg.ty(*value).bits());
            match (bits, data.op) {
                (1..=31, Opcode::Zext) => (0, (1 << bits) - 1),
                (1..=31, _) => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
                _ => WORD,
            }
        }
        _ if func.dfg.ty(value) != Type::I32 => WORD,
        Opcode::Add => {
            let (a, b) = (of(0), of(1));
            within(a.0 + b.0, a.1 + b.1)
        }
        Opcode::Sub => {
            let (a, b) = (of(0), of(1));
            within(a.0 - b.1, a.1 - b.0)
        }
        Opcode::Mul => {
            let (a, b) = (of(0), of(1));
            // Products of words fit 64 bits.
            let products = [a.0 * b.0, a.0 * b.1, a.1 * b.0, a.1 * b.1];
            within(products.into_iter().min().unwrap_or(WORD.0), products.into_iter().max().unwrap_or(WORD.1))
        }
        Opcode::Ashr => match number(1) {
            Some(by @ 0..=31) => {
                let (least, most) = of(0);
                (least >> by, most >> by)
            }
            _ => WORD,
        },
        Opcode::And => match number(1) {
            Some(kept) if kept >= 0 => (0, kept),
            _ => WORD,
        },
        Opcode::Smin | Opcode::Smax => {
            let (a, b) = (of(0), of(1));
            if data.op == Opcode::Smin { (a.0.min(b.0), a.1.min(b.1)) } else { (a.0.max(b.0), a.1.max(b.1)) }
        }
        _ => WORD,
    }
}
