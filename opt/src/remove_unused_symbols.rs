//! Removes functions and variables that are not visible outside of the module and that nothing visible needs, and
//! declarations that nothing uses.

use ptxc_ir::{FuncKind, Linkage, Module};

use crate::call_graph::needed;

/// The pass.
pub fn remove_unused_symbols(module: &mut Module) -> bool {
    let visible = |linkage: Linkage| !matches!(linkage, Linkage::Internal | Linkage::Extern);
    let needed =
        needed(module, |func| func.kind == FuncKind::Kernel || visible(func.linkage), |global| visible(global.linkage));
    let all_needed =
        module.funcs.keys().all(|id| needed.funcs[id]) && module.globals.keys().all(|id| needed.globals[id]);
    if !all_needed {
        module.retain_symbols(|func| needed.funcs[func], |global| needed.globals[global]);
    }
    !all_needed
}
