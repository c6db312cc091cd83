//! The frame: where stack objects lie, and how addresses in it are written.
//!
//! Objects that are never alive together share a place, where that is allowed. An object is alive from an access to it to the
//! last one that can follow. What is accessed when is known of an object as long as its address is only computed with, chosen,
//! and accessed through; every other use of it, and there is no telling. The assembler keeps small frames in registers, and then each
//! access by a variable index chooses among as many of them as the frame has words: two arrays of seven words in one place instead of two
//! made 375 instructions of 476 (ptxas 13.5, sm_100a).
//!
//! An address of the frame plus an index is computed from the frame's beginning; the offset of the object becomes one of the access.
//! So accesses of several objects by one index have one address.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Block, Extra, Inst, Opcode, Space, Type, Value};
use ptxc_mir as mir;
use rustc_hash::FxHashMap;

use super::Lower;
use super::address::Base;
use crate::rules::Pattern;

/// Objects whose lives are followed: one bit each.
type Set = u64;
/// Most of them.
const MOST_OBJECTS: usize = Set::BITS as usize;

/// An object of the frame.
struct Object {
    alloca: Inst,
    bytes: u64,
    align: u64,
    /// Of the objects that are followed, those that are alive when this one is accessed, and the other way around.
    conflicts: Set,
}

/// A place for one object or several, of the greatest size and alignment among them.
struct Place {
    members: Set,
    bytes: u64,
    align: u64,
}

impl Lower<'_> {
    /// Gives every `alloca` of the entry block its place in the frame. Others allocate when they are executed.
    pub(super) fn lay_out_frame(&mut self, entry: Block, postorder: &[Block]) {
        let mut objects: Vec<Object> = Vec::new();
        for inst in self.ir.layout.insts(entry) {
            if let Some((bytes, align)) = self.alloca_size(inst) {
                objects.push(Object { alloca: inst, bytes, align, conflicts: Set::MAX });
            }
        }
        if !self.env.options.separate_stack && (2..=MOST_OBJECTS).contains(&objects.len()) {
            Lives::new(self, &objects, postorder).conflicts(self, &mut objects, postorder);
        }
        let place_of = places(&objects);
        let (mut size, mut max_align) = (0u64, 1u64);
        let mut offsets: Vec<Option<u64>> = Vec::new();
        for (object, index) in objects.iter().zip(&place_of.of) {
            if offsets.len() <= *index {
                offsets.resize(*index + 1, None);
            }
            let place = &place_of.places[*index];
            if let Some(at) = offsets[*index] {
                self.current_inst = Some(object.alloca);
                self.note(Pattern::StackShared);
                self.frame.insert(object.alloca, at as u32);
                continue;
            }
            let at = size.checked_next_multiple_of(place.align).unwrap_or(u64::MAX);
            let end = at.saturating_add(place.bytes);
            if end > i32::MAX as u64 {
                self.error(object.alloca, "the stack frame is larger than 2 GiB");
                continue;
            }
            offsets[*index] = Some(at);
            self.frame.insert(object.alloca, at as u32);
            size = end;
            max_align = max_align.max(place.align);
        }
        self.current_inst = None;
        self.func.depot = mir::Depot { size, align: max_align as u32 };
        self.find_displaced(postorder);
    }

    /// Bytes and alignment of what an `alloca` allocates; an empty object takes a byte, to have an address.
    pub(super) fn alloca_size(&self, inst: Inst) -> Option<(u64, u64)> {
        let Extra::Alloca { ty, count, align } = self.ir.dfg.insts[inst].extra else { return None };
        let layout = self.env.module.layout_of(ty);
        Some((layout.size.saturating_mul(u64::from(count)).max(1), u64::from(align).max(layout.align)))
    }

    /// Finds the addresses of variable places in the frame whose offsets go into accesses: those that nothing but accesses and
    /// further address arithmetic uses.
    fn find_displaced(&mut self, postorder: &[Block]) {
        if self.frame.is_empty() {
            return;
        }
        let mut found: FxHashMap<Value, i64> = FxHashMap::default();
        // Definitions come before uses, but around loops, where the use is by a block parameter.
        for block in postorder.iter().rev() {
            for inst in self.ir.layout.insts(*block) {
                if let (Opcode::Gep, Some(offset)) = (self.ir.dfg.insts[inst].op, self.variable_offset(inst)) {
                    found.insert(self.ir.dfg.result(inst, 0), offset);
                }
            }
        }
        if found.is_empty() {
            return;
        }
        for block in postorder {
            for inst in self.ir.layout.insts(*block) {
                let folds = match self.ir.dfg.insts[inst].op {
                    Opcode::Load | Opcode::Gep => Some(0),
                    Opcode::Store => Some(1),
                    _ => None,
                };
                let mut index = 0;
                self.ir.dfg.for_each_use(inst, |value| {
                    if folds != Some(index) {
                        found.remove(&self.ir.dfg.resolve(value));
                    }
                    index += 1;
                });
            }
        }
        self.displaced = found;
    }

    /// The bytes from the frame's beginning to the object that a `gep` steps through by a variable index, and its constant part.
    fn variable_offset(&self, gep: Inst) -> Option<i64> {
        let address = self.address(self.arg(gep, 0));
        // Of a generic pointer the frame's beginning in local memory is not the base.
        if address.base != Base::Depot || self.ty(self.ir.dfg.first_result(gep)?) != Type::ptr(Space::Local) {
            return None;
        }
        let constant = self.variable_step(gep)?;
        let offset = address.offset.checked_add(constant).filter(|sum| i32::try_from(*sum).is_ok())?;
        (offset != 0).then_some(offset)
    }
}

