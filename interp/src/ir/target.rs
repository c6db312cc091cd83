//! The target operations that legalization writes, on plain register operands: carry chains (PTX ISA 9.7.2), `prmt`
//! (9.7.8.7) and conversions of floats to integers (9.7.9.22). All others are refused.

use ptxc_ir::instruction::{TargetOp, TargetOperand};
use ptxc_ir::{FloatKind, Rounding};

use super::access::all_lanes;
use super::compute::At;
use super::element::round;
use super::integer::mask;
use super::program::LANES;
use crate::float;
use crate::machine::{Identity, Stop, lanes};

/// What a target operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// `add`, `addc`, `sub`, `subc`.
    Sum {
        /// Subtracts.
        subtract: bool,
        /// Takes the carry.
        takes: bool,
        /// Leaves a carry.
        leaves: bool,
        /// Bits.
        width: u32,
    },
    /// `prmt.b32` in its default mode.
    Permute,
    /// `cvt` to an integer, saturating.
    ToInteger {
        /// Rounding.
        rounding: Rounding,
        /// Signed result.
        signed: bool,
        /// Bits of the result.
        width: u32,
        /// Source.
        from: FloatKind,
    },
}

fn integer(text: &str) -> Option<(bool, u32)> {
    let signed = text.starts_with('s');
    let width: u32 = text.strip_prefix(['s', 'u'])?.parse().ok()?;
    matches!(width, 8 | 16 | 32 | 64).then_some((signed, width))
}

/// The operation of a mnemonic, if it is one of these.
fn parse(pieces: &[&str]) -> Option<Operation> {
    match *pieces {
        [op @ ("add" | "addc" | "sub" | "subc"), ref rest @ ..] => {
            let (leaves, ty) = match *rest {
                ["cc", ty] => (true, ty),
                [ty] => (false, ty),
                _ => return None,
            };
            let (_, width) = integer(ty).filter(|(_, width)| *width >= 32)?;
            Some(Operation::Sum { subtract: op.starts_with("sub"), takes: op.ends_with("c"), leaves, width })
        }
        ["prmt", "b32"] => Some(Operation::Permute),
        ["cvt", rounding, to, from] => {
            let (signed, width) = integer(to)?;
            let rounding = match rounding {
                "rni" => Rounding::Nearest,
                "rzi" => Rounding::Zero,
                "rmi" => Rounding::Down,
                "rpi" => Rounding::Up,
                _ => return None,
            };
            let from = match from {
                "f16" => FloatKind::F16,
                "f32" => FloatKind::F32,
                "f64" => FloatKind::F64,
                _ => return None,
            };
            Some(Operation::ToInteger { rounding, signed, width, from })
        }
        _ => None,
    }
}

/// What a target operation is here, or its mnemonic where it is refused.
pub fn operation(op: &TargetOp) -> Result<Operation, String> {
    let TargetOp::Known { toks, guard, operands } = op else { return Err("inline assembly".to_string()) };
    let pieces: Vec<&str> = toks.iter().map(|t| t.text()).collect();
    let plain = |(index, operand): (usize, &TargetOperand)| match index {
        0 => *operand == TargetOperand::Result(0),
        _ => *operand == TargetOperand::Arg(index as u16 - 1),
    };
    let found = parse(&pieces).filter(|_| guard.is_none() && operands.iter().enumerate().all(plain));
    found.ok_or_else(|| format!("`ptx.{}`", pieces.join(".")))
}

/// Bytes of `b:a` that the selector names; its highest bit of four repeats the byte's sign.
fn permute(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = u64::from(b) << 32 | u64::from(a);
    (0..4).fold(0, |result, i| {
        let choice = selector >> (4 * i) & 15;
        let byte = (bytes >> (8 * (choice & 7))) as u8;
        let byte = if choice & 8 == 0 { byte } else { (byte as i8 >> 7) as u8 };
        result | u32::from(byte) << (8 * i)
    })
}

/// Executes one. Poison operands are poison results, and leave the carry as it was.
pub fn execute(op: Operation, at: &mut At<'_>, who: &mut Identity) -> Result<(), Stop> {
    let out = at.result(0)?;
    let mut operands = [[0u64; LANES]; 3];
    let mut poison = 0;
    for (arg, to) in at.step.args.iter().zip(&mut operands) {
        let (values, p) = at.frame.slot(at.code, arg.slot);
        *to = *values;
        poison |= p;
    }
    if matches!(op, Operation::Sum { leaves: true, .. }) {
        for index in 0..at.step.args.len() {
            all_lanes(at, at.arg(index)?, "an operand of a carry chain")?;
        }
    }
    let [a, b, c] = operands;
    let mut result = [0; LANES];
    for lane in lanes(at.mask) {
        result[lane] = match op {
            Operation::Sum { subtract, takes, leaves, width } => {
                let all = mask(width);
                let carry = u128::from(takes && who.carry >> lane & 1 != 0);
                let (x, y) = (u128::from(a[lane]) & all, u128::from(b[lane]) & all);
                // A borrow is the carry of the difference.
                let sum = if subtract { x.wrapping_sub(y).wrapping_sub(carry) } else { x + y + carry };
                if leaves {
                    who.carry = (who.carry & !(1 << lane)) | u32::from(sum > all) << lane;
                }
                (sum & all) as u64
            }
            Operation::Permute => permute(a[lane] as u32, b[lane] as u32, c[lane] as u32).into(),
            Operation::ToInteger { rounding, signed, width, from } => {
                let wide = width == 64 || from == FloatKind::F64;
                if wide && float::is_nan(from, a[lane]) {
                    1 << (width - 1)
                } else {
                    float::to_int_converted(from, a[lane], width, signed, round(rounding), false) as u64
                }
            }
        };
    }
    at.frame.set(out.slot, &result, poison, at.mask);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mnemonics() {
        let sum = |subtract, takes, leaves, width| Some(Operation::Sum { subtract, takes, leaves, width });
        assert_eq!(parse(&["add", "cc", "u64"]), sum(false, false, true, 64));
        assert_eq!(parse(&["subc", "s32"]), sum(true, true, false, 32));
        assert_eq!(parse(&["add", "f32"]), None);
        assert_eq!(parse(&["addc", "u16"]), None);
        assert_eq!(parse(&["cvt", "rni", "s32", "bf16"]), None);
    }

    #[test]
    fn bytes_are_permuted() {
        assert_eq!(permute(0x3322_1100, 0x7766_5544, 0x3210), 0x3322_1100);
        assert_eq!(permute(0x3322_1100, 0x7766_5544, 0x0167), 0x0011_6677);
        assert_eq!(permute(0x8022_1100, 0x7766_5544, 0x3bb8), 0x80ff_ff00);
    }
}
