//! Runs every file of `tests/run` and every example as its directives say: in the interpreter as it is written, after the
//! passes, after legalization, and as PTX in the emulator. All have to give what is expected, and the same.
#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ptxc::execution::{Form, Program};

/// The `.ir` files of a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut out: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    out.retain(|path| path.extension().is_some_and(|extension| extension == "ir"));
    out.sort();
    out
}

/// What is wrong with a file.
fn check(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let program = match Program::read(&name, &text) {
        Ok(program) => program,
        Err(diagnostics) => return diagnostics.to_string(),
    };
    if program.file.cases.is_empty() {
        return format!("{name}: launches nothing\n");
    }
    let problems = program.agreement(&[Form::INTERPRETER, Form::EMULATOR].concat(), path.parent().unwrap(), None);
    program.diagnostics(problems).to_string()
}

/// Checks all files, as many at a time as there are processors.
fn check_all(folder: &str) {
    let files = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
    let only = std::env::var("PTXC_RUN_ONLY").unwrap_or_default();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            if path.to_string_lossy().contains(&only) {
                let start = std::time::Instant::now();
                let problems = check(path);
                println!("{:6} ms {}", start.elapsed().as_millis(), path.file_name().unwrap().to_string_lossy());
                found.lock().unwrap().push(problems);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(work);
        }
    });
    let mut problems = found.into_inner().unwrap();
    let count = problems.len();
    problems.retain(|text| !text.is_empty());
    problems.sort();
    assert!(problems.is_empty(), "{} of {count} files are wrong:\n{}", problems.len(), problems.concat());
}

#[test]
fn examples_run_the_same_in_every_form() {
    check_all("examples");
}

#[test]
fn run_files_run_the_same_in_every_form() {
    check_all("tests/run");
}
