//! Replaces the accesses of slots by values: places block parameters where definitions meet, then walks the dominator
//! tree with the present value of every slot.
//!
//! Parameters are placed at the iterated dominance frontier of a slot's writes, as far as the slot is alive there. The
//! frontier is found by walking the dominator subtrees of the writes, deepest first, and looking at the edges that
//! leave them (Sreedhar and Gao), so no frontier sets are built.

use std::collections::BinaryHeap;

use cranelift_entity::SecondaryMap;
use ptxc_ir::{
    Block, Cfg, DominatorTree, Extra, Flags, Function, FunctionBuilder, Inst, MemAttrs, Opcode, Type, Value,
};
use smallvec::SmallVec;

use super::bits::{filled, from_image, image, reinterpret};
use super::objects::{Found, Kind, Site, Spot};
use super::slots::{Slot, Slots, by_lanes, index_sites, lanes_type};

/// What one block does to one slot.
#[derive(Clone, Copy)]
struct BlockUse {
    block: Block,
    /// It reads what came in.
    reads_first: bool,
    /// It writes.
    writes: bool,
}

/// The dominator tree as lists of children, with depths.
struct Tree {
    children: SecondaryMap<Block, SmallVec<[Block; 2]>>,
    depth: SecondaryMap<Block, u32>,
}

impl Tree {
    fn new(cfg: &Cfg) -> Tree {
        let dominators = DominatorTree::new(cfg);
        let mut tree = Tree { children: SecondaryMap::new(), depth: SecondaryMap::new() };
        for block in cfg.rpo() {
            if let Some(parent) = dominators.idom(cfg, *block) {
                tree.children[parent].push(*block);
                tree.depth[*block] = tree.depth[parent] + 1;
            }
        }
        tree
    }
}

/// Replaces every access of a slot of an object that does not escape.
pub fn rename(func: &mut Function, cfg: &Cfg, found: &Found, slots: &Slots) {
    let tree = Tree::new(cfg);
    let sites = index_sites(&found.sites);
    let params = place_params(func, cfg, &tree, found, slots);
    let mut renamer = Renamer {
        found,
        slots,
        sites: &sites,
        params: &params,
        current: vec![None; slots.slots.len()],
        undo: Vec::new(),
    };
    renamer.walk(func, cfg, &tree);
    renamer.feed_from_unreachable(func, cfg);
}

/// The slots for which each block has a new parameter, in the order of the parameters.
type Params = SecondaryMap<Block, Vec<(u32, Value)>>;

fn place_params(func: &mut Function, cfg: &Cfg, tree: &Tree, found: &Found, slots: &Slots) -> Params {
    let uses = block_uses(func, found, slots);
    let mut params = Params::new();
    let mut placer = Placer { alive: SecondaryMap::new(), placed: SecondaryMap::new(), visited: SecondaryMap::new() };
    for (slot, uses) in uses.iter().enumerate() {
        // What every block writes before it reads needs no parameters.
        if !uses.iter().any(|block| block.reads_first) || !uses.iter().any(|block| block.writes) {
            continue;
        }
        for block in placer.blocks_for(cfg, tree, slot as u32 + 1, uses) {
            let value = func.dfg.append_block_param(block, slots.slots[slot].ty);
            params[block].push((slot as u32, value));
        }
    }
    params
}

/// What blocks do to slots, by slot. Sites of one block follow each other.
fn block_uses(func: &Function, found: &Found, slots: &Slots) -> Vec<SmallVec<[BlockUse; 2]>> {
    let mut uses: Vec<SmallVec<[BlockUse; 2]>> = vec![SmallVec::new(); slots.slots.len()];
    for site in &found.sites {
        let Some(block) = func.layout.inst_block(site.inst) else { continue };
        for (spot, writes) in [(site.from, false), (site.to, true)] {
            let Some(spot) = found.known(spot) else { continue };
            for slot in slots.covered(spot, site.size) {
                match uses[slot].last_mut() {
                    Some(last) if last.block == block => last.writes |= writes,
                    _ => uses[slot].push(BlockUse { block, reads_first: !writes, writes }),
                }
            }
        }
    }
    uses
}

