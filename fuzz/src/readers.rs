//! Mutated text: what reads IR and PTX, and what comes after it, gives errors and never panics.

use std::time::{Duration, Instant};

use ptxc::{Compiler, OptLevel, Options};
use ptxc_interp::launch::Options as Limits;
use ptxc_interp::{ir, ptx};
use ptxc_ir::testing::Rng;
use ptxc_ir::testing::mutation::{PIECES, mutate};
use ptxc_ir::{has_errors, print_module, read_module, verify_module};
use ptxc_targets::{Target, check_module};

use crate::check::caught;
use crate::features::Features;
use crate::generate::generate;
use crate::program::Program;
use crate::steps;

/// Pieces that mean something somewhere in PTX.
const PTX_PIECES: &[&str] = &[
    "//",
    "/*",
    "*/",
    ".reg",
    ".b32",
    ".pred",
    "%r<",
    ".param",
    ".entry",
    ".func",
    ".visible",
    ".shared",
    ".align",
    ".version",
    ".target",
    "ld.param",
    "mov.b64",
    "@!",
    "bra",
    ".loc 1",
    "setp.",
    ".v4",
    "{%r1, %r2}",
    "_",
    "generic(",
    ".branchtargets",
    "0d",
];

/// A text with some changes.
fn mutant(rng: &mut Rng, text: &str, other: &str) -> String {
    let bytes = mutate(rng, text.as_bytes(), other.as_bytes(), &[PIECES, PTX_PIECES]);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Steps that a mutated program may take.
const STEPS: u64 = 20_000;

fn limits() -> Limits {
    Limits { step_limit: STEPS, races: false, ..Limits::default() }
}

/// Reads IR, and where it is valid, compiles and interprets it. Whether it was valid.
///
/// # Errors
/// Something panicked, or the compiler says that it failed.
pub fn check_ir(text: &str, program: &Program, target: Target) -> Result<bool, String> {
    let module = caught(|| Ok(read_module(text)))?;
    let Ok(module) = module else { return Ok(false) };
    if caught(|| Ok(has_errors(&verify_module(&module))))? {
        return Ok(false);
    }
    let printed = caught(|| Ok(print_module(&module)))?;
    if let Err(errors) = caught(|| Ok(read_module(&printed)))? {
        let first = errors.first().map(|e| e.with_position(&printed)).unwrap_or_default();
        return Err(format!("what is printed is not read: {first}"));
    }
    // Any ending will do.
    let _ = caught(|| Ok(ir::run(&module, &program.launch, &mut program.buffers.clone(), &limits())))?;
    for opt_level in [OptLevel::O0, OptLevel::O3] {
        let options = Options { opt_level, ..Options::new(target) };
        if let Err(diagnostics) = Compiler::new(target).options(options).compile(&module)
            && let Some(internal) = diagnostics.internal
        {
            return Err(internal.to_string());
        }
    }
    Ok(true)
}

/// Reads PTX, checks it for a target and emulates it. Whether it was valid.
///
/// # Errors
/// Something panicked.
pub fn check_ptx(text: &str, program: &Program, target: Target) -> Result<bool, String> {
    let valid = caught(|| Ok(check_module(text, target, 100).is_empty()))?;
    let read = caught(|| Ok(ptx::Program::read(text)))?;
    if let Ok(emulated) = read {
        let _ = caught(|| Ok(ptx::run(&emulated, &program.launch, &mut program.buffers.clone(), &limits())))?;
    }
    Ok(valid)
}

/// What a run over mutated texts came to.
#[derive(Clone, Default, Debug)]
pub struct Summary {
    /// Texts of IR and of PTX.
    pub texts: [u64; 2],
    /// Of these, valid ones.
    pub valid: [u64; 2],
    /// What panicked or failed, with the text.
    pub wrong: Vec<(String, String)>,
}

/// Mutates programs and their PTX until the time is up or ten texts are wrong.
pub fn run(seed: u64, limit: Duration) -> Summary {
    let mut rng = Rng::new(seed);
    let started = Instant::now();
    let mut summary = Summary::default();
    while started.elapsed() < limit && summary.wrong.len() < 10 {
        let seed = rng.bits();
        let program = generate(seed, &Features::for_seed(seed));
        let Ok(target) = program.target.parse::<Target>() else { continue };
        let text = print_module(&program.module);
        let compiled = caught(|| steps::compile(&program.module, &[], ptxc::Schedule::Off, target)).unwrap_or_default();
        for _ in 0..10 {
            let mutants = [mutant(&mut rng, &text, &compiled), mutant(&mut rng, &compiled, &text)];
            let results = [check_ir(&mutants[0], &program, target), check_ptx(&mutants[1], &program, target)];
            for (kind, (mutant, result)) in mutants.into_iter().zip(results).enumerate() {
                summary.texts[kind] += 1;
                match result {
                    Ok(valid) => summary.valid[kind] += u64::from(valid),
                    Err(what) => summary.wrong.push((what, mutant)),
                }
            }
        }
    }
    summary
}
