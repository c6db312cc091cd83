//! The run files on the GPU: what comes out has to be what they expect, and what the interpreter gives.

use ptxc::execution::{Form, Place, Program, native_target};
use ptxc_gpu::Gpu;

include!(concat!(env!("OUT_DIR"), "/run_files.rs"));

/// Prefix of the names of these tests, to tell them from the examples of the same name.
pub const PREFIX: &str = "run-";

/// Names of the run files whose name, with its prefix, contains a text.
pub fn names(only: &str) -> Vec<String> {
    let names = FILES.iter().map(|(name, _)| format!("{PREFIX}{name}"));
    names.filter(|name| name.contains(only)).collect()
}

/// Runs one file in the interpreter and on the GPU, at both levels; gives how it went in words.
pub fn run(name: &str, gpu: &Gpu) -> Result<String, String> {
    let found = FILES.iter().find(|(known, _)| name.strip_prefix(PREFIX) == Some(known));
    let (name, text) = found.ok_or_else(|| format!("no run file `{name}`"))?;
    let program = Program::read(&format!("{name}.ir"), text).map_err(|diagnostics| diagnostics.to_string())?;
    if let (Some(needs), Some(native)) = (program.file.target, native_target(gpu))
        && !needs.runs_on(native)
    {
        return Ok(format!("skipped: needs {needs}"));
    }
    if program.file.cases.iter().all(|case| case.failure().is_some()) {
        return Ok("skipped: is wrong on purpose".to_owned());
    }
    let mut forms = Form::GPU.to_vec();
    let interpreted = program.file.gap(Place::Interpreter.name()).is_none();
    if interpreted {
        forms.insert(0, Form::WRITTEN);
    }
    // Every file that the program carries is whole: none names others.
    let problems = program.agreement(&forms, std::path::Path::new("."), Some(gpu));
    match problems.is_empty() {
        true if interpreted => Ok("as expected, as interpreted".to_owned()),
        true => Ok("as expected".to_owned()),
        false => Err(program.diagnostics(problems).to_string()),
    }
}
