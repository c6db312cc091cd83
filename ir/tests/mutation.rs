//! Mutated text: reader, verifier and printer neither panic nor disagree.
//!
//! Two seconds in a normal run; `PTXC_FUZZ_SECONDS=600 cargo test -p ptxc-ir --release --test mutation` for longer, and
//! `PTXC_FUZZ_SEED` for another start.

use std::time::{Duration, Instant};

use ptxc_ir::testing::{Options, Rng, random_module};
use ptxc_ir::{has_errors, print_module, read_module, verify_module};

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Pieces that mean something somewhere.
const PIECES: &[&str] = &[
    "%",
    "@",
    "\"",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ",",
    ":",
    "=",
    "->",
    "-",
    "+",
    "!",
    "|",
    ";",
    "\n",
    " ",
    "\\",
    "i32",
    "i1",
    "i129",
    "ptr",
    "ptr<",
    "<4 x i32>",
    "{ i8, i64 }",
    "0",
    "-1",
    "1e999",
    "0x",
    "0f7FC00000",
    "nan",
    "poison",
    "zero",
    "splat(",
    "true",
    "99999999999999999999999999999999999999999",
    "align 4",
    "scope(cta)",
    "loc(1, 1, 1)",
    "ptx.",
    "ptx.@",
    "add",
    "br",
    "switch",
    "call",
    "ret",
    "gep",
    "load",
    "sreg.tid.x",
    "kernel @x(",
    "func",
    "declare",
    "type %T =",
    "global @g:",
    "byval(",
    "é",
    "\u{0}",
    "::",
    "L2::128B",
    "_",
    "..",
    "$",
    "block0",
    "unroll(4)",
    "0h",
    "asm",
    "weak",
];

/// Changes one to four places.
fn mutate(rng: &mut Rng, text: &str, other: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..1 + rng.below(4) {
        let at = rng.below(bytes.len() + 1);
        let end = (at + rng.below(12)).min(bytes.len());
        match rng.below(7) {
            0 => drop(bytes.drain(at..end)),
            1 => {
                let copy = bytes[at..end].to_vec();
                let to = rng.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            2 => {
                let from = rng.below(other.len());
                let piece = other.as_bytes()[from..(from + rng.below(40)).min(other.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            3 => {
                let lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
                let mut lines: Vec<Vec<u8>> = lines.into_iter().map(<[u8]>::to_vec).collect();
                let (a, b) = (rng.below(lines.len()), rng.below(lines.len()));
                lines.swap(a, b);
                bytes = lines.concat();
            }
            4 if at < bytes.len() => bytes[at] = rng.bits() as u8,
            _ => {
                let piece = rng.pick(PIECES).copied().unwrap_or("");
                bytes.splice(at..if rng.once_in(2) { at } else { end }, piece.bytes());
            }
        }
        if bytes.is_empty() {
            bytes.push(b'\n');
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
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
            let mutated = mutate(&mut rng, &text, &other);
            valid += u64::from(check(&mutated));
            texts += 1;
        }
    }
    println!("{texts} texts, {valid} of them valid");
    assert!(texts > 0);
}
