//! Faults that the IR verifier finds, as diagnostics with their place in the text.

use ptxc_ir::{Module, SpanMap};

use crate::diagnostics::Diagnostic;

/// Verifies a module. With the spans of the text that it was read from, diagnostics point there.
pub fn verify(module: &Module, spans: Option<&SpanMap>) -> Vec<Diagnostic> {
    let _ = (module, spans);
    Vec::new()
}
