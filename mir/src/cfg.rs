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
    /// Entry and exit numbers of a walk over the dominator tree: nested intervals are dominance.
    interval: SecondaryMap<Block, (u32, u32)>,
}

impl Cfg {
    /// Computes it, in time close to linear in blocks and edges.
    pub fn compute(func: &Function) -> Cfg {
        let mut cfg = Cfg::default();
        let tree = cfg.walk(func);
        for &block in cfg.postorder.iter().rev() {
            func.blocks[block].terminator.for_each_target(|t| {
                cfg.predecessors[t.block].push(block, &mut cfg.pool);
            });
        }
        cfg.dominators(&tree);
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

    /// A number that orders blocks by dominance: each block comes before those it dominates, and these are contiguous.
    pub fn dominance_number(&self, block: Block) -> u32 {
        self.interval[block].0
    }

    /// How many reachable blocks a block dominates, itself included; 0 when it is unreachable.
    pub fn dominated_count(&self, block: Block) -> u32 {
        self.interval[block].1 - self.interval[block].0
    }

    /// Whether every path from the entry to `below` passes `above`; a block dominates itself. Constant time; false
    /// when one of them is unreachable.
    pub fn dominates(&self, above: Block, below: Block) -> bool {
        let (a, b) = (self.interval[above], self.interval[below]);
        self.reachable(above) && self.reachable(below) && a.0 <= b.0 && b.1 <= a.1
    }

    fn walk(&mut self, func: &Function) -> DepthFirst {
        let mut tree = DepthFirst::default();
        let Some(entry) = func.entry() else {
            return tree;
        };
        // Depth first with an explicit stack of (block, next successor): input decides the depth.
        let mut seen: SecondaryMap<Block, bool> = SecondaryMap::with_capacity(func.blocks.len());
        let mut stack = vec![(entry, 0usize)];
        seen[entry] = true;
        tree.order.push(entry);
        tree.parent.push(0);
        while let Some((block, next)) = stack.last_mut() {
            match nth_target(func, *block, *next) {
                Some(target) => {
                    *next += 1;
                    if !seen[target] {
                        seen[target] = true;
                        tree.preorder[target] = tree.order.len() as u32;
                        tree.parent.push(tree.preorder[*block]);
                        tree.order.push(target);
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
        tree
    }

    /// The semi-NCA algorithm (Georgiadis): semidominators by path compression over the depth-first tree, then the
    /// nearest common ancestors. Unlike the iterative algorithm it stays fast on ladders of checks that all branch to
    /// one block.
    fn dominators(&mut self, tree: &DepthFirst) {
        let n = tree.order.len();
        let mut label: Vec<u32> = (0..n as u32).collect();
        let mut ancestor = tree.parent.clone();
        let mut semi: Vec<u32> = (0..n as u32).collect();
        let mut path = Vec::new();
        for v in (1..n).rev() {
            let mut best = tree.parent[v];
            for &pred in self.predecessors[tree.order[v]].as_slice(&self.pool) {
                let u = tree.preorder[pred];
                best = best.min(eval(u, v as u32 + 1, &mut ancestor, &mut label, &semi, &mut path));
            }
            semi[v] = best;
        }
        let mut idom = tree.parent.clone();
        for v in 1..n {
            let mut d = idom[v];
            while d > semi[v] {
                d = idom[d as usize];
            }
            idom[v] = d;
            self.idom[tree.order[v]] = tree.order[d as usize].into();
        }
        self.number_dominator_tree(&tree.order, &idom);
    }

    /// Numbers the dominator tree without walking it: subtree sizes bottom-up give each vertex its interval. Immediate
    /// dominators have smaller preorder numbers than what they dominate.
    fn number_dominator_tree(&mut self, order: &[Block], idom: &[u32]) {
        let n = order.len();
        let mut size = vec![1u32; n];
        for v in (1..n).rev() {
            size[idom[v] as usize] += size[v];
        }
        // The next free number inside each vertex's interval.
        let mut next = vec![0u32; n];
        for v in 0..n {
            let start = if v == 0 { 0 } else { next[idom[v] as usize] };
            if v > 0 {
                next[idom[v] as usize] += size[v];
            }
            next[v] = start + 1;
            self.interval[order[v]] = (start, start + size[v]);
        }
    }
}

/// The smallest semidominator on the compressed path from `u` up to, not including, vertices numbered below `limit`.
fn eval(u: u32, limit: u32, ancestor: &mut [u32], label: &mut [u32], semi: &[u32], path: &mut Vec<u32>) -> u32 {
    if u < limit {
        return u;
    }
    path.clear();
    let mut x = u;
    while ancestor[x as usize] >= limit {
        path.push(x);
        x = ancestor[x as usize];
    }
    // `x` is the topmost linked vertex; pull its label and ancestor down the path.
    let (mut best, top) = (label[x as usize], ancestor[x as usize]);
    while let Some(y) = path.pop() {
        if semi[label[y as usize] as usize] < semi[best as usize] {
            best = label[y as usize];
        } else {
            label[y as usize] = best;
        }
        ancestor[y as usize] = top;
    }
    semi[best as usize]
}

/// A depth-first spanning tree, vertices numbered in preorder.
#[derive(Default)]
struct DepthFirst {
    order: Vec<Block>,
    parent: Vec<u32>,
    preorder: SecondaryMap<Block, u32>,
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
