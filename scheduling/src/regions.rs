//! Moves between neighbours of superblocks that the model finds worth it.
//!
//! Up goes what fills cycles in which the block above waits: it must not come later to its end for it, and the way through
//! both blocks has to take at least 3 % less. Down goes what a way out does not need, when that way gains so much and
//! the way through loses nothing; out of a loop, what only matters after the last round. Neither makes more registers
//! live than the function had. Nothing goes down for a way out that is seldom taken, nor into a block that is short enough
//! for the assembler to predicate: a longer one it jumps over.

use crate::Context;
use crate::facts::FunctionFacts;
use crate::live::Liveness;
use crate::loops::Loops;
use crate::motion::{Mover, Seam};
use crate::report::Outcome;
use crate::timeline::{Clock, Way};
use crate::weave::{From, Weaver};
use cranelift_entity::SecondaryMap;
use ptxc_mir::{Block, Function, Inst, Op, Operand, Terminator, VReg};

/// What a block comes to as it is now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standing {
    pub cycles: u32,
    pub peak: u32,
    pub critical: u32,
    /// Registers were short when it was ordered.
    pub pressed: bool,
    /// Why it was not looked at.
    pub kept: Option<Outcome>,
    /// Instructions that came from the block below, and from the block above.
    pub risen: u32,
    pub sunk: u32,
}

