//! The PTX instruction set as data.
//!
//! The files under `isa/` describe every instruction of PTX ISA 9.4, chapter 9:
//! the grammar of its mnemonic, its operands, what each combination of modifiers
//! requires of the target and of `.version`, and its effects. The build script
//! turns them into static tables, and this crate answers questions about them. It
//! knows nothing of the compiler that asks.
//!
//! - [`Tok`] is one piece of a mnemonic, [`OpcodeTable`] interns whole mnemonics.
//! - [`resolve`] finds the table form of a mnemonic and its operands: a [`Form`]
//!   tells operands, [`Effects`] and the lowest `.version` on a [`Target`].
//! - [`SpecialReg`] is the table of special registers.
//! - [`Statement`] is one PTX statement, read from text and written back; a [`Checker`] tells whether
//!   a target takes it, [`check_module`] does so for a whole PTX file.
//! - [`entries`] and [`variants`] show what the tables say of an instruction.
//! - [`timing::Model`] tells what an instruction costs on a machine, and what a multiprocessor holds.
//! - [`sample`] makes statements from the tables, for tests.

mod catalogue;
mod check;
mod constant;
mod declarations;
mod effects;
mod explain;
mod expression;
mod form;
mod lanes;
mod matching;
mod module;
mod occupancy;
mod opcode;
mod operands;
pub mod sample;
mod special;
mod statement;
mod tables;
mod target;
pub mod timing;
mod token;
mod types;

pub use catalogue::{Entry, Variant, entries, nearest_instructions, nearest_modifiers, possible_effects, variants};
pub use check::{Checker, Diagnostic};
pub use constant::read_constant;
pub use declarations::{Declarations, Symbol};
pub use effects::{Effects, Mechanism, Space};
pub use form::{Form, FormError, Kind, OperandDesc, Refusal, Role, Selector, Shape, operand_lists, resolve};
pub use lanes::Lanes;
pub use module::{Declaration, Place, Sink, check_module, line_and_column, walk_module};
pub use opcode::{Opcode, OpcodeTable};
pub use special::{SpecialReg, Uniformity};
pub use statement::{Guard, Node, NodeKind, Span, Statement, SyntaxError};
pub use target::{ParseTargetError, PtxVersion, Suffix, Target};
pub use token::{Tok, tok};
pub use types::{Class, RegType};
