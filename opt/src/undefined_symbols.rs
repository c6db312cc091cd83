//! Symbols that a module uses and does not define.

use ptxc_ir::{FuncKind, GlobalKind, Linkage, Module, Space};

use crate::call_graph::needed;

/// The names of functions, and of variables in global and constant memory, that visible code needs and that are only
/// declared; in the order of the module.
pub fn undefined_symbols(module: &Module) -> Vec<String> {
    let visible = |linkage: Linkage| !matches!(linkage, Linkage::Internal | Linkage::Extern);
    let needed =
        needed(module, |func| func.kind == FuncKind::Kernel || visible(func.linkage), |global| visible(global.linkage));
    let in_memory = |kind| matches!(kind, GlobalKind::Variable(Space::Global | Space::Const));
    let funcs = module.funcs.iter().filter(|(id, func)| needed.funcs[*id] && func.is_declaration());
    let globals = module
        .globals
        .iter()
        .filter(|(id, global)| needed.globals[*id] && global.linkage == Linkage::Extern && in_memory(global.kind));
    let funcs = funcs.map(|(_, func)| func.name.clone());
    funcs.chain(globals.map(|(_, global)| global.name.clone())).collect()
}
