//! Mnemonics as rules name them: a quoted base with typed suffixes, in one `u64`.
//!
//! A mnemonic becomes an opcode of the module's table at most once per function; after that it is one hash lookup of
//! an integer. Pieces are put in the order base, rounding, `ftz`, `NaN`, saturation, `relu`, types; the opcode table
//! brings them into the specification's order where an instruction has another.

use ptxc_ir::{Flags, FloatKind, Rounding, Scalar, Type};
use ptxc_mir::RegClass;
use ptxc_targets::{Tok, tok};
use smallvec::SmallVec;

/// A PTX mnemonic: a base with modifiers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mnemonic(u64);

/// How the register written by a mnemonic follows from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultRule {
    /// Always this class.
    Class(RegClass),
    /// The class of the first type suffix.
    Suffix,
}

macro_rules! suffixes {
    ($($name:ident $tok:ident $class:ident;)*) => {
        /// A type suffix of a mnemonic.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        #[allow(missing_docs, dead_code)]
        pub enum Suffix { None, $($name,)* }

        const SUFFIXES: &[(Option<Tok>, RegClass)] = &[
            (None, RegClass::B32),
            $((Some(tok::$tok), RegClass::$class),)*
        ];
    };
}

suffixes! {
    Pred PRED Pred;
    B16 B16 B16; B32 B32 B32; B64 B64 B64; B128 B128 B128;
    S8 S8 B16; U8 U8 B16;
    U16 U16 B16; U32 U32 B32; U64 U64 B64;
    S16 S16 B16; S32 S32 B32; S64 S64 B64;
    F16 F16 B16; Bf16 BF16 B16; F16x2 F16X2 B32; Bf16x2 BF16X2 B32;
    F32 F32 B32; F64 F64 B64; F32x2 F32X2 B64; Tf32 TF32 B32;
    E4m3x2 E4M3X2 B16; E5m2x2 E5M2X2 B16; E2m3x2 E2M3X2 B16; E3m2x2 E3M2X2 B16; E2m1x2 E2M1X2 B16; Ue8m0x2 UE8M0X2 B16;
}

/// Rounding and approximation modifiers.
const ROUNDINGS: &[Option<Tok>] = &[
    None,
    Some(tok::RN),
    Some(tok::RZ),
    Some(tok::RM),
    Some(tok::RP),
    Some(tok::RNI),
    Some(tok::RZI),
    Some(tok::RMI),
    Some(tok::RPI),
    Some(tok::APPROX),
];

const ROUND_SHIFT: u32 = 16;
const FTZ: u64 = 1 << 24;
const NAN: u64 = 1 << 25;
const SAT: u64 = 1 << 26;
const RELU: u64 = 1 << 27;
const SATFINITE: u64 = 1 << 28;
const AND_WITH: u64 = 1 << 29;
const OR_WITH: u64 = 1 << 30;
const XOR_SIGN: u64 = 1 << 31;
const TYPE1_SHIFT: u32 = 32;
const TYPE2_SHIFT: u32 = 40;

impl Mnemonic {
    /// The base of this index in [`bases::BASES`].
    pub const fn base(index: u16) -> Mnemonic {
        Mnemonic(index as u64)
    }

    /// With a type suffix: the first, then the second.
    pub fn ty(self, suffix: Suffix) -> Mnemonic {
        let shift = if (self.0 >> TYPE1_SHIFT) & 0xff == 0 { TYPE1_SHIFT } else { TYPE2_SHIFT };
        Mnemonic(self.0 | (suffix as u64) << shift)
    }

    fn round(self, index: u64) -> Mnemonic {
        Mnemonic(self.0 & !(0xff << ROUND_SHIFT) | index << ROUND_SHIFT)
    }

    /// With a float rounding (`rn rz rm rp`).
    pub fn rounding(self, rounding: Rounding) -> Mnemonic {
        self.round(1 + rounding_index(rounding))
    }

    /// With an integer rounding (`rni rzi rmi rpi`).
    pub fn int_rounding(self, rounding: Rounding) -> Mnemonic {
        self.round(5 + rounding_index(rounding))
    }

    /// With `approx`.
    pub fn approx(self) -> Mnemonic {
        self.round(9)
    }

    /// With `ftz` when the flags ask for it and the type has it.
    pub fn ftz(self, flags: Flags, ty: Type) -> Mnemonic {
        let has = matches!(ty.float_kind(), Some(FloatKind::F32 | FloatKind::F16));
        if has && flags.contains(Flags::FTZ) { Mnemonic(self.0 | FTZ) } else { self }
    }

    /// With `NaN`: NaN operands win.
    pub fn nan(self) -> Mnemonic {
        Mnemonic(self.0 | NAN)
    }

    /// With `xorsign.abs`: of magnitudes, with the product of the signs.
    pub fn xor_sign(self) -> Mnemonic {
        Mnemonic(self.0 | XOR_SIGN)
    }

    /// With `satfinite`.
    pub fn satfinite(self) -> Mnemonic {
        Mnemonic(self.0 | SATFINITE)
    }

    /// A comparison whose result is combined with a third operand by `and`.
    pub fn and_with(self) -> Mnemonic {
        Mnemonic(self.0 | AND_WITH)
    }