/// Which place each object has.
struct Placement {
    places: Vec<Place>,
    of: Vec<usize>,
}

/// Puts each object, large ones first, into the first place none of whose objects is alive with it. Places are numbered in
/// the order of their first objects, so that nothing moves where nothing is shared.
fn places(objects: &[Object]) -> Placement {
    let mut order: Vec<usize> = (0..objects.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(objects[*index].bytes));
    let mut places: Vec<Place> = Vec::new();
    let mut of = vec![0; objects.len()];
    for index in order {
        let object = &objects[index];
        let own = if index < MOST_OBJECTS { 1 << index } else { 0 };
        let free =
            places.iter().position(|place| object.conflicts & place.members == 0 && object.conflicts != Set::MAX);
        of[index] = free.unwrap_or(places.len());
        match free {
            Some(at) => {
                places[at].members |= own;
                places[at].align = places[at].align.max(object.align);
            }
            None => places.push(Place { members: own, bytes: object.bytes, align: object.align }),
        }
    }
    let mut numbers: Vec<Option<usize>> = vec![None; places.len()];
    let mut ordered: Vec<usize> = Vec::new();
    for at in &of {
        if numbers[*at].is_none() {
            numbers[*at] = Some(ordered.len());
            ordered.push(*at);
        }
    }
    let of = of.into_iter().map(|at| numbers[at].unwrap_or(at)).collect();
    let mut taken: Vec<Option<Place>> = places.into_iter().map(Some).collect();
    let places = ordered.into_iter().filter_map(|at| taken[at].take()).collect();
    Placement { places, of }
}

/// When objects are accessed.
struct Lives {
    /// The objects that a pointer may point into.
    pointees: SecondaryMap<Value, Set>,
    /// Objects of which not every access is known.
    escaped: Set,
    /// Accessed in a block.
    accessed: SecondaryMap<Block, Set>,
    /// Accessed on some way to the beginning of a block.
    before: SecondaryMap<Block, Set>,
    /// Accessed on some way from the end of a block on.
    after: SecondaryMap<Block, Set>,
}

impl Lives {
    fn new(lower: &Lower<'_>, objects: &[Object], postorder: &[Block]) -> Lives {
        let mut lives = Lives {
            pointees: SecondaryMap::new(),
            escaped: 0,
            accessed: SecondaryMap::new(),
            before: SecondaryMap::new(),
            after: SecondaryMap::new(),
        };
        for (index, object) in objects.iter().enumerate() {
            lives.pointees[lower.ir.dfg.result(object.alloca, 0)] = 1 << index;
        }
        // Each round but the last gives some pointer another object; few pointers get more than one.
        while postorder.iter().rev().fold(false, |changed, block| lives.derive(lower, *block) | changed) {}
        for block in postorder {
            for inst in lower.ir.layout.insts(*block) {
                let accessed = lives.access(lower, inst);
                lives.accessed[*block] |= accessed;
            }
        }
        lives.spread(lower, postorder);
        lives
    }

