//! The types that registers, parameters and variables are declared with.

use std::fmt;

/// What a PTX type means to an operand check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Untyped bits, compatible with every type of their size.
    Bits,
    /// Unsigned integers.
    Unsigned,
    /// Signed integers.
    Signed,
    /// Floating point numbers.
    Float,
    /// `.pred`.
    Predicate,
    /// `.texref`, `.samplerref`, `.surfref`.
    Opaque,
}

macro_rules! reg_types {
    ($($variant:ident $text:literal $bits:literal $class:ident;)*) => {
        /// A PTX type that a register, a variable or a parameter is declared with
        /// (PTX ISA 5.2). Every operand of an instruction has one of these as its
        /// container, whatever the instruction's own type is: `.e4m3x2` lives in `.b16`.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum RegType {
            $(#[doc = concat!("`.", $text, "`")] $variant,)*
        }

        impl RegType {
            /// All types, in declaration order.
            pub const ALL: &'static [RegType] = &[$(RegType::$variant,)*];

            /// The type as PTX spells it, without a dot.
            pub fn text(self) -> &'static str {
                match self { $(RegType::$variant => $text,)* }
            }

            /// Size in bits; 0 for predicates and opaque types.
            pub fn bits(self) -> u16 {
                match self { $(RegType::$variant => $bits,)* }
            }

            /// What kind of value it holds.
            pub fn class(self) -> Class {
                match self { $(RegType::$variant => Class::$class,)* }
            }

            /// The type spelled `text` (without a dot).
            pub fn from_text(text: &str) -> Option<RegType> {
                match text { $($text => Some(RegType::$variant),)* _ => None }
            }
        }
    };
}

reg_types! {
    Pred "pred" 0 Predicate;
    B8 "b8" 8 Bits; B16 "b16" 16 Bits; B32 "b32" 32 Bits; B64 "b64" 64 Bits; B128 "b128" 128 Bits;
    U8 "u8" 8 Unsigned; U16 "u16" 16 Unsigned; U32 "u32" 32 Unsigned; U64 "u64" 64 Unsigned;
    S8 "s8" 8 Signed; S16 "s16" 16 Signed; S32 "s32" 32 Signed; S64 "s64" 64 Signed;
    F16 "f16" 16 Float; F16x2 "f16x2" 32 Float; F32 "f32" 32 Float; F64 "f64" 64 Float;
    Texref "texref" 0 Opaque; Samplerref "samplerref" 0 Opaque; Surfref "surfref" 0 Opaque;
}

impl fmt::Display for RegType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
