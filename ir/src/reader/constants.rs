//! Literals of operands and initializers of globals.

use rustc_apfloat::Float;
use rustc_apfloat::ieee::{BFloat, Half};

use super::cursor::{Cursor, clip, counted, hint_name, integer};
use super::lexer::{Kind, Token};
use super::types::Context;
use super::{PResult, ReadError};
use crate::entities::{FuncId, GlobalId};
use crate::module::{Init, Symbol};
use crate::types::{AggDef, FloatKind, MemType, Scalar, Type};

/// A scalar literal.
pub(crate) enum Literal {
    /// Integer, float bits or null.
    Bits(u128),
    /// `poison`
    Poison,
    /// `@global + n`
    Global(GlobalId, i64),
    /// `@function`
    Func(FuncId),
}

/// The bits of an integer literal of type `ty`, if it fits as a signed or an unsigned number.
fn int_bits(bits: u32, negative: bool, magnitude: u128) -> Option<u128> {
    let mask = if bits >= 128 { u128::MAX } else { (1 << bits) - 1 };
    if negative {
        let smallest = 1u128 << (bits - 1);
        return (magnitude <= smallest).then(|| magnitude.wrapping_neg() & mask);
    }
    (magnitude <= mask).then_some(magnitude)
}

/// An integer literal as bits of `ty`, whose scalar is an integer of `bits` bits.
pub(crate) fn int_literal(c: &Cursor, token: Token, bits: u32) -> PResult<u128> {
    let text = c.lexeme(token);
    match integer(text) {
        Some((negative, magnitude)) => int_bits(bits, negative, magnitude)
            .ok_or_else(|| c.error_at(token, format!("`{}` does not fit in i{bits}", clip(text)))),
        None => Err(c.error_at(token, format!("expected an integer, found `{}`", clip(text)))),
    }
}

fn float_literal(c: &Cursor, token: Token, kind: FloatKind) -> PResult<u128> {
    let text = c.lexeme(token);
    let (prefix, digits) = match kind.storage_bits() {
        8 => ("0x", 2),
        16 => ("0h", 4),
        32 => ("0f", 8),
        _ => ("0d", 16),
    };
    if let Some(hex) = text.strip_prefix(prefix) {
        if hex.len() == digits && hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return u128::from_str_radix(hex, 16).map_err(|_| c.error_at(token, "not a number"));
        }
        let message = format!("the bits of {} are `{prefix}` and {digits} hexadecimal digits", kind.name());
        return Err(c.error_at(token, message));
    }
    if kind.is_narrow() {
        return Err(c.error_at(token, format!("{} is written as its bits, such as `0x7F`", kind.name())));
    }
    decimal(text, kind)
        .ok_or_else(|| c.error_at(token, format!("expected a number of type {}, found `{}`", kind.name(), clip(text))))
}

/// The bits of a float literal: a bit pattern or a decimal number.
pub(crate) fn parse_float(text: &str, kind: FloatKind) -> Option<u128> {
    let (prefix, digits) = match kind.storage_bits() {
        16 => ("0h", 4),
        32 => ("0f", 8),
        _ => ("0d", 16),
    };
    match text.strip_prefix(prefix) {
        Some(hex) if hex.len() == digits && hex.bytes().all(|b| b.is_ascii_hexdigit()) => {
            u128::from_str_radix(hex, 16).ok()
        }
        Some(_) => None,
        None => decimal(text, kind),
    }
}

/// The bits of a decimal number, rounded to nearest even; `None` when it is none.
fn decimal(text: &str, kind: FloatKind) -> Option<u128> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let special = matches!(unsigned, "inf" | "nan");
    if !special && !unsigned.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-')) {
        return None;
    }
    // Digits beyond these change nothing that a wider format would not show; they only cost time.
    if unsigned.len() > 1100 {
        return None;
    }
    let single = || text.parse::<f32>().ok();
    Some(match kind {
        FloatKind::F64 => u128::from(text.parse::<f64>().ok()?.to_bits()),
        FloatKind::F32 => u128::from(single()?.to_bits()),
        FloatKind::Tf32 => u128::from(round_tf32(single()?.to_bits())),
        FloatKind::F16 | FloatKind::Bf16 => half(text, single()?, kind)?,
        _ => return None,
    })
}

/// Rounds the last 13 bits of an f32 away, to nearest even.
fn round_tf32(bits: u32) -> u32 {
    if bits & 0x7f80_0000 == 0x7f80_0000 {
        return bits;
    }
    (bits + 0xfff + ((bits >> 13) & 1)) & !0x1fff
}

