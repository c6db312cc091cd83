//! Target-independent passes over the IR.
//!
//! Each pass is one row of [`PASSES`]: a name that is a verb phrase, one sentence, and a function over one function of
//! a module. Passes keep no state between functions, so a module's functions may be worked on in parallel, and no
//! result depends on the order. Which passes run at which level, timing, printing and verification between them are
//! the business of the `ptxc` crate.
//!
//! What holds for every pass:
//! * Convergent instructions keep their control dependence, and are neither duplicated nor removed.
//! * Folding is bit-exact or it does not happen.
//! * Time is linear in the size of the function (up to hashing and the dominator tree).
//! * Value aliases ([`ptxc_ir::Dfg::alias`]) may be left behind; no use refers to one when the pass returns.

mod addresses;
mod aliases;
mod apply_conditions;
mod call_graph;
mod cheap;
mod choose_values;
mod collect_terms;
mod combine_exchanges;
mod combine_instructions;
mod compute_ahead;
mod edit;
mod effects;
pub mod fold;
mod fold_constants;
mod identities;
mod ignore_unread_bits;
mod infer_spaces;
mod inline_calls;
mod join_branches;
mod merge_accesses;
mod merge_atomics;
mod merge_block_params;
mod number_values;
mod pack_scalars;
mod pass;
mod promote_allocas;
mod read_through_copies;
mod remove_dead_code;
mod remove_unused_symbols;
mod rules;
mod share_addresses;
mod simplify_control_flow;
mod solve_loops;
mod step_addresses;
mod undefined_symbols;
mod widen_arithmetic;
mod widths;

pub use apply_conditions::apply_conditions;
pub use choose_values::{choose_values, tabulate_choices};
pub use collect_terms::collect_terms;
pub use combine_exchanges::combine_exchanges;
pub use combine_instructions::combine_instructions;
pub use compute_ahead::compute_ahead;
pub use fold_constants::fold_constants;
pub use ignore_unread_bits::ignore_unread_bits;
pub use infer_spaces::infer_spaces;
pub use inline_calls::inline_calls;
pub use join_branches::join_branches;
pub use merge_accesses::merge_accesses;
pub use merge_atomics::merge_atomics;
pub use merge_block_params::{merge_block_params, merge_counters};
pub use number_values::number_values;
pub use pack_scalars::pack_scalars;
pub use pass::{Context, MODULE_PASSES, ModulePass, PASSES, Pass, find, find_module_pass};
pub use promote_allocas::promote_allocas;
pub use read_through_copies::read_through_copies;
pub use remove_dead_code::remove_dead_code;
pub use remove_unused_symbols::remove_unused_symbols;
pub use rules::{Remarks, Rule};
pub use share_addresses::share_addresses;
pub use simplify_control_flow::simplify_control_flow;
pub use solve_loops::solve_loops;
pub use step_addresses::step_addresses;
pub use undefined_symbols::undefined_symbols;
pub use widen_arithmetic::widen_arithmetic;
