//! Logic, shifts and permutation of bytes (PTX ISA 9.7.9, 9.7.10.7).

use super::lanewise::{binary, slow, ternary, unary};
use crate::ptx::instruction::Instruction;
use crate::ptx::program::Operation;
use crate::ptx::types::{Class, Type, low_bits, sign_extend};

/// Decodes the family.
pub fn decode(i: &mut Instruction<'_>) -> Result<Option<Operation>, String> {
    let ty = i.ty()?;
    let amount = Type::bits_of(32);
    let width = u64::from(ty.element);
    Ok(Some(match i.head() {
        "and" | "or" | "xor" | "not" if ty.class == Class::Predicate => predicates(i)?,
        "and" => binary(i, [ty; 2], |x, y| x & y)?,
        "or" => binary(i, [ty; 2], |x, y| x | y)?,
        "xor" => binary(i, [ty; 2], |x, y| x ^ y)?,
        "not" => unary(i, ty, |x| !x)?,
        "cnot" => unary(i, ty, |x| u64::from(x == 0))?,
        "shl" => binary(i, [ty, amount], move |x, n| if n >= width { 0 } else { x << (n & 63) })?,
        "shr" if ty.is_signed() => {
            binary(i, [ty, amount], move |x, n| (sign_extend(x, width as u32) >> n.min(63)) as u64)?
        }
        "shr" => binary(i, [ty, amount], move |x, n| if n >= width { 0 } else { x >> (n & 63) })?,
        "shf" => {
            let (left, wrap) = (i.has("l"), i.has("wrap"));
            slow(i, [ty, ty, amount], move |[low, high, n]| {
                let n = if wrap { n & 31 } else { n.min(32) };
                let both = (high & low_bits(32)) << 32 | (low & low_bits(32));
                if left { both << n >> 32 } else { both >> n }
            })?
        }
        "lop3" => lop3(i)?,
        "prmt" => {
            let mode = i.any(&["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"]).unwrap_or("");
            let named = TABLES.iter().find(|(name, _)| *name == mode);
            match named {
                Some((_, table)) => slow(i, [ty; 3], move |[a, b, c]| permute(a, b, table[c as usize & 3]))?,
                None => slow(i, [ty; 3], |[a, b, c]| permute(a, b, c as u32 & 0xffff))?,
            }
        }
        _ => return Ok(None),
    }))
}

/// Selectors of the modes of `prmt`, by the two low bits of the third operand.
const TABLES: [(&str, [u32; 4]); 6] = [
    ("f4e", [0x3210, 0x4321, 0x5432, 0x6543]),
    ("b4e", [0x5670, 0x6701, 0x7012, 0x0123]),
    ("rc8", [0x0000, 0x1111, 0x2222, 0x3333]),
    ("ecl", [0x3210, 0x3211, 0x3222, 0x3333]),
    ("ecr", [0x0000, 0x1110, 0x2210, 0x3210]),
    ("rc16", [0x1010, 0x3232, 0x1010, 0x3232]),
];

/// Bytes of `b:a` that the selector names; its highest bit of four repeats the byte's sign.
pub fn permute(a: u64, b: u64, selector: u32) -> u64 {
    let bytes = b << 32 | (a & low_bits(32));
    (0..4).fold(0, |result, i| {
        let choice = selector >> (4 * i) & 15;
        let byte = (bytes >> (8 * (choice & 7))) as u8;
        let byte = if choice & 8 == 0 { byte } else { (byte as i8 >> 7) as u8 };
        result | u64::from(byte) << (8 * i)
    })
}

fn predicates(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let d = i.dest(0)?.slot;
    let (a, not_a) = i.predicate(1)?;
    let not_a = u64::from(not_a);
    if i.head() == "not" {
        return Ok(Operation::compute(move |at| at.map1(d, a, |x| (x ^ not_a ^ 1) & 1)));
    }
    let (b, not_b) = i.predicate(2)?;
    let not_b = u64::from(not_b);
    Ok(match i.head() {
        "and" => Operation::compute(move |at| at.map2(d, a, b, |x, y| (x ^ not_a) & (y ^ not_b) & 1)),
        "or" => Operation::compute(move |at| at.map2(d, a, b, |x, y| ((x ^ not_a) | (y ^ not_b)) & 1)),
        _ => Operation::compute(move |at| at.map2(d, a, b, |x, y| (x ^ not_a ^ y ^ not_b) & 1)),
    })
}

/// The function of three bits that a table of eight gives, on all bits.
pub fn ternary_logic(table: u8, a: u64, b: u64, c: u64) -> u64 {
    (0..8).filter(|row| table >> row & 1 != 0).fold(0, |r, row| {
        let pick = |x: u64, bit: u32| if row >> bit & 1 != 0 { x } else { !x };
        r | (pick(a, 2) & pick(b, 1) & pick(c, 0))
    })
}

fn lop3(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let ty = Type::bits_of(32);
    let table = i.immediate(4)? as u8;
    let Some(combine) = i.any(&["or", "and"]) else {
        return ternary(i, [ty; 3], move |a, b, c| ternary_logic(table, a, b, c));
    };
    let [d, p] = i.dest_pair(0)?;
    let (a, b, c) = (i.source(1, ty)?, i.source(2, ty)?, i.source(3, ty)?);
    let (q, flip) = i.predicate(5)?;
    let all = combine == "and";
    Ok(Operation::compute(move |at| {
        for lane in at.lanes() {
            let value = ternary_logic(table, at.lane(a, lane), at.lane(b, lane), at.lane(c, lane)) & low_bits(32);
            let other = (at.lane(q, lane) & 1 != 0) != flip;
            let some = value != 0;
            if let Some(d) = d {
                at.put(d.slot, lane, value);
            }
            if let Some(p) = p {
                at.put(p.slot, lane, u64::from(if all { some && other } else { some || other }));
            }
        }
    }))
}
