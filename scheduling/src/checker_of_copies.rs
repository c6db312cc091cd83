//! Accepts or rejects that values were made again: that a function is another one, with computations repeated before
//! readers of what they make.
//!
//! It shares with what makes them nothing but the facts. What is left of the old instructions has to be the same in the
//! same order, where each reads either the old register or one that was made before it in its block: by an instruction that
//! equals the maker of the old register but for its result, and that may be executed anywhere. What that one reads has
//! to be there. Only makers of what nobody reads any more may be gone.

use crate::Violation;
use crate::facts::FunctionFacts;
use ptxc_mir::{Block, Function, Inst, Operand, VReg};
use rustc_hash::{FxHashMap, FxHashSet};

/// Checks that `new` is `old` with values made again.
///
/// # Errors
/// The first fault.
pub fn check_copies(old: &Function, new: &Function, facts: &FunctionFacts<'_>) -> Result<(), Violation> {
    let mut makers: FxHashMap<VReg, Inst> = FxHashMap::default();
    for &inst in old.layout.iter().flat_map(|&block| &old.blocks[block].insts) {
        old.for_each_def(inst, |reg| {
            makers.insert(reg, inst);
        });
    }
    let mut read: FxHashSet<VReg> = FxHashSet::default();
    for &block in &new.layout {
        new.blocks[block].insts.iter().for_each(|&inst| {
            new.for_each_use(inst, |reg| {
                read.insert(reg);
            })
        });
        new.for_each_terminator_use(block, |reg| {
            read.insert(reg);
        });
    }
    let checker = Checker { old, new, facts, makers, read };
    new.layout.iter().try_for_each(|&block| checker.block(block).map_err(|reason| Violation::Copies { block, reason }))
}

struct Checker<'a> {
    old: &'a Function,
    new: &'a Function,
    facts: &'a FunctionFacts<'a>,
    /// What makes each register of the old function.
    makers: FxHashMap<VReg, Inst>,
    /// Registers that the new function reads.
    read: FxHashSet<VReg>,
}

impl Checker<'_> {
    fn block(&self, block: Block) -> Result<(), &'static str> {
        let (old, new) = (&self.old.blocks[block], &self.new.blocks[block]);
        let mut left = old.insts.iter();
        // Registers of the block that are not written yet, and those made again so far.
        let mut missing: FxHashSet<VReg> = FxHashSet::default();
        old.insts.iter().for_each(|&inst| {
            self.old.for_each_def(inst, |reg| {
                missing.insert(reg);
            })
        });
        let mut made: FxHashMap<VReg, Inst> = FxHashMap::default();
        for &inst in &new.insts {
            if !self.old.insts.is_valid(inst) {
                let mut there = true;
                self.new.for_each_use(inst, |reg| there &= !missing.contains(&reg));
                self.new.for_each_def(inst, |reg| {
                    made.insert(reg, inst);
                });
                if !there || self.old.vregs.is_valid(self.result(inst).ok_or("something new is done")?) {
                    return Err("what is made again reads what is not there, or writes an old register");
                }
                continue;
            }
            if left.by_ref().find(|other| **other == inst || !self.is_dead(**other)) != Some(&inst) {
                return Err("an instruction is gone or out of order");
            }
            if !self.reads_the_same(inst, &made) {
                return Err("an instruction reads something else");
            }
            self.new.for_each_def(inst, |reg| {
                missing.remove(&reg);
            });
        }
        if !left.all(|&inst| self.is_dead(inst)) {
            return Err("an instruction is gone");
        }
        let (mut before, mut after) = (Vec::new(), Vec::new());
        self.old.for_each_terminator_use(block, |reg| before.push(reg));
        self.new.for_each_terminator_use(block, |reg| after.push(reg));
        if before == after { Ok(()) } else { Err("the branch reads something else") }
    }

    /// The only register that a new instruction writes.
    fn result(&self, inst: Inst) -> Option<VReg> {
        let mut results = self.new.inst_operands(inst).iter().filter_map(|operand| operand.def());
        results.next().filter(|_| results.next().is_none())
    }

    /// Whether an old instruction may be gone.
    fn is_dead(&self, inst: Inst) -> bool {
        let mut dead = self.facts.may_skip(self.old, inst);
        self.old.for_each_def(inst, |reg| dead &= !self.read.contains(&reg));
        dead
    }

    /// Whether an old instruction reads what it read, as it is or made again.
    fn reads_the_same(&self, inst: Inst, made: &FxHashMap<VReg, Inst>) -> bool {
        let (old, new) = (self.old.inst_operands(inst), self.new.inst_operands(inst));
        let same = |(old, new): (&Operand, &Operand)| {
            let (Some(was), Some(is)) = (old.used(), new.used()) else { return old == new };
            let mut renamed = *old;
            renamed.set_used(is);
            renamed == *new && (was == is || made.get(&is).is_some_and(|copy| self.is_copy(was, *copy)))
        };
        let head = |func: &Function| (func.insts[inst].op, func.insts[inst].guard);
        head(self.old) == head(self.new) && old.len() == new.len() && old.iter().zip(new).all(same)
    }

    /// Whether a new instruction makes what an old register holds.
    fn is_copy(&self, reg: VReg, copy: Inst) -> bool {
        let Some(&maker) = self.makers.get(&reg) else { return false };
        let (was, is) = (self.old.insts[maker], self.new.insts[copy]);
        let (old, new) = (self.old.inst_operands(maker), self.new.inst_operands(copy));
        let same = |(old, new): (&Operand, &Operand)| match (old, new) {
            (Operand::Def(_), Operand::Def(_)) => true,
            _ => old == new,
        };
        let is_same =
            was.op == is.op && was.guard == is.guard && old.len() == new.len() && old.iter().zip(new).all(same);
        is_same && self.facts.may_speculate(self.old, maker)
    }
}
