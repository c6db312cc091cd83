//! Masks and shifts in the order in which the machine needs fewer of them.
//!
//! A mask before a shift goes behind it where logic takes it in (`lop3` masks two words that it joins), and where the shifted
//! number is an amount, of which shifts of 32 bits take five bits without asking. A shift by a number of bytes is a permutation of
//! bytes that counts them itself, modulo four (PTX ISA 9.7.8, prmt.f4e).

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Block, Flags, Function, FunctionBuilder, Inst, Opcode, TargetOp, TargetOperand, Type, Value};
use ptxc_targets::tok;
use smallvec::SmallVec;

use crate::rules::Pattern;

/// Rewrites a function whose aliases are resolved, and names in `formed` what it found. `fields`: the machine inserts bit fields.
pub(super) fn move_masks(func: &mut Function, fields: bool, formed: &mut Vec<(Inst, Pattern)>) {
    let blocks: Vec<Block> = func.layout.blocks().collect();
    let uses = super::cleanup::count_uses(func);
    let mut found: Vec<Inst> = Vec::new();
    for block in blocks {
        for inst in func.layout.insts(block) {
            let data = &func.dfg.insts[inst];
            let logic = matches!(data.op, Opcode::And | Opcode::Or | Opcode::Xor);
            let shift =
                matches!(data.op, Opcode::Shl | Opcode::Lshr | Opcode::Ashr | Opcode::Fshr) && data.ty == Type::I32;
            if shift || logic && matches!(data.ty, Type::I32 | Type::I64) {
                found.push(inst);
            }
        }
    }
    let before = formed.len();
    for inst in found {
        if bytes_from(func, inst) {
            formed.push((inst, Pattern::BytesFrom));
            continue;
        }
        let logic = matches!(func.dfg.insts[inst].op, Opcode::And | Opcode::Or | Opcode::Xor);
        if !logic {
            if mask_amount(func, &uses, inst) {
                formed.push((inst, Pattern::MaskAmount));
            }
            continue;
        }
        let operands: SmallVec<[Value; 2]> = func.dfg.args(inst).iter().map(|value| func.dfg.resolve(*value)).collect();
        if !fields && sum_of_parts(func, &uses, inst, &operands) {
            formed.push((inst, Pattern::SumOfParts));
            continue;
        }
        // Two constants are more than a table takes.
        if operands.iter().any(|value| func.dfg.as_const(*value).is_some()) {
            continue;
        }
        for value in operands {
            if mask_behind_shift(func, &uses, value, fields) {
                formed.push((inst, Pattern::MaskBehindShift));
            }
        }
    }
    if formed.len() > before {
        super::cleanup::resolve_and_sweep(func);
    }
}

/// The operation behind a value with its first operand, and the second where it is constant.
fn with_constant(func: &Function, value: Value, op: Opcode) -> Option<(Inst, Value, u64)> {
    let inst = func.dfg.def_inst(value)?;
    let (true, &[a, b]) = (func.dfg.insts[inst].op == op, func.dfg.args(inst)) else { return None };
    Some((inst, func.dfg.resolve(a), func.dfg.as_bits(b)? as u64))
}

/// The ones of a type of 32 or 64 bits.
fn ones(ty: Type) -> u64 {
    if ty == Type::I32 { u64::from(u32::MAX) } else { u64::MAX }
}

