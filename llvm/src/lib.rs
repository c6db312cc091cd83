//! Reads LLVM IR into the IR of ptxc.
//!
//! Two readers, of text (`.ll`) and of bitcode (`.bc`), fill one [`model`] of an LLVM module; the translation takes
//! the model to [`ptxc_ir::Module`] and knows no syntax. The model keeps what LLVM IR says and decides nothing about
//! its meaning.
//!
//! A reader has the form `read(bytes: &[u8], module: &mut Module) -> Result<(), ReadError>` and adds the file to the
//! module, which may hold another file already.

pub mod adjust;
pub mod bitcode;
pub mod error;
pub mod model;
pub mod text;
pub mod translate;

pub use adjust::{Adjustments, Contraction};
pub use error::ReadError;
pub use model::Module;
pub use translate::{Message, Options, Translation, translate};
