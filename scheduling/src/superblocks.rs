//! Superblocks: chains of blocks each of which is entered from the one before it only. Between them may be ways out, but
//! none in, so that an instruction can go from one to its neighbour where nothing else notices.

use crate::loops::Loops;
use cranelift_entity::SecondaryMap;
use ptxc_mir::{Block, Cfg, Function, Terminator};

/// The superblocks of a function that have more than one block.
#[derive(Clone, Debug, Default)]
pub struct Superblocks {
    blocks: Vec<Block>,
    /// Where each ends in `blocks`.
    ends: Vec<usize>,
}

impl Superblocks {
    /// Finds them, in time linear in blocks and edges. Where a block could go on in two, it does in the one that is in
    /// more loops, else in the longer one: what leaves is the rarer way.
    ///
    /// A function with blocks that control never reaches has none: these may read what no way to them writes.
    pub fn of(func: &Function, cfg: &Cfg, loops: &Loops) -> Superblocks {
        if func.layout.iter().any(|&block| !cfg.reachable(block)) {
            return Superblocks::default();
        }
        let mut entries: SecondaryMap<Block, u32> = SecondaryMap::with_capacity(func.blocks.len());
        for &block in &func.layout {
            func.blocks[block].terminator.for_each_target(|target| entries[target.block] += 1);
        }
        if let Some(entry) = func.entry() {
            entries[entry] += 1;
        }
        let goes_on = |block: Block| {
            let terminator = &func.blocks[block].terminator;
            let alone = |next: &Block| *next != block && entries[*next] == 1;
            match terminator {
                Terminator::Jump(target) => Some(target.block).filter(alone),
                Terminator::CondBra { then, otherwise, .. } => {
                    let weight = |next: &Block| (loops.depth(*next), func.blocks[*next].insts.len());
                    // The first of equals is the one that control falls into.
                    [then.block, otherwise.block].into_iter().filter(alone).max_by_key(weight)
                }
                _ => None,
            }
        };
        let mut inside: SecondaryMap<Block, bool> = SecondaryMap::with_capacity(func.blocks.len());
        for next in func.layout.iter().filter_map(|&block| goes_on(block)) {
            inside[next] = true;
        }
        let mut superblocks = Superblocks::default();
        for &head in func.layout.iter().filter(|block| !inside[**block]) {
            let start = superblocks.blocks.len();
            let mut at = Some(head);
            while let Some(block) = at {
                superblocks.blocks.push(block);
                at = goes_on(block);
            }
            if superblocks.blocks.len() == start + 1 {
                superblocks.blocks.pop();
            } else {
                superblocks.ends.push(superblocks.blocks.len());
            }
        }
        superblocks
    }

    /// Each superblock, from its entry down.
    pub fn iter(&self) -> impl Iterator<Item = &[Block]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.blocks[start..end])
    }

    /// Pairs of neighbours, from below upwards within each superblock.
    pub fn neighbours(&self) -> impl Iterator<Item = (Block, Block)> + '_ {
        self.iter().flat_map(|blocks| blocks.windows(2).rev().map(|pair| (pair[0], pair[1])))
    }
}
