//! Changes of control flow: branches, blocks and their parameters.

use cranelift_entity::EntitySet;
use ptxc_ir::{Block, BlockCall, Extra, Flags, Function, Inst, InstData, Opcode, Type, Value, ValueList};

use crate::Reduction;
use crate::instructions::zero;

impl Reduction<'_> {
    /// Branches and switches to jumps, and ends in the middle.
    pub fn simplify_terminators(&mut self) {
        for id in self.bodies() {
            let blocks: Vec<Block> = self.module.funcs[id].layout.blocks().collect();
            for block in blocks {
                let func = &self.module.funcs[id];
                let Some(last) = func.layout.is_placed(block).then(|| func.layout.last_inst(block)).flatten() else {
                    continue;
                };
                let mut targets = Vec::new();
                func.dfg.for_each_target(last, |call| targets.push(*call));
                if targets.len() < 2 {
                    continue;
                }
                let jumps = targets.into_iter().any(|target| {
                    self.attempt_in(id, |func| {
                        replace_terminator(func, last, Opcode::Jump, &[], Extra::Jump(target));
                        true
                    })
                });
                if !jumps {
                    self.remove_cases(id, last);
                }
            }
        }
    }

    fn remove_cases(&mut self, id: ptxc_ir::FuncId, last: Inst) {
        let Extra::Switch(switch) = self.module.funcs[id].dfg.insts[last].extra else { return };
        let mut index = self.module.funcs[id].dfg.switches[switch].cases.len();
        while index > 0 {
            index -= 1;
            self.attempt_in(id, |func| {
                let cases = &mut func.dfg.switches[switch].cases;
                if index >= cases.len() {
                    return false;
                }
                cases.remove(index);
                remove_unreachable(func);
                true
            });
        }
    }

    /// Joins blocks with the only block that jumps to them.
    pub fn merge_blocks(&mut self) {
        for id in self.bodies() {
            // Many at a time, then one by one.
            let all = self.attempt_in(id, |func| {
                let blocks: Vec<Block> = func.layout.blocks().collect();
                blocks.into_iter().filter(|block| merge_next(func, *block)).count() > 0
            });
            if all {
                continue;
            }
            let blocks: Vec<Block> = self.module.funcs[id].layout.blocks().collect();
            for block in blocks {
                self.attempt_in(id, |func| func.layout.is_placed(block) && merge_next(func, block));
            }
        }
    }

    /// Parameters of blocks become one of what they receive, or zero.
    pub fn remove_block_params(&mut self) {
        for id in self.bodies() {
            let func = &self.module.funcs[id];
            let blocks: Vec<Block> = func.layout.blocks().skip(1).collect();
            for block in blocks {
                let mut index = self.module.funcs[id].dfg.block_params(block).len();
                while index > 0 {
                    index -= 1;
                    let mut received = received(&self.module.funcs[id], block, index);
                    received.truncate(3);
                    let choices = std::iter::once(None).chain(received.into_iter().map(Some));
                    for choice in choices {
                        if self.attempt_in(id, |func| remove_block_param(func, block, index, choice)) {
                            break;
                        }
                    }
                }
            }
        }
    }
}

fn replace_terminator(func: &mut Function, inst: Inst, op: Opcode, args: &[Value], extra: Extra) {
    let args = ValueList::from_slice(args, &mut func.dfg.pool);
    func.dfg.insts[inst] = InstData { op, flags: Flags::EMPTY, ty: Type::INVALID, args, extra };
    remove_unreachable(func);
}

/// Takes blocks that nothing leads to out of the function.
fn remove_unreachable(func: &mut Function) {
    let Some(entry) = func.layout.entry() else { return };
    let mut seen: EntitySet<Block> = EntitySet::new();
    let mut left = vec![entry];
    while let Some(block) = left.pop() {
        if !seen.insert(block) {
            continue;
        }
        if let Some(last) = func.layout.last_inst(block) {
            func.dfg.for_each_target(last, |call| left.push(call.block));
        }
    }
    let unreachable: Vec<Block> = func.layout.blocks().filter(|b| !seen.contains(*b)).collect();
    unreachable.into_iter().for_each(|block| func.layout.remove_block(block));
}

/// Branches to a block.
fn calls(func: &Function, block: Block) -> Vec<BlockCall> {
    let mut out = Vec::new();
    for from in func.layout.blocks() {
        if let Some(last) = func.layout.last_inst(from) {
            func.dfg.for_each_target(last, |call| {
                if call.block == block {
                    out.push(*call);
                }
            });
        }
    }
    out
}

/// What a parameter receives, without repetition.
fn received(func: &Function, block: Block, index: usize) -> Vec<Value> {
    let mut values: Vec<Value> = calls(func, block)
        .iter()
        .filter_map(|call| call.args.as_slice(&func.dfg.pool).get(index).map(|v| func.dfg.resolve(*v)))
        .collect();
    values.sort_unstable();
    values.dedup();
    values
}

fn remove_block_param(func: &mut Function, block: Block, index: usize, value: Option<Value>) -> bool {
    let Some(param) = func.dfg.block_params(block).get(index).copied() else { return false };
    let value = value.unwrap_or_else(|| zero(func, func.dfg.ty(param)));
    if func.dfg.resolve(value) == func.dfg.resolve(param) {
        return false;
    }
    let blocks: Vec<Block> = func.layout.blocks().collect();
    for from in blocks {
        let Some(last) = func.layout.last_inst(from) else { continue };
        func.dfg.for_each_target_mut(last, |call, pool| {
            if call.block == block {
                let mut args = call.args.as_slice(pool).to_vec();
                if index < args.len() {
                    args.remove(index);
                }
                call.args = ValueList::from_slice(&args, pool);
            }
        });
    }
    func.dfg.retain_block_params(block, |at, _| at != index);
    func.dfg.alias(param, value);
    true
}

/// Appends the block that this one jumps to, if nothing else leads there. Repeats.
fn merge_next(func: &mut Function, block: Block) -> bool {
    let mut changed = false;
    loop {
        let Some(last) = func.layout.is_placed(block).then(|| func.layout.last_inst(block)).flatten() else {
            return changed;
        };
        let Extra::Jump(call) = func.dfg.insts[last].extra else { return changed };
        let next = call.block;
        if next == block || func.layout.entry() == Some(next) || calls(func, next).len() != 1 {
            return changed;
        }
        let args = call.args.as_slice(&func.dfg.pool).to_vec();
        let params = func.dfg.block_params(next).to_vec();
        if params.iter().zip(&args).any(|(p, a)| func.dfg.resolve(*a) == *p) {
            return changed;
        }
        for (param, arg) in params.into_iter().zip(args) {
            func.dfg.alias(param, arg);
        }
        func.dfg.retain_block_params(next, |_, _| false);
        func.layout.remove_inst(last);
        if let Some(first) = func.layout.first_inst(next) {
            func.layout.split_off(first, block);
        }
        func.layout.remove_block(next);
        changed = true;
    }
}
