//! Sums, minima and maxima of both halves of words, put together: one operation on pairs of 16 bits.
//!
//! The root joins two results of one operation, the upper one moved up by 16. Under them both are taken apart alike, down to the
//! halves of the same words or constants: [`Plan`] is what is left, in the order of a stack. How much of a result counts decides what
//! operations there may be: of a sum the low bits are all that is asked for, a minimum has to see whole numbers.

use ptxc_ir::{Flags, Function, Inst, Opcode, Type, Value};
use smallvec::SmallVec;

use super::{Uses, before, constant, int_width, made_by, pair, signed, with_constant};
use crate::pass::Context;
use crate::rules::{Found, Rule};

/// Most operations that are taken apart below each other.
const MOST_DEPTH: usize = 3;

/// What a number is, besides its low 16 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Anything.
    Ignored,
    /// Zeros.
    Zeros,
    /// Copies of the sign.
    Signs,
}

/// One step of a computation on pairs.
enum Step {
    Word(Value),
    Constant(u32),
    Operation(Opcode),
}

/// Steps in the order of a stack.
type Plan = SmallVec<[Step; 8]>;

/// The rule.
pub(super) fn rewrite(func: &mut Function, ctx: &Context<'_>, uses: &Uses, inst: Inst) -> Option<Found> {
    let data = &func.dfg.insts[inst];
    if !matches!(data.op, Opcode::Or | Opcode::Add | Opcode::Xor) || data.ty != Type::I32 {
        return None;
    }
    let &[a, b] = func.dfg.args(inst) else { return None };
    let (a, b) = (func.dfg.resolve(a), func.dfg.resolve(b));
    let pairs = Type::I16.with_lanes(2);
    let plan = [(a, b), (b, a)].into_iter().find_map(|(high, low)| {
        let (upper, _) = with_constant(func, high, Opcode::Shl).filter(|(_, by)| *by == 16)?;
        let (lower, rest) = low_half(func, low);
        let mut plan = Plan::new();
        let joined = Joined { func, ctx, uses, pairs };
        let found = joined.operation(&mut plan, (whole(func, upper), lower), rest, 0);
        found.then_some(plan)
    })?;
    let mut builder = before(func, inst);
    let mut stack: SmallVec<[Value; 4]> = SmallVec::new();
    for step in plan {
        let value = match step {
            Step::Word(word) => builder.convert(Opcode::Bitcast, word, pairs),
            Step::Constant(bits) => {
                let word = builder.bits(Type::I32, u128::from(bits));
                builder.convert(Opcode::Bitcast, word, pairs)
            }
            Step::Operation(op) => {
                let (b, a) = (stack.pop()?, stack.pop()?);
                builder.binary(op, a, b)
            }
        };
        stack.push(value);
    }
    let result = stack.pop()?;
    Some((Rule::PackedLanes, builder.convert(Opcode::Bitcast, result, Type::I32)))
}

/// What an upper half is that is moved to its place: 16 bits, or a number whose low bits count.
fn whole(func: &Function, value: Value) -> Value {
    let extended = made_by(func, value, Opcode::Zext).or_else(|| made_by(func, value, Opcode::Sext));
    extended.and_then(|args| args.first().copied()).filter(|of| func.dfg.ty(*of) == Type::I16).unwrap_or(value)
}

/// The lower half as it is joined, and what its upper bits have to be for that.
fn low_half(func: &Function, value: Value) -> (Value, Rest) {
    if let Some((inner, 0xffff)) = with_constant(func, value, Opcode::And) {
        return (inner, Rest::Ignored);
    }
    match made_by(func, value, Opcode::Zext) {
        Some(args) if func.dfg.ty(args[0]) == Type::I16 => (args[0], Rest::Ignored),
        _ => (value, Rest::Zeros),
    }
}

struct Joined<'a> {
    func: &'a Function,
    ctx: &'a Context<'a>,
    uses: &'a Uses,
    pairs: Type,
}

