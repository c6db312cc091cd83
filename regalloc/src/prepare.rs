//! Makes a function ready: reachable blocks only, and no value that is merely another's name.

use crate::RegallocError;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use ptxc_mir::{Cfg, Function, Op, Operand, VReg};

/// Which value another is a copy of.
struct Aliases(SecondaryMap<VReg, PackedOption<VReg>>);

impl Aliases {
    /// The value behind a name. Chains are shortened as they are followed.
    fn resolve(&mut self, vreg: VReg) -> VReg {
        let mut root = vreg;
        while let Some(next) = self.0[root].expand() {
            root = next;
        }
        let mut v = vreg;
        while let Some(next) = self.0[v].expand() {
            if next != root {
                self.0[v] = root.into();
            }
            v = next;
        }
        root
    }
}

/// Drops unreachable blocks from the layout, replaces the results of copies and the parameters of blocks with one
/// predecessor by what they stand for, and removes those copies and parameters.
pub(crate) fn prepare(func: &mut Function, cfg: &Cfg) -> Result<(), RegallocError> {
    func.layout.retain(|&block| cfg.reachable(block));
    check_arguments(func)?;
    let mut aliases = Aliases(SecondaryMap::with_capacity(func.vregs.len()));
    let mut any = false;
    // Definitions come before uses in reverse postorder, so every chain ends at a value that is no alias.
    for block in cfg.reverse_postorder() {
        any |= alias_params(func, cfg, block, &mut aliases);
        any |= alias_copies(func, block, &mut aliases);
    }
    if any {
        substitute(func, &mut aliases);
    }
    Ok(())
}

fn check_arguments(func: &Function) -> Result<(), RegallocError> {
    for &block in &func.layout {
        let mut wrong = None;
        func.blocks[block].terminator.for_each_target(|t| {
            if func.args.get(t.as_range()).is_none_or(|a| a.len() != func.blocks[t.block].params.len()) {
                wrong = Some(t.block);
            }
        });
        if let Some(target) = wrong {
            return Err(RegallocError::Arguments(block, target));
        }
    }
    Ok(())
}

fn alias_params(func: &mut Function, cfg: &Cfg, block: ptxc_mir::Block, aliases: &mut Aliases) -> bool {
    let &[pred] = cfg.predecessors(block) else { return false };
    if func.blocks[block].params.is_empty() || pred == block {
        return false;
    }
    let params = std::mem::take(&mut func.blocks[block].params);
    let args = &func.args;
    func.blocks[pred].terminator.for_each_target_mut(|t| {
        if t.block == block {
            for (&param, &arg) in params.iter().zip(&args[t.as_range()]) {
                aliases.0[param] = aliases.resolve(arg).into();
            }
            t.len = 0;
        }
    });
    true
}

fn alias_copies(func: &mut Function, block: ptxc_mir::Block, aliases: &mut Aliases) -> bool {
    let Function { blocks, insts, operands, .. } = func;
    let list = &mut blocks[block].insts;
    let before = list.len();
    list.retain(|&inst| {
        let data = &insts[inst];
        match (data.op, data.guard, &operands[data.operands.as_range()]) {
            (Op::Copy(_), None, &[Operand::Def(to), Operand::Use(from)]) => {
                aliases.0[to] = aliases.resolve(from).into();
                false
            }
            _ => true,
        }
    });
    list.len() != before
}

fn substitute(func: &mut Function, aliases: &mut Aliases) {
    for i in 0..func.layout.len() {
        let block = func.layout[i];
        for j in 0..func.blocks[block].insts.len() {
            let inst = func.blocks[block].insts[j];
            if let Some(guard) = &mut func.insts[inst].guard {
                guard.pred = aliases.resolve(guard.pred);
            }
            for operand in func.inst_operands_mut(inst) {
                if let Some(used) = operand.used() {
                    operand.set_used(aliases.resolve(used));
                }
            }
        }
        let Function { blocks, args, .. } = func;
        let terminator = &mut blocks[block].terminator;
        if let Some(condition) = terminator.condition() {
            terminator.set_condition(aliases.resolve(condition));
        }
        terminator.for_each_target(|t| {
            for arg in &mut args[t.as_range()] {
                *arg = aliases.resolve(*arg);
            }
        });
    }
}
