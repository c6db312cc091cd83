//! Functions that hardware approximates: the host's in double precision, rounded once more.

use ptxc_ir::FloatKind;

use super::{Mode, convert, flush};

/// A function without an exact definition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Function {
    /// `1 / sqrt(x)`
    Rsqrt,
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// Two to the power x.
    Exp2,
    /// Logarithm to base two.
    Log2,
    /// Hyperbolic tangent.
    Tanh,
}

/// The function's value at `a`. A GPU's result differs by a few units in the last place, or more where the argument is
/// large.
pub fn approximate(function: Function, kind: FloatKind, a: u64, mode: Mode) -> u64 {
    let a = if mode.ftz { flush(kind, a) } else { a };
    let x = f64::from_bits(convert(kind, FloatKind::F64, a, Mode::default()));
    let y = match function {
        Function::Rsqrt => 1.0 / x.sqrt(),
        Function::Sin => x.sin(),
        Function::Cos => x.cos(),
        Function::Exp2 => x.exp2(),
        Function::Log2 => x.log2(),
        Function::Tanh => x.tanh(),
    };
    let result = convert(FloatKind::F64, kind, y.to_bits(), mode);
    if mode.ftz { flush(kind, result) } else { result }
}
