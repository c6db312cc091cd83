//! Constant folding and identities for the integer instructions that expansions emit.
//!
//! Small on purpose: it keeps expansions short when an operand is constant; general simplification is the optimizer's.

use ptxc_ir::{Dfg, IntCC, Opcode, Type, Value};

/// What an operation folds to.
pub(super) enum Folded {
    /// An operand.
    Value(Value),
    /// A constant of the operation's type.
    Bits(u128),
}

fn mask(bits: u32) -> u128 {
    if bits >= 128 { u128::MAX } else { (1 << bits) - 1 }
}

fn signed(bits: u128, width: u32) -> i128 {
    let shift = 128 - width.clamp(1, 128);
    ((bits << shift) as i128) >> shift
}

/// Folds a two-operand integer operation.
pub(super) fn binary(dfg: &Dfg, op: Opcode, ty: Type, a: Value, b: Value) -> Option<Folded> {
    if !ty.is_int() {
        return None;
    }
    let width = ty.scalar_bits();
    let (ka, kb) = (dfg.as_bits(a), dfg.as_bits(b));
    if let (Some(x), Some(y)) = (ka, kb) {
        return constants(op, width, x, y).map(|bits| Folded::Bits(bits & mask(width)));
    }
    identity(op, width, (a, ka), (b, kb))
}

fn constants(op: Opcode, width: u32, x: u128, y: u128) -> Option<u128> {
    let in_range = y < u128::from(width);
    Some(match op {
        Opcode::Add => x.wrapping_add(y),
        Opcode::Sub => x.wrapping_sub(y),
        Opcode::Mul => x.wrapping_mul(y),
        Opcode::And => x & y,
        Opcode::Or => x | y,
        Opcode::Xor => x ^ y,
        Opcode::Umin => x.min(y),
        Opcode::Umax => x.max(y),
        Opcode::Smin => signed(x, width).min(signed(y, width)) as u128,
        Opcode::Smax => signed(x, width).max(signed(y, width)) as u128,
        Opcode::Shl if in_range => x << y,
        Opcode::Lshr if in_range => x >> y,
        Opcode::Ashr if in_range => (signed(x, width) >> y) as u128,
        Opcode::Udiv if y != 0 => x / y,
        Opcode::Urem if y != 0 => x % y,
        _ => return None,
    })
}

fn identity(op: Opcode, width: u32, a: (Value, Option<u128>), b: (Value, Option<u128>)) -> Option<Folded> {
    let ones = mask(width);
    match (op, a.1, b.1) {
        (Opcode::Add | Opcode::Or | Opcode::Xor, _, Some(0)) => Some(Folded::Value(a.0)),
        (Opcode::Add | Opcode::Or | Opcode::Xor, Some(0), _) => Some(Folded::Value(b.0)),
        (Opcode::Sub | Opcode::Shl | Opcode::Lshr | Opcode::Ashr, _, Some(0)) => Some(Folded::Value(a.0)),
        (Opcode::Shl | Opcode::Lshr | Opcode::Ashr | Opcode::Mul, Some(0), _) => Some(Folded::Bits(0)),
        (Opcode::And, Some(0), _) | (Opcode::And | Opcode::Mul, _, Some(0)) => Some(Folded::Bits(0)),
        (Opcode::Mul, _, Some(1)) => Some(Folded::Value(a.0)),
        (Opcode::Mul, Some(1), _) => Some(Folded::Value(b.0)),
        (Opcode::And, _, Some(k)) if k == ones => Some(Folded::Value(a.0)),
        (Opcode::And, Some(k), _) if k == ones => Some(Folded::Value(b.0)),
        (Opcode::Or, _, Some(k)) | (Opcode::Or, Some(k), _) if k == ones => Some(Folded::Bits(ones)),
        (Opcode::And | Opcode::Or | Opcode::Umin | Opcode::Umax | Opcode::Smin | Opcode::Smax, ..) if a.0 == b.0 => {
            Some(Folded::Value(a.0))
        }
        _ => None,
    }
}

/// Folds a comparison of integer constants.
pub(super) fn compare(dfg: &Dfg, cc: IntCC, a: Value, b: Value) -> Option<bool> {
    let ty = dfg.ty(a);
    if !ty.is_int() {
        return None;
    }
    let (x, y) = (dfg.as_bits(a)?, dfg.as_bits(b)?);
    let (sx, sy) = (signed(x, ty.scalar_bits()), signed(y, ty.scalar_bits()));
    Some(match cc {
        IntCC::Eq => x == y,
        IntCC::Ne => x != y,
        IntCC::Ult => x < y,
        IntCC::Ule => x <= y,
        IntCC::Ugt => x > y,
        IntCC::Uge => x >= y,
        IntCC::Slt => sx < sy,
        IntCC::Sle => sx <= sy,
        IntCC::Sgt => sx > sy,
        IntCC::Sge => sx >= sy,
    })
}

/// Folds an integer conversion or a scalar bitcast of a constant.
pub(super) fn convert(dfg: &Dfg, op: Opcode, a: Value, to: Type) -> Option<u128> {
    let from = dfg.ty(a);
    if from.is_vector() || to.is_vector() || to.is_ptr() || from.is_ptr() {
        return None;
    }
    let bits = dfg.as_bits(a)?;
    match op {
        Opcode::Trunc | Opcode::Zext | Opcode::Bitcast => Some(bits),
        Opcode::Sext => Some(signed(bits, from.scalar_bits()) as u128),
        _ => None,
    }
}
