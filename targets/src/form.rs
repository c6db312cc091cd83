//! Forms: what the table says about one mnemonic with its operands.

use crate::tables;
use crate::{Effects, PtxVersion, RegType, Target, Tok};

/// The shape of one operand as the caller has it, for [`resolve`].
///
/// Operands are given flat, in preorder: `Vector(n)` is followed by its `n` elements,
/// `Address(n)` by its `n` parts, `Pair` by its two halves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A register of that type.
    Register(RegType),
    /// An integer, floating point or constant expression.
    Immediate,
    /// `{a, b}` with that many elements.
    Vector(u16),
    /// `[a]` or `[a, b, …]` with that many parts; an offset is no part of its own.
    Address(u8),
    /// `a|b`.
    Pair,
    /// `_`.
    Sink,
    /// The name of a variable, parameter or function.
    Symbol,
    /// A branch target.
    Label,
    /// A special register.
    Special,
}

/// What an instruction does with an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Written.
    Dest,
    /// Read.
    Source,
    /// Read, then written.
    ReadWrite,
    /// An address: its registers are read.
    Address,
}

/// What may stand in the place of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A register.
    Register,
    /// An immediate.
    Immediate,
    /// A register or an immediate.
    RegOrImm,
    /// A predicate register; a source may be negated.
    Predicate,
    /// A vector of registers.
    Vector {
        /// How many.
        len: u16,
    },
    /// An address in brackets; its further parts follow as operands of their own.
    Address,
    /// A branch target.
    Label,
    /// The name of a variable or a function.
    Symbol,
}

/// One operand of a form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperandDesc {
    /// The operand's name in the specification.
    pub name: &'static str,
    /// What happens to it.
    pub role: Role,
    /// What it is.
    pub kind: Kind,
    /// The container type of the register, or of each element.
    pub ty: RegType,
    /// May be left out.
    pub optional: bool,
    /// `_` may stand here.
    pub sinkable: bool,
    /// The second half of a pair `d|p`, whose first half is the operand before.
    pub paired: bool,
}

/// Why a target does not take something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} needs {needs}, target is {target}")]
pub struct Refusal {
    /// The instruction, modifier or register.
    pub what: String,
    /// What is needed: targets and versions.
    pub needs: String,
    /// The target asked for.
    pub target: Target,
}

/// Why no form fits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// A piece that no instruction has, or that this one does not have.
    #[error("unknown modifier `.{piece}` of `{instruction}`{hint}")]
    UnknownModifier {
        /// The piece.
        piece: String,
        /// The instruction.
        instruction: String,
        /// `; did you mean …`, or nothing.
        hint: String,
    },
    /// No instruction of that name.
    #[error("unknown instruction `{0}`")]
    UnknownInstruction(String),
    /// The modifiers exist but not together.
    #[error("{0}")]
    Combination(String),
    /// The operands do not fit.
    #[error("{0}")]
    Operands(String),
}

/// A table form with its modifiers filled in.
#[derive(Clone, Debug)]
pub struct Form {
    operands: Vec<OperandDesc>,
    effects: Effects,
    section: &'static str,
    requirements: Vec<u16>,
    mnemonic: String,
}

impl Form {
    /// The operands in PTX's order, destinations first; parts of an address and halves of a
    /// pair are operands of their own.
    pub fn operands(&self) -> &[OperandDesc] {
        &self.operands
    }

    /// What the instruction does besides computing.
    pub fn effects(&self) -> Effects {
        self.effects
    }

    /// The section of PTX ISA 9.4 that describes it.
    pub fn section(&self) -> &'static str {
        self.section
    }

    /// The lowest `.version` with which `target` takes the form.
    ///
    /// # Errors
    /// The target never takes it.
    pub fn requirement(&self, target: Target) -> Result<PtxVersion, Refusal> {
        let mut version = target.min_ptx();
        for &requirement in &self.requirements {
            version = version.max(requirement_on(requirement, target, &self.mnemonic)?);
        }
        Ok(version)
    }
}

/// Finds the form of the mnemonic `toks` whose operands fit `shapes`.
///
/// # Errors
/// No form fits; the error says what is wrong with the one that came closest.
pub fn resolve(toks: &[Tok], shapes: &[Shape]) -> Result<Form, FormError> {
    let _ = shapes;
    Err(FormError::UnknownInstruction(
        toks.first()
            .map_or_else(String::new, |head| head.to_string()),
    ))
}

/// `toks` in the specification's order.
pub(crate) fn spec_order(toks: &[Tok]) -> Vec<Tok> {
    toks.to_vec()
}

/// The error for a piece that is no token, after the pieces `before`.
pub(crate) fn unknown_piece(before: &[Tok], piece: &str) -> FormError {
    match before.first() {
        None => FormError::UnknownInstruction(piece.to_owned()),
        Some(head) => FormError::UnknownModifier {
            piece: piece.to_owned(),
            instruction: head.to_string(),
            hint: String::new(),
        },
    }
}

/// The version that requirement `index` sets on `target`; `what` is named in the refusal.
pub(crate) fn requirement_on(
    index: u16,
    target: Target,
    what: &str,
) -> Result<PtxVersion, Refusal> {
    let requirement = &tables::REQUIREMENTS[usize::from(index)];
    match requirement.versions[target.index()] {
        u8::MAX => Err(Refusal {
            what: what.to_owned(),
            needs: requirement.text.to_owned(),
            target,
        }),
        number => Ok(PtxVersion::from_row(number).max(target.min_ptx())),
    }
}
