//! Values of the reference language and what operators do to them.
//!
//! A value has a type of the machine ([`Element`]), or is a whole or real number that takes the type of what it meets.
//! Integers of a type wrap, floats are rounded to nearest even once an operation; nothing else is rounded.

use std::cmp::Ordering;
use std::fmt;
use std::rc::Rc;

use ptxc_interp::float::{self, Mode, Round};
use ptxc_ir::FloatKind;

/// Type of the elements of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    /// An integer.
    Int {
        /// Two's complement.
        signed: bool,
        /// 8, 16, 32, 64 or 128.
        bits: u32,
    },
    /// A float.
    Float(FloatKind),
}

impl Element {
    /// The type of that name: `u8` to `i128`, and the floats as the IR spells them.
    pub fn from_name(name: &str) -> Option<Element> {
        if let Some(kind) = FloatKind::ALL.into_iter().find(|kind| kind.name() == name) {
            return Some(Element::Float(kind));
        }
        let bits: u32 = name.strip_prefix(['i', 'u'])?.parse().ok()?;
        let known = matches!(bits, 8 | 16 | 32 | 64 | 128) && !name.contains('+');
        known.then_some(Element::Int { signed: name.starts_with('i'), bits })
    }

    /// Bytes in memory.
    pub fn size(self) -> usize {
        match self {
            Element::Int { bits, .. } => bits as usize / 8,
            Element::Float(kind) => kind.storage_bits().div_ceil(8) as usize,
        }
    }

    /// The same bits as an unsigned integer.
    pub fn unsigned(self) -> Element {
        Element::Int { signed: false, bits: self.size() as u32 * 8 }
    }

    /// Reads an element from memory.
    pub fn read(self, bytes: &[u8], index: usize) -> Option<Value> {
        let size = self.size();
        let start = index.checked_mul(size)?;
        let bytes = bytes.get(start..start.checked_add(size)?)?;
        Some(Value::Typed(self, bytes.iter().rev().fold(0, |n, byte| n << 8 | u128::from(*byte))))
    }

    /// Whether these bits are a NaN.
    pub fn is_nan(self, bits: u128) -> bool {
        matches!(self, Element::Float(kind) if float::is_nan(kind, bits as u64))
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Int { signed, bits } => write!(f, "{}{bits}", if *signed { 'i' } else { 'u' }),
            Element::Float(kind) => f.write_str(kind.name()),
        }
    }
}

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A whole number without type.
    Whole(i128),
    /// A number in double precision without type.
    Real(f64),
    /// True or false.
    Bool(bool),
    /// The bits of an element.
    Typed(Element, u128),
    /// Several values.
    Tuple(Rc<[Value]>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Whole(n) => write!(f, "{n}"),
            Value::Real(x) => write!(f, "{x}"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Typed(Element::Int { signed: true, bits }, x) => write!(f, "{}", signed_value(*x, *bits)),
            Value::Typed(Element::Int { .. }, x) => write!(f, "{x}"),
            Value::Typed(Element::Float(kind), x) => {
                let wide = f64::from_bits(float::convert(*kind, FloatKind::F64, *x as u64, Mode::default()));
                let digits = kind.storage_bits() as usize / 4;
                match kind {
                    FloatKind::F32 => write!(f, "{} (0x{x:0digits$x})", wide as f32),
                    _ => write!(f, "{wide} (0x{x:0digits$x})"),
                }
            }
            Value::Tuple(parts) => {
                f.write_str("(")?;
                for (index, part) in parts.iter().enumerate() {
                    write!(f, "{}{part}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str(")")
            }
        }
    }
}

/// Ones in the low bits.
pub fn mask(bits: u32) -> u128 {
    if bits >= 128 { u128::MAX } else { (1 << bits) - 1 }
}

/// The signed number that the low bits stand for.
pub fn signed_value(value: u128, bits: u32) -> i128 {
    let unused = 128u32.saturating_sub(bits).min(127);
    ((value << unused) as i128) >> unused
}

impl Value {
    /// What kind of value this is, in words.
    pub fn describe(&self) -> String {
        match self {
            Value::Whole(_) => "a whole number".into(),
            Value::Real(_) => "a real number".into(),
            Value::Bool(_) => "a truth value".into(),
            Value::Typed(ty, _) => ty.to_string(),
            Value::Tuple(parts) => format!("a tuple of {}", parts.len()),
        }
    }

    /// The value as a whole number, if it is an integer that fits.
    pub fn whole(&self) -> Option<i128> {
        match *self {
            Value::Whole(n) => Some(n),
            Value::Typed(Element::Int { signed: true, bits }, x) => Some(signed_value(x, bits)),
            Value::Typed(Element::Int { .. }, x) => i128::try_from(x).ok(),
            _ => None,
        }
    }

