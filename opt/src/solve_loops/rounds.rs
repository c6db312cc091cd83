//! How many rounds a loop makes before the one in which it is left.

use ptxc_ir::{Block, Cfg, Extra, Flags, Function, FunctionBuilder, IntCC, Opcode, Type, Value};

use super::forms::{BitOf, Form, Forms, Steps};
use super::shape::Ring;
use super::width_of;
use crate::fold::integer::compare;
use crate::rules::Rule;
use crate::widths::mask;

/// Most rounds that are counted one by one.
const MOST_COUNTED: u32 = 128;
/// How many blocks before the loop are asked what is known there.
const MOST_GUARDS: usize = 4;

/// What becomes zero in the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Vanishing {
    /// A value moved down.
    Down,
    /// A value moved up.
    Up,
    /// A value that loses its lowest one.
    Cleared,
}

/// The number of the last round, in which the loop is left, counted from zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rounds {
    /// A constant.
    Known(u32),
    /// The first round for which nothing is left, `ahead` rounds later, of `base`, which is known not to be zero if it is `guarded`.
    Until { what: Vanishing, base: Value, ahead: u32, guarded: bool },
    /// That of the first bit that is set, from below or from above; there is one.
    First { base: Value, from_above: bool },
}

impl Rounds {
    /// Finds it.
    pub fn of(func: &Function, cfg: &Cfg, ring: &Ring, forms: &Forms<'_>) -> Option<Rounds> {
        let condition = func.dfg.resolve(*func.dfg.args(ring.exit).first()?);
        if let Some(Form::Flag { bit: BitOf { base, at }, set }) = forms.form(condition) {
            let width = i64::from(width_of(func.dfg.ty(base))?);
            let from_above = at == Steps { start: width - 1, step: -1 };
            let from_below = at == Steps { start: 0, step: 1 };
            let ends = set == ring.leaves_if && (from_above || from_below) && is_guarded(func, cfg, ring, base);
            return ends.then_some(Rounds::First { base, from_above });
        }
        let test = func.dfg.def_inst(condition).filter(|_| forms.is_inside(condition))?;
        let Extra::IntCC(cc) = func.dfg.insts[test].extra else { return None };
        let cc = if ring.leaves_if { cc } else { cc.inverse() };
        let &[a, b] = func.dfg.args(test) else { return None };
        let width = width_of(func.dfg.ty(a))?;
        let (left, right) = (forms.form(a)?, forms.form(b)?);
        if let Some(known) = counted(func, cc, width, left, right) {
            return Some(known);
        }
        let number = func.dfg.as_bits(func.dfg.resolve(b))? as u64;
        let (what, base, ahead) = match (cc, left) {
            (IntCC::Eq, Form::Cleared { base, ahead }) if number == 0 => (Vanishing::Cleared, base, ahead),
            (cc, Form::Moved { base, up, by: Steps { start, step: 1 } }) => match (cc, up) {
                (IntCC::Eq, true) if number == 0 => (Vanishing::Up, base, start),
                (IntCC::Eq, false) if number == 0 => (Vanishing::Down, base, start),
                // What is less than a power of two vanishes so much earlier.
                (IntCC::Ult, false) if number.is_power_of_two() => {
                    (Vanishing::Down, base, start + i64::from(number.trailing_zeros()))
                }
                (IntCC::Ule, false) if number < mask(width) && (number + 1).is_power_of_two() => {
                    (Vanishing::Down, base, start + i64::from(number.trailing_ones()))
                }
                _ => return None,
            },
            _ => return None,
        };
        // A number that was widened or cut is not this one.
        if width_of(func.dfg.ty(base)) != Some(width) {
            return None;
        }
        let ahead = u32::try_from(ahead).ok().filter(|ahead| *ahead < width)?;
        Some(Rounds::Until { what, base, ahead, guarded: is_guarded(func, cfg, ring, base) })
    }

    /// The rule that finds it.
    pub fn rule(self) -> Rule {
        match self {
            Rounds::Known(_) => Rule::LoopKnown,
            Rounds::Until { what: Vanishing::Down, .. } => Rule::LoopHighest,
            Rounds::Until { what: Vanishing::Up, .. } => Rule::LoopLowest,
            Rounds::Until { what: Vanishing::Cleared, .. } => Rule::LoopCleared,
            Rounds::First { from_above: false, .. } => Rule::LoopFirst,
            Rounds::First { from_above: true, .. } => Rule::LoopFirstAbove,
        }
    }

