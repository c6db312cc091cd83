//! `ptxc check` on whole files: the statements of the conformance data, one a line, right and wrong ones mixed.

#![allow(clippy::unwrap_used)]

#[path = "target_operations/record.rs"]
mod record;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;

use ptxc::targets::Target;
use record::Record;

/// Statements of a file, line by line from line 5 on, in one kernel.
fn file(target: Target, records: &[Record]) -> String {
    let mut text = format!(".version 9.5\n.target {target}\n.address_size 64\n.visible .entry k() {{\n");
    for Record { declarations, statement, .. } in records {
        let _ = writeln!(text, "{{ {declarations} {statement} }}");
    }
    text.push_str("ret;\n}\n");
    text
}

/// Statements that need nothing of the module, and whose braces do not end the kernel.
fn records(name: &str) -> Vec<Record> {
    let mut records = record::read(name);
    records.retain(|r| r.module.is_empty() && r.around == "e" && !r.statement.contains('\n'));
    records.retain(|r| r.statement.matches('{').count() == r.statement.matches('}').count());
    records
}

/// The lines that the command has errors on.
fn refused(target: Target, text: &str) -> BTreeSet<usize> {
    let file = tempfile::Builder::new().suffix(".ptx").tempfile().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_ptxc"))
        .args(["check", "--max-errors", "0", "--sm", target.name()])
        .arg(file.path())
        .output()
        .unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    let prefix = format!("{}:", file.path().display());
    let places = messages.lines().filter_map(|line| line.strip_prefix(&prefix));
    let lines: BTreeSet<usize> = places
        .filter_map(|place| {
            let (line, rest) = place.split_once(':')?;
            let (column, message) = rest.split_once(": ")?;
            assert!(column.parse::<usize>().is_ok() && message.starts_with("error: "), "{place}");
            line.parse().ok()
        })
        .collect();
    assert_eq!(output.status.code(), Some(i32::from(!lines.is_empty())), "{messages}");
    lines
}

#[test]
fn lines_are_taken_and_refused_as_the_assembler_does() {
    let mut all = records("forms.tsv.gz");
    all.extend(records("refused.tsv.gz"));
    for name in ["sm_75", "sm_90a", "sm_107a", "sm_120a"] {
        let target: Target = name.parse().unwrap();
        let refused = refused(target, &file(target, &all));
        let wrong = all.iter().enumerate().filter(|(at, r)| refused.contains(&(at + 5)) == r.accept.contains(&target));
        let wrong: Vec<&str> = wrong.map(|(_, r)| r.statement.as_str()).collect();
        println!("{name}: {} of {} lines differ", wrong.len(), all.len());
        assert!(wrong.len() * 1000 < all.len(), "{name}: {wrong:#?}");
    }
}

#[test]
fn every_example_of_the_specification_is_taken() {
    let examples = records("examples.tsv.gz");
    for target in Target::ALL {
        let (refused, mut count) = (refused(*target, &file(*target, &examples)), 0);
        for (at, record) in examples.iter().enumerate().filter(|(_, record)| record.accept.contains(target)) {
            count += 1;
            assert!(!refused.contains(&(at + 5)), "{target}: {}", record.statement);
        }
        println!("{target}: {count} examples");
    }
}
