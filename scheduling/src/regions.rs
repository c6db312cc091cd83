//! Moves between neighbours of superblocks that the model finds worth it.
//!
//! Up goes what fills cycles in which the block above waits: it must not come later to its end for it, and the way through
//! both blocks has to take at least 3 % less. Down goes what a way out does not need, when that way gains so much and
//! the way through loses nothing; out of a loop, what only matters after the last round. Neither makes more registers
//! live than the function had.

use crate::facts::FunctionFacts;
use crate::live::Liveness;
use crate::loops::Loops;
use crate::motion::{Mover, Seam};
use crate::order::Orderer;
use crate::timeline::{Timeline, Way};
use crate::{Context, Violation};
use cranelift_entity::SecondaryMap;
use ptxc_mir::{Block, Function, Inst, Op, Operand, VReg};

/// What a block comes to as it is now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standing {
    pub cycles: u32,
    pub peak: u32,
    pub critical: u32,
    /// Registers were short when it was ordered.
    pub pressed: bool,
    /// Instructions that came from the block below, and from the block above.
    pub risen: u32,
    pub sunk: u32,
}

/// Makes moves in one function; keeps what it allocated.
pub(crate) struct Regions<'a> {
    pub context: &'a Context,
    pub facts: &'a FunctionFacts<'a>,
    pub loops: &'a Loops,
    /// The most registers that may be live.
    pub limit: u32,
    pub checks: bool,
    mover: Mover,
    /// When a register is there at the end of the block above, and in which round that was noted.
    ready: SecondaryMap<VReg, (u32, u32)>,
    round: u32,
    /// The orders of the two blocks before a move.
    saved: [Vec<Inst>; 2],
}

/// A move under trial.
struct Trial {
    seam: Seam,
    old: Way,
    /// What both blocks came to.
    before: [Standing; 2],
    up: bool,
}