    /// Computes the number of the last round, and `more`.
    pub fn emit(self, builder: &mut FunctionBuilder<'_>, more: u32) -> Value {
        match self {
            Rounds::Known(last) => builder.iconst(Type::I32, i64::from(last + more)),
            Rounds::First { base, from_above } => {
                let op = if from_above { Opcode::Ctlz } else { Opcode::Cttz };
                let place = builder.unary(op, base);
                add(builder, place, i64::from(more))
            }
            Rounds::Until { what, base, ahead, guarded } => {
                let (exact, ones) = match what {
                    Vanishing::Cleared => (guarded, Opcode::Ctpop),
                    Vanishing::Down => (true, Opcode::Ctlz),
                    Vanishing::Up => (true, Opcode::Cttz),
                };
                let width = i64::from(builder.ty(base).scalar_bits());
                // One round at least: that of a number of one bit.
                let base = match what {
                    Vanishing::Down if ahead == 1 && !guarded => builder.binary_imm(Opcode::Or, base, 1),
                    Vanishing::Up if ahead == 1 && !guarded => {
                        let top = builder.bits(builder.ty(base), 1 << (width - 1));
                        builder.binary(Opcode::Or, base, top)
                    }
                    _ => base,
                };
                let found = builder.unary(ones, base);
                let (ahead, more) = (i64::from(ahead), i64::from(more));
                let counts_zeros = what != Vanishing::Cleared;
                if ahead == 0 || (ahead == 1 && exact) {
                    if !counts_zeros {
                        return add(builder, found, more - ahead);
                    }
                    let ty = builder.ty(found);
                    let from = builder.iconst(ty, width - ahead + more);
                    return builder.binary(Opcode::Sub, from, found);
                }
                let count = if counts_zeros {
                    let from = builder.iconst(builder.ty(found), width);
                    builder.binary(Opcode::Sub, from, found)
                } else {
                    found
                };
                let by = builder.iconst(builder.ty(count), ahead);
                let rest = builder.binary_flags(Opcode::UsubSat, Flags::EMPTY, count, by);
                add(builder, rest, more)
            }
        }
    }
}

/// `value + number`.
pub(super) fn add(builder: &mut FunctionBuilder<'_>, value: Value, number: i64) -> Value {
    if number == 0 { value } else { builder.binary_imm(Opcode::Add, value, number) }
}

/// Two counters that begin with constants are compared until the loop is left.
fn counted(func: &Function, cc: IntCC, width: u32, left: Form, right: Form) -> Option<Rounds> {
    let steps = |form: Form| match form {
        Form::Counter { from: None, plus, step } => Some((plus, step)),
        Form::Fixed(value) => func.dfg.as_bits(value).map(|bits| (bits as u64, 0)),
        _ => None,
    };
    let ((mut a, a_step), (mut b, b_step)) = (steps(left)?, steps(right)?);
    (0..=MOST_COUNTED).find_map(|round| {
        let leaves = compare(cc, width, u128::from(a), u128::from(b));
        a = a.wrapping_add(a_step) & mask(width);
        b = b.wrapping_add(b_step) & mask(width);
        leaves.then_some(Rounds::Known(round))
    })
}

/// Whether the loop is only entered where a value is not zero.
fn is_guarded(func: &Function, cfg: &Cfg, ring: &Ring, value: Value) -> bool {
    if func.dfg.as_bits(value).is_some_and(|bits| bits != 0) {
        return true;
    }
    let (mut block, mut toward) = (ring.entered_from, ring.header());
    for _ in 0..MOST_GUARDS {
        if let Some((tested, nonzero, zero)) = zero_test(func, block)
            && tested == value
            && nonzero == toward
            && zero != toward
        {
            return true;
        }
        match cfg.preds(block) {
            [only] => (block, toward) = (only.block, block),
            _ => return false,
        }
    }
    false
}

/// A block that ends in a comparison of a value with zero: the value, and where it leads if it is not zero, and if it is.
pub(super) fn zero_test(func: &Function, block: Block) -> Option<(Value, Block, Block)> {
    let branch = func.layout.last_inst(block)?;
    let Extra::Branch { then, other, .. } = func.dfg.insts[branch].extra else { return None };
    let condition = func.dfg.resolve(*func.dfg.args(branch).first()?);
    let test = func.dfg.def_inst(condition)?;
    let &[value, zero] = func.dfg.args(test) else { return None };
    let is_zero = func.dfg.as_bits(func.dfg.resolve(zero)) == Some(0);
    let value = func.dfg.resolve(value);
    match func.dfg.insts[test].extra {
        Extra::IntCC(IntCC::Eq) if is_zero => Some((value, other.block, then.block)),
        Extra::IntCC(IntCC::Ne) if is_zero => Some((value, then.block, other.block)),
        _ => None,
    }
}
