//! Mutated text: reader, verifier and printer neither panic nor disagree.
//!
//! Two seconds in a normal run; `PTXC_FUZZ_SECONDS=600 cargo test -p ptxc-ir --release --test mutation` for longer, and
//! `PTXC_FUZZ_SEED` for another start.

use std::time::{Duration, Instant};

use ptxc_ir::testing::mutation::{PIECES, mutate};
use ptxc_ir::testing::{Options, Rng, random_module};
use ptxc_ir::{has_errors, print_module, read_module, verify_module};

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Whatever the text is: no panic, errors point into the text, and valid modules print stably.
fn check(text: &str) -> bool {
    let module = match read_module(text) {
        Ok(module) => module,
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in errors {
                let at = &error.span;
                assert!(at.start <= at.end && at.end <= text.len(), "{error:?}\n{text}");
                assert!(!error.message.is_empty() && !error.message.contains('\n'), "{error:?}\n{text}");
            }
            return false;
        }
    };
    let valid = !has_errors(&verify_module(&module));
    let first = print_module(&module);
    match read_module(&first) {
        Ok(again) => assert_eq!(print_module(&again), first, "the second print differs\n{text}"),
        Err(errors) => assert!(!valid, "{}\n{first}", errors[0].with_position(&first)),
    }
    valid
}

#[test]
fn mutated_text_never_panics() {
    let mut rng = Rng::new(number("PTXC_FUZZ_SEED", 1));
    let limit = Duration::from_secs(number("PTXC_FUZZ_SECONDS", 2));
    let started = Instant::now();
    let options = Options { functions: 2, blocks: 4, insts: 8, ..Options::default() };
    let (mut texts, mut valid) = (0u64, 0u64);
    while started.elapsed() < limit {
        let text = print_module(&random_module(rng.bits(), &options));
        let other = print_module(&random_module(rng.bits(), &options));
        for _ in 0..20 {
            let mutated = mutate(&mut rng, text.as_bytes(), other.as_bytes(), &[PIECES]);
            valid += u64::from(check(&String::from_utf8_lossy(&mutated)));
            texts += 1;
        }
    }
    println!("{texts} texts, {valid} of them valid");
    assert!(texts > 0);
}
