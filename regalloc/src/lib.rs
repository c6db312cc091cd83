//! Out of SSA and register assignment.
//!
//! PTX has as many registers as one likes, so there is nothing to spill and nothing to pack: what matters is to leave
//! SSA form with few moves, and never a wrong one. Block parameters and the values passed for them are merged into
//! one register where their live ranges do not meet; so are the two sides of a tied operand. What cannot be merged
//! becomes a move on the edge or before the instruction.
//!
//! The steps, in order:
//!
//! 0. `constants`: a constant that many edges pass for one parameter, or both ways of a branch to one variable, is made once,
//!    before the ways part.
//! 1. `prepare`: drop unreachable blocks, see through copies and through parameters of blocks with one predecessor.
//!    `split`: copy what a loop carries for what reads it behind the loop, where the loop would end with two branches.
//! 2. `liveness`: where each value is defined and used, and what is live at the end of each block. `in_flight` adds
//!    how long asynchronous products keep registers.
//! 3. `coalesce`: merge values into classes, hottest places first, each merge checked for interference.
//! 4. `rewrite`: one register for each class, moves in parallel semantics put in sequence, critical edges split where
//!    (and only where) moves are left on them that cannot go before the branch.
//!
//! [`order_moves`] then puts moves that make accumulators of `wgmma` before the fences that those need.
//!
//! [`check()`] verifies the result against the original by data flow, knowing nothing of how it was made. It runs
//! by itself in builds with debug assertions.
//!
//! # Why not an allocator for machines
//!
//! A machine has few registers, and what allocators are good at is choosing what to keep in them. regalloc2, told that
//! every operand may live anywhere and given spill slots as further registers, does the job too and was the first
//! plan. Measured side by side (`cargo bench -p ptxc-regalloc --bench assign -- --moves`; moves, and microseconds an
//! instruction, on one shared core):
//!
//! | function | instructions | moves here | time here | moves regalloc2 | time regalloc2 |
//! | --- | --- | --- | --- | --- | --- |
//! | unrolled loop, 30 live | 50,031 | 0 | 0.24 | 0 | 5.8 |
//! | unrolled loop, 200 live | 50,201 | 0 | 0.23 | 0 | 11.6 |
//! | interpreter, 20 variables | 20,020 | 0 | 0.52 | 10,396 | 2.7 |
//! | interpreter, 20 variables | 50,020 | 0 | 0.72 | 29,395 | 5.5 |
//! | random control flow | 15,423 | 3,600 | 1.06 | 5,140 | 7.3 |
//!
//! It would also pack unrelated values into one register, which `ptxas` only has to take apart again.
//!
//! What this decides: registers and moves. What it does not: the order of instructions, and which ones there are.

mod checker;
mod coalesce;
mod constants;
mod fences;
mod in_flight;
mod liveness;
mod parallel;
mod prepare;
mod rewrite;
mod split;

pub use checker::{CheckError, check};
pub use fences::{Kinds, order_moves};

use cranelift_entity::SecondaryMap;
use ptxc_mir::{Block, Cfg, Function};

/// What register assignment did to a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Moves inserted.
    pub moves: u32,
    /// Moves among them that only break a cycle, through a register of their own.
    pub cycle_moves: u32,
    /// Blocks made on critical edges to hold moves.
    pub edge_blocks: u32,
    /// PTX registers, in the order of [`ptxc_mir::RegClass::ALL`].
    pub registers: [u32; ptxc_mir::RegClass::ALL.len()],
    /// Block arguments and ties that needed no move.
    pub coalesced: u32,
}

/// Why a function cannot be taken out of SSA: it is malformed, and `ptxc_mir::verify` says more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegallocError {
    /// No blocks, or a branch whose arguments do not match the parameters.
    #[error("{0} passes arguments that do not match the parameters of {1}")]
    Arguments(Block, Block),
    /// The result does not compute what the function did: an error of this crate.
    #[error("register assignment is wrong: {0}")]
    Check(#[from] CheckError),
}

/// Functions above this many instructions are not checked in debug builds unless a test asks: the checker keeps what every
/// register holds for every block, which is quadratic in a long chain of blocks.
const CHECK_LIMIT: usize = 1_500;

/// Takes a verified function out of SSA form: afterwards blocks have no parameters, both registers of a tie are one,
/// and [`ptxc_mir::Function::vregs`] holds the PTX registers, in order of first definition. Matrix registers of a
/// `wgmma.mma_async`, which `kinds` tells, are nobody else's until the `wgmma.wait_group` that covers it.
///
/// # Errors
/// The function is not well formed; it is left in an unspecified state.
pub fn run(func: &mut Function, kinds: &Kinds) -> Result<Stats, RegallocError> {
    let cfg = Cfg::compute(func);
    let depths = loop_depths(func, &cfg);
    constants::share(func, &cfg, &depths, kinds);
    constants::share_between_ways(func, &cfg, kinds);
    let original = (cfg!(debug_assertions) && func.insts.len() <= CHECK_LIMIT).then(|| func.clone());
    let stats = assign(func, kinds, &cfg, &depths)?;
    if let Some(original) = original {
        check(&original, func)?;
    }
    Ok(stats)
}

/// [`run`] without the check, for a function whose constants are shared.
fn assign(
    func: &mut Function,
    kinds: &Kinds,
    cfg: &Cfg,
    depths: &SecondaryMap<Block, u32>,
) -> Result<Stats, RegallocError> {
    prepare::prepare(func, cfg)?;
    if !kinds.has_products() {
        split::split(func, cfg, depths);
    }
    let liveness = liveness::Liveness::compute(func, cfg, kinds);
    let (classes, coalesced) = coalesce::coalesce(func, cfg, &liveness, depths);
    let mut stats = rewrite::rewrite(func, cfg, &liveness, classes);
    stats.coalesced = coalesced;
    Ok(stats)
}

/// How many natural loops each block is in. Irreducible loops do not count.
fn loop_depths(func: &Function, cfg: &Cfg) -> SecondaryMap<Block, u32> {
    let mut depths: SecondaryMap<Block, u32> = SecondaryMap::with_capacity(func.blocks.len());
    let mut inside: SecondaryMap<Block, u32> = SecondaryMap::with_capacity(func.blocks.len());
    let mut stack = Vec::new();
    for header in cfg.reverse_postorder() {
        // Blocks are marked with the number of the header, which is never 0.
        let mark = cfg.number(header);
        stack.extend(cfg.predecessors(header).iter().copied().filter(|&p| cfg.dominates(header, p)));
        if stack.is_empty() {
            continue;
        }
        inside[header] = mark;
        depths[header] += 1;
        while let Some(block) = stack.pop() {
            if inside[block] != mark {
                inside[block] = mark;
                depths[block] += 1;
                stack.extend_from_slice(cfg.predecessors(block));
            }
        }
    }
    depths
}
