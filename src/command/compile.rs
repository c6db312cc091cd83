//! `ptxc INPUT`: one compilation.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use ptxc::diagnostics::InternalError;
use ptxc::targets::Target;
use ptxc::{DebugInfo, Diagnostics, Emit, Format, Library, Observer, OptLevel, Options, Output, PrintAfter, pipeline};

use crate::arguments::{CompileArguments, EmitArgument, WarningArgument};
use crate::{Failure, files};

/// Compiles as the arguments say.
pub fn run(arguments: &CompileArguments) -> Result<(), Failure> {
    let input = arguments.input.as_deref().unwrap_or(Path::new("-"));
    let options = options(arguments)?;
    if arguments.output.as_deref().is_some_and(|output| is_same_file(input, output)) {
        let name = files::display_name(input);
        return Err(Failure::message(format!("{name}: error: the output would replace the input\n")));
    }
    let bytes = files::read_bytes(input)?;
    if bytes.trim_ascii().is_empty() {
        return Err(Failure::message(format!("{}: error: the input is empty\n", files::display_name(input))));
    }
    keep_panics_quiet();
    let name = files::display_name(input);
    match ptxc::compile_bytes_observed(&name, &bytes, &options, &mut PrintToStderr) {
        Ok(output) => finish(arguments, output),
        Err(diagnostics) => Err(report(&arguments.warnings, &diagnostics, &name, &bytes)),
    }
}

/// Whether both names lead to one file that exists.
fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b && a.is_file())
}

/// Writes warnings, tables and the output.
fn finish(arguments: &CompileArguments, mut output: Output) -> Result<(), Failure> {
    let wants = |what| arguments.warnings.contains(&what);
    if wants(WarningArgument::Error) && !output.warnings.list.is_empty() {
        for warning in &mut output.warnings.list {
            warning.severity = ptxc::Severity::Error;
        }
        return Err(Failure::message(output.warnings.to_string()));
    }
    if !wants(WarningArgument::None) {
        files::to_stderr(&output.warnings.to_string());
    }
    if !arguments.remarks.is_empty() {
        files::to_stderr(&output.remarks_of(&remark_names(arguments)).to_string());
    }
    if arguments.time_passes {
        files::to_stderr(&output.report.times_table().to_string());
    }
    if arguments.stats {
        files::to_stderr(&output.report.counts_table().to_string());
    }
    files::write_output(arguments.output.as_deref(), &output.text)
}

/// The library's options.
fn options(arguments: &CompileArguments) -> Result<Options, Failure> {
    let emit = match arguments.emit {
        EmitArgument::Ptx => Emit::Ptx,
        EmitArgument::Ir => Emit::Ir,
        EmitArgument::Mir => Emit::Mir,
        EmitArgument::Sched if is_drawing(arguments) => Emit::SchedDrawing,
        EmitArgument::Sched => Emit::Sched,
    };
    let legalizes = arguments.passes.iter().flatten().any(|name| name == pipeline::LEGALIZE);
    let target = match arguments.sm {
        Some(target) => target,
        // The IR passes do not ask for the target.
        None if emit == Emit::Ir && !legalizes => Target::ALL[0],
        None => return Err(Failure::message("error: a target is needed: `--sm sm_XX` (`ptxc targets` lists them)\n")),
    };
    check_names(arguments)?;
    let mut libraries = Vec::new();
    for path in &arguments.libraries {
        libraries.push(Library { name: files::display_name(path), bytes: files::read_bytes(path)?.into() });
    }
    let defaults = Options::new(target);
    Ok(Options {
        opt_level: OptLevel::from_number(arguments.opt_level).unwrap_or_default(),
        ptx_version: arguments.ptx_version,
        emit,
        passes: arguments.passes.clone().map(|names| names.into_iter().filter(|name| !name.is_empty()).collect()),
        schedule: arguments.schedule,
        print_after: print_after(&arguments.print_after),
        verify_each: arguments.verify || defaults.verify_each,
        debug_info: match (arguments.debug, arguments.lineinfo) {
            (true, _) => DebugInfo::Full,
            (false, true) => DebugInfo::Lines,
            (false, false) => DebugInfo::None,
        },
        libraries,
        remarks: !arguments.remarks.is_empty(),
        jobs: arguments.jobs,
        ..defaults
    })
}

/// Whether the output's name is that of an SVG file.
fn is_drawing(arguments: &CompileArguments) -> bool {
    arguments.output.as_ref().and_then(|path| path.extension()).is_some_and(|suffix| suffix.eq_ignore_ascii_case("svg"))
}

