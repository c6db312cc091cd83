//! Puts the bodies of functions in place of calls to them.
//!
//! Callees come before callers, so that what is inlined has been inlined into already. Which calls are inlined is
//! decided here, by the rules of [`Judge`]; how a body is put in place stands in [`splice`].
//!
//! A function is inlined when it says `alwaysinline`; when it is called from one place only and not visible outside; or
//! when it is small. A call costs a lot on this machine: arguments pass through parameter memory, registers are saved,
//! and what a pointer points to is not known on the other side; so small is larger than elsewhere.

mod splice;

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Effect, Extra, FuncId, FuncKind, Function, Inst, Linkage, MemType, Module, Opcode, Type};

use crate::call_graph::CallGraph;
use crate::edit::{for_each_inst, resolve_all_uses};

/// Largest body that is inlined at each of its calls, in instructions that cost something.
const SMALL: u32 = 200;
/// What an argument that is a constant, or the address of a variable of the caller, is hoped to save.
const BONUS_PER_ARGUMENT: u32 = 20;
/// Largest body that is inlined at its only call.
const LARGE: u32 = 10_000;
/// A function is not made larger than this, except for functions that say `alwaysinline`.
const LARGEST_CALLER: u32 = 40_000;

/// The pass.
pub fn inline_calls(module: &mut Module) -> bool {
    let graph = CallGraph::new(module);
    let mut judge = Judge { sizes: SecondaryMap::new(), graph: &graph };
    for (id, func) in module.funcs.iter() {
        judge.sizes[id] = size(func);
    }
    let mut changed = false;
    for id in &graph.bottom_up {
        if graph.callees[*id].is_empty() {
            continue;
        }
        // The caller is taken out of the module while callees are read from it.
        let placeholder = Function::new("", FuncKind::Func, module.funcs[*id].sig.clone());
        let mut caller = std::mem::replace(&mut module.funcs[*id], placeholder);
        changed |= inline_into(module, &mut judge, *id, &mut caller);
        module.funcs[*id] = caller;
    }
    changed
}

/// Inlines the calls of one function.
fn inline_into(module: &Module, judge: &mut Judge<'_>, id: FuncId, caller: &mut Function) -> bool {
    let mut calls: Vec<(Inst, FuncId)> = Vec::new();
    for_each_inst(caller, |inst| {
        if let Extra::Call(callee) = caller.dfg.insts[inst].extra {
            calls.push((inst, callee));
        }
    });
    let mut changed = false;
    for (inst, callee) in calls {
        // A call of itself: the body is not in the module now, and would not end.
        if callee == id || !judge.wants(module, id, caller, inst, callee) {
            continue;
        }
        if splice::splice(module, caller, inst, &module.funcs[callee]) {
            judge.sizes[id] = judge.sizes[id].saturating_add(judge.sizes[callee]);
            changed = true;
        }
    }
    if changed {
        resolve_all_uses(caller);
    }
    changed
}

/// Decides which calls are inlined.
struct Judge<'g> {
    sizes: SecondaryMap<FuncId, u32>,
    graph: &'g CallGraph,
}

impl Judge<'_> {
    fn wants(&self, module: &Module, caller_id: FuncId, caller: &Function, call: Inst, callee_id: FuncId) -> bool {
        let callee = &module.funcs[callee_id];
        let replaceable = matches!(callee.linkage, Linkage::Weak | Linkage::Common | Linkage::Extern);
        if callee.is_declaration() || callee.kind == FuncKind::Kernel || callee.attrs.noinline {
            return false;
        }
        if self.graph.group[caller_id] == self.graph.group[callee_id] {
            return false;
        }
        if callee.attrs.alwaysinline {
            return true;
        }
        if replaceable || self.graph.recursive[callee_id] || callee.attrs.noreturn {
            return false;
        }
        let size = self.sizes[callee_id];
        if self.sizes[caller_id].saturating_add(size) > LARGEST_CALLER {
            return false;
        }
        let only_call = callee.linkage == Linkage::Internal && self.graph.is_called_once(callee_id);
        only_call && size <= LARGE || size <= SMALL + bonus(caller, call)
    }
}

/// What the arguments of a call are hoped to save.
fn bonus(caller: &Function, call: Inst) -> u32 {
    let mut bonus = 0u32;
    for argument in caller.dfg.args(call) {
        let constant = caller.dfg.as_const(*argument).is_some();
        let op = caller.dfg.def_inst(*argument).map(|inst| caller.dfg.insts[inst].op);
        if constant || matches!(op, Some(Opcode::Alloca | Opcode::Addrspacecast)) {
            bonus = bonus.saturating_add(BONUS_PER_ARGUMENT);
        }
    }
    bonus
}

/// Instructions of a function that cost something.
fn size(func: &Function) -> u32 {
    let mut size = 0u32;
    for_each_inst(func, |inst| {
        let data = &func.dfg.insts[inst];
        let weight = match data.op {
            Opcode::Alloca
            | Opcode::Addrspacecast
            | Opcode::Bitcast
            | Opcode::Freeze
            | Opcode::Assume
            | Opcode::Jump
            | Opcode::Ret
            | Opcode::Extract
            | Opcode::Vector => 0,
            Opcode::Call | Opcode::CallIndirect => 5 + func.dfg.args(inst).len() as u32,
            Opcode::Switch => match data.extra {
                Extra::Switch(id) => 1 + func.dfg.switches[id].cases.len() as u32,
                _ => 1,
            },
            op if op.info().effect == Effect::Traps => 8,
            _ => lanes(data.ty),
        };
        size = size.saturating_add(weight);
    });
    size
}

fn lanes(ty: Type) -> u32 {
    if ty.is_invalid() { 1 } else { ty.lanes() }
}

/// How many values a parameter or result of this type is passed as.
fn leaves(module: &Module, ty: MemType) -> usize {
    match ty {
        MemType::Value(_) => 1,
        MemType::Agg(id) => module.agg(id).leaves as usize,
    }
}

/// Index of the first value of each parameter.
fn first_leaves(module: &Module, func: &Function) -> Vec<usize> {
    let mut first = 0;
    let mut all = Vec::with_capacity(func.sig.params.len());
    for param in &func.sig.params {
        all.push(first);
        first += leaves(module, param.ty);
    }
    debug_assert!(func.layout.entry().is_none_or(|entry| func.dfg.block_params(entry).len() == first));
    all
}
