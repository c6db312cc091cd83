//! The machine IR: PTX-shaped instructions over virtual registers.
//!
//! Instruction selection produces it in SSA form with block parameters, scheduling reorders it, register assignment
//! takes it out of SSA, and emission prints it. It knows the *shape* of PTX (operand groups, guards, parameter
//! passing), while what an opcode means (its operands, effects and requirements) is answered by `ptxc-targets`.
//!
//! What it decides: how instructions, registers, blocks, globals and symbols are stored. What it does not: which
//! instruction implements what (isel), in which order (scheduling), in which register (regalloc), and how a name or a
//! directive is spelled (emit).
//!
//! * [`Module`] holds the symbols, globals, functions and the opcode table.
//! * [`Function`] holds blocks, instructions and registers in arenas indexed by the types of [`entities`].
//! * [`Operand`]s of all instructions of a function lie in one pool in prefix order, groups opening with their length.
//! * [`FunctionBuilder`] appends instructions; [`verify()`] checks a function; [`print_module`] shows it.

pub mod builder;
pub mod cfg;
pub mod entities;
pub mod function;
pub mod inst;
pub mod memory;
pub mod module;
pub mod operand;
pub mod print;
pub mod types;
pub mod verify;

pub use builder::{FunctionBuilder, InstBuilder};
pub use cfg::Cfg;
pub use entities::{AsmId, Block, CallId, GlobalId, Inst, LocId, ProtoId, SymId, VReg};
pub use function::{BlockData, Depot, FuncKind, Function, FunctionAttrs, LoopHints, SourceLoc, Unroll};
pub use inst::{
    AsmData, AsmPiece, BlockCall, CallData, CallPiece, Callee, Guard, InstData, Op, OperandRange, Terminator,
};
pub use memory::{MemoryRef, Object};
pub use module::{
    FunctionDecl, Global, GlobalInit, Linkage, Module, Opaque, OpaqueKind, ParamDecl, ParamPtr, ParamType, Relocation,
    Signature, SourceFile, Space, Symbols,
};
pub use operand::{GroupKind, Operand, RegUse};
pub use print::{print_function, print_inst, print_module, print_terminator};
pub use types::{RegClass, untyped};
pub use verify::{VerifierError, verify};
