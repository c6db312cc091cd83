//! The entity references of the IR: small typed indices into the arenas of a [`crate::Function`] or [`crate::Module`].

use cranelift_entity::entity_impl;

/// An SSA value: an instruction result, a block parameter or a constant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(u32);
entity_impl!(Value, "v");

/// A basic block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block(u32);
entity_impl!(Block, "block");

/// An instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Inst(u32);
entity_impl!(Inst, "inst");

/// A function, kernel or declaration of the module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FuncId(u32);
entity_impl!(FuncId, "func");

/// A global variable, texture, surface or sampler of the module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GlobalId(u32);
entity_impl!(GlobalId, "global");

/// An aggregate type of the module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AggId(u32);
entity_impl!(AggId, "agg");

/// A signature of an indirect call, in the function's table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SigId(u32);
entity_impl!(SigId, "sig");

/// Side data of a target operation, in the function's table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TargetOpId(u32);
entity_impl!(TargetOpId, "top");

/// Side data of a `switch`, in the function's table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SwitchId(u32);
entity_impl!(SwitchId, "switch");

/// A run of constants in the function's byte pool (shuffle masks).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MaskId(u32);
entity_impl!(MaskId, "mask");
