//! Remainders that need not be computed: of a division whose quotient is there, and those that are only compared.
//!
//! Whether a number is a multiple of a constant is one product and one comparison: multiplied by the inverse of the odd
//! part of the divisor, the multiples become the smallest numbers (Granlund and Montgomery, section 9; Warren, "Hacker's
//! Delight", 10-17). Both are looked for before the other rules take the divisions apart.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Block, Cfg, DominatorTree, Extra, Flags, Function, FunctionBuilder, Inst, IntCC, Opcode, Type, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::division::inverse;
use super::{before, constant, int_width, made_by, mask, signed};
use crate::edit::{for_each_inst, resolve_uses_of};
use crate::pass::Context;
use crate::rules::Rule;

/// Divisions of the same operands that are remembered.
const MAX_ALIKE: usize = 8;

/// Rewrites the remainders of a function. Tells whether there were any.
pub(super) fn rewrite(func: &mut Function, ctx: &Context<'_>) -> bool {
    let mut divisions: Vec<Inst> = Vec::new();
    for_each_inst(func, |inst| {
        if operation(func, inst).is_some() {
            divisions.push(inst);
        }
    });
    if divisions.is_empty() {
        return false;
    }
    for inst in &divisions {
        resolve_uses_of(func, *inst);
    }
    test_multiples(func, ctx, &divisions) | share_quotients(func, ctx)
}

/// What a division computes: whether of signed numbers, and whether the remainder.
fn operation(func: &Function, inst: Inst) -> Option<(bool, bool)> {
    let found = match func.dfg.insts[inst].op {
        Opcode::Udiv => (false, false),
        Opcode::Urem => (false, true),
        Opcode::Sdiv => (true, false),
        Opcode::Srem => (true, true),
        _ => return None,
    };
    let width = int_width(func.dfg.insts[inst].ty)?;
    (width >= 8).then_some(found)
}

/// Signedness and operands: what a quotient and a remainder have in common.
type Key = (bool, Value, Value);

fn key(func: &Function, inst: Inst) -> Option<Key> {
    let (is_signed, _) = operation(func, inst)?;
    match *func.dfg.args(inst) {
        [a, b] => Some((is_signed, a, b)),
        _ => None,
    }
}

/// Makes one division of a quotient and a remainder of the same variables, where one of the two dominates the other. It
/// was undefined there for the same operands.
fn share_quotients(func: &mut Function, ctx: &Context<'_>) -> bool {
    let cfg = Cfg::new(func);
    let tree = DominatorTree::new(&cfg);
    let mut known: FxHashMap<Key, SmallVec<[Inst; 2]>> = FxHashMap::default();
    let mut changed = false;
    for block in cfg.rpo().to_vec() {
        let mut next = func.layout.first_inst(block);
        while let Some(inst) = next {
            next = func.layout.next_inst(inst);
            let Some((_, remainder)) = operation(func, inst) else { continue };
            resolve_uses_of(func, inst);
            let Some(key) = key(func, inst).filter(|key| is_divided_by(func, key.2)) else { continue };
            let alike = known.entry(key).or_default();
            let above = |earlier: &Inst| is_above(func, &cfg, &tree, *earlier, block);
            let Some(at) = alike.iter().position(above) else {
                if alike.len() < MAX_ALIKE {
                    alike.push(inst);
                }
                continue;
            };
            let earlier = alike[at];
            let is_quotient = !operation(func, earlier).is_some_and(|(_, remainder)| remainder);
            match (is_quotient, remainder) {
                (true, true) => {
                    // Of an inexact division the quotient was poison, the remainder was not.
                    let flags = func.dfg.insts[earlier].flags.without(Flags::EXACT);
                    func.dfg.insts[earlier].flags = flags;
                    let Some(quotient) = func.dfg.first_result(earlier) else { continue };
                    ctx.note(inst, Rule::ShareQuotient);
                    rest(func, inst, quotient);
                }
                (false, false) => {
                    let op = func.dfg.insts[inst].op;
                    ctx.note(inst, Rule::ShareQuotientEarlier);
                    let quotient = before(func, earlier).binary(op, key.1, key.2);
                    rest(func, earlier, quotient);
                    if let Some(quotient) = func.dfg.def_inst(quotient) {
                        alike[at] = quotient;
                    }
                    replace(func, inst, quotient);
                }
                // The same once more is left to value numbering.
                _ => continue,
            }
            changed = true;
        }
    }
    changed
}

