//! `ptxc run`: runs kernels as the directives of their file say.

use std::fmt::Write as _;
use std::path::Path;

use ptxc::execution::{Form, Place, Program, native_target};
use ptxc::{Diagnostic, OptLevel};
use ptxc_gpu::Gpu;
use ptxc_interp::launch::Outcome;

use crate::arguments::{ExecutorArgument, RunArguments};
use crate::{Failure, files};

/// Runs as the arguments say and prints what the kernels left.
pub fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let name = files::display_name(&arguments.file);
    let mut text = files::read_text(&arguments.file)?;
    for directive in &arguments.directives {
        let _ = write!(text, "{}\n;! {directive}\n", if text.ends_with('\n') { "" } else { "\n" });
    }
    let mut program = Program::read(&name, &text).map_err(|diagnostics| Failure::message(diagnostics.to_string()))?;
    program.schedule = arguments.schedule;
    if let Some(wanted) = &arguments.case
        && program.file.cases.iter().all(|case| case.name != *wanted)
    {
        return Err(Failure::message(format!("{name}: error: there is no case `{wanted}`\n")));
    }
    if program.file.cases.is_empty() {
        let hint = "a line like `;! launch @kernel(8, x) grid(2)` launches a kernel";
        return Err(Failure::message(format!("{name}: error: the file launches nothing; {hint}\n")));
    }
    let folder = arguments.file.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match arguments.executor {
        ExecutorArgument::All => run_all(&program, folder),
        ExecutorArgument::Interpreter => run_form(arguments, &program, folder, Place::Interpreter, None),
        ExecutorArgument::Emulator => run_form(arguments, &program, folder, Place::Emulator, None),
        ExecutorArgument::Gpu => {
            let gpu = open_gpu().map_err(|reason| Failure::message(format!("{name}: error: {reason}\n")))?;
            run_form(arguments, &program, folder, Place::Gpu, Some(&gpu))
        }
    }
}

/// The first GPU, or why there is none.
fn open_gpu() -> Result<Gpu, String> {
    if !ptxc_gpu::driver_is_present() {
        return Err("there is no CUDA driver".to_owned());
    }
    Gpu::open().map_err(|error| format!("there is no GPU: {error}"))
}

fn run_all(program: &Program, folder: &Path) -> Result<(), Failure> {
    let gpu = open_gpu();
    let mut forms = [Form::INTERPRETER, Form::EMULATOR].concat();
    if gpu.is_ok() {
        forms.extend(Form::GPU);
    }
    let problems = program.agreement(&forms, folder, gpu.as_ref().ok());
    if !problems.is_empty() {
        return Err(Failure::message(program.diagnostics(problems).to_string()));
    }
    let names: Vec<String> = forms.iter().map(ToString::to_string).collect();
    let mut out = format!("agree: {}\n", names.join(", "));
    if let Err(reason) = gpu {
        let _ = writeln!(out, "skipped: gpu: {reason}");
    }
    files::write_output(None, &out)
}

fn run_form(
    arguments: &RunArguments,
    program: &Program,
    folder: &Path,
    place: Place,
    gpu: Option<&Gpu>,
) -> Result<(), Failure> {
    let asked = arguments.opt_level.and_then(OptLevel::from_number);
    let needs_level = arguments.legal || place != Place::Interpreter;
    let level = asked.or(needs_level.then(OptLevel::default));
    let form = Form { place, level, legal: needs_level, target: None };
    let native = gpu.and_then(native_target);
    let target = arguments.sm.or(native).unwrap_or(program.target());
    let refuse = |diagnostics: ptxc::Diagnostics| Failure::message(diagnostics.to_string());
    let executor = program.executor(form, target, gpu).map_err(refuse)?;
    let mut problems = Vec::new();
    let cases = program.file.cases.iter();
    for case in cases.filter(|case| arguments.case.as_ref().is_none_or(|wanted| case.name == *wanted)) {
        let mut run = program.run(case, executor.as_ref(), folder).map_err(refuse)?;
        let title = if case.name.is_empty() { form.to_string() } else { format!("{form}, case {}", case.name) };
        let outcome = match run.result {
            Ok(_) if case.failure().is_some() => {
                problems
                    .push(Diagnostic::error(format!("{title}: should fail with `{}`", case.failure().unwrap_or(""))));
                continue;
            }
            Ok(outcome) => outcome,
            Err(failure) if case.failure().is_some_and(|wanted| failure.to_string().contains(wanted)) => {
                files::write_output(None, &format!("{title}: fails as expected: {failure}\n"))?;
                continue;
            }
            Err(failure) => {
                problems.push(Diagnostic::error(format!("{title}: {failure}")));
                continue;
            }
        };
        let place = |error| refuse(program.diagnostics([ptxc::execution::diagnostic(error)]));
        let mismatches = run.prepared.judge(&run.buffers).map_err(place)?;
        let printed = run.prepared.printed(&run.buffers).map_err(place)?;
        files::write_output(None, &describe(&title, &outcome, mismatches.len(), &printed))?;
        problems.extend(outcome.warnings.into_iter().map(|warning| Diagnostic::warning(format!("{title}: {warning}"))));
        let wrong =
            mismatches.into_iter().map(|m| Diagnostic::error(format!("{title}: {}", m.message)).at(Some(m.span)));
        problems.extend(wrong);
    }
    let diagnostics = program.diagnostics(problems);
    if diagnostics.has_errors() {
        return Err(Failure::message(diagnostics.to_string()));
    }
    files::to_stderr(&diagnostics.to_string());
    Ok(())
}

/// One line about a run, then what it printed.
fn describe(title: &str, outcome: &Outcome, wrong: usize, printed: &str) -> String {
    let verdict = if wrong == 0 { "as expected" } else { "not as expected" };
    let steps = match outcome.steps {
        0 => String::new(),
        steps => format!(", {steps} steps of warps, {} of threads", outcome.lane_steps),
    };
    format!("{title}: {verdict}{steps}\n{printed}")
}
