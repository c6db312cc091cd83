//! Which rules of the compiler random programs reach: a rule that is never applied is never compared.

use std::collections::BTreeMap;

use ptxc::{Compiler, Options, Schedule};
use ptxc_targets::Target;
use rayon::prelude::*;

use crate::campaign;
use crate::check::caught;
use crate::features::Features;
use crate::generate::generate;
use crate::steps;

/// How many programs of a range of seeds each rule is applied in.
#[derive(Clone, Default, Debug)]
pub struct Coverage {
    /// Programs that were compiled.
    pub programs: u64,
    /// Every rule in the order of [`ptxc::rule_names`], and how many of the programs it is applied in.
    pub rules: Vec<(&'static str, u64)>,
    /// Programs that the compiler refuses, or panics on.
    pub refused: u64,
}

impl Coverage {
    /// Rules that are applied in no program.
    pub fn never(&self) -> impl Iterator<Item = &'static str> {
        self.rules.iter().filter(|(_, count)| *count == 0).map(|(name, _)| *name)
    }
}

/// Names of the rules that are applied when a program is compiled by its lists of steps.
fn applied(seed: u64, wanted: Features) -> Result<Vec<&'static str>, String> {
    let program = generate(seed, &campaign::features(seed, wanted));
    let target: Target = program.target.parse().map_err(|error| format!("{error}"))?;
    let mut names = Vec::new();
    for list in steps::lists(seed, 0) {
        let passes = list.iter().filter(|step| steps::schedule(step).is_none()).map(|step| (*step).to_string());
        let (passes, schedule) = (Some(passes.collect()), Schedule::Off);
        let options = Options { passes, schedule, remarks: true, ..Options::new(target) };
        let output = caught(|| {
            Compiler::new(target).options(options).compile(&program.module).map_err(|errors| errors.to_string())
        })?;
        names.extend(output.remarks.iter().map(|remark| remark.rule));
    }
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Compiles the programs of a range of seeds and counts the rules that are applied.
pub fn count(seeds: std::ops::Range<u64>, wanted: Features) -> Coverage {
    let seeds: Vec<u64> = seeds.collect();
    let programs: Vec<Result<Vec<&'static str>, String>> =
        seeds.into_par_iter().map(|seed| applied(seed, wanted)).collect();
    let mut coverage = Coverage::default();
    let mut counts: BTreeMap<&'static str, u64> = BTreeMap::new();
    for program in programs {
        match program {
            Ok(names) => {
                coverage.programs += 1;
                names.into_iter().for_each(|name| *counts.entry(name).or_default() += 1);
            }
            Err(_) => coverage.refused += 1,
        }
    }
    coverage.rules = ptxc::rule_names().map(|name| (name, counts.get(name).copied().unwrap_or(0))).collect();
    coverage
}
