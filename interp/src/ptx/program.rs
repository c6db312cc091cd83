//! Functions as flat code.

use super::at::At;
use super::operand::{Slot, Symbol};
use crate::machine::{Arrival, Flow, Lanes, Stop};

/// What a step does to the lanes that execute it; its targets are positions.
pub type Execute = Box<dyn Fn(&mut At<'_, '_>) -> Result<Flow, Stop> + Send + Sync>;

/// What a barrier that is complete writes into the registers of the lanes of a mask.
pub type Pass = Box<dyn Fn(&mut [Lanes], u32, Arrival) + Send + Sync>;

/// A decoded instruction.
pub struct Operation {
    /// What it does.
    pub execute: Execute,
    /// What it does when the barrier it waits at is complete.
    pub pass: Option<Pass>,
    /// What is called.
    pub call: Option<Box<CallSite>>,
}

impl Operation {
    /// One that does this.
    pub fn new(execute: impl Fn(&mut At<'_, '_>) -> Result<Flow, Stop> + Send + Sync + 'static) -> Operation {
        Operation { execute: Box::new(execute), pass: None, call: None }
    }

    /// One that does this and goes on.
    pub fn then(execute: impl Fn(&mut At<'_, '_>) -> Result<(), Stop> + Send + Sync + 'static) -> Operation {
        Operation::new(move |at| execute(at).map(|()| Flow::Next))
    }

    /// One that only computes.
    pub fn compute(execute: impl Fn(&mut At<'_, '_>) + Send + Sync + 'static) -> Operation {
        Operation::new(move |at| {
            execute(at);
            Ok(Flow::Next)
        })
    }

    /// One that is an error when it is reached.
    pub fn refused(message: String) -> Operation {
        Operation::new(move |_| Err(Stop::new(message.clone())))
    }
}

/// What is handed to a function or comes back from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passed {
    /// Bytes of a frame: offset and size.
    Bytes(u64, u64),
    /// A register or a constant: its slot and bits.
    Slot(Slot, u32),
}

/// A call.
#[derive(Clone, Debug)]
pub struct CallSite {
    /// What is handed over.
    pub arguments: Vec<Passed>,
    /// Where results go.
    pub results: Vec<Passed>,
}

/// The value of a constant slot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Constant {
    /// Known.
    Bits(u64),
    /// The address of a variable of the module, of a kernel's parameter or of a function, plus bytes; generic or in its
    /// own space.
    Address {
        /// Number of the variable.
        variable: usize,
        /// Bytes.
        offset: i64,
        /// As a generic address.
        generic: bool,
    },
    /// The address of a parameter of the kernel.
    Parameter {
        /// Bytes from the first parameter.
        offset: u64,
        /// As a generic address.
        generic: bool,
    },
    /// The address of a function.
    Function(usize),
}

/// A step.
pub struct Step {
    /// What it does.
    pub operation: Operation,
    /// The predicate that guards it and whether it is negated.
    pub guard: Option<(Slot, bool)>,
    /// First byte of the mnemonic in the text, and its length.
    pub span: (u32, u32),
}

/// A function with a body.
pub struct Code {
    /// Steps.
    pub steps: Vec<Step>,
    /// Number of the first step's place.
    pub first_place: u32,
    /// Bits of each slot of a register.
    pub widths: Vec<u32>,
    /// The values of the slots after those of the registers.
    pub constants: Vec<Constant>,
    /// Bytes of the frame on each lane's stack, and their alignment.
    pub frame: (u64, u64),
    /// Takes from the stack in other ways.
    pub uses_stack: bool,
}

/// A function.
pub struct Function {
    /// Name.
    pub name: String,
    /// It is a kernel.
    pub kernel: bool,
    /// Its parameters.
    pub parameters: Vec<Passed>,
    /// What it returns.
    pub returns: Vec<Passed>,
    /// Its body, if it has one.
    pub code: Option<Code>,
    /// `.reqntid`
    pub required_threads: Option<[u32; 3]>,
    /// Bytes of a kernel's parameters together, and their alignment.
    pub block: (u64, u64),
}

/// A variable of the module.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Name.
    pub name: String,
    /// Space.
    pub space: ptxc_ir::Space,
    /// Bytes.
    pub size: u64,
    /// Alignment.
    pub align: u64,
    /// Shared memory whose size the launch says.
    pub dynamic: bool,
    /// Defined elsewhere.
    pub external: bool,
    /// Initial contents: bytes, and addresses at offsets in them, each with its size and whether it is generic.
    pub bytes: Vec<u8>,
    /// Addresses in the initial contents.
    pub addresses: Vec<InitialAddress>,
}

/// An address in the initial contents of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InitialAddress {
    /// Where.
    pub at: u64,
    /// Bytes of it that are stored.
    pub size: u64,
    /// Of what.
    pub symbol: Symbol,
    /// Plus bytes.
    pub offset: i64,
    /// As a generic address.
    pub generic: bool,
    /// Bits it is shifted to the right before it is stored (`0xFF00(symbol)`).
    pub shift: u32,
}
