//! Forms: what the table says about one mnemonic with its operands.

use crate::explain;
use crate::matching::{self, Candidate, OperandCheck};
use crate::operands::{self, Arguments, Mismatch, Places};
use crate::tables::{self, flag};
use crate::{Effects, PtxVersion, RegType, Space, Target, Tok};

/// The shape of one operand as the caller has it, for [`resolve`].
///
/// Operands are given flat, in preorder: `Vector(n)` is followed by its `n` elements,
/// `Address(n)` by its `n` parts, `Pair` by its two halves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A register of that type.
    Register(RegType),
    /// A vector register declared with that many lanes (`.reg .v4 .f32`).
    WideRegister(RegType, u8),
    /// `!p`.
    NegatedPredicate,
    /// A register with a selector of bytes or halves: `%r1.b0`, `%r1.h1` (PTX ISA 9.7.20).
    Selected(RegType, Selector),
    /// `-%r1`, as `vmad` allows.
    Minus(RegType, Option<Selector>),
    /// A constant integer whose value does not matter.
    Immediate,
    /// An integer.
    Integer(i64),
    /// A floating point constant: `0f…` (`Some(false)`), `0d…` (`Some(true)`), `1.5` (`None`).
    Float(Option<bool>),
    /// `{a, b}` with that many elements.
    Vector(u16),
    /// `[a]` or `[a, b, …]` with that many parts; an offset is no part of its own.
    Address(u8),
    /// `a|b`.
    Pair,
    /// `_`.
    Sink,
    /// `(a, b)` with that many elements, as calls have.
    Group(u16),
    /// The name of a variable, parameter or function.
    Symbol,
    /// The name of a variable in that space.
    Variable(Space),
    /// An element of a variable, `name[4]`, which is an address without brackets.
    Element(Space),
    /// The name of a texture, sampler or surface.
    Opaque(RegType),
    /// A branch target.
    Label,
    /// A special register.
    Special,
    /// A special register of that type.
    SpecialOf(RegType),
}

/// Which bytes or halves of a register a video instruction takes (PTX ISA 9.7.20).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Selector {
    /// `.b0` to `.b3`
    Byte(u8),
    /// `.h0`, `.h1`
    Half(u8),
    /// `.h10` and its like.
    Halves {
        /// Digits.
        count: u8,
        /// The digits fall and are 0 or 1: also a mask of results.
        mask: bool,
    },
    /// `.b3210` and its like.
    Bytes {
        /// Digits.
        count: u8,
        /// The digits fall and are at most 3: also a mask of results.
        mask: bool,
    },
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
    candidate: Candidate,
}

impl Form {
    pub(crate) fn new(candidate: Candidate, places: &Places) -> Form {
        let operands = candidate
            .checks
            .iter()
            .zip(places)
            .filter(|(_, place)| **place != u16::MAX)
            .map(|(check, _)| describe(check))
            .collect();
        Form { operands, candidate }
    }

    /// The operands that are there, in PTX's order, destinations first; parts of an address and
    /// halves of a pair are operands of their own.
    pub fn operands(&self) -> &[OperandDesc] {
        &self.operands
    }

    /// What the instruction does besides computing.
    pub fn effects(&self) -> Effects {
        self.candidate.effects
    }

    /// The section of PTX ISA 9.4 that describes it.
    pub fn section(&self) -> &'static str {
        matching::row(self.candidate.form).section
    }

    /// The form as the table writes it: the grammar of the mnemonic, then the operands.
    pub fn syntax(&self) -> &'static str {
        matching::row(self.candidate.form).syntax
    }

    /// The pieces of the mnemonic in the specification's order.
    pub fn toks(&self) -> impl Iterator<Item = Tok> + '_ {
        self.candidate.binding.pieces()
    }

    /// The piece that fills the slot `name` of the table, if one does.
    pub fn modifier(&self, name: &str) -> Option<Tok> {
        let at = matching::slots(self.candidate.form).iter().position(|slot| slot.name == name)?;
        Some(self.candidate.binding.get(at as u16)).filter(|piece| *piece != matching::EMPTY).map(Tok)
    }

    /// The lowest `.version` with which `target` takes the form.
    ///
    /// # Errors
    /// The target never takes it.
    pub fn requirement(&self, target: Target) -> Result<PtxVersion, Refusal> {
        refusal(&self.candidate, target)
    }
}

/// The lowest version of a candidate on `target`.
pub(crate) fn refusal(candidate: &Candidate, target: Target) -> Result<PtxVersion, Refusal> {
    match candidate.versions[target.index()] {
        u8::MAX => {
            let refused = candidate
                .requirements
                .iter()
                .find(|number| tables::REQUIREMENTS[usize::from(**number)].versions[target.index()] == u8::MAX);
            Err(Refusal {
                what: format!("`{}`", mnemonic(candidate.binding.pieces())),
                needs: refused.map_or("", |number| tables::REQUIREMENTS[usize::from(*number)].text).to_owned(),
                target,
            })
        }
        number => Ok(PtxVersion::from_row(number)),
    }
}

/// Pieces joined by dots.
pub(crate) fn mnemonic(pieces: impl Iterator<Item = Tok>) -> String {
    let mut text = String::new();
    for piece in pieces {
        if !text.is_empty() {
            text.push('.');
        }
        text.push_str(piece.text());
    }
    text
}

