//! Removes instructions and block parameters whose values nothing needs.
//!
//! Marks from the instructions that have an effect, then sweeps. A block parameter is needed only if a needed
//! instruction reaches it, so parameters that merely feed themselves around a loop go as well.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Function, Inst, Value, ValueDef};

use crate::edit::{KeptParams, drop_params, for_each_inst, incoming_arguments};
use crate::effects::is_removable;
use crate::pass::Context;

/// The pass.
pub fn remove_dead_code(func: &mut Function, ctx: &Context<'_>) -> bool {
    let marks = Marks::of(func, ctx);
    let mut dead: Vec<Inst> = Vec::new();
    for_each_inst(func, |inst| {
        if !marks.insts[inst] {
            dead.push(inst);
        }
    });
    for inst in &dead {
        func.layout.remove_inst(*inst);
    }
    let removed_params = remove_params(func, &marks);
    !dead.is_empty() || removed_params
}

/// What is needed.
struct Marks {
    insts: SecondaryMap<Inst, bool>,
    params: SecondaryMap<Value, bool>,
}

impl Marks {
    fn of(func: &Function, ctx: &Context<'_>) -> Marks {
        let mut marks = Marks { insts: SecondaryMap::new(), params: SecondaryMap::new() };
        let incoming = incoming_arguments(func);
        let mut work: Vec<Value> = Vec::new();
        for_each_inst(func, |inst| {
            if !is_removable(func, ctx, inst) {
                marks.insts[inst] = true;
                work.extend(func.dfg.args(inst));
            }
        });
        while let Some(value) = work.pop() {
            match func.dfg.def(value) {
                ValueDef::Result(inst, _) => {
                    if !std::mem::replace(&mut marks.insts[inst], true) {
                        work.extend(func.dfg.args(inst));
                    }
                }
                ValueDef::Param(block, index) => {
                    let param = func.dfg.resolve(value);
                    if !std::mem::replace(&mut marks.params[param], true) {
                        let index = usize::from(index);
                        work.extend(incoming[block].iter().filter_map(|args| args.get(index, &func.dfg.pool)));
                    }
                }
                ValueDef::Const(_) | ValueDef::Alias(_) => {}
            }
        }
        marks
    }
}

/// Drops parameters that are not needed. The entry block's are the function's signature and stay.
fn remove_params(func: &mut Function, marks: &Marks) -> bool {
    let entry = func.layout.entry();
    let mut kept = KeptParams::new();
    let mut any = false;
    for block in func.layout.blocks().filter(|block| Some(*block) != entry) {
        let flags: Vec<bool> = func.dfg.block_params(block).iter().map(|param| marks.params[*param]).collect();
        if flags.contains(&false) {
            kept[block] = Some(flags);
            any = true;
        }
    }
    if any {
        drop_params(func, &kept);
    }
    any
}
