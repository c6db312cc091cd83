//! What became of each block, for remarks.

use crate::loops::Loops;
use crate::regions::Standing;
use crate::timeline::Timeline;
use ptxc_mir::{Block, Function, LocId, SourceLoc};
use std::fmt;

/// What was done with a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It is in another order, or instructions came or went.
    Reordered,
    /// The order of the source stays: no other is worth it by the model.
    NoGain,
    /// The order of the source stays: a unit is full all the time that the block takes, with those of other warps.
    Full,
    /// The order of the source stays: the assembler comes to a better one by itself where there is one.
    Assembler,
    /// The order of the source stays: what would be faster needs more registers than there are.
    Registers,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Outcome; 5] =
        [Outcome::Reordered, Outcome::NoGain, Outcome::Full, Outcome::Assembler, Outcome::Registers];

    /// Its name in remarks.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Reordered => "reordered",
            Outcome::NoGain => "kept-no-gain",
            Outcome::Full => "kept-full",
            Outcome::Assembler => "left-to-assembler",
            Outcome::Registers => "kept-for-registers",
        }
    }
}

/// What scheduling a block came to, by the machine's model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockReport {
    /// The block.
    pub block: Block,
    /// Where its first instruction that has a place came from.
    pub loc: SourceLoc,
    /// Instructions, without the terminator.
    pub count: u32,
    /// How many loops it is in.
    pub depth: u32,
    /// Cycles before and afterwards.
    pub cycles: [u32; 2],
    /// The most live 32-bit registers before and afterwards.
    pub peak: [u32; 2],
    /// Cycles of the longest chain of dependences.
    pub critical_path: u32,
    /// What was done.
    pub outcome: Outcome,
    /// Instructions that came from the block below.
    pub risen: u32,
    /// Instructions that came from the block above.
    pub sunk: u32,
}

impl BlockReport {
    pub(crate) fn new(
        func: &Function,
        loops: &Loops,
        (block, before, now): (Block, &Timeline, &Standing),
    ) -> BlockReport {
        let locs = func.blocks[block].insts.iter().map(|&inst| func.insts[inst].loc);
        let loc = locs.into_iter().find(|loc| *loc != LocId::NONE).unwrap_or(LocId::NONE);
        let is_as_it_was = func.blocks[block].insts.iter().eq(before.slots.iter().map(|slot| &slot.inst));
        let outcome = match (is_as_it_was, now.pressed) {
            (false, _) => Outcome::Reordered,
            (true, false) => now.kept.unwrap_or(Outcome::NoGain),
            (true, true) => Outcome::Registers,
        };
        BlockReport {
            block,
            loc: func.locs[loc],
            count: func.blocks[block].insts.len() as u32,
            depth: loops.depth(block),
            cycles: [before.cycles, now.cycles],
            peak: [before.peak, now.peak],
            critical_path: now.critical,
            outcome,
            risen: now.risen,
            sunk: now.sunk,
        }
    }
}

/// One line: cycles and registers, each with what they were where they changed.
impl fmt::Display for BlockReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.block)?;
        match self.depth {
            0 => {}
            1 => write!(f, ", in a loop")?,
            depth => write!(f, ", in {depth} loops")?,
        }
        let changed = |f: &mut fmt::Formatter<'_>, [before, after]: [u32; 2]| match before == after {
            true => Ok(()),
            false => write!(f, " instead of {before}"),
        };
        let noun = if self.cycles[1] == 1 { "cycle" } else { "cycles" };
        write!(f, ": {} {noun}", self.cycles[1])?;
        changed(f, self.cycles)?;
        write!(f, ", critical path {}, at most {} registers live", self.critical_path, self.peak[1])?;
        changed(f, self.peak)?;
        for (count, from) in [(self.risen, "below"), (self.sunk, "above")] {
            match count {
                0 => {}
                1 => write!(f, ", 1 instruction from the block {from}")?,
                _ => write!(f, ", {count} instructions from the block {from}")?,
            }
        }
        Ok(())
    }
}
