//! What a value is when the loop is left, without the loop.

use ptxc_ir::{Flags, Function, FunctionBuilder, Opcode, Type, Value};

use super::forms::{Copied, Form, Steps};
use super::rounds::{Rounds, Vanishing, add};
use super::width_of;
use crate::pass::Context;
use crate::rules::Rule;
use crate::widths::mask;

/// A value when the loop is left.
#[derive(Clone, Copy, Debug)]
pub(super) enum Closed {
    /// One that is there.
    Value(Value),
    /// Zero.
    Zero,
    /// `from + plus + step * rounds`.
    Counter { from: Option<Value>, plus: u64, step: u64 },
    /// A value moved up or down by a constant.
    Moved { base: Value, up: bool, by: u32 },
    /// A value moved by the number of the last round, and further by a constant.
    MovedByRounds { base: Value, up: bool, further: u32 },
    /// `start`, with bits changed after an odd number of rounds.
    Flipped { start: Value, by: Value },
    /// `op` of `start` and of what the bits `kept` of a value make.
    Total { start: Value, op: Opcode, made: Made, bits: Value, kept: u64 },
}

/// What bits of a value make.
#[derive(Clone, Copy, Debug)]
pub(super) enum Made {
    /// Their number, or whether it is odd.
    Count,
    /// The bits, or copies of a value for them, moved up.
    Spread { of: Option<Value>, by: i64 },
    /// The bits the other way around: the one in place `p` in place `sum - p`.
    Reversed { sum: i64 },
}

/// What a form is in the last round, or `more` rounds later.
pub(super) fn close(func: &Function, ctx: &Context<'_>, form: Form, more: u32, rounds: Rounds) -> Option<Closed> {
    let known = match rounds {
        Rounds::Known(last) => Some(last + more),
        _ => None,
    };
    Some(match form {
        Form::Fixed(value) => Closed::Value(value),
        Form::Counter { from, plus, step } => Closed::Counter { from, plus, step },
        Form::Flipped { start, by } => Closed::Flipped { start, by },
        Form::Moved { base, up, by } => moved(func, base, up, by, more, rounds, known)?,
        Form::Cleared { base, ahead } => {
            let gone = matches!(rounds, Rounds::Until { what: Vanishing::Cleared, base: of, ahead: from, .. }
                if of == base && ahead + i64::from(more) >= i64::from(from));
            if !gone {
                return None;
            }
            Closed::Zero
        }
        Form::Sum { start, .. } if known == Some(0) => Closed::Value(start),
        Form::Sum { start, op, copy, doubled } => {
            let (made, kept) = total(func, op, copy, doubled.then_some(start), more, rounds, known)?;
            let has = |op| ctx.has_operation(op, Flags::EMPTY, Type::I64);
            if op == Opcode::Xor && matches!(made, Made::Spread { of: Some(_), .. }) && !has(Opcode::Clmul) {
                return None;
            }
            Closed::Total { start, op, made, bits: copy.bit.base, kept }
        }
        Form::Amount(_) | Form::Part { .. } | Form::Flag { .. } | Form::Mask(_) | Form::Copy(_) => return None,
    })
}

fn moved(
    func: &Function,
    base: Value,
    up: bool,
    by: Steps,
    more: u32,
    rounds: Rounds,
    known: Option<u32>,
) -> Option<Closed> {
    let width = i64::from(width_of(func.dfg.ty(base))?);
    if let Some(last) = known {
        let by = by.start + by.step * i64::from(last);
        return match u32::try_from(by) {
            Ok(by) if i64::from(by) < width => Some(Closed::Moved { base, up, by }),
            Ok(_) => Some(Closed::Zero),
            Err(_) => None,
        };
    }
    if by.step != 1 || by.start < 0 {
        return None;
    }
    let further = u32::try_from(by.start).ok()?.checked_add(more).filter(|further| i64::from(*further) < width)?;
    match rounds {
        Rounds::Until { what, base: of, ahead, .. } if of == base => {
            let same = what == if up { Vanishing::Up } else { Vanishing::Down };
            (same && further >= ahead).then_some(Closed::Zero)
        }
        // A bit is found in a place that there is.
        Rounds::First { base: of, .. } if func.dfg.ty(of) == func.dfg.ty(base) => {
            Some(Closed::MovedByRounds { base, up, further })
        }
        _ => None,
    }
}

