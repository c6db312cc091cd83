//! What a pass is, and the table of all passes.

use cranelift_entity::PrimaryMap;
use ptxc_ir::{Flags, FuncAttrs, FuncId, Function, Inst, Module, Opcode, Type};

use crate::rules::{Remarks, Rule};

/// What a pass may know besides the function it works on.
pub struct Context<'m> {
    /// Types and globals of the module. Its function table is empty while passes run.
    pub module: &'m Module,
    /// Attributes of every function of the module, to judge calls.
    pub attrs: &'m PrimaryMap<FuncId, FuncAttrs>,
    /// Where rules that are applied are noted, if somebody wants to know.
    pub remarks: Option<&'m Remarks>,
    /// Whether the machine computes a float operation with these flags on a type, a pair for example, in one instruction.
    pub has_operation: &'m (dyn Fn(Opcode, Flags, Type) -> bool + Sync),
}

impl<'m> Context<'m> {
    /// A context without remarks, of a machine that has every operation.
    pub fn new(module: &'m Module, attrs: &'m PrimaryMap<FuncId, FuncAttrs>) -> Context<'m> {
        Context { module, attrs, remarks: None, has_operation: &|_, _, _| true }
    }

    /// Whether the machine computes a float operation in one instruction.
    pub(crate) fn has_operation(&self, op: Opcode, flags: Flags, ty: Type) -> bool {
        (self.has_operation)(op, flags, ty)
    }

    /// A rule is applied to an instruction.
    pub(crate) fn note(&self, inst: Inst, rule: Rule) {
        if let Some(remarks) = self.remarks {
            remarks.note(inst, rule);
        }
    }
}

/// One pass.
pub struct Pass {
    /// Name on the command line and in reports: a verb phrase.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// The pass. Tells whether it changed anything.
    pub run: fn(&mut Function, &Context<'_>) -> bool,
}

/// Every pass.
pub static PASSES: &[Pass] = &[
    Pass {
        name: "fold-constants",
        summary: "replaces instructions whose result is a constant or one of their operands",
        run: crate::fold_constants,
    },
    Pass {
        name: "combine-instructions",
        summary: "replaces instructions by cheaper ones, by flags and what is known of the operands' bits",
        run: crate::combine_instructions,
    },
    Pass {
        name: "ignore-unread-bits",
        summary: "removes what only changes bits that nobody reads",
        run: crate::ignore_unread_bits,
    },
    Pass {
        name: "collect-terms",
        summary: "computes sums and products of several operations another way where that takes fewer",
        run: crate::collect_terms,
    },
    Pass {
        name: "widen-arithmetic",
        summary: "computes in 32 bits what is computed in fewer and then extended",
        run: crate::widen_arithmetic,
    },
    Pass {
        name: "simplify-control-flow",
        summary: "resolves constant branches, removes unreachable and empty blocks, joins chains of blocks",
        run: crate::simplify_control_flow,
    },
    Pass {
        name: "combine-exchanges",
        summary: "makes one operation over a warp of shuffles that reduce and of ballots that are compared",
        run: crate::combine_exchanges,
    },
    Pass {
        name: "choose-values",
        summary: "computes the values that branches and switches only choose between",
        run: crate::choose_values,
    },
    Pass {
        name: "solve-loops",
        summary: "computes in a few operations what loops over the bits of a number compute",
        run: crate::solve_loops,
    },
    Pass {
        name: "join-branches",
        summary: "makes one branch of two that share a destination",
        run: crate::join_branches,
    },
    Pass {
        name: "compute-ahead",
        summary: "computes before a branch what is cheap in one of its ways",
        run: crate::compute_ahead,
    },
    Pass {
        name: "merge-block-params",
        summary: "replaces block parameters that receive the same value from everywhere, or always hold what another one does",
        run: crate::merge_block_params,
    },
    Pass {
        name: "merge-counters",
        summary: "replaces block parameters that count as another one does, though only one of them promises not to wrap",
        run: crate::merge_counters,
    },
    Pass {
        name: "infer-spaces",
        summary: "gives generic pointers the space that they point into, around loops too",
        run: crate::infer_spaces,
    },
    Pass {
        name: "merge-accesses",
        summary: "joins loads and stores of neighbouring bytes into accesses of vectors",
        run: crate::merge_accesses,
    },
    Pass { name: "pack-scalars", summary: "computes scalars that lie side by side in pairs", run: crate::pack_scalars },
    Pass {
        name: "merge-atomics",
        summary: "joins atomic additions to neighbouring floats into additions to vectors",
        run: crate::merge_atomics,
    },
    Pass {
        name: "step-addresses",
        summary: "keeps addresses that grow evenly from round to round of a loop as pointers that step",
        run: crate::step_addresses,
    },
    Pass {
        name: "share-addresses",
        summary: "computes the variable part of addresses that are a constant apart once",
        run: crate::share_addresses,
    },
    Pass {
        name: "apply-conditions",
        summary: "replaces what a branch decided in the blocks that only one of its ways leads to",
        run: crate::apply_conditions,
    },
    Pass {
        name: "number-values",
        summary: "replaces an instruction by an equal one that dominates it",
        run: crate::number_values,
    },
    Pass {
        name: "read-through-copies",
        summary: "reads kernel parameters and constant memory where they are instead of copies on the stack",
        run: crate::read_through_copies,
    },
    Pass {
        name: "promote-allocas",
        summary: "keeps stack objects in values, structs and arrays in parts",
        run: crate::promote_allocas,
    },
    Pass {
        name: "remove-dead-code",
        summary: "removes instructions and block parameters that nothing needs",
        run: crate::remove_dead_code,
    },
];

/// A pass over a whole module: over calls between functions, for example.
pub struct ModulePass {
    /// Name on the command line and in reports: a verb phrase.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// The pass. Tells whether it changed anything.
    pub run: fn(&mut Module) -> bool,
}

/// Every pass over modules.
pub static MODULE_PASSES: &[ModulePass] = &[
    ModulePass {
        name: "inline-calls",
        summary: "puts the bodies of small functions, and of functions with one call, in place of calls to them",
        run: crate::inline_calls,
    },
    ModulePass {
        name: "tabulate-choices",
        summary: "loads the constants that a switch only chooses between from constant memory",
        run: crate::tabulate_choices,
    },
    ModulePass {
        name: "remove-unused-symbols",
        summary: "removes functions and variables that nothing visible needs",
        run: crate::remove_unused_symbols,
    },
];

/// The pass over modules of that name.
pub fn find_module_pass(name: &str) -> Option<&'static ModulePass> {
    MODULE_PASSES.iter().find(|pass| pass.name == name)
}

/// The pass of that name.
pub fn find(name: &str) -> Option<&'static Pass> {
    PASSES.iter().find(|pass| pass.name == name)
}
