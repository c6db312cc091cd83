//! Moves of instructions between neighbours in a superblock: to the end of the block above, or to the start of the block
//! below. Orders within the blocks are made afterwards.
//!
//! * *Up* past a way out goes what may be executed where the program would not have come to it, with operands that are
//!   there.
//! * *Down* past a way out goes what may be left out, whose results nobody reads on that way, and which no later
//!   instruction of the block has to follow.
//! * Past a jump that is the only way goes everything that keeps its place among what is not pure.
//!
//! What would make register assignment move a register stays: tied operands, readers of a register that is overwritten
//! before, and values that go around a loop.

use crate::facts::{Facts, FunctionFacts};
use crate::live::Liveness;
use cranelift_entity::SecondaryMap;
use ptxc_mir::{Block, Function, Inst, Operand, Terminator, VReg};

/// Two neighbours in a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seam {
    /// The block above.
    pub above: Block,
    /// The block below, which is entered from `above` only.
    pub below: Block,
}

/// Finds what can move; keeps what it allocated.
#[derive(Debug, Default)]
pub struct Mover {
    /// Registers that may not be read, or written, by what moves: those of the current round.
    taken: SecondaryMap<VReg, u32>,
    /// Registers that may not be read by what moves down.
    overwritten: SecondaryMap<VReg, u32>,
    round: u32,
    /// What moves, in the order of the block it is in.
    pub moved: Vec<Inst>,
    /// The rest.
    pub rest: Vec<Inst>,
}

impl Mover {
    fn begin(&mut self) {
        self.round += 1;
        self.moved.clear();
        self.rest.clear();
    }

    fn takes(&self, reg: VReg) -> bool {
        self.taken[reg] == self.round
    }

    /// Fills in which instructions of the block below go up, of those that `wants` asks for.
    pub fn up(
        &mut self,
        func: &Function,
        facts: &FunctionFacts<'_>,
        seam: Seam,
        mut wants: impl FnMut(Inst, &Facts) -> bool,
    ) {
        self.begin();
        let round = self.round;
        let (above, below) = (&func.blocks[seam.above], &func.blocks[seam.below]);
        let is_only_way = matches!(above.terminator, Terminator::Jump(_));
        below.params.iter().for_each(|&param| self.taken[param] = round);
        // Written above, these would overwrite what goes around a loop while it is still read; read at the end of the
        // block above, they would outlive what overwrites them.
        for_each_carried(func, seam.below, |_, arg| self.overwritten[arg] = round);
        for_each_carried(func, seam.above, |param, _| self.taken[param] = round);
        let (mut stopped, mut skipped_effect) = (false, false);
        for &inst in &below.insts {
            let what = facts.of(func, inst);
            stopped |= what.boundary;
            let may = !stopped
                && match is_only_way {
                    true => what.is_pure() || !skipped_effect,
                    false => facts.may_speculate(func, inst),
                };
            let mut free = !is_tied(func, inst);
            if may && free {
                func.for_each_use(inst, |reg| free &= !self.takes(reg));
                func.for_each_def(inst, |reg| free &= self.overwritten[reg] != round);
            }
            if may && free && wants(inst, &what) {
                self.moved.push(inst);
                continue;
            }
            skipped_effect |= !what.is_pure();
            func.for_each_def(inst, |reg| self.taken[reg] = round);
            self.rest.push(inst);
        }
    }

    /// Fills in which instructions of the block above go down, of those that `wants` asks for.
    pub fn down(
        &mut self,
        func: &Function,
        facts: &FunctionFacts<'_>,
        liveness: &Liveness,
        seam: Seam,
        mut wants: impl FnMut(Inst, &Facts) -> bool,
    ) {
        self.begin();
        let round = self.round;
        let above = &func.blocks[seam.above];
        let is_only_way = matches!(above.terminator, Terminator::Jump(_));
        func.for_each_terminator_use(seam.above, |reg| self.taken[reg] = round);
        above.terminator.for_each_target(|target| {
            if target.block != seam.below {
                liveness.live_in(target.block).iter().for_each(|&reg| self.taken[reg] = round);
            }
        });
        for_each_carried(func, seam.above, |param, _| self.overwritten[param] = round);
        let (mut stopped, mut skipped_effect) = (false, false);
        for &inst in above.insts.iter().rev() {
            let what = facts.of(func, inst);
            stopped |= what.boundary;
            let may = !stopped
                && match is_only_way {
                    true => what.is_pure() || !skipped_effect,
                    false => what.is_pure() || !skipped_effect && facts.may_skip(func, inst),
                };
            let (mut free, mut results) = (!is_tied(func, inst), false);
            if may && free {
                func.for_each_use(inst, |reg| free &= self.overwritten[reg] != round);
                func.for_each_def(inst, |reg| {
                    free &= !self.takes(reg);
                    results = true;
                });
            }
            if may && free && (results || is_only_way) && wants(inst, &what) {
                self.moved.push(inst);
                continue;
            }
            // Past a way out go loads, which follow what writes.
            let writes = !what.writes.is_empty() || what.accesses.iter().any(|access| access.write);
            skipped_effect |= if is_only_way { !what.is_pure() } else { writes };
            func.for_each_use(inst, |reg| self.taken[reg] = round);
            for operand in func.inst_operands(inst) {
                if let Operand::DefUse { used, .. } = operand {
                    self.overwritten[*used] = round;
                }
            }
            self.rest.push(inst);
        }
        self.moved.reverse();
        self.rest.reverse();
    }

    /// Makes the move that `up` found.
    pub fn apply_up(&mut self, func: &mut Function, liveness: &mut Liveness, seam: Seam) {
        func.blocks[seam.above].insts.append(&mut self.moved);
        std::mem::swap(&mut func.blocks[seam.below].insts, &mut self.rest);
        liveness.update(func, seam.above, seam.below);
    }

    /// Makes the move that `down` found.
    pub fn apply_down(&mut self, func: &mut Function, liveness: &mut Liveness, seam: Seam) {
        self.moved.extend_from_slice(&func.blocks[seam.below].insts);
        std::mem::swap(&mut func.blocks[seam.below].insts, &mut self.moved);
        std::mem::swap(&mut func.blocks[seam.above].insts, &mut self.rest);
        liveness.update(func, seam.above, seam.below);
    }
}

fn is_tied(func: &Function, inst: Inst) -> bool {
    func.inst_operands(inst).iter().any(|operand| matches!(operand, Operand::DefUse { .. }))
}

/// Calls `f` with the parameters of later blocks and the other registers that a block passes for them.
pub(crate) fn for_each_carried(func: &Function, block: Block, mut f: impl FnMut(VReg, VReg)) {
    func.blocks[block].terminator.for_each_target(|target| {
        let params = &func.blocks[target.block].params;
        for (&param, &arg) in params.iter().zip(func.call_args(target)) {
            if param != arg {
                f(param, arg);
            }
        }
    });
}
