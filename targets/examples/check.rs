//! Checks a PTX file with the library: `check FILE.ptx TARGET`. The command `ptxc check` does more.

use ptxc_targets::{Target, check_module, line_and_column};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, file, target] = &arguments[..] else {
        eprintln!("usage: check FILE.ptx TARGET");
        return ExitCode::from(2);
    };
    let (Ok(text), Ok(target)) = (std::fs::read_to_string(file), target.parse::<Target>()) else {
        eprintln!("check: no such file or target");
        return ExitCode::from(2);
    };
    let found = check_module(&text, target, 0);
    for one in &found {
        let (line, column) = line_and_column(&text, one.span.start);
        println!("{file}:{line}:{column}: error: {}", one.message);
    }
    if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
