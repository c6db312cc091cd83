//! Joins loads of neighbouring bytes into loads of vectors, and stores likewise.
//!
//! Within a block, accesses whose addresses are a constant number of bytes apart ([`Linear`]) are gathered in groups:
//! loads at the first of them, stores at the last. A load may go up to the first one when no store in between may touch its
//! bytes, a store down to the last when no access in between may ([`Aliases`]); everything that is not a plain access or
//! a computation ends all groups, so nothing moves over a barrier, a call or an atomic operation, and nothing is accessed that
//! would not have been. Of a group, runs without gaps are cut into pieces of 2, 4, … bytes, each as large as the
//! alignment that is known at its start: 32 bytes in global memory at most, which legalization cuts in two where the
//! target has no such access, and 16 elsewhere.

use ptxc_ir::{
    Block, CacheOp, Cfg, Extra, Flags, FloatKind, Function, FunctionBuilder, Inst, KnownBits, L2Evict, MemAttrs,
    Module, Opcode, Scalar, Space, Type, Value,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::addresses::{Base, Linear, Root};
use crate::aliases::{Aliases, Touched, overlap};
use crate::edit::{resolve_all_uses, resolve_uses_of};
use crate::effects::is_computation;
use crate::pass::Context;

/// Most groups that are open at a time, and accesses in one: what is compared with each other is bounded.
const MAX_OPEN: usize = 24;
const MAX_MEMBERS: usize = 64;
/// log2 of the widest access to the stack.
const STACK_ALIGN_LOG2: u32 = 4;

/// One access of a group.
#[derive(Clone, Copy)]
struct Member {
    inst: Inst,
    /// Its place in the block.
    position: u32,
    /// From the base of the group.
    offset: i64,
    size: u64,
    /// Values side by side; the type of one.
    lanes: u32,
    lane: Type,
    align_log2: u8,
}

/// What accesses of one group have in common.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    base: Base,
    store: bool,
    space: Space,
    /// The type of a lane: the pointer's, or an integer of its size.
    lane: Type,
    cache: CacheOp,
    l1: u8,
    invariant: bool,
}

/// Accesses that may be joined.
struct Group {
    key: Key,
    members: Vec<Member>,
    /// Loads: bytes that stores write behind the first member, where they stood or where they were moved to.
    written: Vec<(i64, u64)>,
}

/// The pass.
pub fn merge_accesses(func: &mut Function, ctx: &Context<'_>) -> bool {
    let order: Vec<Block> = Cfg::new(func).rpo().to_vec();
    let mut merger = Merger {
        aliases: Aliases::new(ctx.module, func),
        known: KnownBits::new(func),
        open: Vec::new(),
        index: FxHashMap::default(),
        closed: Vec::new(),
        position: 0,
    };
    let mut changed = false;
    for block in order {
        merger.scan(func, ctx, block);
        let closed = std::mem::take(&mut merger.closed);
        for group in closed {
            changed |= merger.join(func, group);
        }
    }
    if changed {
        resolve_all_uses(func);
    }
    changed
}

struct Merger<'m> {
    aliases: Aliases<'m>,
    known: KnownBits,
    /// Groups that may get further members, in order of their first.
    open: Vec<Group>,
    /// Where in `open` a key's group is.
    index: FxHashMap<Key, usize>,
    /// Groups of the block that are complete.
    closed: Vec<Group>,
    /// Instructions of the block seen so far.
    position: u32,
}