/// A 16-bit float, rounded once from the decimal digits.
fn half(text: &str, single: f32, kind: FloatKind) -> Option<u128> {
    let sign = u128::from(single.is_sign_negative()) << 15;
    if single.is_nan() || single.is_infinite() || single == 0.0 {
        let exponent = if kind == FloatKind::F16 { 0x7c00 } else { 0x7f80 };
        let quiet = if kind == FloatKind::F16 { 0x200 } else { 0x40 };
        let magnitude = match single {
            x if x.is_nan() => exponent | quiet,
            x if x.is_infinite() => exponent,
            _ => 0,
        };
        return Some(sign | magnitude);
    }
    match kind {
        FloatKind::F16 => text.parse::<Half>().ok().map(|x| x.to_bits()),
        _ => text.parse::<BFloat>().ok().map(|x| x.to_bits()),
    }
}

impl<'a> Context<'a> {
    /// The symbol that a token names.
    pub fn symbol(&self, c: &Cursor<'_, 'a>, token: Token) -> PResult<Symbol> {
        let name = c.name(token)?;
        self.module.symbol(&name).ok_or_else(|| {
            if self.broken.contains(&name) {
                return Box::new(ReadError::consequence());
            }
            let globals = self.module.globals.values().map(|g| g.name.as_str());
            let known = hint_name("@", &name, globals.chain(self.module.funcs.values().map(|f| f.name.as_str())));
            c.error_at(token, format!("unknown symbol `@{}`{known}", clip(&name)))
        })
    }

    /// `@sym`, `@sym + n`, `@sym - n`; gives the type of the address too.
    pub fn address(&self, c: &mut Cursor<'_, 'a>) -> PResult<(Literal, Type)> {
        let token = c.expect(Kind::Symbol, "an `@name`")?;
        let symbol = self.symbol(c, token)?;
        let offset = offset(c)?;
        match symbol {
            Symbol::Global(id) => Ok((Literal::Global(id, offset), self.module.global_ptr(id))),
            Symbol::Func(_) if offset != 0 => Err(c.error_at(token, "the address of a function takes no offset")),
            Symbol::Func(id) => Ok((Literal::Func(id), Type::PTR)),
        }
    }

    /// A scalar literal of type `ty`.
    pub fn scalar_literal(&self, c: &mut Cursor<'_, 'a>, ty: Type) -> PResult<Literal> {
        let token = c.token();
        let text = c.text();
        match (token.kind, ty.kind()) {
            (Kind::Word, _) if text == "poison" => {
                c.advance();
                Ok(Literal::Poison)
            }
            (Kind::Word, _) if text == "zero" => {
                c.advance();
                Ok(Literal::Bits(0))
            }
            (Kind::Number, Some(Scalar::Int(bits))) => {
                c.advance();
                int_literal(c, token, bits).map(Literal::Bits)
            }
            (Kind::Word, Some(Scalar::Int(1))) if matches!(text, "true" | "false") => {
                c.advance();
                Ok(Literal::Bits(u128::from(text == "true")))
            }
            (Kind::Number, Some(Scalar::Float(kind))) => {
                c.advance();
                float_literal(c, token, kind).map(Literal::Bits)
            }
            (Kind::Word, Some(Scalar::Float(kind))) if matches!(text, "inf" | "nan") => {
                c.advance();
                float_literal(c, token, kind).map(Literal::Bits)
            }
            (Kind::Word, Some(Scalar::Ptr(_))) if text == "null" => {
                c.advance();
                Ok(Literal::Bits(0))
            }
            (Kind::Symbol, Some(Scalar::Ptr(_))) => {
                let (literal, found) = self.address(c)?;
                if found == ty {
                    return Ok(literal);
                }
                Err(c.error_at(token, format!("expected an address of type {ty}, `{text}` is {found}")))
            }
            _ => Err(c.expected(&format!("a value of type {ty}"))),
        }
    }

