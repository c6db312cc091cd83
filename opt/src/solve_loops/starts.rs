//! Sums that begin with zero and are added to something behind the loop begin with that.
//!
//! One register instead of two, and neither the zero nor the sum behind. Only where the loop's own sum is read by nothing else: with
//! another beginning it is another number.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Block, Cfg, DominatorTree, Flags, Function, Inst, Opcode, Value, ValueDef};

use super::edge;
use super::shape::Ring;
use crate::edit::for_each_inst;
use crate::pass::Context;
use crate::rules::Rule;
use crate::widths::int_width;

/// Where a value is used: how often, and by which instruction last.
#[derive(Clone, Copy, Default)]
struct Uses {
    count: u32,
    last: Option<Inst>,
}

/// A sum and what it can begin with.
struct Start {
    /// The parameter's index.
    index: usize,
    /// The sum of a round.
    next: Inst,
    /// The sum behind the loop.
    total: Inst,
    with: Value,
}

/// Gives sums of loops another beginning. No use refers to an alias.
pub(super) fn begin_sums(func: &mut Function, ctx: &Context<'_>) -> bool {
    let cfg = Cfg::new(func);
    let rings: Vec<Ring> = cfg.rpo().iter().filter_map(|block| Ring::of(func, &cfg, *block)).collect();
    if rings.is_empty() {
        return false;
    }
    let mut uses: SecondaryMap<Value, Uses> = SecondaryMap::with_capacity(func.dfg.num_values());
    for_each_inst(func, |inst| {
        func.dfg.for_each_use(inst, |value| {
            uses[value].count += 1;
            uses[value].last = Some(inst);
        });
    });
    let tree = DominatorTree::new(&cfg);
    let mut changed = false;
    for ring in &rings {
        let params: Vec<Value> = func.dfg.block_params(ring.header()).to_vec();
        for (index, param) in params.into_iter().enumerate() {
            let Some(start) = Start::of(func, &cfg, &tree, ring, &uses, index, param) else { continue };
            // Of several sums that one is added to, the first has it.
            if func.layout.inst_block(start.total).is_none() {
                continue;
            }
            start.apply(func, ring);
            ctx.note(start.next, Rule::LoopStart);
            changed = true;
        }
    }
    changed
}

impl Start {
    fn of(
        func: &Function,
        cfg: &Cfg,
        tree: &DominatorTree,
        ring: &Ring,
        uses: &SecondaryMap<Value, Uses>,
        index: usize,
        param: Value,
    ) -> Option<Start> {
        let first = edge(func, ring.entered_from, ring.header())?.args.get(index, &func.dfg.pool)?;
        int_width(func.dfg.ty(param)).filter(|width| *width > 1)?;
        if func.dfg.as_bits(first) != Some(0) {
            return None;
        }
        let sum = *ring.next.get(index)?;
        let next = func.dfg.def_inst(sum).filter(|inst| func.dfg.insts[*inst].op == Opcode::Add)?;
        func.layout.inst_block(next).filter(|block| ring.blocks.contains(block))?;
        let &[a, b] = func.dfg.args(next) else { return None };
        if (a == param) == (b == param) {
            return None;
        }
        // Read in the loop by the sum and by the way back, and by one instruction behind.
        let behind = match (uses[param].count, uses[sum].count) {
            (1, 2) => sum,
            (2, 1) => param,
            _ => return None,
        };
        let outside = |inst: Inst| func.layout.inst_block(inst).is_some_and(|block| !ring.blocks.contains(&block));
        let total = uses[behind].last.filter(|inst| outside(*inst))?;
        let data = &func.dfg.insts[total];
        let &[x, y] = func.dfg.args(total) else { return None };
        let with = if x == behind { y } else { x };
        let before = |at: Block| at != ring.header() && tree.dominates(cfg, at, ring.entered_from);
        let defined = match func.dfg.def(with) {
            ValueDef::Result(inst, _) => before(func.layout.inst_block(inst)?),
            ValueDef::Param(block, _) => before(block),
            ValueDef::Const(_) => true,
            ValueDef::Alias(_) => false,
        };
        (data.op == Opcode::Add && with != behind && defined).then_some(Start { index, next, total, with })
    }

    fn apply(&self, func: &mut Function, ring: &Ring) {
        let (Some(total), Some(entry)) = (func.dfg.first_result(self.total), func.layout.last_inst(ring.entered_from))
        else {
            return;
        };
        let (index, with, header) = (self.index, self.with, ring.header());
        func.dfg.for_each_target_mut(entry, |target, pool| {
            if target.block == header
                && let Some(arg) = target.args.as_mut_slice(pool).get_mut(index)
            {
                *arg = with;
            }
        });
        // It overflows elsewhere now.
        func.dfg.insts[self.next].flags = Flags::EMPTY;
        let &[x, y] = func.dfg.args(self.total) else { return };
        let behind = if x == with { y } else { x };
        func.dfg.alias(total, behind);
        func.layout.remove_inst(self.total);
    }
}
