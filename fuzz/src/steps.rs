//! The steps between a module and its PTX, one at a time.

use cranelift_entity::PrimaryMap;
use ptxc::pipeline::{self, IrStep};
use ptxc::{Compiler, OptLevel, Options, Schedule};
use ptxc_ir::testing::Rng;
use ptxc_ir::{FuncAttrs, FuncId, Module, has_errors, verify_module};
use ptxc_targets::Target;

/// The name of everything after legalization: selection, registers and printing.
pub const PTX: &str = "ptx";
/// The same with instructions in some order that their dependences allow; a name's number is the seed of the order.
pub const RANDOM: [&str; 8] = [
    "ptx-random-1",
    "ptx-random-2",
    "ptx-random-3",
    "ptx-random-4",
    "ptx-random-5",
    "ptx-random-6",
    "ptx-random-7",
    "ptx-random-8",
];

/// How the step orders instructions, when it is one that ends with PTX.
pub fn schedule(step: &str) -> Option<Schedule> {
    if step == PTX {
        return Some(Schedule::Level);
    }
    RANDOM.iter().position(|name| *name == step).map(|index| Schedule::Random(index as u64 + 1))
}

/// Compiles a module with these steps of the IR; steps that end with PTX are left out.
///
/// # Errors
/// What the compiler says.
pub fn compile(module: &Module, list: &[&str], schedule: Schedule, target: Target) -> Result<String, String> {
    let passes = list.iter().filter(|step| self::schedule(step).is_none()).map(|step| (*step).to_string());
    let options = Options { passes: Some(passes.collect()), schedule, ..Options::new(target) };
    let output = Compiler::new(target).options(options).compile(module);
    output.map(|output| output.text).map_err(|diagnostics| diagnostics.to_string())
}

/// Applies one step of the IR to a module.
///
/// # Errors
/// The step is not known, refuses the module, or makes one that the verifier refuses.
pub fn apply(module: &mut Module, step: &str, target: Target) -> Result<(), String> {
    match IrStep::find(step) {
        Some(IrStep::Pass(pass)) => {
            let mut funcs = std::mem::take(&mut module.funcs);
            let attrs: PrimaryMap<FuncId, FuncAttrs> = funcs.values().map(|f| f.attrs.clone()).collect();
            let has_operation = |op, flags, ty| ptxc_isel::legalize::has_operation(target, None, op, flags, ty);
            let context = ptxc_opt::Context { has_operation: &has_operation, ..ptxc_opt::Context::new(module, &attrs) };
            for func in funcs.values_mut().filter(|f| !f.is_declaration()) {
                (pass.run)(func, &context);
            }
            module.funcs = funcs;
        }
        Some(IrStep::ModulePass(pass)) => {
            (pass.run)(module);
        }
        Some(IrStep::Legalize) => ptxc_isel::legalize(module, target, None)
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?,
        None => return Err(format!("there is no step `{step}`")),
    }
    let faults = verify_module(module);
    if has_errors(&faults) {
        let fault = faults.iter().find(|f| f.severity == ptxc_ir::Severity::Error);
        return Err(format!("`{step}` makes wrong IR: {}", fault.map_or("", |f| f.message.as_str())));
    }
    Ok(())
}

/// Lists of steps that a seed is checked with, each ending with legalization and PTX: of the highest level, and for some
/// seeds of none, of the lowest, and random ones. Each list ends with so many random orders of instructions.
pub fn lists(seed: u64, schedules: usize) -> Vec<Vec<&'static str>> {
    let mut rng = Rng::new(seed ^ 0x73_7465_7073);
    let functions = ptxc_opt::PASSES.iter().map(|pass| pass.name);
    let all: Vec<&str> = functions.chain(ptxc_opt::MODULE_PASSES.iter().map(|pass| pass.name)).collect();
    let random: Vec<&str> = (0..1 + rng.below(10)).filter_map(|_| rng.pick(&all)).copied().collect();
    let mut lists = vec![pipeline::names(OptLevel::O3).to_vec()];
    lists.push(match seed % 4 {
        0 | 2 => pipeline::names(OptLevel::O0).to_vec(),
        1 => pipeline::names(OptLevel::O1).to_vec(),
        _ => random,
    });
    for list in &mut lists {
        list.extend([pipeline::LEGALIZE, PTX]);
        list.extend(RANDOM.iter().cycle().skip(seed as usize % RANDOM.len()).take(schedules.min(RANDOM.len())));
    }
    lists
}
