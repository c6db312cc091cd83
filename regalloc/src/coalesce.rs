//! Merges values into classes that share a register.
//!
//! Candidates are the pairs that would otherwise need a move: a block parameter with each value passed for it, and the
//! two sides of a tie. They are tried from the deepest loop outwards, and first what most edges pass. Two classes merge
//! when no live range of one meets one of the other.
//!
//! Every member of the smaller class is compared with few of the larger, which is kept in order of definition. Of
//! those defined above it, only the nearest matters: were a farther one still live, so it would be where the nearer is
//! defined, and the two could not be in one class (Budimlić et al., "Fast copy coalescing and live-range
//! identification"). Of those defined below it, only the ones where it may still be live. Merging smaller into larger
//! keeps the whole close to linear, also for a variable that thousands of blocks assign.
//!
//! A move that stays on an edge writes its register at the end of the predecessor. That needs no interference of its
//! own: whatever is live there is live at the parameter's definition too, except the values being moved, and those are
//! read in parallel.

use crate::liveness::{Liveness, Place};
use cranelift_entity::packed_option::ReservedValue;
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
use ptxc_mir::{Block, Cfg, Function, Operand, RegClass, VReg};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The classes: sets of values that share a register.
#[derive(Debug)]
pub(crate) struct Classes {
    parent: Vec<VReg>,
    /// Members of a class in order of definition, kept at its root; empty stands for the root alone.
    members: Vec<BTreeSet<(Place, VReg)>>,
}

impl Classes {
    fn new(vregs: &PrimaryMap<VReg, RegClass>) -> Classes {
        Classes { parent: vregs.keys().collect(), members: vec![BTreeSet::new(); vregs.len()] }
    }

    /// The value that stands for the class of `vreg`.
    pub fn find(&mut self, vreg: VReg) -> VReg {
        let mut v = vreg;
        while self.parent[v.index()] != v {
            let grandparent = self.parent[self.parent[v.index()].index()];
            self.parent[v.index()] = grandparent;
            v = grandparent;
        }
        v
    }

    /// Whether the register of a value is read on the way into a block, parameters of the block apart. Members of a class
    /// do not meet, so of those defined above the block only the nearest can be live there.
    pub fn is_live_into(&mut self, vreg: VReg, block: Block, cfg: &Cfg, liveness: &Liveness) -> bool {
        let root = self.find(vreg);
        let Some(above) = cfg.idom(block) else { return false };
        let members = &self.members[root.index()];
        let nearest = if members.is_empty() {
            let defined = liveness.block[root].expand();
            defined.filter(|&defined| defined != block && cfg.dominates(defined, block)).map(|_| root)
        } else {
            nearest_above(cfg, liveness, liveness.end(above), above, members)
        };
        nearest.is_some_and(|nearest| liveness.is_live_into(nearest, block))
    }
}

/// Two values that would like one register.
struct Affinity {
    depth: u32,
    /// How many edges pass one for the other.
    edges: u32,
    a: VReg,
    b: VReg,
}

/// Merges what can be merged. Returns the classes and how many candidates need no move.
pub(crate) fn coalesce(
    func: &Function,
    cfg: &Cfg,
    liveness: &Liveness,
    depths: &SecondaryMap<Block, u32>,
) -> (Classes, u32) {
    let mut affinities = united(affinities(func, depths));
    affinities.sort_by_key(|affinity| (Reverse(affinity.depth), Reverse(affinity.edges)));
    let mut merger = Merger { cfg, liveness, classes: Classes::new(&func.vregs) };
    let mut coalesced = 0;
    for affinity in &affinities {
        if merger.merge(affinity.a, affinity.b) {
            coalesced += affinity.edges;
        }
    }
    (merger.classes, coalesced)
}

