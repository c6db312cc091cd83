//! Which forms of the instruction tables the emulator executes.

use std::collections::BTreeMap;

use ptxc_interp::ptx::Program;
use ptxc_targets::sample;

/// All forms of these sections are executed; `9.7.1.` stands for what is below it. Others may be refused.
const EXECUTED: &[&str] = &[
    "9.7.1.",
    "9.7.2.",
    "9.7.3.",
    "9.7.4.1",
    "9.7.4.2",
    "9.7.4.3",
    "9.7.4.5",
    "9.7.4.6",
    "9.7.4.7",
    "9.7.4.8",
    "9.7.4.9",
    "9.7.4.10",
    "9.7.7.",
    "9.7.8.1",
    "9.7.8.2",
    "9.7.9.",
    "9.7.10.3",
    "9.7.10.4",
    "9.7.10.6",
    "9.7.10.7",
    "9.7.10.8",
    "9.7.10.9",
    "9.7.10.10",
    "9.7.10.11",
    "9.7.10.16",
    "9.7.10.17",
    "9.7.10.20",
    "9.7.10.21",
    "9.7.10.22",
    "9.7.10.23",
    "9.7.10.25",
    "9.7.10.26",
    "9.7.10.27",
    "9.7.14.3",
    "9.7.14.5",
    "9.7.14.6",
    "9.7.14.7",
    "9.7.15.1",
    "9.7.15.2",
    "9.7.15.3",
    "9.7.15.5",
    "9.7.15.6",
    "9.7.15.10",
    "9.7.15.11",
    "9.7.15.12",
    "9.7.15.13",
    "9.7.15.14",
    "9.7.15.15",
    "9.7.19.",
    "9.7.21.",
];

fn is_executed(section: &str) -> bool {
    EXECUTED.iter().any(|e| if e.ends_with('.') { section.starts_with(e) } else { section == *e })
}

#[test]
fn sampled_forms_are_decoded() {
    let mut random = sample::Random::new(1);
    let mut sections = Vec::new();
    for index in 0..sample::form_count() {
        let Some((_, section)) = sample::form_text(index) else { continue };
        sections.extend((0..4).filter_map(|_| sample::statement(index, &mut random)).map(|s| (section, s)));
    }
    let mut refused: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (section, statement) in &sections {
        let text = format!(
            ".version 9.4\n.target sm_107a\n.address_size 64\n.entry k() {{\n{}\n{statement}\nL1: ret;\n}}\n",
            sample::declarations()
        );
        // Some samples have operands that the form excludes.
        let Ok(program) = Program::read(&text) else { continue };
        *counts.entry(section).or_default() += 1;
        if program.refused().next().is_some() {
            refused.entry(section).or_default().push(statement);
        }
    }
    for (section, statements) in &refused {
        println!("{section}: {} of {} refused, as `{}`", statements.len(), counts[section], statements[0]);
    }
    let wrong: Vec<_> = refused.iter().filter(|(section, _)| is_executed(section)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
