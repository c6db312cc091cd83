//! How values of illegal types are represented: by a list of legal values, their *parts*.
//!
//! * An integer of 2 to 64 bits other than 16, 32, 64 is one *container* (`i32` or `i64`) with unspecified upper bits.
//! * An integer of 65 to 128 bits is two `i64` limbs, low first, the upper bits of the high one unspecified.
//! * A narrow float is its bits, as an 8-bit integer.
//! * A vector is the parts of its lanes in order, except that lanes of i16, f16, bf16 (and f32 where the target computes
//!   on pairs) come in pairs, `<2 x T>`, with a scalar for an odd last lane.
//!
//! This file decides the representation; operations on it are in the files beside it.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{ConstData, Opcode, Scalar, Type, Value};
use smallvec::{SmallVec, smallvec};

use super::context::Context;

/// A scalar in parts: one legal value, or two limbs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lane {
    /// The value, its container, or the low limb.
    pub lo: Value,
    /// The high limb of an integer wider than 64 bits.
    pub hi: Option<Value>,
}

impl From<Value> for Lane {
    fn from(lo: Value) -> Lane {
        Lane { lo, hi: None }
    }
}

/// The lanes of a value.
pub(super) type Lanes = SmallVec<[Lane; 4]>;
/// The parts of a value.
pub(super) type Parts = SmallVec<[Value; 4]>;

/// What a scalar type is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Repr {
    /// A legal type.
    Legal,
    /// An integer of so many bits in a wider container; narrow floats are `Int(8)`.
    Int(u32),
    /// An integer of so many bits in two limbs.
    Wide(u32),
}

/// The representation of a scalar type.
pub(super) fn repr(scalar: Type) -> Repr {
    match scalar.kind() {
        Some(Scalar::Int(1 | 16 | 32 | 64)) => Repr::Legal,
        Some(Scalar::Int(bits)) if bits <= 64 => Repr::Int(bits),
        Some(Scalar::Int(bits)) => Repr::Wide(bits),
        Some(Scalar::Float(kind)) if kind.is_narrow() => Repr::Int(8),
        _ => Repr::Legal,
    }
}

/// The legal type that holds an integer of so many bits, at most 64.
pub(super) fn container(bits: u32) -> Type {
    match bits {
        1 => Type::I1,
        16 => Type::I16,
        2..=32 => Type::I32,
        _ => Type::I64,
    }
}

/// The type of a lane's parts.
pub(super) fn lane_type(scalar: Type) -> Type {
    match repr(scalar) {
        Repr::Legal => scalar,
        Repr::Int(bits) => container(bits),
        Repr::Wide(_) => Type::I64,
    }
}

/// The parts of every illegal value, in one pool.
#[derive(Default)]
pub(super) struct PartMap {
    ranges: SecondaryMap<Value, (u32, u32)>,
    pool: Vec<Value>,
}

impl PartMap {
    /// The recorded parts; `None` when there are none.
    fn get(&self, value: Value) -> Option<&[Value]> {
        let (start, len) = self.ranges[value];
        (len != 0).then(|| &self.pool[start as usize..(start + len) as usize])
    }

    /// Records parts.
    pub fn set(&mut self, value: Value, parts: &[Value]) {
        self.ranges[value] = (self.pool.len() as u32, parts.len() as u32);
        self.pool.extend_from_slice(parts);
    }
}

