//! The SSA IR of ptxc: types, entities, instructions, functions and modules, with reader, printer, verifier and builder.
//!
//! The language is described in `ir/LANGUAGE.md`. This crate knows no target's limits, and of PTX only what the
//! instruction table of `ptxc-targets` tells.

pub mod builder;
pub mod cfg;
pub mod dfg;
pub mod dominators;
pub mod entities;
pub mod flags;
pub mod inline_assembly;
pub mod instruction;
pub mod known_bits;
pub mod layout;
pub mod loops;
pub mod module;
pub mod opcode;
pub mod printer;
pub mod reader;
mod retain;
pub mod target_ops;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod types;
pub mod uniformity;
pub mod verifier;

pub use builder::{Cursor, FunctionBuilder, result_types};
pub use cfg::{Cfg, Predecessor};
pub use dfg::{BlockData, ConstData, ConstId, Dfg, LoopHints, SourceLoc, ValueData, ValueDef};
pub use dominators::{DominatorTree, PostDominatorTree};
pub use entities::{AggId, Block, FuncId, GlobalId, Inst, MaskId, SigId, SwitchId, TargetOpId, Value};
pub use flags::{Flags, Rounding};
pub use instruction::{
    BlockCall, Extra, GroupKind, InstData, MemAttrs, SwitchData, TargetOp, TargetOperand, ValueList, ValueListPool,
};
pub use known_bits::{Bits, KnownBits};
pub use layout::Layout;
pub use module::{
    FuncAttrs, FuncKind, Function, Global, GlobalKind, Init, Linkage, Module, Param, ParamAttrs, Signature, Symbol,
};
pub use opcode::{
    AtomicOp, CacheOp, Effect, FloatCC, IntCC, L1Evict, L2Evict, Opcode, OpcodeInfo, Ordering, Scope, Shape, TypeSet,
};
pub use printer::{print_detached_function, print_function, print_module};
pub use reader::{ReadError, SpanMap, line_col, read_module, read_module_with_spans};
pub use types::{AggDef, Aggregate, FloatKind, MemType, Scalar, Space, Type};
pub use verifier::{Place, Rule, Severity, VerifyError, has_errors, verify_function, verify_module};

/// The IR type of a special register: a predicate is `i1`, the rest are integers; registers of four lanes are vectors.
pub fn sreg_type(register: ptxc_targets::SpecialReg) -> Type {
    let scalar = match register.ty().bits() {
        0 => Type::I1,
        bits => Type::int(u32::from(bits)),
    };
    if register.lanes() > 1 { scalar.with_lanes(u32::from(register.lanes())) } else { scalar }
}
