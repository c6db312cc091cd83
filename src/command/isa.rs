//! `ptxc check` and `ptxc isa`: questions to the instruction tables.

use crate::arguments::{CheckArguments, IsaArguments};
use crate::{Failure, files};

/// Checks a PTX file for a target.
pub fn check(arguments: &CheckArguments) -> Result<(), Failure> {
    let _ = files::read_text(&arguments.file)?;
    Err(Failure::message("error: `ptxc check` is not available in this version\n"))
}

/// Prints what the tables say about a mnemonic.
pub fn describe(arguments: &IsaArguments) -> Result<(), Failure> {
    let _ = &arguments.mnemonic;
    Err(Failure::message("error: `ptxc isa` is not available in this version\n"))
}
