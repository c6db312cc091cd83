//! Damaged text is refused, or read and translated, never answered by a panic.
//!
//! `PTXC_MUTATION_SECONDS` lets it run longer than the moment it takes by default.

use std::time::{Duration, Instant};

use ptxc_ir::testing::Rng;
use ptxc_ir::testing::mutation::mutate;
use ptxc_llvm::model::Module;

/// Text with something of everything.
const SEEDS: &[&str] = &[
    include_str!("inputs/everything.ll"),
    "%T = type { i32, %T* }\n@g = global %T* null\ndefine void @f(%T* byval %p, i8 addrspace(3)* %q) {\n  \
     %a = getelementptr %T, %T* %p, i64 0, i32 1\n  %b = load %T*, %T** %a, align 8\n  ret void\n}\n",
];

/// Pieces that are put in.
const PIECES: &[&str] = &[
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    ",",
    "=",
    "*",
    "!",
    "#",
    "%",
    "@",
    "$",
    "\"",
    ":",
    "-",
    "0",
    "i32",
    "ptr",
    "label",
    "metadata",
    "undef",
    "zeroinitializer",
    "4294967296",
    "99999999999999999999",
    "0x",
    "0xH",
    "f0x",
    "nan(",
    "getelementptr",
    "c\"",
    "!{",
    "!DILocation(",
    "asm",
    "blockaddress(",
    "splat (",
    "vscale x",
    "addrspace(3)",
    "i8388607",
    "[4294967295 x i8]",
    "<4294967295 x i8>",
    "\0",
    "\u{80}",
    "define void @",
    "distinct",
    "align 3",
];

#[test]
fn damaged_text() {
    let seconds = std::env::var("PTXC_MUTATION_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let end = Instant::now() + Duration::from_secs(seconds);
    for seed in SEEDS {
        let result = ptxc_llvm::text::read(seed.as_bytes(), &mut Module::new());
        assert!(result.is_ok(), "a seed is wrong: {result:?}");
    }
    let mut number = 0u64;
    while Instant::now() < end {
        number += 1;
        let mut rng = Rng::new(number);
        let (at, other) = (rng.below(SEEDS.len()), rng.below(SEEDS.len()));
        let text = mutate(&mut rng, SEEDS[at].as_bytes(), SEEDS[other].as_bytes(), &[PIECES]);
        let outcome = std::panic::catch_unwind(|| {
            let start = Instant::now();
            let mut module = Module::new();
            match ptxc_llvm::text::read(&text, &mut module) {
                Ok(()) => drop(ptxc_llvm::translate(&module, ptxc_llvm::Options::default())),
                Err(error) => assert!(error.at + error.len <= text.len(), "an error outside the text"),
            }
            assert!(start.elapsed() < Duration::from_secs(10), "reading takes too long");
        });
        assert!(outcome.is_ok(), "number {number}:\n{}", String::from_utf8_lossy(&text));
    }
    println!("{number} texts");
}