    /// The value in double precision, if it is a number.
    pub fn real(&self) -> Option<f64> {
        let f64_type = Element::Float(FloatKind::F64);
        match self {
            Value::Real(x) => Some(*x),
            Value::Bool(_) | Value::Tuple(_) => None,
            _ => match self.convert(f64_type) {
                Ok(Value::Typed(_, bits)) => Some(f64::from_bits(bits as u64)),
                _ => None,
            },
        }
    }

    /// Conversion by a type's name: integers modulo, floats to nearest, floats to integers toward zero and saturating.
    ///
    /// # Errors
    /// Tuples have no conversion.
    pub fn convert(&self, to: Element) -> Result<Value, String> {
        let bits = match (self, to) {
            (Value::Tuple(_), _) => return Err(format!("{} is not a number", self.describe())),
            (Value::Bool(b), Element::Int { .. }) => u128::from(*b),
            (Value::Bool(b), Element::Float(kind)) => {
                if *b {
                    float::one(kind).into()
                } else {
                    0
                }
            }
            (Value::Whole(n), Element::Int { bits, .. }) => *n as u128 & mask(bits),
            (Value::Whole(n), Element::Float(kind)) => {
                float::from_int(kind, *n as u128, 128, true, Mode::default()).into()
            }
            (Value::Real(x), to) => {
                let wide = Value::Typed(Element::Float(FloatKind::F64), x.to_bits().into());
                return wide.convert(to);
            }
            (Value::Typed(Element::Int { signed, bits }, x), Element::Int { bits: wanted, .. }) => {
                let wide = if *signed { signed_value(*x, *bits) as u128 } else { *x };
                wide & mask(wanted)
            }
            (Value::Typed(Element::Int { signed, bits }, x), Element::Float(kind)) => {
                float::from_int(kind, *x, *bits, *signed, Mode::default()).into()
            }
            (Value::Typed(Element::Float(from), x), Element::Int { signed, bits }) => {
                float::to_int_saturating(*from, *x as u64, bits, signed, Round::Zero, false) & mask(bits)
            }
            (Value::Typed(Element::Float(from), x), Element::Float(kind)) if *from == kind => *x,
            (Value::Typed(Element::Float(from), x), Element::Float(kind)) => {
                float::convert(*from, kind, *x as u64, Mode::default()).into()
            }
        };
        Ok(Value::Typed(to, bits))
    }

    /// What is stored when this value becomes an element: numbers without type and floats are converted, integers keep
    /// their bits.
    ///
    /// # Errors
    /// It is no such number, an integer of another width, or does not fit.
    pub fn store(&self, to: Element) -> Result<u128, String> {
        let refused = || Err(format!("{} is no value for {to}", self.describe()));
        match (self, to) {
            (Value::Typed(from, x), _) if *from == to => return Ok(*x),
            (Value::Typed(Element::Int { bits, .. }, x), Element::Int { bits: wanted, .. }) if *bits == wanted => {
                return Ok(*x);
            }
            (Value::Whole(n), Element::Int { bits, .. }) => {
                let fits = signed_value(*n as u128, bits) == *n || (*n as u128) & mask(bits) == *n as u128;
                return if fits { Ok(*n as u128 & mask(bits)) } else { Err(format!("{n} does not fit into {to}")) };
            }
            (Value::Whole(_) | Value::Real(_) | Value::Typed(Element::Float(_), _), Element::Float(_)) => {}
            _ => return refused(),
        }
        match self.convert(to)? {
            Value::Typed(_, bits) => Ok(bits),
            _ => refused(),
        }
    }
}

/// Operators with two operands of one type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Rem,
    /// `&`
    And,
    /// `|`
    Or,
    /// `^`
    Xor,
    /// `<<`
    Shl,
    /// `>>`
    Shr,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

/// Brings two numbers to one type: a number without type takes the other's.
///
/// # Errors
/// The types differ, or a real number meets an integer.
pub fn unify(a: Value, b: Value) -> Result<(Value, Value), String> {
    let differ = |a: &Value, b: &Value| Err(format!("{} and {} do not go together", a.describe(), b.describe()));
    match (&a, &b) {
        (Value::Whole(_), Value::Whole(_)) | (Value::Real(_), Value::Real(_)) | (Value::Bool(_), Value::Bool(_)) => {}
        (Value::Whole(n), Value::Real(_)) => return Ok((Value::Real(*n as f64), b)),
        (Value::Real(_), Value::Whole(n)) => return Ok((a, Value::Real(*n as f64))),
        (Value::Typed(x, _), Value::Typed(y, _)) if x == y => {}
        (Value::Real(_), Value::Typed(Element::Int { .. }, _))
        | (Value::Typed(Element::Int { .. }, _), Value::Real(_)) => return differ(&a, &b),
        (Value::Whole(_) | Value::Real(_), Value::Typed(ty, _)) => return Ok((a.convert(*ty)?, b)),
        (Value::Typed(ty, _), Value::Whole(_) | Value::Real(_)) => {
            let b = b.convert(*ty)?;
            return Ok((a, b));
        }
        _ => return differ(&a, &b),
    }
    Ok((a, b))
}

