//! Does what the compiler makes of a program do what the program does? And if not, since which step?

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ptxc::pipeline;
use ptxc_interp::launch::Buffer;
use ptxc_targets::Target;

use crate::program::{Ending, MOST_STEPS, Program, STEPS, difference, emulate, interpret};
use crate::steps;

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All agree.
    Agree,
    /// All agree but the emulator, which does not know this instruction.
    NotExecuted(String),
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
        let panics = |what: &str| what.starts_with("panic");
        if panics(&self.what) || panics(&other.what) {
            return self.what == other.what;
        }
        let kind = |what: &str| {
            what.split([':', '`', '@']).next().unwrap_or("").trim_end_matches(char::is_numeric).to_string()
        };
        let different = |what: &str| what.starts_with("byte ");
        self.steps.last() == other.steps.last()
            && match (different(&self.what), different(&other.what)) {
                (true, true) => true,
                (false, false) => kind(&self.what) == kind(&other.what),
                _ => false,
            }
    }
}

thread_local! {
    /// Where this thread panicked last.
    static PLACE: Cell<Option<String>> = const { Cell::new(None) };
}

/// Makes panics silent: they are findings, whose text names their place.
pub fn keep_panics_quiet() {
    std::panic::set_hook(Box::new(|info| PLACE.set(info.location().map(ToString::to_string))));
}

/// The words of a panic.
fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|s| (*s).to_string());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
    match PLACE.take() {
        Some(place) => format!("panic at {place}: {text}"),
        None => format!("panic: {text}"),
    }
}

/// Does some work; a panic is an error.
///
/// # Errors
/// Those of the work, and its panics in words.
pub fn caught<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| Err(panic_text(payload.as_ref())))
}

/// What running a list of steps came to.
enum Outcome {
    Same,
    /// The emulator does not know an instruction.
    NotExecuted(String),
    Wrong(Finding),
}

/// Compares an ending with the buffers that are expected.
fn judge(ending: Ending, expected: &[Buffer]) -> Result<Option<String>, String> {
    match ending {
        Ending::Finished(actual) => difference(expected, &actual).map_or(Ok(None), Err),
        Ending::TooLong => Err(format!("no end after {MOST_STEPS} steps")),
        Ending::NotExecuted(what) => Ok(Some(what)),
        Ending::Failed(error) => Err(error),
    }
}

/// Runs a list of steps and compares after legalization and at the end, or after each step when `each`.
fn run_list(program: &Program, list: &[&str], expected: &[Buffer], target: Target, each: bool) -> Outcome {
    let mut module = program.module.clone();
    for (index, step) in list.iter().enumerate() {
        let last = index + 1 == list.len();
        let ended = if let Some(schedule) = steps::schedule(step) {
            caught(|| steps::compile(&program.module, list.get(..index).unwrap_or(&[]), schedule, target))
                .and_then(|text| caught(|| Ok(Some(emulate(&text, &program.launch, &program.buffers)))))
        } else {
            let compares = each || last || *step == pipeline::LEGALIZE;
            caught(|| steps::apply(&mut module, step, target)).and_then(|()| match compares {
                true => caught(|| Ok(Some(interpret(&module, &program.launch, &program.buffers, MOST_STEPS)))),
                false => Ok(None),
            })
        };
        match ended.and_then(|ending| ending.map_or(Ok(None), |ending| judge(ending, expected))) {
            Ok(None) => {}
            Ok(Some(what)) if steps::schedule(step).is_some() => return Outcome::NotExecuted(what),
            Ok(Some(what)) | Err(what) => {
                let steps = list.iter().take(index + 1).map(|s| (*s).to_string()).collect();
                return Outcome::Wrong(Finding { steps, what });
            }
        }
    }
    Outcome::Same
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
    let reference = caught(|| Ok(interpret(&program.module, &program.launch, &program.buffers, STEPS)));
    let expected = match reference.unwrap_or_else(Ending::Failed) {
        Ending::Finished(buffers) => buffers,
        Ending::TooLong => return Verdict::TooLong,
        Ending::NotExecuted(error) | Ending::Failed(error) => return Verdict::Undefined(error),
    };
    let mut missing = None;
    for list in lists {
        match run_list(program, list.as_ref(), &expected, target, false) {
            Outcome::Same => {}
            Outcome::NotExecuted(what) => missing = missing.or(Some(what)),
            Outcome::Wrong(finding) => {
                // Once more, for the first step that is to blame.
                return Verdict::Wrong(match run_list(program, list.as_ref(), &expected, target, true) {
                    Outcome::Wrong(first) => first,
                    _ => finding,
                });
            }
        }
    }
    missing.map_or(Verdict::Agree, Verdict::NotExecuted)
}
