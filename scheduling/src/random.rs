//! Any order that the dependences allow.

use crate::graph::{Graph, Node};
use ptxc_mir::Inst;

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
    fn below(&mut self, bound: usize) -> usize {
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
