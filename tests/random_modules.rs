//! Random valid modules through the whole compiler: no step fails, and `ptxas` takes the outcome.
#![cfg(test)]

use ptxc::ir::print_module;
use ptxc::ir::testing::{Options as Shape, random_module};
use ptxc::targets::Target;
use ptxc::{Compiler, OptLevel, Options};
use ptxc_test_support::{Job, assemble_all};

/// Compiles seeds for some targets at both ends of the levels.
fn jobs(seeds: std::ops::Range<u64>, targets: &[&str], shape: &Shape) -> (Vec<Job>, Vec<String>) {
    let mut jobs = Vec::new();
    let mut failures = Vec::new();
    for seed in seeds {
        let module = random_module(seed, shape);
        if let Some(folder) = std::env::var_os("KEEP") {
            let name = format!("seed_{seed}.ir");
            std::fs::write(std::path::Path::new(&folder).join(name), print_module(&module)).unwrap();
        }
        for name in targets {
            let target: Target = name.parse().unwrap();
            for opt_level in [OptLevel::O0, OptLevel::O3] {
                let options = Options { opt_level, ..Options::new(target) };
                let name = format!("seed {seed} -{opt_level:?}");
                match Compiler::new(target).options(options).compile(&module) {
                    Ok(output) => jobs.push(Job { name, target, ptx: output.text }),
                    // What the target lacks is refused; everything else is a fault of ours.
                    Err(diagnostics) if diagnostics.internal.is_none() => {
                        failures.extend(
                            diagnostics
                                .list
                                .iter()
                                .filter(|d| d.severity == ptxc::Severity::Error && d.message.contains("not selectable"))
                                .map(|d| format!("{name} for {target}: {}", d.message)),
                        );
                    }
                    Err(diagnostics) => failures.push(format!("{name} for {target}: {diagnostics}")),
                }
            }
        }
    }
    (jobs, failures)
}

#[test]
fn random_modules_compile_and_assemble() {
    // Panics become failures below; their place is worth more than their backtrace.
    std::panic::set_hook(Box::new(|info| {
        if let Some(place) = info.location() {
            eprintln!("panic at {place}");
        }
    }));
    let shape = Shape { odd_names: true, ..Shape::default() };
    let seeds = std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let (jobs, mut failures) = jobs(0..seeds, &["sm_75", "sm_80", "sm_90a", "sm_100a"], &shape);
    // Random addresses beyond a variable are undefined behaviour, which ptxas sees through, and some texts it does not
    // survive at all: it ends by a signal or calls it an internal error of its own.
    let theirs = |failure: &String| {
        ["Potential out of bound access", "ptxas crashed", "Internal compiler error"]
            .iter()
            .any(|text| failure.contains(text))
    };
    failures.extend(assemble_all(&jobs).into_iter().filter(|failure| !theirs(failure)));
    // To look at one: KEEP=folder.
    if let Some(folder) = std::env::var_os("KEEP") {
        for job in &jobs {
            let name = format!("{}.{}.ptx", job.name.replace(' ', "_"), job.target);
            std::fs::write(std::path::Path::new(&folder).join(name), &job.ptx).unwrap();
        }
    }
    let _ = std::panic::take_hook();
    println!("{} outputs, {} failures", jobs.len(), failures.len());
    let shown: Vec<&str> = failures.iter().take(400).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), shown.join("\n"));
}
