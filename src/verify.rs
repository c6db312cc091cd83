//! Faults that the IR verifier finds, as diagnostics with their place in the text.

use ptxc_ir::{Module, Place, SpanMap, VerifyError};

use crate::diagnostics::{Diagnostic, Severity};

/// Verifies a module. With the spans of the text that it was read from, diagnostics point there.
pub fn verify(module: &Module, spans: Option<&SpanMap>) -> Vec<Diagnostic> {
    ptxc_ir::verify_module(module).iter().map(|error| diagnostic(module, spans, error)).collect()
}

fn diagnostic(module: &Module, spans: Option<&SpanMap>, error: &VerifyError) -> Diagnostic {
    let span = spans.map(|spans| error.span(spans)).filter(|span| !span.is_empty());
    let severity = match error.severity {
        ptxc_ir::Severity::Error => Severity::Error,
        ptxc_ir::Severity::Warning => Severity::Warning,
    };
    // Where there is no text to point to, the name has to do.
    let message = match (&span, error.func.and_then(|func| module.funcs.get(func)), error.place) {
        (Some(_), _, _) => error.message.clone(),
        (None, Some(func), _) => format!("in @{}: {}", func.name, error.message),
        (None, None, Place::Global(global)) => match module.globals.get(global) {
            Some(global) => format!("in @{}: {}", global.name, error.message),
            None => error.message.clone(),
        },
        (None, None, _) => error.message.clone(),
    };
    Diagnostic { severity, ..Diagnostic::error(message) }.at(span)
}