/// Whether dividing by a value takes a division: by constants and powers of two it does not.
fn is_divided_by(func: &Function, divisor: Value) -> bool {
    let power = made_by(func, divisor, Opcode::Shl).is_some_and(|args| constant(func, args[0]) == Some(1));
    constant(func, divisor).is_none() && !power
}

/// Whether an instruction met before stands in a block that dominates this one.
fn is_above(func: &Function, cfg: &Cfg, tree: &DominatorTree, inst: Inst, block: Block) -> bool {
    func.layout.inst_block(inst).is_some_and(|above| tree.dominates(cfg, above, block))
}

/// Makes a remainder of its quotient: a - quotient * b.
fn rest(func: &mut Function, inst: Inst, quotient: Value) {
    let &[a, b] = func.dfg.args(inst) else { return };
    let mut builder = before(func, inst);
    let product = builder.binary(Opcode::Mul, quotient, b);
    let rest = builder.binary(Opcode::Sub, a, product);
    replace(func, inst, rest);
}

fn replace(func: &mut Function, inst: Inst, value: Value) {
    if let Some(result) = func.dfg.first_result(inst) {
        func.dfg.alias(result, value);
        func.layout.remove_inst(inst);
    }
}

/// Rewrites comparisons of remainders by constants with constants, where the remainder is for nothing else and no quotient
/// is wanted from which it would be had for one instruction.
fn test_multiples(func: &mut Function, ctx: &Context<'_>, divisions: &[Inst]) -> bool {
    let mut candidates: SecondaryMap<Value, Option<Inst>> = SecondaryMap::new();
    let mut any = false;
    for inst in divisions {
        let has_quotient = |key: Key| {
            let mut others = divisions.iter().filter(|other| operation(func, **other).is_some_and(|found| !found.1));
            others.any(|other| self::key(func, *other) == Some(key))
        };
        let Some((_, true)) = operation(func, *inst) else { continue };
        let Some(key) = key(func, *inst).filter(|key| constant(func, key.2).is_some_and(|n| n != 0)) else { continue };
        // Few functions have many divisions.
        let alone = divisions.len() > 64 || !has_quotient(key);
        if let Some(result) = func.dfg.first_result(*inst).filter(|_| alone) {
            candidates[result] = Some(*inst);
            any = true;
        }
    }
    if !any {
        return false;
    }
    let tests = tests_of(func, &mut candidates);
    let mut changed = false;
    for (test, remainder) in tests {
        let Some(result) = func.dfg.first_result(remainder).filter(|value| candidates[*value].is_some()) else {
            continue;
        };
        let Some((rule, value)) = multiple(func, test, remainder) else { continue };
        debug_assert!(func.dfg.args(test).contains(&result));
        ctx.note(test, rule);
        replace(func, test, value);
        changed = true;
    }
    changed
}

/// The comparisons of candidates with constants, in order. What has another use is a candidate no more.
fn tests_of(func: &mut Function, candidates: &mut SecondaryMap<Value, Option<Inst>>) -> Vec<(Inst, Inst)> {
    let mut tests = Vec::new();
    let mut order = Vec::new();
    for_each_inst(func, |inst| order.push(inst));
    for inst in order {
        resolve_uses_of(func, inst);
        let mut used: SmallVec<[Value; 4]> = SmallVec::new();
        func.dfg.for_each_use(inst, |value| {
            if candidates[value].is_some() {
                used.push(value);
            }
        });
        for value in used {
            match candidates[value].filter(|_| compared_with(func, inst, value).is_some()) {
                Some(remainder) => tests.push((inst, remainder)),
                None => candidates[value] = None,
            }
        }
    }
    tests
}

