//! Quotients, roots and sums of floats that are less where their flags let them be computed another way.

use ptxc_ir::{Extra, Flags, FloatCC, Function, Inst, Opcode, Rounding, Value};

use crate::rules::{Found, Rule};

use super::{Uses, before, made_by};

/// A cheaper way to a result that is allowed.
pub(super) fn rewrite(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    match func.dfg.insts[inst].op {
        Opcode::Fdiv => root_divided(func, inst).or_else(|| quotients(func, uses, inst)),
        Opcode::Fmul => root_squared(func, inst),
        Opcode::Fcmp => compared_sum(func, uses, inst),
        _ => None,
    }
}

/// The flags of an operation to nearest that may be computed in another order, with all of these besides.
fn flags_with(func: &Function, inst: Inst, wanted: Flags) -> Option<Flags> {
    let flags = func.dfg.insts[inst].flags;
    let free = flags.contains(Flags::REASSOC) && flags.contains(wanted) && flags.rounding() == Rounding::Nearest;
    free.then_some(flags)
}

/// `(a / b) / c` is `a / (b * c)`, `a / (b / c)` is `(a * c) / b`: a product costs less than a quotient.
fn quotients(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    let &[x, y] = func.dfg.args(inst) else { return None };
    let (x, y) = (func.dfg.resolve(x), func.dfg.resolve(y));
    let outer = flags_with(func, inst, Flags::ARCP)?;
    let quotient = |value: Value| {
        let args = made_by(func, value, Opcode::Fdiv)?;
        let inner = flags_with(func, func.dfg.def_inst(value)?, Flags::ARCP)?;
        let &[a, b] = &args[..] else { return None };
        let same = inner.contains(Flags::FTZ) == outer.contains(Flags::FTZ);
        (same && uses.is_single(value))
            .then(|| (a, b, inner.intersect(Flags::FAST).intersect(outer) | outer.intersect(Flags::FTZ)))
    };
    if let Some((a, b, flags)) = quotient(x) {
        let mut builder = before(func, inst);
        let product = builder.binary_flags(Opcode::Fmul, flags, b, y);
        return Some((Rule::DivideTwice, builder.binary_flags(Opcode::Fdiv, flags, a, product)));
    }
    let (b, c, flags) = quotient(y)?;
    let mut builder = before(func, inst);
    let product = builder.binary_flags(Opcode::Fmul, flags, x, c);
    Some((Rule::DivideByQuotient, builder.binary_flags(Opcode::Fdiv, flags, product, b)))
}

/// The number under a root that may be taken in another order.
fn radicand(func: &Function, root: Value) -> Option<Value> {
    let args = made_by(func, root, Opcode::Fsqrt)?;
    let flags = flags_with(func, func.dfg.def_inst(root)?, Flags::EMPTY)?;
    (!flags.contains(Flags::FTZ)).then(|| args.first().copied())?
}

/// A root times itself, of what is not negative.
fn root_squared(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[a, b] = func.dfg.args(inst) else { return None };
    let flags = flags_with(func, inst, Flags::NNAN | Flags::NSZ)?;
    let root = func.dfg.resolve(a);
    let plain = root == func.dfg.resolve(b) && !flags.contains(Flags::FTZ) && !flags.contains(Flags::SAT);
    plain.then(|| radicand(func, root))?.map(|x| (Rule::RootSquared, x))
}

/// A number by its root, which is not zero.
fn root_divided(func: &mut Function, inst: Inst) -> Option<Found> {
    let &[x, root] = func.dfg.args(inst) else { return None };
    let flags = flags_with(func, inst, Flags::NNAN)?;
    let root = func.dfg.resolve(root);
    let plain = !flags.contains(Flags::FTZ) && radicand(func, root)? == func.dfg.resolve(x);
    plain.then_some((Rule::RootDivided, root))
}

/// A sum or difference compared with zero: the summands are. A sum is zero, or has a sign, exactly when it is so without rounding;
/// of two infinities it may be NaN, which the condition has to answer as it does equal numbers.
fn compared_sum(func: &mut Function, uses: &Uses, inst: Inst) -> Option<Found> {
    use FloatCC::{Ogt, Olt, One, Ueq, Uge, Ule};
    let &[sum, zero] = func.dfg.args(inst) else { return None };
    let Extra::FloatCC(cc @ (Ogt | Olt | One | Ueq | Uge | Ule)) = func.dfg.insts[inst].extra else { return None };
    let ty = func.dfg.ty(sum);
    let magnitude = func.dfg.as_bits(zero)? & ((1 << (ty.scalar_bits() - 1)) - 1);
    // A sum that is wanted besides is computed in any case, with a product before it perhaps; then its sign is there.
    let sum = func.dfg.resolve(sum);
    let maker = func.dfg.def_inst(sum).filter(|_| uses.is_single(sum))?;
    let data = &func.dfg.insts[maker];
    let (op, flags) = (data.op, data.flags | func.dfg.insts[inst].flags);
    let exact = !flags.contains(Flags::FTZ) && !flags.contains(Flags::SAT);
    if ty.is_vector() || magnitude != 0 || !exact || !matches!(op, Opcode::Fadd | Opcode::Fsub) {
        return None;
    }
    let &[a, b] = func.dfg.args(maker) else { return None };
    let (a, b) = (func.dfg.resolve(a), func.dfg.resolve(b));
    let mut builder = before(func, inst);
    let b = if op == Opcode::Fadd { builder.unary(Opcode::Fneg, b) } else { b };
    Some((Rule::CompareSum, builder.fcmp(cc, Flags::EMPTY, a, b)))
}
