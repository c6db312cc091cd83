//! Do operands fit a form?

use crate::RegType;
use crate::expression::Question;
use crate::form::{Selector, Shape};
use crate::matching::{Candidate, OperandCheck, Presence};
use crate::tables::{self, flag};
use crate::types::Class;
use smallvec::SmallVec;

/// Operands, flat in preorder, with the end of each subtree.
pub(crate) struct Arguments<'a> {
    pub shapes: &'a [Shape],
    ends: SmallVec<[u16; 32]>,
}

impl<'a> Arguments<'a> {
    /// `None` if the shapes are no whole trees.
    pub(crate) fn new(shapes: &'a [Shape]) -> Option<Arguments<'a>> {
        let mut ends: SmallVec<[u16; 32]> = SmallVec::from_elem(0, shapes.len());
        // Backwards, every child's end is known before its parent asks.
        for at in (0..shapes.len()).rev() {
            let children = match shapes[at] {
                Shape::Vector(count) | Shape::Group(count) => count,
                Shape::Address(count) => u16::from(count),
                Shape::Pair => 2,
                _ => 0,
            };
            let mut end = at + 1;
            for _ in 0..children {
                end = usize::from(*ends.get(end)?);
            }
            ends[at] = u16::try_from(end).ok()?;
        }
        Some(Arguments { shapes, ends })
    }

    fn end(&self, at: usize) -> usize {
        usize::from(self.ends[at])
    }
}

/// Why operands do not fit, at the argument that got furthest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mismatch {
    /// Position in the flat arguments; their number where one is missing.
    pub argument: usize,
    /// Position in the form's operands; their number where one is too many.
    pub operand: usize,
}

/// Where each operand of the form is in the arguments, `u16::MAX` where it is left out.
pub(crate) type Places = SmallVec<[u16; 24]>;

/// Matches `arguments` against the operands of `candidate`.
pub(crate) fn fit(candidate: &Candidate, arguments: &Arguments) -> Result<Places, Mismatch> {
    let mut matcher = Matcher {
        checks: &candidate.checks,
        arguments,
        places: SmallVec::from_elem(u16::MAX, candidate.checks.len()),
        furthest: Mismatch { argument: 0, operand: 0 },
    };
    if matcher.operand(0, 0, None) { Ok(matcher.places) } else { Err(matcher.furthest) }
}

struct Matcher<'a> {
    checks: &'a [OperandCheck],
    arguments: &'a Arguments<'a>,
    places: Places,
    furthest: Mismatch,
}

impl Matcher<'_> {
    fn fail(&mut self, argument: usize, operand: usize) -> bool {
        if argument >= self.furthest.argument {
            self.furthest = Mismatch { argument, operand };
        }
        false
    }

    /// Matches operand `at` and those after it from argument `from` on; `inside` is the end of the
    /// address that is open. The depth is the number of operands in the table.
    fn operand(&mut self, at: usize, from: usize, inside: Option<usize>) -> bool {
        let Some(check) = self.checks.get(at) else {
            let done = from == self.arguments.shapes.len() && inside.is_none_or(|end| end == from);
            return done || self.fail(from, at);
        };
        if check.row.flags & (flag::INSIDE | flag::PAIRED) == 0
            && let Some(end) = inside
        {
            return if from == end { self.operand(at, from, None) } else { self.fail(from, at) };
        }
        let skip = if check.row.parts > 0 { usize::from(check.row.parts) } else { 1 };
        if check.presence == Presence::Never {
            return self.operand(at + skip, from, inside);
        }
        if self.present(at, from, inside) {
            return true;
        }
        check.presence == Presence::Maybe && self.operand(at + skip, from, inside)
    }

    fn present(&mut self, at: usize, from: usize, inside: Option<usize>) -> bool {
        let check = &self.checks[at];
        if inside.is_some_and(|end| from >= end) {
            return self.fail(from, at);
        }
        let Some(&shape) = self.arguments.shapes.get(from) else {
            return self.fail(from, at);
        };
        self.places[at] = from as u16;
        let matched = if check.row.parts > 0 {
            let bare = matches!(shape, Shape::Element(_)) && check.row.parts == 1;
            if bare && self.operand(at + 1, from + 1, inside) {
                return true;
            }
            matches!(shape, Shape::Address(_))
                && base_fits(check, self.arguments.shapes.get(from + 1).copied())
                && self.operand(at + 1, self.arguments.end(from + 1), Some(self.arguments.end(from)))
        } else if let Some(second) = self.checks.get(at + 1).filter(|next| next.row.flags & flag::PAIRED != 0) {
            match shape {
                Shape::Pair if second.presence != Presence::Never => {
                    let middle = self.arguments.end(from + 1);
                    self.places[at] = (from + 1) as u16;
                    self.places[at + 1] = middle as u16;
                    self.fits(at, from + 1)
                        && self.fits(at + 1, middle)
                        && self.operand(at + 2, self.arguments.end(from), inside)
                }
                _ if second.presence != Presence::Always => {
                    self.fits(at, from) && self.operand(at + 2, self.arguments.end(from), inside)
                }
                _ => false,
            }
        } else {
            self.fits(at, from) && self.operand(at + 1, self.arguments.end(from), inside)
        };
        if !matched {
            self.places[at] = u16::MAX;
            return self.fail(from, at);
        }
        true
    }

    /// Whether the argument at `from` is a register, vector or immediate that operand `at` takes.
    fn fits(&self, at: usize, from: usize) -> bool {
        let check = &self.checks[at];
        match self.arguments.shapes[from] {
            Shape::Vector(_) if check.row.flags & flag::GROUP != 0 => true,
            Shape::Vector(count) => {
                let elements = &self.arguments.shapes[from + 1..self.arguments.end(from)];
                check.row.len != 0 && count == check.len && vector_fits(check, elements)
            }
            Shape::WideRegister(ty, count) => {
                check.row.len != 0 && u16::from(count) == check.len && scalar_fits(check, Shape::Register(ty))
            }
            Shape::Group(_) => check.row.flags & flag::GROUP != 0,
            Shape::Sink => check.row.flags & flag::SINK != 0,
            shape => check.len == 1 && check.row.flags & flag::LIST == 0 && scalar_fits(check, shape),
        }
    }
}