    /// A comparison whose result is combined with a third operand by `or`.
    pub fn or_with(self) -> Mnemonic {
        Mnemonic(self.0 | OR_WITH)
    }

    /// With `sat` and `relu` as the flags say.
    pub fn clamps(self, flags: Flags) -> Mnemonic {
        let mut bits = self.0;
        if flags.contains(Flags::SAT) {
            bits |= SAT;
        }
        if flags.contains(Flags::RELU) {
            bits |= RELU;
        }
        Mnemonic(bits)
    }

    fn suffix1(self) -> usize {
        (self.0 >> TYPE1_SHIFT) as usize & 0xff
    }

    /// The pieces, for the opcode table.
    pub fn toks(self) -> SmallVec<[Tok; 12]> {
        let mut out = SmallVec::new();
        out.extend_from_slice(BASES[(self.0 & 0xffff) as usize].0);
        out.extend(ROUNDINGS[(self.0 >> ROUND_SHIFT) as usize & 0xff]);
        for (bit, piece) in [
            (AND_WITH, tok::AND),
            (OR_WITH, tok::OR),
            (FTZ, tok::FTZ),
            (NAN, tok::PROPAGATE_NAN),
            (XOR_SIGN, tok::XORSIGN),
            (XOR_SIGN, tok::ABS),
            (SAT, tok::SAT),
            (SATFINITE, tok::SATFINITE),
            (RELU, tok::RELU),
        ] {
            if self.0 & bit != 0 {
                out.push(piece);
            }
        }
        out.extend(SUFFIXES[self.suffix1()].0);
        out.extend(SUFFIXES[(self.0 >> TYPE2_SHIFT) as usize & 0xff].0);
        out
    }

    /// The class of the register it writes.
    pub fn result_class(self) -> RegClass {
        let suffix = SUFFIXES[self.suffix1()].1;
        match BASES[(self.0 & 0xffff) as usize].1 {
            ResultRule::Class(class) => class,
            ResultRule::Suffix => suffix,
        }
    }
}

fn rounding_index(rounding: Rounding) -> u64 {
    match rounding {
        Rounding::Nearest => 0,
        Rounding::Zero => 1,
        Rounding::Down => 2,
        Rounding::Up => 3,
    }
}

/// The suffix of a signed, unsigned or untyped operation on values of this many bits.
fn by_width(bits: u32, choices: [Suffix; 3]) -> Suffix {
    match bits {
        0..=16 => choices[0],
        17..=32 => choices[1],
        _ => choices[2],
    }
}

/// `.s16 .s32 .s64` for a value of this type.
pub fn signed(ty: Type) -> Suffix {
    by_width(ty.bits(), [Suffix::S16, Suffix::S32, Suffix::S64])
}

/// `.u16 .u32 .u64` for a value of this type.
pub fn unsigned(ty: Type) -> Suffix {
    by_width(ty.bits(), [Suffix::U16, Suffix::U32, Suffix::U64])
}

/// `.b16 .b32 .b64` for a register of this class.
pub fn untyped(class: RegClass) -> Suffix {
    match class {
        RegClass::Pred => Suffix::Pred,
        // No value of selection is in eight bits.
        RegClass::B8 | RegClass::B16 => Suffix::B16,
        RegClass::B32 => Suffix::B32,
        RegClass::B64 => Suffix::B64,
        RegClass::B128 => Suffix::B128,
    }
}

/// The suffix of a float operation on this type, packed types included.
pub fn float(ty: Type) -> Suffix {
    let pair = ty.is_vector() && ty.lanes() == 2;
    match (ty.kind(), pair) {
        (Some(Scalar::Float(kind)), false) => match kind {
            FloatKind::F16 => Suffix::F16,
            FloatKind::Bf16 => Suffix::Bf16,
            FloatKind::F32 => Suffix::F32,
            FloatKind::F64 => Suffix::F64,
            FloatKind::Tf32 => Suffix::Tf32,
            _ => Suffix::B16,
        },
        (Some(Scalar::Float(kind)), true) => match kind {
            FloatKind::F16 => Suffix::F16x2,
            FloatKind::Bf16 => Suffix::Bf16x2,
            FloatKind::F32 => Suffix::F32x2,
            FloatKind::E4m3 => Suffix::E4m3x2,
            FloatKind::E5m2 => Suffix::E5m2x2,
            FloatKind::E2m3 => Suffix::E2m3x2,
            FloatKind::E3m2 => Suffix::E3m2x2,
            FloatKind::E2m1 => Suffix::E2m1x2,
            FloatKind::Ue8m0 => Suffix::Ue8m0x2,
            _ => Suffix::B64,
        },
        _ => by_width(ty.bits(), [Suffix::B16, Suffix::B32, Suffix::B64]),
    }
}

/// The bases that rules quote.
#[allow(non_upper_case_globals)]
pub mod bases {
    use super::*;
    include!(concat!(env!("OUT_DIR"), "/mnemonics.rs"));
}
use bases::BASES;

/// The piece of [`float`].
pub fn float_tok(ty: Type) -> Tok {
    SUFFIXES[float(ty) as usize].0.unwrap_or(tok::B32)
}
