//! The same input gives the same bytes: on repeated runs, and whatever the number of threads.
#![cfg(test)]

use ptxc::{Emit, OptLevel, Options, compile_text};

#[path = "../benches/generate.rs"]
mod generate;

fn sources() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "ir"));
    files.sort();
    let mut out: Vec<(String, String)> = files
        .into_iter()
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(path).unwrap()))
        .collect();
    assert!(out.len() >= 16);
    // Several functions, so that threads have something to share.
    let many = (0..8).map(|n| generate::kernel(100 + 60 * n).replace("@generated", &format!("@generated{n}")));
    out.push(("many.ir".to_owned(), many.collect()));
    out
}

#[test]
fn repeated_and_parallel_compilations_agree() {
    for (name, text) in sources() {
        for (emit, level) in [
            (Emit::Ir, OptLevel::O3),
            (Emit::Mir, OptLevel::O3),
            (Emit::Sched, OptLevel::O3),
            (Emit::SchedDrawing, OptLevel::O3),
            (Emit::Ptx, OptLevel::O0),
            (Emit::Ptx, OptLevel::O3),
        ] {
            let compile = |jobs| {
                let options = Options { emit, opt_level: level, jobs, ..Options::new("sm_90a".parse().unwrap()) };
                compile_text(&name, &text, &options).unwrap_or_else(|diagnostics| panic!("{diagnostics}")).text
            };
            let first = compile(1);
            for jobs in [1, 2, 0] {
                assert!(compile(jobs) == first, "{name} as {emit:?} at {level:?} with {jobs} jobs differs");
            }
        }
    }
}
