//! Statements made from the tables, assembled: the tables and `ptxas` take the same ones.
//!
//! `ptxas` is found or installed as in the other suites.

#![allow(clippy::unwrap_used)]

use ptxc_targets::{Checker, Declarations, Diagnostic, PtxVersion, Sink, Statement, Target, sample, walk_module};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// One target of every generation whose suffix matters.
const TARGETS: [&str; 4] = ["sm_75", "sm_90a", "sm_100a", "sm_120a"];

/// Samples for each form and target.
const COUNT: usize = 2;

/// Statements of one file: `ptxas` takes longer than linear time for more.
const BATCH: usize = 100;

/// Which targets take the first statement of a module.
struct First(Checker, Option<[Option<PtxVersion>; Target::ALL.len()]>);

impl Sink for First {
    fn statement(&mut self, statement: &Statement, declarations: &Declarations) {
        if self.1.is_none() {
            self.1 = Some(self.0.versions(statement, declarations).unwrap_or([None; Target::ALL.len()]));
        }
    }

    fn error(&mut self, diagnostic: Diagnostic) -> bool {
        panic!("{diagnostic}");
    }
}

fn taken_by_tables(statement: &str, target: Target) -> bool {
    let text = format!(".visible .entry k() {{ {}\n{{ {statement} }}\nL1: ret; }}", sample::declarations());
    let mut first = First(Checker::new(target, PtxVersion::MAX), None);
    walk_module(&text, &mut first);
    first.1.unwrap()[target.index()].is_some()
}

/// The statements of a batch that the assembler refuses, by position.
fn refused(ptxas: &Path, directory: &Path, target: &str, batch: &[String]) -> BTreeSet<usize> {
    let mut text = format!(".version 9.5\n.target {target}\n.address_size 64\n.visible .entry k() {{\n");
    text.push_str(&sample::declarations());
    let start = text.lines().count();
    for statement in batch {
        let _ = writeln!(text, "{{ {statement} }}");
    }
    text.push_str("L1: ret;\n}\n");
    let file = directory.join(format!("{target}.ptx"));
    std::fs::write(&file, text).unwrap();
    let output = Command::new(ptxas)
        .arg(format!("-arch={}", target.replace("sm_", "compute_")))
        .arg(&file)
        .args(["-o", "/dev/null"])
        .output()
        .unwrap();
    if output.status.success() {
        return BTreeSet::new();
    }
    let report = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    let lines = report.lines().filter_map(|line| {
        let number = line.split("line ").nth(1)?.split(';').next()?.trim().parse::<usize>().ok()?;
        number.checked_sub(start + 1)
    });
    lines.collect()
}

#[test]
fn samples_assemble() {
    let ptxas = ptxc_test_support::ptxas(ptxc_test_support::Release::Cuda13);
    let directory = std::env::temp_dir().join(format!("ptxc-targets-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let mut random = sample::Random::new(20);
    let statements: Vec<String> = (0..sample::form_count())
        .flat_map(|form| (0..COUNT).filter_map(|_| sample::statement(form, &mut random)).collect::<Vec<_>>())
        // A list of branch targets and a texture mode are more than a sample declares.
        .filter(|statement| {
            !statement.starts_with("brx") && !statement.starts_with("call") && !statement.starts_with("tex")
        })
        .collect();
    let (mut all, mut differ) = (0, Vec::new());
    for name in TARGETS {
        let target: Target = name.parse().unwrap();
        for batch in statements.chunks(BATCH) {
            let refused = refused(ptxas, &directory, name, batch);
            for (at, statement) in batch.iter().enumerate() {
                all += 1;
                let ours = taken_by_tables(statement, target);
                // One error may hide or cause another, so a difference is asked about alone.
                if ours == refused.contains(&at) {
                    let alone = self::refused(ptxas, &directory, name, std::slice::from_ref(statement));
                    if ours != alone.is_empty() {
                        differ.push(format!("{name}: {} {statement}", if ours { "refused" } else { "taken" }));
                    }
                }
            }
        }
    }
    std::fs::remove_dir_all(&directory).unwrap();
    println!("{all} statements, {} differ", differ.len());
    for line in &differ {
        println!("  {line}");
    }
    assert!(differ.len() * 200 < all, "more than one in 200 differs");
}
