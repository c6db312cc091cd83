//! Conversions (PTX ISA 9.7.10.24, 9.7.10.25).

use ptxc_ir::FloatKind;

use super::float::mode;
use super::lanewise::slow;
use crate::float;
use crate::ptx::instruction::Instruction;
use crate::ptx::operand::{Operand, Slot};
use crate::ptx::program::Operation;
use crate::ptx::types::{Class, Type, low_bits, sign_extend};

/// Decodes `cvt`.
pub fn decode(i: &mut Instruction<'_>) -> Result<Option<Operation>, String> {
    if i.has("pack") {
        return pack(i).map(Some);
    }
    let types = i.types();
    let [to, from] = types[..] else { return Err("two types are needed".to_string()) };
    if i.pieces.iter().any(|piece| piece.starts_with("scaled") || *piece == "pzo") {
        return Err("the emulator does not know this form".to_string());
    }
    if i.has("rs") {
        return stochastic(i, to).map(Some);
    }
    if to.count > 1 || from.count > 1 {
        return narrow(i, to, from).map(Some);
    }
    scalar(i, to, from).map(Some)
}

/// The destination may be wider than its type: integers with a sign then keep it, and others are zero above.
fn scalar(i: &mut Instruction<'_>, to: Type, from: Type) -> Result<Operation, String> {
    let width = i.dest(0)?.bits();
    let mode = mode(i);
    let rounds = i.any(&["rni", "rzi", "rmi", "rpi"]).is_some();
    let settle = move |bits: u64| match to.class {
        Class::Signed => sign_extend(bits, to.element) as u64 & low_bits(width),
        _ => bits & to.mask(),
    };
    let source = move |bits: u64| bits & from.mask();
    match (to.float(), from.float()) {
        (None, None) => {
            let sat = i.has("sat");
            slow(i, [from], move |[x]| settle(if sat { saturate(to, from, x) } else { extend(from, x) }))
        }
        (None, Some(kind)) => slow(i, [from], move |[x]| {
            let value = float::to_int_converted(kind, source(x), to.element, to.is_signed(), mode.round, mode.ftz);
            settle(value as u64)
        }),
        (Some(kind), None) => slow(i, [from], move |[x]| {
            let value = u128::from(source(x));
            float::from_int(kind, value, from.element, from.is_signed(), mode)
        }),
        (Some(to), Some(from_kind)) => slow(i, [from], move |[x]| {
            let x = source(x);
            if rounds {
                return float::round_to_integral(to, x, mode);
            }
            if to == from_kind && !float::is_nan(to, x) {
                return float::add(to, x, float::sign_bit(to), mode);
            }
            float::convert(from_kind, to, x, mode)
        }),
    }
}

fn extend(from: Type, bits: u64) -> u64 {
    if from.is_signed() { sign_extend(bits, from.element) as u64 } else { bits & from.mask() }
}

fn saturate(to: Type, from: Type, bits: u64) -> u64 {
    let value =
        if from.is_signed() { i128::from(sign_extend(bits, from.element)) } else { i128::from(bits & from.mask()) };
    let (least, most) = range(to.element, to.is_signed());
    value.clamp(least, most) as u64
}

fn range(bits: u32, signed: bool) -> (i128, i128) {
    if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// Packed types. The first operand is the upper element where there are two.
fn narrow(i: &mut Instruction<'_>, to: Type, from: Type) -> Result<Operation, String> {
    let mode = mode(i);
    let (Some(to_kind), Some(from_kind)) = (to.float(), from.float()) else {
        return Err("the emulator does not know this form".to_string());
    };
    let shift = to.element;
    let one = move |bits: u64| float::convert(from_kind, to_kind, bits, mode) & low_bits(shift);
    if from.count == 1 {
        return slow(i, [from; 2], move |[high, low]| one(high) << shift | one(low));
    }
    let storage = from.element;
    slow(i, [from], move |[x]| {
        let part = |index: u32| one(x >> (index * storage) & low_bits(storage));
        (0..to.count).fold(0, |bits, index| bits | part(index) << (index * shift))
    })
}

/// `.rs`: random bits are added to what is cut off (PTX ISA 9.7.10.24).
fn stochastic(i: &mut Instruction<'_>, to: Type) -> Result<Operation, String> {
    let kind = to.float().ok_or_else(|| "the result is no float".to_string())?;
    let mode = mode(i);
    let f32_type = Type { class: Class::Float(FloatKind::F32), element: 32, count: 1 };
    let d = i.dest(0)?.slot;
    let mut sources: Vec<Slot> = match i.operand(1)?.clone() {
        Operand::Vector(list) => list.iter().map(|x| i.value(x, f32_type)).collect::<Result<_, _>>()?,
        _ => vec![i.source(1, f32_type)?, i.source(2, f32_type)?],
    };
    let random = i.source(i.operands.len() - 1, Type::bits_of(32))?;
    // The last operand is the lowest element.
    sources.reverse();
    let storage = to.element;
    Ok(Operation::compute(move |at| {
        at.each(d, |at, lane| {
            let bits = at.lane(random, lane) as u32;
            sources.iter().enumerate().fold(0, |all, (index, slot)| {
                let random = float::random_bits(kind, bits, index as u32);
                let value = float::convert_stochastic(kind, at.lane(*slot, lane) as u32, random, mode);
                all | (value & low_bits(storage)) << (index as u32 * storage)
            })
        });
    }))
}

/// `cvt.pack.sat`: two numbers saturated into the low part, the third operand shifted above them.
fn pack(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let types = i.types();
    let (Some(&to), s32) = (types.first(), Type { class: Class::Signed, element: 32, count: 1 }) else {
        return Err("a type is needed".to_string());
    };
    let one = move |x: u64| {
        let (least, most) = range(to.element, to.is_signed());
        i128::from(sign_extend(x, 32)).clamp(least, most) as u64 & to.mask()
    };
    let width = to.element;
    if i.operands.len() == 4 {
        return slow(i, [s32, s32, Type::bits_of(32)], move |[a, b, c]| {
            (c << (2 * width) & low_bits(32)) | one(a) << width | one(b)
        });
    }
    slow(i, [s32, s32], move |[a, b]| one(a) << width | one(b))
}