impl<'a> Regions<'a> {
    pub fn new(
        context: &'a Context,
        facts: &'a FunctionFacts<'a>,
        loops: &'a Loops,
        limit: u32,
        checks: bool,
    ) -> Regions<'a> {
        Regions {
            context,
            facts,
            loops,
            limit,
            checks,
            mover: Mover::default(),
            ready: SecondaryMap::new(),
            round: 0,
            saved: Default::default(),
        }
    }

    /// Tries what can move between two neighbours, up and then down.
    pub fn improve(
        &mut self,
        func: &mut Function,
        liveness: &mut Liveness,
        orderer: &mut Orderer<'_>,
        seam: Seam,
        standing: &mut SecondaryMap<Block, Standing>,
    ) -> Result<(), Violation> {
        let leaves_loop = self.loops.depth(seam.below) < self.loops.depth(seam.above);
        if !leaves_loop {
            let old = orderer.clock.way(func, liveness, seam.above, seam.below);
            if self.find_rising(func, orderer, liveness, (seam, old)) {
                let before = [standing[seam.above], standing[seam.below]];
                let trial = Trial { seam, old, before, up: true };
                self.attempt(func, liveness, orderer, trial, standing)?;
            }
        }
        let old = orderer.clock.way(func, liveness, seam.above, seam.below);
        if self.find_sinking(func, liveness, seam, leaves_loop) {
            let before = [standing[seam.above], standing[seam.below]];
            let trial = Trial { seam, old, before, up: false };
            self.attempt(func, liveness, orderer, trial, standing)?;
        }
        Ok(())
    }

    /// Whether something can go up that would be done in the cycles in which the block above waits.
    fn find_rising(
        &mut self,
        func: &Function,
        orderer: &mut Orderer<'_>,
        liveness: &Liveness,
        (seam, way): (Seam, Way),
    ) -> bool {
        let machine = &self.context.machine;
        let above = &func.blocks[seam.above].insts;
        let busy: u32 = above.iter().map(|&inst| u32::from(machine.timing(func, inst).issue)).sum();
        let mut idle = way.out.saturating_sub(busy);
        if idle < LEAST {
            return false;
        }
        self.round += 1;
        let round = self.round;
        for slot in orderer.clock.run(func, liveness, seam.above, above).slots {
            let there = slot.start + u32::from(slot.timing.latency);
            func.for_each_def(slot.inst, |reg| self.ready[reg] = (round, there));
        }
        let ready = &mut self.ready;
        self.mover.up(func, self.facts, seam, |inst, what| {
            let timing = machine.timing(func, inst);
            let mut start = 0;
            func.for_each_use(inst, |reg| {
                let (noted, at) = ready[reg];
                start = start.max(if noted == round { at } else { 0 });
            });
            let fits = start < way.out && u32::from(timing.issue) <= idle;
            let good = fits && what.is_pure() && is_worth_a_place(func, inst);
            if good {
                idle -= u32::from(timing.issue);
                let there = start + u32::from(timing.latency);
                func.for_each_def(inst, |reg| ready[reg] = (round, there));
            }
            good
        });
        !self.mover.moved.is_empty()
    }

    /// Whether something can go down. Out of a loop that may be a load.
    fn find_sinking(&mut self, func: &Function, liveness: &Liveness, seam: Seam, leaves_loop: bool) -> bool {
        self.mover.down(func, self.facts, liveness, seam, |inst, what| {
            (what.is_pure() || leaves_loop) && is_worth_a_place(func, inst)
        });
        !self.mover.moved.is_empty()
    }

    /// Makes the move that was found, and takes it back unless it is worth it.
    fn attempt(
        &mut self,
        func: &mut Function,
        liveness: &mut Liveness,
        orderer: &mut Orderer<'_>,
        trial: Trial,
        standing: &mut SecondaryMap<Block, Standing>,
    ) -> Result<(), Violation> {
        let seam = trial.seam;
        let pair = [seam.above, seam.below];
        for (saved, block) in self.saved.iter_mut().zip(pair) {
            saved.clone_from(&func.blocks[block].insts);
        }
        let count = self.mover.moved.len() as u32;
        if trial.up {
            self.mover.apply_up(func, liveness, seam);
        } else {
            self.mover.apply_down(func, liveness, seam);
        }
        let mut new = trial.before;
        for (block, standing) in pair.into_iter().zip(&mut new) {
            self.order(func, liveness, orderer, block, standing)?;
        }
        if self.is_worth_it(func, liveness, orderer, &trial, &new) {
            if trial.up {
                new[0].risen += count;
            } else {
                new[1].sunk += count;
            }
            pair.into_iter().zip(new).for_each(|(block, new)| standing[block] = new);
            return Ok(());
        }
        for (saved, block) in self.saved.iter().zip(pair) {
            func.blocks[block].insts.clone_from(saved);
        }
        liveness.update(func, seam.above, seam.below);
        Ok(())
    }

    /// Puts a block into the faster of two orders: what moved at the end or the start, or by latency.
    fn order(
        &mut self,
        func: &mut Function,
        liveness: &Liveness,
        orderer: &mut Orderer<'_>,
        block: Block,
        standing: &mut Standing,
    ) -> Result<(), Violation> {
        let as_it_is = orderer.clock.run(func, liveness, block, &func.blocks[block].insts);
        let limit = self.limit;
        let is_better = |new: &Timeline| new.cycles < as_it_is.cycles && new.peak <= limit.max(as_it_is.peak);
        let best = orderer.order(func, liveness, (block, as_it_is.peak, self.checks), is_better)?;
        standing.critical = orderer.critical_path();
        if let Some(new) = &best {
            func.blocks[block].insts.clear();
            func.blocks[block].insts.extend(new.slots.iter().map(|slot| slot.inst));
        }
        let kept = best.as_ref().unwrap_or(&as_it_is);
        (standing.cycles, standing.peak) = (kept.cycles, kept.peak);
        Ok(())
    }

    fn is_worth_it(
        &self,
        func: &Function,
        liveness: &Liveness,
        orderer: &mut Orderer<'_>,
        trial: &Trial,
        new: &[Standing; 2],
    ) -> bool {
        let seam = trial.seam;
        let way = orderer.clock.way(func, liveness, seam.above, seam.below);
        let fits = new.iter().zip(&trial.before).all(|(new, old)| new.peak <= self.limit.max(old.peak));
        let leaves_loop = self.loops.depth(seam.below) < self.loops.depth(seam.above);
        let no_slower = way.out <= trial.old.out
            && way.through <= trial.old.through
            && new[0].cycles + new[1].cycles <= trial.before[0].cycles + trial.before[1].cycles;
        let worth = match (trial.up, leaves_loop) {
            (true, _) => gains(trial.old.through, way.through),
            (false, true) => way.out < trial.old.out,
            (false, false) => gains(trial.old.out, way.out),
        };
        fits && no_slower && worth
    }
}

/// Whether its place means something to the assembler. It reads special registers and parameters where it likes, for
/// nothing as a rule, and removes copies.
fn is_worth_a_place(func: &Function, inst: Inst) -> bool {
    let is_given = |operand: &Operand| matches!(operand, Operand::SReg(_) | Operand::Param(..));
    !matches!(func.insts[inst].op, Op::Copy(_)) && !func.inst_operands(inst).iter().any(is_given)
}

/// The least gain that is worth a move, in cycles.
const LEAST: u32 = 4;

/// Whether cycles fall by 3 %, and by as many as are worth a move.
fn gains(old: u32, new: u32) -> bool {
    u64::from(new) * 100 <= u64::from(old) * 97 && new + LEAST <= old
}
