//! Merges values into classes that share a register.
//!
//! Candidates are the pairs that would otherwise need a move: a block parameter with each value passed for it, and the
//! two sides of a tie. They are tried from the deepest loop outwards. Two classes merge when no live range of one
//! meets one of the other. Since a class is free of interference in itself, it is enough to walk the definitions of
//! both in dominance order and compare each with the nearest one above it: were a farther one still live, so it would
//! be at the nearer (Budimlić et al., "Fast copy coalescing and live-range identification").
//!
//! A move that stays on an edge writes its register at the end of the predecessor. That needs no interference of its
//! own: whatever is live there is live at the parameter's definition too, except the values being moved, and those are
//! read in parallel.

use crate::liveness::Liveness;
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
use ptxc_mir::{Block, Cfg, Function, Operand, RegClass, VReg};

/// The classes: sets of values that share a register.
#[derive(Debug)]
pub(crate) struct Classes {
    parent: Vec<VReg>,
    /// Members of a class in order of definition, kept at its root; empty stands for the root alone.
    members: Vec<Vec<VReg>>,
}

impl Classes {
    fn new(vregs: &PrimaryMap<VReg, RegClass>) -> Classes {
        Classes { parent: vregs.keys().collect(), members: vec![Vec::new(); vregs.len()] }
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

    fn take_members(&mut self, root: VReg) -> Vec<VReg> {
        let members = std::mem::take(&mut self.members[root.index()]);
        if members.is_empty() { vec![root] } else { members }
    }
}

/// Two values that would like one register.
struct Affinity {
    depth: u32,
    a: VReg,
    b: VReg,
}

/// Merges what can be merged. Returns the classes and how many candidates need no move.
pub(crate) fn coalesce(func: &Function, cfg: &Cfg, liveness: &Liveness) -> (Classes, u32) {
    let mut affinities = affinities(func, cfg);
    affinities.sort_by_key(|affinity| std::cmp::Reverse(affinity.depth));
    let mut merger =
        Merger { cfg, liveness, classes: Classes::new(&func.vregs), merged: Vec::new(), above: Vec::new() };
    let mut coalesced = 0;
    for affinity in &affinities {
        coalesced += u32::from(merger.merge(affinity.a, affinity.b));
    }
    (merger.classes, coalesced)
}

fn affinities(func: &Function, cfg: &Cfg) -> Vec<Affinity> {
    let depths = loop_depths(func, cfg);
    let mut affinities = Vec::new();
    for &block in &func.layout {
        let depth = depths[block];
        for &inst in &func.blocks[block].insts {
            for operand in func.inst_operands(inst) {
                if let Operand::DefUse { def, used } = *operand {
                    affinities.push(Affinity { depth, a: def, b: used });
                }
            }
        }
        func.blocks[block].terminator.for_each_target(|t| {
            let depth = depth.min(depths[t.block]);
            for (&param, &arg) in func.blocks[t.block].params.iter().zip(func.call_args(t)) {
                affinities.push(Affinity { depth, a: param, b: arg });
            }
        });
    }
    affinities
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

struct Merger<'a> {
    cfg: &'a Cfg,
    liveness: &'a Liveness,
    classes: Classes,
    /// The members of both classes in order, while they are compared.
    merged: Vec<VReg>,
    /// The chain of definitions above the current one, and whether they are of the first class.
    above: Vec<(VReg, bool)>,
}

impl Merger<'_> {
    /// Merges the classes of two values if that is possible, or finds them merged.
    fn merge(&mut self, a: VReg, b: VReg) -> bool {
        let (a, b) = (self.classes.find(a), self.classes.find(b));
        if a == b {
            return true;
        }
        let (left, right) = (self.classes.take_members(a), self.classes.take_members(b));
        if self.meet(&left, &right) {
            self.classes.members[a.index()] = left;
            self.classes.members[b.index()] = right;
            return false;
        }
        // The larger class keeps its list, to be filled with both.
        let (root, child, mut list) = if left.len() >= right.len() { (a, b, left) } else { (b, a, right) };
        list.clear();
        list.extend_from_slice(&self.merged);
        self.classes.parent[child.index()] = root;
        self.classes.members[root.index()] = list;
        true
    }

    /// Whether some value of one list meets one of the other. If not, `merged` holds both in order.
    fn meet(&mut self, left: &[VReg], right: &[VReg]) -> bool {
        let place = |v: VReg| self.liveness.definition[v];
        self.merged.clear();
        self.above.clear();
        let (mut l, mut r) = (left.iter().peekable(), right.iter().peekable());
        loop {
            let (vreg, is_left) = match (l.peek(), r.peek()) {
                (Some(&&x), Some(&&y)) if place(x) <= place(y) => (x, true),
                (_, Some(&&y)) => (y, false),
                (Some(&&x), None) => (x, true),
                (None, None) => return false,
            };
            if is_left {
                l.next()
            } else {
                r.next()
            };
            while let Some(&(top, _)) = self.above.last()
                && !self.dominates(top, vreg)
            {
                self.above.pop();
            }
            if let Some(&(top, top_is_left)) = self.above.last()
                && top_is_left != is_left
                && self.liveness.meets(top, vreg)
            {
                return true;
            }
            self.above.push((vreg, is_left));
            self.merged.push(vreg);
        }
    }

    /// Whether the definition of `a`, which comes first in order, dominates that of `b`.
    fn dominates(&self, a: VReg, b: VReg) -> bool {
        match (self.liveness.block[a].expand(), self.liveness.block[b].expand()) {
            (Some(a), Some(b)) => self.cfg.dominates(a, b),
            _ => false,
        }
    }
}