/// The first element may have a type of its own: an array index before coordinates.
fn vector_fits(check: &OperandCheck, elements: &[Shape]) -> bool {
    let first = OperandCheck { ty: check.first, ..*check };
    elements.iter().enumerate().all(|(index, shape)| {
        *shape == Shape::Sink && check.row.flags & flag::VECTOR_SINK != 0
            || scalar_fits(if index == 0 { &first } else { check }, *shape)
    })
}

fn base_fits(check: &OperandCheck, shape: Option<Shape>) -> bool {
    let Some(shape) = shape else { return false };
    match shape {
        Shape::Register(ty) if check.ty != u16::MAX => type_fits(check, ty),
        Shape::Register(ty) => {
            // The assembler takes any width; where it does not, 32 bits are what it names.
            matches!(ty.class(), Class::Bits | Class::Unsigned | Class::Signed) && (ty.bits() != 32 || check.small)
        }
        Shape::Opaque(ty) => {
            tables::TYPES.get(usize::from(check.ty)).is_some_and(|row| row.container == ty)
                || check.row.flags & flag::SYMBOL_OK != 0
        }
        Shape::Immediate | Shape::Integer(_) => check.row.flags & flag::ABSOLUTE != 0,
        Shape::Variable(space) => check.space.is_none_or(|wanted| wanted == space),
        Shape::Symbol => true,
        _ => false,
    }
}

fn scalar_fits(check: &OperandCheck, shape: Shape) -> bool {
    let flags = check.row.flags;
    let written = flags & (flag::OUT | flag::INOUT) != 0;
    match shape {
        Shape::Register(ty) => flags & flag::IMM == 0 && type_fits(check, ty),
        Shape::NegatedPredicate => type_fits(check, RegType::Pred) && !written,
        Shape::Selected(ty, selector) => selector_fits(flags, selector) && type_fits(check, ty),
        Shape::Minus(ty, selector) => {
            flags & flag::MINUS != 0
                && selector.is_none_or(|selector| selector_fits(flags, selector))
                && type_fits(check, ty)
        }
        Shape::Sink => flags & flag::SINK != 0,
        Shape::Special => flags & flag::SYMBOL_OK != 0,
        Shape::SpecialOf(ty) => {
            let integer = tables::TYPES.get(usize::from(check.ty)).is_some_and(|row| row.int);
            flags & flag::SYMBOL_OK != 0 && (type_fits(check, ty) || integer)
        }
        Shape::Opaque(ty) => flags & flag::SYMBOL_OK != 0 || type_fits(check, ty),
        Shape::Symbol | Shape::Variable(_) | Shape::Element(_) => flags & (flag::SYMBOL | flag::SYMBOL_OK) != 0,
        Shape::Label => flags & (flag::LABEL | flag::SYMBOL_OK) != 0,
        Shape::Immediate => {
            let any = immediate_type(check, false) || immediate_type(check, true);
            !written && flags & flag::REG == 0 && any
        }
        Shape::Integer(value) => {
            !written
                && flags & flag::REG == 0
                && (flags & flag::RANGE == 0 || in_range(check.row, value))
                && immediate_type(check, false)
        }
        Shape::Float(double) => {
            !written && flags & flag::REG == 0 && immediate_type(check, true) && {
                let bits = tables::TYPES.get(usize::from(check.ty)).map_or("", |row| row.name);
                match bits {
                    "b32" => double != Some(true),
                    "b64" => double != Some(false),
                    _ => true,
                }
            }
        }
        Shape::Vector(_) | Shape::Address(_) | Shape::Pair | Shape::Group(_) => false,
        Shape::WideRegister(..) => false,
    }
}

