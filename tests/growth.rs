//! Time per instruction stays the same as functions grow: nothing is quadratic.
#![cfg(test)]

#[path = "../benches/generate.rs"]
mod generate;

use std::time::{Duration, Instant};

use ptxc::{OptLevel, Options, compile_text};

/// The shortest of some compilations, per instruction.
fn time_per_instruction(instructions: usize, options: &Options, runs: usize) -> Duration {
    let text = generate::kernel(instructions);
    let one = |_| {
        let start = Instant::now();
        compile_text("generated.ir", &text, options).unwrap();
        start.elapsed()
    };
    (0..runs).map(one).min().unwrap() / instructions as u32
}

#[test]
fn twenty_thousand_instructions_cost_ten_times_two_thousand() {
    for level in [OptLevel::O0, OptLevel::O3] {
        let options = Options { opt_level: level, verify_each: false, ..Options::new("sm_90".parse().unwrap()) };
        // Other work on the machine disturbs single measurements: up to three tries, the shortest time of several.
        let within = (0..3).any(|_| {
            let small = time_per_instruction(2_000, &options, 10);
            let large = time_per_instruction(20_000, &options, 3);
            println!("{level:?}: {small:?} an instruction of 2,000, {large:?} of 20,000");
            large <= small * 2
        });
        assert!(within, "time per instruction grows with the function at {level:?}");
    }
}
