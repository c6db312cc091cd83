//! What each operation does to one element: bits in, bits out, `None` for poison.

use ptxc_ir::{Flags, FloatCC, FloatKind, Opcode, Rounding, Scalar, Type};

use super::integer::{self, Nothing, mask};
use crate::float::{self, Function, Mode, Round};

/// A rounding mode of the IR.
pub fn round(rounding: Rounding) -> Round {
    match rounding {
        Rounding::Nearest => Round::Nearest,
        Rounding::Zero => Round::Zero,
        Rounding::Down => Round::Down,
        Rounding::Up => Round::Up,
    }
}

/// The mode that an instruction's flags give.
pub fn mode(flags: Flags) -> Mode {
    Mode {
        round: round(flags.rounding()),
        ftz: flags.contains(Flags::FTZ),
        sat: flags.contains(Flags::SAT),
        relu: flags.contains(Flags::RELU),
        finite: false,
    }
}

/// True when `nnan` or `ninf` forbid this number.
pub fn forbidden(flags: Flags, kind: FloatKind, bits: u64) -> bool {
    (flags.contains(Flags::NNAN) && float::is_nan(kind, bits))
        || (flags.contains(Flags::NINF) && matches!(float::class(kind, bits), 2 | 9))
}

fn float_unary(op: Opcode, flags: Flags, kind: FloatKind, a: u64) -> u64 {
    let mode = mode(flags);
    let whole = |round| float::round_to_integral(kind, a, Mode { round, ..mode });
    match op {
        Opcode::Fneg => float::neg(kind, a, mode.ftz),
        Opcode::Fabs => float::abs(kind, a, mode.ftz),
        Opcode::Fsqrt => float::sqrt(kind, a, mode),
        Opcode::Frcp => float::rcp(kind, a, mode),
        Opcode::Ffloor => whole(Round::Down),
        Opcode::Fceil => whole(Round::Up),
        Opcode::Ftrunc => whole(Round::Zero),
        Opcode::Frint => whole(Round::Nearest),
        Opcode::Fround => whole(Round::NearestAway),
        Opcode::Frsqrt => float::approximate(Function::Rsqrt, kind, a, mode),
        Opcode::Fsin => float::approximate(Function::Sin, kind, a, mode),
        Opcode::Fcos => float::approximate(Function::Cos, kind, a, mode),
        Opcode::Fexp2 => float::approximate(Function::Exp2, kind, a, mode),
        Opcode::Flog2 => float::approximate(Function::Log2, kind, a, mode),
        _ => float::approximate(Function::Tanh, kind, a, mode),
    }
}

/// A float operation of two operands.
pub fn float_binary(op: Opcode, flags: Flags, kind: FloatKind, a: u64, b: u64) -> u64 {
    let mode = mode(flags);
    match op {
        Opcode::Fadd => float::add(kind, a, b, mode),
        Opcode::Fsub => float::sub(kind, a, b, mode),
        Opcode::Fmul => float::mul(kind, a, b, mode),
        Opcode::Fdiv => float::div(kind, a, b, mode),
        Opcode::Frem => float::frem(kind, a, b),
        Opcode::Fmin => float::min(kind, a, b, mode.ftz),
        Opcode::Fmax => float::max(kind, a, b, mode.ftz),
        Opcode::Fminimum => float::minimum(kind, a, b, mode.ftz),
        Opcode::Fmaximum => float::maximum(kind, a, b, mode.ftz),
        _ => float::copysign(kind, a, b),
    }
}

/// `fcmp`.
pub fn float_compare(cc: FloatCC, kind: FloatKind, a: u64, b: u64, ftz: bool) -> bool {
    use std::cmp::Ordering::*;
    let order = float::compare(kind, a, b, ftz);
    match cc {
        FloatCC::False => false,
        FloatCC::True => true,
        FloatCC::Ord => order.is_some(),
        FloatCC::Uno => order.is_none(),
        FloatCC::Oeq => order == Some(Equal),
        FloatCC::Ogt => order == Some(Greater),
        FloatCC::Oge => matches!(order, Some(Greater | Equal)),
        FloatCC::Olt => order == Some(Less),
        FloatCC::Ole => matches!(order, Some(Less | Equal)),
        FloatCC::One => matches!(order, Some(Less | Greater)),
        FloatCC::Ueq => matches!(order, None | Some(Equal)),
        FloatCC::Ugt => matches!(order, None | Some(Greater)),
        FloatCC::Uge => order != Some(Less),
        FloatCC::Ult => matches!(order, None | Some(Less)),
        FloatCC::Ule => order != Some(Greater),
        FloatCC::Une => order != Some(Equal),
    }
}

