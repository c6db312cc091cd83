//! What instructions may be removed or merged: one answer for all passes, read from the tables.

use ptxc_ir::{Effect, Extra, Flags, Function, Inst, Opcode, TargetOp};
use ptxc_targets::Effects;

use crate::pass::Context;

/// True when the instruction may go when no result of it is used.
pub fn is_removable(func: &Function, _ctx: &Context<'_>, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    match data.op.info().effect {
        Effect::Pure | Effect::Traps => true,
        Effect::Read => !matches!(data.extra, Extra::Mem(attrs) if attrs.is_ordered()),
        Effect::Other => data.op == Opcode::Alloca,
        Effect::Table => match data.op {
            Opcode::Asm => is_movable_asm(data.flags),
            Opcode::Target => target_effects(func, inst).is_some_and(Effects::is_pure),
            // A call may fail to return, whatever it does to memory.
            _ => false,
        },
        Effect::Write | Effect::ReadWrite | Effect::Convergent | Effect::Terminator => false,
    }
}

/// True when an instruction does nothing besides computing its results: no memory, no other threads, and what comes behind
/// it is executed.
pub fn is_computation(func: &Function, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    match data.op.info().effect {
        Effect::Pure | Effect::Traps => true,
        Effect::Table if data.op == Opcode::Target => target_effects(func, inst).is_some_and(Effects::is_pure),
        _ => false,
    }
}

/// True when two such instructions with equal operands compute the same, wherever they stand.
pub fn is_function_of_operands(func: &Function, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    match data.op.info().effect {
        // Two executions of `freeze` of a poison value may differ; merging them picks one choice for both.
        Effect::Pure => !matches!(data.extra, Extra::Sreg(register) if register.is_volatile()),
        Effect::Traps => true,
        _ => false,
    }
}

/// Inline assembly moves and goes only when it says both that it has no effects and that it does not depend on
/// converged threads: the first does not imply the second.
fn is_movable_asm(flags: Flags) -> bool {
    flags.contains(Flags::PURE) && flags.contains(Flags::NONCONVERGENT)
}

/// Effects of a target operation by the table of instructions; `None` when the table does not know it.
fn target_effects(func: &Function, inst: Inst) -> Option<Effects> {
    let Extra::Target(id) = func.dfg.insts[inst].extra else { return None };
    match &func.dfg.target_ops[id] {
        TargetOp::Known { toks, .. } => ptxc_targets::possible_effects(toks),
        TargetOp::Opaque { .. } => None,
    }
}
