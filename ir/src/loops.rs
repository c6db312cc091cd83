//! Natural loops and their nesting.
//!
//! A loop is a header with the blocks that reach one of its back edges without passing through the header; a back edge
//! comes from a block that the header dominates. Cycles without such a header (irreducible ones) are no loops here;
//! [`Loops::is_irreducible`] tells that there are some.

use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};

use crate::cfg::Cfg;
use crate::dominators::DominatorTree;
use crate::entities::Block;

/// A loop of the function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Loop(u32);
entity_impl!(Loop, "loop");

/// A loop's header and place in the nest.
#[derive(Clone, Copy, Debug)]
pub struct LoopData {
    /// The block that every way into the loop enters by.
    pub header: Block,
    /// The loop right around it.
    pub parent: PackedOption<Loop>,
    /// 1 for outermost loops.
    pub depth: u32,
}

/// The loops of a function.
pub struct Loops {
    loops: PrimaryMap<Loop, LoopData>,
    innermost: SecondaryMap<Block, PackedOption<Loop>>,
    irreducible: bool,
}

impl Loops {
    /// Finds the loops. Near-linear in edges times nesting depth.
    pub fn new(cfg: &Cfg, tree: &DominatorTree) -> Loops {
        let mut new = Loops { loops: PrimaryMap::new(), innermost: SecondaryMap::new(), irreducible: false };
        // Inner headers come after outer ones in reverse postorder, so inner loops are complete before outer ones.
        for header in cfg.rpo().iter().rev() {
            let mut work: Vec<Block> = Vec::new();
            for pred in cfg.preds(*header) {
                if tree.dominates(cfg, *header, pred.block) {
                    work.push(pred.block);
                } else if cfg.rpo_index(pred.block) >= cfg.rpo_index(*header) && cfg.is_reachable(pred.block) {
                    new.irreducible = true;
                }
            }
            if !work.is_empty() {
                new.grow(cfg, *header, work);
            }
        }
        new.depths();
        new
    }

    /// Adds the loop of `header` with everything that leads backwards from `work` to it.
    fn grow(&mut self, cfg: &Cfg, header: Block, mut work: Vec<Block>) {
        let id = self.loops.push(LoopData { header, parent: None.into(), depth: 0 });
        while let Some(block) = work.pop() {
            match self.outermost_known(block) {
                None => {
                    self.innermost[block] = id.into();
                    if block != header {
                        work.extend(cfg.preds(block).iter().map(|p| p.block).filter(|b| cfg.is_reachable(*b)));
                    }
                }
                Some(inner) if inner != id => {
                    self.loops[inner].parent = id.into();
                    let inner_header = self.loops[inner].header;
                    let outside = cfg.preds(inner_header).iter().map(|p| p.block);
                    work.extend(outside.filter(|b| cfg.is_reachable(*b) && self.outermost_known(*b) != Some(id)));
                }
                Some(_) => {}
            }
        }
        if self.innermost[header].is_none() {
            self.innermost[header] = id.into();
        }
    }

    fn outermost_known(&self, block: Block) -> Option<Loop> {
        let mut at = self.innermost[block].expand()?;
        while let Some(parent) = self.loops[at].parent.expand() {
            at = parent;
        }
        Some(at)
    }

    fn depths(&mut self) {
        // Outer loops were found last.
        let ids: Vec<Loop> = self.loops.keys().collect();
        for id in ids.into_iter().rev() {
            let above = self.loops[id].parent.expand().map_or(0, |parent| self.loops[parent].depth);
            self.loops[id].depth = above + 1;
        }
    }

    /// The innermost loop that holds the block.
    pub fn innermost(&self, block: Block) -> Option<Loop> {
        self.innermost[block].expand()
    }

    /// How many loops hold the block.
    pub fn depth(&self, block: Block) -> u32 {
        self.innermost(block).map_or(0, |l| self.loops[l].depth)
    }

    /// A loop's data.
    pub fn data(&self, l: Loop) -> &LoopData {
        &self.loops[l]
    }

    /// Every loop, inner ones before outer ones.
    pub fn iter(&self) -> impl Iterator<Item = (Loop, &LoopData)> {
        self.loops.iter()
    }

    /// True when the block is in the loop or in one inside it.
    pub fn contains(&self, l: Loop, block: Block) -> bool {
        let depth = self.loops[l].depth;
        let mut at = self.innermost(block);
        while let Some(inner) = at {
            if self.loops[inner].depth <= depth {
                return inner == l;
            }
            at = self.loops[inner].parent.expand();
        }
        false
    }

    /// True when the function has cycles that are no natural loops.
    pub fn is_irreducible(&self) -> bool {
        self.irreducible
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::read_module;

    #[test]
    fn nested_loops_have_depths_and_parents() {
        let text = "func @f(%c: i1) {
entry:
  jump outer
outer:
  br %c, inner, done
inner:
  br %c, inner, latch
latch:
  jump outer
done:
  ret
}";
        let module = read_module(text).unwrap();
        let func = module.funcs.values().next().unwrap();
        let cfg = Cfg::new(func);
        let loops = Loops::new(&cfg, &DominatorTree::new(&cfg));
        let depths: Vec<u32> = func.layout.blocks().map(|b| loops.depth(b)).collect();
        assert_eq!(depths, [0, 1, 2, 1, 0]);
        let blocks: Vec<Block> = func.layout.blocks().collect();
        let inner = loops.innermost(blocks[2]).unwrap();
        let outer = loops.innermost(blocks[1]).unwrap();
        assert_eq!(loops.data(inner).parent.expand(), Some(outer));
        assert!(loops.contains(outer, blocks[2]) && !loops.contains(inner, blocks[3]));
        assert!(!loops.is_irreducible());
    }

    #[test]
    fn a_cycle_with_two_entries_is_irreducible() {
        let text = "func @f(%c: i1) {
entry:
  br %c, a, b
a:
  jump b
b:
  jump a
}";
        let module = read_module(text).unwrap();
        let cfg = Cfg::new(module.funcs.values().next().unwrap());
        let loops = Loops::new(&cfg, &DominatorTree::new(&cfg));
        assert!(loops.is_irreducible());
        assert_eq!(loops.iter().count(), 0);
    }
}
