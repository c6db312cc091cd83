//! Register classes and the scalar types that declarations spell.

use ptxc_targets::RegType;

/// What a register holds. PTX lets every instruction of a given width use a `.bN` register of that width, so the
/// width alone is the class (PTX ISA, 9.7 "operand type checking").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RegClass {
    /// A predicate, `.pred`.
    Pred,
    /// 8 bits: only for operands of target operations that take nothing wider (`cvt.rn.satfinite.e2m1x2.f32`). PTX
    /// has no arithmetic on `.b8` registers, so all other values of eight bits live in 16.
    B8,
    /// 16 bits.
    B16,
    /// 32 bits.
    B32,
    /// 64 bits.
    B64,
    /// 128 bits (PTX 8.3, sm_70).
    B128,
}

impl RegClass {
    /// All classes, in declaration order.
    pub const ALL: [RegClass; 6] =
        [RegClass::Pred, RegClass::B8, RegClass::B16, RegClass::B32, RegClass::B64, RegClass::B128];

    /// Width in bits; 1 for a predicate.
    pub const fn bits(self) -> u32 {
        match self {
            RegClass::Pred => 1,
            RegClass::B8 => 8,
            RegClass::B16 => 16,
            RegClass::B32 => 32,
            RegClass::B64 => 64,
            RegClass::B128 => 128,
        }
    }

    /// The class that holds a value of `bits` bits: `None` above 128. One bit is a predicate, eight bits take B16.
    pub const fn for_bits(bits: u32) -> Option<RegClass> {
        match bits {
            1 => Some(RegClass::Pred),
            2..=16 => Some(RegClass::B16),
            17..=32 => Some(RegClass::B32),
            33..=64 => Some(RegClass::B64),
            65..=128 => Some(RegClass::B128),
            _ => None,
        }
    }

    /// The class of a register that a value of this type is loaded into. Opaque references are 64-bit handles.
    pub fn of(ty: RegType) -> RegClass {
        match ty {
            RegType::Pred => RegClass::Pred,
            _ if ty.bits() == 0 => RegClass::B64,
            _ => RegClass::for_bits(u32::from(ty.bits()).max(2)).unwrap_or(RegClass::B128),
        }
    }

    /// The prefix of register names, with the percent sign.
    pub const fn prefix(self) -> &'static str {
        match self {
            RegClass::Pred => "%p",
            RegClass::B8 => "%rb",
            RegClass::B16 => "%rs",
            RegClass::B32 => "%r",
            RegClass::B64 => "%rd",
            RegClass::B128 => "%rq",
        }
    }

    /// The type in the register declaration.
    pub const fn ptx_type(self) -> RegType {
        match self {
            RegClass::Pred => RegType::Pred,
            RegClass::B8 => RegType::B8,
            RegClass::B16 => RegType::B16,
            RegClass::B32 => RegType::B32,
            RegClass::B64 => RegType::B64,
            RegClass::B128 => RegType::B128,
        }
    }
}

/// The untyped (`.bN`) type of `bytes` bytes, a power of two up to 16.
pub const fn untyped(bytes: u32) -> Option<RegType> {
    match bytes {
        1 => Some(RegType::B8),
        2 => Some(RegType::B16),
        4 => Some(RegType::B32),
        8 => Some(RegType::B64),
        16 => Some(RegType::B128),
        _ => None,
    }
}
