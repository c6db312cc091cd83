//! `ptxc reduce`: a smaller module for which a command still succeeds.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use ptxc::ir::{Module, has_errors, print_module, read_module, verify_module};
use ptxc::{Diagnostic, Diagnostics};

use crate::arguments::ReduceArguments;
use crate::{Failure, files};

/// Reduces a file as the arguments say.
pub fn run(arguments: &ReduceArguments) -> Result<(), Failure> {
    let name = files::display_name(&arguments.file);
    let text = files::read_text(&arguments.file)?;
    let module = read(&name, &text)?;
    let fault = |error: std::io::Error| Failure::message(format!("{name}: error: cannot run the test: {error}\n"));
    let folder = tempfile::tempdir().map_err(fault)?;
    let path = folder.path().join("candidate.ir");
    if !holds(&module, &path, &arguments.test).map_err(fault)? {
        return Err(Failure::message(format!("{name}: error: the test fails for the whole module\n")));
    }
    let options = ptxc_reduce::Options { tests: arguments.max_tests, keep_kernels: arguments.keep_kernels };
    let mut error = None;
    let (small, summary) = ptxc_reduce::reduce(&module, &options, &mut |candidate| {
        error.is_none()
            && holds(candidate, &path, &arguments.test).unwrap_or_else(|found| {
                error = Some(found);
                false
            })
    });
    if let Some(error) = error {
        return Err(fault(error));
    }
    files::to_stderr(&format!("{} tests, {} changes kept\n", summary.tests, summary.kept));
    files::write_output(arguments.output.as_deref(), &print_module(&small))
}

/// A module that the verifier takes.
fn read(name: &str, text: &str) -> Result<Module, Failure> {
    let mut diagnostics = Diagnostics::new(name, text);
    match read_module(text) {
        Ok(module) => {
            let faults = verify_module(&module);
            if !has_errors(&faults) {
                return Ok(module);
            }
            diagnostics.list.extend(faults.into_iter().map(|fault| Diagnostic::error(fault.message)));
        }
        Err(errors) => {
            diagnostics.list.extend(errors.into_iter().map(|e| Diagnostic::error(e.message).at(Some(e.span))));
        }
    }
    Err(Failure::message(diagnostics.to_string()))
}

/// Whether the command succeeds for a module, whose file is its last argument.
fn holds(module: &Module, path: &Path, command: &str) -> std::io::Result<bool> {
    std::fs::File::create(path)?.write_all(print_module(module).as_bytes())?;
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("{command} \"$@\"")).arg("sh").arg(path);
    let status = shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    Ok(status.success())
}
