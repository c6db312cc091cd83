//! Products and sums of floats that may be computed in any order.

use ptxc_ir::{Flags, FloatKind, Function, FunctionBuilder, Inst, Opcode, Rounding, Type, Value};
use smallvec::SmallVec;

use super::{MOST_OPERATIONS, Uses, before, operands};
use crate::combine_instructions::convert::fits_signed;
use crate::fold::float::arithmetic;
use crate::rules::{Found, Rule};

/// Flags that a product taken apart into a sum needs: an infinite part would make NaN of what is none.
const DISTRIBUTES: Flags =
    Flags::from_bits(Flags::REASSOC.bits() | Flags::NSZ.bits() | Flags::NINF.bits() | Flags::CONTRACT.bits());

/// A product or sum by fewer instructions.
pub(super) fn rewrite(func: &mut Function, uses: &Uses, root: Inst) -> Option<Found> {
    let ty = func.dfg.ty(func.dfg.first_result(root)?);
    let kind = ty.float_kind().filter(|_| !ty.is_vector())?;
    if uses.is_abandoned(func, root) {
        return None;
    }
    let op = func.dfg.insts[root].op;
    if op != Opcode::Fmul
        && let Some(found) = converted(func, uses, root)
    {
        return Some(found);
    }
    let flags = free(func, root)?;
    if op == Opcode::Fmul {
        return powers(func, uses, root, kind).or_else(|| fused_factor(func, uses, root, flags));
    }
    constants(func, uses, root, kind).or_else(|| interpolation(func, uses, root, flags))
}

/// The flags of an operation to nearest that may be computed in another order.
fn free(func: &Function, inst: Inst) -> Option<Flags> {
    let flags = func.dfg.insts[inst].flags;
    let bare = !flags.contains(Flags::SAT) && !flags.contains(Flags::RELU) && flags.rounding() == Rounding::Nearest;
    (bare && flags.contains(Flags::REASSOC)).then_some(flags)
}

/// Flags of parts that were none before: that a result is finite was promised of others.
fn unpromised(flags: Flags) -> Flags {
    flags.without(Flags::NNAN | Flags::NINF)
}

/// What alone uses a result and is such an operation as well: its tree takes this one in.
fn is_inner(func: &Function, uses: &Uses, root: Inst, ops: &[Opcode], wanted: Flags) -> bool {
    let Some(user) = uses.only_user(func, root) else { return false };
    let data = &func.dfg.insts[user];
    let ftz = |inst: Inst| func.dfg.insts[inst].flags.contains(Flags::FTZ);
    let joins = free(func, user).is_some_and(|flags| flags.contains(wanted)) && ftz(user) == ftz(root);
    ops.contains(&data.op) && joins
}

/// A tree of one kind of operations: its leaves, and whether each is taken away.
struct Tree {
    leaves: SmallVec<[(Value, bool); 8]>,
    /// What all operations have.
    flags: Flags,
    operations: usize,
}

/// The tree of operations that may be computed in any order, in one block.
fn tree(func: &Function, uses: &Uses, root: Inst, ops: &[Opcode], wanted: Flags) -> Option<Tree> {
    let ftz = func.dfg.insts[root].flags.contains(Flags::FTZ);
    let block = func.layout.inst_block(root);
    let mut tree = Tree { leaves: SmallVec::new(), flags: Flags::FAST, operations: 0 };
    let mut work: SmallVec<[(Value, Option<Inst>, bool); 8]> = SmallVec::new();
    work.push((func.dfg.first_result(root)?, Some(root), false));
    while let Some((value, inst, negative)) = work.pop() {
        let part = inst.filter(|inst| {
            let data = &func.dfg.insts[*inst];
            let joins = free(func, *inst).is_some_and(|flags| flags.contains(wanted));
            ops.contains(&data.op) && joins && data.flags.contains(Flags::FTZ) == ftz
        });
        let (Some(part), true) = (part, tree.operations < MOST_OPERATIONS) else {
            tree.leaves.push((value, negative));
            continue;
        };
        let [a, b] = operands(func, part)?;
        tree.operations += 1;
        tree.flags = tree.flags.intersect(func.dfg.insts[part].flags);
        let second = negative != (func.dfg.insts[part].op == Opcode::Fsub);
        work.push((b, uses.only(func, b, block), second));
        work.push((a, uses.only(func, a, block), negative));
    }
    if ftz {
        tree.flags |= Flags::FTZ;
    }
    Some(tree)
}