/// An operation of one to three operands of one type, none of them poison. Comparisons and selections are elsewhere.
///
/// # Errors
/// Undefined behaviour, in words; poison.
pub fn same_type(op: Opcode, flags: Flags, ty: Type, args: &[u128]) -> Result<u128, Nothing> {
    let unknown = Nothing::Undefined("this operation is not interpreted on its type");
    let a = args.first().copied().unwrap_or(0);
    match ty.kind() {
        Some(Scalar::Int(width)) => match *args {
            [0] if flags.contains(Flags::NONZERO) => Err(Nothing::Poison),
            [a] if op == Opcode::Abs && flags.contains(Flags::NSW) && a == 1 << (width - 1) => Err(Nothing::Poison),
            [a] => integer::unary(op, width, a).ok_or(unknown),
            [a, b] => integer::binary(op, flags, width, a, b),
            [a, b, c] => Ok(integer::funnel(op, width, a, b, c)),
            _ => Err(unknown),
        },
        Some(Scalar::Float(kind)) => {
            let result = match *args {
                [a] => float_unary(op, flags, kind, a as u64),
                [a, b] => float_binary(op, flags, kind, a as u64, b as u64),
                [a, b, c] => float::fma(kind, a as u64, b as u64, c as u64, mode(flags)),
                _ => return Err(unknown),
            };
            let bad = args.iter().any(|x| forbidden(flags, kind, *x as u64)) || forbidden(flags, kind, result);
            if bad { Err(Nothing::Poison) } else { Ok(result.into()) }
        }
        _ if op == Opcode::Freeze => Ok(a),
        _ => Err(unknown),
    }
}

/// A conversion that keeps the number of elements.
///
/// # Errors
/// As [`same_type`].
pub fn convert(op: Opcode, flags: Flags, from: Type, to: Type, a: u128) -> Result<u128, Nothing> {
    let (source, target) = (from.scalar_bits(), to.scalar_bits());
    let negative = a >> (source - 1) & 1 != 0;
    let kinds = (from.float_kind(), to.float_kind());
    let is_signed = matches!(op, Opcode::Fptosi | Opcode::FptosiSat);
    let round = flags.explicit_rounding().map_or(Round::Zero, round);
    let ftz = flags.contains(Flags::FTZ);
    match (op, kinds) {
        (Opcode::Trunc, _) => {
            let low = a & mask(target);
            let lost = flags.contains(Flags::NUW) && low != a;
            let changed = flags.contains(Flags::NSW) && integer::signed(low, target) != integer::signed(a, source);
            if lost || changed { Err(Nothing::Poison) } else { Ok(low) }
        }
        (Opcode::Zext, _) if flags.contains(Flags::NNEG) && negative => Err(Nothing::Poison),
        (Opcode::Zext | Opcode::Inttoptr | Opcode::Ptrtoint, _) => Ok(a & mask(target)),
        (Opcode::Sext, _) => Ok(integer::signed(a, source) as u128 & mask(target)),
        (Opcode::Fptrunc | Opcode::Fpext, (Some(from), Some(to))) => {
            let result = float::convert(from, to, a as u64, mode(flags));
            let bad = forbidden(flags, from, a as u64) || forbidden(flags, to, result);
            if bad { Err(Nothing::Poison) } else { Ok(result.into()) }
        }
        (Opcode::Fptoui | Opcode::Fptosi, (Some(from), _)) => {
            float::to_int(from, a as u64, target, is_signed, round, ftz).ok_or(Nothing::Poison)
        }
        (Opcode::FptouiSat | Opcode::FptosiSat, (Some(from), _)) => {
            Ok(float::to_int_saturating(from, a as u64, target, is_signed, round, ftz))
        }
        (Opcode::Uitofp, _) if flags.contains(Flags::NNEG) && negative => Err(Nothing::Poison),
        (Opcode::Uitofp | Opcode::Sitofp, (_, Some(to))) => {
            Ok(float::from_int(to, a, source, op == Opcode::Sitofp, mode(flags)).into())
        }
        _ => Err(Nothing::Undefined("this conversion is not interpreted")),
    }
}

/// The operation that `reduce.K` repeats.
pub fn reduction(op: Opcode) -> Option<Opcode> {
    Some(match op {
        Opcode::ReduceAdd => Opcode::Add,
        Opcode::ReduceMul => Opcode::Mul,
        Opcode::ReduceAnd => Opcode::And,
        Opcode::ReduceOr => Opcode::Or,
        Opcode::ReduceXor => Opcode::Xor,
        Opcode::ReduceSmin => Opcode::Smin,
        Opcode::ReduceSmax => Opcode::Smax,
        Opcode::ReduceUmin => Opcode::Umin,
        Opcode::ReduceUmax => Opcode::Umax,
        Opcode::ReduceFadd => Opcode::Fadd,
        Opcode::ReduceFmul => Opcode::Fmul,
        Opcode::ReduceFmin => Opcode::Fmin,
        Opcode::ReduceFmax => Opcode::Fmax,
        Opcode::ReduceFminimum => Opcode::Fminimum,
        Opcode::ReduceFmaximum => Opcode::Fmaximum,
        _ => return None,
    })
}
