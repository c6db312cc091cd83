//! The control-flow graph of a function: predecessors, successors, reverse postorder.
//!
//! A snapshot: it does not follow later changes of the function. Edges are kept one by one, so a `br` whose two targets
//! are the same block gives two.

use cranelift_entity::{EntityRef, SecondaryMap};

use crate::entities::{Block, Inst};
use crate::module::Function;

/// An edge into a block: the block it comes from and that block's terminator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Predecessor {
    /// Where the edge comes from.
    pub block: Block,
    /// The terminator that makes it.
    pub inst: Inst,
}

/// Predecessors, successors and order of a function's placed blocks.
#[derive(Clone, Default, Debug)]
pub struct Cfg {
    succ_ranges: SecondaryMap<Block, (u32, u32)>,
    succs: Vec<Block>,
    pred_ranges: SecondaryMap<Block, (u32, u32)>,
    preds: Vec<Predecessor>,
    rpo: Vec<Block>,
    /// Position in `rpo` plus one; 0 for blocks that are not reachable.
    rpo_index: SecondaryMap<Block, u32>,
}

impl Cfg {
    /// Computes the graph. Linear in blocks and edges.
    pub fn new(func: &Function) -> Cfg {
        let mut cfg = Cfg::default();
        let mut edges: Vec<(Block, Predecessor)> = Vec::new();
        for block in func.layout.blocks() {
            let start = cfg.succs.len() as u32;
            if let Some(inst) = func.layout.last_inst(block) {
                func.dfg.for_each_target(inst, |target| {
                    cfg.succs.push(target.block);
                    edges.push((target.block, Predecessor { block, inst }));
                });
            }
            cfg.succ_ranges[block] = (start, cfg.succs.len() as u32);
        }
        cfg.sort_predecessors(&edges, func.dfg.blocks.len());
        if let Some(entry) = func.layout.entry() {
            cfg.number(entry);
        }
        cfg
    }

    /// Counting sort of the edges by target.
    fn sort_predecessors(&mut self, edges: &[(Block, Predecessor)], blocks: usize) {
        let Some((_, some)) = edges.first() else { return };
        let mut starts = vec![0u32; blocks + 1];
        for (target, _) in edges {
            if let Some(count) = starts.get_mut(target.index() + 1) {
                *count += 1;
            }
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        self.preds = vec![*some; edges.len()];
        for (index, pair) in starts.windows(2).enumerate() {
            self.pred_ranges[Block::new(index)] = (pair[0], pair[0]);
        }
        for (target, pred) in edges {
            let range = &mut self.pred_ranges[*target];
            if let Some(slot) = self.preds.get_mut(range.1 as usize) {
                *slot = *pred;
                range.1 += 1;
            }
        }
    }

    /// Reverse postorder of a depth-first walk that takes targets in written order.
    fn number(&mut self, entry: Block) {
        let mut stack: Vec<(Block, u32)> = vec![(entry, 0)];
        self.rpo_index[entry] = 1;
        while let Some((block, next)) = stack.last_mut() {
            let (start, end) = self.succ_ranges[*block];
            let at = start + *next;
            if at < end {
                *next += 1;
                let succ = self.succs[at as usize];
                if self.rpo_index[succ] == 0 {
                    self.rpo_index[succ] = 1;
                    stack.push((succ, 0));
                }
            } else {
                self.rpo.push(*block);
                stack.pop();
            }
        }
        self.rpo.reverse();
        for (index, block) in self.rpo.iter().enumerate() {
            self.rpo_index[*block] = index as u32 + 1;
        }
    }

    /// Targets of a block's terminator, in written order, with repetitions.
    pub fn succs(&self, block: Block) -> &[Block] {
        let (start, end) = self.succ_ranges[block];
        &self.succs[start as usize..end as usize]
    }

    /// Edges into a block, from reachable and unreachable blocks, in layout order of their sources.
    pub fn preds(&self, block: Block) -> &[Predecessor] {
        let (start, end) = self.pred_ranges[block];
        &self.preds[start as usize..end as usize]
    }

    /// Reachable blocks; each before its successors except along back edges.
    pub fn rpo(&self) -> &[Block] {
        &self.rpo
    }

    /// Position in [`Cfg::rpo`]; `None` when the entry does not reach the block.
    pub fn rpo_index(&self, block: Block) -> Option<usize> {
        (self.rpo_index[block] as usize).checked_sub(1)
    }

    /// True when the entry reaches the block.
    pub fn is_reachable(&self, block: Block) -> bool {
        self.rpo_index[block] != 0
    }
}