/// `x * x * x * x` by squares, and the constants of a product as one.
fn powers(func: &mut Function, uses: &Uses, root: Inst, kind: FloatKind) -> Option<Found> {
    const OPS: &[Opcode] = &[Opcode::Fmul];
    if is_inner(func, uses, root, OPS, Flags::REASSOC) {
        return None;
    }
    let tree = tree(func, uses, root, OPS, Flags::REASSOC)?;
    let ty = func.dfg.ty(func.dfg.first_result(root)?);
    let mut factors: SmallVec<[(Value, u32); 8]> = SmallVec::new();
    let mut constant: Option<u128> = None;
    for (value, _) in &tree.leaves {
        if let Some(bits) = func.dfg.as_bits(*value) {
            constant = Some(match constant {
                None => bits,
                Some(other) => product(kind, other, bits)?,
            });
            continue;
        }
        match factors.iter_mut().find(|(factor, _)| factor == value) {
            Some((_, times)) => *times += 1,
            None => factors.push((*value, 1)),
        }
    }
    let most = factors.iter().map(|(_, times)| *times).max()?;
    let ones: u32 = factors.iter().map(|(_, times)| times.count_ones()).sum();
    let cost = most.ilog2() + ones - 1 + u32::from(constant.is_some());
    if cost as usize >= tree.operations {
        return None;
    }
    let flags = unpromised(tree.flags);
    let mut builder = before(func, root);
    let mut total: Option<Value> = None;
    // From the highest bit of the exponents on: the square of what is there, and the factors that have the bit.
    for bit in (0..=most.ilog2()).rev() {
        total = total.map(|value| builder.binary_flags(Opcode::Fmul, flags, value, value));
        for (value, _) in factors.iter().filter(|(_, times)| times >> bit & 1 == 1) {
            total = Some(times(&mut builder, flags, total, *value));
        }
    }
    if let Some(bits) = constant {
        let value = builder.bits(ty, bits);
        total = Some(times(&mut builder, flags, total, value));
    }
    total.map(|value| (Rule::CollectPowers, value))
}

fn times(builder: &mut FunctionBuilder<'_>, flags: Flags, to: Option<Value>, value: Value) -> Value {
    match to {
        Some(to) => builder.binary_flags(Opcode::Fmul, flags, to, value),
        None => value,
    }
}

/// The product of two constants, where neither it nor they are out of the range of normal numbers.
fn product(kind: FloatKind, a: u128, b: u128) -> Option<u128> {
    normal(kind, arithmetic(Opcode::Fmul, kind, Flags::EMPTY, &[a, b])?)
        .filter(|_| normal(kind, a).is_some() && normal(kind, b).is_some())
}

/// A normal number.
fn normal(kind: FloatKind, bits: u128) -> Option<u128> {
    let (width, fraction) = match kind {
        FloatKind::F16 => (16, 10),
        FloatKind::Bf16 => (16, 7),
        FloatKind::F32 => (32, 23),
        FloatKind::F64 => (64, 52),
        _ => return None,
    };
    let exponents = (1u128 << (width - 1 - fraction)) - 1;
    let exponent = bits >> fraction & exponents;
    (exponent != 0 && exponent != exponents).then_some(bits)
}

