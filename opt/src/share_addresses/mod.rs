//! Computes the variable part of addresses once where several differ in constants only.
//!
//! `p[i + j]`, `p[i + 4 + j]` and `p[i + 8 + j]`, as an unrolled loop has them, are three sums and three products as they stand, but one
//! base ([`Linear`]) and the bytes 0, 16 and 32, which accesses take as offsets. Of such addresses the first one that
//! dominates the others gets the base computed before it from its root and its variable parts, and all of them are that plus bytes.
//!
//! The base is made of the parts, not of the first address: an index that promises not to wrap is poison where it does, and
//! another index, which does not, must not depend on it.

mod further;

use ptxc_ir::{Block, Cfg, DominatorTree, Function, FunctionBuilder, Inst, Opcode, Type, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::addresses::{Base, Linear, constant_step, plus_scaled, root_as};
use crate::edit::resolve_all_uses;
use crate::pass::Context;
use crate::rules::Rule;

/// Bytes that are likely to fit the offset of an access (24 bits with sign in the machine).
const LARGEST: i64 = 1 << 20;
/// Most first addresses of one base that are looked at.
const MAX_FIRST: usize = 4;

/// Addresses of one base, of which the first dominates the others.
struct Group {
    first: Inst,
    block: Block,
    base: Base,
    /// Addresses with their bytes.
    members: SmallVec<[(Inst, i64); 4]>,
    /// Whether the first address is the base itself, and poison only where a part is.
    is_base: bool,
}

/// The pass.
pub fn share_addresses(func: &mut Function, ctx: &Context<'_>) -> bool {
    let groups = find(func, ctx);
    let mut changed = false;
    for group in groups.iter().filter(|group| is_worth(group)) {
        let base = if group.is_base { func.dfg.first_result(group.first) } else { compute(func, ctx, group) };
        let Some(base) = base else { continue };
        for (inst, bytes) in group.members.iter().filter(|(inst, _)| !group.is_base || *inst != group.first) {
            let Some(old) = func.dfg.first_result(*inst) else { continue };
            let loc = func.dfg.locs[*inst];
            let mut builder = FunctionBuilder::before(func, *inst);
            builder.set_loc(loc);
            let address = builder.byte_offset(base, *bytes);
            func.dfg.alias(old, address);
            func.layout.remove_inst(*inst);
            ctx.note(*inst, Rule::SharedAddress);
            changed = true;
        }
    }
    if changed {
        resolve_all_uses(func);
    }
    further::rewrite(func, ctx) | changed
}

/// Groups of addresses with variable parts, in the order of their first ones.
fn find(func: &Function, ctx: &Context<'_>) -> Vec<Group> {
    let cfg = Cfg::new(func);
    let mut tree: Option<DominatorTree> = None;
    let mut groups: Vec<Group> = Vec::new();
    let mut by_base: FxHashMap<(Base, Type), SmallVec<[usize; 1]>> = FxHashMap::default();
    for block in cfg.rpo() {
        for inst in func.layout.insts(*block) {
            let Some((address, ty)) = variable_address(func, ctx, inst) else { continue };
            let known = by_base.entry((address.base.clone(), ty)).or_default();
            let tree = tree.get_or_insert_with(|| DominatorTree::new(&cfg));
            let before = |index: &&usize| tree.dominates(&cfg, groups[**index].block, *block);
            match known.iter().rev().take(MAX_FIRST).find(before) {
                Some(index) => groups[*index].members.push((inst, address.offset)),
                None => {
                    known.push(groups.len());
                    groups.push(Group {
                        first: inst,
                        block: *block,
                        is_base: address.offset == 0 && !address.promises,
                        base: address.base,
                        members: SmallVec::from_slice(&[(inst, address.offset)]),
                    });
                }
            }
        }
    }
    groups
}

/// The address that a `gep` computes with an index that is not constant, and its type.
fn variable_address(func: &Function, ctx: &Context<'_>, inst: Inst) -> Option<(Linear, Type)> {
    if func.dfg.insts[inst].op != Opcode::Gep || constant_step(func, ctx.module, inst).is_some() {
        return None;
    }
    let result = func.dfg.first_result(inst)?;
    let ty = func.dfg.ty(result);
    let address = Linear::new(func, ctx.module, result);
    let fits = address.offset.abs() < LARGEST && address.base.terms.iter().all(|term| term.factor.abs() < LARGEST);
    (ty.is_ptr() && fits && !address.base.terms.is_empty()).then_some((address, ty))
}

/// Whether the base costs no more than what it replaces: a product and a sum for each variable part, where each address had one
/// at least.
fn is_worth(group: &Group) -> bool {
    group.members.len() > 1 && (group.is_base || group.base.terms.len() <= group.members.len())
}

/// Computes the base of a group before its first address.
fn compute(func: &mut Function, ctx: &Context<'_>, group: &Group) -> Option<Value> {
    let ty = func.dfg.ty(func.dfg.first_result(group.first)?);
    let loc = func.dfg.locs[group.first];
    let mut builder = FunctionBuilder::before(func, group.first);
    builder.set_loc(loc);
    let mut address = root_as(&mut builder, ctx.module, group.base.root, ty);
    for term in &group.base.terms {
        let index = term.widened(&mut builder);
        address = plus_scaled(&mut builder, address, index, term.factor);
    }
    Some(address)
}
