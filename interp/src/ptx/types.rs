//! Types that mnemonics name (PTX ISA 5.2).

use ptxc_ir::FloatKind;

/// How bits are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// `.b32` and the like.
    Bits,
    /// `.u32` and the like.
    Unsigned,
    /// `.s32` and the like.
    Signed,
    /// A number of a format.
    Float(FloatKind),
    /// `.pred`
    Predicate,
}

/// A type: elements of a class, packed from the lowest bit on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Type {
    /// Class of an element.
    pub class: Class,
    /// Bits that an element takes.
    pub element: u32,
    /// Elements.
    pub count: u32,
}

const FLOATS: [(&str, FloatKind, u32); 11] = [
    ("f16", FloatKind::F16, 16),
    ("bf16", FloatKind::Bf16, 16),
    ("tf32", FloatKind::Tf32, 32),
    ("f32", FloatKind::F32, 32),
    ("f64", FloatKind::F64, 64),
    ("e4m3", FloatKind::E4m3, 8),
    ("e5m2", FloatKind::E5m2, 8),
    ("e2m3", FloatKind::E2m3, 8),
    ("e3m2", FloatKind::E3m2, 8),
    ("e2m1", FloatKind::E2m1, 4),
    ("ue8m0", FloatKind::Ue8m0, 8),
];

impl Type {
    /// Untyped bits.
    pub fn bits_of(bits: u32) -> Type {
        Type { class: Class::Bits, element: bits, count: 1 }
    }

    /// The type that a piece of a mnemonic names, if it names one.
    pub fn parse(piece: &str) -> Option<Type> {
        if piece == "pred" {
            return Some(Type { class: Class::Predicate, element: 1, count: 1 });
        }
        let (name, count) = match piece.rsplit_once('x') {
            Some((name, count)) => (name, count.parse().ok()?),
            None => (piece, 1),
        };
        if let Some((_, kind, element)) = FLOATS.iter().find(|(text, ..)| *text == name) {
            return Some(Type { class: Class::Float(*kind), element: *element, count });
        }
        let class = match name.as_bytes().first()? {
            b'b' => Class::Bits,
            b'u' => Class::Unsigned,
            b's' => Class::Signed,
            _ => return None,
        };
        let element = name.get(1..)?.parse().ok()?;
        matches!(element, 1 | 2 | 4 | 8 | 16 | 32 | 64 | 128).then_some(Type { class, element, count })
    }

    /// All bits.
    pub fn width(self) -> u32 {
        self.element * self.count
    }

    /// All bits of an element, ones; for elements of up to 64 bits.
    pub fn mask(self) -> u64 {
        low_bits(self.element)
    }

    /// The format of its elements.
    pub fn float(self) -> Option<FloatKind> {
        match self.class {
            Class::Float(kind) => Some(kind),
            _ => None,
        }
    }

    /// Elements are integers or untyped bits.
    pub fn is_integer(self) -> bool {
        matches!(self.class, Class::Bits | Class::Unsigned | Class::Signed)
    }

    /// Elements have a sign.
    pub fn is_signed(self) -> bool {
        self.class == Class::Signed
    }
}

/// That many ones, at most 64.
pub fn low_bits(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// The low `bits` of a number with their sign.
pub fn sign_extend(value: u64, bits: u32) -> i64 {
    let unused = 64 - bits.clamp(1, 64);
    (value << unused) as i64 >> unused
}
