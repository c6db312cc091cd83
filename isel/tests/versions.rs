//! Every instruction on every type in every version of PTX that a target allows: it is written in instructions that the
//! version has, or refused by the name of the one it lacks.
//!
//! What the versions have is in the instruction tables; here `ptxas` reads what was written under `.version` as asked.
//! `PTXC_EXHAUSTIVE` walks all versions of all targets, else it is the first and some of the others for some.

mod samples;

use std::collections::{BTreeMap, BTreeSet};

use ptxc_ir::testing;
use ptxc_targets::{PtxVersion, Target};
use samples::{BATCH, Compiled, REFUSALS, compile, complaints, exhaustive, join};

/// Targets with an instruction of their own, and one of the versions that they are asked for in besides the first.
const TARGETS: [(&str, &str); 8] = [
    ("sm_53", "6.4"),
    ("sm_70", "7.5"),
    ("sm_75", "6.5"),
    ("sm_80", "8.0"),
    ("sm_89", "8.0"),
    ("sm_90", "8.0"),
    ("sm_100a", "9.0"),
    ("sm_120a", "9.1"),
];

/// Instructions that nothing can stand for where the version does not have them.
const ALONE: &[&str] = &[
    // Special registers.
    "%",
    "`cvta.param.",
    "`cvta.to.param.",
    "`isspacep.param",
    "`isspacep.shared::",
    // What 128 bits are exchanged, read and written with as a whole.
    "`atom.cas.b128",
    "`ld.relaxed.gpu.b128",
];

/// Samples of which every so many is compiled for a target and version.
const STRIDE: usize = 12;

fn check(target: Target, versions: &[PtxVersion], stride: usize, problems: &mut BTreeSet<String>) {
    for (turn, version) in versions.iter().enumerate() {
        let mut texts = Vec::new();
        let mut refused: BTreeMap<String, String> = BTreeMap::new();
        for (number, sample) in testing::samples().enumerate() {
            if number % stride != (turn + usize::from(target.sm())) % stride {
                continue;
            }
            let name = sample.name.clone();
            match compile(sample.module, target, Some(*version), number) {
                Ok(Compiled::Ptx(text)) => texts.push(text),
                Ok(Compiled::Refused(message)) => drop(refused.insert(message, name)),
                Err(message) => drop(problems.insert(format!("{name}: {message}"))),
            }
        }
        for (message, name) in refused {
            let meant = REFUSALS.iter().any(|(part, _)| message.contains(part));
            let alone = ALONE.iter().any(|name| message.contains(name));
            let named = alone && message.contains("needs PTX ISA version");
            if !meant && !named {
                problems.insert(format!("{target} {version} refused: {name}: {message}"));
            }
        }
        let batches: Vec<(usize, String)> =
            texts.chunks(BATCH).enumerate().map(|(number, texts)| (number, join(texts, target))).collect();
        let wanted = format!(".version {version}\n");
        assert!(batches.iter().all(|(_, text)| text.starts_with(&wanted)), "{target} {version}: another is written");
        let complaints = complaints(&batches, target, |_| false);
        if !complaints.is_empty() {
            problems.insert(format!("{target} {version}: {complaints}"));
        }
    }
}

#[test]
fn what_a_version_lacks_is_written_otherwise_or_named() {
    let mut problems = BTreeSet::new();
    if exhaustive() {
        for target in Target::ALL {
            let versions = PtxVersion::ALL.iter().copied();
            check(
                *target,
                &versions.filter(|version| *version >= target.min_ptx()).collect::<Vec<_>>(),
                1,
                &mut problems,
            );
        }
    }
    for (target, version) in TARGETS {
        let target: Target = target.parse().expect("a target of the table");
        check(target, &[target.min_ptx(), version.parse().expect("a version")], STRIDE, &mut problems);
    }
    assert!(problems.is_empty(), "{}", problems.into_iter().collect::<Vec<_>>().join("\n"));
}
