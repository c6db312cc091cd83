//! Every rule of the passes over single instructions and of selection, by name: a function of `tests/rules/*.ir` in which
//! it is applied, one in which it nearly could be and is not, and what the functions compute before and after.
//!
//! `README.md` beside this file has the directives. `tests/scripts/prove_rules.py` reads the same files and proves what
//! the executors try here on values.
#![cfg(test)]

mod compile;
mod execute;
mod functions;
mod inputs;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use functions::File;
use ptxc::targets::{PtxVersion, Target};

#[test]
fn every_rule_is_applied_where_the_files_say_and_nowhere_else() {
    let known: BTreeSet<&str> = ptxc::rule_names().collect();
    let mut shown: [BTreeSet<String>; 2] = Default::default();
    let mut problems = String::new();
    for file in functions::all() {
        let found = match compile::applied(&file) {
            Ok(found) => found,
            Err(message) => {
                problems.push_str(&message);
                continue;
            }
        };
        let none = BTreeSet::new();
        for function in &file.functions {
            let found = found.get(&function.name).unwrap_or(&none);
            for (list, wanted) in [(&function.fires, true), (&function.not, false)] {
                for rule in list {
                    if !known.contains(rule.as_str()) {
                        let _ = writeln!(problems, "{}: @{}: there is no rule `{rule}`", file.name, function.name);
                    } else if found.contains(rule.as_str()) != wanted {
                        let verb = if wanted { "is not applied" } else { "is applied" };
                        let _ = writeln!(
                            problems,
                            "{}: @{}: `{rule}` {verb}; applied: {found:?}",
                            file.name, function.name
                        );
                    }
                    shown[usize::from(!wanted)].insert(rule.clone());
                }
            }
        }
    }
    for rule in ptxc::rule_names() {
        for (kind, shown) in ["fires", "not"].iter().zip(&shown) {
            if !shown.contains(rule) {
                let _ = writeln!(problems, "no function shows: {kind} {rule}");
            }
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
}

#[test]
fn what_rules_make_computes_the_same() {
    let files = functions::all();
    let work: Vec<(&File, usize)> =
        files.iter().flat_map(|file| (0..file.functions.len()).map(move |index| (file, index))).collect();
    let compiled: Vec<_> = files.iter().map(|file| (file.name.clone(), execute::Compiled::new(file))).collect();
    let compiled: BTreeMap<_, _> = compiled.into_iter().collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let run = || {
        while let Some((file, index)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
            let function = &file.functions[*index];
            let outcome = match &compiled[&file.name] {
                Ok(compiled) => compiled.check(function),
                Err(message) => Err(message.clone()),
            };
            let name = format!("{}: @{}", file.name, function.name);
            found.lock().unwrap().push((name, outcome));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(run);
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    let mut problems = String::new();
    let (mut tried, mut exhaustive, mut values) = (0, 0, 0);
    for (name, outcome) in &found {
        match outcome {
            Ok(Some(summary)) => {
                tried += 1;
                exhaustive += u32::from(summary.exhaustive);
                values += summary.defined;
            }
            Ok(None) => {}
            Err(message) => {
                let _ = writeln!(problems, "{name}: {message}");
            }
        }
    }
    println!("{tried} functions agree on {values} values with defined results, {exhaustive} of them on all there are");
    assert!(problems.is_empty(), "\n{problems}");
}

/// Rules and passes look for instructions that the target has in the version of PTX that is asked for: what has no rule of its
/// own is refused (`isel/tests/versions.rs` says what that may be), and a function of the files is not.
#[test]
fn rules_write_what_the_version_of_ptx_has() {
    let mut problems = BTreeSet::new();
    for name in ["sm_75", "sm_80", "sm_90", "sm_100"] {
        let target: Target = name.parse().unwrap();
        let steps = [target.min_ptx(), "7.5".parse().unwrap(), "8.5".parse().unwrap()];
        let mut versions: Vec<PtxVersion> = steps.into_iter().filter(|version| *version >= target.min_ptx()).collect();
        versions.dedup();
        for (version, file) in versions.iter().flat_map(|v| functions::all().into_iter().map(move |file| (*v, file))) {
            // 128 bits at once have no substitute.
            if file.legal || file.target < target || file.name == "whole.ir" {
                continue;
            }
            let ptx = match compile::versioned(&file, target, version) {
                Ok(ptx) => ptx,
                Err(message) => {
                    problems.extend(message.lines().map(|line| format!("{}: {target} {version}: {line}", file.name)));
                    continue;
                }
            };
            match ptxc_test_support::parse(&ptx, target) {
                Ok(outcome) if outcome.cubin.is_none() && outcome.messages.contains("error") => {
                    problems.insert(format!("{}: {target} {version}: {}", file.name, outcome.messages));
                }
                Ok(_) => {}
                Err(error) => drop(problems.insert(format!("{}: {error}", file.name))),
            }
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.into_iter().collect::<Vec<_>>().join("\n"));
}
