//! The `filecheck` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    ExitCode::from(filecheck::command::main(&arguments) as u8)
}