/// What all rounds before add, and the bits that they read. A sum that is `doubled` each time began with that value.
fn total(
    func: &Function,
    op: Opcode,
    copy: Copied,
    doubled: Option<Value>,
    more: u32,
    rounds: Rounds,
    known: Option<u32>,
) -> Option<(Made, u64)> {
    let width = width_of(func.dfg.ty(copy.bit.base))?;
    let Steps { start, step } = copy.bit.at;
    let kept = match (known, rounds) {
        (Some(last), _) => (0..last).try_fold(0u64, |kept, round| {
            let place = start + step * i64::from(round);
            match u32::try_from(place) {
                Ok(place) if place < width => (kept >> place & 1 == 0).then_some(kept | 1 << place),
                // There are only zeros.
                _ => Some(kept),
            }
        })?,
        // All bits that are left when the loop is left were read.
        (None, Rounds::Until { what: Vanishing::Down, base, ahead, .. }) if base == copy.bit.base && step == 1 => {
            let start = u32::try_from(start).ok().filter(|start| *start < width)?;
            (start + more >= ahead).then_some(mask(width) & !mask(start))?
        }
        _ => return None,
    };
    let by = match doubled {
        None => copy.by,
        // What was added in a round is doubled in each later one.
        Some(value) => {
            let last = known?;
            (func.dfg.as_bits(value) == Some(0)).then_some(())?;
            Steps { start: copy.by.start + i64::from(last) - 1, step: -1 }
        }
    };
    let made = if by == Steps::fixed(0) && copy.of.is_none() && op != Opcode::Or && step != 0 {
        Made::Count
    } else if by.step == step && step != 0 {
        Made::Spread { of: copy.of, by: by.start - start }
    } else if by.step == -step && step != 0 && copy.of.is_none() {
        Made::Reversed { sum: by.start + start }
    } else {
        return None;
    };
    match made {
        Made::Spread { of: Some(_), by } if op == Opcode::Or || !(0..i64::from(width)).contains(&by) => None,
        Made::Spread { by, .. } if by.unsigned_abs() >= 64 => None,
        Made::Reversed { sum } if !(0..=2 * i64::from(width)).contains(&sum) => None,
        _ => Some((made, kept)),
    }
}

impl Closed {
    /// The rule that this is, if it says more than the rounds do.
    pub fn rule(self) -> Option<Rule> {
        let Closed::Total { op, made, .. } = self else { return None };
        Some(match (made, op) {
            (Made::Count, Opcode::Xor) => Rule::LoopParity,
            (Made::Count, _) => Rule::LoopOnes,
            (Made::Spread { of: None, .. }, _) => Rule::LoopBits,
            (Made::Spread { .. }, Opcode::Xor) => Rule::LoopCarryless,
            (Made::Spread { .. }, _) => Rule::LoopProduct,
            (Made::Reversed { .. }, _) => Rule::LoopReversed,
        })
    }

    /// Whether this is `start` where `base`, which the rounds depend on, is zero and there are none.
    pub fn is_at_zero(self, func: &Function, base: Value, start: Value) -> bool {
        let number = func.dfg.as_bits(start);
        match self {
            Closed::Value(value) => value == start,
            Closed::Zero => number == Some(0) || start == base,
            Closed::Counter { from: None, plus, .. } => number == Some(u128::from(plus)),
            Closed::Counter { from: Some(from), plus, .. } => plus == 0 && from == start,
            Closed::Total { start: first, bits, .. } => bits == base && first == start,
            Closed::Flipped { start: first, .. } => first == start,
            Closed::Moved { .. } | Closed::MovedByRounds { .. } => false,
        }
    }

    /// Computes it, `more` rounds after the last one. `ty` is its type.
    pub fn emit(self, builder: &mut FunctionBuilder<'_>, ty: Type, rounds: Rounds, more: u32) -> Value {
        match self {
            Closed::Value(value) => value,
            Closed::Zero => builder.iconst(ty, 0),
            Closed::Counter { from, plus, step } => counter(builder, ty, (from, plus, step), rounds, more),
            Closed::Moved { base, up, by } => shifted(builder, base, if up { i64::from(by) } else { -i64::from(by) }),
            Closed::MovedByRounds { base, up, further } => {
                let by = rounds.emit(builder, 0);
                let moved = builder.binary(if up { Opcode::Shl } else { Opcode::Lshr }, base, by);
                shifted(builder, moved, if up { i64::from(further) } else { -i64::from(further) })
            }
            Closed::Flipped { start, by } => {
                let last = rounds.emit(builder, more);
                let odd = builder.binary_imm(Opcode::And, last, 1);
                let odd = resized(builder, odd, ty);
                let change = if ty == Type::I1 {
                    builder.binary(Opcode::And, odd, by)
                } else {
                    builder.binary(Opcode::Mul, odd, by)
                };
                builder.binary(Opcode::Xor, start, change)
            }
            Closed::Total { start, op, made, bits, kept } => {
                let width = builder.ty(bits).scalar_bits();
                let all = kept == mask(width);
                let bits = if all { bits } else { builder.binary_imm(Opcode::And, bits, kept as i64) };
                let value = made.emit(builder, ty, op, bits, width);
                builder.binary(op, start, value)
            }
        }
    }
}

