//! Reductions over a warp in five steps.
//!
//! In a butterfly every lane ends up with the result. With shuffles down, the lanes that lane 0 has gathered after all steps
//! are all of the warp, whatever the order of the distances: they are the sums of subsets of 1, 2, 4, 8 and 16, none of which leaves the
//! warp. The other lanes have something else, so that the result must be read in lane 0 alone ([`super::lanes`]); with shuffles
//! up the same holds for lane 31.

use ptxc_ir::{Extra, Flags, Function, FunctionBuilder, Inst, Opcode, Type, TypeSet, Value};
use smallvec::SmallVec;

use super::lanes::Readers;
use super::{ALL_LANES, Users, operands};
use crate::rules::Rule;

/// The operation over a warp that an operation on two operands makes.
pub(super) fn reduction(op: Opcode) -> Option<Opcode> {
    Some(match op {
        Opcode::Add => Opcode::ReduxAdd,
        Opcode::Smin => Opcode::ReduxSmin,
        Opcode::Smax => Opcode::ReduxSmax,
        Opcode::Umin => Opcode::ReduxUmin,
        Opcode::Umax => Opcode::ReduxUmax,
        Opcode::And => Opcode::ReduxAnd,
        Opcode::Or => Opcode::ReduxOr,
        Opcode::Xor => Opcode::ReduxXor,
        Opcode::Fmin => Opcode::ReduxFmin,
        Opcode::Fmax => Opcode::ReduxFmax,
        Opcode::Fminimum => Opcode::ReduxFminimum,
        Opcode::Fmaximum => Opcode::ReduxFmaximum,
        _ => return None,
    })
}

/// One step of a tree.
struct Step {
    /// The value that is exchanged, and kept.
    value: Value,
    /// The shuffle, and casts of a float to and from the integer that is exchanged.
    insts: SmallVec<[Inst; 4]>,
    /// Which shuffle.
    kind: Opcode,
    /// How far it goes.
    distance: u128,
}

fn step(func: &Function, users: &Users, inst: Inst) -> Option<Step> {
    let args = operands(func, inst);
    let &[a, b] = args.as_slice() else { return None };
    exchanged(func, users, inst, (a, b)).or_else(|| exchanged(func, users, inst, (b, a)))
}

/// The step in which `other` is what another lane has of `own`.
fn exchanged(func: &Function, users: &Users, inst: Inst, (own, other): (Value, Value)) -> Option<Step> {
    let block = func.layout.inst_block(inst)?;
    let mut insts: SmallVec<[Inst; 4]> = SmallVec::new();
    // A cast that nothing else reads, and what it is of.
    let cast = |value: Value| {
        let cast = func.dfg.def_inst(value).filter(|def| func.dfg.insts[*def].op == Opcode::Bitcast)?;
        let of = func.dfg.resolve(*func.dfg.args(cast).first()?);
        (users[value].len() == 1 && func.layout.inst_block(cast) == Some(block)).then_some((cast, of))
    };
    let is_float = func.dfg.insts[inst].ty == Type::F32;
    let mut received = other;
    if is_float && let Some((cast, of)) = cast(received) {
        insts.push(cast);
        received = of;
    }
    let shuffle = func.dfg.def_inst(received)?;
    let kind = func.dfg.insts[shuffle].op;
    let bound = match kind {
        Opcode::ShflBfly | Opcode::ShflDown => 31,
        Opcode::ShflUp => 0,
        _ => return None,
    };
    if func.layout.inst_block(shuffle) != Some(block) {
        return None;
    }
    insts.push(shuffle);
    let &[value, distance, clamp, mask] = func.dfg.args(shuffle) else { return None };
    let mut value = func.dfg.resolve(value);
    if value != own && is_float {
        let (cast, of) = cast(value)?;
        insts.push(cast);
        value = of;
    }
    let results: SmallVec<[Value; 2]> = func.dfg.results(shuffle).collect();
    let read_once = results.first() == Some(&received)
        && users[received].len() == 1
        && results.iter().skip(1).all(|v| users[*v].is_empty());
    let whole = func.dfg.as_bits(clamp) == Some(bound) && func.dfg.as_bits(mask) == Some(ALL_LANES);
    (value == own && read_once && whole).then_some(())?;
    Some(Step { value, insts, kind, distance: func.dfg.as_bits(distance)? })
}

/// Five steps of one kind that reach every lane.
pub(super) fn tree(func: &mut Function, users: &Users, readers: &mut Readers, root: Inst) -> Option<Rule> {
    let data = &func.dfg.insts[root];
    let (op, redux, ty) = (data.op, reduction(data.op)?, data.ty);
    if redux.info().types != if ty == Type::F32 { TypeSet::F32 } else { TypeSet::I32 } || ty.bits() != 32 {
        return None;
    }
    let (mut at, mut lanes, mut kind) = (root, 0, None);
    let mut replaced: SmallVec<[Inst; 8]> = SmallVec::new();
    let source = loop {
        if func.dfg.insts[at].flags.contains(Flags::FTZ) {
            return None;
        }
        let Step { value, insts, kind: found, distance } = step(func, users, at)?;
        if !distance.is_power_of_two() || distance > 16 || lanes & distance != 0 || *kind.get_or_insert(found) != found
        {
            return None;
        }
        lanes |= distance;
        replaced.extend(insts);
        if lanes == 31 {
            break value;
        }
        let inner = func.dfg.def_inst(value).filter(|inner| func.dfg.insts[*inner].op == op)?;
        if users[value].len() != 2 || func.layout.inst_block(inner) != func.layout.inst_block(root) {
            return None;
        }
        replaced.push(inner);
        at = inner;
    };
    let old = func.dfg.result(root, 0);
    let (rule, broadcasts) = match kind? {
        Opcode::ShflBfly if ty == Type::F32 => (Rule::ButterflyFloat, SmallVec::new()),
        Opcode::ShflBfly => (Rule::ButterflyRedux, SmallVec::new()),
        Opcode::ShflDown => (Rule::DownRedux, readers.only_in(func, users, old, 0)?),
        _ => (Rule::UpRedux, readers.only_in(func, users, old, 31)?),
    };
    let loc = func.dfg.locs[root];
    let mut builder = FunctionBuilder::before(func, root);
    builder.set_loc(loc);
    let mask = builder.bits(Type::I32, ALL_LANES);
    let made = builder.inst(redux, Flags::EMPTY, ty, &[source, mask], Extra::None);
    let new = func.dfg.result(made, 0);
    func.dfg.alias(old, new);
    func.layout.remove_inst(root);
    for inst in replaced {
        func.layout.remove_inst(inst);
    }
    // What hands the result to the other lanes is not needed: they have it.
    for inst in broadcasts {
        let handed = func.dfg.result(inst, 0);
        func.dfg.alias(handed, new);
        func.layout.remove_inst(inst);
    }
    Some(rule)
}
