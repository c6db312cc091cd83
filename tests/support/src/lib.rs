//! `ptxas` for tests: finds or installs it, and assembles PTX in parallel.
//!
//! Two releases are needed: 13.5 for sm_75 and later, 12.9 for what 13 dropped. Absence is a failure, never a skip.

mod assemble;
mod install;

pub use assemble::{Job, Outcome, assemble, assemble_all, assembles, parse};
pub use install::{Release, ptxas};