/// `from + plus + step * rounds`.
fn counter(
    builder: &mut FunctionBuilder<'_>,
    ty: Type,
    (from, plus, step): (Option<Value>, u64, u64),
    rounds: Rounds,
    more: u32,
) -> Value {
    let width = ty.scalar_bits();
    let moved = match rounds {
        Rounds::Known(last) => {
            let number = step.wrapping_mul(u64::from(last + more)).wrapping_add(plus);
            match from {
                Some(from) => return add(builder, from, (number & mask(width)) as i64),
                None => return builder.bits(ty, u128::from(number & mask(width))),
            }
        }
        _ => {
            let last = rounds.emit(builder, more);
            let last = resized(builder, last, ty);
            match step {
                1 => last,
                step if step == mask(width) => {
                    let zero = builder.iconst(ty, 0);
                    builder.binary(Opcode::Sub, zero, last)
                }
                step => builder.binary_imm(Opcode::Mul, last, step as i64),
            }
        }
    };
    let sum = match from {
        Some(from) => builder.binary(Opcode::Add, from, moved),
        None => moved,
    };
    add(builder, sum, plus as i64)
}

impl Made {
    fn emit(self, builder: &mut FunctionBuilder<'_>, ty: Type, op: Opcode, bits: Value, width: u32) -> Value {
        match self {
            Made::Count => {
                let count = builder.unary(Opcode::Ctpop, bits);
                if op != Opcode::Xor {
                    return resized(builder, count, ty);
                }
                let odd = builder.binary_imm(Opcode::And, count, 1);
                resized(builder, odd, ty)
            }
            Made::Spread { of: None, by } => placed(builder, bits, ty, by),
            Made::Spread { of: Some(of), by } => {
                // Where no bit is set, nothing is read of the value.
                let of = builder.unary(Opcode::Freeze, of);
                let bits = resized(builder, bits, ty);
                let product = if op == Opcode::Xor { Opcode::Clmul } else { Opcode::Mul };
                let product = builder.binary(product, of, bits);
                shifted(builder, product, by)
            }
            Made::Reversed { sum } => {
                let reversed = builder.unary(Opcode::Bitreverse, bits);
                placed(builder, reversed, ty, sum - (i64::from(width) - 1))
            }
        }
    }
}

/// A value moved up, or down, in another width: nothing that stays in it is lost.
fn placed(builder: &mut FunctionBuilder<'_>, value: Value, ty: Type, by: i64) -> Value {
    if by < 0 {
        let moved = shifted(builder, value, by);
        return resized(builder, moved, ty);
    }
    let resized = resized(builder, value, ty);
    shifted(builder, resized, by)
}

/// A value moved up, or down.
fn shifted(builder: &mut FunctionBuilder<'_>, value: Value, by: i64) -> Value {
    let width = u64::from(builder.ty(value).scalar_bits());
    let op = if by < 0 { Opcode::Lshr } else { Opcode::Shl };
    match by.unsigned_abs() {
        0 => value,
        by if by >= width => builder.iconst(builder.ty(value), 0),
        by => builder.binary_imm(op, value, by as i64),
    }
}

/// An unsigned number in another width.
fn resized(builder: &mut FunctionBuilder<'_>, value: Value, ty: Type) -> Value {
    let (from, to) = (builder.ty(value).scalar_bits(), ty.scalar_bits());
    match from.cmp(&to) {
        std::cmp::Ordering::Less => builder.convert(Opcode::Zext, value, ty),
        std::cmp::Ordering::Equal => value,
        std::cmp::Ordering::Greater => builder.convert(Opcode::Trunc, value, ty),
    }
}
