//! Resolves branches that always go one way, removes blocks that cannot be reached, skips blocks that only jump on,
//! and joins a block with its only predecessor.
//!
//! Every step removes blocks or edges and copies no instruction, so a convergent instruction keeps the set of threads
//! that execute it. A block that heads an annotated loop is not skipped: its annotation would be lost.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Block, BlockCall, Extra, Function, Inst, LoopHints, Value, ValueList};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::edit::{for_each_inst, make_jump, resolve_all_uses};
use crate::pass::Context;

/// The pass.
pub fn simplify_control_flow(func: &mut Function, _ctx: &Context<'_>) -> bool {
    let mut changed = resolve_branches(func);
    changed |= skip_empty_blocks(func);
    // Skipping makes branches whose targets are one block.
    changed |= resolve_branches(func);
    changed |= remove_unreachable_blocks(func);
    changed |= join_chains(func);
    changed
}

/// Turns terminators that have one possible target into `jump`.
fn resolve_branches(func: &mut Function) -> bool {
    let terminators: Vec<Inst> = func.layout.blocks().filter_map(|block| func.layout.last_inst(block)).collect();
    let mut changed = false;
    for inst in terminators {
        if let Some(target) = only_target(func, inst) {
            make_jump(func, inst, target);
            changed = true;
        }
    }
    changed
}

/// Where a `br` or `switch` always goes, if that is known.
fn only_target(func: &Function, inst: Inst) -> Option<BlockCall> {
    let dfg = &func.dfg;
    let constant = dfg.args(inst).first().and_then(|value| dfg.as_bits(*value));
    match &dfg.insts[inst].extra {
        Extra::Branch { then, other, .. } => match constant {
            Some(0) => Some(*other),
            Some(_) => Some(*then),
            None => same_target(func, then, other).then_some(*then),
        },
        Extra::Switch(id) => {
            let data = &dfg.switches[*id];
            match constant {
                Some(value) => {
                    let case = data.cases.iter().find(|(number, _)| *number == value);
                    Some(case.map_or(data.default, |(_, target)| *target))
                }
                None => data
                    .cases
                    .iter()
                    .all(|(_, target)| same_target(func, target, &data.default))
                    .then_some(data.default),
            }
        }
        _ => None,
    }
}

fn same_target(func: &Function, a: &BlockCall, b: &BlockCall) -> bool {
    a.block == b.block && a.args.as_slice(&func.dfg.pool) == b.args.as_slice(&func.dfg.pool)
}

/// Takes blocks out that the entry does not lead to.
fn remove_unreachable_blocks(func: &mut Function) -> bool {
    let Some(entry) = func.layout.entry() else { return false };
    let mut reached: SecondaryMap<Block, bool> = SecondaryMap::new();
    let mut work = vec![entry];
    reached[entry] = true;
    while let Some(block) = work.pop() {
        let Some(last) = func.layout.last_inst(block) else { continue };
        func.dfg.for_each_target(last, |target| {
            if !std::mem::replace(&mut reached[target.block], true) {
                work.push(target.block);
            }
        });
    }
    let dead: Vec<Block> = func.layout.blocks().filter(|block| !reached[*block]).collect();
    for block in &dead {
        func.layout.remove_block(*block);
    }
    !dead.is_empty()
}

/// Where a block that only jumps leads, with arguments in terms of its own parameters.
#[derive(Clone)]
struct Forward {
    target: Block,
    args: SmallVec<[Value; 4]>,
}

/// Redirects edges into blocks that only jump on to where those blocks jump.
fn skip_empty_blocks(func: &mut Function) -> bool {
    let kept = blocks_to_keep(func);
    let mut forwards: SecondaryMap<Block, Option<Forward>> = SecondaryMap::new();
    let mut any = false;
    let blocks: Vec<Block> = func.layout.blocks().collect();
    // From the end, so that a chain of empty blocks is followed in one step wherever it runs forward.
    for block in blocks.iter().rev() {
        let Some(forward) = forward_of(func, *block, &kept) else { continue };
        let forward = match &forwards[forward.target] {
            Some(next) if next.target != *block => substitute(func, next, forward.target, &forward.args),
            Some(_) => continue,
            None => forward,
        };
        if forward.target != *block {
            forwards[*block] = Some(forward);
            any = true;
        }
    }
    any && redirect(func, &blocks, &forwards)
}

/// Rewrites all branch targets by `forwards`.
fn redirect(func: &mut Function, blocks: &[Block], forwards: &SecondaryMap<Block, Option<Forward>>) -> bool {
    let mut changed = false;
    for block in blocks {
        // The jumps of skipped blocks stay as they are: nothing leads there any more.
        if forwards[*block].is_some() && Some(*block) != func.layout.entry() {
            continue;
        }
        let Some(last) = func.layout.last_inst(*block) else { continue };
        let mut targets: SmallVec<[(Block, ValueList); 2]> = SmallVec::new();
        func.dfg.for_each_target(last, |target| targets.push((target.block, target.args)));
        if targets.iter().all(|(target, _)| forwards[*target].is_none()) {
            continue;
        }
        let mut rewritten: SmallVec<[BlockCall; 2]> = SmallVec::new();
        for (target, args) in targets {
            let call = match &forwards[target] {
                Some(forward) => {
                    let args: SmallVec<[Value; 4]> = args.as_slice(&func.dfg.pool).iter().copied().collect();
                    let to = substitute(func, forward, target, &args);
                    func.dfg.block_call(to.target, &to.args)
                }
                None => BlockCall { block: target, args },
            };
            rewritten.push(call);
        }
        let mut next = rewritten.into_iter();
        func.dfg.for_each_target_mut(last, |target, _| {
            if let Some(call) = next.next() {
                *target = call;
            }
        });
        changed = true;
    }
    changed
}

