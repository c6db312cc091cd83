//! `p[i + j]` from `p[i]`: a product with j that is added to the address that is there, instead of a sum and a product.

use ptxc_ir::{Block, Cfg, DominatorTree, Extra, Flags, Function, FunctionBuilder, Inst, MemType, Opcode, Type, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::edit::{count_uses, resolve_all_uses};
use crate::pass::Context;
use crate::rules::Rule;

/// Most addresses of one index that are looked at.
const MAX_SAME: usize = 4;

/// The place of an element: where the elements begin, their type, and the word that is the signed index.
type Place = (Value, MemType, Value);

/// Rewrites what is an index away from an address that was computed before.
pub(super) fn rewrite(func: &mut Function, ctx: &Context<'_>) -> bool {
    let uses = count_uses(func);
    let cfg = Cfg::new(func);
    let mut tree: Option<DominatorTree> = None;
    let mut known: FxHashMap<Place, SmallVec<[(Value, Block); 1]>> = FxHashMap::default();
    let mut found: Vec<(Inst, Value, Opcode, Value)> = Vec::new();
    for block in cfg.rpo() {
        for inst in func.layout.insts(*block) {
            let Some((place, is_single)) = place(func, inst, |value| uses[value] == 1) else { continue };
            if let Some(result) = func.dfg.first_result(inst) {
                known.entry(place).or_default().push((result, *block));
            }
            let Some((op, a, b)) = sum(func, place.2).filter(|_| is_single && uses[place.2] == 1) else { continue };
            let orders: &[(Value, Value)] = if op == Opcode::Add { &[(a, b), (b, a)] } else { &[(a, b)] };
            // A product that only this sum wants is one instruction with it.
            let is_free = |value: Value| uses[value] != 1 || !is_multiple(func, value);
            let near = orders.iter().filter(|(_, more)| is_free(*more)).find_map(|(from, more)| {
                let there = known.get(&(place.0, place.1, *from))?;
                let tree = tree.get_or_insert_with(|| DominatorTree::new(&cfg));
                let at = there.iter().rev().take(MAX_SAME).find(|(_, at)| tree.dominates(&cfg, *at, *block))?;
                Some((inst, at.0, op, *more))
            });
            found.extend(near);
        }
    }
    for (inst, from, op, more) in &found {
        further(func, ctx, *inst, *from, *op, *more);
    }
    if !found.is_empty() {
        resolve_all_uses(func);
    }
    !found.is_empty()
}

/// The place that a `gep` of one index computes, and whether it alone uses what extends the index.
fn place(func: &Function, inst: Inst, is_single: impl Fn(Value) -> bool) -> Option<(Place, bool)> {
    let Extra::Gep(ty) = func.dfg.insts[inst].extra else { return None };
    let &[base, index] = func.dfg.args(inst) else { return None };
    let (base, index) = (func.dfg.resolve(base), func.dfg.resolve(index));
    if !func.dfg.ty(base).is_ptr() {
        return None;
    }
    if func.dfg.ty(index) == Type::I32 {
        return Some(((base, ty, index), true));
    }
    let extension = func.dfg.def_inst(index).filter(|inst| func.dfg.insts[*inst].op == Opcode::Sext)?;
    let word = func.dfg.resolve(*func.dfg.args(extension).first()?);
    (func.dfg.ty(word) == Type::I32).then(|| ((base, ty, word), is_single(index)))
}

/// A sum or difference of variable words that does not wrap.
fn sum(func: &Function, value: Value) -> Option<(Opcode, Value, Value)> {
    let inst = func.dfg.def_inst(value)?;
    let data = &func.dfg.insts[inst];
    let &[a, b] = func.dfg.args(inst) else { return None };
    let varies = func.dfg.as_const(a).is_none() && func.dfg.as_const(b).is_none();
    let fits = matches!(data.op, Opcode::Add | Opcode::Sub) && data.flags.contains(Flags::NSW) && varies;
    fits.then(|| (data.op, func.dfg.resolve(a), func.dfg.resolve(b)))
}

/// A product, or a number shifted by a constant.
fn is_multiple(func: &Function, value: Value) -> bool {
    func.dfg.def_inst(value).is_some_and(|inst| matches!(func.dfg.insts[inst].op, Opcode::Mul | Opcode::Shl))
}

/// Replaces an address by another plus or minus an index.
fn further(func: &mut Function, ctx: &Context<'_>, inst: Inst, from: Value, op: Opcode, more: Value) {
    let (Extra::Gep(ty), Some(old)) = (func.dfg.insts[inst].extra, func.dfg.first_result(inst)) else { return };
    let from = func.dfg.resolve(from);
    let size = ctx.module.layout_of(ty).size;
    let loc = func.dfg.locs[inst];
    let mut builder = FunctionBuilder::before(func, inst);
    builder.set_loc(loc);
    let index = builder.convert(Opcode::Sext, more, Type::I64);
    let address = match op {
        Opcode::Add => builder.gep(ty, from, &[index]),
        _ => {
            let bytes = builder.binary_imm(Opcode::Mul, index, (size as i64).wrapping_neg());
            builder.gep(MemType::Value(Type::I8), from, &[bytes])
        }
    };
    func.dfg.alias(old, address);
    func.layout.remove_inst(inst);
    ctx.note(inst, Rule::AddressFurther);
}
