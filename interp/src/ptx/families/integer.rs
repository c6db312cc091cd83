//! Integer arithmetic (PTX ISA 9.7.1), scalar and packed.

use super::lanewise::{binary, packed, slow, ternary, unary};
use crate::ptx::instruction::Instruction;
use crate::ptx::program::Operation;
use crate::ptx::types::{Type, low_bits, sign_extend};

/// The number that bits of an integer type stand for.
fn number(ty: Type, bits: u64) -> i128 {
    if ty.is_signed() { sign_extend(bits, ty.element).into() } else { (bits & ty.mask()).into() }
}

/// A number limited to what an integer type holds.
fn clamp(ty: Type, value: i128) -> u64 {
    let (least, most) = if ty.is_signed() {
        (-(1i128 << (ty.element - 1)), (1i128 << (ty.element - 1)) - 1)
    } else {
        (0, ty.mask().into())
    };
    value.clamp(least, most) as u64
}

/// Operations of two operands that are numbers of the type.
fn numbers(
    i: &mut Instruction<'_>,
    ty: Type,
    f: impl Fn(i128, i128) -> u64 + Send + Sync + 'static,
) -> Result<Operation, String> {
    let element = move |[x, y]: [u64; 2]| f(number(ty, x), number(ty, y));
    slow(i, [ty; 2], packed(ty, element))
}

/// `add`, `sub` that wrap: one loop for a width.
fn wrapping(i: &mut Instruction<'_>, ty: Type, subtract: bool) -> Result<Operation, String> {
    let sum = move |x: u64, y: u64| if subtract { x.wrapping_sub(y) } else { x.wrapping_add(y) };
    if ty.count > 1 {
        let whole = packed(ty, move |[x, y]: [u64; 2]| sum(x, y));
        return slow(i, [ty; 2], whole);
    }
    if subtract { binary(i, [ty; 2], u64::wrapping_sub) } else { binary(i, [ty; 2], u64::wrapping_add) }
}

/// Decodes what has an integer type; the families of floats have the same heads.
pub fn decode(i: &mut Instruction<'_>) -> Result<Option<Operation>, String> {
    let ty = i.ty()?;
    if !ty.is_integer() || i.has("cc") {
        return Ok(None);
    }
    arithmetic(i, ty).map(Some)
}

fn arithmetic(i: &mut Instruction<'_>, ty: Type) -> Result<Operation, String> {
    let (sat, relu) = (i.has("sat"), i.has("relu"));
    match i.head() {
        "add" if sat => numbers(i, ty, move |x, y| clamp(ty, x + y)),
        "sub" if sat => numbers(i, ty, move |x, y| clamp(ty, x - y)),
        "add" => wrapping(i, ty, false),
        "sub" => wrapping(i, ty, true),
        "mul" | "mad" => multiply(i, ty),
        "mul24" | "mad24" => multiply24(i, ty),
        "sad" => slow(i, [ty; 3], move |[x, y, z]| z.wrapping_add(number(ty, x).abs_diff(number(ty, y)) as u64)),
        "div" => numbers(i, ty, move |x, y| if y == 0 { u64::MAX } else { (x / y) as u64 }),
        "rem" => numbers(i, ty, move |x, y| if y == 0 { x as u64 } else { (x % y) as u64 }),
        "abs" => unary(i, ty, move |x| sign_extend(x, ty.element).wrapping_abs() as u64),
        "neg" => slow(i, [ty], packed(ty, |[x]: [u64; 1]| x.wrapping_neg())),
        "min" | "max" if ty.count == 1 && !relu => minimum(i, ty),
        "min" => numbers(i, ty, move |x, y| if relu { x.min(y).max(0) } else { x.min(y) } as u64),
        "max" => numbers(i, ty, move |x, y| if relu { x.max(y).max(0) } else { x.max(y) } as u64),
        _ => bits(i, ty),
    }
}

fn minimum(i: &mut Instruction<'_>, ty: Type) -> Result<Operation, String> {
    let unused = 64 - ty.element;
    let signed = move |x: u64| (x << unused) as i64;
    match (i.head(), ty.is_signed()) {
        ("min", true) => binary(i, [ty; 2], move |x, y| if signed(x) < signed(y) { x } else { y }),
        ("min", false) => binary(i, [ty; 2], u64::min),
        (_, true) => binary(i, [ty; 2], move |x, y| if signed(x) > signed(y) { x } else { y }),
        _ => binary(i, [ty; 2], u64::max),
    }
}

