//! Products of 64 bits that were put together of products of words: both halves as the operations that they are.

use ptxc_ir::{Function, Inst, Opcode, Type, Value};
use smallvec::SmallVec;

use super::{Uses, before, constant, made_by, mask, pair, with_constant};
use crate::rules::{Found, Rule};

/// Most summands of such a sum.
const MOST: usize = 4;

/// A cheaper way to the same result.
pub(super) fn rewrite(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    if func.dfg.ty(func.dfg.first_result(inst)?) != Type::I64 {
        return None;
    }
    match func.dfg.insts[inst].op {
        Opcode::Add => upper_half(func, inst).or_else(|| lower_half(func, uses, inst)),
        Opcode::Or => lower_half(func, uses, inst),
        Opcode::Lshr => upper_word(func, uses, inst),
        _ => None,
    }
}

/// A word that is a factor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Low(Value),
    High(Value),
    Constant(u64),
}

/// A factor of 64 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Factor {
    Value(Value),
    Constant(u64),
}

type Summands = SmallVec<[Value; MOST]>;

/// The low word of 64 bits, extended.
fn low_word(func: &Function, value: Value) -> Option<Value> {
    if let Some((x, kept)) = with_constant(func, value, Opcode::And) {
        return (kept == mask(32)).then_some(x);
    }
    let word = *made_by(func, value, Opcode::Zext)?.first()?;
    let whole = *made_by(func, word, Opcode::Trunc)?.first()?;
    (func.dfg.ty(word) == Type::I32 && func.dfg.ty(whole) == Type::I64).then_some(whole)
}

/// The high word of 64 bits, as a number.
fn high_word(func: &Function, value: Value) -> Option<Value> {
    with_constant(func, value, Opcode::Lshr).filter(|(_, by)| *by == 32).map(|(x, _)| x)
}

fn word(func: &Function, value: Value) -> Option<Word> {
    if let Some(bits) = constant(func, value) {
        return (bits <= mask(32)).then_some(Word::Constant(bits));
    }
    high_word(func, value).map(Word::High).or_else(|| low_word(func, value).map(Word::Low))
}

/// The factors of a product of words.
fn factors(func: &Function, value: Value) -> Option<[Word; 2]> {
    let (a, b) = pair(func, value, Opcode::Mul)?;
    Some([word(func, a)?, word(func, b)?])
}

/// The factors of a product of words whose upper word a value is.
fn factors_of_upper(func: &Function, value: Value) -> Option<[Word; 2]> {
    if let Some(product) = high_word(func, value) {
        return factors(func, product);
    }
    let (a, b) = pair(func, *made_by(func, value, Opcode::Zext)?.first()?, Opcode::Umulh)?;
    let cut = |value: Value| {
        if let Some(bits) = constant(func, value) {
            return Some(Word::Constant(bits));
        }
        let whole = *made_by(func, value, Opcode::Trunc)?.first()?;
        (func.dfg.ty(whole) == Type::I64 && func.dfg.ty(value) == Type::I32)
            .then(|| high_word(func, whole).map_or(Word::Low(whole), Word::High))
    };
    Some([cut(a)?, cut(b)?])
}

/// The number that has a high and a low word.
fn whole(high: Word, low: Word) -> Option<Factor> {
    match (high, low) {
        (Word::High(x), Word::Low(y)) if x == y => Some(Factor::Value(x)),
        (Word::Constant(high), Word::Constant(low)) => Some(Factor::Constant(high << 32 | low)),
        _ => None,
    }
}

fn is_same_product(a: [Word; 2], b: [Word; 2]) -> bool {
    a == b || a == [b[1], b[0]]
}

/// What is multiplied, if these are the products of its low words and across, and of its high words where they are asked for.
fn product_of(func: &Function, high: Option<Value>, low: [Word; 2], across: [Value; 2]) -> Option<[Factor; 2]> {
    let across = [factors(func, across[0])?, factors(func, across[1])?];
    // Each product across has one high word.
    [[across[0], across[1]], [across[1], across[0]]].into_iter().find_map(|[first, second]| {
        [[0, 1], [1, 0]].into_iter().find_map(|[i, j]| {
            let (a_low, b_low) = (low[i], low[j]);
            let other = |words: [Word; 2], known: Word| match words {
                [x, y] if y == known => Some(x),
                [x, y] if x == known => Some(y),
                _ => None,
            };
            let (a_high, b_high) = (other(first, b_low)?, other(second, a_low)?);
            let fits = match high {
                Some(high) => is_same_product(factors(func, high)?, [a_high, b_high]),
                None => true,
            };
            Some([whole(a_high, a_low)?, whole(b_high, b_low)?]).filter(|_| fits)
        })
    })
}

/// The summands of a sum, a few at most, low words of sums taken for the sums where all is modulo 2^32.
fn summands(func: &Function, value: Value, modulo: bool) -> Option<Summands> {
    let mut found = Summands::from_slice(&[value]);
    let mut at = 0;
    while at < found.len() {
        let sum = match low_word(func, found[at]).filter(|_| modulo) {
            Some(inner) if pair(func, inner, Opcode::Add).is_some() || factors(func, inner).is_some() => inner,
            _ => found[at],
        };
        match pair(func, sum, Opcode::Add) {
            Some((a, b)) if found.len() < MOST => {
                found[at] = a;
                found.push(b);
            }
            Some(_) => return None,
            None => {
                found[at] = sum;
                at += 1;
            }
        }
    }
    Some(found)
}

