//! Random well-formed modules through legalization and selection: every one is either refused with a place and a
//! reason or becomes machine IR that the verifier accepts and register assignment takes.

use std::collections::BTreeMap;

use ptxc_emit::EmitError;
use ptxc_ir::testing::{Options, random_module};
use ptxc_targets::Target;
use ptxc_test_support::{Job, assemble_all};

const TARGETS: [&str; 5] = ["sm_60", "sm_75", "sm_80", "sm_90", "sm_100a"];

/// Compiles one module to PTX. Gives the refusals, and panics at what is wrong.
fn compile(seed: u64, target: Target) -> Result<String, Vec<String>> {
    let mut module = random_module(seed, &Options::default());
    let said = |errors: Vec<ptxc_isel::SelectError>| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
    if let Err(errors) = ptxc_isel::legalize(&mut module, target, None) {
        return Err(said(errors));
    }
    let faults: Vec<String> = ptxc_ir::verify_module(&module)
        .iter()
        .filter(|e| e.severity == ptxc_ir::Severity::Error)
        .map(|e| e.message.clone())
        .collect();
    assert!(faults.is_empty(), "seed {seed}, {target}: legal IR is wrong: {faults:?}");
    let mut machine = match ptxc_isel::select(&module, target, &ptxc_isel::Options::default()) {
        Ok(machine) => machine,
        Err(errors) => return Err(said(errors)),
    };
    let kinds = ptxc_regalloc::Kinds::new(&machine.opcodes);
    for func in &mut machine.functions {
        let name = machine.symbols.name(func.name).to_owned();
        if let Err(errors) = ptxc_mir::verify(func) {
            panic!("seed {seed}, {target}, @{name}: {errors:?}\n{}", ptxc_ir::print_module(&module));
        }
        ptxc_regalloc::run(func, &kinds).unwrap_or_else(|e| panic!("seed {seed}, {target}, @{name}: {e}"));
    }
    let strict = ptxc_emit::EmitOptions { strict: true, ..ptxc_emit::EmitOptions::default() };
    match ptxc_emit::emit_module(&machine, &strict) {
        Ok(ptx) => Ok(ptx),
        // A target operation may be written on operands that its form does not take.
        Err(error @ EmitError::Form { .. }) if ptxc_ir::print_module(&module).contains("ptx.") => {
            Err(vec![error.to_string()])
        }
        Err(error @ (EmitError::Form { .. } | EmitError::Internal(_))) => panic!("seed {seed}, {target}: {error}"),
        Err(error) => Err(vec![error.to_string()]),
    }
}

#[test]
fn random_modules_are_selected_or_refused() {
    let count: u64 = std::env::var("PTXC_RANDOM_MODULES").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    let mut refusals: BTreeMap<String, u32> = BTreeMap::new();
    let mut jobs = Vec::new();
    for seed in 0..count {
        let target: Target = TARGETS[seed as usize % TARGETS.len()].parse().expect("a target of the table");
        match compile(seed, target) {
            Ok(ptx) => jobs.push(Job { name: format!("seed {seed}"), target, ptx }),
            Err(list) => {
                for refusal in list {
                    let reason = refusal.split_once(": ").map_or(refusal.clone(), |(_, reason)| reason.to_owned());
                    *refusals.entry(reason).or_default() += 1;
                }
            }
        }
    }
    println!("{} of {count} modules are for the target", jobs.len());
    for (reason, count) in refusals {
        println!("{count:6} {reason}");
    }
    // ptxas itself fails on a 16-bit compare-and-swap at a constant address, which random modules have; and random launch
    // bounds leave callees too few registers.
    let accepted = ["Internal compiler error", "ptxas crashed", "with max regcount"];
    let its_own = |failure: &String| accepted.iter().any(|reason| failure.contains(reason));
    let failures: Vec<String> = assemble_all(&jobs).into_iter().filter(|f| !its_own(f)).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
