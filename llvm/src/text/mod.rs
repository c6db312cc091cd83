//! The reader of textual LLVM IR, as LLVM 15 to 24 write it, and of typed pointers before that.
//!
//! One pass over the bytes. Names and numbers become ids of the model when they are first met, so that nothing is
//! patched; what is left undefined at the end of a function or file is an error at its first mention. Reading stops at
//! the first error.

mod attributes;
mod constants;
mod control;
mod debug_info;
mod functions;
mod instructions;
mod items;
mod lexer;
mod locals;
mod memory;
mod metadata;
mod numbers;
mod parser;
mod types;

use crate::ReadError;
use crate::model::Module;

/// Reads a file of textual LLVM IR into `module`.
///
/// # Errors
/// The first thing that is wrong with the text. The module is then of no use.
pub fn read(source: &[u8], module: &mut Module) -> Result<(), ReadError> {
    if u32::try_from(source.len()).is_err() {
        return Err(ReadError::new(0, "the file is larger than 4 GiB"));
    }
    parser::Parser::new(source, module).file().map_err(|error| *error)
}
