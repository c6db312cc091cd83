//! Assembling, one text or many in parallel.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ptxc_targets::Target;

use crate::install::{Release, ptxas};

/// One text to assemble.
#[derive(Clone, Debug)]
pub struct Job {
    /// What messages call it.
    pub name: String,
    /// For which architecture.
    pub target: Target,
    /// The text.
    pub ptx: String,
}

/// What `ptxas` made of a text.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The cubin; `None` when the text was refused.
    pub cubin: Option<Vec<u8>>,
    /// Everything it printed; with `-v` the resources of each function.
    pub messages: String,
}

/// Assembles one text with further options.
///
/// # Errors
/// Files or the process could not be handled. That the text is refused is an [`Outcome`].
pub fn assemble(ptx: &str, target: Target, options: &[&str]) -> std::io::Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let (input, output) = (folder.path().join("input.ptx"), folder.path().join("output.cubin"));
    std::fs::write(&input, ptx)?;
    // What is defined elsewhere is for a linker to find.
    let relocatable = ptx.contains(".extern ").then_some("-c");
    let result = Command::new(ptxas(Release::for_target(target)))
        .arg(format!("-arch={target}"))
        .args(relocatable)
        .args(options)
        .arg("-o")
        .arg(&output)
        .arg(&input)
        .output()?;
    let text = [result.stdout, result.stderr].concat();
    let folder_name = Path::new(folder.path()).display().to_string();
    let messages = String::from_utf8_lossy(&text).replace(&format!("{folder_name}/"), "");
    let messages = if result.status.code().is_none() { format!("{messages}ptxas crashed") } else { messages };
    let cubin = if result.status.success() { Some(std::fs::read(&output)?) } else { None };
    Ok(Outcome { cubin, messages })
}

/// Reads one text without making code of it, some fifty times as fast: errors of the text are found, a few that only
/// code generation meets are not. The outcome's cubin is empty.
///
/// # Errors
/// Files or the process could not be handled.
pub fn parse(ptx: &str, target: Target) -> std::io::Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let input = folder.path().join("input.ptx");
    std::fs::write(&input, ptx)?;
    let virtual_name = format!("{target}").replace("sm_", "compute_");
    let result = Command::new(ptxas(Release::for_target(target)))
        .arg(format!("-arch={virtual_name}"))
        .arg("-o")
        .arg(folder.path().join("output"))
        .arg(&input)
        .output()?;
    let text = [result.stdout, result.stderr].concat();
    let folder_name = folder.path().display().to_string();
    let messages = String::from_utf8_lossy(&text).replace(&format!("{folder_name}/"), "");
    Ok(Outcome { cubin: result.status.success().then(Vec::new), messages })
}

/// Assembles all, as many at a time as there are processors. Returns the failures as `name for target: messages`, in
/// the order of the jobs.
pub fn assemble_all(jobs: &[Job]) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let failures: Mutex<Vec<(usize, String)>> = Mutex::new(Vec::new());
    let work = || {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let messages = match assemble(&job.ptx, job.target, &[]) {
                Ok(Outcome { cubin: Some(_), .. }) => continue,
                Ok(outcome) => outcome.messages,
                Err(error) => error.to_string(),
            };
            let index = jobs.iter().position(|other| std::ptr::eq(other, job)).unwrap_or(usize::MAX);
            let text = format!("{} for {}: {}", job.name, job.target, messages.trim_end());
            if let Ok(mut failures) = failures.lock() {
                failures.push((index, text));
            }
        }
    };
    let threads = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let mut failures = failures.into_inner().unwrap_or_default();
    failures.sort();
    failures.into_iter().map(|(_, text)| text).collect()
}

/// Panics with everything that did not assemble.
///
/// # Panics
/// At least one text was refused.
pub fn assembles(jobs: &[Job]) {
    let failures = assemble_all(jobs);
    let shown: Vec<&str> = failures.iter().take(20).map(String::as_str).collect();
    assert!(
        failures.is_empty(),
        "{} of {} texts are refused by ptxas:\n{}",
        failures.len(),
        jobs.len(),
        shown.join("\n")
    );
}