/// Applies an operator.
///
/// # Errors
/// The types do not go together, the operator is none of theirs, division by zero, a whole number beyond 127 bits.
pub fn apply(operator: Operator, a: Value, b: Value) -> Result<Value, String> {
    if matches!(operator, Operator::Shl | Operator::Shr) {
        return shift(operator, a, &b);
    }
    let (a, b) = unify(a, b)?;
    if let Some(order) = holds_of(operator) {
        return Ok(Value::Bool(order(compare(&a, &b)?)));
    }
    match (&a, &b) {
        (Value::Whole(x), Value::Whole(y)) => {
            whole(operator, *x, *y).map(Value::Whole).ok_or_else(|| overflow(operator, *y))
        }
        (Value::Real(x), Value::Real(y)) => real(operator, *x, *y).map(Value::Real),
        (Value::Typed(ty @ Element::Int { signed, bits }, x), Value::Typed(_, y)) => {
            Ok(Value::Typed(*ty, integer(operator, *x, *y, *signed, *bits)? & mask(*bits)))
        }
        (Value::Typed(ty @ Element::Float(kind), x), Value::Typed(_, y)) => {
            Ok(Value::Typed(*ty, floating(operator, *kind, *x as u64, *y as u64)?.into()))
        }
        _ => Err(format!("this operator does not take {}", a.describe())),
    }
}

fn overflow(operator: Operator, right: i128) -> String {
    match operator {
        Operator::Div | Operator::Rem if right == 0 => "division by zero".into(),
        _ => "the whole number has more than 127 bits; give it a type".into(),
    }
}

/// What an order has to be for a comparison to hold; `None` is unordered.
fn holds_of(operator: Operator) -> Option<fn(Option<Ordering>) -> bool> {
    Some(match operator {
        Operator::Eq => |o| o == Some(Ordering::Equal),
        Operator::Ne => |o| o != Some(Ordering::Equal),
        Operator::Lt => |o| o == Some(Ordering::Less),
        Operator::Le => |o| matches!(o, Some(Ordering::Less | Ordering::Equal)),
        Operator::Gt => |o| o == Some(Ordering::Greater),
        Operator::Ge => |o| matches!(o, Some(Ordering::Greater | Ordering::Equal)),
        _ => return None,
    })
}

fn compare(a: &Value, b: &Value) -> Result<Option<Ordering>, String> {
    Ok(match (a, b) {
        (Value::Whole(x), Value::Whole(y)) => Some(x.cmp(y)),
        (Value::Real(x), Value::Real(y)) => x.partial_cmp(y),
        (Value::Bool(x), Value::Bool(y)) => Some(x.cmp(y)),
        (Value::Typed(Element::Int { signed: true, bits }, x), Value::Typed(_, y)) => {
            Some(signed_value(*x, *bits).cmp(&signed_value(*y, *bits)))
        }
        (Value::Typed(Element::Int { .. }, x), Value::Typed(_, y)) => Some(x.cmp(y)),
        (Value::Typed(Element::Float(kind), x), Value::Typed(_, y)) => {
            float::compare(*kind, *x as u64, *y as u64, false)
        }
        _ => return Err(format!("{} and {} cannot be compared", a.describe(), b.describe())),
    })
}

fn whole(operator: Operator, x: i128, y: i128) -> Option<i128> {
    match operator {
        Operator::Add => x.checked_add(y),
        Operator::Sub => x.checked_sub(y),
        Operator::Mul => x.checked_mul(y),
        Operator::Div => x.checked_div(y),
        Operator::Rem => x.checked_rem(y),
        Operator::And => Some(x & y),
        Operator::Or => Some(x | y),
        Operator::Xor => Some(x ^ y),
        _ => None,
    }
}

fn real(operator: Operator, x: f64, y: f64) -> Result<f64, String> {
    Ok(match operator {
        Operator::Add => x + y,
        Operator::Sub => x - y,
        Operator::Mul => x * y,
        Operator::Div => x / y,
        Operator::Rem => x % y,
        _ => return Err("this operator does not take real numbers".into()),
    })
}