/// `(x & k) << n` as `(x << n) & (k << n)`, and the same to the right. Whole bytes are patterns of their
/// own as they stand, and with `fields` so are fields at the lower end.
fn mask_behind_shift(func: &mut Function, uses: &SecondaryMap<Value, u32>, value: Value, fields: bool) -> bool {
    let ty = func.dfg.ty(value);
    if let Some(replaced) = shifts_as_mask(func, uses, value) {
        return replaced;
    }
    for op in [Opcode::Shl, Opcode::Lshr] {
        let Some((shift, masked, by)) = with_constant(func, value, op) else { continue };
        let Some((_, from, kept)) = with_constant(func, masked, Opcode::And) else { continue };
        let bytes = (0..8).all(|index| matches!(kept >> (8 * index) & 0xff, 0 | 0xff));
        let low = fields && kept & kept.wrapping_add(1) == 0;
        if by >= u64::from(ty.bits()) || bytes || low || uses[value] != 1 || uses[masked] != 1 {
            return false;
        }
        let moved = if op == Opcode::Shl { kept << by } else { kept >> by } & ones(ty);
        let mut builder = FunctionBuilder::before(func, shift);
        let by = builder.bits(ty, by.into());
        let shifted = builder.binary(op, from, by);
        let moved = builder.bits(ty, moved.into());
        let new = builder.binary(Opcode::And, shifted, moved);
        replace(func, shift, new);
        return true;
    }
    false
}

/// Parts that have no bit in common, one of them shifted up, are added: the machine shifts in a sum, and not in logic. Whole
/// bytes and what lies across two words are patterns of their own.
fn sum_of_parts(func: &mut Function, uses: &SecondaryMap<Value, u32>, inst: Inst, operands: &[Value]) -> bool {
    let data = &func.dfg.insts[inst];
    let disjoint = data.op == Opcode::Or && data.ty == Type::I32 && data.flags.contains(Flags::DISJOINT);
    let &[a, b] = operands else { return false };
    if !disjoint || func.dfg.as_const(a).is_some() || func.dfg.as_const(b).is_some() {
        return false;
    }
    let up = |value: Value| {
        with_constant(func, value, Opcode::Shl).is_some_and(|(_, _, by)| by % 8 != 0 && by < 32) && uses[value] == 1
    };
    let down = |value: Value| func.dfg.def_inst(value).is_some_and(|inst| func.dfg.insts[inst].op == Opcode::Lshr);
    // What is masked goes into logic with the mask.
    let masked = |value: Value| with_constant(func, value, Opcode::And).is_some() && uses[value] == 1;
    // A flag added is predicated (measured on sm_100a: an instruction more).
    let flag = |value: Value| {
        let from = func.dfg.def_inst(value).map(|inst| (func.dfg.insts[inst].op, func.dfg.args(inst)));
        matches!(from, Some((Opcode::Zext, &[bit])) if func.dfg.ty(bit) == Type::I1)
    };
    let kept = |value: Value| down(value) || masked(value) || flag(value);
    if !(up(a) || up(b)) || kept(a) || kept(b) {
        return false;
    }
    let sum = FunctionBuilder::before(func, inst).binary(Opcode::Add, a, b);
    replace(func, inst, sum);
    true
}

/// `(x >> m) << n` with m greater than n: one shift, and a mask that logic takes in.
fn shifts_as_mask(func: &mut Function, uses: &SecondaryMap<Value, u32>, value: Value) -> Option<bool> {
    let ty = func.dfg.ty(value);
    let (last, inner, up) = with_constant(func, value, Opcode::Shl)?;
    let (_, from, down) = with_constant(func, inner, Opcode::Lshr)?;
    let whole = up % 8 == 0 && down % 8 == 0;
    if up == 0 || down <= up || down >= u64::from(ty.bits()) || whole || uses[value] != 1 || uses[inner] != 1 {
        return None;
    }
    let mut builder = FunctionBuilder::before(func, last);
    let by = builder.bits(ty, (down - up).into());
    let shifted = builder.binary(Opcode::Lshr, from, by);
    let kept = builder.bits(ty, (ones(ty) >> down << up).into());
    let new = builder.binary(Opcode::And, shifted, kept);
    replace(func, last, new);
    Some(true)
}

