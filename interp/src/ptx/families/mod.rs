//! The families of instructions: which function decodes which mnemonic.
//!
//! A row says which instructions a function takes: those whose mnemonic begins so. The rows are asked in their order; one
//! that does not know the rest of a mnemonic says `None`, and the next is asked. To add a family, write
//! a module with a [`Decode`] function and add its row.

mod address;
mod atomic;
mod barrier;
mod carry;
mod compare;
mod control;
mod convert;
mod copies;
mod float;
mod integer;
pub mod lanewise;
mod logic;
mod matrix;
mod mbarrier;
pub mod memory;
mod moves;
mod stack;
mod video;
pub mod warp;

use super::instruction::Instruction;
use super::program::Operation;

/// Decodes an instruction; `None` when it is one of another family.
pub type Decode = fn(&mut Instruction<'_>) -> Result<Option<Operation>, String>;

/// Heads of mnemonics and who decodes them.
const ROWS: &[(&[&str], Decode)] = &[
    (&["bra", "brx", "call", "ret", "exit", "trap", "brkpt", "nanosleep", "pmevent"], control::decode),
    (&["mov"], moves::decode),
    (&["ld", "ldu", "st"], memory::decode),
    (&["add", "addc", "sub", "subc", "mad", "madc"], carry::decode),
    (
        &[
            "add", "sub", "mul", "mad", "mul24", "mad24", "sad", "div", "rem", "abs", "neg", "min", "max", "popc",
            "clz", "bfind", "fns", "brev", "bfe", "bfi", "szext", "bmsk", "dp4a", "dp2a", "clmad",
        ],
        integer::decode,
    ),
    (
        &[
            "add", "sub", "mul", "fma", "mad", "div", "abs", "neg", "min", "max", "copysign", "testp", "rcp", "sqrt",
            "rsqrt", "sin", "cos", "lg2", "ex2", "tanh",
        ],
        float::decode,
    ),
    (&["and", "or", "xor", "not", "cnot", "shl", "shr", "shf", "lop3", "prmt"], logic::decode),
    (&["setp", "set", "selp", "slct"], compare::decode),
    (&["cvt"], convert::decode),
    (
        &[
            "cvta",
            "isspacep",
            "mapa",
            "getctarank",
            "createpolicy",
            "prefetch",
            "prefetchu",
            "applypriority",
            "discard",
        ],
        address::decode,
    ),
    (&["atom", "red", "fence", "membar"], atomic::decode),
    (&["shfl", "vote", "match", "redux", "activemask", "elect"], warp::decode),
    (&["bar", "barrier", "griddepcontrol", "setmaxnreg"], barrier::decode),
    (&["alloca", "stacksave", "stackrestore"], stack::decode),
    (
        &[
            "vadd",
            "vsub",
            "vabsdiff",
            "vmin",
            "vmax",
            "vshl",
            "vshr",
            "vmad",
            "vset",
            "vadd2",
            "vsub2",
            "vavrg2",
            "vabsdiff2",
            "vmin2",
            "vmax2",
            "vset2",
            "vadd4",
            "vsub4",
            "vavrg4",
            "vabsdiff4",
            "vmin4",
            "vmax4",
            "vset4",
        ],
        video::decode,
    ),
    (&["mma", "ldmatrix", "stmatrix", "movmatrix"], matrix::decode),
    (&["mbarrier", "cp"], mbarrier::decode),
    (&["cp", "st", "red", "fence"], copies::decode),
];

/// Decodes an instruction.
///
/// # Errors
/// No family knows it, in words that name it.
pub fn decode(instruction: &mut Instruction<'_>) -> Result<Operation, String> {
    let head = instruction.head();
    for (_, decode) in ROWS.iter().filter(|(heads, _)| heads.contains(&head)) {
        match decode(instruction) {
            Ok(Some(operation)) => return Ok(operation),
            Ok(None) => {}
            Err(message) => return Err(format!("`{}` is not executed: {message}", instruction.mnemonic())),
        }
    }
    Err(format!("`{}` is not executed", instruction.mnemonic()))
}
