//! `ptxc stats`: what `ptxas` made of a module.

use ptxc::resources;

use crate::arguments::StatsArguments;
use crate::{Failure, files};

/// Prints the table of a cubin.
pub fn run(arguments: &StatsArguments) -> Result<(), Failure> {
    let bytes = files::read_bytes(&arguments.file)?;
    let module = resources::read_cubin(&bytes)
        .map_err(|error| Failure::message(format!("{}: error: {error}\n", files::display_name(&arguments.file))))?;
    files::write_output(None, &module.to_string())
}
