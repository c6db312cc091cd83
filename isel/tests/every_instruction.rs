//! Every instruction on every type, through legalization, selection, register assignment and emission to `ptxas`.
//!
//! The modules come from the generator that the IR tests itself with, which walks the opcode table: a new opcode is here
//! without a change. What a target refuses must be on the list below, with the reason that the user reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ptxc_ir::testing::samples;
use ptxc_ir::{Module, has_errors, print_module, verify_module};
use ptxc_targets::Target;
use ptxc_test_support::{assemble, parse};

/// One target for each step of what the hardware can do.
const TARGETS: [&str; 4] = ["sm_75", "sm_80", "sm_90", "sm_100a"];

/// Kernels of one text that `ptxas` gets.
const BATCH: usize = 400;

/// Refusals that are meant: a part of the message, and why it is right.
const REFUSALS: &[(&str, &str)] = &[
    (", target is sm_", "the instruction came with a later architecture and nothing can stand for it"),
    ("has only an approximation", "exact functions are a library's business"),
    ("has no instruction; call a library", "there are no approximations on f64"),
    ("conversion to ue8m0 rounds", "the format has no rounding to nearest in PTX"),
];

/// What became of a sample.
enum Compiled {
    Ptx(String),
    Refused(String),
}

/// One sample as PTX, its symbols made different from those of all others by `suffix`.
fn compile(mut module: Module, target: Target, suffix: usize) -> Result<Compiled, String> {
    // What the variables hold and how parameters are aligned is not the instruction's business.
    module.globals.values_mut().for_each(|global| global.init = None);
    module.funcs.values_mut().flat_map(|func| &mut func.sig.params).for_each(|param| param.attrs.align = 0);
    if let Err(errors) = ptxc_isel::legalize(&mut module, target, None) {
        return Ok(Compiled::Refused(errors[0].message.clone()));
    }
    let errors = verify_module(&module);
    if has_errors(&errors) {
        return Err(format!("illegal after legalization: {}\n{}", errors[0].message, print_module(&module)));
    }
    let mut machine = match ptxc_isel::select(&module, target, &ptxc_isel::Options::default()) {
        Ok(machine) => machine,
        Err(errors) => {
            let message = errors[0].message.clone();
            if REFUSALS.iter().any(|(part, _)| message.contains(part)) {
                return Ok(Compiled::Refused(message));
            }
            return Err(format!("not selected: {message}\n{}", print_module(&module)));
        }
    };
    machine.opaques.clear();
    machine.files.clear();
    let mut symbols = ptxc_mir::Symbols::default();
    for (_, name) in machine.symbols.iter() {
        symbols.intern(&format!("{name}_{suffix}"));
    }
    machine.symbols = symbols;
    for func in &mut machine.functions {
        if let Err(errors) = ptxc_mir::verify(func) {
            return Err(format!("{errors:?}\n{}", print_module(&module)));
        }
        ptxc_regalloc::run(func).map_err(|e| format!("{e}\n{}", print_module(&module)))?;
    }
    let text = ptxc_emit::emit_module(&machine, &ptxc_emit::EmitOptions::default())
        .map_err(|e| format!("not emitted: {e}\n{}", print_module(&module)))?;
    Ok(Compiled::Ptx(text))
}

/// Texts put together under one header, of the highest version among them.
fn join(texts: &[String], target: Target) -> String {
    let header = |line: &&str| {
        line.starts_with(".version")
            || line.starts_with(".target")
            || line.starts_with(".address_size")
            || line.starts_with(".file")
    };
    let version =
        texts.iter().flat_map(|t| t.lines()).filter(|l| l.starts_with(".version")).max().unwrap_or(".version 6.3");
    let mut out = format!("{version}\n.target {target}\n.address_size 64\n");
    for text in texts {
        for line in text.lines().filter(|l| !header(l)) {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// Errors of `ptxas`, each with its line; one of a kind. Every text is read; one in four, another for each target, is
/// also made into code, or every one when `PTXC_EXHAUSTIVE` is set.
fn complaints(batches: &[(usize, String)], target: Target, turn: usize) -> String {
    let all = std::env::var_os("PTXC_EXHAUSTIVE").is_some();
    let mut kinds: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for (number, batch) in batches {
        let code = all || number % TARGETS.len() == turn;
        let outcome = if code { assemble(batch, target, &["-c"]) } else { parse(batch, target) }.expect("ptxas runs");
        if outcome.cubin.is_some() {
            continue;
        }
        let lines: Vec<&str> = batch.lines().collect();
        for message in outcome.messages.lines().filter(|m| !m.contains("warning")) {
            let number = message.split("line ").nth(1).and_then(|t| t.split(|c: char| !c.is_ascii_digit()).next());
            let line = number.and_then(|n| n.parse::<usize>().ok()).and_then(|n| lines.get(n - 1)).unwrap_or(&"");
            let kind = line.split_whitespace().next().unwrap_or(message).to_string();
            kinds.entry(kind).or_insert_with(|| (0, format!("{message}\n    {line}"))).0 += 1;
        }
    }
    kinds.values().map(|(count, message)| format!("{count} times: {message}\n")).collect()
}

fn check(turn: usize) {
    let target: Target = TARGETS[turn].parse().expect("a target of the table");
    let mut texts = Vec::new();
    let mut failures: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let mut refused: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for (number, sample) in samples().enumerate() {
        let name = sample.name.clone();
        let outcome = std::panic::catch_unwind(move || compile(sample.module, target, number))
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
    report += &complaints(&batches, target, turn);
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
