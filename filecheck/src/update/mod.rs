//! Writes the directives of a test from the output of its commands.
//!
//! For every RUN line that ends in `| filecheck`, the commands before it are run and their output
//! becomes directives: see [`generate`] for how, and [`edit`] for where they go. A test is only touched if it
//! says that its directives are generated, or the user says that they are to be.

pub mod command;
pub mod edit;
pub mod generate;

use crate::command as filecheck_command;
use crate::lit::execute::Shell;
use crate::lit::script::Script;
use crate::lit::shell::{self, Pipeline};
use crate::lit::suite::{DEFAULT_TIMEOUT, Settings, Substitutions, Test};
use crate::{Checker, Options};
use edit::{Block, MARKER};
use generate::{Language, Piece};
use std::time::Instant;

/// What became of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Updated {
    /// Its directives are as they would be generated.
    Same,
    /// Its new text.
    Changed(String),
    /// It does not say that its directives are generated.
    NotGenerated,
}

/// The output of one RUN line and how it is checked.
struct Checked {
    line: usize,
    options: Options,
    prefixes: Vec<String>,
    output: String,
    language: Language,
    pieces: Vec<Piece>,
}

/// Generates the directives of a test. With `force`, also where the test does not say so.
///
/// # Errors
/// A command that fails, prefixes that cannot tell outputs apart, or directives that would not hold.
pub fn update(test: &Test, settings: &Settings, force: bool) -> Result<Updated, String> {
    let text = std::fs::read_to_string(&test.path).map_err(|error| error.to_string())?;
    if !force && !text.contains(MARKER) {
        return Ok(Updated::NotGenerated);
    }
    let script = Script::parse(&text)?;
    let checked = outputs(test, &script, settings)?;
    if checked.is_empty() {
        return Err("no RUN line ends in '| filecheck'".to_string());
    }
    let mut prefixes: Vec<String> = Vec::new();
    for prefix in checked.iter().flat_map(|run| &run.prefixes) {
        if !prefixes.contains(prefix) {
            prefixes.push(prefix.clone());
        }
    }
    let blocks = blocks(&checked, &prefixes)?;
    for run in &checked {
        let is_unused = |prefix: &&String| !blocks.iter().any(|block| block.prefix == **prefix);
        let unused: Vec<&str> = run.prefixes.iter().filter(is_unused).map(String::as_str).collect();
        if !unused.is_empty() && !run.options.allow_unused_prefixes {
            let list = unused.join(", ");
            return Err(format!("line {}: nothing is said with the prefixes {list}: leave them out", run.line));
        }
    }
    let new = edit::replace(&text, comment_mark(&text), &prefixes, &blocks);
    // What does not pass now never will.
    for run in &checked {
        let checker = Checker::new(run.options.clone());
        let result = checker.check(&test.name, new.clone(), "output", run.output.clone());
        if !result.passed() {
            let messages = String::from_utf8_lossy(&result.render(false)).into_owned();
            return Err(format!("line {}: the generated directives do not hold:\n{messages}", run.line));
        }
    }
    Ok(if new == text { Updated::Same } else { Updated::Changed(new) })
}

/// The comment mark before the first RUN.
fn comment_mark(text: &str) -> &str {
    let line = text.lines().find(|line| line.contains("RUN:")).unwrap_or_default();
    let mark = line.split("RUN:").next().unwrap_or_default().trim();
    if mark.is_empty() { "#" } else { mark }
}

fn outputs(test: &Test, script: &Script, settings: &Settings) -> Result<Vec<Checked>, String> {
    let substitutions = Substitutions::new(test, settings)?;
    let mut shell = Shell {
        directory: substitutions.directory.clone(),
        environment: settings.environment.clone(),
        deadline: Instant::now().checked_add(test.config.timeout.unwrap_or(DEFAULT_TIMEOUT)),
        filecheck_in_process: true,
    };
    let mut checked = Vec::new();
    for line in &script.run {
        let located = |problem: String| format!("line {}: {problem}", line.number);
        let command = substitutions.apply(&line.text).map_err(located)?;
        let mut pipelines = shell::parse(&command).map_err(located)?;
        let filecheck = pipelines.last_mut().and_then(take_filecheck);
        let outcome = shell.run(&pipelines).map_err(located)?;
        if outcome.status != 0 {
            let messages = String::from_utf8_lossy(&outcome.err).into_owned();
            return Err(located(format!("the command failed with status {}\n{messages}", outcome.status)));
        }
        let Some(arguments) = filecheck else {
            continue;
        };
        let options = filecheck_command::parse(&arguments).map_err(located)?.options;
        let output = String::from_utf8_lossy(&outcome.out).into_owned();
        let language = Language::of(&output);
        checked.push(Checked {
            line: line.number,
            prefixes: options.effective_check_prefixes().into_iter().map(str::to_string).collect(),
            options,
            pieces: generate::split(&output, language),
            output,
            language,
        });
    }
    Ok(checked)
}

