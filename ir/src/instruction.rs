//! The data of one instruction.

use cranelift_entity::{EntityList, ListPool};
use ptxc_targets::{Lanes, SpecialReg, Tok};
use smallvec::SmallVec;

use crate::entities::{Block, FuncId, GlobalId, MaskId, SigId, SwitchId, TargetOpId, Value};
use crate::flags::Flags;
use crate::opcode::{AtomicOp, CacheOp, FloatCC, IntCC, L1Evict, L2Evict, Opcode, Ordering, Scope};
use crate::types::{MemType, Space, Type};

/// A list of values in the function's pool.
pub type ValueList = EntityList<Value>;
/// The pool that value lists live in.
pub type ValueListPool = ListPool<Value>;

/// One instruction: operation, controlling type, flags, arguments and what the shape carries besides.
#[derive(Clone, Debug)]
pub struct InstData {
    /// The operation.
    pub op: Opcode,
    /// Flags; a subset of those the opcode accepts.
    pub flags: Flags,
    /// Controlling type as the opcode's [`crate::Shape`] says; [`Type::INVALID`] when it has none.
    pub ty: Type,
    /// Value arguments in written order (branch arguments are in `extra`).
    pub args: ValueList,
    /// What else the shape carries.
    pub extra: Extra,
}

/// What an instruction carries besides values.
#[derive(Clone, Copy, Debug)]
pub enum Extra {
    /// Nothing.
    None,
    /// Condition of `icmp`.
    IntCC(IntCC),
    /// Condition of `fcmp`.
    FloatCC(FloatCC),
    /// Attributes of `load` and `store`; of `memcpy`, `memmove` and `memset` as destination alignment here and source alignment in `Copy`.
    Mem(MemAttrs),
    /// `memcpy`, `memmove`, `memset`: alignments in bytes (powers of two) and volatility.
    Copy {
        /// Destination alignment.
        dst_align: u32,
        /// Source alignment (1 for memset).
        src_align: u32,
        /// Volatile accesses.
        volatile: bool,
    },
    /// `atomicrmw`.
    Rmw(AtomicOp, MemAttrs),
    /// `cmpxchg`: attributes with the success order, and the failure order.
    Cmpxchg(MemAttrs, Ordering),
    /// `fence`.
    Fence(Ordering, Scope),
    /// An immediate: the mask of `fclass`.
    Imm(u64),
    /// Lane numbers of `shuffle`.
    Mask(MaskId),
    /// The memory type that `gep` steps over.
    Gep(MemType),
    /// Element type, count and alignment in bytes of `alloca`.
    Alloca {
        /// Element type.
        ty: MemType,
        /// Number of elements.
        count: u32,
        /// Alignment in bytes.
        align: u32,
    },
    /// Space queried by `isspace`.
    Space(Space),
    /// Target of `jump`.
    Jump(BlockCall),
    /// Targets of `br` and branch weights (0, 0 when unknown).
    Branch {
        /// Taken when the condition is true.
        then: BlockCall,
        /// Taken otherwise.
        other: BlockCall,
        /// Relative frequencies of the two.
        weights: (u16, u16),
    },
    /// Cases of `switch`.
    Switch(SwitchId),
    /// Callee of `call`.
    Call(FuncId),
    /// Signature of `call_indirect`.
    CallIndirect(SigId),
    /// Register of `sreg`.
    Sreg(SpecialReg),
    /// Side data of a target operation or of inline assembly.
    Target(TargetOpId),
}

/// A branch target with its block arguments.
///
/// The list of arguments belongs to one branch target: passes change it in place. A second target with the same arguments is made anew
/// ([`crate::Dfg::block_call`]), not copied.
#[derive(Clone, Copy, Debug)]
pub struct BlockCall {
    /// Where to.
    pub block: Block,
    /// One value per parameter of the block.
    pub args: ValueList,
}

