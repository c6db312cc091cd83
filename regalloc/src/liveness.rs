//! Where values are defined, used and live.
//!
//! Every place has a number. Blocks are numbered in preorder of the dominator tree, so that the place of a definition
//! also sorts definitions by dominance, and a block's instructions take [`STRIDE`] numbers each:
//!
//! | place | what happens there |
//! | --- | --- |
//! | `+1` | the read side of ties is read |
//! | `+2` | the written side of ties becomes occupied, before other operands are read |
//! | `+3` | operands are read |
//! | `+4` | results are written |
//! | `+5` | predicates that a comparison combines with its result are read: some versions of ptxas mishandle `setp` whose destination is also its combining predicate |
//! | `+5` | operands of opaque assembly are read: its statements may write results before; the written side of ties is complete |
//!
//! A block's parameters are defined at its first place, its terminator reads at its last.

use crate::fences::Kinds;
use crate::in_flight::{self, Held};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, SecondaryMap};
use ptxc_mir::{Block, Cfg, Function, Inst, Op, Operand, RegClass, VReg};

/// A number of a place.
pub(crate) type Place = u32;

/// Places of an instruction.
const STRIDE: Place = 8;

/// Definitions, uses and liveness of a function in SSA form.
#[derive(Debug, Default)]
pub(crate) struct Liveness {
    /// Where each value is defined.
    pub definition: SecondaryMap<VReg, Place>,
    /// In which block.
    pub block: SecondaryMap<VReg, PackedOption<Block>>,
    /// The first place of each block: that of the parameters.
    start: SecondaryMap<Block, Place>,
    /// The last place of each block: that of the terminator.
    end: SecondaryMap<Block, Place>,
    /// The last place of what each block dominates.
    subtree_end: SecondaryMap<Block, Place>,
    /// Uses of value `v` are `uses[first_use[v]..first_use[v + 1]]`, in ascending order.
    first_use: Vec<u32>,
    uses: Vec<Place>,
    /// Values that are live at the end of each block because some successor reads them, sorted.
    live_out: SecondaryMap<Block, Vec<VReg>>,
    /// Whether products in flight hold any.
    pub in_flight: bool,
}

impl Liveness {
    /// Computes it, in time proportional to operands and to the sizes of the live sets.
    pub fn compute(func: &Function, cfg: &Cfg, kinds: &Kinds) -> Liveness {
        let mut liveness = Liveness::default();
        liveness.first_use.resize(func.vregs.len() + 1, 0);
        let order = dominance_order(func, cfg);
        liveness.define(func, &order);
        for (i, &block) in order.iter().enumerate() {
            let last = order.get(i + cfg.dominated_count(block) as usize - 1).copied().unwrap_or(block);
            liveness.subtree_end[block] = liveness.end[last];
        }
        let places = in_flight::Places {
            order: &order,
            read: &|block, index| liveness.start[block] + (index as Place + 1) * STRIDE + 3,
            end: &|block| liveness.end[block],
        };
        let held = in_flight::held(func, cfg, kinds, &places);
        liveness.in_flight = !held.is_empty();
        let use_blocks = liveness.collect_uses(func, &order, &held);
        liveness.propagate(func, cfg, &use_blocks);
        liveness
    }

    /// Whether anything reads the value.
    pub fn is_used(&self, vreg: VReg) -> bool {
        !self.uses_of(vreg).is_empty()
    }

    /// Whether `first`, whose definition dominates that of `second`, is still needed when `second` is defined. Two
    /// values defined at one place always meet.
    pub fn meets(&self, first: VReg, second: VReg) -> bool {
        let place = self.definition[second];
        if self.definition[first] == place {
            return true;
        }
        let Some(block) = self.block[second].expand() else { return false };
        let uses = self.uses_of(first);
        let next = uses.partition_point(|&at| at <= place);
        uses.get(next).is_some_and(|&at| at <= self.end[block]) || self.live_out[block].binary_search(&first).is_ok()
    }

    /// Whether a value defined above a block is read in it or behind it.
    pub fn is_live_into(&self, vreg: VReg, block: Block) -> bool {
        let uses = self.uses_of(vreg);
        let next = uses.partition_point(|&at| at < self.start[block]);
        uses.get(next).is_some_and(|&at| at <= self.end[block]) || self.live_out[block].binary_search(&vreg).is_ok()
    }

    /// The first place of a block.
    pub fn start(&self, block: Block) -> Place {
        self.start[block]
    }

    /// The last place of a block.
    pub fn end(&self, block: Block) -> Place {
        self.end[block]
    }

    /// A place after which nothing that the definition of `vreg` dominates can meet it; `block` is where it is defined.
    pub fn last_place(&self, vreg: VReg, block: Block) -> Place {
        if self.live_out[block].binary_search(&vreg).is_ok() {
            self.subtree_end[block]
        } else {
            self.uses_of(vreg).last().copied().unwrap_or(0).max(self.definition[vreg])
        }
    }

    fn uses_of(&self, vreg: VReg) -> &[Place] {
        let v = vreg.index();
        &self.uses[self.first_use[v] as usize..self.first_use[v + 1] as usize]
    }

