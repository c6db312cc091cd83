//! `fns` with a constant place and number: the n-th bit that is set, counted from a bit of the word.
//!
//! The assembler makes a subroutine of 31 instructions of it whatever is constant (13.5, sm_75 to sm_100a). The lowest bits that are
//! set are cleared one by one, for two instructions each, and the lowest that is left is found for two. With a number that is not
//! known, halves, quarters and so on of the word are counted and chosen between: 56 instructions become 35.

use ptxc_ir::{Extra, Flags, Function, FunctionBuilder, Inst, IntCC, Opcode, TargetOp, TargetOperand, Type, Value};

use super::before;
use crate::rules::{Found, Rule};

/// Most bits that are cleared.
const MOST_CLEARED: u32 = 7;

/// Another way to find the bit.
pub(super) fn rewrite(func: &mut Function, inst: Inst) -> Option<Found> {
    let [mask, base, offset] = operands(func, inst)?;
    let base = func.dfg.as_bits(base).filter(|base| *base < 32)? as u32;
    match func.dfg.as_bits(offset) {
        Some(offset) => constant(func, inst, mask, base, offset as u32 as i32),
        None if base == 0 => halving(func, inst, mask, offset),
        None => None,
    }
}

/// The operands of `fns.b32` without a guard.
fn operands(func: &mut Function, inst: Inst) -> Option<[Value; 3]> {
    let Extra::Target(id) = func.dfg.insts[inst].extra else { return None };
    let TargetOp::Known { toks, guard: None, operands } = &func.dfg.target_ops[id] else { return None };
    if !toks.iter().map(|tok| tok.text()).eq(["fns", "b32"]) {
        return None;
    }
    let &[TargetOperand::Result(0), mask, base, offset] = operands.as_slice() else { return None };
    let mut value = |operand: TargetOperand| match operand {
        TargetOperand::Arg(index) => {
            let value = func.dfg.args(inst).get(usize::from(index)).map(|value| func.dfg.resolve(*value))?;
            (func.dfg.ty(value) == Type::I32).then_some(value)
        }
        TargetOperand::Imm(number) => Some(func.dfg.int(Type::I32, number)),
        _ => None,
    };
    Some([value(mask)?, value(base)?, value(offset)?])
}

fn constant(func: &mut Function, inst: Inst, mask: Value, base: u32, offset: i32) -> Option<Found> {
    if offset.unsigned_abs() > MOST_CLEARED + 1 {
        return None;
    }
    let mut builder = before(func, inst);
    let nothing = builder.iconst(Type::I32, -1);
    if offset == 0 {
        let bit = builder.bits(Type::I32, 1 << base);
        let tested = builder.binary(Opcode::And, mask, bit);
        let set = builder.icmp_imm(IntCC::Ne, tested, 0);
        let place = builder.bits(Type::I32, u128::from(base));
        return Some((Rule::FindTested, builder.select(set, place, nothing)));
    }
    // Downward is upward in the reversed word.
    let kept = if offset > 0 { u32::MAX << base } else { u32::MAX >> (31 - base) };
    let mut word = mask;
    if kept != u32::MAX {
        let kept = builder.bits(Type::I32, u128::from(kept));
        word = builder.binary(Opcode::And, word, kept);
    }
    let reverse = offset < 0 && offset != -1;
    if reverse {
        word = builder.unary(Opcode::Bitreverse, word);
    }
    for _ in 1..offset.unsigned_abs() {
        let below = builder.binary_imm(Opcode::Add, word, -1);
        word = builder.binary(Opcode::And, word, below);
    }
    let found = if offset == -1 {
        highest(&mut builder, word)
    } else {
        let turned = builder.unary(Opcode::Bitreverse, word);
        if reverse { highest(&mut builder, turned) } else { from_top(&mut builder, turned) }
    };
    Some((Rule::FindFew, found))
}

/// The highest bit that is set, -1 where none is.
fn highest(builder: &mut FunctionBuilder<'_>, word: Value) -> Value {
    let zeros = builder.unary(Opcode::Ctlz, word);
    let top = builder.iconst(Type::I32, 31);
    builder.binary(Opcode::Sub, top, zeros)
}

/// The zeros above it, -1 where none is set.
fn from_top(builder: &mut FunctionBuilder<'_>, word: Value) -> Value {
    let zeros = builder.unary_flags(Opcode::Ctlz, Flags::NONZERO, word);
    let some = builder.icmp_imm(IntCC::Ne, word, 0);
    let nothing = builder.iconst(Type::I32, -1);
    builder.select(some, zeros, nothing)
}

/// The half of the word that has the bit, the half of that, and so on. `offset` counts from 1 at bit 0; 0 and -1 ask for that bit,
/// and nothing lies further down.
fn halving(func: &mut Function, inst: Inst, mask: Value, offset: Value) -> Option<Found> {
    let mut builder = before(func, inst);
    let b = &mut builder;
    let nothing = b.iconst(Type::I32, -1);
    let zero = b.iconst(Type::I32, 0);
    let wanted = b.binary_imm(Opcode::Add, offset, -1);
    let (mut left, mut place, mut rest) = (wanted, zero, mask);
    for width in [16, 8, 4, 2, 1] {
        let low = b.bits(Type::I32, (1 << width) - 1);
        let half = b.binary(Opcode::And, rest, low);
        let ones = if width == 1 { half } else { b.unary(Opcode::Ctpop, half) };
        let above = b.icmp(IntCC::Uge, left, ones);
        let less = b.binary(Opcode::Sub, left, ones);
        left = b.select(above, less, left);
        let further = b.binary_imm(Opcode::Add, place, width);
        place = b.select(above, further, place);
        if width > 1 {
            let upper = b.binary_imm(Opcode::Lshr, rest, width);
            rest = b.select(above, upper, half);
        }
    }
    let all = b.unary(Opcode::Ctpop, mask);
    let there = b.icmp(IntCC::Ult, wanted, all);
    let found = b.select(there, place, nothing);
    let first = b.binary_imm(Opcode::And, mask, 1);
    let first = b.icmp_imm(IntCC::Ne, first, 0);
    let none_or_back = b.binary_imm(Opcode::Add, offset, 1);
    let near = b.icmp_imm(IntCC::Ult, none_or_back, 2);
    let at_first = b.binary(Opcode::And, first, near);
    Some((Rule::FindByHalves, b.select(at_first, zero, found)))
}