/// Attributes of a memory access. Alignment is in bytes, a power of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemAttrs {
    /// log2 of the alignment.
    pub align_log2: u8,
    /// Volatile.
    pub volatile: bool,
    /// The memory is not written while the kernel runs.
    pub invariant: bool,
    /// Order; `NotAtomic` for plain accesses.
    pub order: Ordering,
    /// Scope of an atomic access.
    pub scope: Scope,
    /// Cache operator.
    pub cache: CacheOp,
    /// L1 eviction priority.
    pub l1: L1Evict,
    /// L2 eviction priority.
    pub l2: L2Evict,
    /// L2 prefetch size in bytes: 0, 64, 128 or 256.
    pub prefetch: u16,
    /// The last argument is an L2 cache policy (i64).
    pub has_policy: bool,
}

impl MemAttrs {
    /// A plain access with this alignment in bytes (rounded down to a power of two; 0 means 1).
    pub fn aligned(align: u64) -> MemAttrs {
        MemAttrs {
            align_log2: 63u8.saturating_sub(align.max(1).leading_zeros() as u8),
            volatile: false,
            invariant: false,
            order: Ordering::NotAtomic,
            scope: Scope::Sys,
            cache: CacheOp::None,
            l1: L1Evict::None,
            l2: L2Evict::None,
            prefetch: 0,
            has_policy: false,
        }
    }

    /// Alignment in bytes.
    pub fn align(self) -> u64 {
        1 << self.align_log2
    }

    /// True when the access may neither be merged with others nor removed.
    pub fn is_ordered(self) -> bool {
        self.volatile || self.order != Ordering::NotAtomic
    }
}

/// Cases of a `switch`.
#[derive(Clone, Debug)]
pub struct SwitchData {
    /// Taken when no case matches.
    pub default: BlockCall,
    /// Case constants (zero-extended to 128 bits) and their targets, in written order, without repetition.
    pub cases: Vec<(u128, BlockCall)>,
}

/// Grouping of operands of a target operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GroupKind {
    /// `{…}`
    Vector,
    /// `[…]`
    Address,
    /// `a|b`
    Pair,
    /// `(…)`
    Paren,
}

/// One operand of a target operation, in PTX's order, groups in prefix form.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TargetOperand {
    /// The instruction's result of this index.
    Result(u16),
    /// The instruction's argument of this index.
    Arg(u16),
    /// The argument, negated (`!%p`).
    ArgNot(u16),
    /// The argument, negated as a number (`-%a`), or some of its lanes (`b0(%a)`), or both (PTX ISA 9.7.20).
    Part {
        /// Argument index.
        arg: u16,
        /// Which lanes; all without.
        lanes: Option<Lanes>,
        /// Negated.
        minus: bool,
    },
    /// The result, of which these lanes are written and the others come from the last source (PTX ISA 9.7.20).
    ResultPart {
        /// Result index.
        result: u16,
        /// Which lanes.
        lanes: Lanes,
    },
    /// The register is read through the argument and written as the result (accumulators).
    InOut {
        /// Result index.
        result: u16,
        /// Argument index.
        arg: u16,
    },
    /// Integer immediate.
    Imm(i64),
    /// f32 immediate, as bits.
    F32(u32),
    /// f64 immediate, as bits.
    F64(u64),
    /// `_`
    Sink,
    /// Special register.
    Sreg(SpecialReg),
    /// Address of a global plus bytes.
    Global(GlobalId, i32),
    /// `+n` in an address after its base.
    Offset(i64),
    /// The next `len` operands (at this nesting level) form a group.
    Group(GroupKind, u16),
}

/// Side data of a `ptx.` operation or of inline assembly that was not understood.
#[derive(Clone, Debug)]
pub enum TargetOp {
    /// An instruction of the table.
    Known {
        /// Mnemonic pieces in the specification's order.
        toks: SmallVec<[Tok; 12]>,
        /// Guard predicate: argument index and negation.
        guard: Option<(u16, bool)>,
        /// Operands.
        operands: Vec<TargetOperand>,
    },
    /// Inline PTX text with `$0`, `$1`, … for results then arguments.
    Opaque {
        /// The text.
        text: String,
    },
}
