//! What is wrong with a run file.

use std::fmt;
use std::ops::Range;

/// What is wrong, and where in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// One line, without a full stop.
    pub message: String,
    /// Bytes of the file's text that it is about.
    pub span: Range<usize>,
}

impl Error {
    /// An error about a part of the text.
    pub fn new(message: impl Into<String>, span: Range<usize>) -> Error {
        Error { message: message.into(), span }
    }

    /// `line:col: message` in the text.
    pub fn with_position(&self, text: &str) -> String {
        let (line, column) = ptxc_ir::line_col(text, self.span.start);
        format!("{line}:{column}: {}", self.message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
