//! Runs test files that say in comments which commands to run, as LLVM's lit does.

pub mod command;
pub mod condition;
pub mod config;
pub mod execute;
pub mod script;
pub(crate) mod shared_options;
pub mod shell;
pub mod suite;
