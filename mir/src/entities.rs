//! Typed indices into the arenas of a module and of a function.

use cranelift_entity::entity_impl;

macro_rules! entities {
    ($($(#[$doc:meta])* $name:ident, $prefix:literal;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub struct $name(u32);
            entity_impl!($name, $prefix);
        )*
    };
}

entities! {
    /// A basic block of a function.
    Block, "block";
    /// An instruction of a function. Its index says nothing about its place: block and order do.
    Inst, "inst";
    /// A register: defined once until register assignment, and a PTX register afterwards.
    VReg, "v";
    /// A name of the module: a global, function, texture, surface or sampler.
    SymId, "sym";
    /// A definition or declaration in [`crate::Module::globals`].
    GlobalId, "global";
    /// The description of a call in [`crate::Function::calls`].
    CallId, "call";
    /// An opaque piece of inline assembly in [`crate::Function::asms`].
    AsmId, "asm";
    /// A signature for indirect calls in [`crate::Module::prototypes`].
    ProtoId, "proto";
    /// A source location in [`crate::Function::locs`]. [`LocId::NONE`] is "unknown".
    LocId, "loc";
}

impl LocId {
    /// "Unknown": the first entry of every function's table.
    pub const NONE: LocId = LocId(0);
}

impl Default for LocId {
    fn default() -> LocId {
        LocId::NONE
    }
}
