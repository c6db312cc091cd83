//! Video instructions (PTX ISA 9.7.20): bytes and halves of registers, with signs of their own, saturated, and then
//! combined with a third operand or put into its place. They do what the manual says; what recent drivers make of `.sat`,
//! of `.min` and `.max`, of `vmad` and of masks is something else.

use crate::ptx::instruction::Instruction;
use crate::ptx::operand::{Operand, Slot};
use crate::ptx::program::Operation;
use crate::ptx::types::{Type, low_bits, sign_extend};

/// Part of a register.
#[derive(Clone, Copy, Debug)]
struct Part {
    shift: u32,
    bits: u32,
}

const WHOLE: Part = Part { shift: 0, bits: 32 };

impl Part {
    fn read(self, register: u64, signed: bool) -> i64 {
        let bits = register >> self.shift & low_bits(self.bits);
        if signed { sign_extend(bits, self.bits) } else { bits as i64 }
    }

    /// A number clamped to what the part holds.
    fn clamp(self, value: i64, signed: bool) -> i64 {
        let all = low_bits(self.bits) as i64;
        if signed { value.clamp(-(all / 2) - 1, all / 2) } else { value.clamp(0, all) }
    }

    /// A register with the part replaced.
    fn write(self, register: u64, value: i64) -> u64 {
        let mask = low_bits(self.bits) << self.shift;
        register & !mask | (value as u64) << self.shift & mask
    }
}

/// A selector of one byte or half.
fn part(text: &str) -> Result<Part, String> {
    let number = text.get(1..).and_then(|n| n.parse::<u32>().ok()).unwrap_or(0);
    match text.as_bytes().first() {
        None => Ok(WHOLE),
        Some(b'b') if number < 4 => Ok(Part { shift: 8 * number, bits: 8 }),
        Some(b'h') if number < 2 => Ok(Part { shift: 16 * number, bits: 16 }),
        Some(_) => Err(format!("`.{text}` selects nothing")),
    }
}

/// A source: slot, sign and selector.
fn source(i: &mut Instruction<'_>, index: usize) -> Result<(Slot, bool, String), String> {
    match i.operand(index)?.clone() {
        Operand::Selected(register, minus, selector) => Ok((register.slot, minus, selector)),
        _ => Ok((i.source(index, Type::bits_of(32))?, false, String::new())),
    }
}

/// The destination and its selector.
fn destination(i: &Instruction<'_>) -> Result<(Slot, String), String> {
    match i.operand(0)? {
        Operand::Selected(register, _, selector) => Ok((register.slot, selector.clone())),
        _ => Ok((i.dest(0)?.slot, String::new())),
    }
}

/// What an instruction computes of two numbers.
type Compute = fn(i64, i64) -> i64;

/// The computation that a head and a comparison name.
fn compute(head: &str, i: &Instruction<'_>) -> Option<Compute> {
    Some(match head {
        "vadd" => |x, y| x + y,
        "vsub" => |x, y| x - y,
        "vabsdiff" => |x, y| (x - y).abs(),
        "vmin" => |x, y| x.min(y),
        "vmax" => |x, y| x.max(y),
        // Halves are rounded away from zero.
        "vavrg" => |x, y| (x + y + i64::from(x + y >= 0)) >> 1,
        "vset" => match i.any(&["eq", "ne", "lt", "le", "gt", "ge"])? {
            "eq" => |x, y| i64::from(x == y),
            "ne" => |x, y| i64::from(x != y),
            "lt" => |x, y| i64::from(x < y),
            "le" => |x, y| i64::from(x <= y),
            "gt" => |x, y| i64::from(x > y),
            _ => |x, y| i64::from(x >= y),
        },
        _ => return None,
    })
}

/// Signs of the types that a mnemonic names, in their order.
fn signs(i: &Instruction<'_>) -> Vec<bool> {
    i.types().iter().map(|ty| ty.is_signed()).collect()
}

/// Decodes the family.
pub fn decode(i: &mut Instruction<'_>) -> Result<Option<Operation>, String> {
    let head = i.head();
    match head {
        "vmad" => multiply(i).map(Some),
        "vshl" | "vshr" => {
            let wraps = i.has("wrap");
            let amount = move |y: i64| if wraps { y & 31 } else { y.min(32) };
            let left = head == "vshl";
            // Nothing stays of a number moved by 32 but that it is too large.
            let far = |x: i64| x.signum() << 62;
            let up = move |x: i64, by: i64| if by == 32 { far(x) } else { x << by };
            scalar(i, move |x, y| if left { up(x, amount(y)) } else { x >> amount(y) }).map(Some)
        }
        _ => {
            let lanes = if head.ends_with('2') {
                2
            } else if head.ends_with('4') {
                4
            } else {
                1
            };
            let Some(compute) = compute(head.trim_end_matches(['2', '4']), i) else { return Ok(None) };
            if lanes == 1 { scalar(i, compute).map(Some) } else { packed(i, lanes, compute).map(Some) }
        }
    }
}