/// Finds the blocks that need a parameter for a slot. The maps hold the number of the slot they were last set for.
struct Placer {
    alive: SecondaryMap<Block, u32>,
    placed: SecondaryMap<Block, u32>,
    visited: SecondaryMap<Block, u32>,
}

impl Placer {
    fn blocks_for(&mut self, cfg: &Cfg, tree: &Tree, slot: u32, uses: &[BlockUse]) -> Vec<Block> {
        self.mark_alive(cfg, slot, uses);
        let position = |block: Block| cfg.rpo_index(block).unwrap_or(0);
        // Deepest first; the position makes the order total.
        let mut queue: BinaryHeap<(u32, usize, Block)> = BinaryHeap::new();
        queue.extend(uses.iter().filter(|u| u.writes).map(|u| (tree.depth[u.block], position(u.block), u.block)));
        let mut found: Vec<Block> = Vec::new();
        let mut work: Vec<Block> = Vec::new();
        while let Some((depth, _, root)) = queue.pop() {
            if self.visited[root] != slot {
                self.visited[root] = slot;
                work.push(root);
            }
            while let Some(block) = work.pop() {
                for next in cfg.succs(block) {
                    let joins = tree.depth[*next] <= depth && self.alive[*next] == slot;
                    if joins && self.placed[*next] != slot {
                        self.placed[*next] = slot;
                        found.push(*next);
                        queue.push((tree.depth[*next], position(*next), *next));
                    }
                }
                for child in &tree.children[block] {
                    if self.visited[*child] != slot {
                        self.visited[*child] = slot;
                        work.push(*child);
                    }
                }
            }
        }
        found.sort_unstable_by_key(|block| position(*block));
        found
    }

    /// Marks the blocks at whose start the slot's value is needed.
    fn mark_alive(&mut self, cfg: &Cfg, slot: u32, uses: &[BlockUse]) {
        // `visited` serves as the set of blocks that write; it is set anew for the walk afterwards.
        let mut writes: SmallVec<[Block; 8]> = uses.iter().filter(|u| u.writes).map(|u| u.block).collect();
        writes.sort_unstable();
        let mut work: Vec<Block> = uses.iter().filter(|u| u.reads_first).map(|u| u.block).collect();
        work.iter().for_each(|block| self.alive[*block] = slot);
        while let Some(block) = work.pop() {
            for pred in cfg.preds(block) {
                let supplies = writes.binary_search(&pred.block).is_ok();
                if !supplies && cfg.is_reachable(pred.block) && self.alive[pred.block] != slot {
                    self.alive[pred.block] = slot;
                    work.push(pred.block);
                }
            }
        }
    }
}

struct Renamer<'a> {
    found: &'a Found,
    slots: &'a Slots,
    sites: &'a SecondaryMap<Inst, Option<u32>>,
    params: &'a Params,
    /// The value of each slot at this point.
    current: Vec<Option<Value>>,
    /// What `current` was before, to go back up the tree.
    undo: Vec<(u32, Option<Value>)>,
}

