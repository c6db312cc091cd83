//! The executors that need no machine.

use ptxc_interp::launch::{Argument, Buffer, Failure, Launch, Options, Outcome};
use ptxc_interp::ptx;
use ptxc_ir::Module;

use crate::Executor;

/// The interpreter of the IR.
#[derive(Clone)]
pub struct Interpreter {
    /// What is interpreted.
    pub module: Module,
    /// Limits and choices.
    pub options: Options,
}

impl Interpreter {
    /// An interpreter with the default options.
    pub fn new(module: Module) -> Interpreter {
        Interpreter { module, options: Options::default() }
    }
}

impl Executor for Interpreter {
    fn run(&self, launches: &[Launch], buffers: &mut [Buffer]) -> Result<Outcome, Failure> {
        one_by_one(launches, buffers, |launch, buffers| {
            ptxc_interp::ir::run(&self.module, launch, buffers, &self.options)
        })
    }
}

/// The emulator of PTX.
pub struct Emulator {
    /// What is executed.
    pub program: ptx::Program,
    /// Limits and choices.
    pub options: Options,
}

impl Emulator {
    /// An emulator with the default options.
    pub fn new(program: ptx::Program) -> Emulator {
        Emulator { program, options: Options::default() }
    }
}

impl Executor for Emulator {
    fn run(&self, launches: &[Launch], buffers: &mut [Buffer]) -> Result<Outcome, Failure> {
        one_by_one(launches, buffers, |launch, buffers| ptx::run(&self.program, launch, buffers, &self.options))
    }
}

/// Runs launches one after the other. What the first has written is initialized for the next: buffers do not remember
/// which bytes were.
fn one_by_one(
    launches: &[Launch],
    buffers: &mut [Buffer],
    run: impl Fn(&Launch, &mut [Buffer]) -> Result<Outcome, Failure>,
) -> Result<Outcome, Failure> {
    let mut total = Outcome::default();
    for launch in launches {
        let outcome = run(launch, buffers)?;
        total.steps += outcome.steps;
        total.lane_steps += outcome.lane_steps;
        total.warnings.extend(outcome.warnings);
        let passed = |index: usize| {
            launch
                .arguments
                .iter()
                .any(|argument| matches!(argument, Argument::Buffer { index: used, .. } if *used == index))
        };
        for (index, buffer) in buffers.iter_mut().enumerate() {
            buffer.uninitialized &= !passed(index);
        }
    }
    Ok(total)
}
