//! Floating-point arithmetic (PTX ISA 9.7.3 to 9.7.6): all formats, packed and mixed.

use ptxc_ir::FloatKind;

use super::lanewise::{approximate, binary, packed, slow};
use crate::float::{self, Function, Mode, Round};
use crate::ptx::instruction::Instruction;
use crate::ptx::program::Operation;
use crate::ptx::types::Type;

/// The mode that the mnemonic gives.
pub fn mode(i: &Instruction<'_>) -> Mode {
    let round = match i.any(&["rz", "rm", "rp", "rna", "rzi", "rmi", "rpi"]) {
        Some("rz" | "rzi") => Round::Zero,
        Some("rm" | "rmi") => Round::Down,
        Some("rp" | "rpi") => Round::Up,
        Some("rna") => Round::NearestAway,
        _ => Round::Nearest,
    };
    Mode { round, ftz: i.has("ftz"), sat: i.has("sat"), relu: i.has("relu"), finite: i.has("satfinite") }
}

/// Decodes what has a floating-point type.
pub fn decode(i: &mut Instruction<'_>) -> Result<Option<Operation>, String> {
    let types = i.types();
    let Some(&ty) = types.first() else { return Ok(None) };
    let Some(kind) = ty.float() else { return Ok(None) };
    if kind.is_narrow() {
        return Err("the emulator does not know this form".to_string());
    }
    if types.len() > 1 {
        return mixed(i, &types).map(Some);
    }
    let mode = mode(i);
    Ok(Some(match i.head() {
        "add" | "sub" | "mul" | "div" => two(i, ty, kind, mode)?,
        "fma" if i.has("oob") => slow(i, [ty; 3], packed(ty, move |x: [u64; 3]| fma_out_of_bounds(kind, x, mode)))?,
        "fma" | "mad" => slow(i, [ty; 3], packed(ty, move |[x, y, z]: [u64; 3]| float::fma(kind, x, y, z, mode)))?,
        "min" | "max" => minimum(i, ty, kind, mode)?,
        "abs" => slow(i, [ty], packed(ty, move |[x]: [u64; 1]| float::abs(kind, x, mode.ftz)))?,
        "neg" => slow(i, [ty], packed(ty, move |[x]: [u64; 1]| float::neg(kind, x, mode.ftz)))?,
        "copysign" => slow(i, [ty; 2], move |[x, y]| float::copysign(kind, y, x))?,
        "testp" => testp(i, ty, kind)?,
        _ => function(i, ty, kind, mode)?,
    }))
}

/// `fma.oob`: a factor that is the NaN with which copies fill what is out of bounds gives zero. Which NaN that is, an H200
/// was asked.
fn fma_out_of_bounds(kind: FloatKind, [x, y, z]: [u64; 3], mode: Mode) -> u64 {
    let outside = |factor: u64| factor & 0x7fff == 0x7ff7;
    if outside(x) || outside(y) { 0 } else { float::fma(kind, x, y, z, mode) }
}

/// `add`, `sub`, `mul`, `div`.
fn two(i: &mut Instruction<'_>, ty: Type, kind: FloatKind, mode: Mode) -> Result<Operation, String> {
    let single = |f: fn(f32, f32) -> f32| {
        move |x: u64, y: u64| {
            let z = f(f32::from_bits(x as u32), f32::from_bits(y as u32));
            if z.is_nan() { float::nan(FloatKind::F32) } else { z.to_bits().into() }
        }
    };
    if kind == FloatKind::F32 && ty.count == 1 && mode == Mode::default() {
        match i.head() {
            "add" => return binary(i, [ty; 2], single(|x, y| x + y)),
            "sub" => return binary(i, [ty; 2], single(|x, y| x - y)),
            "mul" => return binary(i, [ty; 2], single(|x, y| x * y)),
            _ => {}
        }
    }
    let exact = match i.head() {
        "add" => float::add,
        "sub" => float::sub,
        "mul" => float::mul,
        _ => float::div,
    };
    let element = packed(ty, move |[x, y]: [u64; 2]| exact(kind, x, y, mode));
    if i.any(&["approx", "full"]).is_some() { approximate(i, [ty; 2], element) } else { slow(i, [ty; 2], element) }
}