    fn define(&mut self, func: &Function, order: &[Block]) {
        let mut place: Place = 0;
        for &block in order {
            self.start[block] = place;
            for &param in &func.blocks[block].params {
                self.definition[param] = place;
                self.block[param] = block.into();
            }
            place += STRIDE;
            for &inst in &func.blocks[block].insts {
                for operand in func.inst_operands(inst) {
                    let (def, at) = match *operand {
                        Operand::Def(v) => (v, place + 4),
                        Operand::DefUse { def, .. } => (def, place + 2),
                        _ => continue,
                    };
                    self.definition[def] = at;
                    self.block[def] = block.into();
                }
                place += STRIDE;
            }
            self.end[block] = place;
            place += STRIDE;
        }
    }

    /// Sorts all uses by value. Returns the block of each.
    fn collect_uses(&mut self, func: &Function, order: &[Block], held: &[Held]) -> Vec<Block> {
        for_each_use(func, order, held, |v, _, _| self.first_use[v.index() + 1] += 1);
        for i in 1..self.first_use.len() {
            self.first_use[i] += self.first_use[i - 1];
        }
        let total = self.first_use.last().map_or(0, |&n| n as usize);
        self.uses = vec![0; total];
        let mut blocks = vec![Block::from_u32(0); total];
        let mut next: Vec<u32> = self.first_use.clone();
        // Places come in ascending order for each value except within one instruction, where only +1 comes after +3.
        for_each_use(func, order, held, |v, block, at| {
            let (first, mut slot) = (self.first_use[v.index()] as usize, next[v.index()] as usize);
            next[v.index()] += 1;
            blocks[slot] = block;
            while slot > first && self.uses[slot - 1] > at {
                self.uses[slot] = self.uses[slot - 1];
                slot -= 1;
            }
            self.uses[slot] = at;
        });
        blocks
    }

    /// Walks from each use outside the defining block up to the definition (Boissinot et al., "Fast liveness checking
    /// for SSA-form programs", section on computing sets by variable). Values are taken in order, so each block's list
    /// comes out sorted, and its last entry says whether the current value is in it.
    fn propagate(&mut self, func: &Function, cfg: &Cfg, use_blocks: &[Block]) {
        let mut visited: SecondaryMap<Block, PackedOption<VReg>> = SecondaryMap::with_capacity(func.blocks.len());
        let mut stack: Vec<Block> = Vec::new();
        for vreg in func.vregs.keys() {
            let v = vreg.index();
            let defined = self.block[vreg];
            for &block in &use_blocks[self.first_use[v] as usize..self.first_use[v + 1] as usize] {
                if defined != block.into() {
                    stack.push(block);
                }
                while let Some(block) = stack.pop() {
                    if visited[block] == vreg.into() {
                        continue;
                    }
                    visited[block] = vreg.into();
                    for &pred in cfg.predecessors(block) {
                        let live = &mut self.live_out[pred];
                        if live.last() != Some(&vreg) {
                            live.push(vreg);
                        }
                        if defined != pred.into() {
                            stack.push(pred);
                        }
                    }
                }
            }
        }
    }
}

/// Reachable blocks, each before those it dominates and subtrees contiguous.
fn dominance_order(func: &Function, cfg: &Cfg) -> Vec<Block> {
    let mut order: Vec<Block> = func.layout.iter().copied().filter(|&b| cfg.reachable(b)).collect();
    order.sort_unstable_by_key(|&block| cfg.dominance_number(block));
    order
}

/// Calls `f` with value, block and place of each use, those by products in flight included.
fn for_each_use(func: &Function, order: &[Block], held: &[Held], mut f: impl FnMut(VReg, Block, Place)) {
    let mut place: Place = 0;
    let mut held = held.iter().peekable();
    for &block in order {
        place += STRIDE;
        for &inst in &func.blocks[block].insts {
            inst_uses(func, inst, |v, offset| f(v, block, place + offset));
            place += STRIDE;
            while let Some(hold) = held.next_if(|hold| hold.at < place) {
                f(hold.value, hold.block, hold.at);
            }
        }
        func.for_each_terminator_use(block, |v| f(v, block, place));
        place += STRIDE;
        while let Some(hold) = held.next_if(|hold| hold.at < place) {
            f(hold.value, hold.block, hold.at);
        }
    }
}

fn inst_uses(func: &Function, inst: Inst, mut f: impl FnMut(VReg, Place)) {
    let data = &func.insts[inst];
    let operands = func.inst_operands(inst);
    let read = if matches!(data.op, Op::Asm(_)) { 5 } else { 3 };
    let read_pred = if is_comparison(func, operands) { 5 } else { read };
    if let Some(guard) = data.guard {
        f(guard.pred, read);
    }
    for operand in operands {
        match *operand {
            Operand::Use(v) | Operand::UseNot(v) | Operand::UseMinus(v) => {
                f(v, if func.class(v) == RegClass::Pred { read_pred } else { read });
            }
            Operand::DefUse { def, used } => {
                f(used, 1);
                // A result occupies its register to the end even if nobody reads it.
                f(def, 5);
            }
            _ => {}
        }
    }
}

/// Whether an instruction makes a predicate from other registers, as `setp` does and `and.pred` does not.
fn is_comparison(func: &Function, operands: &[Operand]) -> bool {
    let pred = |v: VReg| func.class(v) == RegClass::Pred;
    operands.iter().any(|o| o.def().is_some_and(pred)) && operands.iter().any(|o| o.used().is_some_and(|v| !pred(v)))
}