impl Merger<'_> {
    /// Finds the groups of a block.
    fn scan(&mut self, func: &mut Function, ctx: &Context<'_>, block: Block) {
        self.position = 0;
        let mut next = func.layout.first_inst(block);
        while let Some(inst) = next {
            next = func.layout.next_inst(inst);
            self.position += 1;
            // What was joined in blocks before left names behind.
            resolve_uses_of(func, inst);
            self.known.visit(func, inst);
            let data = &func.dfg.insts[inst];
            match (data.op, data.extra) {
                (Opcode::Load | Opcode::Store, Extra::Mem(attrs)) if !attrs.is_ordered() => {
                    self.access(func, ctx, inst, attrs);
                }
                (Opcode::Alloca | Opcode::Assume, _) => {}
                _ if is_computation(func, inst) => {}
                _ => self.close_all(),
            }
        }
        self.close_all();
    }

    fn access(&mut self, func: &Function, ctx: &Context<'_>, inst: Inst, attrs: MemAttrs) {
        let data = &func.dfg.insts[inst];
        let store = data.op == Opcode::Store;
        let Some(&pointer) = func.dfg.args(inst).get(usize::from(store)) else { return };
        let touched = Touched {
            address: Linear::new(func, ctx.module, pointer),
            size: data.ty.size(),
            space: func.dfg.ty(pointer).space().unwrap_or(Space::Generic),
        };
        let member = member(func, inst, attrs, &touched, self.position);
        let key = member.map(|(member, lane)| {
            let base = touched.address.base.clone();
            let l1 = attrs.l1 as u8;
            let key =
                Key { base, store, space: touched.space, lane, cache: attrs.cache, l1, invariant: attrs.invariant };
            (key, member)
        });
        let joins =
            key.as_ref().and_then(|(key, member)| self.index.get(key).copied().filter(|at| self.takes(*at, member)));
        self.close_others(func, &touched, store, attrs.invariant, joins);
        let Some((key, member)) = key else { return };
        // What was closed may have moved the group.
        match joins.and_then(|_| self.index.get(&key).copied()) {
            Some(at) => self.open[at].members.push(member),
            None => self.begin(key, member),
        }
    }

    /// Whether a group can take a further member.
    fn takes(&self, at: usize, member: &Member) -> bool {
        let group = &self.open[at];
        let clashes = |(offset, size): &(i64, u64)| overlap(*offset, *size, member.offset, member.size);
        group.members.len() < MAX_MEMBERS
            && !group.written.iter().any(clashes)
            // Of two stores to a byte the second counts.
            && !(group.key.store && group.members.iter().any(|m| clashes(&(m.offset, m.size))))
    }

    /// Ends the groups that must not get members behind this access, except the one it joins.
    fn close_others(&mut self, func: &Function, touched: &Touched, store: bool, invariant: bool, joins: Option<usize>) {
        if invariant {
            return;
        }
        // The members of the group that a store joins come down to it.
        let lowered = match joins {
            Some(at) if store => std::mem::take(&mut self.open[at].members),
            _ => Vec::new(),
        };
        let (mut closed, mut joined) = (false, None);
        let mut kept = Vec::with_capacity(self.open.len());
        for (at, mut group) in std::mem::take(&mut self.open).into_iter().enumerate() {
            if Some(at) == joins {
                joined = Some(kept.len());
                kept.push(group);
            } else if self.passes(func, &mut group, touched, store, &lowered) {
                kept.push(group);
            } else {
                closed = true;
                self.close(group);
            }
        }
        if let Some(at) = joined.filter(|_| store) {
            kept[at].members = lowered;
        }
        self.open = kept;
        if closed {
            self.reindex();
        }
    }

    /// Whether a group may still get members behind an access that is not one of them. `lowered` are the stores that come
    /// down to it.
    fn passes(&self, func: &Function, group: &mut Group, touched: &Touched, store: bool, lowered: &[Member]) -> bool {
        if !group.key.store {
            if !store || group.key.invariant {
                return true;
            }
            if group.key.base == touched.address.base {
                group.written.push((touched.address.offset, touched.size));
                // Stores that stood before the group stand behind its first member now: loads that join it would pass
                // them. If the last of them stood behind that member, the others were noted when it was joined.
                if lowered.last().is_some_and(|last| last.position < group.members[0].position) {
                    group.written.extend(lowered.iter().map(|store| (store.offset, store.size)));
                }
                return group.written.len() < MAX_MEMBERS;
            }
        }
        group.members.iter().all(|member| {
            let address = Linear { base: group.key.base.clone(), offset: member.offset, promises: false };
            let other = Touched { address, size: member.size, space: group.key.space };
            !self.aliases.may_overlap(func, &other, touched)
        })
    }

    fn begin(&mut self, key: Key, member: Member) {
        if let Some(at) = self.index.remove(&key) {
            let group = self.open.remove(at);
            self.close(group);
            self.reindex();
        } else if self.open.len() == MAX_OPEN {
            let group = self.open.remove(0);
            self.close(group);
            self.reindex();
        }
        self.index.insert(key.clone(), self.open.len());
        self.open.push(Group { key, members: vec![member], written: Vec::new() });
    }

    fn reindex(&mut self) {
        self.index.clear();
        for (at, group) in self.open.iter().enumerate() {
            self.index.insert(group.key.clone(), at);
        }
    }

    fn close(&mut self, group: Group) {
        if group.members.len() > 1 {
            self.closed.push(group);
        }
    }

    fn close_all(&mut self) {
        for group in std::mem::take(&mut self.open) {
            self.close(group);
        }
        self.index.clear();
    }

    /// Joins what can be joined of a group. Tells whether anything was.
    fn join(&self, func: &mut Function, group: Group) -> bool {
        raise_alignment(func, self.aliases.module(), group.key.base.root);
        let alignment = Alignment::of(self, func, &group);
        let mut members = group.members;
        members.sort_by_key(|m| m.offset);
        // Equal loads are one: the others are copies of what stands next to them.
        let mut copies: Vec<(Inst, Inst)> = Vec::new();
        members.dedup_by(|next, kept| {
            let same = (next.offset, next.lanes, next.lane) == (kept.offset, kept.lanes, kept.lane);
            let equal = same && !group.key.store;
            if equal {
                copies.push((next.inst, kept.inst));
            }
            equal
        });
        let widest = if group.key.space == Space::Global { 32 } else { 16 };
        let mut changed = false;
        let mut at = 0;
        while at < members.len() {
            let known = alignment.at(members[at].offset);
            let count = piece(&members[at..], known, widest);
            if count > 1 {
                let piece = Piece { members: &members[at..at + count], align_log2: known, lane: group.key.lane };
                if group.key.store {
                    piece.store(func);
                } else {
                    piece.load(func, &copies);
                }
                changed = true;
            }
            at += count;
        }
        changed
    }
}