/// The constants of a sum, as one.
fn constants(func: &mut Function, uses: &Uses, root: Inst, kind: FloatKind) -> Option<Found> {
    const OPS: &[Opcode] = &[Opcode::Fadd, Opcode::Fsub];
    let wanted = Flags::REASSOC | Flags::NSZ;
    if !func.dfg.insts[root].flags.contains(wanted) || is_inner(func, uses, root, OPS, wanted) {
        return None;
    }
    let tree = tree(func, uses, root, OPS, wanted)?;
    let number = |value: Value| func.dfg.as_bits(value);
    let mut total: Option<u128> = None;
    let mut count = 0;
    for (value, negative) in &tree.leaves {
        let Some(bits) = number(*value) else { continue };
        normal(kind, bits)?;
        let op = if *negative { Opcode::Fsub } else { Opcode::Fadd };
        total = Some(arithmetic(op, kind, Flags::EMPTY, &[total.unwrap_or(0), bits])?);
        count += 1;
    }
    let (total, flags) = (total.filter(|_| count > 1)?, unpromised(tree.flags));
    let ty = func.dfg.ty(func.dfg.first_result(root)?);
    let rest: SmallVec<[(Value, bool); 8]> =
        tree.leaves.iter().copied().filter(|(value, _)| number(*value).is_none()).collect();
    if total != 0 {
        normal(kind, total)?;
    }
    let mut builder = before(func, root);
    let first = rest.iter().position(|(_, negative)| !negative);
    let constant = builder.bits(ty, total);
    // The first that is added starts the sum; without one the constant does.
    let mut sum = match first {
        Some(at) if total != 0 => builder.binary_flags(Opcode::Fadd, flags, rest[at].0, constant),
        Some(at) => rest[at].0,
        None => constant,
    };
    for (at, (value, negative)) in rest.iter().enumerate() {
        if Some(at) != first {
            let op = if *negative { Opcode::Fsub } else { Opcode::Fadd };
            sum = builder.binary_flags(op, flags, sum, *value);
        }
    }
    Some((Rule::CollectConstants, sum))
}

/// `(x + 1) * y` as `x * y + y`.
fn fused_factor(func: &mut Function, uses: &Uses, root: Inst, flags: Flags) -> Option<Found> {
    let [a, b] = operands(func, root)?;
    if !flags.contains(DISTRIBUTES) {
        return None;
    }
    let (x, y, less, inner) = [(a, b), (b, a)].into_iter().find_map(|(sum, y)| {
        let (x, one, op, inner) = distributed(func, uses, root, sum, flags)?;
        let number = func.dfg.as_bits(one)?;
        let (plus, minus) = ones(func.dfg.ty(one))?;
        let subtracts = op == Opcode::Fsub;
        match number {
            _ if number == plus => Some((x, y, subtracts, inner)),
            _ if number == minus => Some((x, y, !subtracts, inner)),
            _ => None,
        }
    })?;
    let flags = unpromised(flags.intersect(inner));
    let mut builder = before(func, root);
    let product = builder.binary_flags(Opcode::Fmul, flags, x, y);
    let op = if less { Opcode::Fsub } else { Opcode::Fadd };
    Some((Rule::FusedFactor, builder.binary_flags(op, flags, product, y)))
}

/// A sum or difference that only this product uses and that may be distributed over it: its operands, operation and flags.
fn distributed(
    func: &Function,
    uses: &Uses,
    root: Inst,
    sum: Value,
    outer: Flags,
) -> Option<(Value, Value, Opcode, Flags)> {
    let inner = uses.only(func, sum, func.layout.inst_block(root))?;
    let op = func.dfg.insts[inner].op;
    let flags = free(func, inner).filter(|flags| flags.contains(DISTRIBUTES))?;
    let same = flags.contains(Flags::FTZ) == outer.contains(Flags::FTZ);
    let [x, y] = operands(func, inner)?;
    (same && matches!(op, Opcode::Fadd | Opcode::Fsub)).then_some((x, y, op, flags))
}

/// 1 and -1.
fn ones(ty: Type) -> Option<(u128, u128)> {
    let one = match ty.float_kind()? {
        FloatKind::F16 => 0x3c00,
        FloatKind::Bf16 => 0x3f80,
        FloatKind::F32 => 0x3f80_0000,
        FloatKind::F64 => 0x3ff0_0000_0000_0000,
        _ => return None,
    };
    Some((one, one | 1 << (ty.bits() - 1)))
}

