//! What packing costs and saves, in instructions of the machine.
//!
//! Measured with ptxas 13.5 (`tests/patterns` has rows of it): a pair of f32 lies in two neighbouring registers, so
//! that values which nothing else places come together for nothing; operands can be exchanged lanes, one value
//! for both lanes, negated, or one constant. A pair of halves lies in one register: putting two together takes a `PRMT`, but an
//! instruction on halves reads either lane of its register as it is.

use ptxc_ir::{Flags, Function, Inst, Opcode, Type, Value};

use super::Packer;
use super::lanes::lane_of;

/// Two values that would be put together for an operation.
pub(super) struct Gather<'a> {
    pub packer: &'a Packer<'a>,
    pub func: &'a Function,
    pub user: Inst,
    pub a: Value,
    pub b: Value,
}

/// What one operation on a pair takes more than two on scalars.
pub(super) fn gain(packer: &Packer<'_>, func: &Function, inst: Inst) -> i32 {
    match func.dfg.insts[inst].op {
        // Signs are modifiers of operands, for scalars as for pairs.
        Opcode::Fneg | Opcode::Fabs => 0,
        // Part of the sum, for scalars as for pairs.
        Opcode::Fmul if packer.fused_into(func, inst).is_some() => 0,
        _ => -1,
    }
}

/// What it takes to put two values together that nothing computes together.
pub(super) fn gathering(gather: &Gather<'_>) -> i32 {
    let Gather { packer, func, user, a, b } = *gather;
    let user = &func.dfg.insts[user];
    // A conversion to halves takes its operands from wherever they are.
    if user.op == Opcode::Fptrunc || a == b {
        return 0;
    }
    let constants = (func.dfg.as_bits(a), func.dfg.as_bits(b));
    if func.dfg.ty(a) != Type::F32 {
        return i32::from(!matches!(constants, (Some(_), Some(_)))) + modifiers(func, a, b);
    }
    match constants {
        (Some(x), Some(y)) => 2 * i32::from(x != y),
        _ if swapped(func, a, b) => 0,
        _ => {
            let lanes = lane(packer, func, a, (a, b)) + lane(packer, func, b, (a, b));
            lanes + modifiers(func, a, b) + unfused(packer, func, user.op, user.flags, [a, b])
        }
    }
}

/// A move for a lane of f32 that has its place elsewhere.
fn lane(packer: &Packer<'_>, func: &Function, value: Value, pair: (Value, Value)) -> i32 {
    let placed = func.dfg.as_bits(value).is_some()
        || lane_of(func, value).is_some()
        || packer.gathered.get(&value).is_some_and(|other| *other != pair);
    i32::from(placed)
}

/// The lanes of one pair of f32, the other way round.
fn swapped(func: &Function, a: Value, b: Value) -> bool {
    matches!((lane_of(func, a), lane_of(func, b)), (Some((v, x)), Some((w, y))) if v == w && y % 2 == 0 && x == y + 1)
}

/// Signs that scalars change for nothing where they are read, and pairs only in both lanes.
fn modifiers(func: &Function, a: Value, b: Value) -> i32 {
    let op = |value: Value| func.dfg.def_inst(value).map(|inst| func.dfg.insts[inst].op);
    let [a, b] = [a, b].map(op);
    let negated = i32::from((a == Some(Opcode::Fneg)) != (b == Some(Opcode::Fneg)));
    negated + [a, b].iter().filter(|op| **op == Some(Opcode::Fabs)).count() as i32
}

/// What scalars would have been a part of their user, and pairs are not: products, and halves that are extended.
fn unfused(packer: &Packer<'_>, func: &Function, op: Opcode, flags: Flags, lanes: [Value; 2]) -> i32 {
    let sum = matches!(op, Opcode::Fadd | Opcode::Fsub);
    let is_part = |value: &&Value| {
        let Some(inst) = func.dfg.def_inst(**value) else { return false };
        match func.dfg.insts[inst].op {
            Opcode::Fmul => sum && flags.contains(Flags::CONTRACT) && packer.fused_into(func, inst).is_some(),
            Opcode::Fpext => true,
            _ => false,
        }
    };
    lanes.iter().filter(is_part).count() as i32
}

/// What it takes to give the upper lane of a pair to scalar users.
pub(super) fn extraction<'a>(func: &Function, upper: Inst, users: impl Iterator<Item = &'a Inst>) -> i32 {
    extraction_of(func, func.dfg.insts[upper].ty, users)
}

/// The same for a lane of this type.
pub(super) fn extraction_of<'a>(func: &Function, ty: Type, mut users: impl Iterator<Item = &'a Inst>) -> i32 {
    if ty == Type::F32 {
        return 0;
    }
    i32::from(users.any(|user| !reads_either_half(func, *user)))
}

/// Whether the machine's instruction reads the upper half of a register as well as the lower.
fn reads_either_half(func: &Function, user: Inst) -> bool {
    use Opcode::*;
    matches!(
        func.dfg.insts[user].op,
        Fadd | Fsub | Fmul | Fma | Fmin | Fmax | Fminimum | Fmaximum | Fneg | Fabs | Fcmp | Fpext | Vector | Insert
    )
}

/// What it takes to put two scalars together that a vector has as lanes.
pub(super) fn building(func: &Function, lane: Value) -> i32 {
    i32::from(func.dfg.ty(lane) != Type::F32)
}

/// How well two values fit together.
pub(super) fn likeness(func: &Function, a: Value, b: Value) -> i32 {
    match (lane_of(func, a), lane_of(func, b)) {
        (Some((v, x)), Some((w, y))) if v == w && x % 2 == 0 && y == x + 1 => return 8,
        (Some((v, x)), Some((w, y))) if v == w && y % 2 == 0 && x == y + 1 => return 2,
        (Some(_), Some(_)) => return 1,
        _ => {}
    }
    if a == b || (func.dfg.as_bits(a).is_some() && func.dfg.as_bits(b).is_some()) {
        return 4;
    }
    let op = |value: Value| func.dfg.def_inst(value).map(|inst| func.dfg.insts[inst].op);
    match (op(a), op(b)) {
        (Some(x), Some(y)) if x == y => 3,
        _ => 0,
    }
}
