//! What is known of the memory that an instruction accesses, besides its operands: selection knows where pointers come
//! from, machine IR no longer does.

use crate::entities::SymId;

/// What an address points into. Two different objects do not overlap, except where a variant says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Object {
    /// Nothing is known: may overlap everything.
    #[default]
    Unknown,
    /// Based on some parameter that is not `noalias`: may overlap every object but those of `noalias` parameters.
    Parameters,
    /// Based on the `noalias` parameter of that index. While the function runs, no byte that is accessed through it and
    /// written is accessed through a pointer that is not based on it. It says nothing about other threads, so a
    /// barrier orders these accesses as it orders all.
    NoAlias(u32),
    /// A variable of the module.
    Symbol(SymId),
    /// The slot of the function's frame that begins at that offset.
    Frame(u32),
}

/// What is known of the memory that an instruction accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MemoryRef {
    /// The object of each address among the operands, in order; what comes after the second is [`Object::Unknown`].
    pub objects: [Object; 2],
    /// What is read is written by nobody while the kernel runs: the load may pass stores and barriers. (Memory written
    /// by a kernel that still ran when this one was started is another matter: see `griddepcontrol`.)
    pub constant: bool,
}
