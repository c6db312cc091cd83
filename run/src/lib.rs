//! Run files: IR modules whose comments say how the kernels are launched, with what, and what must come out.
//!
//! [`mod@file`] reads the directives (the language is described in `run/FORMAT.md`), [`mod@prepare`] makes launches and
//! buffers of them, an [`Executor`] runs them, [`judge`] compares what came out with what should.

pub mod error;
mod evaluate;
mod executors;
mod expression;
pub mod file;
mod functions;
pub mod judge;
mod parse;
pub mod prepare;
mod read;
mod token;
pub mod value;

pub use error::Error;
pub use executors::{Emulator, Interpreter};
pub use file::{Case, RunFile};
pub use prepare::{Prepared, prepare};

use ptxc_interp::launch::{Buffer, Failure, Launch, Outcome};

/// Something that can run the kernels of one module.
pub trait Executor {
    /// Runs launches one after the other on the same buffers. Variables of the module start anew with each launch.
    ///
    /// # Errors
    /// The first launch that is refused or goes wrong.
    fn run(&self, launches: &[Launch], buffers: &mut [Buffer]) -> Result<Outcome, Failure>;
}
