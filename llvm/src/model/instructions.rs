//! Instructions of a function body.
//!
//! An instruction is a few words; operands of any number lie in the pool of its [`super::Body`]. The type of the
//! result is that of its [`super::ValueId`].

use std::fmt;

use cranelift_entity::EntityRef;
use cranelift_entity::packed_option::PackedOption;

use super::entities::{AttributesId, BlockId, CallId, ConstId, LocalMetadataId, Name, TypeId, ValueId};
use super::interner::List;
use super::words::{
    BinaryOp, CallingConvention, CastOp, ExceptionOp, Flags, FloatPredicate, IntPredicate, Ordering, RmwOp, TailCall,
};

/// An operand: one word, taken apart by [`Operand::kind`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Operand(u32);

const TAG: u32 = 30;

/// What an operand is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OperandKind {
    /// An argument or result of the function.
    Value(ValueId),
    /// A constant, also addresses of globals, inline assembly and metadata of the module.
    Constant(ConstId),
    /// A block.
    Block(BlockId),
    /// Metadata that names a value of the function.
    Metadata(LocalMetadataId),
}

impl Operand {
    fn new(tag: u32, index: u32) -> Operand {
        debug_assert!(index < 1 << TAG, "an arena of a module has at most 2^30 entries");
        Operand(tag << TAG | index & ((1 << TAG) - 1))
    }

    /// What it is.
    pub fn kind(self) -> OperandKind {
        let index = (self.0 & ((1 << TAG) - 1)) as usize;
        match self.0 >> TAG {
            0 => OperandKind::Value(ValueId::new(index)),
            1 => OperandKind::Constant(ConstId::new(index)),
            2 => OperandKind::Block(BlockId::new(index)),
            _ => OperandKind::Metadata(LocalMetadataId::new(index)),
        }
    }

    /// The constant, when it is one.
    pub fn constant(self) -> Option<ConstId> {
        match self.kind() {
            OperandKind::Constant(id) => Some(id),
            _ => None,
        }
    }

    /// The value, when it is one.
    pub fn value(self) -> Option<ValueId> {
        match self.kind() {
            OperandKind::Value(id) => Some(id),
            _ => None,
        }
    }

    /// The block, when it is one.
    pub fn block(self) -> Option<BlockId> {
        match self.kind() {
            OperandKind::Block(id) => Some(id),
            _ => None,
        }
    }
}

impl fmt::Debug for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind().fmt(f)
    }
}

impl From<ValueId> for Operand {
    fn from(id: ValueId) -> Operand {
        Operand::new(0, id.as_u32())
    }
}

impl From<ConstId> for Operand {
    fn from(id: ConstId) -> Operand {
        Operand::new(1, id.as_u32())
    }
}

impl From<BlockId> for Operand {
    fn from(id: BlockId) -> Operand {
        Operand::new(2, id.as_u32())
    }
}

impl From<LocalMetadataId> for Operand {
    fn from(id: LocalMetadataId) -> Operand {
        Operand::new(3, id.as_u32())
    }
}

/// Alignment, volatility, ordering and scope of a memory access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Alignment; not given in older files.
    pub align: Alignment,
    /// `volatile`.
    pub volatile: bool,
    /// Ordering.
    pub ordering: Ordering,
    /// `syncscope`; the empty name is the whole system.
    pub scope: Name,
}

/// A power of two, or nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Alignment(u8);

impl Alignment {
    /// No alignment is given.
    pub const NONE: Alignment = Alignment(0);

    /// An alignment in bytes; `None` unless it is a power of two up to 2^32.
    pub fn from_bytes(bytes: u64) -> Option<Alignment> {
        (bytes.is_power_of_two() && bytes <= 1 << 32).then(|| Alignment(bytes.trailing_zeros() as u8 + 1))
    }

    /// Bytes, when given.
    pub fn bytes(self) -> Option<u64> {
        (self.0 > 0).then(|| 1 << (self.0 - 1))
    }
}

