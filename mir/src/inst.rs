//! Instructions, terminators and calls.

use crate::entities::{AsmId, Block, CallId, LocId, ProtoId, SymId, VReg};
use crate::module::ParamDecl;
use crate::types::RegClass;
use ptxc_targets::{Opcode, RegType};

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A PTX instruction of the module's opcode table.
    Ptx(Opcode),
    /// A register copy of that class: operands `Def(d), Use(s)`. Selection makes few of them, register assignment the
    /// rest; emission prints the `mov`.
    Copy(RegClass),
    /// A call with its parameter passing, described by [`CallData`]. One instruction, so that nothing is scheduled
    /// into the sequence.
    Call(CallId),
    /// Inline assembly the tables do not know, described by [`AsmData`].
    Asm(AsmId),
}

/// `@%p` or `@!%p` before an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The predicate register.
    pub pred: VReg,
    /// Execute when the predicate is false.
    pub negated: bool,
}

/// A slice of [`crate::Function::operands`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct OperandRange {
    /// Index of the first slot.
    pub start: u32,
    /// Number of slots.
    pub len: u32,
}

impl OperandRange {
    /// As a range of indices.
    pub fn as_range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }
}

/// One instruction other than a terminator.
#[derive(Clone, Copy, Debug)]
pub struct InstData {
    /// What it does.
    pub op: Op,
    /// Its predicate. A guarded instruction that defines a register leaves the old content where the guard is false:
    /// in SSA it must therefore define through [`crate::Operand::DefUse`].
    pub guard: Option<Guard>,
    /// Its operands.
    pub operands: OperandRange,
    /// Where it came from.
    pub loc: LocId,
}

/// A branch target with the arguments for the block's parameters, kept in [`crate::Function::args`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCall {
    /// The target.
    pub block: Block,
    /// Index of the first argument.
    pub start: u32,
    /// Number of arguments, equal to the number of parameters of the target.
    pub len: u32,
}

impl BlockCall {
    /// As a range of indices into [`crate::Function::args`].
    pub fn as_range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }
}

/// How a block ends.
#[derive(Clone, Debug, Default)]
pub enum Terminator {
    /// No terminator was set yet; the verifier refuses it.
    #[default]
    None,
    /// Go there.
    Jump(BlockCall),
    /// Two ways.
    CondBra {
        /// The condition.
        pred: VReg,
        /// Take `then` when the predicate is false.
        negated: bool,
        /// All threads of the warp agree: `bra.uni`.
        uniform: bool,
        /// Target when the condition holds.
        then: BlockCall,
        /// Target otherwise.
        otherwise: BlockCall,
    },
    /// `brx.idx`: an index into a list of targets, which the index must not exceed.
    BrxIdx {
        /// A 32-bit register.
        index: VReg,
        /// All threads of the warp agree.
        uniform: bool,
        /// The targets. The same block may occur more than once.
        targets: Vec<BlockCall>,
    },
    /// Return to the caller; results were stored to the return parameters before.
    Ret {
        /// All threads of the warp return together: `ret.uni`.
        uniform: bool,
    },
    /// The thread ends.
    Exit,
    /// Abort the kernel.
    Trap,
    /// Control never comes here, as after a call that does not return.
    Unreachable,
}

impl Terminator {
    /// The branch targets in order.
    pub fn targets(&self) -> &[BlockCall] {
        match self {
            Terminator::Jump(t) => std::slice::from_ref(t),
            Terminator::BrxIdx { targets, .. } => targets,
            _ => &[],
        }
    }

    /// Calls `f` with each branch target in order.
    pub fn for_each_target(&self, mut f: impl FnMut(BlockCall)) {
        match self {
            Terminator::CondBra { then, otherwise, .. } => {
                f(*then);
                f(*otherwise);
            }
            _ => self.targets().iter().for_each(|&t| f(t)),
        }
    }

    /// Calls `f` with each branch target in order, to change it.
    pub fn for_each_target_mut(&mut self, mut f: impl FnMut(&mut BlockCall)) {
        match self {
            Terminator::Jump(t) => f(t),
            Terminator::CondBra { then, otherwise, .. } => {
                f(then);
                f(otherwise);
            }
            Terminator::BrxIdx { targets, .. } => targets.iter_mut().for_each(f),
            _ => {}
        }
    }

    /// Number of branch targets.
    pub fn target_count(&self) -> usize {
        match self {
            Terminator::CondBra { .. } => 2,
            _ => self.targets().len(),
        }
    }

    /// The register that decides the branch.
    pub fn condition(&self) -> Option<VReg> {
        match self {
            Terminator::CondBra { pred, .. } => Some(*pred),
            Terminator::BrxIdx { index, .. } => Some(*index),
            _ => None,
        }
    }

    /// Replaces the register that decides the branch.
    pub fn set_condition(&mut self, to: VReg) {
        match self {
            Terminator::CondBra { pred, .. } => *pred = to,
            Terminator::BrxIdx { index, .. } => *index = to,
            _ => {}
        }
    }
}

/// Whom a call calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// A function of the module, defined or declared.
    Symbol(SymId),
    /// The address in the call's first operand, with the signature of that prototype.
    Indirect(ProtoId),
}

/// One store to an argument's parameter or one load from a result's: `st.param.v2.b32 [param1+8], {…}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallPiece {
    /// Index into [`CallData::params`] or [`CallData::returns`].
    pub param: u32,
    /// Byte offset in that parameter.
    pub offset: u32,
    /// The type of each element.
    pub ty: RegType,
    /// Number of elements, 1, 2 or 4: as many operands of the call belong to this piece.
    pub len: u8,
}

/// What a call passes and receives. The operands of the call instruction are, in order: the callee's address for an
/// indirect call, the operands of all `args` (uses, immediates or symbols), then the operands of all `rets` (defs).
#[derive(Clone, Debug)]
pub struct CallData {
    /// Whom it calls.
    pub callee: Callee,
    /// The parameters to declare; names are ignored.
    pub params: Vec<ParamDecl>,
    /// The results to declare; names are ignored. PTX functions have at most one.
    pub returns: Vec<ParamDecl>,
    /// The stores before the call, in order.
    pub args: Vec<CallPiece>,
    /// The loads after the call, in order.
    pub rets: Vec<CallPiece>,
    /// `call.uni`: all threads of the warp call the same function together.
    pub uniform: bool,
}

/// A piece of opaque inline assembly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AsmPiece {
    /// Text to print as it is.
    Text(String),
    /// The operand of that index of the instruction (an index into its top-level operands).
    Operand(u32),
}

/// Inline assembly that no table entry matches: text around the instruction's operands.
#[derive(Clone, Debug, Default)]
pub struct AsmData {
    /// The text, operands substituted in between.
    pub pieces: Vec<AsmPiece>,
}
