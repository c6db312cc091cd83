//! Uses what a branch found, in the blocks that only one of its ways leads to.
//!
//! Where a branch on `c` leads to a block that nothing else leads to, `c` holds there and in all blocks that the block
//! dominates; so do the parts of a conjunction, comparisons of the same two numbers, and comparisons of a number with other
//! constants that follow. A number that was equal to a constant is that constant. A `switch` says the same of its
//! operand. One walk over the dominator tree; what is known is forgotten where its block's subtree ends ([`facts`]).
//!
//! A condition that is poison may take either way, so a constant in its place is as good. Numbers are replaced in
//! computations alone: a store, a call or a block's parameter needs a register in any case, and the number has one.

mod facts;

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Block, BlockCall, Cfg, DominatorTree, Extra, Function, Inst, Opcode, Type, Value};
use smallvec::SmallVec;

use crate::edit::resolve_all_uses;
use crate::effects::is_function_of_operands;
use crate::pass::Context;
use crate::rules::Rule;
use crate::{fold_constants, simplify_control_flow};
use facts::Facts;

/// The pass.
pub fn apply_conditions(func: &mut Function, ctx: &Context<'_>) -> bool {
    let Some(entry) = func.layout.entry() else { return false };
    let cfg = Cfg::new(func);
    // Without a branch that decides anything there is nothing to do.
    if cfg.rpo().len() < 3 {
        return false;
    }
    let children = dominated(&cfg);
    let mut facts = Facts::default();
    let mut changed = false;
    // Each block twice: on the way down, and when its scope ends.
    let mut work: Vec<(Block, bool)> = vec![(entry, true)];
    while let Some((block, entering)) = work.pop() {
        if !entering {
            facts.leave();
            continue;
        }
        facts.enter();
        assume_way(func, &cfg, &mut facts, block);
        changed |= apply(func, ctx, &facts, block);
        work.push((block, false));
        work.extend(children[block].iter().rev().map(|child| (*child, true)));
    }
    if changed {
        resolve_all_uses(func);
        fold_constants(func, ctx);
        simplify_control_flow(func, ctx);
    }
    changed
}

/// The blocks that each block dominates immediately, in reverse postorder.
fn dominated(cfg: &Cfg) -> SecondaryMap<Block, SmallVec<[Block; 2]>> {
    let tree = DominatorTree::new(cfg);
    let mut children: SecondaryMap<Block, SmallVec<[Block; 2]>> = SecondaryMap::new();
    for block in cfg.rpo() {
        if let Some(parent) = tree.idom(cfg, *block) {
            children[parent].push(*block);
        }
    }
    children
}

/// What is known on the only way into a block, if there is one.
fn assume_way(func: &mut Function, cfg: &Cfg, facts: &mut Facts, block: Block) {
    let &[way] = cfg.preds(block) else { return };
    let leads_here = |target: &BlockCall| target.block == block;
    let Some(operand) = func.dfg.args(way.inst).first().map(|value| func.dfg.resolve(*value)) else { return };
    match func.dfg.insts[way.inst].extra {
        Extra::Branch { then, .. } => facts.assume(func, operand, leads_here(&then)),
        Extra::Switch(id) => {
            let case = func.dfg.switches[id].cases.iter().find(|(_, target)| leads_here(target));
            if let Some((number, _)) = case {
                let number = func.dfg.bits(func.dfg.ty(operand), *number);
                facts.assume_equal(func, operand, number);
            }
        }
        _ => {}
    }
}

/// Replaces what is known in a block.
fn apply(func: &mut Function, ctx: &Context<'_>, facts: &Facts, block: Block) -> bool {
    if facts.is_empty() {
        return false;
    }
    let mut changed = false;
    let mut next = func.layout.first_inst(block);
    while let Some(inst) = next {
        next = func.layout.next_inst(inst);
        changed |= apply_values(func, ctx, facts, inst);
        if let Some(truth) = facts.decided(func, inst)
            && let Some(result) = func.dfg.first_result(inst)
        {
            let known = func.dfg.int(Type::I1, -i64::from(truth));
            ctx.note(inst, Rule::ConditionImplied);
            func.dfg.alias(result, known);
            func.layout.remove_inst(inst);
            changed = true;
        }
    }
    changed
}

/// Replaces what an instruction reads and a branch decided.
fn apply_values(func: &mut Function, ctx: &Context<'_>, facts: &Facts, inst: Inst) -> bool {
    let op = func.dfg.insts[inst].op;
    let computes = matches!(op, Opcode::Br | Opcode::Switch)
        || op != Opcode::Target && op != Opcode::Asm && is_function_of_operands(func, inst);
    let leads = matches!(func.dfg.insts[inst].extra, Extra::Jump(_) | Extra::Branch { .. } | Extra::Switch(_));
    if !computes && !leads {
        return false;
    }
    let mut rule = None;
    if computes {
        for index in 0..func.dfg.args(inst).len() {
            let value = func.dfg.resolve(func.dfg.args(inst)[index]);
            let Some(known) = facts.value(value) else { continue };
            func.dfg.args_mut(inst)[index] = known;
            rule = Some(if func.dfg.ty(value) == Type::I1 { Rule::ConditionKnown } else { Rule::ConditionConstant });
        }
    }
    if leads {
        let replaced = |func: &Function, value: Value| {
            let value = func.dfg.resolve(value);
            facts.value(value).filter(|_| func.dfg.ty(value) == Type::I1)
        };
        let mut all: SmallVec<[Value; 8]> = SmallVec::new();
        let mut found = false;
        func.dfg.for_each_use(inst, |value| {
            let known = replaced(func, value);
            found |= known.is_some();
            all.push(known.unwrap_or(value));
        });
        if found {
            let mut all = all.into_iter();
            func.dfg.map_uses(inst, |value| all.next().unwrap_or(value));
            rule = rule.or(Some(Rule::ConditionKnown));
        }
    }
    if let Some(rule) = rule {
        ctx.note(inst, rule);
    }
    rule.is_some()
}
