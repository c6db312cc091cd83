//! Flags, attributes of accesses, hints and locations to their defaults.

use ptxc_ir::{Extra, Flags, Function, Inst, LoopHints, MemAttrs, Ordering, SourceLoc};

use crate::Reduction;

impl Reduction<'_> {
    /// Flags, attributes, hints and locations: all of a function at once, then one by one.
    pub fn remove_flags(&mut self) {
        for id in self.bodies() {
            let func = &self.module.funcs[id];
            let insts: Vec<Inst> = func.layout.blocks().flat_map(|block| func.layout.insts(block)).collect();
            let all = self.attempt_in(id, |func| insts.iter().filter(|inst| plain(func, **inst)).count() > 0);
            if !all {
                for inst in insts {
                    self.attempt_in(id, |func| plain(func, inst));
                }
            }
            self.attempt_in(id, |func| {
                let mut changed = false;
                for block in func.dfg.blocks.values_mut() {
                    changed |= block.hints != LoopHints::default();
                    block.hints = LoopHints::default();
                }
                changed
            });
        }
    }
}

fn plain(func: &mut Function, inst: Inst) -> bool {
    let data = &mut func.dfg.insts[inst];
    let mut changed = !data.flags.is_empty();
    data.flags = Flags::EMPTY;
    if let Extra::Mem(mem) = &mut data.extra
        && !mem.has_policy
    {
        let simple = MemAttrs { order: Ordering::NotAtomic, ..MemAttrs::aligned(mem.align()) };
        changed |= *mem != simple;
        *mem = simple;
    }
    if let Extra::Branch { weights, .. } = &mut data.extra {
        changed |= *weights != (0, 0);
        *weights = (0, 0);
    }
    if func.dfg.locs[inst] != SourceLoc::default() {
        changed = true;
        func.dfg.locs[inst] = SourceLoc::default();
    }
    changed
}