fn integer(operator: Operator, x: u128, y: u128, signed: bool, bits: u32) -> Result<u128, String> {
    let divides = matches!(operator, Operator::Div | Operator::Rem);
    if divides && y == 0 {
        return Err("division by zero".into());
    }
    let (sx, sy) = (signed_value(x, bits), signed_value(y, bits));
    Ok(match operator {
        Operator::Add => x.wrapping_add(y),
        Operator::Sub => x.wrapping_sub(y),
        Operator::Mul => x.wrapping_mul(y),
        Operator::Div if signed => sx.wrapping_div(sy) as u128,
        Operator::Div => x / y,
        Operator::Rem if signed => sx.wrapping_rem(sy) as u128,
        Operator::Rem => x % y,
        Operator::And => x & y,
        Operator::Or => x | y,
        Operator::Xor => x ^ y,
        _ => return Err("this operator does not take integers".into()),
    })
}

fn floating(operator: Operator, kind: FloatKind, x: u64, y: u64) -> Result<u64, String> {
    let mode = Mode::default();
    Ok(match operator {
        Operator::Add => float::add(kind, x, y, mode),
        Operator::Sub => float::sub(kind, x, y, mode),
        Operator::Mul => float::mul(kind, x, y, mode),
        Operator::Div => float::div(kind, x, y, mode),
        Operator::Rem => float::frem(kind, x, y),
        _ => return Err("this operator does not take floats".into()),
    })
}

/// Shifts by any amount that is not negative; what is shifted out of a type is lost.
fn shift(operator: Operator, a: Value, amount: &Value) -> Result<Value, String> {
    let amount = amount.whole().ok_or_else(|| format!("{} is no shift amount", amount.describe()))?;
    let amount = u32::try_from(amount).map_err(|_| format!("the shift amount {amount} is out of range"))?;
    match (operator, a) {
        (Operator::Shl, Value::Whole(n)) => {
            let wide = n.checked_shl(amount).filter(|r| r >> amount == n);
            wide.map(Value::Whole).ok_or_else(|| overflow(operator, 1))
        }
        (_, Value::Whole(n)) => Ok(Value::Whole(n >> amount.min(127))),
        (Operator::Shl, Value::Typed(ty @ Element::Int { bits, .. }, x)) => {
            Ok(Value::Typed(ty, x.checked_shl(amount).unwrap_or(0) & mask(bits)))
        }
        (_, Value::Typed(ty @ Element::Int { signed: true, bits }, x)) => {
            Ok(Value::Typed(ty, (signed_value(x, bits) >> amount.min(127)) as u128 & mask(bits)))
        }
        (_, Value::Typed(ty @ Element::Int { .. }, x)) => Ok(Value::Typed(ty, x.checked_shr(amount).unwrap_or(0))),
        (_, a) => Err(format!("{} cannot be shifted", a.describe())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const U8: Element = Element::Int { signed: false, bits: 8 };
    const I8: Element = Element::Int { signed: true, bits: 8 };
    const F32: Element = Element::Float(FloatKind::F32);

    #[test]
    fn names() {
        assert_eq!(Element::from_name("u8"), Some(U8));
        assert_eq!(Element::from_name("f32"), Some(F32));
        assert_eq!(Element::from_name("u7"), None);
        assert_eq!(Element::from_name("u+8"), None);
        assert_eq!(Element::from_name("i128").map(Element::size), Some(16));
    }

    #[test]
    fn numbers_without_type_take_the_others() {
        let x = apply(Operator::Add, Value::Typed(U8, 250), Value::Whole(10)).unwrap();
        assert_eq!(x, Value::Typed(U8, 4));
        let y = apply(Operator::Mul, Value::Real(0.5), Value::Typed(F32, 3f32.to_bits().into())).unwrap();
        assert_eq!(y, Value::Typed(F32, 1.5f32.to_bits().into()));
        assert!(apply(Operator::Add, Value::Typed(U8, 1), Value::Typed(I8, 1)).is_err());
        assert!(apply(Operator::Add, Value::Typed(U8, 1), Value::Real(1.0)).is_err());
    }

    #[test]
    fn signs_count() {
        let minus_one = Value::Typed(I8, 0xff);
        assert_eq!(apply(Operator::Shr, minus_one.clone(), Value::Whole(3)).unwrap(), minus_one);
        assert_eq!(apply(Operator::Div, Value::Typed(I8, 0x80), minus_one.clone()).unwrap(), Value::Typed(I8, 0x80));
        assert_eq!(apply(Operator::Lt, minus_one, Value::Whole(0)).unwrap(), Value::Bool(true));
        assert!(apply(Operator::Rem, Value::Typed(U8, 1), Value::Whole(0)).is_err());
    }

    #[test]
    fn stored_values_have_to_fit() {
        assert_eq!(Value::Whole(-1).store(U8), Ok(0xff));
        assert_eq!(Value::Whole(255).store(I8), Ok(0xff));
        assert!(Value::Whole(256).store(U8).is_err());
        assert!(Value::Real(1.0).store(U8).is_err());
        assert_eq!(Value::Real(1.5).store(F32), Ok(1.5f32.to_bits().into()));
    }
}