impl Context<'_> {
    /// The types of the parts that represent a type.
    pub fn part_types(&self, ty: Type) -> SmallVec<[Type; 4]> {
        if self.features.legal_value(ty) {
            return smallvec![ty];
        }
        let (scalar, lanes) = (ty.scalar(), ty.lanes());
        if ty.is_vector() && self.features.paired(scalar) {
            let mut types: SmallVec<[Type; 4]> = smallvec![scalar.with_lanes(2); (lanes / 2) as usize];
            if lanes % 2 == 1 {
                types.push(scalar);
            }
            return types;
        }
        let limbs = if matches!(repr(scalar), Repr::Wide(_)) { 2 } else { 1 };
        smallvec![lane_type(scalar); (lanes * limbs) as usize]
    }

    /// The legal values that represent a value.
    pub fn parts_of(&mut self, value: Value) -> Parts {
        let value = self.func.dfg.resolve(value);
        let ty = self.ty(value);
        if self.features.legal_value(ty) {
            return smallvec![value];
        }
        if let Some(parts) = self.parts.get(value) {
            return parts.iter().map(|part| self.func.dfg.resolve(*part)).collect();
        }
        if let Some(parts) = self.constant_parts(value, ty) {
            return parts;
        }
        // Definitions are visited before uses, so only a use that its definition does not dominate comes here.
        self.error(format!("a value of type {ty} is used before its definition"));
        self.poison_parts(ty)
    }

    fn poison_parts(&mut self, ty: Type) -> Parts {
        self.part_types(ty).into_iter().map(|ty| self.func.dfg.poison(ty)).collect()
    }

    fn constant_parts(&mut self, value: Value, ty: Type) -> Option<Parts> {
        match self.func.dfg.as_const(value)?.clone() {
            ConstData::Poison => Some(self.poison_parts(ty)),
            ConstData::Bits(bits) => Some(match repr(ty) {
                Repr::Wide(_) => {
                    smallvec![self.bits(Type::I64, bits), self.bits(Type::I64, bits >> 64)]
                }
                _ => smallvec![self.bits(lane_type(ty), bits)],
            }),
            ConstData::Vector(values) => {
                let lanes: Lanes = values.into_iter().map(|lane| self.scalar(lane)).collect();
                Some(self.parts_from_lanes(ty, &lanes))
            }
            // Addresses are legal scalars.
            ConstData::Global(..) | ConstData::Func(_) => None,
        }
    }

    /// A scalar value as a lane.
    pub fn scalar(&mut self, value: Value) -> Lane {
        let parts = self.parts_of(value);
        Lane { lo: parts[0], hi: parts.get(1).copied() }
    }

    /// The lanes of a value; one for a scalar.
    pub fn lanes_of(&mut self, value: Value) -> Lanes {
        let ty = self.ty(value);
        let parts = self.parts_of(value);
        self.lanes_from_parts(ty, &parts)
    }

    /// The lanes that the parts of a type hold.
    pub fn lanes_from_parts(&mut self, ty: Type, parts: &[Value]) -> Lanes {
        let scalar = ty.scalar();
        if ty.is_vector() && self.features.paired(scalar) {
            let mut lanes = Lanes::new();
            for part in parts {
                if self.ty(*part).is_vector() {
                    lanes.push(self.extract(*part, 0).into());
                    lanes.push(self.extract(*part, 1).into());
                } else {
                    lanes.push((*part).into());
                }
            }
            return lanes;
        }
        match repr(scalar) {
            Repr::Wide(_) => parts.chunks_exact(2).map(|limb| Lane { lo: limb[0], hi: Some(limb[1]) }).collect(),
            _ => parts.iter().map(|part| Lane::from(*part)).collect(),
        }
    }

    /// The parts that hold these lanes as a value of this type.
    pub fn parts_from_lanes(&mut self, ty: Type, lanes: &[Lane]) -> Parts {
        let scalar = ty.scalar();
        if ty.is_vector() && self.features.paired(scalar) {
            let pair = scalar.with_lanes(2);
            return lanes
                .chunks(2)
                .map(|lanes| match lanes {
                    [a, b] => self.vector(pair, &[a.lo, b.lo]),
                    _ => lanes[0].lo,
                })
                .collect();
        }
        lanes.iter().flat_map(|lane| std::iter::once(lane.lo).chain(lane.hi)).collect()
    }

    /// Gives a value these parts: an alias where its type is legal, a record otherwise.
    pub fn set_parts(&mut self, value: Value, parts: &[Value]) {
        if self.features.legal_value(self.ty(value)) {
            if value != parts[0] {
                self.func.dfg.alias(value, parts[0]);
            }
        } else {
            self.parts.set(value, parts);
        }
    }

    /// Gives a value these lanes.
    pub fn set_lanes(&mut self, value: Value, lanes: &[Lane]) {
        let ty = self.ty(value);
        let parts = self.parts_from_lanes(ty, lanes);
        self.set_parts(value, &parts);
    }

    /// Gives the first result of an instruction these lanes and removes the instruction.
    pub fn finish(&mut self, inst: ptxc_ir::Inst, lanes: &[Lane]) {
        let result = self.func.dfg.result(inst, 0);
        self.set_lanes(result, lanes);
        self.func.layout.remove_inst(inst);
    }

    /// How many low bits a container's value fits in, unsigned.
    pub fn unsigned_width(&self, value: Value) -> u32 {
        if let Some(bits) = self.func.dfg.as_bits(value) {
            return 128 - bits.leading_zeros();
        }
        match self.widths[value].0 {
            0 => self.ty(value).bits(),
            width => u32::from(width),
        }
    }

    /// How many low bits a container's value fits in, signed.
    pub fn signed_width(&self, value: Value) -> u32 {
        if let Some(k) = self.func.dfg.as_signed(value) {
            return 129 - if k < 0 { (!k).leading_zeros() } else { k.leading_zeros() };
        }
        let unsigned = self.widths[value].0;
        let container = self.ty(value).bits();
        let from_unsigned = if unsigned == 0 { container } else { (u32::from(unsigned) + 1).min(container) };
        match self.widths[value].1 {
            0 => from_unsigned,
            width => u32::from(width).min(from_unsigned),
        }
    }

    /// Records that a container's value fits unsigned in so many bits.
    pub fn fits_unsigned(&mut self, value: Value, bits: u32) -> Value {
        if self.func.dfg.as_const(value).is_none() && bits < self.unsigned_width(value) {
            self.widths[value].0 = bits as u8;
        }
        value
    }

    /// Records that a container's value fits signed in so many bits.
    pub fn fits_signed(&mut self, value: Value, bits: u32) -> Value {
        if self.func.dfg.as_const(value).is_none() && bits < self.signed_width(value) {
            self.widths[value].1 = bits as u8;
        }
        value
    }

    /// The container with the bits above `bits` cleared.
    pub fn zero_extended(&mut self, value: Value, bits: u32) -> Value {
        if self.unsigned_width(value) <= bits {
            return value;
        }
        if let Some(known) = self.extensions.get(&(value, bits, false)) {
            return *known;
        }
        let ty = self.ty(value);
        let mask = self.bits(ty, (1u128 << bits) - 1);
        let result = self.bin(Opcode::And, value, mask);
        self.fits_unsigned(result, bits);
        self.extensions.insert((value, bits, false), result);
        result
    }

    /// The container with bit `bits - 1` copied upward.
    pub fn sign_extended(&mut self, value: Value, bits: u32) -> Value {
        if self.signed_width(value) <= bits {
            return value;
        }
        if let Some(known) = self.extensions.get(&(value, bits, true)) {
            return *known;
        }
        let result = self.emit_sign_extension(value, bits);
        self.fits_signed(result, bits);
        self.extensions.insert((value, bits, true), result);
        result
    }

    fn emit_sign_extension(&mut self, value: Value, bits: u32) -> Value {
        let ty = self.ty(value);
        if let Some(k) = self.func.dfg.as_bits(value) {
            let shift = 128 - bits;
            let extended = ((k << shift) as i128) >> shift;
            return self.bits(ty, extended as u128);
        }
        if bits == 8 || (bits == 16 && ty != Type::I16) || (bits == 32 && ty == Type::I64) {
            let narrow = self.narrowed(value, Type::int(bits));
            return self.conv(Opcode::Sext, narrow, ty);
        }
        let up = i64::from(ty.bits() - bits);
        let high = self.bin_imm(Opcode::Shl, value, up);
        self.bin_imm(Opcode::Ashr, high, up)
    }

    /// The low bits of a container as a narrower type that memory, calls and extensions take; the value the container
    /// was extended from, where there is one.
    pub fn narrowed(&mut self, value: Value, to: Type) -> Value {
        if let Some((inst, Opcode::Zext | Opcode::Sext)) = self.def(value) {
            let source = self.args(inst)[0];
            if self.ty(source) == to {
                return source;
            }
        }
        self.conv(Opcode::Trunc, value, to)
    }
}
