//! Predecessors, reverse postorder and dominators of a function's blocks.

use crate::entities::Block;
use crate::function::Function;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityList, ListPool, SecondaryMap};

/// The control flow graph of a function as it was when computed.
#[derive(Clone, Debug, Default)]
pub struct Cfg {
    predecessors: SecondaryMap<Block, EntityList<Block>>,
    pool: ListPool<Block>,
    postorder: Vec<Block>,
    /// Position in reverse postorder, from 1; 0 is unreachable.
    number: SecondaryMap<Block, u32>,
    idom: SecondaryMap<Block, PackedOption<Block>>,
}

impl Cfg {
    /// Computes it, in time linear in blocks and edges (the dominators nearly so).
    pub fn compute(func: &Function) -> Cfg {
        let mut cfg = Cfg::default();
        cfg.walk(func);
        for &block in cfg.postorder.iter().rev() {
            func.blocks[block].terminator.for_each_target(|t| {
                cfg.predecessors[t.block].push(block, &mut cfg.pool);
            });
        }
        cfg.dominators();
        cfg
    }

    /// The reachable predecessors of a block, one entry for each edge.
    pub fn predecessors(&self, block: Block) -> &[Block] {
        self.predecessors[block].as_slice(&self.pool)
    }

    /// The reachable blocks, each before its successors except along back edges.
    pub fn reverse_postorder(&self) -> impl DoubleEndedIterator<Item = Block> + '_ {
        self.postorder.iter().rev().copied()
    }

    /// The reachable blocks, each after its successors except along back edges.
    pub fn postorder(&self) -> &[Block] {
        &self.postorder
    }

    /// Whether a path from the entry leads to the block.
    pub fn reachable(&self, block: Block) -> bool {
        self.number[block] != 0
    }

    /// Position in reverse postorder, from 1; 0 for unreachable blocks.
    pub fn number(&self, block: Block) -> u32 {
        self.number[block]
    }

    /// The immediate dominator: `None` for the entry and for unreachable blocks.
    pub fn idom(&self, block: Block) -> Option<Block> {
        self.idom[block].expand()
    }

    fn walk(&mut self, func: &Function) {
        let Some(entry) = func.entry() else { return };
        // Depth first with an explicit stack of (block, next successor): input decides the depth.
        let mut seen: SecondaryMap<Block, bool> = SecondaryMap::with_capacity(func.blocks.len());
        let mut stack = vec![(entry, 0usize)];
        seen[entry] = true;
        while let Some((block, next)) = stack.last_mut() {
            match nth_target(func, *block, *next) {
                Some(target) => {
                    *next += 1;
                    if !seen[target] {
                        seen[target] = true;
                        stack.push((target, 0));
                    }
                }
                None => {
                    self.postorder.push(*block);
                    stack.pop();
                }
            }
        }
        for (i, &block) in self.postorder.iter().rev().enumerate() {
            self.number[block] = i as u32 + 1;
        }
    }

    /// The iterative algorithm of Cooper, Harvey and Kennedy over reverse postorder.
    fn dominators(&mut self) {
        let Some(&entry) = self.postorder.last() else { return };
        self.idom[entry] = entry.into();
        let mut changed = true;
        while changed {
            changed = false;
            for &block in self.postorder.iter().rev().skip(1) {
                let mut new: Option<Block> = None;
                for &pred in self.predecessors[block].as_slice(&self.pool) {
                    if self.idom[pred].is_none() {
                        continue;
                    }
                    new = Some(match new {
                        None => pred,
                        Some(other) => self.intersect(other, pred),
                    });
                }
                if self.idom[block].expand() != new {
                    self.idom[block] = new.into();
                    changed = true;
                }
            }
        }
        self.idom[entry] = None.into();
    }

    fn intersect(&self, mut a: Block, mut b: Block) -> Block {
        while a != b {
            let (na, nb) = (self.number[a], self.number[b]);
            if na > nb {
                a = self.idom[a].expand().unwrap_or(b);
            } else {
                b = self.idom[b].expand().unwrap_or(a);
            }
        }
        a
    }
}

fn nth_target(func: &Function, block: Block, n: usize) -> Option<Block> {
    use crate::Terminator;
    match &func.blocks[block].terminator {
        Terminator::CondBra { then, otherwise, .. } => match n {
            0 => Some(then.block),
            1 => Some(otherwise.block),
            _ => None,
        },
        other => other.targets().get(n).map(|t| t.block),
    }
}