fn affinities(func: &Function, depths: &SecondaryMap<Block, u32>) -> Vec<Affinity> {
    let mut affinities = Vec::new();
    for &block in &func.layout {
        let depth = depths[block];
        for &inst in &func.blocks[block].insts {
            for operand in func.inst_operands(inst) {
                if let Operand::DefUse { def, used } = *operand {
                    affinities.push(Affinity { depth, edges: 1, a: def, b: used });
                }
            }
        }
        func.blocks[block].terminator.for_each_target(|t| {
            let depth = depth.min(depths[t.block]);
            for (&param, &arg) in func.blocks[t.block].params.iter().zip(func.call_args(t)) {
                affinities.push(Affinity { depth, edges: 1, a: param, b: arg });
            }
        });
    }
    affinities
}

/// The candidates with those of the same two values made one, where the first of them stood.
fn united(mut united: Vec<Affinity>) -> Vec<Affinity> {
    let mut order: Vec<u32> = (0..united.len() as u32).collect();
    order.sort_unstable_by_key(|&i| (united[i as usize].a, united[i as usize].b, i));
    let mut first: Option<usize> = None;
    for at in order {
        let at = at as usize;
        match first {
            Some(first) if (united[first].a, united[first].b) == (united[at].a, united[at].b) => {
                united[first].edges += united[at].edges;
                united[first].depth = united[first].depth.max(united[at].depth);
                united[at].edges = 0;
            }
            _ => first = Some(at),
        }
    }
    united.retain(|affinity| affinity.edges > 0);
    united
}

struct Merger<'a> {
    cfg: &'a Cfg,
    liveness: &'a Liveness,
    classes: Classes,
}

impl Merger<'_> {
    /// Merges the classes of two values if that is possible, or finds them merged.
    fn merge(&mut self, a: VReg, b: VReg) -> bool {
        let (a, b) = (self.classes.find(a), self.classes.find(b));
        if a == b {
            return true;
        }
        let (left, right) = (self.take(a), self.take(b));
        let (root, mut larger, child, smaller) =
            if left.len() >= right.len() { (a, left, b, right) } else { (b, right, a, left) };
        if smaller.iter().any(|&member| self.meets_class(member, &larger)) {
            self.classes.members[root.index()] = larger;
            self.classes.members[child.index()] = smaller;
            return false;
        }
        larger.extend(smaller);
        self.classes.parent[child.index()] = root;
        self.classes.members[root.index()] = larger;
        true
    }

    fn take(&mut self, root: VReg) -> BTreeSet<(Place, VReg)> {
        let mut members = std::mem::take(&mut self.classes.members[root.index()]);
        if members.is_empty() {
            members.insert((self.liveness.definition[root], root));
        }
        members
    }

    /// Whether a value meets some member of a class that it does not belong to.
    fn meets_class(&self, (place, vreg): (Place, VReg), class: &BTreeSet<(Place, VReg)>) -> bool {
        let Some(block) = self.liveness.block[vreg].expand() else { return false };
        if let Some(nearest) = nearest_above(self.cfg, self.liveness, place, block, class)
            && self.liveness.meets(nearest, vreg)
        {
            return true;
        }
        let last = self.liveness.last_place(vreg, block);
        class.range((place, VReg::reserved_value())..=(last, VReg::reserved_value())).any(|&(_, below)| {
            // Values defined at one place meet; `nearest_above` has seen them.
            self.liveness.meets(vreg, below)
        })
    }
}

/// The last member of a class that is defined at or before `place` in `block` and dominates it.
fn nearest_above(
    cfg: &Cfg,
    liveness: &Liveness,
    place: Place,
    block: Block,
    class: &BTreeSet<(Place, VReg)>,
) -> Option<VReg> {
    let (mut bound, mut above) = (place, block);
    loop {
        let &(at, candidate) = class.range(..=(bound, VReg::reserved_value())).next_back()?;
        if cfg.dominates(liveness.block[candidate].expand()?, block) {
            return Some(candidate);
        }
        // It lies beside: go up to the block under which both lie, and on from its own end.
        while liveness.start(above) > at {
            above = cfg.idom(above)?;
        }
        bound = liveness.end(above);
    }
}
