//! What readers say about input that they cannot take.

/// A fault of the input, with its place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ReadError {
    /// What is wrong, naming the thing.
    pub message: String,
    /// Offset of the first byte concerned: in the text, or in the bitcode file.
    pub at: usize,
    /// Number of bytes concerned; 0 when only the place is known.
    pub len: usize,
}

impl ReadError {
    /// An error about the place `at`.
    pub fn new(at: usize, message: impl Into<String>) -> ReadError {
        ReadError { message: message.into(), at, len: 0 }
    }
}