fn describe(check: &OperandCheck) -> OperandDesc {
    let flags = check.row.flags;
    let ty = match tables::TYPES.get(usize::from(check.ty)) {
        Some(row) => row.container,
        None if check.row.parts > 0 => RegType::B64,
        None => RegType::B32,
    };
    let kind = if check.row.parts > 0 {
        Kind::Address
    } else if flags & flag::LABEL != 0 {
        Kind::Label
    } else if flags & (flag::SYMBOL | flag::GROUP) != 0 {
        Kind::Symbol
    } else if check.row.len != 0 && (check.len != 1 || flags & flag::LIST != 0) {
        Kind::Vector { len: check.len }
    } else if ty == RegType::Pred {
        Kind::Predicate
    } else if flags & flag::IMM != 0 {
        Kind::Immediate
    } else if flags & (flag::REG | flag::OUT | flag::INOUT) != 0 {
        Kind::Register
    } else {
        Kind::RegOrImm
    };
    let role = if check.row.parts > 0 {
        Role::Address
    } else if flags & flag::OUT != 0 {
        Role::Dest
    } else if flags & flag::INOUT != 0 {
        Role::ReadWrite
    } else {
        Role::Source
    };
    OperandDesc {
        name: check.row.name,
        role,
        kind,
        ty,
        optional: flags & flag::OPTIONAL != 0,
        sinkable: flags & flag::SINK != 0,
        paired: flags & flag::PAIRED != 0,
    }
}

/// Finds the form of the mnemonic `toks` whose operands fit `shapes`.
///
/// # Errors
/// No form fits; the error says what is wrong with the one that came closest.
pub fn resolve(toks: &[Tok], shapes: &[Shape]) -> Result<Form, FormError> {
    let candidates = matching::remembered(toks);
    let arguments =
        Arguments::new(shapes).ok_or_else(|| FormError::Operands("the operands are no whole trees".to_owned()))?;
    let mut best: Option<(usize, FormError)> = None;
    for candidate in candidates.iter() {
        let problem = match accept(candidate, &arguments) {
            Ok((candidate, places)) => return Ok(Form::new(candidate, &places)),
            Err(problem) => problem,
        };
        let rank = match &problem {
            Problem::Forbidden(_) => usize::MAX,
            Problem::Operands(mismatch) => mismatch.argument,
        };
        if best.as_ref().is_none_or(|(other, _)| rank > *other) {
            best = Some((rank, problem.error(candidate, toks)));
        }
    }
    Err(match best {
        Some((_, error)) => error,
        None => explain::unmatched(toks),
    })
}

/// Why a candidate is not taken.
pub(crate) enum Problem {
    Forbidden(&'static str),
    Operands(Mismatch),
}

impl Problem {
    pub(crate) fn error(&self, candidate: &Candidate, toks: &[Tok]) -> FormError {
        match self {
            Problem::Forbidden(message) => {
                FormError::Combination(format!("`{}`: {message}", mnemonic(toks.iter().copied())))
            }
            Problem::Operands(mismatch) => FormError::Operands(explain::mismatch(candidate, *mismatch, toks)),
        }
    }
}

/// The candidate with its operands known, and where they are.
pub(crate) fn accept(candidate: &Candidate, arguments: &Arguments) -> Result<(Candidate, Places), Problem> {
    let places = operands::fit(candidate, arguments).map_err(Problem::Operands)?;
    let mut candidate: Candidate = candidate.clone();
    if candidate.dynamic {
        candidate.apply_dynamic(&|question, operand| operands::answer(arguments, &places, question, operand));
    }
    match candidate.forbidden {
        Some(message) => Err(Problem::Forbidden(message)),
        None => Ok((candidate, places)),
    }
}

/// `toks` in the specification's order, as they are where no form has them.
pub(crate) fn spec_order(toks: &[Tok]) -> Vec<Tok> {
    let candidates = matching::remembered(toks);
    let allowed = candidates.iter().find(|candidate| candidate.forbidden.is_none());
    match allowed.or(candidates.first()) {
        Some(candidate) => candidate.binding.pieces().collect(),
        None => toks.to_vec(),
    }
}

/// The error for a piece that is no token, after the pieces `before`.
pub(crate) fn unknown_piece(before: &[Tok], piece: &str) -> FormError {
    match before.first() {
        None => FormError::UnknownInstruction(piece.to_owned()),
        Some(head) => {
            let hint = explain::hint(matching::forms_of(*head), piece);
            FormError::UnknownModifier { piece: piece.to_owned(), instruction: head.to_string(), hint }
        }
    }
}

/// The version that requirement `index` sets on `target`; `what` is named in the refusal.
pub(crate) fn requirement_on(index: u16, target: Target, what: &str) -> Result<PtxVersion, Refusal> {
    let requirement = &tables::REQUIREMENTS[usize::from(index)];
    match requirement.versions[target.index()] {
        u8::MAX => Err(Refusal { what: what.to_owned(), needs: requirement.text.to_owned(), target }),
        number => Ok(PtxVersion::from_row(number).max(target.min_ptx())),
    }
}

/// The operand lists of the forms that `toks` may be, as far as the mnemonic alone tells: `optional` says of an
/// operand that it may be left out (it is missing where the mnemonic excludes it). Forbidden combinations are not
/// among them. Empty when no form has the mnemonic; [`resolve`] then says why.
pub fn operand_lists(toks: &[Tok]) -> Vec<Vec<OperandDesc>> {
    let candidates = matching::remembered(toks);
    let allowed = candidates.iter().filter(|candidate| candidate.forbidden.is_none());
    let operands = |candidate: &Candidate| {
        let present = candidate.checks.iter().filter(|check| check.presence != matching::Presence::Never);
        let maybe = |check: &OperandCheck| check.presence == matching::Presence::Maybe;
        present.map(|check| OperandDesc { optional: maybe(check), ..describe(check) }).collect()
    };
    allowed.map(operands).collect()
}