/// An instruction. Operand lists are read with [`super::Body::operands`], numbers with [`super::Body::words`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Instruction {
    /// `fneg`.
    Negate {
        /// Fast-math.
        flags: Flags,
        /// Operand.
        value: Operand,
    },
    /// Arithmetic.
    Binary {
        /// Which.
        op: BinaryOp,
        /// Flags.
        flags: Flags,
        /// Left.
        left: Operand,
        /// Right.
        right: Operand,
    },
    /// Conversion to the type of the result.
    Cast {
        /// Which.
        op: CastOp,
        /// Flags.
        flags: Flags,
        /// Operand.
        value: Operand,
    },
    /// `icmp`.
    CompareInt {
        /// Which.
        predicate: IntPredicate,
        /// `samesign`.
        flags: Flags,
        /// Left.
        left: Operand,
        /// Right.
        right: Operand,
    },
    /// `fcmp`.
    CompareFloat {
        /// Which.
        predicate: FloatPredicate,
        /// Fast-math.
        flags: Flags,
        /// Left.
        left: Operand,
        /// Right.
        right: Operand,
    },
    /// `select`.
    Select {
        /// Fast-math.
        flags: Flags,
        /// Condition.
        condition: Operand,
        /// Value when true.
        yes: Operand,
        /// Value when false.
        no: Operand,
    },
    /// `freeze`.
    Freeze(Operand),
    /// `phi`: values and their blocks by turns.
    Phi {
        /// Fast-math.
        flags: Flags,
        /// Value, block, value, block …
        incoming: List,
    },
    /// `alloca`; the type of the result names the address space.
    Alloca {
        /// Type of an element.
        ty: TypeId,
        /// Number of elements.
        count: Operand,
        /// Alignment.
        align: Alignment,
    },
    /// `load` of the type of the result.
    Load {
        /// Address.
        address: Operand,
        /// How.
        access: Access,
    },
    /// `store`.
    Store {
        /// What.
        value: Operand,
        /// Address.
        address: Operand,
        /// How.
        access: Access,
    },
    /// `atomicrmw`.
    Rmw {
        /// Which.
        op: RmwOp,
        /// Address.
        address: Operand,
        /// Operand.
        value: Operand,
        /// How.
        access: Access,
    },
    /// `cmpxchg`; the ordering of the access is the one of success.
    CompareExchange {
        /// May fail without a reason.
        weak: bool,
        /// Ordering on failure.
        failure: Ordering,
        /// Address.
        address: Operand,
        /// Expected.
        expected: Operand,
        /// New value.
        new: Operand,
        /// How.
        access: Access,
    },
    /// `fence`.
    Fence {
        /// Ordering.
        ordering: Ordering,
        /// `syncscope`.
        scope: Name,
    },
    /// `getelementptr`.
    ElementPointer {
        /// `inbounds nusw nuw`.
        flags: Flags,
        /// Type that the first index steps over.
        element: TypeId,
        /// Pointer and indices.
        operands: List,
    },
    /// `extractelement`.
    ExtractElement {
        /// Vector.
        vector: Operand,
        /// Index.
        index: Operand,
    },
    /// `insertelement`.
    InsertElement {
        /// Vector.
        vector: Operand,
        /// Element.
        element: Operand,
        /// Index.
        index: Operand,
    },
    /// `shufflevector`; mask in [`super::Body::words`], `u32::MAX` is poison.
    Shuffle {
        /// First vector.
        left: Operand,
        /// Second vector.
        right: Operand,
        /// Indices.
        mask: List,
    },
    /// `extractvalue`.
    ExtractValue {
        /// Aggregate.
        aggregate: Operand,
        /// Indices, in [`super::Body::words`].
        path: List,
    },
    /// `insertvalue`.
    InsertValue {
        /// Aggregate.
        aggregate: Operand,
        /// New part.
        value: Operand,
        /// Indices, in [`super::Body::words`].
        path: List,
    },
    /// `va_arg` of the type of the result.
    VariadicArgument(Operand),
    /// `call`.
    Call(CallId),
    /// `invoke`.
    Invoke {
        /// The call.
        call: CallId,
        /// Where it returns to.
        normal: BlockId,
        /// Where exceptions go.
        unwind: BlockId,
    },
    /// `callbr`.
    CallBranch {
        /// The call.
        call: CallId,
        /// Where it returns to, then the other blocks.
        targets: List,
    },
    /// `ret` with a value or none.
    Return(List),
    /// `br` to one block.
    Jump(BlockId),
    /// `br` by condition.
    Branch {
        /// Condition.
        condition: Operand,
        /// Block when true.
        yes: BlockId,
        /// Block when false.
        no: BlockId,
    },
    /// `switch`.
    Switch {
        /// What is compared.
        value: Operand,
        /// Block when nothing matches.
        default: BlockId,
        /// Constant, block, constant, block …
        cases: List,
    },
    /// `indirectbr`.
    IndirectBranch {
        /// Address of a block.
        address: Operand,
        /// Possible blocks.
        targets: List,
    },
    /// `unreachable`.
    Unreachable,
    /// Exception handling; operands as far as they are values or blocks.
    Exception {
        /// Which.
        op: ExceptionOp,
        /// Operands.
        operands: List,
    },
}

impl Instruction {
    /// Whether it ends a block.
    pub fn is_terminator(&self) -> bool {
        match self {
            Instruction::Return(_)
            | Instruction::Jump(_)
            | Instruction::Branch { .. }
            | Instruction::Switch { .. }
            | Instruction::IndirectBranch { .. }
            | Instruction::Invoke { .. }
            | Instruction::CallBranch { .. }
            | Instruction::Unreachable => true,
            Instruction::Exception { op, .. } => matches!(
                op,
                ExceptionOp::Resume | ExceptionOp::CatchSwitch | ExceptionOp::CatchRet | ExceptionOp::CleanupRet
            ),
            _ => false,
        }
    }
}

/// A call.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Call {
    /// Function, value or inline assembly.
    pub callee: Operand,
    /// Function type.
    pub ty: TypeId,
    /// Arguments.
    pub arguments: List,
    /// Calling convention.
    pub convention: CallingConvention,
    /// Attributes.
    pub attributes: PackedOption<AttributesId>,
    /// `tail`.
    pub tail: TailCall,
    /// Fast-math.
    pub flags: Flags,
    /// Operand bundles, in [`super::Body::bundles`].
    pub bundles: List,
}

/// Further operands of a call under a tag: `[ "align"(ptr %p, i64 16) ]`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bundle {
    /// Tag.
    pub tag: Name,
    /// Operands.
    pub operands: List,
}
