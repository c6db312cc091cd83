//! What it costs to execute an operation where its result may not be needed: one table for all passes that move operations
//! before a branch.

use ptxc_ir::{Effect, Function, Inst, Opcode, Type};

/// Instructions of the machine that an operation takes; `None` for what is not executed ahead: what may be undefined, does
/// more than compute, or becomes a sequence.
pub(crate) fn cost_ahead(func: &Function, inst: Inst) -> Option<usize> {
    use Opcode::*;
    let data = &func.dfg.insts[inst];
    if data.op.info().effect != Effect::Pure || func.dfg.num_results(inst) != 1 {
        return None;
    }
    let operand = func.dfg.args(inst).first().map(|value| func.dfg.ty(*value))?;
    let result = func.dfg.ty(func.dfg.result(inst, 0));
    if operand.is_vector() || result.is_vector() || operand.bits() > 64 || result.bits() > 64 {
        return None;
    }
    Some(match data.op {
        // Predicates are combined by the comparison.
        Xor if result == Type::I1 => 0,
        Icmp | Fcmp | Fclass | Add | Sub | And | Or | Xor | Shl | Lshr | Ashr | Smin | Smax | Umin | Umax | Trunc
        | Zext | Sext | Select | Fneg | Fabs | Ctpop | Addrspacecast => 1,
        Mul if result.bits() <= 32 => 1,
        Freeze | Bitcast | Ptrtoint | Inttoptr => 0,
        // Constant steps stand in the brackets of an access.
        Gep => func.dfg.args(inst).iter().skip(1).filter(|index| func.dfg.as_bits(**index).is_none()).count(),
        _ => return None,
    })
}
