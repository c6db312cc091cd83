//! Replaces what threads of a warp do in several steps by one operation on all of them.
//!
//! * A reduction by a butterfly of shuffles over the whole warp is `redux`, which legalization makes a butterfly again
//!   where the target has none.
//! * A ballot that is only compared with zero is `vote.any`, with its own mask `vote.all`.
//!
//! The threads that must come together are those of the same mask at the same place: the new operation stands in the block
//! of what it replaces. This is the one pass that replaces convergent instructions.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Extra, Flags, Function, FunctionBuilder, Inst, IntCC, Opcode, Type, TypeSet, Value};
use smallvec::SmallVec;

use crate::edit::resolve_all_uses;
use crate::pass::Context;
use crate::rules::Rule;

/// Every lane of a warp.
const ALL_LANES: u128 = 0xffff_ffff;

/// The pass.
pub fn combine_exchanges(func: &mut Function, ctx: &Context<'_>) -> bool {
    let mut uses: SecondaryMap<Value, u32> = SecondaryMap::new();
    let mut roots: Vec<Inst> = Vec::new();
    let mut exchanges = false;
    for block in func.layout.blocks() {
        for inst in func.layout.insts(block) {
            func.dfg.for_each_use(inst, |value| uses[func.dfg.resolve(value)] += 1);
            match func.dfg.insts[inst].op {
                Opcode::ShflBfly | Opcode::VoteBallot => exchanges = true,
                op if reduction(op).is_some() || op == Opcode::Icmp => roots.push(inst),
                _ => {}
            }
        }
    }
    if !exchanges {
        return false;
    }
    let mut changed = false;
    // The last step of a butterfly comes first.
    for root in roots.into_iter().rev() {
        let rule = if func.dfg.insts[root].op == Opcode::Icmp {
            compared_ballot(func, &uses, root)
        } else {
            butterfly(func, &uses, root)
        };
        if let Some(rule) = rule {
            ctx.note(root, rule);
            changed = true;
        }
    }
    if changed {
        resolve_all_uses(func);
    }
    changed
}

