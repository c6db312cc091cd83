//! Functions of the reference language.

use ptxc_interp::float::{self, Mode, Round};
use ptxc_ir::FloatKind;

use crate::value::{Element, Operator, Value, apply, mask, signed_value, unify};

/// A function: name, number of operands, meaning.
#[derive(Clone, Copy)]
pub struct Builtin {
    /// Name.
    pub name: &'static str,
    /// Number of operands.
    pub operands: usize,
    meaning: fn(&[Value]) -> Result<Value, String>,
}

impl std::fmt::Debug for Builtin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Builtin {
    /// The function of that name.
    pub fn find(name: &str) -> Option<Builtin> {
        TABLE.iter().find(|builtin| builtin.name == name).copied()
    }

    /// Applies it to as many values as it takes.
    ///
    /// # Errors
    /// The operands' types are none of its.
    pub fn apply(self, operands: &[Value]) -> Result<Value, String> {
        (self.meaning)(operands).map_err(|message| format!("{}: {message}", self.name))
    }
}

macro_rules! table {
    ($($name:literal $operands:literal $meaning:expr,)*) => {
        const TABLE: &[Builtin] = &[$(Builtin { name: $name, operands: $operands, meaning: $meaning },)*];
    };
}

table! {
    "abs" 1 |v| magnitude(&v[0]),
    "min" 2 |v| extreme(v, float::min, Operator::Le),
    "max" 2 |v| extreme(v, float::max, Operator::Ge),
    "minimum" 2 |v| extreme(v, float::minimum, Operator::Le),
    "maximum" 2 |v| extreme(v, float::maximum, Operator::Ge),
    "copysign" 2 |v| {
        let (a, b) = unify(v[0].clone(), v[1].clone())?;
        binary(&a, &b, float::copysign, f64::copysign)
    },
    "sqrt" 1 |v| unary(&v[0], |kind, x| float::sqrt(kind, x, Mode::default()), f64::sqrt),
    "floor" 1 |v| unary(&v[0], |kind, x| integral(kind, x, Round::Down), f64::floor),
    "ceil" 1 |v| unary(&v[0], |kind, x| integral(kind, x, Round::Up), f64::ceil),
    "trunc" 1 |v| unary(&v[0], |kind, x| integral(kind, x, Round::Zero), f64::trunc),
    "round" 1 |v| unary(&v[0], |kind, x| integral(kind, x, Round::NearestAway), f64::round),
    "round_even" 1 |v| unary(&v[0], |kind, x| integral(kind, x, Round::Nearest), f64::round_ties_even),
    "fma" 3 |v| fused(v),
    "is_nan" 1 |v| match &v[0] {
        Value::Real(x) => Ok(Value::Bool(x.is_nan())),
        Value::Typed(ty @ Element::Float(_), x) => Ok(Value::Bool(ty.is_nan(*x))),
        other => refuse(other),
    },
    "bits" 1 |v| match &v[0] {
        Value::Typed(ty, x) => Ok(Value::Typed(ty.unsigned(), *x)),
        other => refuse(other),
    },
    "popcount" 1 |v| count(&v[0], |x, _| x.count_ones()),
    "clz" 1 |v| count(&v[0], |x, bits| x.leading_zeros() + bits - 128),
    "ctz" 1 |v| count(&v[0], |x, bits| x.trailing_zeros().min(bits)),
    "reverse_bits" 1 |v| integer(&v[0], |x, bits| x.reverse_bits() >> (128 - bits)),
    "swap_bytes" 1 |v| integer(&v[0], |x, bits| x.swap_bytes() >> (128 - bits)),
    "mul_high" 2 |v| high(&v[0], &v[1]),
    "exp" 1 |v| host(&v[0], f64::exp),
    "exp2" 1 |v| host(&v[0], f64::exp2),
    "ln" 1 |v| host(&v[0], f64::ln),
    "log2" 1 |v| host(&v[0], f64::log2),
    "sin" 1 |v| host(&v[0], f64::sin),
    "cos" 1 |v| host(&v[0], f64::cos),
    "tanh" 1 |v| host(&v[0], f64::tanh),
    "real" 1 |v| host(&v[0], |x| x),
    "whole" 1 |v| v[0].whole().map(Value::Whole).map_or_else(|| refuse(&v[0]), Ok),
}

