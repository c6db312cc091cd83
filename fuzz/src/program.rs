//! A random program, and running it.

use ptxc_interp::launch::{Buffer, Failure, Launch, Options, Outcome};
use ptxc_interp::{ir, ptx};
use ptxc_ir::Module;

use crate::features::Features;

/// Targets that programs are compiled for: what they need of the machine differs.
pub const TARGETS: &[&str] = &["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "sm_70", "sm_100a", "sm_120f"];

/// Most steps of a program, counted per warp.
pub const STEPS: u64 = 50_000;
/// Most steps of what the compiler makes of one: a division of 128 bits is a loop. More is taken for a loop without end.
pub const MOST_STEPS: u64 = 10_000_000;

/// A program with a defined result: what its buffers hold after the launch.
#[derive(Clone)]
pub struct Program {
    /// The seed it was made from.
    pub seed: u64,
    /// What it was allowed to hold.
    pub features: Features,
    /// One kernel, and what it needs.
    pub module: Module,
    /// The launch.
    pub launch: Launch,
    /// The buffers of the launch.
    pub buffers: Vec<Buffer>,
    /// What it is compiled for.
    pub target: &'static str,
}

/// How an execution ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The buffers afterwards.
    Finished(Vec<Buffer>),
    /// It took too many steps: nothing is known.
    TooLong,
    /// The emulator does not know this instruction.
    NotExecuted(String),
    /// An error of the program: undefined behaviour, or something that is not interpreted.
    Failed(String),
}

fn limits(steps: u64) -> Options {
    Options { step_limit: steps, ..Options::default() }
}

/// Interprets a module on the program's launch and buffers, for at most so many steps.
pub fn interpret(module: &Module, launch: &Launch, buffers: &[Buffer], steps: u64) -> Ending {
    let mut buffers = buffers.to_vec();
    let result = ir::run(module, launch, &mut buffers, &limits(steps));
    if let Ok(outcome) = &result {
        if let Some(warning) = outcome.warnings.first() {
            return Ending::Failed(warning.clone());
        }
        if let Some((index, range)) = outcome.poison.first() {
            let name = buffers.get(*index).map_or("", |b| b.name.as_str());
            return Ending::Failed(format!("poison at byte {:#x} of `{name}`", range.start));
        }
    }
    ending(result, buffers)
}

/// Emulates PTX text on the program's launch and buffers. Reading what was never written is no fault here: padding is
/// copied with what is around it.
pub fn emulate(text: &str, launch: &Launch, buffers: &[Buffer]) -> Ending {
    let mut buffers = buffers.to_vec();
    match ptx::Program::read(text) {
        Ok(program) => ending(ptx::run(&program, launch, &mut buffers, &limits(MOST_STEPS)), buffers),
        Err(error) => Ending::Failed(format!("the emulator does not read the PTX: {error}")),
    }
}

fn ending(result: Result<Outcome, Failure>, buffers: Vec<Buffer>) -> Ending {
    let Err(failure) = result else { return Ending::Finished(buffers) };
    let message = &failure.message;
    if message.starts_with("more than") && message.ends_with("steps") {
        return Ending::TooLong;
    }
    if message.contains("is not executed") || message.contains("is not interpreted") {
        return Ending::NotExecuted(message.clone());
    }
    Ending::Failed(failure.to_string())
}

/// The first difference of two sets of buffers, in words.
pub fn difference(expected: &[Buffer], actual: &[Buffer]) -> Option<String> {
    for (expected, actual) in expected.iter().zip(actual) {
        let same = expected.bytes.iter().zip(&actual.bytes).take_while(|(a, b)| a == b).count();
        if same < expected.bytes.len().max(actual.bytes.len()) {
            let part = |bytes: &[u8]| {
                let start = same & !3;
                bytes.get(start..bytes.len().min(start + 16)).unwrap_or(&[]).to_vec()
            };
            return Some(format!(
                "byte {same:#x} of `{}`: expected {:02x?}, found {:02x?}",
                expected.name,
                part(&expected.bytes),
                part(&actual.bytes)
            ));
        }
    }
    None
}
