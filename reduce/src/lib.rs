//! Makes a module smaller while something stays true of it.
//!
//! [`reduce`] tries changes, each of which leaves a module that the verifier takes, and keeps those after which the test
//! still holds: functions and globals go, branches become jumps, runs of instructions become zeros (large runs first),
//! results become operands, operands become constants, parameters, flags and attributes go. It ends when nothing more
//! can be changed. The order of trials depends on the module only.

mod blocks;
mod functions;
mod instructions;
mod simplify;

use ptxc_ir::{FuncId, Function, Module, has_errors, print_module, read_module, verify_module};

/// Limits and choices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Most tests.
    pub tests: usize,
    /// Kernels keep their parameters.
    pub keep_kernels: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { tests: 20_000, keep_kernels: false }
    }
}

/// What was done.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Summary {
    /// Tests that were made.
    pub tests: usize,
    /// Of these, those that held.
    pub kept: usize,
}

/// The module so far, and the test.
struct Reduction<'t> {
    module: Module,
    options: Options,
    summary: Summary,
    test: &'t mut dyn FnMut(&Module) -> bool,
}

impl Reduction<'_> {
    /// Keeps a changed module if it is valid and the test holds.
    fn offer(&mut self, candidate: Module) -> bool {
        if self.summary.tests >= self.options.tests || has_errors(&verify_module(&candidate)) {
            return false;
        }
        self.summary.tests += 1;
        if !(self.test)(&candidate) {
            return false;
        }
        self.summary.kept += 1;
        self.module = candidate;
        true
    }

    /// Tries a change of the module; `change` says whether there is any.
    fn attempt(&mut self, change: impl FnOnce(&mut Module) -> bool) -> bool {
        let mut candidate = self.module.clone();
        change(&mut candidate) && self.offer(candidate)
    }

    /// Tries a change of one function.
    fn attempt_in(&mut self, id: FuncId, change: impl FnOnce(&mut Function) -> bool) -> bool {
        self.attempt(|module| change(&mut module.funcs[id]))
    }

    /// Functions with a body.
    fn bodies(&self) -> Vec<FuncId> {
        self.module.func_ids().filter(|id| !self.module.funcs[*id].is_declaration()).collect()
    }

    /// Leaves behind what is no longer referred to.
    fn compact(&mut self) {
        if let Ok(module) = read_module(&print_module(&self.module)) {
            self.module = module;
        }
    }

    fn round(&mut self) {
        self.remove_functions();
        self.simplify_terminators();
        self.remove_instructions();
        self.merge_blocks();
        self.remove_block_params();
        self.replace_results();
        self.replace_operands();
        self.remove_params();
        self.remove_flags();
        self.remove_attributes();
        self.remove_globals();
    }
}

/// Reduces a module for which the test holds. The result is one for which it holds as well.
pub fn reduce(module: &Module, options: &Options, test: &mut dyn FnMut(&Module) -> bool) -> (Module, Summary) {
    let mut reduction =
        Reduction { module: module.clone(), options: options.clone(), summary: Summary::default(), test };
    loop {
        let before = reduction.summary.kept;
        reduction.round();
        let done = reduction.summary.kept == before || reduction.summary.tests >= options.tests;
        reduction.compact();
        if done {
            return (reduction.module, reduction.summary);
        }
    }
}
