//! Rules of blocks, branches and the order of definitions and uses.

use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashSet;

use super::functions::check_size;
use super::{Checked, Place, Report, Rule, fail, require};
use crate::cfg::Cfg;
use crate::dfg::ValueDef;
use crate::dominators::DominatorTree;
use crate::entities::{Block, Inst, Value};
use crate::instruction::{BlockCall, Extra, ValueList};
use crate::module::{Function, Module};
use crate::types::Type;

/// True when blocks, terminators, branches and operands are sound enough for everything else to look at them.
pub(super) fn check(module: &Module, func: &Function, report: &mut Report) -> bool {
    let before = report.errors.len();
    let Some(entry) = func.layout.entry() else { return false };
    report.add(Place::Func, entry_params(module, func, entry));
    for block in func.layout.blocks() {
        report.add(Place::Block(block), terminator(func, block));
        for inst in func.layout.insts(block) {
            report.add(Place::Inst(inst), side_data_exists(module, func, inst));
        }
    }
    if report.errors.len() > before {
        return false;
    }
    for block in func.layout.blocks() {
        for inst in func.layout.insts(block) {
            let placed = Some(inst) == func.layout.last_inst(block) || !func.dfg.insts[inst].op.is_terminator();
            report.add(
                Place::Inst(inst),
                require(placed, Rule::TerminatorInside, || {
                    format!("`{}` ends a block and instructions follow", func.dfg.insts[inst].op.text())
                }),
            );
            report.add(Place::Inst(inst), targets(func, inst, entry));
            report.add(Place::Inst(inst), operands_defined(func, inst));
        }
    }
    own_lists(func, report);
    report.errors.len() == before
}

/// A list of values stands in one place. Passes change lists where they stand, and would change both of two.
fn own_lists(func: &Function, report: &mut Report) {
    let mut seen: FxHashSet<ValueList> = FxHashSet::default();
    // The empty list is the same everywhere and is never changed.
    let mut own = |list: ValueList| list.is_empty() || seen.insert(list);
    for block in func.layout.blocks() {
        let params = own(func.dfg.blocks[block].params);
        report.add(
            Place::Block(block),
            require(params, Rule::OwnList, || "the list of the block's parameters stands elsewhere too".to_string()),
        );
        for inst in func.layout.insts(block) {
            let mut all = own(func.dfg.insts[inst].args);
            func.dfg.for_each_target(inst, |target| all &= own(target.args));
            report.add(
                Place::Inst(inst),
                require(all, Rule::OwnList, || {
                    format!("a list of operands of `{}` stands elsewhere too", func.dfg.insts[inst].op.text())
                }),
            );
        }
    }
}

fn entry_params(module: &Module, func: &Function, entry: Block) -> Checked {
    let wanted = module.sig_params(&func.sig);
    let found: Vec<Type> = func.dfg.block_params(entry).iter().map(|v| func.dfg.ty(*v)).collect();
    require(wanted == found, Rule::EntryParams, || {
        format!("the entry block has parameters {found:?}, the signature {wanted:?}")
    })
}

fn terminator(func: &Function, block: Block) -> Checked {
    match func.layout.last_inst(block) {
        None => fail(Rule::Terminator, "the block is empty; it ends with no terminator"),
        Some(inst) => {
            let op = func.dfg.insts[inst].op;
            require(op.is_terminator(), Rule::Terminator, || {
                format!("the block ends with `{}`, which is no terminator", op.text())
            })
        }
    }
}

/// Indices into the function's tables, and the side data that the shape calls for.
fn side_data_exists(module: &Module, func: &Function, inst: Inst) -> Checked {
    let data = &func.dfg.insts[inst];
    require(super::operands::side_data_fits(module, func, data), Rule::SideData, || {
        format!("`{}` does not carry the data of its form", data.op.text())
    })?;
    match data.extra {
        Extra::Call(callee) => check_size(module, &module.funcs[callee].sig),
        Extra::CallIndirect(sig) => check_size(module, &func.dfg.signatures[sig]),
        _ => Ok(()),
    }
}

fn targets(func: &Function, inst: Inst, entry: Block) -> Checked {
    let mut result = Ok(());
    func.dfg.for_each_target(inst, |target| {
        if result.is_ok() {
            result = check_target(func, target, entry);
        }
    });
    result
}

fn check_target(func: &Function, target: &BlockCall, entry: Block) -> Checked {
    let exists = func.dfg.blocks.is_valid(target.block) && func.layout.is_placed(target.block);
    require(exists, Rule::BranchTarget, || "the target of the branch is no block of the function".to_string())?;
    require(target.block != entry, Rule::EntryBranch, || "a branch leads to the entry block".to_string())?;
    let params = func.dfg.block_params(target.block);
    let args = target.args.as_slice(&func.dfg.pool);
    require(params.len() == args.len(), Rule::BranchArgs, || {
        format!("the branch passes {} values, its target takes {}", args.len(), params.len())
    })?;
    for (index, (param, arg)) in params.iter().zip(args).enumerate() {
        let wanted = func.dfg.ty(*param);
        require(func.dfg.value_exists(*arg), Rule::OperandDefined, || "an argument does not exist".to_string())?;
        let found = func.dfg.ty(*arg);
        require(wanted == found, Rule::BranchArgs, || {
            format!("argument {} of the branch is {found}, the block takes {wanted}", index + 1)
        })?;
    }
    Ok(())
}

fn operands_defined(func: &Function, inst: Inst) -> Checked {
    let mut result = Ok(());
    func.dfg.for_each_use(inst, |value| {
        if result.is_ok() {
            result = operand_defined(func, value);
        }
    });
    result
}

fn operand_defined(func: &Function, value: Value) -> Checked {
    let defined = func.dfg.value_exists(value)
        && match func.dfg.def(value) {
            ValueDef::Result(inst, _) => func.layout.inst_block(inst).is_some_and(|b| func.layout.is_placed(b)),
            ValueDef::Param(block, index) => {
                func.layout.is_placed(block) && func.dfg.block_params(block).get(usize::from(index)).is_some()
            }
            ValueDef::Const(_) => return super::operands::constant_fits(func, value),
            ValueDef::Alias(_) => false,
        };
    require(defined, Rule::OperandDefined, || "an operand is defined nowhere in the function".to_string())
}

/// Definitions dominate uses. Uses in unreachable blocks are not looked at.
pub(super) fn check_dominance(func: &Function, report: &mut Report) {
    let cfg = Cfg::new(func);
    let tree = DominatorTree::new(&cfg);
    let mut position: SecondaryMap<Inst, u32> = SecondaryMap::with_capacity(func.dfg.insts.len());
    let mut next = 0;
    for block in func.layout.blocks() {
        for inst in func.layout.insts(block) {
            position[inst] = next;
            next += 1;
        }
    }
    for block in cfg.rpo() {
        for inst in func.layout.insts(*block) {
            let mut broken = false;
            func.dfg.for_each_use(inst, |value| {
                broken |= match func.dfg.def(value) {
                    ValueDef::Result(def, _) => match func.layout.inst_block(def) {
                        Some(def_block) if def_block == *block => position[def] >= position[inst],
                        Some(def_block) => !tree.dominates(&cfg, def_block, *block),
                        None => true,
                    },
                    ValueDef::Param(def_block, _) => !tree.dominates(&cfg, def_block, *block),
                    _ => false,
                };
            });
            let op = func.dfg.insts[inst].op;
            report.add(
                Place::Inst(inst),
                require(!broken, Rule::Dominance, || {
                    format!("an operand of `{}` is not defined on every way that leads here", op.text())
                }),
            );
        }
    }
}