    fn pointees(&self, lower: &Lower<'_>, value: Value) -> Set {
        self.pointees[lower.ir.dfg.resolve(value)]
    }

    /// What follows about the pointers that a block makes and passes. Tells whether something is new.
    fn derive(&mut self, lower: &Lower<'_>, block: Block) -> bool {
        let dfg = &lower.ir.dfg;
        let mut changed = false;
        let mut raise = |pointees: &mut SecondaryMap<Value, Set>, to: Value, more: Set| {
            changed |= more & !pointees[to] != 0;
            pointees[to] |= more;
        };
        for inst in lower.ir.layout.insts(block) {
            if let (true, Some(result)) = (derives(dfg.insts[inst].op), dfg.first_result(inst)) {
                let more = dfg.args(inst).iter().fold(0, |all, arg| all | self.pointees[dfg.resolve(*arg)]);
                raise(&mut self.pointees, result, more);
            }
            dfg.for_each_target(inst, |target| {
                let params = dfg.block_params(target.block);
                for (param, arg) in params.iter().zip(target.args.as_slice(&dfg.pool)) {
                    let more = self.pointees[dfg.resolve(*arg)];
                    raise(&mut self.pointees, *param, more);
                }
            });
        }
        changed
    }

    /// The objects that an instruction accesses. Those of which it does something else escape.
    fn access(&mut self, lower: &Lower<'_>, inst: Inst) -> Set {
        let dfg = &lower.ir.dfg;
        let op = dfg.insts[inst].op;
        let mut accessed = 0;
        for (index, arg) in dfg.args(inst).iter().enumerate() {
            let pointees = self.pointees(lower, *arg);
            match (op, index) {
                (Opcode::Load, 0)
                | (Opcode::Store, 1)
                | (Opcode::Memcpy | Opcode::Memmove, 0 | 1)
                | (Opcode::Memset, 0) => accessed |= pointees,
                // A comparison tells objects apart that are not accessed at the same time, so it is no exception.
                _ if derives(op) => {}
                _ => self.escaped |= pointees,
            }
        }
        accessed
    }

    /// Follows the ways between blocks, forward and backward.
    fn spread(&mut self, lower: &Lower<'_>, postorder: &[Block]) {
        let mut changed = true;
        while changed {
            changed = false;
            for block in postorder.iter().rev() {
                let out = self.before[*block] | self.accessed[*block];
                for next in lower.successors(*block) {
                    changed |= out & !self.before[next] != 0;
                    self.before[next] |= out;
                }
            }
            for block in postorder {
                let next = |all, next: Block| all | self.after[next] | self.accessed[next];
                let after = lower.successors(*block).into_iter().fold(0, next);
                changed |= after != self.after[*block];
                self.after[*block] = after;
            }
        }
    }

    /// Notes which objects are alive when another is accessed.
    fn conflicts(mut self, lower: &Lower<'_>, objects: &mut [Object], postorder: &[Block]) {
        // What escapes may be accessed at any time.
        objects.iter_mut().for_each(|object| object.conflicts = self.escaped);
        let mut last: Vec<Option<Inst>> = vec![None; objects.len()];
        for block in postorder {
            if self.accessed[*block] == 0 {
                continue;
            }
            for inst in lower.ir.layout.insts(*block) {
                each(self.access(lower, inst), |index| last[index] = Some(inst));
            }
            let mut alive = self.before[*block] & (self.accessed[*block] | self.after[*block]);
            for inst in lower.ir.layout.insts(*block) {
                let accessed = self.access(lower, inst);
                alive |= accessed;
                each(accessed, |index| {
                    objects[index].conflicts |= alive;
                    each(alive, |other| objects[other].conflicts |= 1 << index);
                });
                each(accessed & !self.after[*block], |index| {
                    if last[index] == Some(inst) {
                        alive &= !(1 << index);
                    }
                });
            }
        }
        each(self.escaped, |index| objects[index].conflicts = Set::MAX);
    }
}

/// Whether an operation makes a pointer of pointers.
fn derives(op: Opcode) -> bool {
    matches!(op, Opcode::Gep | Opcode::Select | Opcode::Freeze | Opcode::Addrspacecast)
}

/// Calls `f` on the members of a set.
fn each(mut set: Set, mut f: impl FnMut(usize)) {
    while set != 0 {
        f(set.trailing_zeros() as usize);
        set &= set - 1;
    }
}