impl Joined<'_> {
    /// One operation that makes both numbers. `rest` is what the lower one has to be; of the upper one the low bits count.
    fn operation(&self, plan: &mut Plan, (high, low): (Value, Value), rest: Rest, depth: usize) -> bool {
        use Opcode::{Add, Smax, Smin, Umax, Umin};
        let func = self.func;
        let narrow = func.dfg.ty(low) == Type::I16;
        let op = |value: Value| func.dfg.def_inst(value).map(|inst| func.dfg.insts[inst].op);
        let Some(op) = op(high).filter(|of| op(low) == Some(*of)) else { return false };
        if depth == MOST_DEPTH
            || func.dfg.ty(high) != func.dfg.ty(low)
            || !self.ctx.has_operation(op, Flags::EMPTY, self.pairs)
        {
            return false;
        }
        let inner = match op {
            _ if narrow => Rest::Ignored,
            Add if rest == Rest::Ignored => Rest::Ignored,
            Umin | Umax if rest != Rest::Signs => Rest::Zeros,
            Smin | Smax if rest != Rest::Zeros => Rest::Signs,
            _ => return false,
        };
        if !matches!(op, Add | Umin | Umax | Smin | Smax) || !self.uses.is_single(high) || !self.uses.is_single(low) {
            return false;
        }
        let (Some((a, b)), Some((c, d))) = (pair(func, high, op), pair(func, low, op)) else { return false };
        [(c, d), (d, c)].into_iter().any(|(c, d)| {
            let before = plan.len();
            let found = self.number(plan, (a, c), inner, depth + 1) && self.number(plan, (b, d), inner, depth + 1);
            if found {
                plan.push(Step::Operation(op));
            } else {
                plan.truncate(before);
            }
            found
        })
    }

    /// Two numbers as the halves of a word, of a constant, or of what one operation makes.
    fn number(&self, plan: &mut Plan, (high, low): (Value, Value), rest: Rest, depth: usize) -> bool {
        let func = self.func;
        let half = |value: Value| -> Option<u32> {
            let bits = constant(func, value)?;
            let fits = match rest {
                Rest::Ignored => true,
                Rest::Zeros => bits <= 0xffff,
                Rest::Signs => i16::try_from(signed(func, value)?).is_ok(),
            };
            fits.then_some((bits & 0xffff) as u32)
        };
        if let (Some(upper), Some(lower)) = (half(high), half(low)) {
            plan.push(Step::Constant(upper << 16 | lower));
            return true;
        }
        if let (Some(word), Some(other)) = (self.upper(high, rest), self.lower(low, rest))
            && word == other
        {
            plan.push(Step::Word(word));
            return true;
        }
        self.operation(plan, (high, low), rest, depth)
    }

    /// The word whose upper half this is.
    fn upper(&self, value: Value, rest: Rest) -> Option<Value> {
        let func = self.func;
        let (value, ops): (Value, &[Opcode]) = match rest {
            _ if func.dfg.ty(value) == Type::I16 => {
                (*made_by(func, value, Opcode::Trunc)?.first()?, &[Opcode::Lshr, Opcode::Ashr])
            }
            Rest::Ignored => (value, &[Opcode::Lshr, Opcode::Ashr]),
            Rest::Zeros => (value, &[Opcode::Lshr]),
            Rest::Signs => (value, &[Opcode::Ashr]),
        };
        let word = ops.iter().find_map(|op| with_constant(func, value, *op).filter(|(_, by)| *by == 16))?.0;
        (func.dfg.ty(word) == Type::I32).then_some(word)
    }

    /// The word whose lower half this is.
    fn lower(&self, value: Value, rest: Rest) -> Option<Value> {
        let func = self.func;
        let is_word = |word: &Value| func.dfg.ty(*word) == Type::I32;
        let cut = |half: Value| made_by(func, half, Opcode::Trunc)?.first().copied().filter(is_word);
        let extended =
            |op: Opcode| cut(*made_by(func, value, op)?.first().filter(|half| func.dfg.ty(**half) == Type::I16)?);
        if func.dfg.ty(value) == Type::I16 {
            return cut(value);
        }
        if int_width(func.dfg.ty(value)) != Some(32) {
            return None;
        }
        let masked =
            || with_constant(func, value, Opcode::And).filter(|(_, kept)| *kept == 0xffff).map(|(word, _)| word);
        let moved = || {
            let (up, _) = with_constant(func, value, Opcode::Ashr).filter(|(_, by)| *by == 16)?;
            with_constant(func, up, Opcode::Shl).filter(|(_, by)| *by == 16).map(|(word, _)| word)
        };
        match rest {
            Rest::Zeros => masked().or_else(|| extended(Opcode::Zext)),
            Rest::Signs => moved().or_else(|| extended(Opcode::Sext)),
            Rest::Ignored => masked()
                .or_else(moved)
                .or_else(|| extended(Opcode::Zext))
                .or_else(|| extended(Opcode::Sext))
                .or(Some(value)),
        }
    }
}
