//! The order of blocks, and of instructions within blocks.
//!
//! Decides only order: doubly linked lists over entity indices, so that insertion and removal anywhere are constant
//! time. What an instruction is and what it uses is in [`crate::dfg`].

use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

use crate::entities::{Block, Inst};

#[derive(Clone, Default)]
struct BlockNode {
    prev: PackedOption<Block>,
    next: PackedOption<Block>,
    first: PackedOption<Inst>,
    last: PackedOption<Inst>,
    placed: bool,
}

#[derive(Clone, Default)]
struct InstNode {
    block: PackedOption<Block>,
    prev: PackedOption<Inst>,
    next: PackedOption<Inst>,
}

/// Block and instruction order of one function.
#[derive(Clone, Default)]
pub struct Layout {
    blocks: SecondaryMap<Block, BlockNode>,
    insts: SecondaryMap<Inst, InstNode>,
    first: PackedOption<Block>,
    last: PackedOption<Block>,
}

impl Layout {
    /// An empty layout.
    pub fn new() -> Layout {
        Layout::default()
    }

    /// The entry block: the first in order.
    pub fn entry(&self) -> Option<Block> {
        self.first.expand()
    }

    /// The last block in order.
    pub fn last_block(&self) -> Option<Block> {
        self.last.expand()
    }

    /// True when the block is placed.
    pub fn is_placed(&self, block: Block) -> bool {
        self.blocks[block].placed
    }

    /// Places an unplaced block at the end.
    pub fn append_block(&mut self, block: Block) {
        debug_assert!(!self.blocks[block].placed);
        let last = self.last;
        let node = &mut self.blocks[block];
        node.placed = true;
        node.prev = last;
        node.next = None.into();
        match last.expand() {
            Some(last) => self.blocks[last].next = block.into(),
            None => self.first = block.into(),
        }
        self.last = block.into();
    }

    /// Places an unplaced block right after `after`.
    pub fn insert_block_after(&mut self, block: Block, after: Block) {
        debug_assert!(!self.blocks[block].placed && self.blocks[after].placed);
        let next = self.blocks[after].next;
        let node = &mut self.blocks[block];
        node.placed = true;
        node.prev = after.into();
        node.next = next;
        self.blocks[after].next = block.into();
        match next.expand() {
            Some(next) => self.blocks[next].prev = block.into(),
            None => self.last = block.into(),
        }
    }

    /// Takes a block and its instructions out of the order; the instructions stay linked to the block.
    pub fn remove_block(&mut self, block: Block) {
        let (prev, next) = (self.blocks[block].prev, self.blocks[block].next);
        match prev.expand() {
            Some(prev) => self.blocks[prev].next = next,
            None => self.first = next,
        }
        match next.expand() {
            Some(next) => self.blocks[next].prev = prev,
            None => self.last = prev,
        }
        let node = &mut self.blocks[block];
        node.placed = false;
        node.prev = None.into();
        node.next = None.into();
    }

    /// The block after `block`.
    pub fn next_block(&self, block: Block) -> Option<Block> {
        self.blocks[block].next.expand()
    }

    /// The block before `block`.
    pub fn prev_block(&self, block: Block) -> Option<Block> {
        self.blocks[block].prev.expand()
    }

    /// Blocks in order.
    pub fn blocks(&self) -> impl Iterator<Item = Block> + '_ {
        std::iter::successors(self.entry(), |b| self.next_block(*b))
    }

    /// The block that holds `inst`.
    pub fn inst_block(&self, inst: Inst) -> Option<Block> {
        self.insts[inst].block.expand()
    }

    /// First instruction of a block.
    pub fn first_inst(&self, block: Block) -> Option<Inst> {
        self.blocks[block].first.expand()
    }

    /// Last instruction of a block: the terminator in verified functions.
    pub fn last_inst(&self, block: Block) -> Option<Inst> {
        self.blocks[block].last.expand()
    }

    /// The instruction after `inst` in its block.
    pub fn next_inst(&self, inst: Inst) -> Option<Inst> {
        self.insts[inst].next.expand()
    }

    /// The instruction before `inst` in its block.
    pub fn prev_inst(&self, inst: Inst) -> Option<Inst> {
        self.insts[inst].prev.expand()
    }

    /// Instructions of a block in order.
    pub fn insts(&self, block: Block) -> impl DoubleEndedIterator<Item = Inst> + '_ {
        InstIter { layout: self, front: self.blocks[block].first, back: self.blocks[block].last, done: false }
    }

    /// Puts an unplaced instruction at the end of a block.
    pub fn append_inst(&mut self, inst: Inst, block: Block) {
        debug_assert!(self.insts[inst].block.is_none());
        let last = self.blocks[block].last;
        self.insts[inst] = InstNode { block: block.into(), prev: last, next: None.into() };
        match last.expand() {
            Some(last) => self.insts[last].next = inst.into(),
            None => self.blocks[block].first = inst.into(),
        }
        self.blocks[block].last = inst.into();
    }

    /// Puts an unplaced instruction right before `before`. Does nothing when `before` is itself unplaced.
    pub fn insert_inst_before(&mut self, inst: Inst, before: Inst) {
        debug_assert!(self.insts[inst].block.is_none());
        let Some(block) = self.inst_block(before) else { return };
        let prev = self.insts[before].prev;
        self.insts[inst] = InstNode { block: block.into(), prev, next: before.into() };
        self.insts[before].prev = inst.into();
        match prev.expand() {
            Some(prev) => self.insts[prev].next = inst.into(),
            None => self.blocks[block].first = inst.into(),
        }
    }

    /// Takes an instruction out of its block.
    pub fn remove_inst(&mut self, inst: Inst) {
        let InstNode { block, prev, next } = self.insts[inst].clone();
        let Some(block) = block.expand() else { return };
        match prev.expand() {
            Some(prev) => self.insts[prev].next = next,
            None => self.blocks[block].first = next,
        }
        match next.expand() {
            Some(next) => self.insts[next].prev = prev,
            None => self.blocks[block].last = prev,
        }
        self.insts[inst] = InstNode::default();
    }

    /// Moves `first` and all instructions after it to the end of `to`.
    pub fn split_off(&mut self, first: Inst, to: Block) {
        let mut next = Some(first);
        while let Some(inst) = next {
            next = self.next_inst(inst);
            self.remove_inst(inst);
            self.append_inst(inst, to);
        }
    }
}

struct InstIter<'a> {
    layout: &'a Layout,
    front: PackedOption<Inst>,
    back: PackedOption<Inst>,
    done: bool,
}

impl Iterator for InstIter<'_> {
    type Item = Inst;
    fn next(&mut self) -> Option<Inst> {
        if self.done {
            return None;
        }
        let inst = self.front.expand()?;
        self.done = self.front == self.back;
        self.front = self.layout.insts[inst].next;
        Some(inst)
    }
}

impl DoubleEndedIterator for InstIter<'_> {
    fn next_back(&mut self) -> Option<Inst> {
        if self.done {
            return None;
        }
        let inst = self.back.expand()?;
        self.done = self.front == self.back;
        self.back = self.layout.insts[inst].prev;
        Some(inst)
    }
}