impl Renamer<'_> {
    fn walk(&mut self, func: &mut Function, cfg: &Cfg, tree: &Tree) {
        let Some(entry) = cfg.rpo().first() else { return };
        // A block to enter, or the length of `undo` to go back to.
        enum Step {
            Enter(Block),
            Leave(usize),
        }
        let mut work = vec![Step::Enter(*entry)];
        while let Some(step) = work.pop() {
            match step {
                Step::Leave(length) => {
                    for (slot, value) in self.undo.drain(length..).rev() {
                        self.current[slot as usize] = value;
                    }
                }
                Step::Enter(block) => {
                    work.push(Step::Leave(self.undo.len()));
                    self.block(func, block);
                    work.extend(tree.children[block].iter().rev().map(|child| Step::Enter(*child)));
                }
            }
        }
    }

    fn set(&mut self, slot: usize, value: Value) {
        let before = self.current[slot].replace(value);
        self.undo.push((slot as u32, before));
    }

    fn block(&mut self, func: &mut Function, block: Block) {
        let params = self.params;
        for (slot, value) in &params[block] {
            self.set(*slot as usize, *value);
        }
        let mut next = func.layout.first_inst(block);
        while let Some(inst) = next {
            next = func.layout.next_inst(inst);
            if let Some(index) = self.sites[inst] {
                let found = self.found;
                self.site(func, &found.sites[index as usize]);
            }
        }
        if let Some(last) = func.layout.last_inst(block) {
            self.feed(func, last);
        }
    }

    /// Appends the present values to the arguments of a branch.
    fn feed(&mut self, func: &mut Function, branch: Inst) {
        let mut targets: SmallVec<[Block; 2]> = SmallVec::new();
        func.dfg.for_each_target(branch, |target| targets.push(target.block));
        if targets.iter().all(|target| self.params[*target].is_empty()) {
            return;
        }
        let mut values: Vec<Value> = Vec::new();
        for target in &targets {
            for (slot, _) in &self.params[*target] {
                values.push(self.value(func, *slot as usize));
            }
        }
        let mut values = values.into_iter();
        let params = self.params;
        func.dfg.for_each_target_mut(branch, |target, pool| {
            target.args.extend(values.by_ref().take(params[target.block].len()), pool);
        });
    }

    /// Branches in blocks that cannot be reached have parameters to feed, too.
    fn feed_from_unreachable(&mut self, func: &mut Function, cfg: &Cfg) {
        self.current.fill(None);
        let blocks: Vec<Block> = func.layout.blocks().filter(|block| !cfg.is_reachable(*block)).collect();
        for block in blocks {
            if let Some(last) = func.layout.last_inst(block) {
                self.feed(func, last);
            }
        }
    }

    /// A slot's value here.
    fn value(&self, func: &mut Function, slot: usize) -> Value {
        match self.current[slot] {
            Some(value) => value,
            None => func.dfg.bits(self.slots.slots[slot].ty, 0),
        }
    }

    /// Replaces one access.
    fn site(&mut self, func: &mut Function, site: &Site) {
        let (to, from) = (self.found.known(site.to), self.found.known(site.from));
        if to.is_none() && from.is_none() {
            return;
        }
        match site.kind {
            Kind::Load(ty) => {
                if let Some(spot) = from {
                    let value = self.load(func, site, spot, ty);
                    let result = func.dfg.result(site.inst, 0);
                    func.dfg.alias(result, value);
                }
            }
            Kind::Store(ty) => {
                if let Some(spot) = to {
                    let value = func.dfg.resolve(func.dfg.args(site.inst)[0]);
                    self.store(func, site, spot, ty, value);
                }
            }
            Kind::Set => {
                if let Some(spot) = to {
                    let byte = func.dfg.resolve(func.dfg.args(site.inst)[1]);
                    for slot in self.slots.covered(spot, site.size) {
                        let mut b = FunctionBuilder::before(func, site.inst);
                        let value = filled(&mut b, byte, self.slots.slots[slot].ty);
                        self.set(slot, value);
                    }
                }
            }
            Kind::Copy => self.copy(func, site, to, from),
        }
        func.layout.remove_inst(site.inst);
    }

    fn load(&mut self, func: &mut Function, site: &Site, spot: Spot, ty: Type) -> Value {
        let covered = self.slots.covered(spot, site.size);
        let values: SmallVec<[Value; 4]> = covered.clone().map(|slot| self.value(func, slot)).collect();
        let mut b = FunctionBuilder::before(func, site.inst);
        match values.as_slice() {
            [value] => reinterpret(&mut b, *value, ty),
            _ => join(&mut b, ty, &self.slots.slots[covered], &values),
        }
    }

    fn store(&mut self, func: &mut Function, site: &Site, spot: Spot, ty: Type, value: Value) {
        let covered = self.slots.covered(spot, site.size);
        let mut b = FunctionBuilder::before(func, site.inst);
        let slots = &self.slots.slots[covered.clone()];
        let pieces = match slots {
            [slot] => SmallVec::from_slice(&[reinterpret(&mut b, value, slot.ty)]),
            _ => split(&mut b, ty, slots, value),
        };
        covered.zip(pieces).for_each(|(slot, value)| self.set(slot, value));
    }

    /// Copies between slots, or between slots and memory that stays memory.
    fn copy(&mut self, func: &mut Function, site: &Site, to: Option<Spot>, from: Option<Spot>) {
        let Extra::Copy { dst_align, src_align, .. } = func.dfg.insts[site.inst].extra else { return };
        let args = func.dfg.args(site.inst);
        let (target, source) = (args[0], args[1]);
        match (to, from) {
            (Some(to), Some(from)) => {
                for (to, from) in self.slots.covered(to, site.size).zip(self.slots.covered(from, site.size)) {
                    let value = self.value(func, from);
                    self.set(to, value);
                }
            }
            (Some(to), None) => {
                for slot in self.slots.covered(to, site.size) {
                    let Slot { offset, ty, .. } = self.slots.slots[slot];
                    let at = offset - to.offset;
                    let mut b = FunctionBuilder::before(func, site.inst);
                    let pointer = b.byte_offset(source, at as i64);
                    let value = b.load(ty, pointer, MemAttrs::aligned(common_align(src_align, at)));
                    self.set(slot, value);
                }
            }
            (None, Some(from)) => {
                for slot in self.slots.covered(from, site.size) {
                    let at = self.slots.slots[slot].offset - from.offset;
                    let value = self.value(func, slot);
                    let mut b = FunctionBuilder::before(func, site.inst);
                    let pointer = b.byte_offset(target, at as i64);
                    b.store(value, pointer, MemAttrs::aligned(common_align(dst_align, at)));
                }
            }
            (None, None) => {}
        }
    }
}