/// The one value of a list that a function finds something for, and the others.
fn split<T>(list: &[Value], find: impl Fn(Value) -> Option<T>) -> Option<(T, Summands)> {
    let at = list.iter().position(|value| find(*value).is_some())?;
    let rest = list.iter().enumerate().filter(|(index, _)| *index != at).map(|(_, value)| *value).collect();
    Some((find(list[at])?, rest))
}

/// The upper half of a product: the product of the upper words and what the others carry into them.
fn upper_half(func: &mut Function, inst: Inst) -> Option<Found> {
    let sum = func.dfg.first_result(inst)?;
    let parts = summands(func, sum, false)?;
    let (high, rest) = split(&parts, |value| factors(func, value).map(|_| value))?;
    let carried: Summands = rest.iter().map(|value| high_word(func, *value)).collect::<Option<_>>()?;
    let [a, b] = (0..carried.len()).find_map(|at| {
        let others: Summands = (0..carried.len()).filter(|i| *i != at).map(|i| carried[i]).collect();
        let (low, across) = middle(func, carried[at], &others)?;
        product_of(func, Some(high), low, across)
    })?;
    let mut builder = before(func, inst);
    let [a, b] = [a, b].map(|factor| match factor {
        Factor::Value(value) => value,
        Factor::Constant(bits) => builder.bits(Type::I64, bits.into()),
    });
    Some((Rule::ProductUpperHalf, builder.binary(Opcode::Umulh, a, b)))
}

/// The factors of the low words and the products across, when a sum is what they carry into the middle, the last part of it. `others`
/// are those whose upper words are added beside it.
fn middle(func: &Function, last: Value, others: &[Value]) -> Option<([Word; 2], [Value; 2])> {
    let carried = |value: Value| factors_of_upper(func, value);
    let parts = summands(func, last, false)?;
    let Some((low, rest)) = split(&parts, carried) else {
        // Added to the first of the products across.
        let &[first] = others else { return None };
        let (across, rest) = split(&parts, |value| factors(func, value).map(|_| value))?;
        let (low, more) = split(&summands(func, first, false)?, carried)?;
        let fits = more.len() == 1 && rest.len() == 1 && low_word(func, rest[0]) == Some(first);
        return fits.then(|| (low, [across, more[0]]));
    };
    match (others, &rest[..]) {
        // The low words of both products across.
        (&[first, second], &[p, q]) => {
            let lows = [low_word(func, p)?, low_word(func, q)?];
            (lows == [first, second] || lows == [second, first]).then_some((low, [first, second]))
        }
        // One product across, and the low word of the other.
        (&[first], &[p, q]) => [(p, q), (q, p)]
            .into_iter()
            .find(|(_, q)| low_word(func, *q) == Some(first))
            .map(|(p, _)| (low, [p, first])),
        _ => None,
    }
}

/// The lower half: the low word of the product of low words, and above it the middle.
fn lower_half(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    let &[p, q] = func.dfg.args(inst) else { return None };
    let up = |value: Value| with_constant(func, value, Opcode::Shl).filter(|(_, by)| *by == 32).map(|(x, _)| x);
    let [a, b] = [(p, q), (q, p)].into_iter().find_map(|(above, below)| {
        let middle = up(func.dfg.resolve(above))?;
        let parts = summands(func, middle, true)?;
        let below = func.dfg.resolve(below);
        let (low, across) = match factors(func, below).filter(|_| func.dfg.insts[inst].op == Opcode::Add) {
            // The whole product of the low words carries by itself. What else wants the sum across keeps the products.
            Some(_) => (below, if uses.is_single(middle) { parts } else { return None }),
            None => {
                let low = low_word(func, below)?;
                let (carried, across) = split(&parts, |value| high_word(func, value).filter(|x| *x == low))?;
                (carried, across)
            }
        };
        let &[first, second] = &across[..] else { return None };
        product_of(func, None, factors(func, low)?, [first, second])
    })?;
    let mut builder = before(func, inst);
    let [a, b] = [a, b].map(|factor| match factor {
        Factor::Value(value) => value,
        Factor::Constant(bits) => builder.bits(Type::I64, bits.into()),
    });
    Some((Rule::ProductLowerHalf, builder.binary(Opcode::Mul, a, b)))
}

/// The upper word of a product of words that nothing else of is wanted.
fn upper_word(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    let &[product, by] = func.dfg.args(inst) else { return None };
    let (a, b) = pair(func, product, Opcode::Mul).filter(|_| uses.is_single(product))?;
    if constant(func, by) != Some(32) {
        return None;
    }
    let is_word = |value: Value| {
        word(func, value).is_some()
            || made_by(func, value, Opcode::Zext).is_some_and(|args| func.dfg.ty(args[0]) == Type::I32)
    };
    if !is_word(a) || !is_word(b) {
        return None;
    }
    let mut builder = before(func, inst);
    let words = [a, b].map(|value| builder.convert(Opcode::Trunc, value, Type::I32));
    let high = builder.binary(Opcode::Umulh, words[0], words[1]);
    Some((Rule::ProductUpperWord, builder.convert(Opcode::Zext, high, Type::I64)))
}