/// `forward`'s arguments with the parameters of `block` replaced by `args`.
fn substitute(func: &Function, forward: &Forward, block: Block, args: &[Value]) -> Forward {
    let params = func.dfg.block_params(block);
    let replace = |value: &Value| match params.iter().position(|param| param == value) {
        Some(index) => args.get(index).copied().unwrap_or(*value),
        None => *value,
    };
    Forward { target: forward.target, args: forward.args.iter().map(replace).collect() }
}

/// Most parameters of a block that is skipped; bounds the search in [`substitute`].
const MAX_SKIPPED_PARAMS: usize = 16;

/// Where a block leads that holds nothing but a `jump`, if it may be skipped.
fn forward_of(func: &Function, block: Block, kept: &FxHashSet<Block>) -> Option<Forward> {
    let last = func.layout.first_inst(block)?;
    let Extra::Jump(target) = func.dfg.insts[last].extra else { return None };
    let annotated = func.dfg.blocks[block].hints != LoopHints::default();
    let too_many = func.dfg.block_params(block).len() > MAX_SKIPPED_PARAMS;
    if target.block == block || annotated || too_many || kept.contains(&block) || func.layout.entry() == Some(block) {
        return None;
    }
    let args = target.args.as_slice(&func.dfg.pool).iter().copied().collect();
    Some(Forward { target: target.block, args })
}

/// Blocks that may not be skipped although they are empty: those with a parameter that is used in another block, and
/// those that gather several edges back to the head of a loop. Without the latter the loop would have several latches,
/// and `ptxas` stops unrolling loops that do.
fn blocks_to_keep(func: &Function) -> FxHashSet<Block> {
    let mut kept = FxHashSet::default();
    for_each_inst(func, |inst| {
        let here = func.layout.inst_block(inst);
        func.dfg.for_each_use(inst, |value| {
            if let ptxc_ir::ValueDef::Param(block, _) = func.dfg.def(value)
                && Some(block) != here
            {
                kept.insert(block);
            }
        });
    });
    let edges = count_edges(func);
    let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
    for block in func.layout.blocks() {
        seen[block] = true;
        if let Some(last) = func.layout.last_inst(block)
            && let Extra::Jump(target) = func.dfg.insts[last].extra
            && seen[target.block]
            && edges[block] > 1
        {
            kept.insert(block);
        }
    }
    kept
}

/// Number of edges into each block.
fn count_edges(func: &Function) -> SecondaryMap<Block, u32> {
    let mut edges: SecondaryMap<Block, u32> = SecondaryMap::new();
    for block in func.layout.blocks() {
        if let Some(last) = func.layout.last_inst(block) {
            func.dfg.for_each_target(last, |target| edges[target.block] += 1);
        }
    }
    edges
}

/// Appends each block to its only predecessor when that one jumps to it.
fn join_chains(func: &mut Function) -> bool {
    let edges = count_edges(func);
    let entry = func.layout.entry();
    let mut changed = false;
    let mut next = entry;
    while let Some(block) = next {
        while let Some(successor) = joinable(func, block, &edges) {
            if Some(successor) == entry {
                break;
            }
            join(func, block, successor);
            changed = true;
        }
        next = func.layout.next_block(block);
    }
    if changed {
        resolve_all_uses(func);
    }
    changed
}

/// The block that `block` jumps to, when no other edge leads there.
fn joinable(func: &Function, block: Block, edges: &SecondaryMap<Block, u32>) -> Option<Block> {
    let last = func.layout.last_inst(block)?;
    let Extra::Jump(target) = func.dfg.insts[last].extra else { return None };
    (edges[target.block] == 1 && target.block != block).then_some(target.block)
}

/// Moves the instructions of `successor` to the end of `block`, in place of its jump.
fn join(func: &mut Function, block: Block, successor: Block) {
    let Some(jump) = func.layout.last_inst(block) else { return };
    let Extra::Jump(target) = func.dfg.insts[jump].extra else { return };
    let args: SmallVec<[Value; 4]> = target.args.as_slice(&func.dfg.pool).iter().copied().collect();
    let params: SmallVec<[Value; 4]> = func.dfg.block_params(successor).iter().copied().collect();
    for (param, arg) in params.into_iter().zip(args) {
        func.dfg.alias(param, arg);
    }
    func.layout.remove_inst(jump);
    if let Some(first) = func.layout.first_inst(successor) {
        func.layout.split_off(first, block);
    }
    func.layout.remove_block(successor);
}