/// Takes a last stage `filecheck` off a pipeline and returns its arguments.
fn take_filecheck(pipeline: &mut Pipeline) -> Option<Vec<String>> {
    let last = pipeline.stages.last()?;
    let is_filecheck = matches!(last.words.first()?.text.as_str(), "filecheck" | "FileCheck");
    if !is_filecheck || pipeline.stages.len() < 2 {
        return None;
    }
    let stage = pipeline.stages.pop()?;
    Some(stage.words.into_iter().skip(1).map(|word| word.text).collect())
}

/// For every function, directives with the first prefix of each run that says the same for all runs that have it.
fn blocks(checked: &[Checked], prefixes: &[String]) -> Result<Vec<Block>, String> {
    let mut functions: Vec<Option<&String>> = Vec::new();
    for piece in checked.iter().flat_map(|run| &run.pieces) {
        if !functions.contains(&piece.name.as_ref()) {
            functions.push(piece.name.as_ref());
        }
    }
    let mut blocks = Vec::new();
    for function in functions {
        let find = |run: &Checked, prefix: &str| {
            let piece = run.pieces.iter().find(|piece| piece.name.as_ref() == function)?;
            Some(generate::directives(piece, run.language, prefix))
        };
        let mut used: Vec<&String> = Vec::new();
        for run in checked {
            if find(run, "").is_none() {
                continue;
            }
            let agrees = |prefix: &&String| {
                let own = find(run, prefix);
                checked.iter().filter(|other| other.prefixes.contains(prefix)).all(|other| find(other, prefix) == own)
            };
            let prefix = run.prefixes.iter().find(agrees).ok_or_else(|| {
                let name = function.map_or("the output", String::as_str);
                let list = run.prefixes.join(", ");
                format!("line {}: {name} differs between runs with the same prefixes ({list})", run.line)
            })?;
            if !used.contains(&prefix) {
                used.push(prefix);
            }
        }
        // In the order of the prefixes, whatever the order of the runs.
        for prefix in prefixes.iter().filter(|prefix| used.contains(prefix)) {
            let run = checked.iter().find(|run| run.prefixes.contains(prefix) && find(run, "").is_some());
            if let Some(lines) = run.and_then(|run| find(run, prefix)) {
                blocks.push(Block { prefix: prefix.clone(), function: function.cloned(), lines });
            }
        }
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lit::config::Config;

    fn updated(text: &str, force: bool) -> Result<Updated, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.ir");
        std::fs::write(&path, text).unwrap();
        let settings = Settings {
            config: Config::default(),
            environment: std::env::vars().collect(),
            output: folder.path().join("output"),
            jobs: 1,
            filecheck_in_process: true,
            stop_at_failure: false,
        };
        let test = Test { path, name: "test.ir".into(), config: Config::default() };
        update(&test, &settings, force)
    }

    #[test]
    fn directives_are_written_once_and_then_stay() {
        let test = "; RUN: grep -v '^;' %s | filecheck %s\nkernel @k() {\n  %a = x %b\n}\n";
        assert_eq!(updated(test, false).unwrap(), Updated::NotGenerated);
        let Updated::Changed(new) = updated(test, true).unwrap() else {
            panic!("nothing changed");
        };
        assert!(new.contains("; CHECK-NEXT: [[A:%[^ ,]+]] = x [[B:%[^ ,]+]]\n"), "{new}");
        assert_eq!(updated(&new, false).unwrap(), Updated::Same);
    }

    #[test]
    fn runs_share_prefixes_where_they_agree() {
        let test = "; RUN: sed -n '/^kernel/,/^}/p' %s | filecheck %s --check-prefixes=ALL,ONE\n\
                    ; RUN: sed -n '/^kernel/,/^}/p' %s | sed s/x/y/ | filecheck %s --check-prefixes=ALL,TWO\n\
                    kernel @k() {\n  x\n}\nkernel @l() {\n  z\n}\n";
        let Updated::Changed(new) = updated(test, true).unwrap() else {
            panic!("nothing changed");
        };
        for line in ["ONE-LABEL: kernel @k(", "TWO-LABEL: kernel @k(", "ALL-LABEL: kernel @l(", "TWO-NEXT: y"] {
            assert!(new.contains(line), "{line}\n{new}");
        }
        assert!(!new.contains("ALL-LABEL: kernel @k("), "{new}");
    }

    #[test]
    fn what_cannot_be_told_apart_is_an_error() {
        let test = "; RUN: echo a | filecheck %s\n; RUN: echo b | filecheck %s\n";
        let error = updated(test, true).unwrap_err();
        assert!(error.contains("differs between runs with the same prefixes (CHECK)"), "{error}");
    }

    #[test]
    fn prefixes_with_nothing_to_say_are_an_error() {
        let test = "; RUN: echo a | filecheck %s --check-prefixes=ALL,ONE\n";
        let error = updated(test, true).unwrap_err();
        assert!(error.contains("nothing is said with the prefixes ONE"), "{error}");
    }

    #[test]
    fn commands_that_fail_are_errors() {
        let error = updated("; RUN: false | filecheck %s\n", true).unwrap_err();
        assert!(error.contains("line 1: the command failed with status 1"), "{error}");
    }
}
