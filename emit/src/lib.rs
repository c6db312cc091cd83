//! PTX text from machine IR.
//!
//! Emission prints what it is given and decides nothing: which instruction, which register and in which order were
//! settled before. What remains are the rules of a PTX *file* (PTX ISA, chapters 4, 5, 7 and 11): a legal name for
//! every symbol, declarations before uses, the lowest `.version` that target and contents allow, and the sequence of
//! `.param` statements around a call.
//!
//! * [`emit_module`] is the whole interface.
//! * `survey` reads every instruction once, for the version and for the order of declarations.
//! * `names` makes names legal, `globals` prints variables, `function` functions, `debug` source locations and DWARF.

mod debug;
mod dwarf;
mod error;
mod function;
mod globals;
mod module;
mod names;
mod operand;
mod signature;
mod survey;
mod text;

pub use error::EmitError;
pub use module::emit_module;

/// What to print besides the code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmitOptions {
    /// `.file` and `.loc`, for profilers: `ptxas -lineinfo`.
    pub lineinfo: bool,
    /// DWARF sections and `.target …, debug`, for debuggers: `ptxas -g`. Implies `lineinfo`.
    pub debug: bool,
    /// Refuse mnemonics that the instruction tables do not know. Off, they are printed and left to `ptxas`.
    pub strict: bool,
}
