//! Replaces what threads of a warp do in several steps by one operation on all of them.
//!
//! * A reduction over the whole warp in five shuffles is `redux`, which legalization makes a butterfly again where the target
//!   has none ([`trees`]): by a butterfly, or by shuffles down or up whose result is read in the one lane that has it.
//! * A ballot that is only compared, or whose ones are counted to be compared, with nobody or everybody is `vote.any` or `vote.all`
//!   ([`votes`]); all lanes compared with one of them are `match.all`.
//!
//! The threads that must come together are those of the same mask at the same place: the new operation stands in the block
//! of what it replaces. This is the one pass that replaces convergent instructions.
//!
//! Not here: `match.any`. It has no common form in straight code; what is written without it are loops over the values that are
//! left, whose number of rounds, and so whose shuffles, depend on the data.

mod lanes;
mod trees;
mod votes;

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Function, Inst, Opcode, Value};
use smallvec::SmallVec;

use crate::edit::resolve_all_uses;
use crate::pass::Context;

/// Every lane of a warp.
const ALL_LANES: u128 = 0xffff_ffff;

/// The instructions that use a value, one entry for each use.
type Users = SecondaryMap<Value, SmallVec<[Inst; 4]>>;

/// The pass.
pub fn combine_exchanges(func: &mut Function, ctx: &Context<'_>) -> bool {
    let is_exchange = |inst: Inst| {
        use Opcode::*;
        matches!(func.dfg.insts[inst].op, ShflBfly | ShflDown | ShflUp | ShflIdx | VoteBallot)
    };
    if !func.layout.blocks().any(|block| func.layout.insts(block).any(is_exchange)) {
        return false;
    }
    let mut users = Users::new();
    let mut roots: Vec<Inst> = Vec::new();
    for block in func.layout.blocks() {
        for inst in func.layout.insts(block) {
            func.dfg.for_each_use(inst, |value| users[func.dfg.resolve(value)].push(inst));
            match func.dfg.insts[inst].op {
                Opcode::Icmp | Opcode::VoteAll => roots.push(inst),
                op if trees::reduction(op).is_some() => roots.push(inst),
                _ => {}
            }
        }
    }
    let mut readers = lanes::Readers::default();
    let mut changed = false;
    // The last step of a tree comes first.
    for root in roots.into_iter().rev() {
        if func.layout.inst_block(root).is_none() {
            continue;
        }
        let rule = match func.dfg.insts[root].op {
            Opcode::Icmp => votes::compared_ballot(func, &users, root),
            Opcode::VoteAll => votes::all_alike(func, ctx, &users, root),
            _ => trees::tree(func, &users, &mut readers, root),
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

/// The operands of an instruction, without aliases.
fn operands(func: &Function, inst: Inst) -> SmallVec<[Value; 4]> {
    func.dfg.args(inst).iter().map(|value| func.dfg.resolve(*value)).collect()
}
