//! Mnemonics of floating-point instructions as calls of `float`: a second reading of the manual beside the emulator's.

use std::cmp::Ordering;

use ptxc_interp::float::{self, Mode, Round};
use ptxc_ir::FloatKind;

/// What an instruction computes: bits of the operands, bits of the results.
pub type Meaning = Box<dyn Fn(&[u64]) -> Vec<u64>>;

/// A function of scalars.
type Scalar = Box<dyn Fn(&[u64]) -> u64>;

/// The meaning of the instruction with this text.
pub fn meaning(key: &str) -> Option<Meaning> {
    // Rows of several statements, and immediates, are left to others.
    if key.contains(' ') {
        return None;
    }
    let pieces: Vec<&str> = key.split('.').collect();
    let (op, modifiers) = pieces.split_first()?;
    if modifiers.iter().any(|m| matches!(*m, "approx" | "full" | "oob" | "cc" | "sync")) {
        return None;
    }
    match *op {
        "cvt" => conversion(modifiers),
        "setp" => comparison(modifiers),
        "set" => set(modifiers),
        "testp" => test(modifiers),
        _ => {
            let (ty, modifiers) = modifiers.split_last()?;
            let (kind, lanes) = float_type(ty)?;
            let scalar = arithmetic(op, modifiers, kind)?;
            Some(Box::new(move |x| vec![per_lane(kind, lanes, x, &scalar)]))
        }
    }
}

fn float_type(ty: &str) -> Option<(FloatKind, u32)> {
    Some(match ty {
        "f16" => (FloatKind::F16, 1),
        "bf16" => (FloatKind::Bf16, 1),
        "f32" => (FloatKind::F32, 1),
        "f64" => (FloatKind::F64, 1),
        "tf32" => (FloatKind::Tf32, 1),
        "f16x2" => (FloatKind::F16, 2),
        "bf16x2" => (FloatKind::Bf16, 2),
        "e4m3x2" => (FloatKind::E4m3, 2),
        "e5m2x2" => (FloatKind::E5m2, 2),
        _ => return None,
    })
}

fn integer_type(ty: &str) -> Option<(bool, u32)> {
    let width: u32 = ty.strip_prefix(['s', 'u'])?.parse().ok()?;
    matches!(width, 8 | 16 | 32 | 64).then(|| (ty.starts_with('s'), width))
}

/// The mode that modifiers give; `None` with one that is no mode.
fn mode(modifiers: &[&str]) -> Option<Mode> {
    let mut mode = Mode::default();
    for modifier in modifiers {
        match *modifier {
            "rn" | "rni" => mode.round = Round::Nearest,
            "rz" | "rzi" => mode.round = Round::Zero,
            "rm" | "rmi" => mode.round = Round::Down,
            "rp" | "rpi" => mode.round = Round::Up,
            "rna" => mode.round = Round::NearestAway,
            "ftz" => mode.ftz = true,
            "sat" => mode.sat = true,
            "relu" => mode.relu = true,
            "satfinite" => mode.finite = true,
            _ => return None,
        }
    }
    Some(mode)
}

fn per_lane(kind: FloatKind, lanes: u32, operands: &[u64], scalar: &Scalar) -> u64 {
    if lanes == 1 {
        return scalar(operands);
    }
    let bits = kind.storage_bits();
    let mask = (1u64 << bits) - 1;
    let lane = |l: u32| {
        let operands: Vec<u64> = operands.iter().map(|x| x >> (l * bits) & mask).collect();
        scalar(&operands) << (l * bits)
    };
    lane(0) | lane(1)
}

