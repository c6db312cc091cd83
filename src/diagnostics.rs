//! Errors and warnings as people see them: `file:line:col: error: …`, the source line, a caret.
//!
//! Decides how a diagnostic is written. What is wrong is decided where it is found.

use std::fmt::{self, Write as _};
use std::ops::Range;

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// Something that was done, for who wants to know.
    Remark,
    /// Compilation goes on.
    Warning,
    /// There is no output.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Remark => "remark",
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

/// One error, warning or remark.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, without a full stop.
    pub message: String,
    /// Where, as byte offsets into the source text.
    pub span: Option<Range<usize>>,
    /// Remarks that follow, each on its line.
    pub notes: Vec<String>,
}

impl Diagnostic {
    /// An error without place or notes.
    pub fn error(message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Error, message: message.into(), span: None, notes: Vec::new() }
    }

    /// A warning without place or notes.
    pub fn warning(message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(message) }
    }

    /// A remark without place or notes.
    pub fn remark(message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Remark, ..Diagnostic::error(message) }
    }

    /// The same at a place.
    #[must_use]
    pub fn at(mut self, span: Option<Range<usize>>) -> Diagnostic {
        self.span = span;
        self
    }

    /// The same with one more remark.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }
}

/// A fault of the compiler itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InternalError {
    /// The step that failed.
    pub step: String,
    /// The function it worked on, if it works on single functions.
    pub function: Option<String>,
    /// What it said.
    pub message: String,
}

impl fmt::Display for InternalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "internal error in {}", self.step)?;
        if let Some(function) = &self.function {
            write!(f, " of @{function}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Everything that one compilation has to say, with the text it speaks of.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Diagnostics {
    /// Name of the source, as messages spell it.
    pub source_name: String,
    /// The source text, for line numbers and excerpts; empty when the input was no text.
    pub source: String,
    /// Errors and warnings in order of discovery.
    pub list: Vec<Diagnostic>,
    /// Set when the compiler failed rather than the input.
    pub internal: Option<Box<InternalError>>,
}

impl Diagnostics {
    /// No diagnostics yet about this source.
    pub fn new(source_name: &str, source: &str) -> Diagnostics {
        Diagnostics { source_name: source_name.to_owned(), source: source.to_owned(), ..Diagnostics::default() }
    }

    /// Whether there is an error, of the input or of the compiler.
    pub fn has_errors(&self) -> bool {
        self.internal.is_some() || self.list.iter().any(|d| d.severity == Severity::Error)
    }

    /// Number of errors in the input.
    pub fn error_count(&self) -> usize {
        self.list.iter().filter(|d| d.severity == Severity::Error).count()
    }
}

impl std::error::Error for Diagnostics {}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = LineIndex::new(&self.source);
        let mut out = String::new();
        for diagnostic in &self.list {
            render(&mut out, &self.source_name, &self.source, &lines, diagnostic);
        }
        if let Some(internal) = &self.internal {
            let _ = writeln!(out, "{}: {internal}", self.source_name);
        }
        f.write_str(&out)
    }
}

/// Byte offsets at which lines begin.
struct LineIndex {
    starts: Vec<usize>,
}

impl LineIndex {
    fn new(text: &str) -> LineIndex {
        let after_newline = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        LineIndex { starts: std::iter::once(0).chain(after_newline).collect() }
    }

    /// Line number from 1, and the line's range without its line end.
    fn line_at(&self, text: &str, offset: usize) -> (usize, Range<usize>) {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts[line - 1];
        let end = self.starts.get(line).map_or(text.len(), |next| next - 1);
        let end = if text[start..end].ends_with('\r') { end - 1 } else { end };
        (line, start..end)
    }
}

/// Most characters of a source line that are shown.
const EXCERPT: usize = 160;
/// Characters before the place that stay visible when a longer line is cut.
const EXCERPT_BEFORE: usize = 60;

