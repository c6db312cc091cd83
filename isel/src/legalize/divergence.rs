//! Barriers on targets whose warps have one program counter.
//!
//! Before sm_70 every thread of a warp must execute the same barrier instruction, whether it says `.aligned` or not (PTX
//! ISA 9.7.15.1, barrier). `ptxas` takes such code and it hangs, so it is refused here.

use ptxc_ir::uniformity::{Level, Uniformity};
use ptxc_ir::{Block, Flags, FuncKind, Function, Inst, Module, Shape};

use crate::error::SelectError;

/// One error for each barrier without `aligned` that a part of a warp may reach alone. Of `aligned` ones the verifier
/// warns. Functions are not looked at: how many threads call one together is not known.
pub(super) fn divergent_barriers(module: &Module, func: &Function) -> Vec<SelectError> {
    if func.kind != FuncKind::Kernel {
        return Vec::new();
    }
    let is_barrier = |inst: &Inst| {
        let data = &func.dfg.insts[*inst];
        matches!(data.op.shape(), Shape::BarrierSync | Shape::BarrierReduce) && !data.flags.contains(Flags::ALIGNED)
    };
    let blocks = func.layout.blocks();
    let barriers: Vec<(Block, Inst)> =
        blocks.flat_map(|block| func.layout.insts(block).filter(is_barrier).map(move |inst| (block, inst))).collect();
    if barriers.is_empty() {
        return Vec::new();
    }
    let uniformity = Uniformity::new(module, func);
    let alone = barriers.into_iter().filter(|(block, _)| uniformity.block(*block) < Level::Warp);
    let error = |(_, inst): (Block, Inst)| {
        let op = func.dfg.insts[inst].op.text();
        let message = format!("`{op}` where a part of a warp may get without the rest needs sm_70");
        SelectError::at(func, inst, message)
    };
    alone.map(error).collect()
}
