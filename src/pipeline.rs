//! Which steps run at which level, as lists.
//!
//! A compilation is: read, verify, the IR passes of the level, then the lowering that every level shares.

use ptxc_opt::{ModulePass, Pass};

use crate::options::OptLevel;

/// IR passes of each level, in order.
const O0: &[&str] = &[];
const O1: &[&str] = &[
    "simplify-control-flow",
    "read-through-copies",
    "promote-allocas",
    "inline-calls",
    "remove-unused-symbols",
    "read-through-copies",
    "promote-allocas",
    "simplify-control-flow",
    "fold-constants",
    "merge-block-params",
    "infer-spaces",
    "combine-instructions",
    "remove-dead-code",
];
const O2: &[&str] = &[
    "simplify-control-flow",
    "read-through-copies",
    "promote-allocas",
    "remove-dead-code",
    "inline-calls",
    "remove-unused-symbols",
    "read-through-copies",
    "promote-allocas",
    "simplify-control-flow",
    "fold-constants",
    "merge-block-params",
    "infer-spaces",
    "number-values",
    "apply-conditions",
    "compute-ahead",
    "choose-values",
    "tabulate-choices",
    "simplify-control-flow",
    "solve-loops",
    "join-branches",
    "number-values",
    "combine-exchanges",
    "widen-arithmetic",
    "combine-instructions",
    "ignore-unread-bits",
    "collect-terms",
    "fold-constants",
    "number-values",
    "simplify-control-flow",
    "merge-accesses",
    "pack-scalars",
    "merge-atomics",
    "remove-dead-code",
    "combine-exchanges",
    "step-addresses",
    "merge-counters",
    "number-values",
    "share-addresses",
    "remove-dead-code",
];
const O3: &[&str] = O2;

/// Steps of the lowering, in order. `select` turns IR into machine IR, `schedule` orders it, `emit` machine IR into PTX.
pub const LOWERING: &[&str] = &[LEGALIZE, SELECT, SCHEDULE, ASSIGN_REGISTERS, EMIT];

/// Makes target operations of inline assembly.
pub const EXPAND_ASSEMBLY: &str = "expand-assembly";
/// Rewrites the IR to what the target has instructions for.
pub const LEGALIZE: &str = "legalize";
/// Turns legal IR into machine IR.
pub const SELECT: &str = "select";
/// Orders the instructions of each block.
pub const SCHEDULE: &str = "schedule";
/// Leaves SSA form and assigns PTX registers.
pub const ASSIGN_REGISTERS: &str = "assign-registers";
/// Prints PTX.
pub const EMIT: &str = "emit";
/// Reads what is needed of libraries.
pub const LINK: &str = "link";
/// Reads IR text.
pub const READ: &str = "read";
/// Translates LLVM IR to the IR.
pub const TRANSLATE: &str = "translate";
/// Checks the IR.
pub const VERIFY: &str = "verify";

/// One step over the IR.
#[derive(Clone, Copy)]
pub enum IrStep {
    /// A pass over each function.
    Pass(&'static Pass),
    /// A pass over the module.
    ModulePass(&'static ModulePass),
    /// Legalization of the module.
    Legalize,
}

impl IrStep {
    /// The step of that name.
    pub fn find(name: &str) -> Option<IrStep> {
        if name == LEGALIZE {
            return Some(IrStep::Legalize);
        }
        ptxc_opt::find(name).map(IrStep::Pass).or_else(|| ptxc_opt::find_module_pass(name).map(IrStep::ModulePass))
    }

    /// The step's name.
    pub fn name(self) -> &'static str {
        match self {
            IrStep::Pass(pass) => pass.name,
            IrStep::ModulePass(pass) => pass.name,
            IrStep::Legalize => LEGALIZE,
        }
    }
}

/// Names of the IR passes of a level.
pub fn names(level: OptLevel) -> &'static [&'static str] {
    match level {
        OptLevel::O0 => O0,
        OptLevel::O1 => O1,
        OptLevel::O2 => O2,
        OptLevel::O3 => O3,
    }
}

/// Every name that `--print-after` takes, in the order in which steps can run.
pub fn step_names() -> Vec<&'static str> {
    let passes = ptxc_opt::PASSES.iter().map(|pass| pass.name);
    let module_passes = ptxc_opt::MODULE_PASSES.iter().map(|pass| pass.name);
    [READ, TRANSLATE].into_iter().chain(passes).chain(module_passes).chain(LOWERING.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_in_the_lists_is_a_pass() {
        for level in OptLevel::ALL {
            for name in names(level) {
                assert!(IrStep::find(name).is_some(), "{level:?} names {name}");
            }
        }
    }
}