fn arithmetic(op: &str, modifiers: &[&str], kind: FloatKind) -> Option<Scalar> {
    let has = |name: &str| modifiers.contains(&name);
    if matches!(op, "min" | "max") {
        let (ftz, nan, sign) = (has("ftz"), has("NaN"), has("xorsign"));
        let function = match (op, nan) {
            ("min", false) => float::min,
            ("min", true) => float::minimum,
            ("max", false) => float::max,
            _ => float::maximum,
        };
        return Some(Box::new(move |x| match (x, sign) {
            (&[a, b], false) => function(kind, a, b, ftz),
            (&[a, b], true) => {
                let magnitude = function(kind, float::abs(kind, a, false), float::abs(kind, b, false), ftz);
                let sign = (a ^ b) & float::sign_bit(kind);
                if float::is_nan(kind, magnitude) { magnitude } else { magnitude | sign }
            }
            _ => 0,
        }));
    }
    let mode = mode(modifiers)?;
    let binary = |function: fn(FloatKind, u64, u64, Mode) -> u64| -> Option<Scalar> {
        Some(Box::new(move |x| function(kind, x[0], x[1], mode)))
    };
    match op {
        "add" => binary(float::add),
        "sub" => binary(float::sub),
        "mul" => binary(float::mul),
        "div" => binary(float::div),
        "fma" | "mad" => Some(Box::new(move |x| float::fma(kind, x[0], x[1], x[2], mode))),
        "rcp" => Some(Box::new(move |x| float::rcp(kind, x[0], mode))),
        "sqrt" => Some(Box::new(move |x| float::sqrt(kind, x[0], mode))),
        "abs" => Some(Box::new(move |x| float::abs(kind, x[0], mode.ftz))),
        "neg" => Some(Box::new(move |x| float::neg(kind, x[0], mode.ftz))),
        // PTX has the sign first.
        "copysign" => Some(Box::new(move |x| float::copysign(kind, x[1], x[0]))),
        _ => None,
    }
}

/// What a comparison code says of an order.
fn holds(code: &str, order: Option<Ordering>) -> Option<bool> {
    use Ordering::{Equal, Greater, Less};
    let unordered = order.is_none();
    Some(match code {
        "eq" => order == Some(Equal),
        "ne" => matches!(order, Some(Less | Greater)),
        "lt" => order == Some(Less),
        "le" => matches!(order, Some(Less | Equal)),
        "gt" => order == Some(Greater),
        "ge" => matches!(order, Some(Greater | Equal)),
        "equ" => unordered || order == Some(Equal),
        "neu" => order != Some(Equal),
        "ltu" => unordered || order == Some(Less),
        "leu" => order != Some(Greater),
        "gtu" => unordered || order == Some(Greater),
        "geu" => order != Some(Less),
        "num" => !unordered,
        "nan" => unordered,
        _ => return None,
    })
}

/// For each lane, whether a comparison holds and whether its opposite does, combined with a predicate.
type Truths = Box<dyn Fn(&[u64]) -> Vec<(bool, bool)>>;

/// How many lanes are compared, and how.
fn truths(code: String, modifiers: &[&str], ty: &str) -> Option<(u32, Truths)> {
    let (kind, lanes) = float_type(ty)?;
    holds(&code, None)?;
    let ftz = modifiers.contains(&"ftz");
    let combine: fn(bool, bool) -> bool = match modifiers.iter().find(|m| matches!(**m, "and" | "or" | "xor")) {
        Some(&"and") => |x, y| x && y,
        Some(&"or") => |x, y| x || y,
        Some(_) => |x, y| x != y,
        None => |x, _| x,
    };
    let bits = kind.storage_bits();
    let mask = u64::MAX >> (64 - bits);
    Some((
        lanes,
        Box::new(move |x| {
            let lane = |l: u32| {
                let order = float::compare(kind, x[0] >> (l * bits) & mask, x[1] >> (l * bits) & mask, ftz);
                let truth = holds(&code, order).unwrap_or(false);
                let third = x.get(2).is_some_and(|c| c & 1 != 0);
                (combine(truth, third), combine(!truth, third))
            };
            (0..lanes).map(lane).collect()
        }),
    ))
}

fn comparison(modifiers: &[&str]) -> Option<Meaning> {
    let (code, rest) = modifiers.split_first()?;
    let (ty, rest) = rest.split_last()?;
    let (lanes, truths) = truths((*code).to_owned(), rest, ty)?;
    Some(Box::new(move |x| match (truths(x)[..].to_vec().as_slice(), lanes) {
        // Of pairs the second result is the second lane's.
        (&[(low, _), (high, _)], 2) => vec![low.into(), high.into()],
        (&[(truth, opposite)], 1) => vec![truth.into(), opposite.into()],
        _ => Vec::new(),
    }))
}

