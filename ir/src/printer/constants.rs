//! Constants of operands and initializers.

use std::fmt::Write as _;

use super::Printer;
use super::names::{quoted_bytes, write_name};
use crate::dfg::{ConstData, Dfg};
use crate::entities::Value;
use crate::module::Init;
use crate::types::{AggDef, FloatKind, MemType, Scalar, Type};

/// The number of an f16's bits as f32; every f16 is one.
fn f16_to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits >> 15) << 31;
    let exponent = u32::from(bits >> 10) & 0x1f;
    let mantissa = u32::from(bits) & 0x3ff;
    match exponent {
        // Subnormal: a multiple of 2^-24.
        0 => f32::from_bits(((mantissa as f32) * f32::from_bits(0x3380_0000)).to_bits() | sign),
        31 => f32::from_bits(sign | 0x7f80_0000 | (mantissa << 13)),
        _ => f32::from_bits(sign | ((exponent + 112) << 23) | (mantissa << 13)),
    }
}

/// Digits, exponent and sign that read back as these bits: the shortest, and a bit pattern where no number would do.
fn write_float(out: &mut String, kind: FloatKind, bits: u128) {
    let single = match kind {
        FloatKind::F64 => {
            let x = f64::from_bits(bits as u64);
            let _ = match x.is_nan() {
                true if bits == 0x7ff8_0000_0000_0000 => write!(out, "nan"),
                true => write!(out, "0d{bits:016X}"),
                false => write!(out, "{x:?}"),
            };
            return;
        }
        FloatKind::F32 => f32::from_bits(bits as u32),
        // Bits that rounding to tf32 would drop are kept by writing the pattern.
        FloatKind::Tf32 if bits & 0x1fff == 0 => f32::from_bits(bits as u32),
        FloatKind::Tf32 => f32::NAN,
        FloatKind::F16 => f16_to_f32(bits as u16),
        FloatKind::Bf16 => f32::from_bits((bits as u32) << 16),
        _ => {
            let _ = write!(out, "0x{bits:02X}");
            return;
        }
    };
    let quiet = match kind {
        FloatKind::F16 => 0x7e00,
        FloatKind::Bf16 => 0x7fc0,
        _ => 0x7fc0_0000,
    };
    let _ = match (single.is_nan(), kind.storage_bits()) {
        (true, _) if bits == quiet => write!(out, "nan"),
        (true, 16) => write!(out, "0h{bits:04X}"),
        (true, _) => write!(out, "0f{bits:08X}"),
        (false, _) => write!(out, "{single:?}"),
    };
}

/// A scalar's bits as a literal of its type.
pub(super) fn write_bits(out: &mut String, ty: Type, bits: u128) {
    let _ = match ty.kind() {
        Some(Scalar::Int(1)) => write!(out, "{}", bits != 0),
        Some(Scalar::Int(width)) => {
            let shift = 128u32.saturating_sub(width);
            write!(out, "{}", ((bits << shift) as i128) >> shift)
        }
        Some(Scalar::Float(kind)) => {
            write_float(out, kind, bits);
            Ok(())
        }
        Some(Scalar::Ptr(_)) if bits == 0 => write!(out, "null"),
        // Nothing the language has; the verifier refuses it.
        _ => write!(out, "{bits}"),
    };
}

fn write_offset(out: &mut String, offset: i64) {
    let _ = match offset {
        0 => Ok(()),
        n if n < 0 => write!(out, " - {}", n.unsigned_abs()),
        n => write!(out, " + {n}"),
    };
}

impl Printer<'_> {
    /// A constant, without its type.
    pub(super) fn constant(&mut self, dfg: &Dfg, value: Value) {
        let ty = dfg.ty(value);
        match dfg.as_const(value) {
            Some(ConstData::Bits(bits)) => write_bits(&mut self.out, ty, *bits),
            Some(ConstData::Poison) => self.put("poison"),
            Some(ConstData::Global(global, offset)) => {
                write_name(&mut self.out, "@", &self.module.globals[*global].name);
                write_offset(&mut self.out, *offset);
            }
            Some(ConstData::Func(func)) => write_name(&mut self.out, "@", &self.module.funcs[*func].name),
            Some(ConstData::Vector(lanes)) => self.vector_constant(dfg, lanes),
            None => {}
        }
    }

    fn vector_constant(&mut self, dfg: &Dfg, lanes: &[Value]) {
        if lanes.iter().all(|lane| dfg.as_bits(*lane) == Some(0)) {
            self.put("zero");
            return;
        }
        if let [first, rest @ ..] = lanes
            && !rest.is_empty()
            && rest.iter().all(|lane| lane == first)
        {
            self.put("splat(");
            self.constant(dfg, *first);
            self.put(")");
            return;
        }
        self.put("<");
        for (index, lane) in lanes.iter().enumerate() {
            self.put(if index > 0 { ", " } else { "" });
            self.constant(dfg, *lane);
        }
        self.put(">");
    }

    /// An initializer; its depth is bounded by that of the type.
    pub(super) fn init(&mut self, init: &Init, ty: MemType) {
        match init {
            Init::Bits(bits) => match ty {
                MemType::Value(ty) => write_bits(&mut self.out, ty, *bits),
                MemType::Agg(_) => self.put("zero"),
            },
            Init::Zero => self.put("zero"),
            Init::Poison => self.put("poison"),
            Init::Bytes(bytes) => {
                let text = quoted_bytes(bytes);
                self.put(&text);
            }
            Init::Func(func) => write_name(&mut self.out, "@", &self.module.funcs[*func].name),
            Init::Global { global, offset, generic } => {
                self.put(if *generic { "generic(" } else { "" });
                write_name(&mut self.out, "@", &self.module.globals[*global].name);
                write_offset(&mut self.out, *offset);
                self.put(if *generic { ")" } else { "" });
            }
            Init::List(list) => self.init_list(list, ty),
        }
    }

    fn init_list(&mut self, list: &[Init], ty: MemType) {
        let (open, close) = match ty {
            MemType::Value(_) => ("<", ">"),
            MemType::Agg(id) => match &self.module.agg(id).def {
                AggDef::Array { .. } => ("[", "]"),
                AggDef::Struct { .. } => ("{", "}"),
            },
        };
        self.put(open);
        for (index, init) in list.iter().enumerate() {
            self.put(if index > 0 { ", " } else { "" });
            let elem = match ty {
                MemType::Value(ty) => MemType::Value(ty.scalar()),
                MemType::Agg(id) => match &self.module.agg(id).def {
                    AggDef::Array { elem, .. } => *elem,
                    AggDef::Struct { fields, .. } => {
                        fields.get(index).copied().unwrap_or(MemType::Value(Type::INVALID))
                    }
                },
            };
            self.init(init, elem);
        }
        self.put(close);
    }
}
