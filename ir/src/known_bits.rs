//! Bits of integers that are the same in every execution.
//!
//! What is known holds where the value is not poison; whoever replaces a value by what is known of it refines it. Only
//! scalars of up to 64 bits are looked at. Facts come from the defining instruction alone, so one walk in an order in
//! which definitions come before uses (reverse postorder) finds them; of block parameters and loaded values nothing is
//! known.

use cranelift_entity::SecondaryMap;

use crate::{Extra, Flags, FuncAttrs, Function, Inst, Opcode, Scalar, Type, Value};

/// Known bits of a value; those above its width are known to be zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bits {
    /// Bits that are zero.
    pub zeros: u64,
    /// Bits that are one.
    pub ones: u64,
}

impl Default for Bits {
    fn default() -> Bits {
        Bits::UNKNOWN
    }
}

/// All ones in the low `width` bits.
fn mask(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

impl Bits {
    /// Nothing known.
    pub const UNKNOWN: Bits = Bits { zeros: 0, ones: 0 };

    /// Nothing known of a value of this width.
    pub fn of_width(width: u32) -> Bits {
        Bits { zeros: !mask(width), ones: 0 }
    }

    /// One number.
    pub fn constant(bits: u64) -> Bits {
        Bits { zeros: !bits, ones: bits }
    }

    /// A number of at most `most`.
    pub fn at_most(most: u64) -> Bits {
        Bits { zeros: !mask(64 - most.leading_zeros()), ones: 0 }
    }

    /// The least unsigned number it can be.
    pub fn least(self) -> u64 {
        self.ones
    }

    /// The largest unsigned number it can be.
    pub fn most(self) -> u64 {
        !self.zeros
    }

    /// The only number it can be.
    pub fn value(self) -> Option<u64> {
        (self.zeros ^ self.ones == u64::MAX).then_some(self.ones)
    }

    /// Trailing bits known to be zero.
    pub fn trailing_zeros(self) -> u32 {
        self.zeros.trailing_ones()
    }

    /// What holds of either of two.
    fn join(self, other: Bits) -> Bits {
        Bits { zeros: self.zeros & other.zeros, ones: self.ones & other.ones }
    }

    /// With bits above the width cleared.
    fn truncated(self, width: u32) -> Bits {
        Bits { zeros: self.zeros | !mask(width), ones: self.ones & mask(width) }
    }

    fn sign_extended(self, from: u32, to: u32) -> Bits {
        let (sign, upper) = (1u64 << (from - 1), mask(to) & !mask(from));
        let mut out = self.truncated(from);
        out.zeros &= !upper;
        if self.ones & sign != 0 {
            out.ones |= upper;
        } else if self.zeros & sign != 0 {
            out.zeros |= upper;
        }
        out
    }

    /// Sum with a carry in that is known. Bits are known up to where both operands and all carries are.
    fn sum(self, other: Bits, carry: u64) -> Bits {
        // The extremes of the sum agree in a bit when the carries into it agree.
        let least = self.ones.wrapping_add(other.ones).wrapping_add(carry);
        let most = (!self.zeros).wrapping_add(!other.zeros).wrapping_add(carry);
        let carries_zero = !(most ^ !self.zeros ^ !other.zeros);
        let carries_one = least ^ self.ones ^ other.ones;
        let known = (self.zeros | self.ones) & (other.zeros | other.ones) & (carries_zero | carries_one);
        Bits { zeros: !most & known, ones: least & known }
    }
}

/// Known bits of the values of a function.
pub struct KnownBits {
    bits: SecondaryMap<Value, Bits>,
}

impl KnownBits {
    /// Nothing known yet.
    pub fn new(func: &Function) -> KnownBits {
        KnownBits { bits: SecondaryMap::with_capacity(func.dfg.num_values()) }
    }

    /// What is known of a value; nothing for vectors, floats, and integers of more than 64 bits.
    pub fn of(&self, func: &Function, value: Value) -> Bits {
        let value = func.dfg.resolve(value);
        let Some(width) = int_width(func.dfg.ty(value)) else { return Bits::UNKNOWN };
        match func.dfg.as_bits(value) {
            Some(bits) => Bits::constant(bits as u64 & mask(width)),
            None if self.bits[value] == Bits::UNKNOWN => Bits::of_width(width),
            None => self.bits[value],
        }
    }

    /// The sign bit of a value is known to be zero.
    pub fn is_not_negative(&self, func: &Function, value: Value) -> bool {
        int_width(func.dfg.ty(value)).is_some_and(|width| self.of(func, value).zeros >> (width - 1) & 1 == 1)
    }

    /// Finds what is known of the first result of an instruction, and keeps it. Its operands have to have been visited.
    pub fn visit(&mut self, func: &Function, inst: Inst) -> Bits {
        let Some(result) = func.dfg.first_result(inst) else { return Bits::UNKNOWN };
        let Some(width) = int_width(func.dfg.ty(result)) else { return Bits::UNKNOWN };
        let found = self.transfer(func, inst, width).truncated(width);
        // Operands that exclude each other make poison, of which anything may be said, but not two things.
        let found = if found.zeros & found.ones == 0 { found } else { Bits::of_width(width) };
        self.bits[result] = found;
        found
    }

    fn transfer(&self, func: &Function, inst: Inst, width: u32) -> Bits {
        use Opcode::*;
        let data = &func.dfg.insts[inst];
        let args = func.dfg.args(inst);
        let unknown = Bits::of_width(width);
        let of = |index: usize| args.get(index).map_or(Bits::UNKNOWN, |v| self.of(func, *v));
        let (a, b) = (of(0), of(1));
        match data.op {
            And => Bits { zeros: a.zeros | b.zeros, ones: a.ones & b.ones },
            Or => Bits { zeros: a.zeros & b.zeros, ones: a.ones | b.ones },
            Xor => Bits { zeros: a.zeros & b.zeros | a.ones & b.ones, ones: a.zeros & b.ones | a.ones & b.zeros },
            Add => a.sum(b, 0),
            // a - b = a + ~b + 1.
            Sub => a.sum(Bits { zeros: b.ones, ones: b.zeros }, 1),
            Mul => product(a, b),
            Shl | Lshr | Ashr => match b.value().filter(|n| *n < u64::from(width)) {
                Some(by) => shifted(data.op, a, by as u32, width),
                None => unknown,
            },
            Fshl | Fshr => match of(2).value() {
                Some(by) => funnel(data.op, a, b, (by % u64::from(width)) as u32, width),
                None => unknown,
            },
            Udiv if b.least() > 0 => Bits::at_most(a.most() / b.least()),
            Urem if b.most() > 0 => Bits::at_most((b.most() - 1).min(a.most())),
            Umin => Bits::at_most(a.most().min(b.most())),
            Umax => Bits::at_most(a.most().max(b.most())),
            Abs if data.flags.contains(Flags::NSW) => Bits::at_most(mask(width - 1)),
            Ctpop | Ctlz | Cttz => Bits::at_most(u64::from(width)),
            Zext => a,
            Trunc => a,
            Sext => match args.first().and_then(|v| int_width(func.dfg.ty(*v))) {
                Some(from) => a.sign_extended(from, width),
                None => unknown,
            },
            Select => b.join(of(2)),
            Sreg => match data.extra {
                Extra::Sreg(register) => register_bits(register.name(), &func.attrs).unwrap_or(unknown),
                _ => unknown,
            },
            Uitofp | Sitofp => unknown,
            _ => unknown,
        }
    }
}

/// The width of a scalar integer of up to 64 bits.
fn int_width(ty: Type) -> Option<u32> {
    match ty.kind()? {
        Scalar::Int(width) if width <= 64 && !ty.is_vector() => Some(width),
        _ => None,
    }
}

/// Trailing zeros add up; leading ones follow from the largest product, when it fits 64 bits.
fn product(a: Bits, b: Bits) -> Bits {
    let low = mask((a.trailing_zeros() + b.trailing_zeros()).min(64));
    let high = a.most().checked_mul(b.most()).map_or(0, |most| Bits::at_most(most).zeros);
    Bits { zeros: low | high, ones: 0 }
}

fn shifted(op: Opcode, a: Bits, by: u32, width: u32) -> Bits {
    match op {
        Opcode::Shl => Bits { zeros: a.zeros << by | mask(by), ones: a.ones << by },
        Opcode::Lshr => Bits { zeros: a.zeros >> by | !(u64::MAX >> by), ones: a.ones >> by },
        _ => {
            let wide = a.sign_extended(width, 64);
            Bits { zeros: (wide.zeros as i64 >> by) as u64, ones: (wide.ones as i64 >> by) as u64 }
        }
    }
}

/// A pair shifted by an amount below the width.
fn funnel(op: Opcode, a: Bits, b: Bits, by: u32, width: u32) -> Bits {
    let left = match (op, by) {
        (Opcode::Fshl, 0) => return a,
        (_, 0) => return b,
        (Opcode::Fshl, _) => by,
        _ => width - by,
    };
    let (a, b) = (shifted(Opcode::Shl, a, left, width), shifted(Opcode::Lshr, b, width - left, width));
    Bits { zeros: a.zeros & b.zeros, ones: a.ones | b.ones }
}

/// Ranges of special registers (PTX ISA, chapter 10), narrowed by the block size that the function promises.
fn register_bits(name: &str, attrs: &FuncAttrs) -> Option<Bits> {
    let axis = |name: &str| match name.as_bytes().last()? {
        b'x' => Some(0),
        b'y' => Some(1),
        b'z' => Some(2),
        _ => None,
    };
    // Of the largest block only the product of the three numbers is promised: 256, 1, 1 lets blocks of 16 by 16 through.
    let limit = |axis: usize| {
        let general = [1024, 1024, 64][axis];
        let promised = match (attrs.reqntid, attrs.maxntid) {
            (Some(exact), _) => exact[axis],
            (None, Some(most)) => most.iter().copied().fold(1, u32::saturating_mul),
            (None, None) => general,
        };
        general.min(promised.max(1))
    };
    let most = match name {
        "%tid.x" | "%tid.y" | "%tid.z" => limit(axis(name)?) - 1,
        "%ntid.x" | "%ntid.y" | "%ntid.z" => match attrs.reqntid {
            Some(exact) => return Some(Bits::constant(u64::from(exact[axis(name)?]))),
            None => limit(axis(name)?),
        },
        "%laneid" => 31,
        "%ctaid.x" | "%nctaid.x" => i32::MAX as u32,
        "%ctaid.y" | "%ctaid.z" | "%nctaid.y" | "%nctaid.z" => 65535,
        _ => return None,
    };
    Some(Bits::at_most(u64::from(most)))
}

/// Flags that the operand's known bits make true, for operations that have such a flag.
pub fn provable_flags(op: Opcode, a: Bits, b: Bits, width: u32) -> Flags {
    let sign = 1u64 << (width - 1);
    match op {
        Opcode::Or if a.most() & b.most() == 0 => Flags::DISJOINT,
        Opcode::Zext | Opcode::Uitofp if a.zeros & sign != 0 => Flags::NNEG,
        _ => Flags::EMPTY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every pair of facts of four bits: what is said of a sum holds of all sums.
    #[test]
    fn sums_of_four_bits() {
        let facts: Vec<Bits> = (0..16u64)
            .flat_map(|zeros| (0..16u64).filter(move |ones| zeros & ones == 0).map(move |ones| (zeros, ones)))
            .map(|(zeros, ones)| Bits { zeros: zeros | !15, ones })
            .collect();
        let holds = |fact: Bits, n: u64| n & fact.zeros == 0 && n & fact.ones == fact.ones;
        for a in &facts {
            for b in &facts {
                let sum = a.sum(*b, 0).truncated(4);
                let difference = a.sum(Bits { zeros: b.ones, ones: b.zeros }, 1).truncated(4);
                let multiple = product(*a, *b).truncated(4);
                for x in (0..16).filter(|x| holds(*a, *x)) {
                    for y in (0..16).filter(|y| holds(*b, *y)) {
                        assert!(holds(sum, (x + y) & 15), "{a:?} + {b:?} = {sum:?}");
                        assert!(holds(difference, x.wrapping_sub(y) & 15), "{a:?} - {b:?} = {difference:?}");
                        assert!(holds(multiple, (x * y) & 15), "{a:?} * {b:?} = {multiple:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn shifts_and_extensions() {
        let a = Bits { zeros: !0xff, ones: 0x80 };
        assert_eq!(a.sign_extended(8, 16).ones, 0xff80);
        assert_eq!(shifted(Opcode::Ashr, a, 4, 8).truncated(8).ones, 0xf8);
        assert_eq!(shifted(Opcode::Lshr, a, 4, 8).ones, 0x08);
        assert_eq!(shifted(Opcode::Shl, a, 4, 16).zeros & 15, 15);
    }
}