/// Refuses names of steps that there are not.
fn check_names(arguments: &CompileArguments) -> Result<(), Failure> {
    let steps = pipeline::step_names();
    let unknown_step = arguments.print_after.iter().find(|name| *name != "all" && !steps.contains(&name.as_str()));
    if let Some(name) = unknown_step {
        let known = steps.join(", ");
        return Err(Failure::message(format!("error: there is no step `{name}`; steps are: {known}, all\n")));
    }
    let mut names = ptxc::rule_names().chain(ptxc::outcome_names());
    let mut is_remark = |name: &str| name == "all" || steps.contains(&name) || names.any(|known| known == name);
    if let Some(name) = arguments.remarks.iter().find(|name| !is_remark(name)) {
        return Err(Failure::message(format!("error: there is no rule or step `{name}`\n")));
    }
    let mut passes = arguments.passes.iter().flatten().filter(|name| !name.is_empty());
    if let Some(name) = passes.find(|name| pipeline::IrStep::find(name).is_none()) {
        let passes = ptxc::opt::PASSES.iter().map(|pass| pass.name);
        let known: Vec<&str> = passes.chain(ptxc::opt::MODULE_PASSES.iter().map(|pass| pass.name)).collect();
        let known = known.join(", ");
        return Err(Failure::message(format!("error: there is no pass `{name}`; passes are: {known}, legalize\n")));
    }
    Ok(())
}

/// Names of the steps and rules whose remarks are wanted; none of them means all.
fn remark_names(arguments: &CompileArguments) -> Vec<&str> {
    let names: Vec<&str> = arguments.remarks.iter().map(String::as_str).collect();
    if names.contains(&"all") { Vec::new() } else { names }
}

fn print_after(names: &[String]) -> PrintAfter {
    match names {
        [] => PrintAfter::Nothing,
        names if names.iter().any(|name| name == "all") => PrintAfter::All,
        names => PrintAfter::Steps(names.to_vec()),
    }
}

struct PrintToStderr;

impl Observer for PrintToStderr {
    fn after(&mut self, step: &str, text: &str) {
        files::to_stderr(&format!("; after {step}\n{text}"));
    }
}

/// Prints diagnostics and says how to fail.
pub fn report(warnings: &[WarningArgument], diagnostics: &Diagnostics, name: &str, input: &[u8]) -> Failure {
    let mut shown = diagnostics.clone();
    if warnings.contains(&WarningArgument::None) {
        shown.list.retain(|diagnostic| diagnostic.severity == ptxc::Severity::Error);
    }
    let Some(internal) = &diagnostics.internal else { return Failure::message(shown.to_string()) };
    let mut message = shown.to_string();
    if let Some(place) = LAST_PANIC.lock().ok().and_then(|mut place| place.take()) {
        let _ = writeln!(message, "  note: at {place}");
    }
    match write_reproducer(internal, name, input) {
        Ok(path) => {
            let _ = writeln!(message, "  note: this is a fault of ptxc; please report it with {}", path.display());
        }
        Err(error) => {
            let _ = writeln!(message, "  note: this is a fault of ptxc; a reproducer could not be written: {error}");
        }
    }
    files::to_stderr(&message);
    Failure::Internal
}

/// Writes the input with the command line into a file of its own in the directory for temporary files.
fn write_reproducer(internal: &InternalError, name: &str, input: &[u8]) -> std::io::Result<PathBuf> {
    use std::io::Write as _;
    let format = Format::of(name, input);
    let mut file = tempfile::Builder::new().prefix("ptxc-reproducer-").suffix(format.suffix()).tempfile()?;
    let command: Vec<String> = std::env::args().skip(1).collect();
    let summary = internal.to_string().replace('\n', " ");
    // Bitcode has no place for a comment.
    if format != Format::LlvmBitcode {
        writeln!(file, "; {summary}\n; ptxc {} {}", env!("CARGO_PKG_VERSION"), command.join(" ").replace('\n', " "))?;
    }
    file.write_all(input)?;
    file.keep().map(|(_, path)| path).map_err(|error| error.error)
}

/// Source location of the last panic, on whatever thread.
static LAST_PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Panics inside a compilation become diagnostics; only their place is kept.
pub fn keep_panics_quiet() {
    std::panic::set_hook(Box::new(|info| {
        if let Ok(mut last) = LAST_PANIC.lock() {
            *last = info.location().map(ToString::to_string);
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[test]
    fn an_internal_error_leaves_a_reproducer() {
        let arguments = crate::arguments::Arguments::parse_from(["ptxc", "k.ir", "--sm", "sm_90"]);
        let internal = InternalError { step: "select".into(), function: Some("k".into()), message: "lost".into() };
        let path = write_reproducer(&internal, "k.ir", b"kernel @k() {}\n").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        assert!(text.starts_with("; internal error in select of @k: lost\n; ptxc 0."), "{text}");
        assert!(text.ends_with("kernel @k() {}\n"));
        let diagnostics = Diagnostics { internal: Some(Box::new(internal)), ..Diagnostics::new("k.ir", "") };
        assert!(matches!(report(&arguments.compile.warnings, &diagnostics, "k.ir", b""), Failure::Internal));
    }
}
