//! The error of legalization and selection.

use ptxc_ir::{Function, Inst, SourceLoc};

/// Why a function cannot be compiled for the target.
///
/// The place is given twice: as the instruction of the module that was handed in (`inst`, for callers that know where
/// its text lies) and as the location the frontend attached to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("in @{func}: {message}")]
pub struct SelectError {
    /// Name of the function without `@`; of the global for errors in globals.
    pub func: String,
    /// The instruction, when one is to blame.
    pub inst: Option<Inst>,
    /// Location of that instruction; line 0 when unknown.
    pub loc: SourceLoc,
    /// What is wrong, naming the operation and what it needs.
    pub message: String,
}

impl SelectError {
    /// An error of a whole function or global.
    pub fn item(name: &str, message: impl Into<String>) -> SelectError {
        SelectError { func: name.to_owned(), inst: None, loc: SourceLoc::default(), message: message.into() }
    }

    /// An error at an instruction.
    pub fn at(func: &Function, inst: Inst, message: impl Into<String>) -> SelectError {
        SelectError { func: func.name.clone(), inst: Some(inst), loc: func.dfg.locs[inst], message: message.into() }
    }
}