/// Whether a video instruction takes the selector there (PTX ISA 9.7.20).
fn selector_fits(flags: u32, selector: Selector) -> bool {
    match selector {
        Selector::Byte(_) => flags & (flag::SELECT | flag::MASK4) != 0,
        Selector::Half(_) => flags & (flag::SELECT | flag::MASK2) != 0,
        Selector::Halves { count, mask } => {
            flags & flag::MASK2 != 0 && mask || flags & flag::SELECT2 != 0 && count == 2
        }
        Selector::Bytes { count, mask } => flags & flag::MASK4 != 0 && mask || flags & flag::SELECT4 != 0 && count == 4,
    }
}

fn immediate_type(check: &OperandCheck, float: bool) -> bool {
    if check.row.flags & (flag::LABEL | flag::SYMBOL | flag::GROUP) != 0 {
        return false;
    }
    match tables::TYPES.get(usize::from(check.ty)) {
        None => !float && check.row.flags & flag::IMM != 0,
        Some(row) if float => row.float,
        Some(row) => row.int,
    }
}

/// Whether a register of type `ty` may stand for the operand (PTX ISA 9.4.1).
fn type_fits(check: &OperandCheck, ty: RegType) -> bool {
    let Some(row) = tables::TYPES.get(usize::from(check.ty)) else {
        return false;
    };
    let class = match (ty.class(), ty) {
        // Packed halves are bits to every instruction of 32 bits.
        (_, RegType::F16x2) => 1,
        (Class::Bits, _) => 1,
        (Class::Unsigned, _) => 2,
        (Class::Signed, _) => 4,
        (Class::Float, _) => 8,
        (Class::Predicate, _) => 32,
        (Class::Opaque, _) => return ty == row.container,
    };
    if row.container.class() == Class::Opaque {
        // A texture or a surface by its 64-bit handle.
        return class & 7 != 0 && ty.bits() == 64;
    }
    let container = row.container.bits();
    if check.row.flags & flag::RELAXED != 0 && class & 7 != 0 {
        let integer = if row.accepts & 6 != 0 { 7 } else { 1 };
        return class & integer != 0 && ty.bits() >= container;
    }
    if check.row.flags & flag::RELAXED != 0 && class & 8 != 0 && row.name.starts_with('b') {
        return ty.bits() >= container;
    }
    let byte = row.accepts & 64 != 0 && matches!(ty, RegType::B8 | RegType::B16);
    byte || row.accepts & class != 0 && ty.bits() == container
}

/// Answers the tables' questions about operands that fit.
pub(crate) fn answer(arguments: &Arguments, places: &Places, question: Question, operand: u16) -> bool {
    let at = places.get(usize::from(operand)).copied().unwrap_or(u16::MAX);
    let Some(&shape) = arguments.shapes.get(usize::from(at)) else {
        return false;
    };
    // A question about an address is one about its base.
    let shape = match shape {
        Shape::Address(_) => arguments.shapes.get(usize::from(at) + 1).copied().unwrap_or(shape),
        _ => shape,
    };
    match question {
        Question::Present => true,
        Question::Immediate => {
            matches!(shape, Shape::Immediate | Shape::Integer(_) | Shape::Float(_))
        }
        Question::Vector => matches!(shape, Shape::Vector(_)),
        Question::Sink => shape == Shape::Sink,
        Question::Pair => at > 0 && arguments.shapes[usize::from(at) - 1] == Shape::Pair,
        Question::Symbol => matches!(shape, Shape::Symbol | Shape::Variable(_) | Shape::Element(_)),
        Question::Small => matches!(shape, Shape::Register(ty) if ty.bits() < 64),
        Question::Selected => matches!(shape, Shape::Selected(..)),
        Question::Register => matches!(shape, Shape::Register(_)),
    }
}

/// True where an immediate is one of the values that the operand's range names.
fn in_range(row: &tables::OperandRow, value: i64) -> bool {
    (row.lo..=row.hi).contains(&value)
        && match i64::from(row.step) {
            0 => value.count_ones() == 1,
            step => (value - row.lo) % step == 0,
        }
}
