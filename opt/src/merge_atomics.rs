//! Joins atomic additions to neighbouring floats in global memory into additions to vectors.
//!
//! Of a vector each lane is an atomic object of its own, and in which order the lanes are changed is open; relaxed operations
//! on different objects have no order either. So additions of one block to floats side by side, whose old values nobody reads,
//! become one where the last of them stands, when no plain access in between may touch their bytes and nothing else than
//! computation, loads and stores lies between. Legalization takes vectors apart again where the target has none.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{
    AtomicOp, Block, Cfg, Extra, FloatKind, Function, FunctionBuilder, Inst, KnownBits, MemAttrs, Opcode, Ordering,
    Scalar, Scope, Space, Type, Value,
};
use smallvec::SmallVec;

use crate::addresses::{Base, Linear};
use crate::aliases::{Aliases, Touched, overlap};
use crate::edit::{resolve_all_uses, resolve_uses_of};
use crate::effects::is_computation;
use crate::pass::Context;
use crate::rules::Rule;

/// Most groups that are open at a time, and additions in one.
const MAX_OPEN: usize = 8;
const MAX_MEMBERS: usize = 64;
/// Bytes of the widest vector.
const WIDEST: u64 = 16;

/// What additions of one group have in common.
#[derive(Clone, PartialEq, Eq)]
struct Key {
    base: Base,
    lane: Type,
    scope: Scope,
}

/// One addition.
#[derive(Clone, Copy)]
struct Member {
    inst: Inst,
    offset: i64,
    lanes: u32,
    align_log2: u8,
}

impl Member {
    fn size(&self, key: &Key) -> u64 {
        u64::from(self.lanes) * key.lane.size()
    }
}

/// Additions that may be joined, in the order of the block.
struct Group {
    key: Key,
    members: Vec<Member>,
}