fn render(out: &mut String, name: &str, text: &str, lines: &LineIndex, diagnostic: &Diagnostic) {
    let Diagnostic { severity, message, span, notes } = diagnostic;
    match span {
        Some(span) => {
            let start = floor_boundary(text, span.start);
            let (line, range) = lines.line_at(text, start);
            let column = text[range.start..start.clamp(range.start, range.end)].chars().count() + 1;
            let _ = writeln!(out, "{name}:{line}:{column}: {severity}: {message}");
            excerpt(out, &text[range.clone()], column - 1, width_of(text, span, &range));
        }
        None => {
            let _ = writeln!(out, "{name}: {severity}: {message}");
        }
    }
    for note in notes {
        let _ = writeln!(out, "  note: {note}");
    }
}

/// Characters of a span on its first line, at least one.
fn width_of(text: &str, span: &Range<usize>, line: &Range<usize>) -> usize {
    let start = floor_boundary(text, span.start).min(line.end);
    let end = floor_boundary(text, span.end).clamp(start, line.end);
    text[start..end].chars().count().max(1)
}

/// The nearest character boundary at or before an offset.
fn floor_boundary(text: &str, offset: usize) -> usize {
    let mut at = offset.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The source line and below it a caret under character `at`, then `~` for the rest of the span.
fn excerpt(out: &mut String, line: &str, at: usize, width: usize) {
    let skipped = if line.chars().count() > EXCERPT { at.saturating_sub(EXCERPT_BEFORE) } else { 0 };
    let shown: Vec<char> = line.chars().skip(skipped).take(EXCERPT).collect();
    let visible = |c: &char| if c.is_control() && *c != '\t' { '?' } else { *c };
    out.push_str("  ");
    out.extend(shown.iter().map(visible));
    out.push_str("\n  ");
    let caret = at - skipped;
    out.extend(shown.iter().take(caret).map(|c| if *c == '\t' { '\t' } else { ' ' }));
    out.push('^');
    let rest = width.saturating_sub(1).min(EXCERPT.saturating_sub(caret + 1));
    out.extend(std::iter::repeat_n('~', rest));
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(source: &str, span: Range<usize>) -> String {
        let mut diagnostics = Diagnostics::new("k.ir", source);
        diagnostics.list.push(Diagnostic::error("wrong").at(Some(span)));
        diagnostics.to_string()
    }

    #[test]
    fn a_place_is_line_and_column_in_characters() {
        assert_eq!(shown("ab\n  é xyz\n", 8..11), "k.ir:2:5: error: wrong\n    é xyz\n      ^~~\n");
    }

    #[test]
    fn places_at_and_beyond_the_end_are_shown() {
        assert_eq!(shown("ab", 2..2), "k.ir:1:3: error: wrong\n  ab\n    ^\n");
        assert_eq!(shown("ab\n", 99..120), "k.ir:2:1: error: wrong\n  \n  ^\n");
        assert_eq!(shown("", 0..0), "k.ir:1:1: error: wrong\n  \n  ^\n");
    }

    #[test]
    fn tabs_keep_the_caret_below_its_character() {
        assert_eq!(shown("\tx\r\n", 1..2), "k.ir:1:2: error: wrong\n  \tx\n  \t^\n");
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let line = format!("{}X{}", "a".repeat(5000), "b".repeat(5000));
        let text = shown(&line, 5000..5001);
        assert!(text.lines().all(|l| l.len() <= EXCERPT + 2), "{text}");
        let column = text.lines().nth(2).unwrap().find('^').unwrap();
        assert_eq!(text.lines().nth(1).unwrap().as_bytes()[column], b'X');
    }

    #[test]
    fn spans_over_several_lines_end_with_the_first() {
        assert_eq!(shown("abc\ndef\n", 1..6), "k.ir:1:2: error: wrong\n  abc\n   ^~\n");
    }

    #[test]
    fn notes_and_internal_errors_follow() {
        let mut diagnostics = Diagnostics::new("k.ir", "");
        diagnostics.list.push(Diagnostic::warning("odd").note("because"));
        diagnostics.internal =
            Some(Box::new(InternalError { step: "select".into(), function: Some("k".into()), message: "lost".into() }));
        assert_eq!(
            diagnostics.to_string(),
            "k.ir: warning: odd\n  note: because\nk.ir: internal error in select of @k: lost\n"
        );
        assert!(diagnostics.has_errors());
        assert_eq!(diagnostics.error_count(), 0);
    }
}
