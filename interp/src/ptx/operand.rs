//! Operands with every name looked up.

use ptxc_ir::Space;
use ptxc_targets::{RegType, SpecialReg};

/// Number of a slot: a register's lanes, or those of a constant.
pub type Slot = u32;

/// The slot that holds the address of a function's frame on each lane's stack, where it has one.
pub const FRAME: Slot = 0;

/// A register: its first slot and its type. One of 128 bits takes two slots, the low half first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Register {
    /// First slot.
    pub slot: Slot,
    /// Declared type.
    pub ty: RegType,
}

impl Register {
    /// Bits that it holds; 1 for a predicate.
    pub fn bits(self) -> u32 {
        if self.ty == RegType::Pred { 1 } else { self.ty.bits().into() }
    }
}

/// Where a variable lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Symbol {
    /// A variable of the module, by number.
    Variable(usize, Space),
    /// Bytes from the start of the frame: local variables and the parameters of functions.
    Frame(u64),
    /// Bytes from the start of the kernel's parameters.
    Parameter(u64),
    /// A function, by number.
    Function(usize),
}

impl Symbol {
    /// The space that its address is one of.
    pub fn space(self) -> Space {
        match self {
            Symbol::Variable(_, space) => space,
            Symbol::Frame(_) => Space::Local,
            Symbol::Parameter(_) => Space::Param,
            Symbol::Function(_) => Space::Generic,
        }
    }
}

/// What an address is relative to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// A register.
    Register(Register),
    /// A variable.
    Symbol(Symbol),
    /// Nothing.
    Absolute,
}

/// An operand.
#[derive(Clone, PartialEq, Debug)]
pub enum Operand {
    /// A register.
    Register(Register),
    /// `!%p`
    Not(Register),
    /// A register with a selector or a sign, as video instructions have.
    Selected(Register, bool, String),
    /// An integer.
    Integer(i64),
    /// `0f…`
    Single(u32),
    /// `0d…`
    Double(u64),
    /// `1.5`
    Decimal(f64),
    /// A special register.
    Special(SpecialReg),
    /// The address of a variable plus bytes.
    Address(Symbol, i64),
    /// `[base + offset, …]`
    Memory(Base, i64, Vec<Operand>),
    /// `{…}`
    Vector(Vec<Operand>),
    /// `(…)`
    Group(Vec<Operand>),
    /// `a|b`
    Pair(Box<[Operand; 2]>),
    /// A label, a list of them, or a prototype, by name.
    Label(String),
    /// `_`
    Sink,
}
