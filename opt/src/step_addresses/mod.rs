//! Keeps addresses that grow evenly from round to round of a loop as pointers that step.
//!
//! `p[i]` in a loop over `i` is an extension, a product and a sum in every round. As a parameter of the loop's header that
//! grows by the distance of two rounds it is one sum, which addresses that are a constant apart share; and the assembler, which
//! unrolls loops of few instructions, makes of the steps of several rounds offsets of their accesses. Of products it does
//! not, and unrolls no loop for them.
//!
//! The sum promises nothing: after the last round it may leave the object. What the address promised it did with every round
//! that uses it, so what takes its place is never poison where it was not ([`strides`]).

mod strides;

use cranelift_entity::{EntitySet, SecondaryMap};
use ptxc_ir::loops::{Loop, Loops};
use ptxc_ir::{
    Block, Cfg, DominatorTree, Effect, Function, FunctionBuilder, Inst, MemType, Opcode, Space, Type, Value,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::edit::resolve_all_uses;
use crate::effects::is_computation;
use crate::pass::Context;
use crate::rules::Rule;
use strides::{Counter, Rounds, Shape};

/// Bytes that are likely to fit the offset of an access (24 bits with sign in the machine).
const LARGEST: i64 = 1 << 20;
/// Most pointers that a loop gets: each takes two registers for all of it.
const MAX_POINTERS: usize = 8;
/// Most instructions of a loop that the assembler may still unroll.
const LARGEST_UNROLLED: usize = 200;

/// A loop without another one in it, and with one way back.
struct Innermost {
    header: Block,
    /// The branch back.
    back: Inst,
    latch: Block,
    blocks: Vec<Block>,
    /// The branches that enter it.
    entries: SmallVec<[Inst; 2]>,
}

/// Addresses that share a pointer.
struct Group {
    shape: Shape,
    ty: Type,
    /// Bytes of the first address, which the pointer includes.
    offset: i64,
    /// Addresses with their bytes.
    members: SmallVec<[(Inst, i64); 4]>,
    /// Whether one of them is computed in every round.
    always: bool,
}

/// The pass.
pub fn step_addresses(func: &mut Function, ctx: &Context<'_>) -> bool {
    let cfg = Cfg::new(func);
    let tree = DominatorTree::new(&cfg);
    let loops = Loops::new(&cfg, &tree);
    let mut changed = false;
    for (id, innermost) in innermost_loops(func, &cfg, &loops) {
        changed |= step_in(func, ctx, &innermost, &|block| loops.contains(id, block), &|block| {
            tree.dominates(&cfg, block, innermost.latch)
        });
    }
    if changed {
        resolve_all_uses(func);
    }
    changed
}

/// The loops that the pass is about, each with its blocks.
fn innermost_loops(func: &Function, cfg: &Cfg, loops: &Loops) -> Vec<(Loop, Innermost)> {
    let mut is_outer: EntitySet<Loop> = EntitySet::new();
    let mut blocks: SecondaryMap<Loop, Vec<Block>> = SecondaryMap::new();
    loops.iter().filter_map(|(_, data)| data.parent.expand()).for_each(|parent| {
        is_outer.insert(parent);
    });
    for block in cfg.rpo() {
        if let Some(inner) = loops.innermost(*block) {
            blocks[inner].push(*block);
        }
    }
    let mut found = Vec::new();
    for (id, data) in loops.iter().filter(|(id, _)| !is_outer.contains(*id)) {
        let preds = cfg.preds(data.header);
        let mut back = preds.iter().filter(|pred| loops.contains(id, pred.block));
        let (Some(latch), None) = (back.next(), back.next()) else { continue };
        let is_reached = preds.iter().all(|pred| cfg.is_reachable(pred.block));
        if is_reached && Some(data.header) != func.layout.entry() {
            let blocks = std::mem::take(&mut blocks[id]);
            let mut entries: SmallVec<[Inst; 2]> = preds.iter().map(|pred| pred.inst).collect();
            entries.retain(|inst| *inst != latch.inst);
            entries.dedup();
            found.push((id, Innermost { header: data.header, back: latch.inst, latch: latch.block, blocks, entries }));
        }
    }
    found
}

/// Gives one loop its pointers.
fn step_in(
    func: &mut Function,
    ctx: &Context<'_>,
    innermost: &Innermost,
    is_inside: &dyn Fn(Block) -> bool,
    is_always: &dyn Fn(Block) -> bool,
) -> bool {
    let back = arguments(func, innermost.back, innermost.header);
    let counters = Rounds::counters(func, innermost.header, &back, is_inside);
    if counters.is_empty() {
        return false;
    }
    let rounds = Rounds { func, module: ctx.module, counters: &counters, is_inside };
    let mut groups = find(&rounds, innermost, is_always);
    let unrolls = may_unroll(func, innermost, &counters, is_inside);
    groups.retain(|group| group.always && (unrolls || is_short(group.ty)));
    if groups.is_empty() || groups.len() > MAX_POINTERS {
        return false;
    }
    let ahead = preheader(func, innermost.header, &innermost.entries);
    let starts = arguments(func, ahead, innermost.header);
    for group in &groups {
        replace(func, ctx, innermost, ahead, group, &counters, &starts);
    }
    true
}

/// Whether the assembler may unroll a loop: one block of moderate size that is left by a counter alone, with nothing in it
/// that threads meet at, and not asked to stay as it is.
///
/// In another loop a step is no gain: the machine multiplies, extends and adds in one instruction, and adds 64 bits in two.
/// Measured with ptxas 13.5 over 132 kernels: of those that had more instructions with pointers in every loop all but two
/// have none in these.
fn may_unroll(func: &Function, innermost: &Innermost, counters: &[Counter], is_inside: &dyn Fn(Block) -> bool) -> bool {
    let hint = func.dfg.blocks[innermost.header].hints.unroll;
    if innermost.blocks.len() != 1 || matches!(hint, Some(0 | 1)) {
        return false;
    }
    let is_plain = |inst: Inst| {
        let effect = func.dfg.insts[inst].op.info().effect;
        is_computation(func, inst) || matches!(effect, Effect::Read | Effect::Write | Effect::Terminator)
    };
    let mut insts = func.layout.insts(innermost.header);
    if !insts.by_ref().take(LARGEST_UNROLLED).all(is_plain) || insts.next().is_some() {
        return false;
    }
    let test = func.dfg.args(innermost.back).first().and_then(|condition| func.dfg.def_inst(*condition));
    let Some(test) = test.filter(|test| func.dfg.insts[*test].op == Opcode::Icmp) else { return false };
    let &[a, b] = func.dfg.args(test) else { return false };
    [(a, b), (b, a)].into_iter().any(|(counted, limit)| {
        strides::is_fixed(func, limit, is_inside) && counters.iter().any(|counter| counter.is(func, counted))
    })
}

/// Whether an address has 32 bits in the machine, so that a step is one instruction everywhere.
fn is_short(ty: Type) -> bool {
    matches!(ty.space(), Some(Space::Shared | Space::Local))
}

/// What a branch passes to a block.
fn arguments(func: &Function, branch: Inst, to: Block) -> SmallVec<[Value; 8]> {
    let mut found = SmallVec::new();
    func.dfg.for_each_target(branch, |target| {
        if target.block == to {
            found = target.args.as_slice(&func.dfg.pool).iter().map(|arg| func.dfg.resolve(*arg)).collect();
        }
    });
    found
}

/// Addresses that accesses of the loop use and that grow evenly, in the order of their first uses.
fn find(rounds: &Rounds<'_>, innermost: &Innermost, is_always: &dyn Fn(Block) -> bool) -> Vec<Group> {
    let func = rounds.func;
    let mut seen: EntitySet<Inst> = EntitySet::new();
    let mut groups: Vec<Group> = Vec::new();
    let mut by_shape: FxHashMap<(Shape, Type), SmallVec<[usize; 1]>> = FxHashMap::default();
    for block in &innermost.blocks {
        for inst in func.layout.insts(*block).filter(|inst| func.dfg.insts[*inst].op != Opcode::Gep) {
            for pointer in func.dfg.args(inst) {
                let Some(gep) = func.dfg.def_inst(*pointer) else { continue };
                let ty = func.dfg.ty(*pointer);
                let is_address = func.dfg.insts[gep].op == Opcode::Gep && ty.is_ptr() && !ty.is_vector();
                let Some(at) = func.layout.inst_block(gep).filter(|at| is_address && (rounds.is_inside)(*at)) else {
                    continue;
                };
                if !seen.insert(gep) {
                    continue;
                }
                let Some((shape, offset)) = rounds.shape(*pointer) else { continue };
                if !shape.is_worth_stepping(func, rounds.counters) {
                    continue;
                }
                let known = by_shape.entry((shape.clone(), ty)).or_default();
                let is_near =
                    |group: &&usize| groups[**group].offset.wrapping_sub(offset).unsigned_abs() < LARGEST as u64;
                let group = match known.iter().find(is_near) {
                    Some(group) => *group,
                    None => {
                        known.push(groups.len());
                        groups.push(Group { shape, ty, offset, members: SmallVec::new(), always: false });
                        groups.len() - 1
                    }
                };
                groups[group].members.push((gep, offset));
                groups[group].always |= is_always(at);
            }
        }
    }
    groups
}

/// Makes the pointer of a group, and its addresses of it.
fn replace(
    func: &mut Function,
    ctx: &Context<'_>,
    innermost: &Innermost,
    ahead: Inst,
    group: &Group,
    counters: &[Counter],
    starts: &[Value],
) {
    let mut builder = FunctionBuilder::before(func, ahead);
    let start = |place: usize| starts.get(counters.get(place)?.index).copied();
    let Some(first) = group.shape.first(&mut builder, ctx.module, group.ty, group.offset, start) else { return };
    let pointer = builder.block_param(innermost.header, group.ty);
    let stride = match group.shape.constant_stride(builder.func, counters) {
        Some(stride) => Some(builder.iconst(Type::I64, stride)),
        None => group.shape.stride(&mut builder, counters),
    };
    let Some(stride) = stride else { return };
    let mut builder = FunctionBuilder::before(func, innermost.back);
    let next = builder.gep(MemType::Value(Type::I8), pointer, &[stride]);
    for (branch, value) in [(ahead, first), (innermost.back, next)] {
        func.dfg.for_each_target_mut(branch, |target, pool| {
            if target.block == innermost.header {
                target.args.push(value, pool);
            }
        });
    }
    for (inst, offset) in &group.members {
        let Some(old) = func.dfg.first_result(*inst) else { continue };
        let mut builder = FunctionBuilder::before(func, *inst);
        let address = builder.byte_offset(pointer, offset.wrapping_sub(group.offset));
        func.dfg.alias(old, address);
        func.layout.remove_inst(*inst);
        ctx.note(*inst, Rule::SteppedAddress);
    }
}

/// The jump by which a loop is entered from everywhere, made if there is none.
fn preheader(func: &mut Function, header: Block, entries: &[Inst]) -> Inst {
    let mut edges = 0;
    for inst in entries {
        func.dfg.for_each_target(*inst, |target| edges += usize::from(target.block == header));
    }
    if let ([only], 1) = (entries, edges)
        && func.dfg.insts[*only].op == Opcode::Jump
    {
        return *only;
    }
    let ahead = func.dfg.make_block();
    match func.layout.prev_block(header) {
        Some(before) => func.layout.insert_block_after(ahead, before),
        None => func.layout.append_block(ahead),
    }
    let passed: SmallVec<[Value; 8]> = match (entries, edges) {
        ([only], 1) => arguments(func, *only, header),
        _ => {
            let types: SmallVec<[Type; 8]> =
                func.dfg.block_params(header).iter().map(|param| func.dfg.ty(*param)).collect();
            types.into_iter().map(|ty| func.dfg.append_block_param(ahead, ty)).collect()
        }
    };
    for entry in entries {
        func.dfg.for_each_target_mut(*entry, |target, pool| {
            if target.block == header {
                target.block = ahead;
                if edges == 1 {
                    target.args.clear(pool);
                }
            }
        });
    }
    let mut builder = FunctionBuilder::new(func);
    builder.switch_to(ahead);
    builder.jump(header, &passed)
}
