//! Rules of target operations.

use smallvec::SmallVec;

use super::operands::View;
use super::{Checked, Rule, fail, require};
use crate::instruction::{Extra, TargetOp, TargetOperand};
use crate::target_ops;
use crate::types::Type;

pub(super) fn check(view: &View) -> Checked {
    let Extra::Target(id) = view.data.extra else { return Ok(()) };
    let TargetOp::Known { toks, guard, operands } = &view.func.dfg.target_ops[id] else { return Ok(()) };
    let results = view.func.dfg.num_results(view.inst);
    let mut used_args = vec![false; view.args.len()];
    let mut used_results = vec![0u32; results];
    let mut sound = true;
    let mut arg = |index: u16, sound: &mut bool| match used_args.get_mut(usize::from(index)) {
        Some(used) => *used = true,
        None => *sound = false,
    };
    let mut result = |index: u16, sound: &mut bool| match used_results.get_mut(usize::from(index)) {
        Some(count) => *count += 1,
        None => *sound = false,
    };
    for operand in operands {
        match *operand {
            TargetOperand::Arg(index) | TargetOperand::ArgNot(index) | TargetOperand::Part { arg: index, .. } => {
                arg(index, &mut sound);
            }
            TargetOperand::Result(index) | TargetOperand::ResultPart { result: index, .. } => {
                result(index, &mut sound);
            }
            TargetOperand::InOut { result: r, arg: a } => {
                result(r, &mut sound);
                arg(a, &mut sound);
                let types = view.func.dfg.results(view.inst).nth(usize::from(r)).zip(view.args.get(usize::from(a)));
                sound &= types.is_none_or(|(to, from)| view.func.dfg.ty(to) == view.func.dfg.ty(*from));
            }
            _ => {}
        }
    }
    if let Some((index, _)) = guard {
        arg(*index, &mut sound);
        view.expect(usize::from(*index), Type::I1)?;
    }
    sound &= used_args.iter().all(|used| *used) && used_results.iter().all(|count| *count == 1);
    require(sound, Rule::TargetOperands, || {
        "the operands of the target operation do not name each argument, and each result once".to_string()
    })?;
    let types: SmallVec<[Type; 8]> = view.func.dfg.results(view.inst).map(|v| view.func.dfg.ty(v)).collect();
    match target_ops::form(view.module, &view.func.dfg, toks, view.args, operands, &types) {
        Ok(_) => Ok(()),
        Err(error) => fail(Rule::TargetForm, error.to_string()),
    }
}
