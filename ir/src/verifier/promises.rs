//! What a function's attributes promise and its body breaks. Passes believe the attributes, so a wrong one changes what
//! the program does; it is legal all the same, since the body may be unreachable.

use ptxc_targets::Effects;

use super::operands::View;
use super::{Place, Report, Rule, fail};
use crate::entities::Inst;
use crate::flags::Flags;
use crate::instruction::{Extra, TargetOp};
use crate::module::{FuncAttrs, Function, Module};
use crate::opcode::{Effect, Opcode};
use crate::target_ops;
use crate::types::{Space, Type};

/// What an instruction does, as far as attributes speak of it.
#[derive(Clone, Copy, Default)]
struct Acts {
    reads: bool,
    writes: bool,
    convergent: bool,
}

/// Warns of instructions that do what an attribute of the function excludes.
pub(super) fn check(module: &Module, func: &Function, report: &mut Report) {
    let attrs = &func.attrs;
    if !(attrs.nonconvergent || attrs.readnone || attrs.readonly || attrs.noreturn) {
        return;
    }
    for block in func.layout.blocks() {
        for inst in func.layout.insts(block) {
            let acts = acts(&View::new(module, func, inst));
            let op = func.dfg.insts[inst].op;
            let mut warn = |broken: bool, attribute: &str, does: &str| {
                if broken {
                    let message = format!("`{}` {does} in a function that is `{attribute}`", op.text());
                    report.add(Place::Inst(inst), fail(Rule::Promise, message));
                }
            };
            warn(attrs.nonconvergent && acts.convergent, "nonconvergent", "depends on converged threads");
            warn(attrs.readnone && (acts.reads || acts.writes), "readnone", "accesses memory");
            warn(attrs.readonly && !attrs.readnone && acts.writes, "readonly", "writes memory");
            warn(attrs.noreturn && op == Opcode::Ret, "noreturn", "returns");
        }
    }
}

fn acts(view: &View) -> Acts {
    let data = view.data;
    // The function's own stack and its parameters are nobody else's memory.
    let own = |index: usize| matches!(view.ty(index).space(), Some(Space::Local | Space::Param | Space::Const));
    match data.op.info().effect {
        Effect::Read => Acts { reads: !own(0), ..Acts::default() },
        Effect::Write => Acts { writes: !own(usize::from(data.op == Opcode::Store)), ..Acts::default() },
        Effect::ReadWrite if matches!(data.extra, Extra::Copy { .. }) => {
            Acts { reads: !own(1), writes: !own(0), ..Acts::default() }
        }
        Effect::ReadWrite => Acts { reads: true, writes: true, ..Acts::default() },
        Effect::Convergent => Acts { convergent: true, ..Acts::default() },
        Effect::Table => table(view),
        _ => Acts::default(),
    }
}

fn table(view: &View) -> Acts {
    match view.data.extra {
        Extra::Call(callee) => {
            let called: &FuncAttrs = &view.module.funcs[callee].attrs;
            let nonconvergent = called.nonconvergent || view.data.flags.contains(Flags::NONCONVERGENT);
            Acts { reads: !called.readnone, writes: !called.readnone && !called.readonly, convergent: !nonconvergent }
        }
        Extra::Target(id) => target(view, view.inst, &view.func.dfg.target_ops[id]),
        // Whatever is behind a pointer.
        _ => Acts { reads: true, writes: true, convergent: !view.data.flags.contains(Flags::NONCONVERGENT) },
    }
}

fn target(view: &View, inst: Inst, op: &TargetOp) -> Acts {
    let dfg = &view.func.dfg;
    let TargetOp::Known { toks, operands, .. } = op else {
        let pure = view.data.flags.contains(Flags::PURE);
        let convergent = !pure && !view.data.flags.contains(Flags::NONCONVERGENT);
        return Acts { reads: !pure, writes: !pure, convergent };
    };
    let types: Vec<Type> = dfg.results(inst).map(|v| dfg.ty(v)).collect();
    match target_ops::form(view.module, dfg, toks, view.args, operands, &types) {
        Ok(form) => {
            let effects = form.effects();
            Acts {
                reads: effects.reads_memory(),
                writes: effects.writes_memory(),
                convergent: effects.contains(Effects::CONVERGENT),
            }
        }
        Err(_) => Acts::default(),
    }
}
