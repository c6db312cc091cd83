//! Before and after: unreachable blocks, the order of blocks, aliases and dead instructions.

use cranelift_entity::{EntitySet, SecondaryMap};
use ptxc_ir::{Block, Effect, Function, Inst, Value};

/// Reachable blocks in reverse postorder.
pub(super) fn reverse_postorder(func: &Function) -> Vec<Block> {
    let mut order = Vec::new();
    let Some(entry) = func.layout.entry() else { return order };
    let mut seen: EntitySet<Block> = EntitySet::with_capacity(func.dfg.blocks.len());
    seen.insert(entry);
    let mut stack = vec![(entry, successors(func, entry), 0)];
    while let Some((block, targets, next)) = stack.last_mut() {
        match targets.get(*next).copied() {
            Some(target) => {
                *next += 1;
                if seen.insert(target) {
                    let targets = successors(func, target);
                    stack.push((target, targets, 0));
                }
            }
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}

fn successors(func: &Function, block: Block) -> smallvec::SmallVec<[Block; 2]> {
    let mut out = smallvec::SmallVec::new();
    if let Some(last) = func.layout.last_inst(block) {
        func.dfg.for_each_target(last, |target| out.push(target.block));
    }
    out
}

/// Removes blocks that `order` does not name.
pub(super) fn remove_unreachable(func: &mut Function, order: &[Block]) {
    let mut reachable: EntitySet<Block> = EntitySet::with_capacity(func.dfg.blocks.len());
    for block in order {
        reachable.insert(*block);
    }
    let dead: Vec<Block> = func.layout.blocks().filter(|b| !reachable.contains(*b)).collect();
    for block in dead {
        let insts: Vec<Inst> = func.layout.insts(block).collect();
        for inst in insts {
            func.layout.remove_inst(inst);
        }
        func.layout.remove_block(block);
    }
}

fn is_removable(func: &Function, inst: Inst) -> bool {
    matches!(func.dfg.insts[inst].op.info().effect, Effect::Pure | Effect::Traps)
}

/// How often each value is used, in a function whose aliases are resolved.
pub(super) fn count_uses(func: &Function) -> SecondaryMap<Value, u32> {
    let mut uses = SecondaryMap::with_capacity(func.dfg.num_values());
    for block in func.layout.blocks() {
        for inst in func.layout.insts(block) {
            func.dfg.for_each_use(inst, |value| uses[value] += 1);
        }
    }
    uses
}

/// Writes every use of an alias as a use of what it stands for, and removes instructions without effect or use.
pub(super) fn resolve_and_sweep(func: &mut Function) {
    let mut uses: SecondaryMap<Value, u32> = SecondaryMap::with_capacity(func.dfg.num_values());
    let blocks: Vec<Block> = func.layout.blocks().collect();
    for block in &blocks {
        let mut next = func.layout.first_inst(*block);
        while let Some(inst) = next {
            next = func.layout.next_inst(inst);
            resolve_uses(func, inst);
            func.dfg.for_each_use(inst, |v| uses[v] += 1);
        }
    }
    let mut dead: Vec<Inst> = Vec::new();
    for block in &blocks {
        dead.extend(func.layout.insts(*block).filter(|inst| is_unused(func, &uses, *inst)));
    }
    while let Some(inst) = dead.pop() {
        func.layout.remove_inst(inst);
        let args: smallvec::SmallVec<[Value; 4]> = smallvec::SmallVec::from_slice(func.dfg.args(inst));
        for arg in args {
            uses[arg] -= 1;
            if uses[arg] == 0
                && let Some(def) = func.dfg.def_inst(arg)
                && func.layout.inst_block(def).is_some()
                && is_unused(func, &uses, def)
            {
                dead.push(def);
            }
        }
    }
}

fn is_unused(func: &Function, uses: &SecondaryMap<Value, u32>, inst: Inst) -> bool {
    is_removable(func, inst) && func.dfg.results(inst).all(|v| uses[v] == 0)
}

fn resolve_uses(func: &mut Function, inst: Inst) {
    let mut resolved: smallvec::SmallVec<[Value; 8]> = smallvec::SmallVec::new();
    let mut changed = false;
    func.dfg.for_each_use(inst, |v| {
        let to = func.dfg.resolve(v);
        changed |= to != v;
        resolved.push(to);
    });
    if changed {
        let mut resolved = resolved.into_iter();
        func.dfg.map_uses(inst, |v| resolved.next().unwrap_or(v));
    }
}
