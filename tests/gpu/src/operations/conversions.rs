//! Conversions between all scalar types.

use rustc_apfloat::ieee::{BFloat, Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round, Status};

use super::floats::{ROUNDINGS, for_type};
use super::integers::signed;
use super::{Operation, Type};

/// Widths between which integers are converted.
const WIDTHS: [u32; 8] = [1, 8, 16, 24, 32, 48, 64, 128];
/// Widths that are converted from and to floats.
const FLOAT_WIDTHS: [u32; 6] = [8, 16, 24, 32, 64, 128];
/// The float types.
const FLOATS: [Type; 4] = [Type::F16, Type::Bf16, Type::F32, Type::F64];

/// `trunc`, `zext` and `sext` between all widths.
pub fn integers() -> Vec<Operation> {
    let mut list = Vec::new();
    for from in WIDTHS {
        for to in WIDTHS {
            let (input, output) = (Type::Int(from), Type::Int(to));
            let mask = output.mask();
            let mut convert = |name: &str, meaning: fn(u32, u128) -> u128| {
                list.push(Operation::new(
                    &[input],
                    output,
                    format!("%r = {name} i{from} %x to i{to}"),
                    move |x, _, _| Some(meaning(from, x) & mask),
                ));
            };
            if from > to {
                convert("trunc", |_, x| x);
            }
            if from < to {
                convert("zext", |_, x| x);
                convert("sext", |from, x| signed(from, x) as u128);
            }
        }
    }
    list
}

/// The value in another float type, rounded.
fn convert<F: Float + FloatConvert<Half> + FloatConvert<BFloat> + FloatConvert<Single> + FloatConvert<Double>>(
    x: u128,
    to: Type,
    round: Round,
) -> u128 {
    let (x, mut inexact) = (F::from_bits(x), false);
    match to {
        Type::F16 => FloatConvert::<Half>::convert_r(x, round, &mut inexact).value.to_bits(),
        Type::Bf16 => FloatConvert::<BFloat>::convert_r(x, round, &mut inexact).value.to_bits(),
        Type::F32 => FloatConvert::<Single>::convert_r(x, round, &mut inexact).value.to_bits(),
        Type::F64 | Type::Int(_) => FloatConvert::<Double>::convert_r(x, round, &mut inexact).value.to_bits(),
    }
}

/// `fptrunc` and `fpext`.
pub fn floats() -> Vec<Operation> {
    let mut list = Vec::new();
    for from in FLOATS {
        for to in FLOATS {
            let name = match (from.bits(), to.bits()) {
                (a, b) if a > b => "fptrunc",
                (a, b) if a < b => "fpext",
                _ => continue,
            };
            for (mode, round) in ROUNDINGS {
                let directed = name == "fptrunc" && (from, to) == (Type::F64, Type::F32);
                if !mode.is_empty() && !directed {
                    continue;
                }
                let text = format!("%r = {name} {mode}{} %x to {}", from.name(), to.name());
                list.push(Operation::new(&[from], to, text, move |x, _, _| {
                    Some(for_type!(from, convert(x, to, round)))
                }));
            }
        }
    }
    list
}

fn from_unsigned<F: Float>(x: u128) -> u128 {
    F::from_u128(x).value.to_bits()
}

fn from_signed<F: Float>(x: i128) -> u128 {
    F::from_i128(x).value.to_bits()
}

/// Toward zero; nothing where the value does not fit. The second number is what a saturating conversion gives.
fn to_unsigned<F: Float>(x: u128, bits: u32) -> (Option<u128>, u128) {
    let x = F::from_bits(x);
    let result = x.to_u128_r(bits as usize, Round::TowardZero, &mut false);
    let fits = !result.status.contains(Status::INVALID_OP);
    (fits.then_some(result.value), if x.is_nan() { 0 } else { result.value })
}

/// The signed one.
fn to_signed<F: Float>(x: u128, bits: u32) -> (Option<u128>, u128) {
    let x = F::from_bits(x);
    let result = x.to_i128_r(bits as usize, Round::TowardZero, &mut false);
    let fits = !result.status.contains(Status::INVALID_OP);
    let value = result.value as u128 & Type::Int(bits).mask();
    (fits.then_some(value), if x.is_nan() { 0 } else { value })
}

/// Conversions from integers to floats and back, and bit casts.
pub fn between() -> Vec<Operation> {
    let mut list = Vec::new();
    for float in FLOATS {
        let name = float.name();
        for bits in FLOAT_WIDTHS {
            let int = Type::Int(bits);
            list.push(Operation::new(&[int], float, format!("%r = uitofp i{bits} %x to {name}"), move |x, _, _| {
                Some(for_type!(float, from_unsigned(x)))
            }));
            list.push(Operation::new(&[int], float, format!("%r = sitofp i{bits} %x to {name}"), move |x, _, _| {
                Some(for_type!(float, from_signed(signed(bits, x))))
            }));
            for (op, unsigned, saturating) in [
                ("fptoui", true, false),
                ("fptosi", false, false),
                ("fptoui_sat", true, true),
                ("fptosi_sat", false, true),
            ] {
                list.push(Operation::new(&[float], int, format!("%r = {op} {name} %x to i{bits}"), move |x, _, _| {
                    let (exact, saturated) = if unsigned {
                        for_type!(float, to_unsigned(x, bits))
                    } else {
                        for_type!(float, to_signed(x, bits))
                    };
                    if saturating { Some(saturated) } else { exact }
                }));
            }
        }
        let int = Type::Int(float.bits());
        let bits = float.bits();
        list.push(Operation::new(&[float], int, format!("%r = bitcast {name} %x to i{bits}"), |x, _, _| Some(x)));
        list.push(Operation::new(&[int], float, format!("%r = bitcast i{bits} %x to {name}"), |x, _, _| Some(x)));
    }
    list
}
