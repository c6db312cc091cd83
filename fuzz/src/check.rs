//! Does what the compiler makes of a program do what the program does? And if not, since which step?

use std::panic::{AssertUnwindSafe, catch_unwind};

use ptxc_interp::launch::Buffer;
use ptxc_ir::Module;
use ptxc_targets::Target;

use crate::program::{Ending, Program, difference, interpret};
use crate::steps;

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All agree.
    Agree,
    /// The program took too many steps: nothing is known.
    TooLong,
    /// The program is not defined: a fault of the generator, or of the interpreter.
    Undefined(String),
    /// Something is wrong with the compiler.
    Wrong(Finding),
}

/// A fault of the compiler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The steps that were run, up to the first after which the result differs.
    pub steps: Vec<String>,
    /// Difference, error or panic.
    pub what: String,
}

impl Finding {
    /// Both are different results, or both the same error in the same step.
    pub fn is_like(&self, other: &Finding) -> bool {
        // Errors name values and places in quotes and after colons.
        let kind = |what: &str| what.split([':', '`', '@']).next().unwrap_or("").trim_end_matches(char::is_numeric).to_string();
        let different = |what: &str| what.starts_with("byte ");
        self.steps.last() == other.steps.last()
            && match (different(&self.what), different(&other.what)) {
                (true, true) => true,
                (false, false) => {
                    kind(&self.what) == kind(&other.what) && self.what.starts_with("panic") == other.what.starts_with("panic")
                }
                _ => false,
            }
    }
}

/// The words of a panic.
pub fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|s| (*s).to_string());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    format!("panic: {}", text.unwrap_or_default())
}

/// Applies a step; a panic is an error.
fn apply(module: &mut Module, step: &str, target: Target) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| steps::apply(module, step, target)))
        .unwrap_or_else(|payload| Err(panic_text(payload.as_ref())))
}

/// What is wrong with the result of a module, compared to what is expected.
fn compare(program: &Program, module: &Module, expected: &[Buffer]) -> Option<String> {
    match interpret(module, &program.launch, &program.buffers) {
        Ending::Finished(actual) => difference(expected, &actual),
        // Passes may make it slower, but nothing is known.
        Ending::TooLong => None,
        Ending::Failed(error) => Some(error),
    }
}

/// Runs a list of steps and compares after the last, or after each when `each`.
fn run_list(program: &Program, list: &[&str], expected: &[Buffer], target: Target, each: bool) -> Option<Finding> {
    let mut module = program.module.clone();
    for (index, step) in list.iter().enumerate() {
        let finding = |what| {
            let steps = list.iter().take(index + 1).map(|s| (*s).to_string()).collect();
            Some(Finding { steps, what })
        };
        if let Err(error) = apply(&mut module, step, target) {
            return finding(error);
        }
        if (each || index + 1 == list.len())
            && let Some(what) = compare(program, &module, expected)
        {
            return finding(what);
        }
    }
    None
}

/// Interprets the program and compares with what it does after lists of steps.
pub fn check<'s>(program: &Program, lists: &[impl AsRef<[&'s str]>]) -> Verdict {
    let faults = ptxc_ir::verify_module(&program.module);
    if let Some(fault) = faults.iter().find(|f| f.severity == ptxc_ir::Severity::Error) {
        return Verdict::Undefined(format!("the verifier refuses the program: {}", fault.message));
    }
    let Ok(target) = program.target.parse::<Target>() else {
        return Verdict::Undefined(format!("there is no target {}", program.target));
    };
    let expected = match interpret(&program.module, &program.launch, &program.buffers) {
        Ending::Finished(buffers) => buffers,
        Ending::TooLong => return Verdict::TooLong,
        Ending::Failed(error) => return Verdict::Undefined(error),
    };
    for list in lists {
        if let Some(finding) = run_list(program, list.as_ref(), &expected, target, false) {
            // Once more, for the first step that is to blame.
            let first = run_list(program, list.as_ref(), &expected, target, true);
            return Verdict::Wrong(first.unwrap_or(finding));
        }
    }
    Verdict::Agree
}
