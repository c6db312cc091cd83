//! Register classes and the scalar types that declarations spell.

/// What a register holds. PTX lets every instruction of a given width use a `.bN` register of that width, so the
/// width alone is the class (PTX ISA, 9.7 "operand type checking").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RegClass {
    /// A predicate, `.pred`.
    Pred,
    /// 16 bits. Eight-bit values also live here: PTX has no arithmetic on `.b8` registers.
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
    pub const ALL: [RegClass; 5] = [RegClass::Pred, RegClass::B16, RegClass::B32, RegClass::B64, RegClass::B128];

    /// Width in bits; 1 for a predicate.
    pub const fn bits(self) -> u32 {
        match self {
            RegClass::Pred => 1,
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

    /// The prefix of register names, with the percent sign.
    pub const fn prefix(self) -> &'static str {
        match self {
            RegClass::Pred => "%p",
            RegClass::B16 => "%rs",
            RegClass::B32 => "%r",
            RegClass::B64 => "%rd",
            RegClass::B128 => "%rq",
        }
    }

    /// The type in the register declaration.
    pub const fn ptx_type(self) -> PtxType {
        match self {
            RegClass::Pred => PtxType::Pred,
            RegClass::B16 => PtxType::B16,
            RegClass::B32 => PtxType::B32,
            RegClass::B64 => PtxType::B64,
            RegClass::B128 => PtxType::B128,
        }
    }
}

macro_rules! ptx_types {
    ($($name:ident $text:literal $bytes:literal;)*) => {
        /// A scalar type as declarations, parameters and initializers spell it (PTX ISA, 5.2).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)] // the names are PTX's own
        pub enum PtxType { $($name,)* }

        impl PtxType {
            /// The spelling without the leading dot.
            pub const fn text(self) -> &'static str {
                match self { $(PtxType::$name => $text,)* }
            }
            /// Size in bytes; 0 for a predicate, which has no place in memory.
            pub const fn bytes(self) -> u32 {
                match self { $(PtxType::$name => $bytes,)* }
            }
        }
    };
}

ptx_types! {
    Pred "pred" 0;
    B8 "b8" 1; B16 "b16" 2; B32 "b32" 4; B64 "b64" 8; B128 "b128" 16;
    U8 "u8" 1; U16 "u16" 2; U32 "u32" 4; U64 "u64" 8;
    S8 "s8" 1; S16 "s16" 2; S32 "s32" 4; S64 "s64" 8;
    F32 "f32" 4; F64 "f64" 8;
}

impl PtxType {
    /// The class of a register that this type is loaded into.
    pub const fn class(self) -> RegClass {
        match self.bytes() {
            0 => RegClass::Pred,
            1 | 2 => RegClass::B16,
            4 => RegClass::B32,
            8 => RegClass::B64,
            _ => RegClass::B128,
        }
    }

    /// The untyped (`.bN`) type of `bytes` bytes, a power of two up to 16.
    pub const fn untyped(bytes: u32) -> Option<PtxType> {
        match bytes {
            1 => Some(PtxType::B8),
            2 => Some(PtxType::B16),
            4 => Some(PtxType::B32),
            8 => Some(PtxType::B64),
            16 => Some(PtxType::B128),
            _ => None,
        }
    }
}
