//! Functions as flat code: instructions in one array, values in numbered slots.
//!
//! A slot holds 32 lanes of 64 bits. A scalar of up to 64 bits takes one slot, a wider one two, a vector as many as its
//! elements. Constants have slots of their own, told apart by [`CONSTANT`].

use std::sync::Arc;

use ptxc_ir::{AtomicOp, Flags, FloatCC, FloatKind, FuncId, Inst, IntCC, MemAttrs, Opcode, Space, Type};
use ptxc_targets::SpecialReg;
use smallvec::SmallVec;

use super::target::Operation;
pub use crate::machine::{LANES, Lanes};

/// Bit of a slot number that says it is a constant.
pub const CONSTANT: u32 = 1 << 31;

/// A value: its first slot, its elements and their type.
#[derive(Clone, Copy, Debug)]
pub struct Val {
    /// First slot.
    pub slot: u32,
    /// Type.
    pub ty: Type,
}

impl Val {
    /// Elements take two slots.
    pub fn wide(self) -> bool {
        self.ty.scalar_bits() > 64
    }

    /// Number of elements.
    pub fn elements(self) -> u32 {
        self.ty.lanes()
    }

    /// Slots it takes.
    pub fn slots(self) -> u32 {
        self.elements() << u32::from(self.wide())
    }

    /// Slot of an element.
    pub fn element(self, index: u32) -> u32 {
        self.slot + (index << u32::from(self.wide()))
    }
}

/// Scalar operations of up to 64 bits that whole warps execute in tight loops.
#[derive(Clone, Copy, Debug)]
pub enum Fast {
    /// `add`, `sub`, `mul`, `and`, `or`, `xor`, shifts; poison by the flags.
    Integer,
    /// `icmp`.
    Compare(IntCC),
    /// `select`.
    Select,
    /// `zext`, `trunc`, `ptrtoint`, `inttoptr`, `bitcast` without flags.
    Mask,
    /// `sext` from this width.
    Sext(u32),
    /// `fadd`, `fsub`, `fmul` on f32 without flags that matter.
    Single,
    /// `fma` on f32 without flags that matter.
    SingleFma,
}

/// A branch target: where to, and which slots are copied, one pair a slot.
#[derive(Clone, Debug)]
pub struct Target {
    /// First instruction.
    pub pc: u32,
    /// (from, to); read before any is written.
    pub copies: Box<[(u32, u32)]>,
}

/// What an instruction carries besides operands.
#[derive(Clone, Debug)]
pub enum More {
    /// Nothing.
    None,
    /// `icmp`.
    IntCC(IntCC),
    /// `fcmp`.
    FloatCC(FloatCC),
    /// Mask of `fclass`.
    Class(u32),
    /// `load`, `store`.
    Mem(Space, MemAttrs),
    /// `atomicrmw`, `cmpxchg` (with an ignored operation).
    Atomic(Space, AtomicOp, MemAttrs),
    /// `memcpy`, `memmove`, `memset`: spaces and alignments.
    Copy([Space; 2], [u64; 2]),
    /// `fence` that acquires.
    Fence,
    /// Lanes of `shuffle`.
    Shuffle(Box<[i32]>),
    /// `gep`: (argument, bytes) and bytes to add.
    Gep(Box<[(usize, i64)]>, i64),
    /// `alloca`: bytes and alignment.
    Alloca(u64, u64),
    /// `isspace`.
    Space(Space),
    /// Targets of `jump`, `br` (then, else) and `switch` (default, cases).
    Targets(Box<[Target]>, Box<[u128]>),
    /// Callee of `call`.
    Callee(FuncId),
    /// `sreg`.
    Sreg(SpecialReg),
    /// A target operation.
    Target(Arc<Operation>),
    /// What is wrong when it is executed.
    Refused(Box<str>),
}

/// One instruction.
#[derive(Clone, Debug)]
pub struct Step {
    /// The instruction it was.
    pub inst: Inst,
    /// Operation.
    pub op: Opcode,
    /// Flags.
    pub flags: Flags,
    /// Controlling type.
    pub ty: Type,
    /// Tight loop, where there is one.
    pub fast: Option<Fast>,
    /// Operands.
    pub args: SmallVec<[Val; 4]>,
    /// Results.
    pub results: SmallVec<[Val; 2]>,
    /// What else.
    pub more: More,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Code {
    /// Which function.
    pub func: FuncId,
    /// Instructions, blocks in an order that finishes loops before what follows them.
    pub steps: Vec<Step>,
    /// Entry parameters.
    pub params: Vec<Val>,
    /// Value parameters that are copies: (parameter value, bytes, alignment).
    pub byval: Vec<(usize, u64, u64)>,
    /// Slots of a frame.
    pub slots: usize,
    /// Constant slots and which lanes of them are poison (all or none).
    pub constants: Vec<(Lanes, u32)>,
    /// Has an `alloca` or a copied parameter.
    pub has_stack: bool,
    /// Number of the first instruction's place.
    pub first_place: u32,
}

/// True when `fadd`, `fsub`, `fmul` or `fma` with these flags rounds f32 to nearest and does nothing else.
pub fn is_plain_single(op: Opcode, flags: Flags, ty: Type) -> bool {
    let relevant =
        Flags::NNAN | Flags::NINF | Flags::RZ | Flags::RM | Flags::RP | Flags::FTZ | Flags::SAT | Flags::RELU;
    matches!(op, Opcode::Fadd | Opcode::Fsub | Opcode::Fmul | Opcode::Fma)
        && ty == Type::float(FloatKind::F32)
        && flags.bits() & relevant.bits() == 0
}
