//! Barriers that a part of a warp may reach without the rest.

use super::{Place, Report, Rule, fail};
use crate::entities::{Block, Inst};
use crate::flags::Flags;
use crate::module::{FuncKind, Function, Module};
use crate::uniformity::{Level, Uniformity};

/// Warns of `aligned` barriers in divergent control flow. Only kernels are looked at: who calls a function, and how
/// many threads together, is not known here.
pub(super) fn check(module: &Module, func: &Function, report: &mut Report) {
    if func.kind != FuncKind::Kernel {
        return;
    }
    let aligned = |inst: &Inst| func.dfg.insts[*inst].flags.contains(Flags::ALIGNED);
    let blocks = func.layout.blocks();
    let barriers: Vec<(Block, Inst)> =
        blocks.flat_map(|block| func.layout.insts(block).filter(aligned).map(move |inst| (block, inst))).collect();
    if barriers.is_empty() {
        return;
    }
    let uniformity = Uniformity::new(module, func);
    for (block, inst) in barriers {
        if uniformity.block(block) < Level::Warp {
            let op = func.dfg.insts[inst].op.text();
            let message = format!(
                "`{op} aligned` stands where a branch that depends on the thread may lead only a part of a warp"
            );
            report.add(Place::Inst(inst), fail(Rule::AlignedBarrier, message));
        }
    }
}