/// `mul` and `mad` in the modes `lo`, `hi`, `wide`.
fn multiply(i: &mut Instruction<'_>, ty: Type) -> Result<Operation, String> {
    let adds = i.head() == "mad";
    let width = ty.element;
    if i.has("lo") {
        return match adds {
            true => ternary(i, [ty; 3], |x, y, z| x.wrapping_mul(y).wrapping_add(z)),
            false => binary(i, [ty; 2], u64::wrapping_mul),
        };
    }
    if i.has("wide") {
        let double = Type { element: 2 * width, ..ty };
        let unused = 64 - width;
        return match (adds, ty.is_signed()) {
            (true, true) => ternary(i, [ty, ty, double], move |x, y, z| {
                let (x, y) = ((x << unused) as i64 >> unused, (y << unused) as i64 >> unused);
                (x.wrapping_mul(y) as u64).wrapping_add(z)
            }),
            (true, false) => ternary(i, [ty, ty, double], |x, y, z| x.wrapping_mul(y).wrapping_add(z)),
            (false, true) => binary(i, [ty; 2], move |x, y| {
                let (x, y) = ((x << unused) as i64 >> unused, (y << unused) as i64 >> unused);
                x.wrapping_mul(y) as u64
            }),
            (false, false) => binary(i, [ty; 2], u64::wrapping_mul),
        };
    }
    let high = move |x: u64, y: u64| {
        if ty.is_signed() {
            ((number(ty, x) * number(ty, y)) >> width) as u64
        } else {
            ((u128::from(x) * u128::from(y)) >> width) as u64
        }
    };
    match (adds, i.has("sat")) {
        (false, _) => slow(i, [ty; 2], move |[x, y]| high(x, y)),
        (true, false) => slow(i, [ty; 3], move |[x, y, z]| high(x, y).wrapping_add(z)),
        (true, true) => slow(i, [ty; 3], move |[x, y, z]| clamp(ty, number(ty, high(x, y)) + number(ty, z))),
    }
}

/// Products of 24-bit numbers: their low 32 bits, or bits 16 to 47.
fn multiply24(i: &mut Instruction<'_>, ty: Type) -> Result<Operation, String> {
    let high = i.has("hi");
    let narrow = Type { element: 24, ..ty };
    let product = move |x: u64, y: u64| {
        let product = number(narrow, x) * number(narrow, y);
        (if high { product >> 16 } else { product }) as u64 & low_bits(32)
    };
    match (i.head(), i.has("sat")) {
        ("mul24", _) => slow(i, [ty; 2], move |[x, y]| product(x, y)),
        (_, false) => slow(i, [ty; 3], move |[x, y, z]| product(x, y).wrapping_add(z)),
        _ => slow(i, [ty; 3], move |[x, y, z]| clamp(ty, number(ty, product(x, y)) + number(ty, z))),
    }
}

/// Counting, finding, extracting and inserting bits.
fn bits(i: &mut Instruction<'_>, ty: Type) -> Result<Operation, String> {
    let width = ty.element;
    let number32 = Type::bits_of(32);
    match i.head() {
        "popc" => unary(i, ty, |x| x.count_ones().into()),
        "clz" => unary(i, ty, move |x| (x.leading_zeros() - (64 - width)).into()),
        "brev" => unary(i, ty, move |x| x.reverse_bits() >> (64 - width)),
        "bfind" => {
            let shift = i.has("shiftamt");
            slow(i, [ty], move |[x]| find_highest(ty, x, shift))
        }
        "fns" => slow(i, [ty; 3], |[mask, base, offset]| find_nth(mask as u32, base as u32, offset as i32).into()),
        "bfe" => slow(i, [ty, number32, number32], move |[x, at, length]| extract(ty, x, at as u32, length as u32)),
        "bfi" => slow(i, [ty, ty, number32, number32], move |[x, y, at, length]| {
            insert(width, x, y, at as u32, length as u32)
        }),
        "szext" => {
            let wrap = i.has("wrap");
            slow(i, [ty, number32], move |[x, n]| {
                let n = if wrap { n & 31 } else { n.min(32) } as u32;
                match (n, ty.is_signed()) {
                    (0, _) => 0,
                    (n, true) => sign_extend(x, n) as u64,
                    (n, false) => x & low_bits(n),
                }
            })
        }
        "bmsk" => {
            let clamps = i.has("clamp");
            slow(i, [number32; 2], move |[at, length]| mask_of(at as u32, length as u32, clamps).into())
        }
        "clmad" => {
            let high = i.has("hi");
            slow(i, [ty; 3], move |[x, y, z]| {
                let product = (0..64).filter(|b| y >> b & 1 != 0).fold(0u128, |p, b| p ^ u128::from(x) << b);
                z ^ if high { (product >> 64) as u64 } else { product as u64 }
            })
        }
        "dp4a" | "dp2a" => dot(i),
        _ => Err("it is not known".to_string()),
    }
}

