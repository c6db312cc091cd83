//! Ballots that are compared, and values that are compared across a warp.

use ptxc_ir::{Extra, Flags, Function, FunctionBuilder, Inst, IntCC, Opcode, Type, Value};
use smallvec::SmallVec;

use super::{ALL_LANES, Users, operands};
use crate::pass::Context;
use crate::rules::Rule;

/// What a comparison asks of a ballot. That it is the whole mask is no `vote.all`: lanes that have left, or that a block of
/// no whole number of warps never had, are not in the ballot, but nobody asks them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Nobody,
    Somebody,
}

/// What a comparison of the number of ones with a constant asks.
fn of_count(cc: IntCC, bound: u128) -> Option<Asked> {
    use IntCC::*;
    Some(match (cc, bound) {
        (Eq | Ule | Sle, 0) | (Ult | Slt, 1) => Asked::Nobody,
        (Ne | Ugt | Sgt, 0) | (Uge | Sge, 1) => Asked::Somebody,
        _ => return None,
    })
}

/// A ballot that is compared and not used otherwise, or whose ones are counted for it.
pub(super) fn compared_ballot(func: &mut Function, users: &Users, root: Inst) -> Option<Rule> {
    let Extra::IntCC(cc) = func.dfg.insts[root].extra else { return None };
    let args = operands(func, root);
    let &[a, b] = args.as_slice() else { return None };
    let used_once = |value: Value, op: Opcode| {
        func.dfg.def_inst(value).filter(|inst| func.dfg.insts[*inst].op == op && users[value].len() == 1)
    };
    let is_ballot = |value: Value| used_once(value, Opcode::VoteBallot);
    let count = used_once(a, Opcode::Ctpop);
    let counted = count.and_then(|count| is_ballot(*operands(func, count).first()?));
    let (ballot, cc, other) = match (counted.or_else(|| is_ballot(a)), is_ballot(b)) {
        (Some(ballot), _) => (ballot, cc, b),
        (None, Some(ballot)) => (ballot, cc.swap(), a),
        (None, None) => return None,
    };
    let votes = operands(func, ballot);
    let &[predicate, mask] = votes.as_slice() else { return None };
    let number = func.dfg.as_bits(other)?;
    let asked = if counted.is_some() {
        of_count(cc, number)?
    } else {
        match (cc, number) {
            (IntCC::Eq | IntCC::Ule, 0) | (IntCC::Ult, 1) => Asked::Nobody,
            (IntCC::Ne | IntCC::Ugt, 0) | (IntCC::Uge, 1) => Asked::Somebody,
            _ => return None,
        }
    };
    let rule = if counted.is_some() { Rule::BallotCounted } else { Rule::BallotAny };
    let loc = func.dfg.locs[ballot];
    let mut builder = FunctionBuilder::before(func, ballot);
    builder.set_loc(loc);
    let made = builder.inst(Opcode::VoteAny, Flags::EMPTY, Type::INVALID, &[predicate, mask], Extra::None);
    let voted = builder.func.dfg.result(made, 0);
    let mut builder = FunctionBuilder::before(func, root);
    let answer = if asked == Asked::Nobody { builder.binary_imm(Opcode::Xor, voted, -1) } else { voted };
    let old = func.dfg.result(root, 0);
    func.dfg.alias(old, answer);
    func.layout.remove_inst(root);
    if let (Some(count), true) = (count, counted.is_some()) {
        func.layout.remove_inst(count);
    }
    func.layout.remove_inst(ballot);
    Some(rule)
}

/// All lanes find their value equal to that of one: `match.all` says so at once. Before sm_80 it takes as long as shuffle,
/// comparison and vote.
pub(super) fn all_alike(func: &mut Function, ctx: &Context<'_>, users: &Users, root: Inst) -> Option<Rule> {
    if !ctx.has_operation(Opcode::MatchAll, Flags::EMPTY, Type::I32) {
        return None;
    }
    let votes = operands(func, root);
    let &[predicate, mask] = votes.as_slice() else { return None };
    let compare = func.dfg.def_inst(predicate)?;
    let equal = matches!(func.dfg.insts[compare].extra, Extra::IntCC(IntCC::Eq));
    if func.dfg.as_bits(mask) != Some(ALL_LANES) || !equal || users[predicate].len() != 1 {
        return None;
    }
    let compared = operands(func, compare);
    let &[a, b] = compared.as_slice() else { return None };
    let (value, shuffle) = [(a, b), (b, a)].into_iter().find_map(|(value, other)| {
        let shuffle = func.dfg.def_inst(other).filter(|inst| func.dfg.insts[*inst].op == Opcode::ShflIdx)?;
        let args = operands(func, shuffle);
        let &[sent, lane, clamp, shuffled] = args.as_slice() else { return None };
        let bits = |value: Value| func.dfg.as_bits(value);
        let whole = bits(clamp) == Some(31) && bits(shuffled) == Some(ALL_LANES) && bits(lane)? < 32;
        let mut results = func.dfg.results(shuffle);
        let unused =
            results.next() == Some(other) && users[other].len() == 1 && results.all(|result| users[result].is_empty());
        (sent == value && whole && unused).then_some((value, shuffle))
    })?;
    // Threads come together once instead of twice: where they did.
    let ty = func.dfg.ty(value);
    if func.layout.inst_block(shuffle) != func.layout.inst_block(root) || !matches!(ty, Type::I32 | Type::I64) {
        return None;
    }
    let loc = func.dfg.locs[root];
    let mut builder = FunctionBuilder::before(func, root);
    builder.set_loc(loc);
    let made = builder.inst(Opcode::MatchAll, Flags::EMPTY, ty, &[value, mask], Extra::None);
    let (old, new): (Value, SmallVec<[Value; 2]>) = (func.dfg.result(root, 0), func.dfg.results(made).collect());
    func.dfg.alias(old, *new.get(1)?);
    for inst in [root, compare, shuffle] {
        func.layout.remove_inst(inst);
    }
    Some(Rule::AllAlike)
}