/// The alignment of an address that many bytes after one aligned to `align`.
fn common_align(align: u32, offset: u64) -> u64 {
    let align = u64::from(align.max(1));
    if offset == 0 { align } else { align.min(1 << offset.trailing_zeros()) }
}

/// Puts a value together from the slots that it covers.
fn join(b: &mut FunctionBuilder<'_>, ty: Type, slots: &[Slot], values: &[Value]) -> Value {
    if by_lanes(ty, slots) {
        let mut lanes: SmallVec<[Value; 8]> = SmallVec::new();
        for (slot, value) in slots.iter().zip(values) {
            let piece = reinterpret(b, *value, lanes_type(ty, slot.size));
            match b.ty(piece).is_vector() {
                true => lanes.extend((0..b.ty(piece).lanes()).map(|lane| b.extract(piece, lane))),
                false => lanes.push(piece),
            }
        }
        return b.vector(ty, &lanes);
    }
    let whole = Type::int(ty.size() as u32 * 8);
    let start = slots.first().map_or(0, |slot| slot.offset);
    let mut sum: Option<Value> = None;
    for (slot, value) in slots.iter().zip(values) {
        let bits = image(b, *value);
        let wide = b.convert(Opcode::Zext, bits, whole);
        let shift = (slot.offset - start) * 8;
        let part = if shift == 0 { wide } else { b.binary_imm(Opcode::Shl, wide, shift as i64) };
        sum = Some(match sum {
            Some(sum) => b.binary_flags(Opcode::Or, Flags::DISJOINT, sum, part),
            None => part,
        });
    }
    let bits = sum.unwrap_or_else(|| b.bits(whole, 0));
    from_image(b, bits, ty)
}

/// Takes a value apart into the slots that it covers.
fn split(b: &mut FunctionBuilder<'_>, ty: Type, slots: &[Slot], value: Value) -> SmallVec<[Value; 4]> {
    let mut pieces = SmallVec::new();
    let start = slots.first().map_or(0, |slot| slot.offset);
    if by_lanes(ty, slots) {
        let size = ty.scalar().size();
        for slot in slots {
            let piece = lanes_type(ty, slot.size);
            let first = ((slot.offset - start) / size) as u32;
            let lanes: SmallVec<[Value; 8]> = (0..piece.lanes()).map(|lane| b.extract(value, first + lane)).collect();
            let joined = if piece.is_vector() { b.vector(piece, &lanes) } else { lanes[0] };
            pieces.push(reinterpret(b, joined, slot.ty));
        }
        return pieces;
    }
    let bits = image(b, value);
    for slot in slots {
        let shift = (slot.offset - start) * 8;
        let low = if shift == 0 { bits } else { b.binary_imm(Opcode::Lshr, bits, shift as i64) };
        let part = b.convert(Opcode::Trunc, low, Type::int(slot.size as u32 * 8));
        pieces.push(from_image(b, part, slot.ty));
    }
    pieces
}
