//! What bodies may refer to: functions made before, tables, aggregate types.

use ptxc_ir::{AggId, FuncId, GlobalId, Type};

use super::shapes::RuleShape;

/// A function that may be called.
#[derive(Clone, Debug)]
pub struct Callee {
    /// Which.
    pub func: FuncId,
    /// Its parameters.
    pub params: Vec<Passed>,
    /// Its results.
    pub results: Vec<Type>,
    /// It is called by all threads of the block together.
    pub together: bool,
    /// Its first parameter bounds its recursion.
    pub recursive: bool,
    /// The pointer among its results.
    pub returned: Option<Returned>,
}

/// A result that points into the bytes that a parameter lends.
#[derive(Clone, Copy, Debug)]
pub struct Returned {
    /// Which result.
    pub result: usize,
    /// Which of the parameters.
    pub param: usize,
    /// How many bytes behind the parameter it points.
    pub offset: u64,
}

/// What a parameter takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passed {
    /// Any value of the type.
    Value(Type),
    /// A pointer of this type to [`LENT`] private bytes.
    Pointer(Type),
    /// A pointer to an object of this type that is copied.
    Copy(AggId),
}

/// Bytes behind a pointer that is passed.
pub const LENT: u64 = 32;

/// What bodies may refer to.
#[derive(Clone, Default, Debug)]
pub struct Facts {
    /// Functions, those without calls first.
    pub callees: Vec<Callee>,
    /// Functions in which rules are applied.
    pub shapes: Vec<(FuncId, RuleShape)>,
    /// A table of addresses of functions with the same signature, and how many.
    pub table: Option<(GlobalId, usize)>,
    /// Constant memory with contents.
    pub constants: Option<GlobalId>,
    /// Global memory that nobody writes.
    pub data: Option<GlobalId>,
    /// Shared memory to exchange values through: one slot of 16 bytes a thread.
    pub tile: Option<GlobalId>,
    /// Shared memory that is each thread's own: 64 bytes a thread.
    pub own: Option<GlobalId>,
    /// A struct of 32 bytes without padding.
    pub record: Option<AggId>,
    /// Threads of a block, a power of two where they exchange.
    pub threads: u32,
    /// Blocks.
    pub blocks: u32,
    /// The target has 128-bit atomics.
    pub wide_atomics: bool,
}
