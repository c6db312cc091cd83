//! Expressions as trees: names are resolved to slots, arrays and functions.

use std::ops::Range;

use crate::functions::Builtin;
use crate::value::{Element, Operator, Value};

/// An expression with its place.
#[derive(Clone, Debug)]
pub struct Expression {
    /// What it is.
    pub kind: Kind,
    /// Bytes of the text.
    pub span: Range<usize>,
}

/// The kinds of expressions.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A whole or real number or a truth value.
    Literal(Literal),
    /// A variable of the frame.
    Local(usize),
    /// A name that a `let` directive defined.
    Named(usize),
    /// An element of an array: as it was given, or (`after`) as the launches left it.
    Element {
        /// Which array.
        array: usize,
        /// After the launches.
        after: bool,
        /// Which element.
        index: Box<Expression>,
    },
    /// Number of elements of an array.
    Length(usize),
    /// `-x`
    Negate(Box<Expression>),
    /// `!x`, `not x`
    Not(Box<Expression>),
    /// An operator on two operands.
    Binary(Operator, Box<[Expression; 2]>),
    /// `and` (true) or `or`: the right side only if it matters.
    Shortcut(bool, Box<[Expression; 2]>),
    /// `if a then b else c`
    If(Box<[Expression; 3]>),
    /// `let x = a in b`
    Let(Pattern, Box<[Expression; 2]>),
    /// A call of a function that a `def` directive defined.
    Call(usize, Vec<Expression>),
    /// A call of a function of the language.
    Builtin(Builtin, Vec<Expression>),
    /// Conversion by the name of a type.
    Convert(Element, Box<Expression>),
    /// An element with these bits.
    OfBits(Element, Box<Expression>),
    /// Random bits of the element: seed, and bounds if there are any.
    Random(Element, Vec<Expression>),
    /// The value at which operations tend to be wrong with this number.
    Edge(Element, Box<Expression>),
    /// `(a, b)`
    Tuple(Vec<Expression>),
    /// `sum(k in a..b: c)` and its like.
    Gather(Box<Gather>),
}

/// A literal.
#[derive(Clone, Copy, Debug)]
pub enum Literal {
    /// Without type.
    Whole(i128),
    /// In double precision.
    Real(f64),
    /// A truth value.
    Bool(bool),
}

impl Literal {
    /// Its value.
    pub fn value(self) -> Value {
        match self {
            Literal::Whole(n) => Value::Whole(n),
            Literal::Real(x) => Value::Real(x),
            Literal::Bool(b) => Value::Bool(b),
        }
    }
}

/// One slot, or one for each part of a tuple.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// The whole value.
    One(usize),
    /// The parts of a tuple.
    Parts(Vec<usize>),
}

/// What is made of the values over a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// Their sum, from the first on; 0 of none.
    Sum,
    /// Their product, from the first on; 1 of none.
    Product,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// How many are true.
    Count,
    /// Whether all are true.
    All,
    /// Whether any is true.
    Any,
    /// Each value replaces the variable of the fold.
    Fold,
}

/// An expression evaluated over a range.
#[derive(Clone, Debug)]
pub struct Gather {
    /// What is made of the values.
    pub how: How,
    /// Slot of the running index.
    pub index: usize,
    /// First index.
    pub from: Expression,
    /// Index after the last.
    pub to: Expression,
    /// Variable of a fold and its first value.
    pub fold: Option<(Pattern, Expression)>,
    /// What is evaluated.
    pub body: Expression,
}

/// An expression with what it needs to be evaluated.
#[derive(Clone, Debug)]
pub struct Closed {
    /// The expression.
    pub body: Expression,
    /// Slots of its frame. Slot 0 is the index `i` where there is one.
    pub slots: usize,
}

/// A function that a directive defined.
#[derive(Clone, Debug)]
pub struct Function {
    /// Number of parameters; they are the first slots.
    pub parameters: usize,
    /// Its value; empty while it is being read.
    pub body: Option<Closed>,
}
