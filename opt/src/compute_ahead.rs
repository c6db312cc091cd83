//! Computes before a branch what is cheap in a way that the branch may skip.
//!
//! What is left of such a way the assembler predicates, where it jumped over the whole; and what several ways compute alike,
//! addresses above all, is then equal to what was computed before (`number-values`). A way with nothing left goes
//! by `simplify-control-flow`, and its branch is a choice of values (`choose-values`).
//!
//! Nothing moves that has an effect, depends on other threads or is undefined for some operands. Where it was not executed
//! before, its result may be poison, which nobody reads there; so flags stay. Nothing enters or leaves a loop: a way that is
//! entered from one block alone and ends where the other way does is in the loops that this block is in.
//!
//! Measured with ptxas 13.5 on sm_100a over 132 kernels: with both limits 13 have fewer instructions and none more. Without
//! the limit of what stays, at twice the limit of what moves, with sums and products of floats, or out of both of two ways that
//! do something, one to eleven had more and the sum was no better by 5 of 11,251.

use cranelift_entity::EntitySet;
use ptxc_ir::{Block, Cfg, Extra, Function, Inst, Value, ValueDef};

use crate::cheap::cost_ahead;
use crate::pass::Context;
use crate::rules::Rule;
use crate::simplify_control_flow::simplify_control_flow;

/// Most instructions of the machine that are executed although their way is not taken.
const MOST_COMPUTED: usize = 7;
/// Most instructions that stay in the way: a longer one is jumped over in any case.
const MOST_STAYING: usize = 5;

/// The pass.
pub fn compute_ahead(func: &mut Function, ctx: &Context<'_>) -> bool {
    let cfg = Cfg::new(func);
    // Each block is a way of one branch at most, so what was found is never asked for again.
    let mut found: EntitySet<Inst> = EntitySet::new();
    let mut moving: Vec<Inst> = Vec::new();
    let (mut changed, mut emptied) = (false, false);
    for block in cfg.rpo().iter().copied() {
        let Some(branch) = func.layout.last_inst(block) else { continue };
        let Extra::Branch { then, other, .. } = func.dfg.insts[branch].extra else { continue };
        for (way, rest) in [(then.block, other.block), (other.block, then.block)] {
            if !is_skipped(func, &cfg, block, way, rest) || !find(func, way, &mut found, &mut moving) {
                continue;
            }
            for inst in moving.drain(..) {
                func.layout.remove_inst(inst);
                func.layout.insert_inst_before(inst, branch);
            }
            ctx.note(branch, Rule::ComputeAhead);
            changed = true;
            emptied |= is_empty(func, way);
        }
    }
    if emptied {
        simplify_control_flow(func, ctx);
    }
    changed
}

/// Whether a way out of a block only leads to where the other way is already, or leads by an empty block.
fn is_skipped(func: &Function, cfg: &Cfg, block: Block, way: Block, rest: Block) -> bool {
    let only_from_here = |way: Block| cfg.preds(way).len() == 1 && way != block;
    let &[end] = cfg.succs(way) else { return false };
    if way == rest || !only_from_here(way) {
        return false;
    }
    end == rest || (only_from_here(rest) && cfg.succs(rest) == [end] && is_empty(func, rest))
}

/// Whether a block does nothing but lead elsewhere.
fn is_empty(func: &Function, block: Block) -> bool {
    func.layout.first_inst(block) == func.layout.last_inst(block)
}

/// Finds what of a block may be computed ahead, in its order: whether there is anything, and little enough, and little else.
fn find(func: &Function, way: Block, found: &mut EntitySet<Inst>, moving: &mut Vec<Inst>) -> bool {
    moving.clear();
    let (mut computed, mut staying) = (0, 0);
    let last = func.layout.last_inst(way);
    for inst in func.layout.insts(way).take_while(|inst| Some(*inst) != last) {
        let is_ready = |value: &Value| match func.dfg.def(func.dfg.resolve(*value)) {
            ValueDef::Result(def, _) => func.layout.inst_block(def) != Some(way) || found.contains(def),
            ValueDef::Param(block, _) => block != way,
            ValueDef::Const(_) | ValueDef::Alias(_) => true,
        };
        match cost_ahead(func, inst) {
            Some(cost) if func.dfg.args(inst).iter().all(is_ready) => {
                computed += cost;
                found.insert(inst);
                moving.push(inst);
            }
            _ => staying += 1,
        }
        if computed > MOST_COMPUTED || staying > MOST_STAYING {
            return false;
        }
    }
    !moving.is_empty()
}
