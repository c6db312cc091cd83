//! Random programs mean the same before and after everything that the compiler does to them.
//!
//! `FUZZ_SEEDS=100000 cargo test -p ptxc-fuzz --release --test programs` for more; `ptxc-fuzz run` reports in full.
#![cfg(test)]

use std::collections::BTreeSet;
use std::time::Duration;

use ptxc_fuzz::{Features, campaign, check, generate, readers, report};
use ptxc_ir::{Opcode, print_module};

/// Seeds of a normal run.
const SEEDS: u64 = 2000;

#[test]
fn programs_mean_the_same_after_every_step() {
    check::keep_panics_quiet();
    let seeds = std::env::var("FUZZ_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    let summary = campaign::run(0..seeds, Features::all(true), 1);
    for (what, count) in &summary.not_executed {
        println!("{count} not emulated: {what}");
    }
    println!("{} agree, {} too long", summary.agree, summary.too_long);
    if let Some((seed, why)) = summary.undefined.first() {
        panic!("seed {seed} has no defined result: {why}");
    }
    if let Some((seed, finding)) = summary.wrong.first() {
        let program = generate(*seed, &campaign::features(*seed, Features::all(true)));
        let count = summary.wrong.len();
        let report = report::describe(&program, finding, true, None).unwrap();
        // The hook that keeps panics quiet is still there.
        eprintln!("{count} of {seeds} seeds are wrong\n{report}");
        panic!("{count} of {seeds} seeds are wrong");
    }
    assert!(summary.too_long * 20 < seeds, "{} of {seeds} programs take too long", summary.too_long);
}

#[test]
fn mutated_text_never_panics() {
    check::keep_panics_quiet();
    let summary = readers::run(1, Duration::from_secs(5));
    println!("{:?} texts, {:?} valid", summary.texts, summary.valid);
    if let Some((what, text)) = summary.wrong.first() {
        eprintln!("{what}\n{text}");
        panic!("{what}");
    }
}

#[test]
fn a_seed_always_gives_the_same_program() {
    for seed in 0..20 {
        let features = Features::for_seed(seed);
        let (a, b) = (generate(seed, &features), generate(seed, &features));
        assert_eq!(print_module(&a.module), print_module(&b.module));
        assert_eq!((a.launch, a.buffers, a.target), (b.launch, b.buffers, b.target));
    }
}

/// What programs do not hold: results that are approximate, that differ from run to run, or undefined; what only
/// legalization writes.
const LEFT_OUT: &[Opcode] = &[
    Opcode::Frem,
    Opcode::Frsqrt,
    Opcode::Fsin,
    Opcode::Fcos,
    Opcode::Fexp2,
    Opcode::Flog2,
    Opcode::Ftanh,
    Opcode::Ptrtoint,
    Opcode::Inttoptr,
    Opcode::Unreachable,
    Opcode::Trap,
    Opcode::Breakpoint,
    Opcode::BarrierArrive,
    Opcode::ActiveMask,
    Opcode::Elect,
    Opcode::Target,
    Opcode::Asm,
];

#[test]
fn programs_hold_every_operation() {
    let mut seen = BTreeSet::new();
    for seed in 0..1200 {
        let module = generate(seed, &Features::for_seed(seed)).module;
        for func in module.funcs.values() {
            let insts = func.layout.blocks().flat_map(|b| func.layout.insts(b));
            seen.extend(insts.map(|inst| func.dfg.insts[inst].op));
        }
    }
    let missing: Vec<_> = Opcode::ALL.iter().filter(|op| !seen.contains(op) && !LEFT_OUT.contains(op)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The mutations of `tests/scripts/planted_bugs.py` replace text that is in their files, once.
#[test]
fn planted_bugs_follow_the_code() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let list = std::fs::read_to_string(root.join("tests/planted_bugs.txt")).unwrap();
    let mut entries = 0;
    for entry in list.split("\n== ").skip(1) {
        let name = entry.lines().next().unwrap_or_default();
        let file = entry.lines().find_map(|line| line.strip_prefix("file ")).unwrap_or_default();
        let replaced: Vec<&str> = entry.lines().filter_map(|line| line.strip_prefix('-')).collect();
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        assert_eq!(
            text.matches(&replaced.join("\n")).count(),
            1,
            "{name}: its text is not in {file}, or more than once"
        );
        entries += 1;
    }
    assert!(entries >= 15, "{entries} entries");
}