/// An amount `(n & k) << c` or `(n << c) & k`, of which the bits below five stay: the mask becomes that of the shift itself.
fn mask_amount(func: &mut Function, uses: &SecondaryMap<Value, u32>, inst: Inst) -> bool {
    // The funnel shift counts modulo 32 already.
    let &[_, amount] = func.dfg.args(inst) else { return false };
    let amount = func.dfg.resolve(amount);
    let masked_first = multiple(func, amount).and_then(|(masked, by)| {
        let (_, from, kept) = with_constant(func, masked, Opcode::And)?;
        (uses[masked] == 1 && (1..5).contains(&by) && kept << by == 31 >> by << by).then_some((from, by))
    });
    let masked_last = with_constant(func, amount, Opcode::And).and_then(|(_, shifted, kept)| {
        let (from, by) = multiple(func, shifted)?;
        ((1..5).contains(&by) && kept == 31 >> by << by).then_some((from, by))
    });
    let Some(last) = func.dfg.def_inst(amount) else { return false };
    let Some((from, by)) = masked_first.or(masked_last).filter(|_| uses[amount] == 1) else { return false };
    let ty = func.dfg.ty(amount);
    let mut builder = FunctionBuilder::before(func, last);
    let by = builder.bits(ty, by.into());
    let shifted = builder.binary(Opcode::Shl, from, by);
    let kept = builder.bits(ty, 31);
    let new = builder.binary(Opcode::And, shifted, kept);
    replace(func, last, new);
    true
}

/// `word >> 8 * n`, where n counts modulo four: four bytes of the word and zeros, from byte n on. A funnel shift takes them of two words.
fn bytes_from(func: &mut Function, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    let (op, ty) = (data.op, data.ty);
    let args: SmallVec<[Value; 3]> = func.dfg.args(inst).iter().map(|value| func.dfg.resolve(*value)).collect();
    let (low, high, amount) = match (op, &args[..]) {
        (Opcode::Lshr, &[word, amount]) => (word, None, amount),
        (Opcode::Fshr, &[high, low, amount]) => (low, Some(high), amount),
        _ => return false,
    };
    if ty != Type::I32 || func.dfg.as_bits(low).is_some() {
        return false;
    }
    let Some(number) = eighth(func, amount) else { return false };
    let mut builder = FunctionBuilder::before(func, inst);
    let high = high.unwrap_or_else(|| builder.bits(Type::I32, 0));
    let operands = [TargetOperand::Result(0), TargetOperand::Arg(0), TargetOperand::Arg(1), TargetOperand::Arg(2)];
    let toks = SmallVec::from_slice(&[tok::PRMT, tok::B32, tok::F4E]);
    let op = TargetOp::Known { toks, guard: None, operands: operands.into_iter().collect() };
    let made = builder.target(op, &[low, high, number], &[Type::I32]);
    let bytes = builder.func.dfg.result(made, 0);
    replace(func, inst, bytes);
    true
}

/// The number of which an amount is eight times the two lowest bits.
fn eighth(func: &Function, amount: Value) -> Option<Value> {
    if let Some((_, moved, 24)) = with_constant(func, amount, Opcode::And) {
        return multiple(func, moved).filter(|(_, by)| *by == 3).map(|(number, _)| number);
    }
    let (masked, _) = multiple(func, amount).filter(|(_, by)| *by == 3)?;
    with_constant(func, masked, Opcode::And).filter(|(_, _, kept)| *kept == 3).map(|(_, number, _)| number)
}

/// The number that a value is a power of two times, and the logarithm of that.
fn multiple(func: &Function, value: Value) -> Option<(Value, u64)> {
    if let Some((_, from, by)) = with_constant(func, value, Opcode::Shl) {
        return Some((from, by));
    }
    let (_, from, by) = with_constant(func, value, Opcode::Mul)?;
    by.is_power_of_two().then(|| (from, by.trailing_zeros().into()))
}

/// Puts a value in the place of an instruction's result.
fn replace(func: &mut Function, inst: Inst, with: Value) {
    let old = func.dfg.result(inst, 0);
    func.dfg.alias(old, with);
    func.layout.remove_inst(inst);
}
