//! Rotations, and pairs of numbers shifted as one, that were written with shifts and products.

use ptxc_ir::{Flags, Function, Inst, Opcode, Type, Value};

use super::{before, constant, int_width, made_by, mask, pair};
use crate::rules::{Found, Rule};

/// Two shifts, or a product and its copy that is moved up, put together.
pub(super) fn rewrite(func: &mut Function, inst: Inst) -> Option<Found> {
    let op = func.dfg.insts[inst].op;
    let &[a, b] = func.dfg.args(inst) else { return None };
    let (a, b) = (func.dfg.resolve(a), func.dfg.resolve(b));
    let width = int_width(func.dfg.ty(a)).filter(|width| matches!(width, 16 | 32 | 64))?;
    if !matches!(op, Opcode::Or | Opcode::Xor | Opcode::Add) {
        return None;
    }
    [(a, b), (b, a)].into_iter().find_map(|(up, down)| {
        constant_shifts(func, inst, up, down, width)
            .or_else(|| rotated_product(func, inst, up, down, width))
            .or_else(|| shifted_pair(func, inst, up, down, width))
            .or_else(|| variable_shifts64(func, inst, up, down, width))
    })
}

/// The number and the constant of an operation with one.
fn shifted(func: &Function, value: Value, op: Opcode) -> Option<(Value, u64)> {
    match made_by(func, value, op)?[..] {
        [x, by] => Some((x, constant(func, by)?)),
        _ => None,
    }
}

/// `(x << n) | (y >> (width - n))`. Of 32 bits a pair is a rule of selection: it is known there who else wants the shifts.
fn constant_shifts(func: &mut Function, inst: Inst, up: Value, down: Value, width: u32) -> Option<Found> {
    let ((x, left), (y, right)) = (shifted(func, up, Opcode::Shl)?, shifted(func, down, Opcode::Lshr)?);
    if left == 0 || right == 0 || left + right != u64::from(width) {
        return None;
    }
    match width {
        16 if x == y && left == 8 => Some((Rule::SwapShifts, before(func, inst).unary(Opcode::Bswap, x))),
        32 if x == y => Some((Rule::RotateShifts, moved(func, inst, x, y, left))),
        64 if x == y => Some((Rule::RotateShifts64, moved(func, inst, x, y, left))),
        64 => Some((Rule::FunnelShifts64, moved(func, inst, x, y, left))),
        _ => None,
    }
}

/// `(x * c << n) | (x * c >> (width - n))` where the shift of the first product went into its constant.
fn rotated_product(func: &mut Function, inst: Inst, up: Value, down: Value, width: u32) -> Option<Found> {
    if width == 16 {
        return None;
    }
    let (product, right) = shifted(func, down, Opcode::Lshr)?;
    let left = u64::from(width).checked_sub(right).filter(|left| *left > 0 && right > 0)?;
    let (x, factor) = shifted(func, product, Opcode::Mul)?;
    let (other, scaled) = shifted(func, up, Opcode::Mul)?;
    if other != x || scaled != factor << left & mask(width) {
        return None;
    }
    Some((Rule::RotateProduct, moved(func, inst, product, product, left)))
}

/// The upper half of the pair x:y moved left.
fn moved(func: &mut Function, inst: Inst, x: Value, y: Value, left: u64) -> Value {
    let ty = func.dfg.ty(x);
    let mut builder = before(func, inst);
    let by = builder.bits(ty, left.into());
    builder.ternary(Opcode::Fshl, Flags::EMPTY, x, y, by)
}

/// `(x << n) | (y >> 1 >> (31 - n))`, and to the other side: a pair shifted by any amount, zero too. An amount of the width or more is
/// undefined in the first shift.
fn shifted_pair(func: &mut Function, inst: Inst, up: Value, down: Value, width: u32) -> Option<Found> {
    if width != 32 {
        return None;
    }
    let ((x, n), (y, m)) = (pair(func, up, Opcode::Shl)?, pair(func, down, Opcode::Lshr)?);
    let one = |value: Value, op: Opcode| shifted(func, value, op).filter(|(_, by)| *by == 1).map(|(inner, _)| inner);
    // The funnel shift counts modulo 32.
    let plain = |amount: Value| low_five(func, amount).unwrap_or(amount);
    if let Some(y) = one(y, Opcode::Lshr).filter(|_| is_rest(func, m, n)) {
        let by = plain(n);
        return Some((Rule::FunnelLeftSafe, before(func, inst).ternary(Opcode::Fshl, Flags::EMPTY, x, y, by)));
    }
    let x = one(x, Opcode::Shl).filter(|_| is_rest(func, n, m))?;
    let by = plain(m);
    Some((Rule::FunnelRightSafe, before(func, inst).ternary(Opcode::Fshr, Flags::EMPTY, x, y, by)))
}