fn refuse(value: &Value) -> Result<Value, String> {
    Err(format!("not for {}", value.describe()))
}

fn integral(kind: FloatKind, x: u64, round: Round) -> u64 {
    float::round_to_integral(kind, x, Mode::rounded(round))
}

fn unary(value: &Value, typed: fn(FloatKind, u64) -> u64, real: fn(f64) -> f64) -> Result<Value, String> {
    match value {
        Value::Whole(n) => Ok(Value::Real(real(*n as f64))),
        Value::Real(x) => Ok(Value::Real(real(*x))),
        Value::Typed(ty @ Element::Float(kind), x) => Ok(Value::Typed(*ty, typed(*kind, *x as u64).into())),
        other => refuse(other),
    }
}

fn binary(
    a: &Value,
    b: &Value,
    typed: fn(FloatKind, u64, u64) -> u64,
    real: fn(f64, f64) -> f64,
) -> Result<Value, String> {
    match (a, b) {
        (Value::Real(x), Value::Real(y)) => Ok(Value::Real(real(*x, *y))),
        (Value::Typed(ty @ Element::Float(kind), x), Value::Typed(_, y)) => {
            Ok(Value::Typed(*ty, typed(*kind, *x as u64, *y as u64).into()))
        }
        (other, _) => refuse(other),
    }
}

/// The function of floats on floats; of all else the first operand if the comparison holds, else the second.
fn extreme(v: &[Value], typed: fn(FloatKind, u64, u64, bool) -> u64, first: Operator) -> Result<Value, String> {
    let (a, b) = unify(v[0].clone(), v[1].clone())?;
    if let (Value::Typed(ty @ Element::Float(kind), x), Value::Typed(_, y)) = (&a, &b) {
        return Ok(Value::Typed(*ty, typed(*kind, *x as u64, *y as u64, false).into()));
    }
    let holds = apply(first, a.clone(), b.clone())?;
    Ok(if holds == Value::Bool(true) { a } else { b })
}

fn fused(v: &[Value]) -> Result<Value, String> {
    let (a, b) = unify(v[0].clone(), v[1].clone())?;
    let (a, c) = unify(a, v[2].clone())?;
    let (b, _) = unify(b, c.clone())?;
    match (&a, &b, &c) {
        (Value::Real(x), Value::Real(y), Value::Real(z)) => Ok(Value::Real(x.mul_add(*y, *z))),
        (Value::Typed(ty @ Element::Float(kind), x), Value::Typed(_, y), Value::Typed(_, z)) => {
            let bits = float::fma(*kind, *x as u64, *y as u64, *z as u64, Mode::default());
            Ok(Value::Typed(*ty, bits.into()))
        }
        _ => refuse(&a),
    }
}

fn magnitude(value: &Value) -> Result<Value, String> {
    match value {
        Value::Whole(n) => Ok(Value::Whole(n.wrapping_abs())),
        Value::Real(x) => Ok(Value::Real(x.abs())),
        Value::Typed(ty @ Element::Int { signed: true, bits }, x) => {
            Ok(Value::Typed(*ty, signed_value(*x, *bits).unsigned_abs() & mask(*bits)))
        }
        Value::Typed(ty @ Element::Float(kind), x) => Ok(Value::Typed(*ty, float::abs(*kind, *x as u64, false).into())),
        other => refuse(other),
    }
}

/// A function of the bits with a result of the same type.
fn integer(value: &Value, meaning: fn(u128, u32) -> u128) -> Result<Value, String> {
    match value {
        Value::Typed(ty @ Element::Int { bits, .. }, x) => Ok(Value::Typed(*ty, meaning(*x, *bits) & mask(*bits))),
        other => refuse(other),
    }
}

/// A number of bits, as a whole number.
fn count(value: &Value, meaning: fn(u128, u32) -> u32) -> Result<Value, String> {
    match value {
        Value::Typed(Element::Int { bits, .. }, x) => Ok(Value::Whole(meaning(*x, *bits).into())),
        other => refuse(other),
    }
}

/// The upper half of the product, for integers of up to 64 bits.
fn high(a: &Value, b: &Value) -> Result<Value, String> {
    let (a, b) = unify(a.clone(), b.clone())?;
    match (&a, &b) {
        (Value::Typed(ty @ Element::Int { signed, bits }, x), Value::Typed(_, y)) if *bits <= 64 => {
            let product = if *signed {
                signed_value(*x, *bits).wrapping_mul(signed_value(*y, *bits)) as u128
            } else {
                x.wrapping_mul(*y)
            };
            Ok(Value::Typed(*ty, (product >> bits) & mask(*bits)))
        }
        _ => refuse(&a),
    }
}

