//! Any order that the dependences allow, and any moves between blocks.

use crate::facts::FunctionFacts;
use crate::graph::{Graph, Node};
use crate::live::Liveness;
use crate::loops::Loops;
use crate::motion::{Mover, Seam};
use crate::superblocks::Superblocks;
use ptxc_mir::{Cfg, Function, Inst};

/// Moves instructions between neighbours of superblocks: any that may, one in two, in one direction, both or none. Gives
/// the superblocks.
pub fn move_between_blocks(func: &mut Function, facts: &FunctionFacts<'_>, seed: u64) -> Superblocks {
    let cfg = Cfg::compute(func);
    let superblocks = Superblocks::of(func, &cfg, &Loops::of(func, &cfg));
    let mut liveness = Liveness::of(func, &cfg);
    // The same seed shall not choose the same of all functions.
    let mut random = Random::new(seed.rotate_left(32) ^ ((func.insts.len() as u64) << 16) ^ func.vregs.len() as u64);
    let mut mover = Mover::default();
    for (above, below) in superblocks.neighbours() {
        let seam = Seam { above, below };
        if random.below(3) != 0 {
            mover.up(func, facts, seam, |_, _| random.below(2) == 0);
            mover.apply_up(func, &mut liveness, seam);
        }
        if random.below(3) != 0 {
            mover.down(func, facts, &liveness, seam, |_, _| random.below(2) == 0);
            mover.apply_down(func, &mut liveness, seam);
        }
    }
    superblocks
}

/// Picks among what is ready, each with the same chance, by a seed.
#[derive(Debug)]
pub struct Random {
    state: u64,
    ready: Vec<Node>,
    waits_for: Vec<u32>,
}

impl Random {
    /// A source of orders.
    pub fn new(seed: u64) -> Random {
        Random { state: seed, ready: Vec::new(), waits_for: Vec::new() }
    }

    /// A number below `bound`, which is not 0 (the generator is SplitMix64).
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    /// Appends the instructions of a region in some legal order.
    pub fn order(&mut self, graph: &Graph, out: &mut Vec<Inst>) {
        self.ready.clear();
        self.waits_for.clear();
        for node in 0..graph.len() as Node {
            let count = graph.preds(node).len() as u32;
            self.waits_for.push(count);
            if count == 0 {
                self.ready.push(node);
            }
        }
        while !self.ready.is_empty() {
            let at = self.below(self.ready.len());
            let node = self.ready.swap_remove(at);
            out.extend(graph.inst(node));
            for edge in graph.succs(node) {
                let left = &mut self.waits_for[edge.node as usize];
                *left -= 1;
                if *left == 0 {
                    self.ready.push(edge.node);
                }
            }
        }
    }
}
