//! Random functions: verified, assigned, checked by data flow, and executed before and after.

mod common;

use common::random::{Shape, function};
use common::simulate;
use ptxc_regalloc::{Kinds, check, run};

fn try_seed(seed: u64, shape: Shape) {
    let original = function(seed, shape);
    if let Err(errors) = ptxc_mir::verify(&original) {
        panic!("seed {seed}: the generator made {}", errors[0]);
    }
    let mut result = original.clone();
    if let Err(error) = run(&mut result, &Kinds::default()) {
        panic!("seed {seed}: {error}");
    }
    if let Err(error) = check(&original, &result) {
        panic!("seed {seed}: {error}");
    }
    for run in 0..4 {
        let known = original.insts.len();
        let (before, ended) = simulate::run(&original, known, run, 400);
        let (after, ended_too) = simulate::run(&result, known, run, 400);
        let length = before.len().min(after.len());
        assert_eq!(before[..length], after[..length], "seed {seed}, run {run}");
        assert!(!(ended && ended_too) || before.len() == after.len(), "seed {seed}: one ended early");
    }
}

#[test]
fn small_functions() {
    for seed in 0..1500 {
        try_seed(seed, Shape { blocks: 2 + (seed % 5) as usize, insts: 4, params: 4 });
    }
}

#[test]
fn larger_functions() {
    for seed in 0..60 {
        try_seed(seed, Shape { blocks: 40, insts: 12, params: 8 });
    }
}
