//! Instruction flags: wrapping, fast-math, rounding and the like, in one `u32`.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// A set of flags of one instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(u32);

/// Rounding modes; `Nearest` (ties to even) is the default and is not printed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rounding {
    /// To nearest, ties to even.
    Nearest,
    /// Toward zero.
    Zero,
    /// Toward minus infinity.
    Down,
    /// Toward plus infinity.
    Up,
}

/// Masks of flags that opcodes accept together.
pub mod group {
    /// `nsw nuw`
    pub const WRAP: u32 = 3;
    /// `nsw`
    pub const NSW: u32 = 1;
    /// `exact`
    pub const EXACT: u32 = 1 << 2;
    /// `disjoint`
    pub const DISJOINT: u32 = 1 << 3;
    /// `nneg`
    pub const NNEG: u32 = 1 << 4;
    /// `inbounds`
    pub const INBOUNDS: u32 = 1 << 5;
    /// The fast-math flags.
    pub const FAST: u32 = 0x7f << 6;
    /// The rounding modes.
    pub const ROUND: u32 = 0xf << 13;
    /// `ftz`
    pub const FTZ: u32 = 1 << 17;
    /// `sat`
    pub const SAT: u32 = 1 << 18;
    /// `relu`
    pub const RELU: u32 = 1 << 19;
    /// `uniform`
    pub const UNIFORM: u32 = 1 << 20;
    /// `aligned`
    pub const ALIGNED: u32 = 1 << 21;
    /// `weak`
    pub const WEAK: u32 = 1 << 22;
    /// `pure`
    pub const PURE: u32 = 1 << 23;
    /// `nonconvergent`
    pub const NONCONVERGENT: u32 = 1 << 24;
    /// `nonzero`
    pub const NONZERO: u32 = 1 << 25;
}

macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $bit:literal $text:literal;)*) => {
        impl Flags {
            $($(#[$doc])* pub const $name: Flags = Flags(1 << $bit);)*

            /// Every single flag with its spelling, in printing order.
            pub const NAMES: &'static [(Flags, &'static str)] = &[$((Flags::$name, $text),)*];
        }
    };
}

flags! {
    /// No signed wrap: overflow is poison.
    NSW = 0 "nsw";
    /// No unsigned wrap: overflow is poison.
    NUW = 1 "nuw";
    /// The division or shift loses no bits, else poison.
    EXACT = 2 "exact";
    /// The operands of `or` share no set bit, else poison.
    DISJOINT = 3 "disjoint";
    /// The operand is not negative, else poison.
    NNEG = 4 "nneg";
    /// The address stays in its object, else poison.
    INBOUNDS = 5 "inbounds";
    /// No NaN in or out.
    NNAN = 6 "nnan";
    /// No infinity in or out.
    NINF = 7 "ninf";
    /// The sign of zero does not matter.
    NSZ = 8 "nsz";
    /// Division may become multiplication by the reciprocal.
    ARCP = 9 "arcp";
    /// A multiply and an add may be fused.
    CONTRACT = 10 "contract";
    /// Approximations of functions are allowed.
    AFN = 11 "afn";
    /// Reassociation is allowed.
    REASSOC = 12 "reassoc";
    /// Explicit round to nearest (the default of most operations; fptosi and fptoui default to zero).
    RN = 13 "rn";
    /// Round toward zero.
    RZ = 14 "rz";
    /// Round toward minus infinity.
    RM = 15 "rm";
    /// Round toward plus infinity.
    RP = 16 "rp";
    /// Subnormal inputs and results are flushed to zero of the same sign.
    FTZ = 17 "ftz";
    /// The result is clamped to [0, 1]; NaN gives 0.
    SAT = 18 "sat";
    /// Negative results become 0.
    RELU = 19 "relu";
    /// The branch goes the same way for all threads of a warp.
    UNIFORM = 20 "uniform";
    /// All threads of the warp execute this same instruction.
    ALIGNED = 21 "aligned";
    /// The compare-and-exchange may fail spuriously.
    WEAK = 22 "weak";
    /// Inline assembly without memory or other effects.
    PURE = 23 "pure";
    /// The call or inline assembly does not depend on converged threads.
    NONCONVERGENT = 24 "nonconvergent";
    /// The operand is not zero, else poison.
    NONZERO = 25 "nonzero";
}

impl Flags {
    /// No flags.
    pub const EMPTY: Flags = Flags(0);
    /// All fast-math flags.
    pub const FAST: Flags = Flags(group::FAST);

    /// The raw bits.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Flags from raw bits; unknown bits are dropped.
    pub const fn from_bits(bits: u32) -> Flags {
        Flags(bits & ((1 << 26) - 1))
    }

    /// True when every flag of `other` is set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// True when nothing is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// These flags without those of `other`.
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// The flags that are set in both.
    pub const fn intersect(self, other: Flags) -> Flags {
        Flags(self.0 & other.0)
    }

    /// The rounding mode; nearest when none is given.
    pub fn rounding(self) -> Rounding {
        self.explicit_rounding().unwrap_or(Rounding::Nearest)
    }

    /// The rounding mode if one is written.
    pub fn explicit_rounding(self) -> Option<Rounding> {
        match self.0 & group::ROUND {
            b if b == Flags::RN.0 => Some(Rounding::Nearest),
            b if b == Flags::RZ.0 => Some(Rounding::Zero),
            b if b == Flags::RM.0 => Some(Rounding::Down),
            b if b == Flags::RP.0 => Some(Rounding::Up),
            _ => None,
        }
    }

    /// The flag spelled `text`; `fast` gives all fast-math flags.
    pub fn from_text(text: &str) -> Option<Flags> {
        if text == "fast" {
            return Some(Flags::FAST);
        }
        Flags::NAMES.iter().find(|(_, name)| *name == text).map(|(flag, _)| *flag)
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Flags) {
        self.0 |= other.0;
    }
}

impl fmt::Display for Flags {
    /// Prints each flag followed by a space, `fast` for the whole fast-math group.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fast = self.contains(Flags::FAST);
        if fast {
            f.write_str("fast ")?;
        }
        for (flag, name) in Flags::NAMES {
            let hidden = fast && flag.0 & group::FAST != 0;
            if self.contains(*flag) && !hidden {
                write!(f, "{name} ")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