/// The operation over a warp that an operation on two operands makes.
fn reduction(op: Opcode) -> Option<Opcode> {
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

/// One step of a butterfly.
struct Step {
    /// The value that is exchanged.
    value: Value,
    /// The shuffle, and casts of a float to and from the integer that is exchanged.
    insts: SmallVec<[Inst; 4]>,
    /// How far it goes.
    distance: u128,
}

fn step(func: &Function, uses: &SecondaryMap<Value, u32>, inst: Inst) -> Option<Step> {
    let args: SmallVec<[Value; 2]> = func.dfg.args(inst).iter().map(|value| func.dfg.resolve(*value)).collect();
    let &[a, b] = args.as_slice() else { return None };
    exchanged(func, uses, inst, (a, b)).or_else(|| exchanged(func, uses, inst, (b, a)))
}

/// The step in which `other` is what another lane has of `own`.
fn exchanged(
    func: &Function,
    uses: &SecondaryMap<Value, u32>,
    inst: Inst,
    (own, other): (Value, Value),
) -> Option<Step> {
    let block = func.layout.inst_block(inst)?;
    let mut insts: SmallVec<[Inst; 4]> = SmallVec::new();
    // A cast that nothing else reads, and what it is of.
    let cast = |value: Value| {
        let cast = func.dfg.def_inst(value).filter(|def| func.dfg.insts[*def].op == Opcode::Bitcast)?;
        let of = func.dfg.resolve(*func.dfg.args(cast).first()?);
        (uses[value] == 1 && func.layout.inst_block(cast) == Some(block)).then_some((cast, of))
    };
    let is_float = func.dfg.insts[inst].ty == Type::F32;
    let mut received = other;
    if is_float && let Some((cast, of)) = cast(received) {
        insts.push(cast);
        received = of;
    }
    let shuffle = func.dfg.def_inst(received)?;
    if func.dfg.insts[shuffle].op != Opcode::ShflBfly || func.layout.inst_block(shuffle) != Some(block) {
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
    let read_once =
        results.first() == Some(&received) && uses[received] == 1 && results.iter().skip(1).all(|v| uses[*v] == 0);
    let whole = func.dfg.as_bits(clamp) == Some(31) && func.dfg.as_bits(mask) == Some(ALL_LANES);
    (value == own && read_once && whole).then_some(())?;
    Some(Step { value, insts, distance: func.dfg.as_bits(distance)? })
}

/// Five steps that reach every lane.
fn butterfly(func: &mut Function, uses: &SecondaryMap<Value, u32>, root: Inst) -> Option<Rule> {
    let data = &func.dfg.insts[root];
    let (op, redux, ty) = (data.op, reduction(data.op)?, data.ty);
    if redux.info().types != if ty == Type::F32 { TypeSet::F32 } else { TypeSet::I32 } || ty.bits() != 32 {
        return None;
    }
    let (mut at, mut lanes) = (root, 0);
    let mut replaced: SmallVec<[Inst; 8]> = SmallVec::new();
    let source = loop {
        if func.dfg.insts[at].flags.contains(Flags::FTZ) {
            return None;
        }
        let Step { value, insts, distance } = step(func, uses, at)?;
        if !distance.is_power_of_two() || distance > 16 || lanes & distance != 0 {
            return None;
        }
        lanes |= distance;
        replaced.extend(insts);
        if lanes == 31 {
            break value;
        }
        let inner = func.dfg.def_inst(value).filter(|inner| func.dfg.insts[*inner].op == op && uses[value] == 2)?;
        if func.layout.inst_block(inner) != func.layout.inst_block(root) {
            return None;
        }
        replaced.push(inner);
        at = inner;
    };
    let loc = func.dfg.locs[root];
    let mut builder = FunctionBuilder::before(func, root);
    builder.set_loc(loc);
    let mask = builder.bits(Type::I32, ALL_LANES);
    let made = builder.inst(redux, Flags::EMPTY, ty, &[source, mask], Extra::None);
    let (old, new) = (func.dfg.result(root, 0), func.dfg.result(made, 0));
    func.dfg.alias(old, new);
    func.layout.remove_inst(root);
    for inst in replaced {
        func.layout.remove_inst(inst);
    }
    Some(if ty == Type::F32 { Rule::ButterflyFloat } else { Rule::ButterflyRedux })
}

/// A ballot that is compared and not used otherwise.
fn compared_ballot(func: &mut Function, uses: &SecondaryMap<Value, u32>, root: Inst) -> Option<Rule> {
    let Extra::IntCC(cc @ (IntCC::Eq | IntCC::Ne)) = func.dfg.insts[root].extra else { return None };
    let args: SmallVec<[Value; 2]> = func.dfg.args(root).iter().map(|value| func.dfg.resolve(*value)).collect();
    let &[a, b] = args.as_slice() else { return None };
    let is_ballot = |value: Value| {
        func.dfg.def_inst(value).filter(|inst| func.dfg.insts[*inst].op == Opcode::VoteBallot && uses[value] == 1)
    };
    let (ballot, other) = match (is_ballot(a), is_ballot(b)) {
        (Some(ballot), _) => (ballot, b),
        (None, Some(ballot)) => (ballot, a),
        (None, None) => return None,
    };
    let &[predicate, mask] = func.dfg.args(ballot) else { return None };
    let (predicate, mask) = (func.dfg.resolve(predicate), func.dfg.resolve(mask));
    // Somebody is told apart from nobody, all from fewer.
    let (vote, inverted, rule) = if func.dfg.as_bits(other) == Some(0) {
        (Opcode::VoteAny, cc == IntCC::Eq, Rule::BallotAny)
    } else if other == mask {
        (Opcode::VoteAll, cc == IntCC::Ne, Rule::BallotAll)
    } else {
        return None;
    };
    let loc = func.dfg.locs[ballot];
    let mut builder = FunctionBuilder::before(func, ballot);
    builder.set_loc(loc);
    let made = builder.inst(vote, Flags::EMPTY, Type::INVALID, &[predicate, mask], Extra::None);
    let voted = builder.func.dfg.result(made, 0);
    let mut builder = FunctionBuilder::before(func, root);
    let answer = if inverted { builder.binary_imm(Opcode::Xor, voted, -1) } else { voted };
    let old = func.dfg.result(root, 0);
    func.dfg.alias(old, answer);
    func.layout.remove_inst(root);
    func.layout.remove_inst(ballot);
    Some(rule)
}
