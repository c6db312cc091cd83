//! Extended-precision integer arithmetic: the carry of each lane (PTX ISA 9.7.2).

use crate::ptx::instruction::Instruction;
use crate::ptx::operand::Slot;
use crate::ptx::program::Operation;
use crate::ptx::types::{Type, sign_extend};

/// Decodes what takes or leaves a carry.
pub fn decode(i: &mut Instruction<'_>) -> Result<Option<Operation>, String> {
    let takes = matches!(i.head(), "addc" | "subc" | "madc");
    let leaves = i.has("cc");
    if !takes && !leaves {
        return Ok(None);
    }
    let ty = i.ty()?;
    let d = i.dest(0)?.slot;
    let (a, b) = (i.source(1, ty)?, i.source(2, ty)?);
    let subtracts = i.head().starts_with("sub");
    let product = match i.head() {
        "mad" | "madc" => Some((i.source(3, ty)?, i.has("hi"))),
        _ => None,
    };
    let all = u128::from(ty.mask());
    Ok(Some(Operation::compute(move |at| {
        for lane in at.lanes() {
            let carry = u128::from(takes && at.who.carry >> lane & 1 != 0);
            let (x, y) = match product {
                Some((c, high)) => {
                    let read = |slot: Slot| at.lane(slot, lane);
                    (u128::from(multiply(ty, read(a), read(b), high)), u128::from(read(c)))
                }
                None => (u128::from(at.lane(a, lane)), u128::from(at.lane(b, lane))),
            };
            // A difference is a sum with the complement, and its carry says that there was no borrow: so the hardware
            // has it, which shows where `addc` follows on `sub.cc`.
            let carry = if subtracts && !takes { 1 } else { carry };
            let sum = if subtracts { x + (!y & all) + carry } else { x + y + carry };
            if leaves {
                at.who.carry = (at.who.carry & !(1 << lane)) | u32::from(sum > all) << lane;
            }
            at.put(d, lane, (sum & all) as u64);
        }
    })))
}

/// One half of a product.
fn multiply(ty: Type, a: u64, b: u64, high: bool) -> u64 {
    let product = if ty.is_signed() {
        (i128::from(sign_extend(a, ty.element)) * i128::from(sign_extend(b, ty.element))) as u128
    } else {
        u128::from(a) * u128::from(b)
    };
    (if high { product >> ty.element } else { product }) as u64 & ty.mask()
}