/// The access as a member, and the type that lanes of its group have; `None` for what is not joined.
fn member(func: &Function, inst: Inst, attrs: MemAttrs, touched: &Touched, position: u32) -> Option<(Member, Type)> {
    if attrs.has_policy || attrs.prefetch != 0 || attrs.l2 != L2Evict::None {
        return None;
    }
    // Constant memory and parameters are read as operands of other instructions: joining makes loads of them.
    if matches!(touched.space, Space::Const | Space::Param | Space::Tensor) {
        return None;
    }
    let ty = func.dfg.insts[inst].ty;
    let lane = ty.scalar();
    let common = match lane.kind()? {
        Scalar::Int(8 | 16 | 32 | 64) => lane,
        Scalar::Float(FloatKind::F16 | FloatKind::Bf16 | FloatKind::F32 | FloatKind::F64) => {
            Type::int(lane.scalar_bits())
        }
        Scalar::Ptr(space) if space != Space::Tensor => lane,
        _ => return None,
    };
    let fits = touched.size <= 16 && touched.size == lane.size() * u64::from(ty.lanes());
    let offset = touched.address.offset;
    let member = Member {
        inst,
        position,
        offset,
        size: touched.size,
        lanes: ty.lanes(),
        lane,
        align_log2: attrs.align_log2.min(63),
    };
    fits.then_some((member, common))
}

/// Aligns a stack object for accesses as wide as it allows: nobody else says where it lies.
fn raise_alignment(func: &mut Function, module: &Module, root: Root) {
    let Root::Value(value) = root else { return };
    let Some(inst) = func.dfg.def_inst(value) else { return };
    let Extra::Alloca { ty, count, align } = &mut func.dfg.insts[inst].extra else { return };
    let layout = module.layout_of(*ty);
    let size = layout.size.saturating_mul(u64::from(*count));
    let Some(log2) = size.checked_ilog2() else { return };
    let wanted = 1 << log2.min(STACK_ALIGN_LOG2);
    if u64::from(*align).max(layout.align) < u64::from(wanted) {
        *align = wanted;
    }
}

/// What is known of the alignment of a group's addresses.
struct Alignment {
    /// log2 of the alignment of the base.
    base: u32,
    /// The access that promises most: its offset, and log2 of the promise.
    offset: i64,
    promised: u32,
}

impl Alignment {
    fn of(merger: &Merger<'_>, func: &Function, group: &Group) -> Alignment {
        let root = merger.aliases.root_align_log2(func, group.key.base.root);
        let base = root.min(group.key.base.terms_align_log2(func, &merger.known));
        let best = group.members.iter().max_by_key(|m| m.align_log2);
        let (offset, promised) = best.map_or((0, 0), |m| (m.offset, u32::from(m.align_log2)));
        Alignment { base, offset, promised }
    }

    /// log2 of the alignment at an offset from the base.
    fn at(&self, offset: i64) -> u8 {
        let from_base = self.base.min(offset.trailing_zeros());
        let from_access = self.promised.min(offset.wrapping_sub(self.offset).trailing_zeros());
        from_base.max(from_access).min(30) as u8
    }
}