/// `a * (1 - t) + b * t` as `(b - a) * t + a`.
fn interpolation(func: &mut Function, uses: &Uses, root: Inst, flags: Flags) -> Option<Found> {
    if func.dfg.insts[root].op != Opcode::Fadd || !flags.contains(DISTRIBUTES) {
        return None;
    }
    let [p, q] = operands(func, root)?;
    let product = |value: Value| {
        let inst = uses.only(func, value, func.layout.inst_block(root))?;
        let inner = free(func, inst).filter(|inner| inner.contains(DISTRIBUTES))?;
        let same = inner.contains(Flags::FTZ) == flags.contains(Flags::FTZ);
        (same && func.dfg.insts[inst].op == Opcode::Fmul).then(|| operands(func, inst).map(|args| (args, inner)))?
    };
    let ((first, first_flags), (second, second_flags)) = (product(p)?, product(q)?);
    let flags = flags.intersect(first_flags).intersect(second_flags);
    let rest_of = |value: Value| {
        let (one, t, op, inner) = distributed(func, uses, root, value, flags)?;
        let is_rest = op == Opcode::Fsub && func.dfg.as_bits(one) == ones(func.dfg.ty(one)).map(|ones| ones.0);
        is_rest.then_some((t, inner))
    };
    // Either product, and either factor of it.
    let orders = [(first, second), (second, first)];
    let (a, b, t, inner) = orders.into_iter().find_map(|([w, x], [y, z])| {
        [(w, x), (x, w)].into_iter().find_map(|(a, rest)| {
            let (t, inner) = rest_of(rest)?;
            let b = if y == t { Some(z) } else { (z == t).then_some(y) };
            b.map(|b| (a, b, t, inner))
        })
    })?;
    let flags = unpromised(flags.intersect(inner));
    let mut builder = before(func, root);
    let difference = builder.binary_flags(Opcode::Fsub, flags, b, a);
    let moved = builder.binary_flags(Opcode::Fmul, flags, difference, t);
    Some((Rule::Interpolation, builder.binary_flags(Opcode::Fadd, flags, moved, a)))
}

/// The sum of two integers that were made floats, exactly, is that of the integers: both round it once.
fn converted(func: &mut Function, uses: &Uses, root: Inst) -> Option<Found> {
    let data = &func.dfg.insts[root];
    let (ty, flags) = (data.ty, data.flags);
    let precision = match ty {
        Type::F32 => 24,
        Type::F64 => 30,
        _ => return None,
    };
    let integer = |value: Value| {
        let made = uses.only(func, value, func.layout.inst_block(root))?;
        let is_nearest = func.dfg.insts[made].flags.rounding() == Rounding::Nearest;
        let from = func.dfg.resolve(*func.dfg.args(made).first()?);
        let is_word = matches!(func.dfg.ty(from), Type::I16 | Type::I32) && fits_signed(func, from, precision);
        (func.dfg.insts[made].op == Opcode::Sitofp && is_nearest && is_word).then_some(from)
    };
    let [p, q] = operands(func, root)?;
    let (a, b) = (integer(p)?, integer(q)?);
    let bare = !flags.contains(Flags::SAT) && !flags.contains(Flags::RELU) && flags.rounding() == Rounding::Nearest;
    let op = match data.op {
        _ if !bare => return None,
        Opcode::Fsub => Opcode::Sub,
        _ => Opcode::Add,
    };
    let mut builder = before(func, root);
    let [a, b] = [a, b].map(|value| match builder.ty(value) {
        Type::I32 => value,
        _ => builder.convert(Opcode::Sext, value, Type::I32),
    });
    let sum = builder.binary_flags(op, Flags::NSW, a, b);
    Some((Rule::ConvertedSum, builder.convert(Opcode::Sitofp, sum, ty)))
}
