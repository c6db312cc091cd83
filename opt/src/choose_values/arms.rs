//! Branches whose two ways do the same with different operands, and meet: the operands are chosen, then it is done once.

use ptxc_ir::{Block, BlockCall, Cfg, Effect, Extra, Flags, Function, FunctionBuilder, Inst, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::edit::{make_jump, resolve_all_uses};
use crate::pass::Context;
use crate::rules::Rule;

/// Most operations of a way.
const MOST_OPERATIONS: usize = 8;

/// Flags that allow something: what both ways allow is kept. All others say what is computed.
const PROMISES: Flags = Flags::from_bits(
    Flags::FAST.bits()
        | Flags::NSW.bits()
        | Flags::NUW.bits()
        | Flags::EXACT.bits()
        | Flags::DISJOINT.bits()
        | Flags::NNEG.bits()
        | Flags::NONZERO.bits()
        | Flags::INBOUNDS.bits(),
);

/// Replaces such branches. Both ways would have computed what is computed: nothing is executed ahead.
pub(super) fn join_arms(func: &mut Function, ctx: &Context<'_>) -> bool {
    let branches: Vec<(Inst, BlockCall, BlockCall)> = func
        .layout
        .blocks()
        .filter_map(|block| {
            let last = func.layout.last_inst(block)?;
            match &func.dfg.insts[last].extra {
                Extra::Branch { then, other, .. } if then.block != other.block => Some((last, *then, *other)),
                _ => None,
            }
        })
        .collect();
    if branches.is_empty() {
        return false;
    }
    let cfg = Cfg::new(func);
    let mut changed = false;
    for (inst, then, other) in branches {
        let single = |block: Block| cfg.preds(block).len() == 1 && func.dfg.block_params(block).is_empty();
        if !single(then.block) || !single(other.block) {
            continue;
        }
        if let Some(plan) = Plan::of(func, then.block, other.block) {
            plan.apply(func, inst);
            ctx.note(inst, Rule::ChooseOperands);
            changed = true;
        }
    }
    if changed {
        resolve_all_uses(func);
    }
    changed
}

/// What becomes of two ways.
struct Plan {
    /// Operations of the first way with those of the other, in order.
    pairs: SmallVec<[(Inst, Inst); 4]>,
    /// Where they meet, with the arguments of both.
    block: Block,
    args: SmallVec<[(Value, Value); 4]>,
}

/// The operations of a block, and the jump at its end. All of them only compute.
fn operations(func: &Function, block: Block) -> Option<(SmallVec<[Inst; 4]>, BlockCall)> {
    let mut found = SmallVec::new();
    for inst in func.layout.insts(block).take(MOST_OPERATIONS + 1) {
        let data = &func.dfg.insts[inst];
        if let Extra::Jump(target) = data.extra {
            return Some((found, target));
        }
        if data.op.info().effect != Effect::Pure || func.dfg.num_results(inst) != 1 {
            return None;
        }
        found.push(inst);
    }
    None
}

/// The values of a jump.
fn passed(func: &Function, call: &BlockCall) -> SmallVec<[Value; 4]> {
    call.args.as_slice(&func.dfg.pool).iter().map(|value| func.dfg.resolve(*value)).collect()
}

impl Plan {
    fn of(func: &Function, first: Block, second: Block) -> Option<Plan> {
        let ((a, end), (b, other_end)) = (operations(func, first)?, operations(func, second)?);
        if a.is_empty() || a.len() != b.len() || end.block != other_end.block {
            return None;
        }
        let mut twins: FxHashMap<Value, Value> = FxHashMap::default();
        let mut choices: SmallVec<[(Value, Value); 4]> = SmallVec::new();
        let mut differ = |x: Value, y: Value, twins: &FxHashMap<Value, Value>| {
            let y = *twins.get(&y).unwrap_or(&y);
            // What a way computes is no operand to choose: it is computed after the choice.
            let inside = [x, y].iter().any(|value| {
                let block = func.dfg.def_inst(*value).and_then(|inst| func.layout.inst_block(inst));
                block == Some(first) || block == Some(second)
            });
            if x != y && !choices.contains(&(x, y)) {
                choices.push((x, y));
            }
            x == y || !inside
        };
        for (x, y) in a.iter().zip(&b) {
            let (one, two) = (&func.dfg.insts[*x], &func.dfg.insts[*y]);
            let kind = |flags: Flags| flags.without(PROMISES);
            let same = one.op == two.op && one.ty == two.ty && is_same(&one.extra, &two.extra);
            let same = same && kind(one.flags) == kind(two.flags);
            let (left, right) = (func.dfg.args(*x), func.dfg.args(*y));
            if !same || left.len() != right.len() {
                return None;
            }
            for (p, q) in left.iter().zip(right) {
                let (p, q) = (func.dfg.resolve(*p), func.dfg.resolve(*q));
                if func.dfg.ty(p) != func.dfg.ty(q) || !differ(p, q, &twins) {
                    return None;
                }
            }
            twins.insert(func.dfg.result(*y, 0), func.dfg.result(*x, 0));
        }
        let args: SmallVec<[(Value, Value); 4]> =
            passed(func, &end).into_iter().zip(passed(func, &other_end)).collect();
        for (p, q) in &args {
            if !differ(*p, *q, &twins) {
                return None;
            }
        }
        // Under predicates both ways take an instruction for each operation.
        let pays = choices.len() < a.len() && choices.iter().all(|(p, _)| is_choosable(func, *p));
        let pairs = a.into_iter().zip(b).collect();
        pays.then_some(Plan { pairs, block: end.block, args })
    }

    /// Puts the choices and the operations before the branch, which becomes a jump.
    fn apply(self, func: &mut Function, branch: Inst) {
        let Some(condition) = func.dfg.args(branch).first().copied() else { return };
        let loc = func.dfg.locs[branch];
        let mut made: FxHashMap<Value, Value> = FxHashMap::default();
        let mut chosen: FxHashMap<(Value, Value), Value> = FxHashMap::default();
        let mut choose = |func: &mut Function, made: &FxHashMap<Value, Value>, p: Value, q: Value| {
            let (p, q) = (*made.get(&p).unwrap_or(&p), *made.get(&q).unwrap_or(&q));
            if p == q {
                return p;
            }
            *chosen.entry((p, q)).or_insert_with(|| {
                let mut builder = FunctionBuilder::before(func, branch);
                builder.set_loc(loc);
                builder.select(condition, p, q)
            })
        };
        for (x, y) in self.pairs {
            let data = func.dfg.insts[x].clone();
            let flags = data.flags.intersect(func.dfg.insts[y].flags);
            let operands: SmallVec<[(Value, Value); 3]> =
                func.dfg.args(x).iter().copied().zip(func.dfg.args(y).iter().copied()).collect();
            let operands: SmallVec<[Value; 3]> = operands
                .into_iter()
                .map(|(p, q)| {
                    let (p, q) = (func.dfg.resolve(p), func.dfg.resolve(q));
                    choose(func, &made, p, q)
                })
                .collect();
            let (one, two) = (func.dfg.result(x, 0), func.dfg.result(y, 0));
            let ty = func.dfg.ty(one);
            let mut builder = FunctionBuilder::before(func, branch);
            builder.set_loc(loc);
            let value = builder.inst_with_results(data.op, flags, data.ty, &operands, data.extra, &[ty]);
            let value = func.dfg.result(value, 0);
            made.insert(one, value);
            made.insert(two, value);
        }
        let args: SmallVec<[Value; 4]> = self.args.iter().map(|(p, q)| choose(func, &made, *p, *q)).collect();
        let target = func.dfg.block_call(self.block, &args);
        make_jump(func, branch, target);
    }
}

/// Whether two operations are the same besides their operands; `false` for what is rarely chosen.
fn is_same(a: &Extra, b: &Extra) -> bool {
    match (a, b) {
        (Extra::None, Extra::None) => true,
        (Extra::IntCC(a), Extra::IntCC(b)) => a == b,
        (Extra::FloatCC(a), Extra::FloatCC(b)) => a == b,
        _ => false,
    }
}

/// Values that one instruction chooses.
fn is_choosable(func: &Function, value: Value) -> bool {
    let ty = func.dfg.ty(value);
    !ty.is_vector() && (8..=32).contains(&ty.bits())
}
