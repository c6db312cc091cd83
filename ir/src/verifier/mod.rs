//! Is a module valid? Every rule has a [`Rule`], and every error names the rule it breaks.
//!
//! Decides what the language allows on every target. What one target lacks is for selection to say. Works on modules
//! however they were made and never panics on them: structure is checked before anything that relies on it.

mod convergence;
mod functions;
mod globals;
mod instructions;
mod memory;
mod operands;
mod promises;
mod rules;
mod structure;
mod target;

use std::fmt;
use std::ops::Range;

pub use instructions::{converts, in_set};
pub use rules::Rule;

use crate::entities::{Block, FuncId, GlobalId, Inst};
use crate::module::{Function, Module};
use crate::reader::SpanMap;

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// Legal, but likely a mistake.
    Warning,
    /// Not legal: later stages may rely on its absence.
    Error,
}

/// What an error is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// The function as a whole: signature, attributes.
    Func,
    /// A block of the function.
    Block(Block),
    /// An instruction of the function.
    Inst(Inst),
    /// A global.
    Global(GlobalId),
}

/// A broken rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifyError {
    /// The rule.
    pub rule: Rule,
    /// The function it is in; `None` for globals and functions outside a module.
    pub func: Option<FuncId>,
    /// What in it.
    pub place: Place,
    /// One line that says what is wrong, without the place.
    pub message: String,
    /// Error or warning.
    pub severity: Severity,
}

impl VerifyError {
    /// Where the text says it, for a module that was read with spans; empty at 0 when it does not say it.
    pub fn span(&self, spans: &SpanMap) -> Range<usize> {
        match (self.place, self.func) {
            (Place::Global(global), _) => spans.global(global),
            (_, None) => 0..0,
            (Place::Func, Some(func)) => spans.func(func).name.clone(),
            (Place::Block(block), Some(func)) => spans.func(func).block(block),
            (Place::Inst(inst), Some(func)) => spans.func(func).inst(inst),
        }
    }
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// A rule broken, and how.
struct Broken {
    rule: Rule,
    message: String,
}

/// The result of checking one thing.
type Checked = Result<(), Box<Broken>>;

/// The error of breaking `rule`.
fn fail(rule: Rule, message: impl Into<String>) -> Checked {
    Err(Box::new(Broken { rule, message: message.into() }))
}

/// Fails unless `holds`; the message is made only then.
fn require(holds: bool, rule: Rule, message: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { fail(rule, message()) }
}

/// Collects errors of one function or of the globals.
struct Report<'e> {
    func: Option<FuncId>,
    errors: &'e mut Vec<VerifyError>,
}

impl Report<'_> {
    fn add(&mut self, place: Place, checked: Checked) {
        if let Err(broken) = checked {
            let Broken { rule, message } = *broken;
            let severity = rule.severity();
            let message = crate::reader::one_line(message);
            self.errors.push(VerifyError { rule, func: self.func, place, message, severity });
        }
    }
}

/// Checks everything. The result is empty for a valid module; warnings do not make it invalid.
pub fn verify_module(module: &Module) -> Vec<VerifyError> {
    let mut errors = Vec::new();
    let mut report = Report { func: None, errors: &mut errors };
    for (id, global) in &module.globals {
        report.add(Place::Global(id), globals::check(module, global));
    }
    for (id, func) in &module.funcs {
        report.func = Some(id);
        verify_into(module, func, &mut report);
    }
    errors
}

/// Checks one function against the module whose types and symbols it uses.
pub fn verify_function(module: &Module, id: FuncId) -> Vec<VerifyError> {
    let mut errors = Vec::new();
    if let Some(func) = module.funcs.get(id) {
        verify_into(module, func, &mut Report { func: Some(id), errors: &mut errors });
    }
    errors
}

/// The errors among the results of [`verify_module`], without the warnings.
pub fn has_errors(errors: &[VerifyError]) -> bool {
    errors.iter().any(|e| e.severity == Severity::Error)
}

fn verify_into(module: &Module, func: &Function, report: &mut Report) {
    let before = report.errors.len();
    functions::check(module, func, report);
    if func.is_declaration() || has_errors(&report.errors[before..]) {
        return;
    }
    if !structure::check(module, func, report) {
        return;
    }
    for block in func.layout.blocks() {
        for inst in func.layout.insts(block) {
            instructions::check(module, func, inst, report);
        }
    }
    structure::check_dominance(func, report);
    if !has_errors(&report.errors[before..]) {
        promises::check(module, func, report);
        convergence::check(module, func, report);
    }
}
