//! Operands: a flat prefix encoding.
//!
//! All operands of an instruction lie in one slice. A group (`{…}`, `[…]`, `a|b`, `(…)`) is an [`Operand::Open`] that
//! says how many of the following slots belong to it, groups inside it included. So
//! `ld.global.v2.b32 {%r1, %r2}, [%rd3+8]` is
//!
//! ```text
//! Open(Vector, 2) Def(r1) Def(r2) Open(Address, 2) Use(rd3) Offset(8)
//! ```
//!
//! Passes that only want registers walk the slice and ignore the rest; nobody needs a tree.

use crate::entities::{Block, SymId, VReg};
use ptxc_targets::{Lanes, SpecialReg};

/// How a group of operands is bracketed in PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupKind {
    /// `{a, b, …}`
    Vector,
    /// `[a, b, …]`; an [`Operand::Offset`] joins the operand before it as `a+n`.
    Address,
    /// `a|b`, as in the two destinations of `setp` and `shfl.sync`.
    Pair,
    /// `(a, b, …)`
    Paren,
}

/// One slot of an instruction's operand list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A register the instruction writes.
    Def(VReg),
    /// A register the instruction reads.
    Use(VReg),
    /// A predicate it reads negated, `!%p`.
    UseNot(VReg),
    /// A register it reads negated, `-%r`, as `vmad` allows (PTX ISA 9.7.20.1).
    UseMinus(VReg),
    /// One PTX operand that is read and written (`wgmma` and `tcgen05` accumulators, read-modify-write registers).
    /// In SSA the old and the new value are two registers; register assignment makes them one.
    DefUse {
        /// The value after the instruction.
        def: VReg,
        /// The value before it.
        used: VReg,
    },
    /// An integer literal, printed in decimal.
    Imm(i64),
    /// A single-precision literal by its bits, printed `0f…`.
    F32(u32),
    /// A double-precision literal by its bits, printed `0d…`.
    F64(u64),
    /// `_`: a result nobody wants or an absent source.
    Sink,
    /// The address of a module symbol plus a byte offset, or a texture, surface or sampler name.
    Sym(SymId, i32),
    /// The function's own parameter of that index, plus a byte offset.
    Param(u32, i32),
    /// The function's own return parameter of that index, plus a byte offset.
    RetParam(u32, i32),
    /// The function's frame in local memory, plus a byte offset.
    Depot(i32),
    /// A special register.
    SReg(SpecialReg),
    /// A block's label.
    Label(Block),
    /// Opens a group of the next n slots.
    Open(GroupKind, u16),
    /// A byte offset on the operand before it, `+n`. Not counted as an element by itself.
    Offset(i64),
    /// The bytes or halves taken of the register before it, `.b0`. Not counted as an element by itself.
    Lanes(Lanes),
}

/// A register operand as register assignment, liveness and scheduling see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegUse {
    /// Read.
    Use(VReg),
    /// Written, after all reads.
    Def(VReg),
    /// `used` is read and `def` written in the same register.
    Tied {
        /// The value after the instruction.
        def: VReg,
        /// The value before it.
        used: VReg,
    },
}

impl Operand {
    /// The register access this operand makes, if any.
    pub fn reg(self) -> Option<RegUse> {
        match self {
            Operand::Def(v) => Some(RegUse::Def(v)),
            Operand::Use(v) | Operand::UseNot(v) | Operand::UseMinus(v) => Some(RegUse::Use(v)),
            Operand::DefUse { def, used } => Some(RegUse::Tied { def, used }),
            _ => None,
        }
    }

    /// The register this operand writes.
    pub fn def(self) -> Option<VReg> {
        match self {
            Operand::Def(v) | Operand::DefUse { def: v, .. } => Some(v),
            _ => None,
        }
    }

    /// The register this operand reads.
    pub fn used(self) -> Option<VReg> {
        match self {
            Operand::Use(v) | Operand::UseNot(v) | Operand::UseMinus(v) | Operand::DefUse { used: v, .. } => Some(v),
            _ => None,
        }
    }

    /// Replaces the register that is read, keeping negation and tie.
    pub fn set_used(&mut self, to: VReg) {
        match self {
            Operand::Use(v) | Operand::UseNot(v) | Operand::UseMinus(v) | Operand::DefUse { used: v, .. } => *v = to,
            _ => {}
        }
    }

    /// Replaces the register that is written.
    pub fn set_def(&mut self, to: VReg) {
        match self {
            Operand::Def(v) | Operand::DefUse { def: v, .. } => *v = to,
            _ => {}
        }
    }

    /// Whether this slot begins a PTX operand of its own (offsets and lanes only extend the one before).
    pub fn is_element(self) -> bool {
        !matches!(self, Operand::Offset(_) | Operand::Lanes(_))
    }
}

/// The top-level PTX operands of a flat operand slice: each item is the slice of one operand, groups and offsets
/// included.
pub fn top_level(operands: &[Operand]) -> TopLevel<'_> {
    TopLevel { rest: operands }
}

/// Iterator of [`top_level`].
#[derive(Clone, Debug)]
pub struct TopLevel<'a> {
    rest: &'a [Operand],
}

impl<'a> Iterator for TopLevel<'a> {
    type Item = &'a [Operand];

    fn next(&mut self) -> Option<&'a [Operand]> {
        let mut len = match self.rest.first()? {
            Operand::Open(_, n) => 1 + usize::from(*n),
            _ => 1,
        };
        while self.rest.get(len).is_some_and(|slot| !slot.is_element()) {
            len += 1;
        }
        let (head, tail) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = tail;
        Some(head)
    }
}

const _: () = assert!(size_of::<Operand>() <= 16, "operands are copied by the million");
