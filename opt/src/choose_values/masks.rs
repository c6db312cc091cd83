//! Masks that are flags: `sext i1 %c & x` is x or nothing.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Function, FunctionBuilder, Inst, Opcode, Type, Value};

use crate::edit::{for_each_inst, resolve_all_uses};
use crate::pass::Context;
use crate::rules::Rule;

/// Replaces values that are masked by a flag by a choice. A mask that is used twice stays: logic on masks is one instruction
/// for three of them.
pub(super) fn select_masked(func: &mut Function, ctx: &Context<'_>) -> bool {
    let mut uses: SecondaryMap<Value, u32> = SecondaryMap::new();
    let mut masked: Vec<Inst> = Vec::new();
    for_each_inst(func, |inst| {
        func.dfg.for_each_use(inst, |value| uses[func.dfg.resolve(value)] += 1);
        if func.dfg.insts[inst].op == Opcode::And && is_word(func.dfg.insts[inst].ty) {
            masked.push(inst);
        }
    });
    let mut changed = false;
    for inst in masked {
        let &[a, b] = func.dfg.args(inst) else { continue };
        let (a, b) = (func.dfg.resolve(a), func.dfg.resolve(b));
        let found = flag(func, &uses, a).map(|flag| (flag, b)).or_else(|| flag(func, &uses, b).map(|flag| (flag, a)));
        let Some((flag, value)) = found else { continue };
        let loc = func.dfg.locs[inst];
        let mut builder = FunctionBuilder::before(func, inst);
        builder.set_loc(loc);
        let ty = builder.ty(value);
        let zero = builder.bits(ty, 0);
        let chosen = builder.select(flag, value, zero);
        let old = func.dfg.result(inst, 0);
        func.dfg.alias(old, chosen);
        func.layout.remove_inst(inst);
        ctx.note(inst, Rule::ChooseMasked);
        changed = true;
    }
    if changed {
        resolve_all_uses(func);
    }
    changed
}

fn is_word(ty: Type) -> bool {
    matches!(ty, Type::I16 | Type::I32 | Type::I64)
}

/// The flag that a value is copies of, when nothing else uses it.
fn flag(func: &Function, uses: &SecondaryMap<Value, u32>, value: Value) -> Option<Value> {
    let inst = func.dfg.def_inst(value).filter(|inst| func.dfg.insts[*inst].op == Opcode::Sext)?;
    let flag = func.dfg.resolve(*func.dfg.args(inst).first()?);
    (func.dfg.ty(flag) == Type::I1 && uses[value] == 1).then_some(flag)
}