/// The pass.
pub fn merge_atomics(func: &mut Function, ctx: &Context<'_>) -> bool {
    let mut uses: SecondaryMap<Value, bool> = SecondaryMap::new();
    let mut candidates = 0;
    for block in func.layout.blocks() {
        for inst in func.layout.insts(block) {
            func.dfg.for_each_use(inst, |value| uses[func.dfg.resolve(value)] = true);
            candidates += u32::from(func.dfg.insts[inst].op == Opcode::AtomicRmw);
        }
    }
    if candidates < 2 {
        return false;
    }
    let order: Vec<Block> = Cfg::new(func).rpo().to_vec();
    let aliases = Aliases::new(ctx.module, func);
    let mut merger = Merger { aliases, known: KnownBits::new(func), uses, open: Vec::new(), closed: Vec::new() };
    let mut changed = false;
    for block in order {
        merger.scan(func, ctx, block);
        for group in std::mem::take(&mut merger.closed) {
            changed |= merger.join(func, ctx, group);
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
    /// Values that somebody reads.
    uses: SecondaryMap<Value, bool>,
    open: Vec<Group>,
    closed: Vec<Group>,
}

impl Merger<'_> {
    /// Finds the groups of a block.
    fn scan(&mut self, func: &mut Function, ctx: &Context<'_>, block: Block) {
        let mut next = func.layout.first_inst(block);
        while let Some(inst) = next {
            next = func.layout.next_inst(inst);
            resolve_uses_of(func, inst);
            self.known.visit(func, inst);
            let data = &func.dfg.insts[inst];
            match (data.op, data.extra) {
                (Opcode::Load | Opcode::Store, Extra::Mem(attrs)) if !attrs.is_ordered() => {
                    let pointer = func.dfg.args(inst).get(usize::from(data.op == Opcode::Store)).copied();
                    let size = data.ty.size();
                    let touched = pointer.map(|pointer| touched(func, ctx, pointer, size));
                    self.close_touched(func, touched.as_ref(), None);
                }
                (Opcode::AtomicRmw, Extra::Rmw(op, attrs)) => self.atomic(func, ctx, inst, op, attrs),
                (Opcode::Alloca | Opcode::Assume, _) => {}
                _ if is_computation(func, inst) => {}
                _ => self.close_all(),
            }
        }
        self.close_all();
    }

    fn atomic(&mut self, func: &Function, ctx: &Context<'_>, inst: Inst, op: AtomicOp, attrs: MemAttrs) {
        let ty = func.dfg.insts[inst].ty;
        let Some(&pointer) = func.dfg.args(inst).first() else { return };
        if attrs.order != Ordering::Relaxed || attrs.volatile {
            self.close_all();
            return;
        }
        let touched = touched(func, ctx, pointer, ty.size());
        let is_float =
            matches!(ty.scalar().kind(), Some(Scalar::Float(FloatKind::F32 | FloatKind::F16 | FloatKind::Bf16)));
        let is_read = func.dfg.results(inst).any(|value| self.uses[value]);
        let joins = op == AtomicOp::Fadd && is_float && !is_read && !attrs.has_policy && touched.space == Space::Global;
        if !joins {
            self.close_touched(func, Some(&touched), None);
            return;
        }
        let key = Key { base: touched.address.base.clone(), lane: ty.scalar(), scope: attrs.scope };
        let member =
            Member { inst, offset: touched.address.offset, lanes: ty.lanes(), align_log2: attrs.align_log2.min(63) };
        self.close_touched(func, Some(&touched), Some((&key, &member)));
        match self.open.iter_mut().find(|group| group.key == key) {
            Some(group) => group.members.push(member),
            None => {
                if self.open.len() == MAX_OPEN {
                    let first = self.open.remove(0);
                    self.closed.push(first);
                }
                self.open.push(Group { key, members: vec![member] });
            }
        }
    }

    /// Ends the groups that an access may touch; those that stand side by side with a new member stay.
    fn close_touched(&mut self, func: &Function, touched: Option<&Touched>, joins: Option<(&Key, &Member)>) {
        let mut kept = Vec::with_capacity(self.open.len());
        for group in std::mem::take(&mut self.open) {
            let same = joins.filter(|(key, _)| **key == group.key).map(|(_, member)| member);
            let stays = match (same, touched) {
                (Some(new), _) => {
                    let clash = |m: &Member| overlap(m.offset, m.size(&group.key), new.offset, new.size(&group.key));
                    group.members.len() < MAX_MEMBERS && !group.members.iter().any(clash)
                }
                (None, Some(touched)) => group.members.iter().all(|member| {
                    let address = Linear { base: group.key.base.clone(), offset: member.offset, promises: false };
                    let own = Touched { address, size: member.size(&group.key), space: Space::Global };
                    !self.aliases.may_overlap(func, &own, touched)
                }),
                (None, None) => false,
            };
            if stays {
                kept.push(group);
            } else {
                self.closed.push(group);
            }
        }
        self.open = kept;
    }

    fn close_all(&mut self) {
        self.closed.append(&mut self.open);
    }

    /// Joins what stands side by side, as wide as the alignment that is known allows.
    fn join(&self, func: &mut Function, ctx: &Context<'_>, group: Group) -> bool {
        let Group { key, members: in_order } = group;
        let root = self.aliases.root_align_log2(func, key.base.root);
        let base = root.min(key.base.terms_align_log2(func, &self.known));
        let Some(best) = in_order.iter().max_by_key(|member| member.align_log2).copied() else { return false };
        let aligned = |offset: i64| {
            let from_base = base.min(offset.trailing_zeros());
            let from_access = u32::from(best.align_log2).min(offset.wrapping_sub(best.offset).trailing_zeros());
            from_base.max(from_access).min(4)
        };
        let mut members = in_order.clone();
        members.sort_by_key(|member| member.offset);
        let (mut at, mut changed) = (0, false);
        while at < members.len() {
            let widest = WIDEST.min(1 << aligned(members[at].offset));
            let count = run(&members[at..], &key, widest);
            if count > 1 {
                let part = &members[at..at + count];
                let last = in_order.iter().rev().find(|member| part.iter().any(|m| m.inst == member.inst));
                if let Some(last) = last {
                    emit(func, &key, part, last.inst);
                    ctx.note(last.inst, Rule::MergeAtomics);
                    changed = true;
                }
            }
            at += count;
        }
        changed
    }
}

fn touched(func: &Function, ctx: &Context<'_>, pointer: Value, size: u64) -> Touched {
    let address = Linear::new(func, ctx.module, pointer);
    Touched { address, size, space: func.dfg.ty(pointer).space().unwrap_or(Space::Generic) }
}

/// How many members from the first on fill a power of two of bytes without a gap, at most `widest`.
fn run(members: &[Member], key: &Key, widest: u64) -> usize {
    let (mut size, mut best) = (0, 1);
    for (index, member) in members.iter().enumerate() {
        if member.offset != members[0].offset.wrapping_add(size as i64) || size + member.size(key) > widest {
            break;
        }
        size += member.size(key);
        if size.is_power_of_two() {
            best = index + 1;
        }
    }
    best
}

/// Replaces members by one addition at the place of the last.
fn emit(func: &mut Function, key: &Key, members: &[Member], last: Inst) {
    let Extra::Rmw(_, attrs) = func.dfg.insts[last].extra else { return };
    let loc = func.dfg.locs[last];
    let pointer = func.dfg.args(members[0].inst)[0];
    let mut b = FunctionBuilder::before(func, last);
    b.set_loc(loc);
    let mut lanes: SmallVec<[Value; 8]> = SmallVec::new();
    for member in members {
        let value = b.func.dfg.args(member.inst)[1];
        for lane in 0..member.lanes {
            lanes.push(if b.ty(value).is_vector() { b.extract(value, lane) } else { value });
        }
    }
    let ty = key.lane.with_lanes(lanes.len() as u32);
    let whole = b.vector(ty, &lanes);
    let align_log2 = ty.size().trailing_zeros() as u8;
    b.atomic_rmw(AtomicOp::Fadd, pointer, whole, MemAttrs { align_log2, ..attrs });
    for member in members {
        func.layout.remove_inst(member.inst);
    }
}
