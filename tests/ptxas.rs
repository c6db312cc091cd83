//! `ptxas` takes every output: of all examples on every target, and of all test files on the targets they name.
#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};

use ptxc::targets::Target;
use ptxc::{DebugInfo, OptLevel, Options, compile_text};
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
            } else if path.extension().is_some_and(|extension| extension == "ir") {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}

/// Compiles for one target; `None` when the target lacks something, which has to be said.
fn compile(path: &Path, text: &str, options: &Options) -> Option<Job> {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let target = options.target;
    match compile_text(&name, text, options) {
        Ok(output) => Some(Job { name: format!("{name} -{:?}", options.opt_level), target, ptx: output.text }),
        Err(diagnostics) => {
            let message = diagnostics.to_string();
            // A refusal says what is needed; that selection has no rule is a gap of ours.
            let mut errors = diagnostics.list.iter().filter(|d| d.severity == ptxc::Severity::Error);
            let refused = errors.all(|error| !error.message.contains("not selectable"));
            assert!(diagnostics.internal.is_none() && refused, "{target}: {message}");
            None
        }
    }
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

/// Targets that the RUN lines of a test name with `--sm`.
fn named_targets(text: &str) -> Vec<Target> {
    let run_lines = text.lines().filter(|line| line.contains("RUN:"));
    let words = run_lines.flat_map(|line| line.split_whitespace().zip(line.split_whitespace().skip(1)));
    words.filter(|(option, _)| *option == "--sm").filter_map(|(_, name)| name.parse().ok()).collect()
}

/// The number in a line `; PTXAS: from sm_XX`: assemblers of older targets lack what the test shows.
fn least_sm(text: &str) -> u16 {
    let number = text.lines().find_map(|line| line.strip_prefix("; PTXAS: from sm_"));
    number.map_or(0, |rest| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap())
}

#[test]
fn test_files_assemble_on_their_targets_and_others() {
    let mut jobs = Vec::new();
    for path in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filecheck")) {
        let text = fs::read_to_string(&path).unwrap();
        // What is to be refused has no output.
        if text.contains("RUN: not ") {
            continue;
        }
        let mut targets = named_targets(&text);
        targets.extend(representatives());
        targets.retain(|target| target.sm() >= least_sm(&text));
        targets.sort();
        targets.dedup();
        for target in targets {
            for opt_level in [OptLevel::O0, OptLevel::O3] {
                jobs.extend(compile(&path, &text, &Options { opt_level, ..Options::new(target) }));
            }
        }
    }
    assembles(&jobs);
}
