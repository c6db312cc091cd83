//! Addresses: constant parts of an index go last, where accesses take them as offsets.

use ptxc_ir::{Extra, Flags, Function, Inst, MemType, Opcode, Type, Value};

use smallvec::{SmallVec, smallvec};

use crate::rules::{Found, Rule};

use super::{Uses, before, constant, int_width, made_by, signed};

/// `gep T, p, x + c` as `gep T, (gep T, p, x), c`. Neighbours then share their first part.
pub(super) fn rewrite(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    let Extra::Gep(ty) = func.dfg.insts[inst].extra else { return None };
    let &[base, index] = func.dfg.args(inst) else { return None };
    if let Some(parts) = summands(func, uses, inst, ty, index) {
        let mut builder = before(func, inst);
        let address = parts.into_iter().fold(base, |address, part| builder.gep(ty, address, &[part]));
        return Some((Rule::GepSum, address));
    }
    let (rest, number) = constant_part(func, index)?;
    let index_ty = func.dfg.ty(rest);
    let mut builder = before(func, inst);
    let first = builder.gep(ty, base, &[rest]);
    let number = builder.iconst(index_ty, number);
    Some((Rule::GepConstantLast, builder.gep(ty, first, &[number])))
}

/// The summands of an index of 64 bits that nothing else uses, where one of them is an extended number or a product: the machine adds
/// the address to either at once, to a product of two variables only if it is of bytes. A constant part is last.
fn summands(func: &Function, uses: &Uses, inst: Inst, ty: MemType, index: Value) -> Option<SmallVec<[Value; 3]>> {
    if int_width(func.dfg.ty(index)) != Some(64) || !uses.is_single(index) {
        return None;
    }
    let sum = made_by(func, index, Opcode::Add)?;
    let &[a, b] = &sum[..] else { return None };
    let with_constant = |value: Value| {
        let parts = made_by(func, value, Opcode::Add)?;
        func.dfg.as_const(parts[1]).is_some().then(|| (parts[0], parts[1]))
    };
    for (x, y) in [(a, b), (b, a)] {
        let (word, constant) = with_constant(x).map_or((x, None), |(word, constant)| (word, Some(constant)));
        if is_extended_first(func, inst, word, y) {
            return Some([word, y].into_iter().chain(constant).collect());
        }
    }
    let op = |value: Value| func.dfg.def_inst(value).map(|inst| func.dfg.insts[inst].op);
    let bytes = ty == MemType::Value(Type::I8);
    let scaled =
        |value: Value| made_by(func, value, Opcode::Mul).is_some_and(|args| func.dfg.as_const(args[1]).is_some());
    let takes_part = |value: Value| match op(value) {
        Some(Opcode::Sext | Opcode::Zext) => true,
        Some(Opcode::Mul) => bytes || scaled(value),
        _ => false,
    };
    if func.dfg.as_const(b).is_some() || !(takes_part(a) || takes_part(b)) {
        return None;
    }
    Some(if with_constant(a).is_some() { smallvec![b, a] } else { smallvec![a, b] })
}

/// Whether an extended number is added to the address before a product is: it takes the address as a constant, the other one would have
/// to be loaded. Not of a product whose factors come from elsewhere, which the machine computes with the address before a loop.
fn is_extended_first(func: &Function, inst: Inst, extended: Value, product: Value) -> bool {
    let here = |value: Value| {
        let from = func.dfg.def_inst(value);
        from.is_some_and(|from| func.layout.inst_block(from) == func.layout.inst_block(inst))
    };
    let is_word = made_by(func, extended, Opcode::Sext).or_else(|| made_by(func, extended, Opcode::Zext)).is_some();
    let varies = made_by(func, product, Opcode::Mul).is_some_and(|factors| factors.into_iter().any(here));
    is_word && varies && here(extended) && here(product)
}

/// The rest and the constant that an index is the sum of, in 64 bits, where narrower indices are signed. Only constants
/// that an access's offset is likely to take.
fn constant_part(func: &mut Function, index: Value) -> Option<(Value, i64)> {
    const LARGEST: i64 = 1 << 20;
    let width = int_width(func.dfg.ty(index))?;
    let from = func.dfg.def_inst(index)?;
    let data = &func.dfg.insts[from];
    match data.op {
        Opcode::Add | Opcode::Or => {
            let &[a, b] = func.dfg.args(from) else { return None };
            let number = signed(func, b).filter(|n| n.abs() < LARGEST && *n != 0)?;
            // As wide as the address a sum may wrap, as the address may.
            let holds = match data.op {
                Opcode::Add => width == 64 || data.flags.contains(Flags::NSW),
                _ => data.flags.contains(Flags::DISJOINT) && number > 0,
            };
            holds.then(|| (func.dfg.resolve(a), number))
        }
        // zext(x + c) is zext(x) + c where the sum does not wrap.
        Opcode::Zext | Opcode::Sext if width == 64 => {
            let &[narrow] = func.dfg.args(from) else { return None };
            let narrow = func.dfg.resolve(narrow);
            let inner = func.dfg.def_inst(narrow)?;
            let (op, inner_data) = (data.op, &func.dfg.insts[inner]);
            let &[a, b] = func.dfg.args(inner) else { return None };
            let wraps = if op == Opcode::Zext { Flags::NUW } else { Flags::NSW };
            let holds = match inner_data.op {
                Opcode::Add => inner_data.flags.contains(wraps),
                Opcode::Or => inner_data.flags.contains(Flags::DISJOINT) && signed(func, b)? > 0,
                _ => return None,
            };
            let number = if op == Opcode::Zext { constant(func, b)? as i64 } else { signed(func, b)? };
            if !holds || number.abs() >= LARGEST || number == 0 {
                return None;
            }
            let (a, ty) = (func.dfg.resolve(a), func.dfg.ty(index));
            Some((before(func, from).convert(op, a, ty), number))
        }
        _ => None,
    }
}
