//! Dominators and post-dominators.
//!
//! Both come from one algorithm over a graph of numbers (semi-dominators with path compression, then nearest common
//! ancestors: Georgiadis' Semi-NCA), near-linear and without recursion. Queries compare intervals of a walk over the
//! dominator tree, so they are constant time.

use crate::cfg::Cfg;
use crate::entities::Block;

const NONE: u32 = u32::MAX;

/// Adjacency lists over the nodes `0..n`, flat.
struct Adjacency {
    starts: Vec<u32>,
    nodes: Vec<u32>,
}

impl Adjacency {
    /// From edges `(from, to)`, in their order.
    fn new(n: usize, edges: &[(u32, u32)]) -> Adjacency {
        let mut starts = vec![0u32; n + 1];
        edges.iter().for_each(|(from, _)| starts[*from as usize + 1] += 1);
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut fill = starts.clone();
        let mut nodes = vec![0; edges.len()];
        for (from, to) in edges {
            let at = &mut fill[*from as usize];
            nodes[*at as usize] = *to;
            *at += 1;
        }
        Adjacency { starts, nodes }
    }

    fn of(&self, node: u32) -> &[u32] {
        let at = node as usize;
        &self.nodes[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

/// A dominator tree over numbered nodes. Nodes that the root does not reach have no place in it.
struct Tree {
    idom: Vec<u32>,
    /// First and last position of the node's subtree in a preorder walk.
    interval: Vec<(u32, u32)>,
}

impl Tree {
    fn new(n: usize, root: u32, edges: &[(u32, u32)]) -> Tree {
        let succs = Adjacency::new(n, edges);
        let reversed: Vec<(u32, u32)> = edges.iter().map(|(from, to)| (*to, *from)).collect();
        let preds = Adjacency::new(n, &reversed);
        let idom = semi_nca(n, root, &succs, &preds);
        let children: Vec<(u32, u32)> =
            idom.iter().enumerate().filter(|(_, d)| **d != NONE).map(|(node, d)| (*d, node as u32)).collect();
        let children = Adjacency::new(n, &children);
        let mut interval = vec![(NONE, 0); n];
        let mut next = 0;
        let mut stack = vec![(root, 0usize)];
        while let Some((node, child)) = stack.last_mut() {
            let node = *node;
            if *child == 0 {
                interval[node as usize] = (next, next);
                next += 1;
            }
            let at = *child;
            *child += 1;
            match children.of(node).get(at) {
                Some(child) => stack.push((*child, 0)),
                None => {
                    interval[node as usize].1 = next - 1;
                    stack.pop();
                }
            }
        }
        Tree { idom, interval }
    }

    fn dominates(&self, a: u32, b: u32) -> bool {
        let (first, last) = self.interval[a as usize];
        let at = self.interval[b as usize].0;
        first != NONE && at != NONE && first <= at && at <= last
    }
}

/// Immediate dominators by node; `NONE` for the root and for unreachable nodes.
fn semi_nca(n: usize, root: u32, succs: &Adjacency, preds: &Adjacency) -> Vec<u32> {
    // Depth-first numbering; from here on `w` is such a number.
    let mut number = vec![NONE; n];
    let mut vertex = vec![root];
    let mut parent = vec![0u32];
    number[root as usize] = 0;
    let mut stack = vec![(root, 0usize)];
    while let Some((node, next)) = stack.last_mut() {
        let node = *node;
        let at = *next;
        *next += 1;
        match succs.of(node).get(at) {
            None => {
                stack.pop();
            }
            Some(succ) if number[*succ as usize] == NONE => {
                number[*succ as usize] = vertex.len() as u32;
                parent.push(number[node as usize]);
                vertex.push(*succ);
                stack.push((*succ, 0));
            }
            Some(_) => {}
        }
    }
    let count = vertex.len();
    let mut forest = Forest { ancestor: vec![NONE; count], label: (0..count as u32).collect(), path: Vec::new() };
    let mut semi: Vec<u32> = (0..count as u32).collect();
    for w in (1..count).rev() {
        for pred in preds.of(vertex[w]) {
            let v = number[*pred as usize];
            if v != NONE {
                let u = forest.eval(v, &semi);
                semi[w] = semi[w].min(semi[u as usize]);
            }
        }
        forest.ancestor[w] = parent[w];
    }
    let mut idom_number = parent;
    for w in 1..count {
        let mut at = idom_number[w];
        while at > semi[w] {
            at = idom_number[at as usize];
        }
        idom_number[w] = at;
    }
    let mut idom = vec![NONE; n];
    for w in 1..count {
        idom[vertex[w] as usize] = vertex[idom_number[w] as usize];
    }
    idom
}

/// The forest of Lengauer and Tarjan, with compression of paths.
struct Forest {
    ancestor: Vec<u32>,
    label: Vec<u32>,
    path: Vec<u32>,
}

impl Forest {
    /// The vertex of least semi-dominator on the way from `v` to the root of its tree.
    fn eval(&mut self, v: u32, semi: &[u32]) -> u32 {
        let mut at = v;
        while self.ancestor[at as usize] != NONE && self.ancestor[self.ancestor[at as usize] as usize] != NONE {
            self.path.push(at);
            at = self.ancestor[at as usize];
        }
        while let Some(node) = self.path.pop() {
            let above = self.ancestor[node as usize] as usize;
            if semi[self.label[above] as usize] < semi[self.label[node as usize] as usize] {
                self.label[node as usize] = self.label[above];
            }
            self.ancestor[node as usize] = self.ancestor[above];
        }
        // A root's label is the root itself.
        self.label[v as usize]
    }
}

/// The dominator tree of a function's reachable blocks.
pub struct DominatorTree {
    /// Over positions in reverse postorder.
    tree: Tree,
}

impl DominatorTree {
    /// Computes the tree.
    pub fn new(cfg: &Cfg) -> DominatorTree {
        let n = cfg.rpo().len();
        let mut edges = Vec::new();
        for (from, block) in cfg.rpo().iter().enumerate() {
            let to = cfg.succs(*block).iter().filter_map(|succ| cfg.rpo_index(*succ));
            edges.extend(to.map(|to| (from as u32, to as u32)));
        }
        if n == 0 {
            return DominatorTree { tree: Tree { idom: Vec::new(), interval: Vec::new() } };
        }
        DominatorTree { tree: Tree::new(n, 0, &edges) }
    }

    /// The closest block that dominates `block`; `None` for the entry and for unreachable blocks.
    pub fn idom(&self, cfg: &Cfg, block: Block) -> Option<Block> {
        let idom = *self.tree.idom.get(cfg.rpo_index(block)?)?;
        cfg.rpo().get(idom as usize).copied()
    }

    /// True when every way from the entry to `b` leads through `a`. A block dominates itself. An unreachable block
    /// dominates and is dominated by nothing.
    pub fn dominates(&self, cfg: &Cfg, a: Block, b: Block) -> bool {
        match (cfg.rpo_index(a), cfg.rpo_index(b)) {
            (Some(a), Some(b)) => self.tree.dominates(a as u32, b as u32),
            _ => false,
        }
    }
}

/// The post-dominator tree of a function's reachable blocks. Blocks that leave the function have a common successor;
/// so has one block of every cycle that never leaves it.
pub struct PostDominatorTree {
    tree: Tree,
}

impl PostDominatorTree {
    /// Computes the tree.
    pub fn new(cfg: &Cfg) -> PostDominatorTree {
        let n = cfg.rpo().len();
        let exit = n as u32;
        let mut edges = Vec::new();
        for (from, block) in cfg.rpo().iter().enumerate() {
            if cfg.succs(*block).is_empty() {
                edges.push((exit, from as u32));
            }
            for succ in cfg.succs(*block).iter().filter_map(|succ| cfg.rpo_index(*succ)) {
                edges.push((succ as u32, from as u32));
            }
        }
        // Whatever does not reach the exit backwards is an endless loop: let its last block in order leave.
        let backward = Adjacency::new(n + 1, &edges);
        let mut seen = vec![false; n + 1];
        flood(&backward, exit, &mut seen);
        for node in (0..exit).rev() {
            if !seen[node as usize] {
                edges.push((exit, node));
                flood(&backward, node, &mut seen);
            }
        }
        PostDominatorTree { tree: Tree::new(n + 1, exit, &edges) }
    }

    /// The closest block that every way from `block` out of the function leads through; `None` when there is none.
    pub fn ipdom(&self, cfg: &Cfg, block: Block) -> Option<Block> {
        let ipdom = *self.tree.idom.get(cfg.rpo_index(block)?)?;
        cfg.rpo().get(ipdom as usize).copied()
    }

    /// True when every way from `b` out of the function leads through `a`. A block post-dominates itself.
    pub fn post_dominates(&self, cfg: &Cfg, a: Block, b: Block) -> bool {
        match (cfg.rpo_index(a), cfg.rpo_index(b)) {
            (Some(a), Some(b)) => self.tree.dominates(a as u32, b as u32),
            _ => false,
        }
    }
}

fn flood(graph: &Adjacency, from: u32, seen: &mut [bool]) {
    let mut stack = vec![from];
    seen[from as usize] = true;
    while let Some(node) = stack.pop() {
        for next in graph.of(node) {
            if !std::mem::replace(&mut seen[*next as usize], true) {
                stack.push(*next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::read_module;
    use rustc_hash::FxHashSet;

    /// Graphs of up to `n` blocks with two successors each, by a small generator; the entry is left by jumps only.
    fn random_text(seed: u64) -> String {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = |n: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % n
        };
        let n = 2 + next(9);
        let mut text = String::from("func @f(%c: i1) {\nentry:\n  jump b0\n");
        for i in 0..n {
            text += &match next(4) {
                0 => format!("b{i}:\n  ret\n"),
                1 => format!("b{i}:\n  jump b{}\n", next(n)),
                _ => format!("b{i}:\n  br %c, b{}, b{}\n", next(n), next(n)),
            };
        }
        text + "}\n"
    }

    /// Blocks reached from `from` without passing through `without`.
    fn reach(from: Block, without: Block, next: &dyn Fn(Block) -> Vec<Block>) -> FxHashSet<Block> {
        let mut seen = FxHashSet::default();
        let mut stack = vec![from];
        while let Some(block) = stack.pop() {
            if block != without && seen.insert(block) {
                stack.extend(next(block));
            }
        }
        seen
    }

    #[test]
    fn agrees_with_the_definition() {
        for seed in 0..400 {
            let text = random_text(seed);
            let module = read_module(&text).unwrap();
            let func = module.funcs.values().next().unwrap();
            let cfg = Cfg::new(func);
            let tree = DominatorTree::new(&cfg);
            let post = PostDominatorTree::new(&cfg);
            let exits: Vec<Block> = cfg.rpo().iter().copied().filter(|b| cfg.succs(*b).is_empty()).collect();
            let entry = func.layout.entry().unwrap();
            for a in cfg.rpo() {
                let around = reach(entry, *a, &|b| cfg.succs(b).to_vec());
                for b in cfg.rpo() {
                    assert_eq!(tree.dominates(&cfg, *a, *b), !around.contains(b), "{a:?} dom {b:?}\n{text}");
                    let leaves = |set: &FxHashSet<Block>| exits.iter().any(|e| set.contains(e));
                    let all = reach(*b, Block::from_u32(u32::MAX - 1), &|b| cfg.succs(b).to_vec());
                    let around = reach(*b, *a, &|b| cfg.succs(b).to_vec());
                    // Where no exit is in reach the answer depends on the exit that was made up.
                    if leaves(&all)
                        && cfg
                            .rpo()
                            .iter()
                            .all(|x| leaves(&reach(*x, Block::from_u32(u32::MAX - 1), &|b| cfg.succs(b).to_vec())))
                    {
                        assert_eq!(post.post_dominates(&cfg, *a, *b), !leaves(&around), "{a:?} pdom {b:?}\n{text}");
                    }
                }
            }
        }
    }
}