/// Position of the highest one; of the highest bit that is not the sign's in a signed number.
fn find_highest(ty: Type, bits: u64, shift: bool) -> u64 {
    let bits = if ty.is_signed() && sign_extend(bits, ty.element) < 0 { !bits & ty.mask() } else { bits };
    match bits.checked_ilog2() {
        None => low_bits(32),
        Some(at) => (if shift { ty.element - 1 - at } else { at }).into(),
    }
}

/// Position of the n-th one counted from a base, up or down; 0 asks for the base itself.
fn find_nth(mask: u32, base: u32, offset: i32) -> u32 {
    let set = |at: i64| (0..32).contains(&at) && mask >> at & 1 != 0;
    let mut at = i64::from(base);
    if offset == 0 {
        return if set(at) { base } else { u32::MAX };
    }
    let mut left = offset.unsigned_abs();
    while (0..32).contains(&at) {
        if set(at) {
            left -= 1;
            if left == 0 {
                return at as u32;
            }
        }
        at += i64::from(offset.signum());
    }
    u32::MAX
}

fn extract(ty: Type, bits: u64, at: u32, length: u32) -> u64 {
    let (at, length, width) = (at & 255, length & 255, ty.element);
    let shifted = if at >= width { 0 } else { (bits & ty.mask()) >> at };
    if length == 0 {
        return 0;
    }
    let sign = ty.is_signed() && bits >> (at + length - 1).min(width - 1) & 1 != 0;
    let there = length.min(width.saturating_sub(at));
    (shifted & low_bits(there)) | if sign { !low_bits(there) } else { 0 }
}

fn insert(width: u32, from: u64, into: u64, at: u32, length: u32) -> u64 {
    let (at, length) = (at & 255, length & 255);
    if at >= width {
        return into;
    }
    let field = low_bits(length.min(width - at)) << at;
    (into & !field) | (from << at & field)
}

fn mask_of(at: u32, length: u32, clamps: bool) -> u32 {
    let (position, count) = (at & 31, length & 31);
    let from = if clamps && at >= 32 { 0 } else { u32::MAX << position };
    let beyond = position + count >= 32 || (clamps && (at >= 32 || length >= 32));
    let after = if beyond { 0 } else { u32::MAX << (position + count) };
    from & !after
}

/// `dp4a`, `dp2a`: sums of products of bytes.
fn dot(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let types = i.types();
    let [a, b] = types[..] else { return Err("two types are needed".to_string()) };
    let (bytes, half) = (i.head() == "dp4a", i.has("hi"));
    let part = |ty: Type, bits: u64, width: u32, index: u32| {
        number(Type { element: width, ..ty }, bits >> (index * width) & low_bits(width))
    };
    slow(i, [a, b, Type::bits_of(32)], move |[x, y, z]| {
        let sum: i128 = if bytes {
            (0..4).map(|n| part(a, x, 8, n) * part(b, y, 8, n)).sum()
        } else {
            let first = if half { 2 } else { 0 };
            (0..2).map(|n| part(a, x, 16, n) * part(b, y, 8, first + n)).sum()
        };
        z.wrapping_add(sum as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_bits() {
        let (u32t, s32t) = (Type::parse("u32").unwrap(), Type::parse("s32").unwrap());
        assert_eq!(extract(u32t, 0xabcd_1234, 8, 8), 0x12);
        assert_eq!(extract(s32t, 0xabcd_9234, 8, 8) as u32, 0xffff_ff92);
        assert_eq!(extract(s32t, 0x8000_0000, 31, 200) as u32, u32::MAX);
        assert_eq!(extract(s32t, 0x8000_0000, 40, 1) as u32, u32::MAX);
        assert_eq!(extract(u32t, u64::from(u32::MAX), 255, 255), 0);
        assert_eq!(insert(32, 0xff, 0, 28, 8), 0xf000_0000);
        assert_eq!(insert(64, 0x5, 0, 62, 8), 1 << 62);
        assert_eq!(mask_of(4, 8, false), 0xff0);
        assert_eq!((mask_of(4, 32, true), mask_of(4, 32, false)), (0xffff_fff0, 0));
        assert_eq!((mask_of(32, 4, true), mask_of(32, 4, false)), (0, 0xf));
        assert_eq!(find_nth(0b1011_0000, 0, 2), 5);
        assert_eq!(find_nth(0b1011_0000, 31, -1), 7);
        assert_eq!((find_nth(1, 0, 0), find_nth(2, 0, 0)), (0, u32::MAX));
        assert_eq!(find_highest(s32t, u64::from(u32::MAX), false), u64::from(u32::MAX));
        assert_eq!(find_highest(u32t, 0x10, true), 27);
    }
}
