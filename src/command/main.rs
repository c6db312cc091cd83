//! The `ptxc` command.
//!
//! Exit status: 0 success, 1 errors in the input or in reading and writing files, 2 wrong use of the command,
//! 101 a fault of the compiler.

mod arguments;
mod compile;
mod files;
mod isa;
mod llc;
mod reduce;
mod run;
mod stats;
mod targets;

use std::process::ExitCode;

use clap::Parser as _;

use arguments::{Arguments, Subcommand};

/// Why the command ends without success.
#[derive(Debug)]
pub enum Failure {
    /// Errors that were reported already, or this one.
    Errors(String),
    /// A fault of the compiler, reported already.
    Internal,
}

impl Failure {
    /// A failure with a message; files are named in it.
    pub fn message(text: impl Into<String>) -> Failure {
        Failure::Errors(text.into())
    }
}

fn main() -> ExitCode {
    end(match llc::arguments(std::env::args_os()) {
        Some(arguments) => llc::run(&arguments),
        None => run(&Arguments::parse()),
    })
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.subcommand {
        None => compile::run(&arguments.compile),
        Some(Subcommand::Run(args)) => run::run(args),
        Some(Subcommand::Stats(args)) => stats::run(args),
        Some(Subcommand::Check(args)) => isa::check(args),
        Some(Subcommand::Isa(args)) => isa::describe(args),
        Some(Subcommand::Reduce(args)) => reduce::run(args),
        Some(Subcommand::Llc(args)) => llc::run(&args.arguments),
        Some(Subcommand::Targets) => targets::run(),
    }
}

fn end(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Errors(text)) => {
            files::to_stderr(&text);
            ExitCode::from(1)
        }
        Err(Failure::Internal) => ExitCode::from(101),
    }
}