/// `min` and `max` of two or three.
fn minimum(i: &mut Instruction<'_>, ty: Type, kind: FloatKind, mode: Mode) -> Result<Operation, String> {
    let pick = match (i.head(), i.has("NaN")) {
        ("min", false) => float::min,
        ("min", true) => float::minimum,
        (_, false) => float::max,
        (_, true) => float::maximum,
    };
    let ftz = mode.ftz;
    let (magnitudes, xor) = (i.has("abs"), i.has("xorsign"));
    let magnitude = move |x: u64| if magnitudes { float::abs(kind, x, ftz) } else { x };
    if i.operands.len() == 4 {
        let three =
            move |[x, y, z]: [u64; 3]| pick(kind, pick(kind, magnitude(x), magnitude(y), ftz), magnitude(z), ftz);
        return slow(i, [ty; 3], packed(ty, three));
    }
    let element = move |[x, y]: [u64; 2]| {
        let picked = pick(kind, magnitude(x), magnitude(y), ftz);
        // A NaN result is canonical, without a sign.
        if xor && !float::is_nan(kind, picked) { picked | (x ^ y) & float::sign_bit(kind) } else { picked }
    };
    slow(i, [ty; 2], packed(ty, element))
}

fn testp(i: &mut Instruction<'_>, ty: Type, kind: FloatKind) -> Result<Operation, String> {
    // Bit numbers as `float::class` gives them.
    let classes: &[u32] = match i.any(&["finite", "infinite", "notanumber", "number", "subnormal", "normal"]) {
        Some("finite") => &[3, 4, 5, 6, 7, 8],
        Some("infinite") => &[2, 9],
        Some("number") => &[2, 3, 4, 5, 6, 7, 8, 9],
        Some("notanumber") => &[0, 1],
        // Zero counts as normal.
        Some("normal") => &[3, 5, 6, 8],
        _ => &[4, 7],
    };
    slow(i, [ty], move |[x]| u64::from(classes.contains(&float::class(kind, x))))
}

/// Functions of one operand.
fn function(i: &mut Instruction<'_>, ty: Type, kind: FloatKind, mode: Mode) -> Result<Operation, String> {
    let named = match i.head() {
        "rsqrt" => Some(Function::Rsqrt),
        "sin" => Some(Function::Sin),
        "cos" => Some(Function::Cos),
        "lg2" => Some(Function::Log2),
        "ex2" => Some(Function::Exp2),
        "tanh" => Some(Function::Tanh),
        _ => None,
    };
    let coarse = kind == FloatKind::F64 && i.has("approx") && i.has("ftz");
    let exact = match i.head() {
        "rcp" => float::rcp,
        "sqrt" => float::sqrt,
        _ => |_, _, _| 0,
    };
    // `rcp.approx.ftz.f64` and its like look at the upper half of their operand and give the upper half of the result.
    let upper = if coarse { !0 << 32 } else { !0 };
    let element = move |[x]: [u64; 1]| {
        let value = match named {
            Some(function) => float::approximate(function, kind, x & upper, mode),
            None => exact(kind, x & upper, mode),
        };
        value & upper
    };
    match (named, i.head(), i.has("approx")) {
        (None, "rcp" | "sqrt", false) => slow(i, [ty], packed(ty, element)),
        (None, "rcp" | "sqrt", true) | (Some(_), ..) => approximate(i, [ty], packed(ty, element)),
        _ => Err("it is not known".to_string()),
    }
}

/// Mixed precision (PTX ISA 9.7.5): operands are made as precise as the result before anything is rounded.
fn mixed(i: &mut Instruction<'_>, types: &[Type]) -> Result<Operation, String> {
    let mode = mode(i);
    let (Some(&to), Some(&from)) = (types.first(), types.get(1)) else { return Err("two types are needed".into()) };
    let (Some(wide), Some(narrow)) = (to.float(), from.float()) else { return Err("the types are no floats".into()) };
    if types.len() > 2 || to.count != 1 {
        return Err("the emulator does not know this form".to_string());
    }
    let widen = move |x: u64| float::convert(narrow, wide, x, Mode::default());
    match i.head() {
        "add" => slow(i, [from, to], move |[x, y]| float::add(wide, widen(x), y, mode)),
        "sub" => slow(i, [from, to], move |[x, y]| float::sub(wide, widen(x), y, mode)),
        "fma" => slow(i, [from, from, to], move |[x, y, z]| float::fma(wide, widen(x), widen(y), z, mode)),
        _ => Err("the emulator does not know this form".to_string()),
    }
}
