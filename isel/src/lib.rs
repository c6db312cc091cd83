//! Legalization and instruction selection: IR in, machine IR out.
//!
//! Two steps, both per module: [`legalize()`] rewrites a verified module into *legal IR* (`isel/LEGAL.md`), and
//! [`select()`] turns legal IR into machine IR with the rules of `isel/rules/`. What a type's registers are is decided
//! in [`regs`], how parameters are passed in [`abi`]; nothing else decides either.

pub mod abi;
mod dialect;
pub mod error;
mod globals;
pub mod legalize;
mod lower;
mod module;
pub mod regs;
pub mod rules;

pub use error::SelectError;
pub use legalize::{legalize, legalize_with_remarks};
pub use module::{select, select_with_remarks};

/// What selection can be told besides the target.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Keep source locations on machine instructions.
    pub locations: bool,
    /// The newest version of PTX that may be written; `None`: every one.
    pub ptx_version: Option<ptxc_targets::PtxVersion>,
    /// Give every stack object memory of its own, for debuggers.
    pub separate_stack: bool,
}