/// A function of the host in double precision.
fn host(value: &Value, meaning: fn(f64) -> f64) -> Result<Value, String> {
    value.real().map(|x| Value::Real(meaning(x))).map_or_else(|| refuse(value), Ok)
}

/// Values at which operations tend to be wrong; there are sixteen of each type, numbers beyond them
/// begin again. Formats of at most eight bits have every bit pattern instead.
pub fn edge(ty: Element, number: usize) -> u128 {
    let bits = ty.size() as u32 * 8;
    match ty {
        Element::Int { .. } => {
            let top = 1u128 << (bits - 1);
            let all = mask(bits);
            let half = 1u128 << (bits / 2);
            let width = u128::from(bits);
            let values = [
                0,
                1,
                2,
                3,
                7,
                width - 1,
                width,
                width / 2,
                half - 1,
                half,
                top - 1,
                top,
                top + 1,
                all - 1,
                all,
                (u128::MAX / 3) & all,
            ];
            values[number % values.len()] & all
        }
        Element::Float(kind) if kind.is_narrow() => {
            let patterns = match kind {
                FloatKind::E2m1 => 16,
                FloatKind::E2m3 | FloatKind::E3m2 => 64,
                _ => 256,
            };
            (number % patterns) as u128
        }
        Element::Float(kind) => {
            let of = |x: f64| u128::from(float::convert(FloatKind::F64, kind, x.to_bits(), Mode::default()));
            let infinity = of(f64::INFINITY);
            let sign = u128::from(float::sign_bit(kind));
            // The lowest bit that counts: tf32 has thirteen below it that do not.
            let step = if kind == FloatKind::Tf32 { 1 << 13 } else { 1 };
            let fraction = ptxc_interp::float::soft::format(kind).precision - 1;
            let normal = (1u128 << fraction) * step;
            let values = [
                0,
                sign,
                of(1.0),
                of(-1.0),
                infinity,
                infinity | sign,
                infinity | normal >> 1,
                step,
                sign | (normal - step),
                normal,
                infinity - step,
                sign | (infinity - step),
                of(1.5),
                of(2.5),
                of(-0.5),
                of(100.0),
            ];
            values[number % values.len()]
        }
    }
}

/// Bits that look random: a function of seed and position alone.
pub fn random_bits(seed: u64, position: u64) -> u128 {
    let word = |n: u64| {
        // The finalizer of SplitMix64.
        let x = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let first = word(word(seed) ^ position);
    u128::from(word(first)) << 64 | u128::from(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    const U32: Element = Element::Int { signed: false, bits: 32 };

    #[test]
    fn names_are_different() {
        for (index, builtin) in TABLE.iter().enumerate() {
            assert!(TABLE[..index].iter().all(|other| other.name != builtin.name), "{}", builtin.name);
        }
    }

    #[test]
    fn bits_are_counted_within_the_type() {
        let call = |name: &str, x: u128| Builtin::find(name).unwrap().apply(&[Value::Typed(U32, x)]).unwrap();
        assert_eq!(call("clz", 1), Value::Whole(31));
        assert_eq!(call("clz", 0), Value::Whole(32));
        assert_eq!(call("ctz", 0), Value::Whole(32));
        assert_eq!(call("reverse_bits", 1), Value::Typed(U32, 1 << 31));
        assert_eq!(call("swap_bytes", 0x1234), Value::Typed(U32, 0x3412_0000));
    }

    #[test]
    fn edges_are_patterns_of_the_type() {
        let f16 = Element::Float(FloatKind::F16);
        assert_eq!(edge(f16, 2), 0x3c00);
        assert_eq!(edge(f16, 4), 0x7c00);
        assert_eq!(edge(f16, 8), 0x83ff);
        assert_eq!(edge(f16, 10), 0x7bff);
        assert_eq!(edge(Element::Float(FloatKind::E4m3), 255), 255);
        assert_eq!(edge(U32, 11), 1 << 31);
        let tf32 = Element::Float(FloatKind::Tf32);
        assert!((0..16).all(|n| edge(tf32, n) & 0x1fff == 0));
    }
}
