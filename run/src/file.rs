//! What a run file says.

use std::ops::Range;

use ptxc_targets::Target;

use crate::error::Error;
use crate::expression::{Closed, Function};
use crate::read;
use crate::value::Element;

/// A run file: what its directives say about its module.
#[derive(Clone, Debug)]
pub struct RunFile {
    /// The cases in order. A file without `case` directives has one without a name, or none if it launches nothing.
    pub cases: Vec<Case>,
    /// The least target that the kernels need; none is all of them.
    pub target: Option<Target>,
    /// What is known not to work.
    pub gaps: Vec<Gap>,
    pub(crate) functions: Vec<Function>,
    pub(crate) arrays: Vec<ArrayName>,
}

impl RunFile {
    /// Reads the directives of a text; what is no directive is not looked at.
    ///
    /// # Errors
    /// The first thing that is wrong with the directives.
    pub fn read(text: &str) -> Result<RunFile, Error> {
        read::read(text)
    }

    /// Whether an executor is known not to run the file, and why.
    pub fn gap(&self, executor: &str) -> Option<&str> {
        self.gaps.iter().find(|gap| gap.executor == executor).map(|gap| gap.reason.as_str())
    }
}

/// Launches with what they need and what must come of them.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// Name; empty for the only case of a file.
    pub name: String,
    pub(crate) steps: Vec<Step>,
}

impl Case {
    /// Text that the error of the program as it is written has to contain, if there has to be one.
    pub fn failure(&self) -> Option<&str> {
        self.steps.iter().find_map(|step| if let Step::Fails(text) = step { Some(text.as_str()) } else { None })
    }

    /// Text of warnings that are expected; the program as it is written has to give one.
    pub fn warning(&self) -> Option<&str> {
        self.steps.iter().find_map(|step| if let Step::Warns(text) = step { Some(text.as_str()) } else { None })
    }
}

/// An executor that is known not to run the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gap {
    /// `interpreter`, `emulator` or `gpu`.
    pub executor: String,
    /// What is missing.
    pub reason: String,
}

/// An array's name and type.
#[derive(Clone, Debug)]
pub(crate) struct ArrayName {
    pub name: String,
    pub element: Element,
}

/// One directive of a case.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Let(usize, Closed),
    Array(ArrayStep),
    Launch(LaunchStep),
    Expect(Box<Expect>),
    Check(Check),
    Fails(String),
    Warns(String),
    Free(usize),
    Print(Part),
}

/// An array, which kernels see if it is a buffer.
#[derive(Clone, Debug)]
pub(crate) struct ArrayStep {
    pub array: usize,
    pub buffer: bool,
    pub length: Closed,
    pub fill: Option<Fill>,
}

/// Contents of an array or of a part of one.
#[derive(Clone, Debug)]
pub(crate) enum Fill {
    /// One expression for all elements.
    Each(Closed),
    /// One for each.
    List(Vec<Closed>, Range<usize>),
    /// Bytes.
    Bytes(Vec<u8>, Range<usize>),
    /// The bytes of a file.
    File(String, Range<usize>),
}

/// Some elements of an array.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub array: usize,
    pub bounds: Bounds,
    pub span: Range<usize>,
}

/// Which elements.
#[derive(Clone, Debug)]
pub(crate) enum Bounds {
    All,
    One(Closed),
    Range(Closed, Closed),
}

#[derive(Clone, Debug)]
pub(crate) struct LaunchStep {
    pub kernel: String,
    pub arguments: Vec<Operand>,
    pub grid: Option<Vec<Closed>>,
    pub block: Option<Vec<Closed>>,
    pub cluster: Option<Vec<Closed>>,
    pub shared: Option<Closed>,
    pub span: Range<usize>,
}

/// An argument of a launch.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    /// A number.
    Value(Closed),
    /// The address of an element of a buffer, the first without a number.
    Buffer(usize, Option<Closed>, Range<usize>),
    /// The scalars of a struct, array or vector in order.
    List(Vec<Operand>, Range<usize>),
}

/// How far from the expected a result may be; any one of several is enough.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Tolerance {
    /// Numbers of the format between the two.
    Ulp(u64),
    /// Times the expected magnitude.
    Relative(f64),
    /// Difference.
    Absolute(f64),
}

#[derive(Clone, Debug)]
pub(crate) struct Expect {
    pub part: Part,
    pub value: Fill,
    pub condition: Option<Closed>,
    pub tolerances: Vec<Tolerance>,
}

#[derive(Clone, Debug)]
pub(crate) struct Check {
    pub condition: Closed,
    pub message: Option<String>,
}
