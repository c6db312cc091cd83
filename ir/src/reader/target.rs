//! Target operations: `ptx.` and a mnemonic of the instruction table.

use super::PResult;
use super::body::{Body, Parsed};
use super::cursor::Cursor;
use super::lexer::Token;

impl<'a> Body<'_, 'a> {
    /// A target operation from behind its mnemonic `token`. `given` is the number of names left of `=`.
    pub(super) fn target_operation(&mut self, c: &mut Cursor<'_, 'a>, token: Token, given: usize) -> PResult<Parsed> {
        let _ = given;
        Err(c.error_at(token, "unknown target instruction"))
    }
}