/// How many members from the first on become one access: the most that fill a power of two of bytes without a gap, which
/// the alignment allows.
fn piece(members: &[Member], align_log2: u8, widest: u64) -> usize {
    let widest = widest.min(1 << align_log2.min(5));
    let (mut size, mut best) = (0, 1);
    for (index, member) in members.iter().enumerate() {
        let expected = members[0].offset.wrapping_add(size as i64);
        if member.offset != expected || size + member.size > widest {
            break;
        }
        size += member.size;
        if size.is_power_of_two() {
            best = index + 1;
        }
    }
    best
}

/// Members that become one access.
struct Piece<'a> {
    members: &'a [Member],
    align_log2: u8,
    /// The type of lanes where they differ.
    lane: Type,
}

impl Piece<'_> {
    /// Type of the whole.
    fn ty(&self) -> Type {
        let first = self.members[0].lane;
        let lane = if self.members.iter().all(|m| m.lane == first) { first } else { self.lane };
        lane.with_lanes(self.members.iter().map(|m| m.lanes).sum())
    }

    fn attrs(&self, func: &Function) -> Option<MemAttrs> {
        match func.dfg.insts[self.members[0].inst].extra {
            Extra::Mem(attrs) => Some(MemAttrs { align_log2: self.align_log2, ..attrs }),
            _ => None,
        }
    }

    fn load(&self, func: &mut Function, copies: &[(Inst, Inst)]) {
        let Some(attrs) = self.attrs(func) else { return };
        let Some(first) = self.members.iter().min_by_key(|m| m.position) else { return };
        let pointer = func.dfg.args(first.inst)[0];
        let ty = self.ty();
        let mut b = FunctionBuilder::before(func, first.inst);
        // The pointer of the first byte may be computed later.
        let pointer = b.byte_offset(pointer, self.members[0].offset.wrapping_sub(first.offset));
        let whole = b.load(ty, pointer, attrs);
        let mut lane = 0;
        for member in self.members {
            let part = lanes_of(&mut b, whole, lane, member);
            lane += member.lanes;
            let old = b.func.dfg.result(member.inst, 0);
            let same = copies.iter().filter(|(_, kept)| *kept == member.inst);
            for copy in same.map(|(copy, _)| *copy) {
                let old = b.func.dfg.result(copy, 0);
                b.func.dfg.alias(old, part);
            }
            b.func.dfg.alias(old, part);
        }
        self.remove(func);
        for (copy, kept) in copies {
            if self.members.iter().any(|m| m.inst == *kept) {
                func.layout.remove_inst(*copy);
            }
        }
    }

    fn store(&self, func: &mut Function) {
        let Some(attrs) = self.attrs(func) else { return };
        let Some(last) = self.members.iter().max_by_key(|m| m.position) else { return };
        let ty = self.ty();
        let mut b = FunctionBuilder::before(func, last.inst);
        let mut lanes: SmallVec<[Value; 16]> = SmallVec::new();
        for member in self.members {
            let value = b.func.dfg.args(member.inst)[0];
            for lane in 0..member.lanes {
                let one = if b.ty(value).is_vector() { b.extract(value, lane) } else { value };
                lanes.push(if b.ty(one) == ty.scalar() { one } else { b.convert(Opcode::Bitcast, one, ty.scalar()) });
            }
        }
        let pointer = b.func.dfg.args(self.members[0].inst)[1];
        let whole = b.vector(ty, &lanes);
        b.store(whole, pointer, attrs);
        self.remove(func);
    }

    fn remove(&self, func: &mut Function) {
        for member in self.members {
            func.layout.remove_inst(member.inst);
        }
    }
}

/// The lanes of a vector from `first` on that are a member's value.
fn lanes_of(b: &mut FunctionBuilder<'_>, whole: Value, first: u32, member: &Member) -> Value {
    let wanted = b.func.dfg.ty(b.func.dfg.result(member.inst, 0));
    let found = if wanted.is_vector() {
        let source = b.ty(whole);
        let mask = b.func.dfg.masks.push((first..first + member.lanes).map(|lane| lane as i32).collect());
        let poison = b.func.dfg.poison(source);
        let result = source.scalar().with_lanes(member.lanes);
        let args = [whole, poison];
        let inst = b.inst_with_results(Opcode::Shuffle, Flags::EMPTY, source, &args, Extra::Mask(mask), &[result]);
        b.func.dfg.result(inst, 0)
    } else {
        b.extract(whole, first)
    };
    if b.ty(found) == wanted { found } else { b.convert(Opcode::Bitcast, found, wanted) }
}
