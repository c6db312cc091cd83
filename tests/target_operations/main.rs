//! Every form of the instruction tables' conformance data as a target operation: IR text to PTX, which `ptxas` takes.
//!
//! Each form is compiled for one of the targets that take it, the targets in turn, many forms a module.

#![allow(clippy::unwrap_used)]

mod convert;
mod record;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::thread;

use convert::{Converted, convert};
use ptxc::targets::{Declarations, Diagnostic, Sink, Statement, Target, walk_module};
use ptxc::{OptLevel, Options, compile_text};
use ptxc_test_support::assemble;

/// Forms in a module.
const BATCH: usize = 200;

/// What keeps a form from being a target operation of the IR.
const WITHOUT_IR: &[(&str, &str)] = &[
    ("labels", "branches are terminators of the IR, not target operations"),
    ("calls", "calls are instructions of the IR, not target operations"),
    ("parameters of calls", "the IR's call passes them"),
    ("parameters of functions", "the IR has them as values"),
    ("addresses by name", "addresses of parameters and of variables in the frame are 64-bit values of the IR"),
    ("declarations alone, or a block", "no instruction"),
    ("not taken by the tables", "listed among the disagreements of the tables"),
];

/// What `ptxas` says of forms that it took by themselves, in dead code, and does not compile where values are used.
const ASSEMBLER_FAULTS: &[&str] = &[
    "32-bit address",
    "Internal compiler error",
    "ptxas crashed",
    "Illegal to write to function input parameter",
    "Illegal modifier '.acube' for instruction 'tex'",
];

struct Form<'r> {
    converted: Converted,
    record: &'r record::Record,
}

fn module(forms: &[Form]) -> String {
    let mut globals: BTreeMap<&str, &str> = BTreeMap::new();
    for form in forms {
        globals.extend(form.converted.globals.iter().map(|(name, line)| (name.as_str(), line.as_str())));
    }
    let functions = forms.iter().map(|form| form.converted.text.as_str());
    globals.into_values().chain(functions).collect()
}

/// The mnemonics of each function of a PTX file, their pieces sorted.
#[derive(Default)]
struct Mnemonics(Vec<Vec<String>>);

impl Sink for Mnemonics {
    fn statement(&mut self, statement: &Statement, _: &Declarations) {
        let unified = if statement.unified { ".unified" } else { "" };
        let mut pieces: Vec<String> =
            format!("{}{unified}", statement.mnemonic).split('.').map(str::to_owned).collect();
        pieces.sort();
        self.0.push(pieces);
    }

    fn error(&mut self, _: Diagnostic) -> bool {
        true
    }
}

/// Compiles and assembles forms. Failures are one line each; known faults of `ptxas` are none.
fn run(target: Target, mut forms: Vec<Form>, failures: &Mutex<Vec<String>>) {
    let Some(messages) = attempt(target, &forms, &["-O0"]) else { return };
    if let [form] = &forms[..] {
        // Some forms only compile with optimization, and 32-bit addresses only before sm_90.
        let oldest = if messages.contains("32-bit address") { form.record.accept[0] } else { target };
        let Some(messages) = attempt(oldest, &forms, &[]) else { return };
        if ASSEMBLER_FAULTS.iter().any(|fault| messages.contains(fault)) {
            return;
        }
        let line = messages.lines().find(|line| line.contains("error") || line.contains("fatal")).unwrap_or(&messages);
        let statement: String = form.record.statement.chars().take(160).collect();
        failures.lock().unwrap().push(format!("{target}: {statement} | {line}"));
        return;
    }
    // One bad statement can spoil the others: halves are tried again.
    let rest = forms.split_off(forms.len() / 2);
    run(target, forms, failures);
    run(target, rest, failures);
}

/// What is wrong, if anything.
fn attempt(target: Target, forms: &[Form], arguments: &[&str]) -> Option<String> {
    let text = module(forms);
    let options = Options { opt_level: OptLevel::O0, ..Options::new(target) };
    let ptx = match compile_text("forms.ir", &text, &options) {
        Ok(output) => output.text,
        Err(diagnostics) => return Some(format!("{diagnostics}")),
    };
    let mut found = Mnemonics::default();
    walk_module(&ptx, &mut found);
    if let Some(form) = forms.iter().find(|form| !found.0.contains(&form.converted.pieces)) {
        return Some(format!("error: no `{}` in the output", form.converted.pieces.join(".")));
    }
    match assemble(&ptx, target, arguments) {
        Ok(outcome) if outcome.cubin.is_some() => None,
        Ok(outcome) => Some(format!("ptxas error: {}", outcome.messages)),
        Err(error) => Some(format!("error: {error}")),
    }
}

/// Runs all batches, as many at a time as there are processors.
fn run_all(batches: Vec<(Target, Vec<Form>)>) -> Vec<String> {
    let failures = Mutex::new(Vec::new());
    let batches = Mutex::new(batches.into_iter());
    let work = || {
        loop {
            let next = batches.lock().unwrap().next();
            let Some((target, forms)) = next else { return };
            run(target, forms, &failures);
        }
    };
    let threads = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let mut failures = failures.into_inner().unwrap();
    failures.sort();
    failures
}

/// `PTXC_FORMS_STEP=n` takes every n-th form only, `PTXC_FORMS=text` those that begin with the text.
#[test]
fn every_form_is_a_target_operation() {
    let records = record::read("forms.tsv.gz");
    let wanted = std::env::var("PTXC_FORMS").unwrap_or_default();
    let step: usize = std::env::var("PTXC_FORMS_STEP").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    let mut by_target: BTreeMap<Target, Vec<Form>> = BTreeMap::new();
    let taken =
        records.iter().enumerate().filter(|(index, record)| index % step == 0 && record.statement.starts_with(&wanted));
    let mut count = 0;
    for (index, record) in taken {
        match convert(record, index) {
            Ok(converted) => {
                count += 1;
                let target = record.accept[index % record.accept.len()];
                by_target.entry(target).or_default().push(Form { converted, record });
            }
            Err(reason) => *reasons.entry(reason).or_default() += 1,
        }
    }
    let mut batches = Vec::new();
    for (target, mut forms) in by_target {
        while !forms.is_empty() {
            let rest = forms.split_off(forms.len().min(BATCH));
            batches.push((target, std::mem::replace(&mut forms, rest)));
        }
    }
    let failures = run_all(batches);
    let mut report = String::new();
    for (reason, count) in &reasons {
        let _ = writeln!(report, "without IR: {count} {reason}");
    }
    let _ = writeln!(report, "{} of {count} forms fail", failures.len());
    if let Some(path) = std::env::var_os("PTXC_FORMS_REPORT") {
        std::fs::write(path, failures.join("\n")).unwrap();
    }
    print!("{report}");
    for reason in reasons.keys() {
        assert!(WITHOUT_IR.iter().any(|(known, _)| known == reason), "{reason}\n{report}");
    }
    assert!(failures.is_empty(), "{report}{}", failures[..failures.len().min(40)].join("\n"));
}
