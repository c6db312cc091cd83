#![allow(clippy::unwrap_used)]
//! The tables against recorded answers of the assembler.

mod shared;

use ptxc_targets::{Checker, PtxVersion, Target};
use shared::{Difference, Record, compare, read};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance").join(name)
}

#[derive(Default)]
struct Count {
    records: usize,
    targets: usize,
    versions: usize,
}

impl Count {
    fn percent(&self, part: usize) -> f64 {
        100.0 * part as f64 / self.records.max(1) as f64
    }
}

/// Compares all records of a file; a line for each difference goes to `lines`.
fn run(path: &Path, lines: &mut Vec<String>) -> (Count, BTreeMap<String, Count>) {
    let mut checker = Checker::new(Target::ALL[0], PtxVersion::MAX);
    let mut all = Count::default();
    let mut families: BTreeMap<String, Count> = BTreeMap::new();
    for record in read(path) {
        let difference = compare(&record, &mut checker);
        let by_target = usize::from(!matches!(difference, Some(Difference::Targets { .. })));
        let by_version = usize::from(difference.is_none());
        let family = families.entry(format!("{} {}", record.section, record.family)).or_default();
        for count in [&mut all, family] {
            count.records += 1;
            count.targets += by_target;
            count.versions += by_version;
        }
        if let Some(difference) = difference {
            lines.push(describe(&record, &difference));
        }
    }
    (all, families)
}

fn describe(record: &Record, difference: &Difference) -> String {
    let names = |targets: &[Target]| targets.iter().map(|target| target.name()).collect::<Vec<_>>().join(" ");
    let what = match difference {
        Difference::Version { ours } => {
            let wanted = record.version.as_ref().map_or("", |(_, version)| version);
            format!("version {ours}, recorded {wanted}")
        }
        Difference::Targets { extra, missing, .. } if record.kind == "R" => {
            let _ = (extra, missing);
            "taken".to_owned()
        }
        Difference::Targets { problem: Some(_), .. } => "refused".to_owned(),
        Difference::Targets { extra, missing, .. } => {
            format!("taken also on [{}], not on [{}]", names(extra), names(missing))
        }
    };
    format!("{} {} | {} | {what}", record.kind, record.statement, record.declarations)
}

/// The list of known differences: reasons are lines that start with `#`.
fn check_list(lines: &[String]) {
    let path = data("disagreements.txt");
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    if std::env::var_os("UPDATE_DISAGREEMENTS").is_some() {
        let mut text = String::new();
        let mut left: Vec<&String> = lines.iter().collect();
        for line in known.lines() {
            match left.iter().position(|other| *other == line) {
                Some(at) => {
                    left.remove(at);
                    let _ = writeln!(text, "{line}");
                }
                None if line.starts_with('#') || line.is_empty() => {
                    let _ = writeln!(text, "{line}");
                }
                None => {}
            }
        }
        for line in left {
            let _ = writeln!(text, "{line}");
        }
        std::fs::write(&path, text).unwrap();
        return;
    }
    let known: Vec<&str> = known.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    for line in lines {
        assert!(known.contains(&line.as_str()), "a new difference from the assembler:\n{line}");
    }
    for line in &known {
        assert!(lines.iter().any(|other| other == line), "no longer a difference, remove it from the list:\n{line}");
    }
}

#[test]
fn tables_agree_with_the_assembler() {
    let mut lines = Vec::new();
    let (forms, families) = run(&data("forms.tsv.gz"), &mut lines);
    for (family, count) in &families {
        if count.versions < count.records {
            println!(
                "{family}: {} forms, targets agree on {}, also version on {}",
                count.records, count.targets, count.versions
            );
        }
    }
    let (refused, _) = run(&data("refused.tsv.gz"), &mut lines);
    let (examples, _) = run(&data("examples.tsv.gz"), &mut lines);
    println!(
        "forms {:.2} % by target and {:.2} % with version of {}, refused {:.2} % of {}, examples {:.2} % of {}",
        forms.percent(forms.targets),
        forms.percent(forms.versions),
        forms.records,
        refused.percent(refused.targets),
        refused.records,
        examples.percent(examples.targets),
        examples.records
    );
    assert!(forms.percent(forms.targets) >= 99.9);
    assert!(forms.percent(forms.versions) >= 99.0);
    assert!(refused.percent(refused.targets) >= 98.0);
    lines.sort();
    check_list(&lines);
}

#[test]
fn another_order_of_modifiers_is_taken() {
    let (tolerated, _) = run(&data("tolerated.tsv.gz"), &mut Vec::new());
    println!("tolerated {:.2} % of {}", tolerated.percent(tolerated.targets), tolerated.records);
    assert!(tolerated.percent(tolerated.targets) >= 90.0);
}