fn set(modifiers: &[&str]) -> Option<Meaning> {
    let (code, rest) = modifiers.split_first()?;
    let (ty, rest) = rest.split_last()?;
    let (to, rest) = rest.split_last()?;
    let (lanes, truths) = truths((*code).to_owned(), rest, ty)?;
    let (yes, bits) = match float_type(to) {
        Some((kind, _)) => (float::one(kind), kind.storage_bits()),
        None => {
            let (_, width) = integer_type(to)?;
            let bits = width / lanes;
            ((1u64 << bits) - 1, bits)
        }
    };
    Some(Box::new(move |x| {
        let lanes = truths(x).into_iter().enumerate();
        vec![lanes.map(|(l, (truth, _))| if truth { yes << (l as u32 * bits) } else { 0 }).sum()]
    }))
}

fn test(modifiers: &[&str]) -> Option<Meaning> {
    let &[what, ty] = modifiers else { return None };
    let (kind, _) = float_type(ty)?;
    let classes: &'static [u32] = match what {
        "finite" => &[3, 4, 5, 6, 7, 8],
        "infinite" => &[2, 9],
        "number" => &[2, 3, 4, 5, 6, 7, 8, 9],
        "notanumber" => &[0, 1],
        // Zeros are normal.
        "normal" => &[3, 5, 6, 8],
        "subnormal" => &[4, 7],
        _ => return None,
    };
    Some(Box::new(move |x| vec![classes.contains(&float::class(kind, x[0])).into()]))
}

/// Sign-extends or cuts a number into a register of so many bits.
fn extended(value: u128, signed: bool, width: u32, register: u32) -> u64 {
    let unused = 128 - width;
    let value = if signed { ((value << unused) as i128 >> unused) as u128 } else { value << unused >> unused };
    value as u64 & (u64::MAX >> (64 - register))
}

fn conversion(modifiers: &[&str]) -> Option<Meaning> {
    let &[ref rest @ .., to, from] = modifiers else { return None };
    let mode = mode(rest)?;
    let whole = rest.iter().any(|m| matches!(*m, "rni" | "rzi" | "rmi" | "rpi"));
    match (float_type(to), float_type(from), integer_type(to), integer_type(from)) {
        (Some((kind, 1)), Some((source, 1)), ..) if whole && kind == source => {
            Some(Box::new(move |x| vec![float::round_to_integral(kind, x[0], mode)]))
        }
        (Some((to, 1)), Some((from, 1)), ..) => Some(Box::new(move |x| vec![float::convert(from, to, x[0], mode)])),
        // The first operand is the upper half.
        (Some((to, 2)), Some((from, 1)), ..) => Some(Box::new(move |x| {
            let [upper, lower] = [x[0], x[1]].map(|x| float::convert(from, to, x, mode));
            vec![upper << to.storage_bits() | lower]
        })),
        (Some((to, 2)), Some((from, 2)), ..) => Some(Box::new(move |x| {
            let (into, out) = (from.storage_bits(), to.storage_bits());
            let lane = |l: u32| float::convert(from, to, x[0] >> (l * into) & ((1 << into) - 1), mode) << (l * out);
            vec![lane(0) | lane(1)]
        })),
        (_, Some((from, 1)), Some((signed, width)), _) => {
            // The row looks at a register of 32 bits at least; of bf16 results at one of their size.
            let register = if from == FloatKind::Bf16 { width } else { width.max(32) };
            Some(Box::new(move |x| {
                let value = float::to_int_converted(from, x[0], width, signed, mode.round, mode.ftz);
                vec![extended(value, signed, width, register)]
            }))
        }
        (Some((to, 1)), _, _, Some((signed, width))) => {
            Some(Box::new(move |x| vec![float::from_int(to, x[0].into(), width, signed, mode)]))
        }
        (_, _, Some(to), Some(from)) => Some(Box::new(move |x| vec![integers(x[0], to, from, mode.sat)])),
        _ => None,
    }
}

/// `cvt` between integers.
fn integers(bits: u64, (to_signed, to): (bool, u32), (from_signed, from): (bool, u32), sat: bool) -> u64 {
    let unused = 128 - from;
    let value = u128::from(bits) << unused;
    let value = if from_signed { value as i128 >> unused } else { (value >> unused) as i128 };
    let (least, most) = if to_signed { (-(1i128 << (to - 1)), (1 << (to - 1)) - 1) } else { (0, (1i128 << to) - 1) };
    let value = if sat { value.clamp(least, most) } else { value };
    extended(value as u128, to_signed, to, to.max(32))
}
