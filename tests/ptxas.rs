//! `ptxas` takes every output: of all examples on every target, and of all test files on the targets they name.
#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};

use ptxc::targets::Target;
use ptxc::{DebugInfo, OptLevel, Options, Severity, compile_bytes};
use ptxc_test_support::{Job, assembles};

/// Targets on which everything is assembled without optimization as well, and test files besides their own.
const REPRESENTATIVES: &[&str] = &["sm_50", "sm_70", "sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a"];

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "ir" || extension == "ll") {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}

/// Compiles for one target; no job when the target lacks something.
///
/// # Errors
/// The compiler fails, or has no rule for something.
fn try_compile(path: &Path, text: &str, options: &Options) -> Result<Option<Job>, String> {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let target = options.target;
    let diagnostics = match compile_bytes(&name, text.as_bytes(), options) {
        Ok(output) => {
            return Ok(Some(Job { name: format!("{name} -{:?}", options.opt_level), target, ptx: output.text }));
        }
        Err(diagnostics) => diagnostics,
    };
    // A refusal says what is needed; that selection has no rule is a gap of ours.
    let mut errors = diagnostics.list.iter().filter(|d| d.severity == Severity::Error);
    if diagnostics.internal.is_none() && errors.all(|error| !error.message.contains("not selectable")) {
        return Ok(None);
    }
    Err(format!("{target}: {diagnostics}"))
}

/// As [`try_compile`], where a failure ends the test.
fn compile(path: &Path, text: &str, options: &Options) -> Option<Job> {
    try_compile(path, text, options).unwrap_or_else(|message| panic!("{message}"))
}

fn representatives() -> impl Iterator<Item = Target> {
    REPRESENTATIVES.iter().map(|name| name.parse().unwrap())
}

#[test]
fn examples_assemble_on_every_target() {
    let mut jobs = Vec::new();
    for path in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")) {
        let text = fs::read_to_string(&path).unwrap();
        let before = jobs.len();
        let optimized = Target::ALL.iter().map(|target| (*target, OptLevel::O3));
        for (target, opt_level) in optimized.chain(representatives().map(|target| (target, OptLevel::O0))) {
            jobs.extend(compile(&path, &text, &Options { opt_level, ..Options::new(target) }));
        }
        assert!(jobs.len() > before, "{} compiles for no target", path.display());
        assert!(jobs[before..].iter().any(|job| job.target.name() == "sm_100a"), "{} not for sm_100a", path.display());
    }
    assembles(&jobs);
}

#[test]
fn examples_assemble_with_debug_information() {
    let mut jobs = Vec::new();
    let target: Target = "sm_90a".parse().unwrap();
    for path in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")) {
        let text = fs::read_to_string(&path).unwrap();
        for debug_info in [DebugInfo::Lines, DebugInfo::Full] {
            let options = Options { debug_info, opt_level: OptLevel::O1, ..Options::new(target) };
            jobs.extend(compile(&path, &text, &options));
        }
    }
    assembles(&jobs);
}

/// Targets that the RUN lines of a test name with `--sm`, where they do not expect a refusal.
fn named_targets(text: &str) -> Vec<Target> {
    let run_lines = text.lines().filter(|line| line.contains("RUN:") && !line.contains("not ptxc"));
    let words = run_lines.flat_map(|line| line.split_whitespace().zip(line.split_whitespace().skip(1)));
    words.filter(|(option, _)| *option == "--sm").filter_map(|(_, name)| name.parse().ok()).collect()
}

/// What a test file is compiled for: its own targets with and without optimization, others with it. A file that is
/// refused somewhere for reasons of its own is compiled for its own targets only.
fn settings(text: &str) -> Vec<(Target, OptLevel)> {
    let mut own = named_targets(text);
    own.sort();
    own.dedup();
    let mut out: Vec<_> =
        own.iter().flat_map(|target| [OptLevel::O0, OptLevel::O3].map(|level| (*target, level))).collect();
    if !text.contains("RUN: not ") && !text.contains("| not ") {
        out.extend(representatives().filter(|target| !own.contains(target)).map(|target| (target, OptLevel::O3)));
    }
    out
}

#[test]
fn test_files_assemble_on_their_targets_and_others() {
    let mut jobs = Vec::new();
    let mut failures = Vec::new();
    for path in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filecheck")) {
        let text = fs::read_to_string(&path).unwrap();
        for (target, opt_level) in settings(&text) {
            match try_compile(&path, &text, &Options { opt_level, ..Options::new(target) }) {
                Ok(job) => jobs.extend(job),
                Err(message) => failures.push(format!("{}: {message}", path.display())),
            }
        }
    }
    assert!(failures.is_empty(), "{} compilations fail:\n{}", failures.len(), failures.join("\n"));
    assembles(&jobs);
}
