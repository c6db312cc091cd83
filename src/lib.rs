//! ptxc: an optimizing compiler backend. A typed SSA IR in, NVIDIA PTX out.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = std::fs::read_to_string("saxpy.ir")?;
//! let options = ptxc::Options { opt_level: ptxc::OptLevel::O3, ..ptxc::Options::new("sm_100a".parse()?) };
//! let output = ptxc::compile_text("saxpy.ir", &text, &options)?;
//! print!("{}", output.text);
//! # Ok(())
//! # }
//! ```
//!
//! [`compile_text`] takes the language of `ir/LANGUAGE.md`, [`compile_bytes`] LLVM IR too; [`Compiler`] takes a [`Module`](ir::Module) built in
//! memory. Both run the lists of [`pipeline`] and report through [`Diagnostics`]. [`resources`] reads what `ptxas`
//! made of the result.

mod compiler;
pub mod diagnostics;
#[cfg(feature = "run")]
pub mod execution;
mod input;
pub mod options;
pub mod pipeline;
pub mod report;
pub mod resources;
mod verify;

pub use compiler::{
    Compiler, Observer, Output, compile_bytes, compile_bytes_observed, compile_llvm_prepared, compile_text,
    compile_text_observed,
};
pub use diagnostics::{Diagnostic, Diagnostics, Severity};
pub use input::Format;
pub use options::{DebugInfo, Emit, Library, OptLevel, Options, PrintAfter, Schedule};
pub use report::{Remark, Report};

/// Names of the rules that [`Output::remarks`] may speak of: those of passes, then those of selection.
///
/// What it says of scheduled blocks has the names [`outcome_names`].
pub fn rule_names() -> impl Iterator<Item = &'static str> {
    let passes = ptxc_opt::Rule::ALL.iter().map(|rule| rule.name());
    passes.chain(ptxc_isel::rules::all().map(|rule| rule.name))
}

/// Names of what [`Output::remarks`] may say of blocks that were scheduled.
pub fn outcome_names() -> impl Iterator<Item = &'static str> {
    ptxc_scheduling::Outcome::ALL.iter().map(|outcome| outcome.name())
}

pub use ptxc_ir as ir;
pub use ptxc_llvm as llvm;
pub use ptxc_mir as mir;
pub use ptxc_opt as opt;
pub use ptxc_targets as targets;
