//! Every instruction on every type, through legalization, selection, register assignment and emission to `ptxas`.
//!
//! The modules come from the generator that the IR tests itself with, which walks the opcode table: a new opcode is here
//! without a change. What a target refuses must be on the list below, with the reason that the user reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;

mod samples;

use ptxc_ir::testing;
use ptxc_targets::Target;
use samples::{BATCH, Compiled, REFUSALS, compile, complaints, exhaustive, join};

/// One target for each step of what the hardware can do.
const TARGETS: [&str; 4] = ["sm_75", "sm_80", "sm_90", "sm_100a"];

fn check(turn: usize) {
    let target: Target = TARGETS[turn].parse().expect("a target of the table");
    let mut texts = Vec::new();
    let mut failures: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let mut refused: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for (number, sample) in testing::samples().enumerate() {
        let name = sample.name.clone();
        let outcome = std::panic::catch_unwind(move || compile(sample.module, target, None, number))
            .unwrap_or_else(|_| Err("panic".to_string()));
        match outcome {
            Ok(Compiled::Ptx(text)) => texts.push(text),
            Ok(Compiled::Refused(message)) => refused.entry(message).or_insert_with(|| (0, name)).0 += 1,
            Err(message) => {
                let kind: String =
                    message.lines().next().unwrap_or_default().chars().filter(|c| !c.is_ascii_digit()).collect();
                let entry = failures.entry(kind).or_insert_with(|| (0, format!("{name}: {message}")));
                entry.0 += 1;
            }
        }
    }
    let mut report = String::new();
    for (count, message) in failures.values() {
        writeln!(report, "{count} times: {message}").expect("writing to a string");
    }
    for (message, (count, name)) in &refused {
        if !REFUSALS.iter().any(|(part, _)| message.contains(part)) {
            writeln!(report, "{count} times refused: {name}: {message}").expect("writing to a string");
        }
    }
    println!(
        "{target}: {} kernels, {} refused for {} reasons",
        texts.len(),
        refused.values().map(|r| r.0).sum::<usize>(),
        refused.len()
    );
    let batches: Vec<(usize, String)> =
        texts.chunks(BATCH).enumerate().map(|(number, texts)| (number, join(texts, target))).collect();
    // One in four, another for each target.
    report += &complaints(&batches, target, |number| exhaustive() || number % TARGETS.len() == turn);
    assert!(report.is_empty(), "{target}:\n{report}");
}

#[test]
fn sm_75() {
    check(0);
}

#[test]
fn sm_80() {
    check(1);
}

#[test]
fn sm_90() {
    check(2);
}

#[test]
fn sm_100a() {
    check(3);
}