/// One number (PTX ISA 9.7.20.1).
fn scalar(
    i: &mut Instruction<'_>,
    compute: impl Fn(i64, i64) -> i64 + Send + Sync + 'static,
) -> Result<Operation, String> {
    let signs = signs(i);
    let (d_signed, a_signed, b_signed) = match signs[..] {
        [d, a, b] => (d, a, b),
        // A comparison gives 0 or 1, which are then what its first operand is.
        [a, b] => (a, a, b),
        _ => return Err("the types are missing".to_string()),
    };
    let (d, into) = destination(i)?;
    let ((a, _, a_part), (b, _, b_part)) = (source(i, 1)?, source(i, 2)?);
    let (into_part, a_part, b_part) = (part(&into)?, part(&a_part)?, part(&b_part)?);
    let c = if i.operands.len() > 3 { Some(i.source(3, Type::bits_of(32))?) } else { None };
    let (sat, second) = (i.has("sat"), i.any(&["add", "min", "max"]));
    Ok(Operation::compute(move |at| {
        at.each(d, |at, lane| {
            let value = compute(a_part.read(at.lane(a, lane), a_signed), b_part.read(at.lane(b, lane), b_signed));
            let value = if sat { into_part.clamp(value, d_signed) } else { value };
            let Some(c) = c else { return value as u64 & low_bits(32) };
            let third = at.lane(c, lane);
            let number = |bits: u64| WHOLE.read(bits & low_bits(32), d_signed);
            let result = match second {
                None => return into_part.write(third, value) & low_bits(32),
                Some("add") => value.wrapping_add(number(third)),
                Some("min") => number(value as u64).min(number(third)),
                Some(_) => number(value as u64).max(number(third)),
            };
            result as u64 & low_bits(32)
        });
    }))
}

/// `vmad` (PTX ISA 9.7.20.1.3).
fn multiply(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let signs = signs(i);
    let [_, a_signed, b_signed] = signs[..] else { return Err("the types are missing".to_string()) };
    let (d, _) = destination(i)?;
    let ((a, a_minus, a_part), (b, b_minus, b_part), (c, c_minus, _)) = (source(i, 1)?, source(i, 2)?, source(i, 3)?);
    let (a_part, b_part) = (part(&a_part)?, part(&b_part)?);
    let (product_minus, one_more) = (a_minus != b_minus, i.has("po"));
    let signed = a_signed || b_signed || product_minus || c_minus;
    let shift = match i.any(&["shr7", "shr15"]) {
        Some("shr7") => 7,
        Some(_) => 15,
        None => 0,
    };
    let sat = i.has("sat");
    Ok(Operation::compute(move |at| {
        at.each(d, |at, lane| {
            let x = i128::from(a_part.read(at.lane(a, lane), a_signed));
            let product = x * i128::from(b_part.read(at.lane(b, lane), b_signed));
            let product = if product_minus { -product } else { product };
            let third = i128::from(WHOLE.read(at.lane(c, lane), signed));
            let third = if c_minus { -third } else { third };
            let sum = (product + third + i128::from(one_more)) >> shift;
            let sum = sum.clamp(i64::MIN.into(), i64::MAX.into());
            (if sat { WHOLE.clamp(sum as i64, signed) } else { sum as i64 }) as u64 & low_bits(32)
        });
    }))
}

/// Which of the elements of two registers each element of the result takes, the lowest first.
fn choice(selector: &str, lanes: usize, second: bool) -> Vec<usize> {
    if selector.is_empty() {
        return (0..lanes).map(|lane| lane + if second { lanes } else { 0 }).collect();
    }
    selector.bytes().skip(1).rev().map(|digit| usize::from(digit.wrapping_sub(b'0')) % (2 * lanes)).collect()
}

/// Two halves or four bytes (PTX ISA 9.7.20.2).
fn packed(i: &mut Instruction<'_>, lanes: usize, compute: Compute) -> Result<Operation, String> {
    let signs = signs(i);
    let (d_signed, a_signed, b_signed) = match signs[..] {
        [d, a, b] => (d, a, b),
        [a, b] => (false, a, b),
        _ => return Err("the types are missing".to_string()),
    };
    let (d, mask) = destination(i)?;
    let ((a, _, a_choice), (b, _, b_choice)) = (source(i, 1)?, source(i, 2)?);
    let (a_choice, b_choice) = (choice(&a_choice, lanes, false), choice(&b_choice, lanes, true));
    let c = i.source(3, Type::bits_of(32))?;
    let written = choice(&mask, lanes, false);
    let (sat, sums) = (i.has("sat"), i.has("add"));
    let bits = 32 / lanes as u32;
    let of = move |lane: usize| Part { shift: bits * (lane % lanes) as u32, bits };
    Ok(Operation::compute(move |at| {
        at.each(d, |at, lane| {
            let registers = [at.lane(a, lane), at.lane(b, lane)];
            let read = |index: usize, signed: bool| of(index).read(registers[index / lanes % 2], signed);
            let mut result = at.lane(c, lane);
            for (element, (x, y)) in a_choice.iter().zip(&b_choice).enumerate() {
                if !written.contains(&element) {
                    continue;
                }
                let value = compute(read(*x, a_signed), read(*y, b_signed));
                let value = if sat { of(element).clamp(value, d_signed) } else { value };
                result = if sums { result.wrapping_add(value as u64) } else { of(element).write(result, value) };
            }
            result & low_bits(32)
        });
    }))
}