    /// The initial value of an object of type `ty`. Nesting is bounded by that of the type.
    pub fn init(&self, c: &mut Cursor<'_, 'a>, ty: MemType) -> PResult<Init> {
        if c.eat_word("zero") {
            return Ok(Init::Zero);
        }
        if c.eat_word("poison") {
            return Ok(Init::Poison);
        }
        match ty {
            MemType::Value(ty) if ty.is_vector() => {
                c.punct(Kind::Lt)?;
                self.elements(c, Kind::Gt, MemType::Value(ty.scalar()), u64::from(ty.lanes()))
            }
            MemType::Value(ty) => self.scalar_init(c, ty),
            MemType::Agg(id) => match &self.module.agg(id).def {
                AggDef::Array { elem: MemType::Value(Type::I8), len } if c.kind() == Kind::String => {
                    let token = c.advance();
                    let bytes = c.string(token)?;
                    if bytes.len() as u64 != *len {
                        let message = format!("the string has {}, the array {len}", counted(bytes.len(), "byte"));
                        return Err(c.error_at(token, message));
                    }
                    Ok(Init::Bytes(bytes))
                }
                AggDef::Array { elem, len } => {
                    c.punct(Kind::LBracket)?;
                    self.elements(c, Kind::RBracket, *elem, *len)
                }
                AggDef::Struct { fields, .. } => {
                    let open = c.punct(Kind::LBrace)?;
                    let mut list = Vec::new();
                    let mut types = fields.iter();
                    c.list(Kind::RBrace, |c| match types.next() {
                        Some(ty) => {
                            list.push(self.init(c, *ty)?);
                            Ok(())
                        }
                        None => Err(c.error(format!("the struct has only {}", counted(fields.len(), "field")))),
                    })?;
                    if list.len() != fields.len() {
                        let message =
                            format!("the struct has {}, {} given", counted(fields.len(), "field"), list.len());
                        return Err(c.error_at(open, message));
                    }
                    Ok(Init::List(list))
                }
            },
        }
    }

    fn elements(&self, c: &mut Cursor<'_, 'a>, close: Kind, elem: MemType, len: u64) -> PResult<Init> {
        let open = c.token();
        let mut list = Vec::new();
        c.list(close, |c| {
            list.push(self.init(c, elem)?);
            Ok(())
        })?;
        if list.len() as u64 != len {
            return Err(c.error_at(open, format!("the type has {len} elements, {} given", list.len())));
        }
        Ok(Init::List(list))
    }

    fn scalar_init(&self, c: &mut Cursor<'_, 'a>, ty: Type) -> PResult<Init> {
        if ty == Type::PTR && c.eat_word("generic") {
            c.punct(Kind::LParen)?;
            let token = c.token();
            let (literal, _) = self.address(c)?;
            c.punct(Kind::RParen)?;
            return match literal {
                Literal::Global(global, offset) => Ok(Init::Global { global, offset, generic: true }),
                _ => Err(c.error_at(token, "`generic(…)` takes the address of a variable")),
            };
        }
        let token = c.token();
        if ty == Type::PTR
            && token.kind == Kind::Symbol
            && let Symbol::Global(_) = self.symbol(c, token)?
        {
            let name = clip(c.text());
            return Err(c.error_at(token, format!("`{name}` is no generic address; write `generic({name})`")));
        }
        Ok(match self.scalar_literal(c, ty)? {
            Literal::Bits(bits) => Init::Bits(bits),
            Literal::Poison => Init::Poison,
            Literal::Global(global, offset) => Init::Global { global, offset, generic: false },
            Literal::Func(func) => Init::Func(func),
        })
    }
}

/// `+ n` or `- n` after an address; 0 when there is neither.
pub(crate) fn offset(c: &mut Cursor) -> PResult<i64> {
    let negative = match c.kind() {
        Kind::Plus => false,
        Kind::Minus => true,
        // `@a -4` lexes as a name and a negative number.
        Kind::Number if c.text().starts_with('-') => {
            let token = c.advance();
            let (_, n) = integer(c.lexeme(token)).ok_or_else(|| c.error_at(token, "expected an integer"))?;
            return i64::try_from(n).map(|n| -n).map_err(|_| c.error_at(token, "the offset does not fit in 64 bits"));
        }
        _ => return Ok(0),
    };
    c.advance();
    let token = c.expect(Kind::Number, "an offset in bytes")?;
    let (sign, n) = integer(c.lexeme(token)).ok_or_else(|| c.error_at(token, "expected an integer"))?;
    let n = i64::try_from(n).map_err(|_| c.error_at(token, "the offset does not fit in 64 bits"))?;
    Ok(if negative != sign { -n } else { n })
}

/// The constant of a literal.
pub(crate) fn constants_of(literal: Literal) -> crate::dfg::ConstData {
    use crate::dfg::ConstData;
    match literal {
        Literal::Bits(bits) => ConstData::Bits(bits),
        Literal::Poison => ConstData::Poison,
        Literal::Global(global, offset) => ConstData::Global(global, offset),
        Literal::Func(func) => ConstData::Func(func),
    }
}