/// The n of `n & 31`.
fn low_five(func: &Function, value: Value) -> Option<Value> {
    shifted(func, value, Opcode::And).filter(|(_, bits)| *bits == 31).map(|(inner, _)| inner)
}

/// Whether a value is 31 less an amount that is at most that: by a difference, by inverting five bits, or inverted and masked.
fn is_rest(func: &Function, value: Value, amount: Value) -> bool {
    debug_assert_eq!(func.dfg.ty(amount), Type::I32);
    if pair(func, value, Opcode::Sub).is_some_and(|(all, less)| less == amount && constant(func, all) == Some(31)) {
        return true;
    }
    if shifted(func, value, Opcode::Xor).is_some_and(|(inner, bits)| inner == amount && bits == 31) {
        return true;
    }
    // `~n & 31` and `n & 31`.
    let plain = low_five(func, amount).unwrap_or(amount);
    low_five(func, value)
        .and_then(|inverted| shifted(func, inverted, Opcode::Xor))
        .is_some_and(|(inner, bits)| bits & 31 == 31 && (inner == amount || inner == plain))
}

/// `(x << n) | (x >> (64 - n))` with a variable amount, or the other way around: of no bits it is undefined. Where both amounts are
/// masked, no bits are right as well if `or` puts them together. A pair is left alone: shifts of 64 bits are two instructions of the
/// machine, and the words that a funnel shift takes have to be chosen.
fn variable_shifts64(func: &mut Function, inst: Inst, up: Value, down: Value, width: u32) -> Option<Found> {
    if width != 64 {
        return None;
    }
    let ((x, n), (y, m)) = (pair(func, up, Opcode::Shl)?, pair(func, down, Opcode::Lshr)?);
    if x != y {
        return None;
    }
    let amounts = [n, m].map(|amount| Amount::of(func, amount));
    for (by, rest, op) in [(amounts[0], amounts[1], Opcode::Fshl), (amounts[1], amounts[0], Opcode::Fshr)] {
        let same = by.extended == rest.extended;
        let Some((from, less)) = pair(func, rest.number, Opcode::Sub).filter(|_| same) else { continue };
        let from = constant(func, from);
        let fits = if rest.masked {
            let joins = func.dfg.insts[inst].op == Opcode::Or;
            joins && matches!(from, Some(0 | 64)) && (less == by.number || less == by.whole)
        } else {
            // Of an amount that is masked here alone, 64 would be none there.
            from == Some(64) && less == by.whole
        };
        if !fits {
            continue;
        }
        // The funnel shift counts modulo 64.
        let mut builder = before(func, inst);
        let by = if by.extended { builder.convert(Opcode::Zext, by.number, Type::I64) } else { by.number };
        return Some((Rule::RotateVariable64, builder.ternary(op, Flags::EMPTY, x, x, by)));
    }
    None
}

/// An amount of 64 bits, perhaps one of 32 that is extended.
#[derive(Clone, Copy)]
struct Amount {
    /// Without a mask of six bits.
    number: Value,
    /// With it.
    whole: Value,
    masked: bool,
    extended: bool,
}

impl Amount {
    fn of(func: &Function, value: Value) -> Amount {
        let word =
            made_by(func, value, Opcode::Zext).map(|args| args[0]).filter(|word| func.dfg.ty(*word) == Type::I32);
        let whole = word.unwrap_or(value);
        let number = shifted(func, whole, Opcode::And).filter(|(_, bits)| *bits == 63).map(|(inner, _)| inner);
        Amount { number: number.unwrap_or(whole), whole, masked: number.is_some(), extended: word.is_some() }
    }
}
