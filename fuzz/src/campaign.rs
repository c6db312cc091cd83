//! Many seeds through a driver, on all processors.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::check::{Finding, Verdict, check};
use crate::features::Features;
use crate::generate::generate;
use crate::steps;

/// What a range of seeds came to. The same whatever the number of threads.
#[derive(Clone, Default, Debug)]
pub struct Summary {
    /// Programs on which all agree.
    pub agree: u64,
    /// Programs on which all agree but the emulator, by what it does not know.
    pub not_executed: BTreeMap<String, u64>,
    /// Programs that took too many steps.
    pub too_long: u64,
    /// Programs without a defined result, by seed: faults of the generator or the interpreter.
    pub undefined: Vec<(u64, String)>,
    /// Faults of the compiler, by seed.
    pub wrong: Vec<(u64, Finding)>,
}

/// The features of a seed's program, at most those that are wanted.
pub fn features(seed: u64, wanted: Features) -> Features {
    Features::for_seed(seed).and(wanted)
}

/// Checks the programs of a range of seeds, each with so many random orders of instructions for every list of steps.
pub fn run(seeds: std::ops::Range<u64>, wanted: Features, schedules: usize) -> Summary {
    let seeds: Vec<u64> = seeds.collect();
    let verdicts: Vec<(u64, Verdict)> = seeds
        .into_par_iter()
        .map(|seed| (seed, check(&generate(seed, &features(seed, wanted)), &steps::lists(seed, schedules))))
        .collect();
    let mut summary = Summary::default();
    for (seed, verdict) in verdicts {
        match verdict {
            Verdict::Agree => summary.agree += 1,
            Verdict::NotExecuted(what) => *summary.not_executed.entry(what).or_default() += 1,
            Verdict::TooLong => summary.too_long += 1,
            Verdict::Undefined(why) => summary.undefined.push((seed, why)),
            Verdict::Wrong(finding) => summary.wrong.push((seed, finding)),
        }
    }
    summary
}