/// Makes moves in one function; keeps what it allocated.
pub(crate) struct Regions<'a> {
    context: &'a Context,
    facts: &'a FunctionFacts<'a>,
    loops: &'a Loops,
    /// The most registers that may be live.
    limit: u32,
    /// How many warps a partition of the multiprocessor holds.
    warps: u32,
    clock: Clock<'a>,
    mover: Mover,
    weaver: Weaver,
    /// When a register is there at the end of the block above, and in which round that was noted.
    ready: SecondaryMap<VReg, (u32, u32)>,
    round: u32,
    /// What goes up and the cycle from which it may issue.
    rising: Vec<(u32, Inst)>,
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
        (limit, warps): (u32, u32),
    ) -> Regions<'a> {
        Regions {
            context,
            facts,
            loops,
            limit,
            warps,
            clock: Clock::new(&context.machine, &context.facts),
            mover: Mover::default(),
            weaver: Weaver::default(),
            ready: SecondaryMap::new(),
            round: 0,
            rising: Vec::new(),
        }
    }

    /// Tries what can move between two neighbours, up and then down.
    pub fn improve(
        &mut self,
        func: &mut Function,
        liveness: &mut Liveness,
        seam: Seam,
        standing: &mut SecondaryMap<Block, Standing>,
    ) {
        let leaves_loop = self.loops.depth(seam.below) < self.loops.depth(seam.above);
        let old = self.clock.way(func, liveness, seam.above, seam.below);
        if !leaves_loop && self.find_rising(func, liveness, (seam, old)) {
            let trial = Trial { seam, old, before: [standing[seam.above], standing[seam.below]], up: true };
            self.attempt(func, liveness, &trial, standing);
        }
        let may_sink = leaves_loop || !(is_predicated(func, seam) || seldom_leaves(func, self.facts, seam));
        if may_sink && self.find_sinking(func, liveness, seam, leaves_loop) {
            let old = self.clock.way(func, liveness, seam.above, seam.below);
            let trial = Trial { seam, old, before: [standing[seam.above], standing[seam.below]], up: false };
            self.attempt(func, liveness, &trial, standing);
        }
    }

    /// Whether something can go up that would be done in the cycles in which the block above waits. Where the warps of a
    /// partition have enough to issue for all of the way, nobody waits, and what goes up would be done too often.
    fn find_rising(&mut self, func: &Function, liveness: &Liveness, (seam, way): (Seam, Way)) -> bool {
        let machine = &self.context.machine;
        let above = &func.blocks[seam.above].insts;
        let issue = |insts: &[Inst]| insts.iter().map(|&inst| u32::from(machine.timing(func, inst).issue)).sum::<u32>();
        let busy = issue(above);
        let mut idle = way.out.saturating_sub(busy);
        let of_all_warps = (busy + issue(&func.blocks[seam.below].insts)).saturating_mul(self.warps);
        if idle < LEAST || of_all_warps >= way.through {
            return false;
        }
        self.round += 1;
        let round = self.round;
        for slot in self.clock.run(func, liveness, seam.above, above).slots {
            let there = slot.start + u32::from(slot.timing.latency);
            func.for_each_def(slot.inst, |reg| self.ready[reg] = (round, there));
        }
        let (ready, rising) = (&mut self.ready, &mut self.rising);
        rising.clear();
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
                rising.push((start, inst));
            }
            good
        });
        // What can issue first goes first; what reads others stays behind them.
        self.rising.sort_by_key(|&(start, _)| start);
        self.mover.moved.clear();
        self.mover.moved.extend(self.rising.iter().map(|&(_, inst)| inst));
        !self.mover.moved.is_empty()
    }

    /// Whether something can go down. Out of a loop that may be a load.
    fn find_sinking(&mut self, func: &Function, liveness: &Liveness, seam: Seam, leaves_loop: bool) -> bool {
        self.mover.down(func, self.facts, liveness, seam, |inst, what| {
            (what.is_pure() || leaves_loop) && is_worth_a_place(func, inst)
        });
        !self.mover.moved.is_empty()
    }

    /// Makes the move that was found, and takes it back unless it is worth it. What moves goes where the other block
    /// waits; the order of the rest stays.
    fn attempt(
        &mut self,
        func: &mut Function,
        liveness: &mut Liveness,
        trial: &Trial,
        standing: &mut SecondaryMap<Block, Standing>,
    ) {
        let seam = trial.seam;
        let (taker, giver, from) = match trial.up {
            true => (seam.above, seam.below, From::Below),
            false => (seam.below, seam.above, From::Above),
        };
        let timeline = self.clock.run(func, liveness, taker, &func.blocks[taker].insts);
        let tools = (self.facts, &self.context.machine);
        self.weaver.weave(func, tools, (taker, &timeline.slots), (from, &self.mover.moved));
        std::mem::swap(&mut func.blocks[giver].insts, &mut self.mover.rest);
        std::mem::swap(&mut func.blocks[taker].insts, &mut self.weaver.order);
        liveness.update(func, seam.above, seam.below);
        let mut new = trial.before;
        for (block, standing) in [seam.above, seam.below].into_iter().zip(&mut new) {
            let timeline = self.clock.run(func, liveness, block, &func.blocks[block].insts);
            (standing.cycles, standing.peak) = (timeline.cycles, timeline.peak);
        }
        if self.is_worth_it(func, liveness, trial, &new) {
            let count = self.mover.moved.len() as u32;
            if trial.up {
                new[0].risen += count;
            } else {
                new[1].sunk += count;
            }
            (standing[seam.above], standing[seam.below]) = (new[0], new[1]);
            return;
        }
        std::mem::swap(&mut func.blocks[giver].insts, &mut self.mover.rest);
        std::mem::swap(&mut func.blocks[taker].insts, &mut self.weaver.order);
        liveness.update(func, seam.above, seam.below);
    }

    fn is_worth_it(&mut self, func: &Function, liveness: &Liveness, trial: &Trial, new: &[Standing; 2]) -> bool {
        let seam = trial.seam;
        let way = self.clock.way(func, liveness, seam.above, seam.below);
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

/// Most instructions of a block that the assembler predicates instead of jumping over it (ptxas 13.5).
const MOST_PREDICATED: usize = 5;

/// Whether the block below is a short one that the way out skips.
fn is_predicated(func: &Function, seam: Seam) -> bool {
    let (above, below) = (&func.blocks[seam.above], &func.blocks[seam.below]);
    let Terminator::Jump(next) = &below.terminator else { return false };
    let mut skips = false;
    above.terminator.for_each_target(|target| skips |= target.block == next.block && target.block != seam.below);
    skips && below.insts.len() <= MOST_PREDICATED
}

/// Whether the way out is one for floats that are equal, or for NaN.
fn seldom_leaves(func: &Function, facts: &FunctionFacts<'_>, seam: Seam) -> bool {
    let above = &func.blocks[seam.above];
    let Terminator::CondBra { pred, negated, then, .. } = &above.terminator else { return false };
    let makes = |inst: &&Inst| {
        let mut makes = false;
        func.for_each_def(**inst, |reg| makes |= reg == *pred);
        makes
    };
    let leaves_if = (then.block != seam.below) != *negated;
    let made = above.insts.iter().rev().find(makes).and_then(|inst| facts.seldom(func, *inst));
    made == Some(leaves_if)
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
