//! Errors of the table files, with file and line.

use std::fmt;
use std::path::Path;

/// What is wrong with a table file.
#[derive(Debug)]
pub struct Error {
    file: String,
    line: usize,
    message: String,
}

impl Error {
    pub fn new(file: impl Into<String>, line: usize, message: impl Into<String>) -> Error {
        Error { file: file.into(), line, message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: error: {}", self.file, self.line, self.message)
    }
}

pub fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|error| Error::new(path.display().to_string(), 0, error.to_string()))
}

pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text).map_err(|error| Error::new(path.display().to_string(), 0, error.to_string()))
}