/// The condition and the constant that a value is compared with.
fn compared_with(func: &Function, inst: Inst, value: Value) -> Option<(IntCC, Value)> {
    let data = &func.dfg.insts[inst];
    let (Opcode::Icmp, Extra::IntCC(cc @ (IntCC::Eq | IntCC::Ne)), [a, b]) = (data.op, data.extra, func.dfg.args(inst))
    else {
        return None;
    };
    let other = match (*a == value, *b == value) {
        (true, false) => *b,
        (false, true) => *a,
        _ => return None,
    };
    constant(func, other).is_some().then_some((cc, other))
}

/// A comparison of a remainder with a constant, by other means.
fn multiple(func: &mut Function, test: Inst, remainder: Inst) -> Option<(Rule, Value)> {
    let result = func.dfg.first_result(remainder)?;
    let (cc, wanted) = compared_with(func, test, result)?;
    let &[a, b] = func.dfg.args(remainder) else { return None };
    let (is_signed, _) = operation(func, remainder)?;
    let width = int_width(func.dfg.ty(a))?;
    if !is_signed {
        let (divisor, wanted) = (constant(func, b)?, constant(func, wanted)?);
        if divisor.is_power_of_two() || wanted >= divisor {
            return None;
        }
        let (a, width) = in_word(func, test, Opcode::Zext, a, width)?;
        let mut builder = before(func, test);
        return Some((Rule::MultipleUnsigned, unsigned_test(&mut builder, cc, a, width, divisor, wanted)));
    }
    let (divisor, wanted) = (signed(func, b)?.unsigned_abs(), signed(func, wanted)?);
    if divisor < 2 || wanted.unsigned_abs() >= divisor {
        return None;
    }
    if divisor.is_power_of_two() {
        return Some((Rule::RemainderBits, low_bits_test(&mut before(func, test), cc, a, width, divisor, wanted)));
    }
    if wanted != 0 {
        return None;
    }
    let (a, width) = in_word(func, test, Opcode::Sext, a, width)?;
    let mut builder = before(func, test);
    Some((Rule::MultipleSigned, signed_test(&mut builder, cc, a, width, divisor)))
}

/// A number of up to 32 bits in a word; one of 64 bits as it is.
fn in_word(func: &mut Function, test: Inst, op: Opcode, a: Value, width: u32) -> Option<(Value, u32)> {
    match width {
        32 | 64 => Some((a, width)),
        ..32 => Some((before(func, test).convert(op, a, Type::I32), 32)),
        _ => None,
    }
}

/// `value * inverse of the odd part`, rotated such that the low bits, which multiples have not, count most.
fn scaled(b: &mut FunctionBuilder<'_>, value: Value, width: u32, odd: u64, even: u32, plus: u64) -> Value {
    let ty = b.ty(value);
    let factor = b.bits(ty, u128::from(inverse(odd) & mask(width)));
    let mut product = b.binary(Opcode::Mul, value, factor);
    if plus != 0 {
        let plus = b.bits(ty, plus.into());
        product = b.binary(Opcode::Add, product, plus);
    }
    if even == 0 {
        return product;
    }
    let by = b.bits(ty, even.into());
    b.ternary(Opcode::Fshr, Flags::EMPTY, product, product, by)
}

/// `a % divisor` compared with `wanted`, which is less: `a - wanted` is a multiple among the numbers that do not wrap.
fn unsigned_test(b: &mut FunctionBuilder<'_>, cc: IntCC, a: Value, width: u32, divisor: u64, wanted: u64) -> Value {
    let ty = b.ty(a);
    let even = divisor.trailing_zeros();
    let most = (mask(width) - wanted) / divisor;
    let from = if wanted == 0 {
        a
    } else {
        let less = b.bits(ty, u128::from(wanted.wrapping_neg() & mask(width)));
        b.binary(Opcode::Add, a, less)
    };
    let scaled = scaled(b, from, width, divisor >> even, even, 0);
    let most = b.bits(ty, most.into());
    b.icmp(if cc == IntCC::Eq { IntCC::Ule } else { IntCC::Ugt }, scaled, most)
}

