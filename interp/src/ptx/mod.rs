//! The emulator of PTX: text is read into flat code, whole launches are executed.
//!
//! [`Program::read`] takes a PTX module apart with the reader of `ptxc-targets`; every instruction has been matched with a
//! form of the tables before a family decodes it. A family (module [`families`]) turns an [`Instruction`] into an
//! [`Operation`]: a function over the lanes of a warp with slot numbers and modes in it, so that nothing is looked up
//! while it runs. What no family knows is an error when it is reached.
//!
//! Memory is the interpreter's, so accesses out of bounds, misaligned or racing are found here too. Registers that are
//! not written hold a pattern. `.param` variables of functions lie on the stack of each thread.

mod at;
mod emulator;
pub mod families;
mod initial;
mod instruction;
mod operand;
mod program;
mod read;
mod start;
#[cfg(test)]
mod tests;
mod types;

pub use at::At;
pub use instruction::{Address, Constants, Instruction, Target};
pub use operand::{Base, FRAME, Operand, Register, Slot, Symbol};
pub use program::{CallSite, Constant, Execute, Operation, Pass, Passed};
pub use read::{Program, ReadError};
pub use start::run;
pub use types::{Class, Type, low_bits, sign_extend};
