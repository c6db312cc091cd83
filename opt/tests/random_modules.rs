//! Every pass leaves random valid modules valid and free of aliases, says truthfully that it is done, and gives the
//! same result twice.
#![cfg(test)]

use cranelift_entity::PrimaryMap;
use ptxc_ir::testing::{Options, random_module};
use ptxc_ir::{FuncAttrs, FuncId, Module, has_errors, print_module, verify_module};

/// Runs one pass over all bodies; tells whether it changed anything.
fn apply(module: &mut Module, pass: &ptxc_opt::Pass) -> bool {
    let attrs: PrimaryMap<FuncId, FuncAttrs> = module.funcs.values().map(|func| func.attrs.clone()).collect();
    let mut funcs = std::mem::take(&mut module.funcs);
    let context = ptxc_opt::Context::new(module, &attrs);
    let mut changed = false;
    for func in funcs.values_mut().filter(|func| !func.is_declaration()) {
        changed |= (pass.run)(func, &context);
    }
    module.funcs = funcs;
    changed
}

fn assert_valid(module: &Module, seed: u64, passes: &str) {
    let faults = verify_module(module);
    assert!(!has_errors(&faults), "seed {seed} after {passes}: {faults:?}\n{}", print_module(module));
}

#[test]
fn passes_keep_random_modules_valid() {
    for seed in 0..150 {
        let module = random_module(seed, &Options::default());
        for pass in ptxc_opt::PASSES {
            let mut changed_module = module.clone();
            let changed = apply(&mut changed_module, pass);
            assert_valid(&changed_module, seed, pass.name);
            if !changed {
                assert_eq!(print_module(&changed_module), print_module(&module), "seed {seed}: {} lies", pass.name);
            }
            let mut again = module.clone();
            apply(&mut again, pass);
            assert_eq!(print_module(&again), print_module(&changed_module), "seed {seed}: {} differs", pass.name);
        }
        for pass in ptxc_opt::MODULE_PASSES {
            let (mut changed_module, mut again) = (module.clone(), module.clone());
            let changed = (pass.run)(&mut changed_module);
            assert_valid(&changed_module, seed, pass.name);
            if !changed {
                assert_eq!(print_module(&changed_module), print_module(&module), "seed {seed}: {} lies", pass.name);
            }
            (pass.run)(&mut again);
            assert_eq!(print_module(&again), print_module(&changed_module), "seed {seed}: {} differs", pass.name);
        }
    }
}

#[test]
fn passes_in_any_order_settle() {
    for seed in 0..150 {
        let mut module = random_module(seed, &Options::default());
        let mut done = String::new();
        // Each order of the passes that the seed selects, until nothing changes.
        for round in 0.. {
            assert!(round < 50, "seed {seed} does not settle: {done}");
            let mut changed = false;
            for index in 0..ptxc_opt::PASSES.len() {
                let pass =
                    &ptxc_opt::PASSES[(index * (1 + seed as usize % 4) + seed as usize) % ptxc_opt::PASSES.len()];
                changed |= apply(&mut module, pass);
                done.push_str(pass.name);
                done.push(' ');
                assert_valid(&module, seed, &done);
            }
            if !changed {
                break;
            }
        }
    }
}