/// Whether a signed number is a multiple of `divisor`: its multiples lie on both sides of zero, and are moved up by half.
fn signed_test(b: &mut FunctionBuilder<'_>, cc: IntCC, a: Value, width: u32, divisor: u64) -> Value {
    let even = divisor.trailing_zeros();
    let odd = divisor >> even;
    // Multiples of 2^even, as what is moved has to stay one.
    let half = ((mask(width) >> 1) / odd) & !mask(even);
    let most = (half * 2) >> even;
    let scaled = scaled(b, a, width, odd, even, half);
    let most = b.bits(b.ty(a), most.into());
    b.icmp(if cc == IntCC::Eq { IntCC::Ule } else { IntCC::Ugt }, scaled, most)
}

/// `a % divisor` of a signed number and a power of two: the low bits, and the sign where the remainder has one.
fn low_bits_test(b: &mut FunctionBuilder<'_>, cc: IntCC, a: Value, width: u32, divisor: u64, wanted: i64) -> Value {
    let ty = b.ty(a);
    let sign = if wanted == 0 { 0 } else { 1u64 << (width - 1) };
    let kept = (divisor - 1) | sign;
    let (kept_value, wanted) = (b.bits(ty, kept.into()), b.bits(ty, u128::from(wanted as u64 & kept)));
    let low = b.binary(Opcode::And, a, kept_value);
    b.icmp(cc, low, wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptxc_ir::{FuncKind, Signature};

    /// What the made instructions compute of a number, in `width` bits.
    fn evaluate(func: &Function, value: Value, input: Value, number: u64, width: u32) -> u64 {
        if value == input {
            return number;
        }
        if let Some(bits) = func.dfg.as_bits(value) {
            return bits as u64;
        }
        let inst = func.dfg.def_inst(value).unwrap();
        let of = |index: usize| evaluate(func, func.dfg.args(inst)[index], input, number, width);
        let data = &func.dfg.insts[inst];
        let result = match data.op {
            Opcode::Mul => of(0).wrapping_mul(of(1)),
            Opcode::Add => of(0).wrapping_add(of(1)),
            Opcode::And => of(0) & of(1),
            Opcode::Fshr => of(0) >> of(2) | of(0) << (u64::from(width) - of(2)),
            Opcode::Icmp => match data.extra {
                Extra::IntCC(IntCC::Ule) => u64::from(of(0) <= of(1)),
                Extra::IntCC(IntCC::Eq) => u64::from(of(0) == of(1)),
                _ => panic!(),
            },
            _ => panic!(),
        };
        result & mask(width)
    }

    /// Every number of eight bits by every divisor, compared with every remainder.
    #[test]
    fn eight_bits() {
        let mut func = Function::new(String::new(), FuncKind::Func, Signature::default());
        let mut b = FunctionBuilder::new(&mut func);
        let block = b.entry_block(&[Type::I8]);
        b.switch_to(block);
        let a = b.func.dfg.block_params(block)[0];
        for divisor in 2..=255u64 {
            if divisor.is_power_of_two() {
                continue;
            }
            for wanted in 0..divisor {
                let test = unsigned_test(&mut b, IntCC::Eq, a, 8, divisor, wanted);
                for number in 0..256 {
                    let found = evaluate(b.func, test, a, number, 8);
                    assert_eq!(found, u64::from(number % divisor == wanted), "{number} % {divisor} == {wanted}");
                }
            }
        }
        for divisor in 2..=128u64 {
            let wanted_numbers: Vec<i64> =
                if divisor.is_power_of_two() { (1 - divisor as i64..divisor as i64).collect() } else { vec![0] };
            for wanted in wanted_numbers {
                let test = if divisor.is_power_of_two() {
                    low_bits_test(&mut b, IntCC::Eq, a, 8, divisor, wanted)
                } else {
                    signed_test(&mut b, IntCC::Eq, a, 8, divisor)
                };
                for number in -128i64..128 {
                    let found = evaluate(b.func, test, a, number as u64 & 255, 8);
                    assert_eq!(found, u64::from(number % divisor as i64 == wanted), "{number} % {divisor} == {wanted}");
                }
            }
        }
    }
}
