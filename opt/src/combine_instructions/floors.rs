//! Quotients and remainders rounded down, written with those that are rounded toward zero. Looked for before the other
//! rules take the divisions apart.

use ptxc_ir::{Extra, Function, Inst, IntCC, Opcode, Value};

use super::{before, constant, int_width, made_by, signed};
use crate::edit::{for_each_inst, resolve_uses_of};
use crate::pass::Context;
use crate::rules::{Found, Rule};

/// Rewrites what a function rounds down. Tells whether there was any.
pub(super) fn rewrite(func: &mut Function, ctx: &Context<'_>) -> bool {
    let mut candidates: Vec<Inst> = Vec::new();
    let mut divides = false;
    for_each_inst(func, |inst| {
        let op = func.dfg.insts[inst].op;
        divides |= op == Opcode::Srem;
        if matches!(op, Opcode::Srem | Opcode::Select) {
            candidates.push(inst);
        }
    });
    let mut changed = false;
    for inst in candidates.into_iter().filter(|_| divides) {
        resolve_uses_of(func, inst);
        let found = match func.dfg.insts[inst].op {
            Opcode::Select => chosen(func, inst),
            _ => twice(func, inst),
        };
        let (Some((rule, value)), Some(result)) = (found, func.dfg.first_result(inst)) else { continue };
        ctx.note(inst, rule);
        func.dfg.alias(result, value);
        func.layout.remove_inst(inst);
        changed = true;
    }
    changed
}

/// The dividend and the divisor, a positive constant of which twice fits the type.
fn divided(func: &Function, value: Value, op: Opcode) -> Option<(Value, u64)> {
    let width = int_width(func.dfg.ty(value)).filter(|width| matches!(width, 32 | 64))?;
    match made_by(func, value, op)?[..] {
        [a, by] => {
            let by = signed(func, by).filter(|by| (2..=1i64 << (width - 2)).contains(by))?;
            Some((a, by as u64))
        }
        _ => None,
    }
}

/// Whether a value is another one and a constant.
fn is_sum(func: &Function, value: Value, of: Value, more: i64) -> bool {
    let sum = made_by(func, value, Opcode::Add)
        .is_some_and(|args| matches!(args[..], [a, b] if a == of && signed(func, b) == Some(more)));
    sum || made_by(func, value, Opcode::Sub)
        .is_some_and(|args| matches!(args[..], [a, b] if a == of && signed(func, b) == Some(-more)))
}

/// A choice by the sign of the remainder.
fn chosen(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[flag, x, y] = func.dfg.args(inst) else { return None };
    let test = func.dfg.def_inst(flag).filter(|test| func.dfg.insts[*test].op == Opcode::Icmp)?;
    let (&[rest, bound], Extra::IntCC(cc)) = (func.dfg.args(test), func.dfg.insts[test].extra) else { return None };
    let rest = func.dfg.resolve(rest);
    let (negative, other) = match (cc, signed(func, bound)?) {
        (IntCC::Slt, 0) | (IntCC::Sle, -1) => (x, y),
        (IntCC::Sgt, -1) | (IntCC::Sge, 0) => (y, x),
        _ => return None,
    };
    let (a, by) = divided(func, rest, Opcode::Srem).filter(|(_, by)| by.is_power_of_two())?;
    let (negative, other) = (func.dfg.resolve(negative), func.dfg.resolve(other));
    if other == rest && is_sum(func, negative, rest, by as i64) {
        return Some((Rule::FloorRemainder, before(func, inst).binary_imm(Opcode::And, a, by as i64 - 1)));
    }
    let same = divided(func, other, Opcode::Sdiv) == Some((a, by));
    (same && is_sum(func, negative, other, -1)).then(|| {
        let by = i64::from(by.trailing_zeros());
        (Rule::FloorQuotient, before(func, inst).binary_imm(Opcode::Ashr, a, by))
    })
}

/// `(a % n + n) % n`: less than twice the divisor, so that nothing is divided again.
fn twice(func: &mut Function, inst: Inst) -> Option<Found> {
    let result = func.dfg.first_result(inst)?;
    let (sum, by) = divided(func, result, Opcode::Srem)?;
    let &[rest, more] = &made_by(func, sum, Opcode::Add)?[..] else { return None };
    if constant(func, more) != Some(by) {
        return None;
    }
    let (a, inner) = divided(func, rest, Opcode::Srem)?;
    if inner != by {
        return None;
    }
    let mut builder = before(func, inst);
    if by.is_power_of_two() {
        return Some((Rule::FloorRemainder, builder.binary_imm(Opcode::And, a, by as i64 - 1)));
    }
    let negative = builder.icmp_imm(IntCC::Slt, rest, 0);
    Some((Rule::FloorRemainderTwice, builder.select(negative, sum, rest)))
}
