//! How tensor cores add floats: what an H200 was seen to do, which PTX leaves open (PTX ISA 9.7.16.5.14).
//!
//! Up to 16 products are added to the accumulator at once. Products are exact. All terms are cut, toward zero, at the 25th
//! bit below the largest exponent (of a product: the sum of its factors' exponents), added exactly, and the sum is cut to
//! f32 or rounded to nearest f16.

use ptxc_ir::FloatKind;

use crate::float::Round;
use crate::float::soft::{self, Number};

/// Bits below the largest exponent that a term keeps.
const FRACTION: i32 = 25;
/// Most products that are added at once.
pub const AT_ONCE: usize = 16;

/// A factor, a product or an accumulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Term {
    /// Zero of either sign.
    Zero,
    /// Infinite or not a number.
    Special,
    /// A number.
    Finite {
        /// Magnitude.
        sig: u64,
        /// Negative.
        sign: bool,
        /// Exponent of the lowest bit.
        exp: i32,
        /// Exponent of the highest bit; of a product, the sum of those of its factors.
        lead: i32,
    },
}

impl Term {
    /// The number of these bits.
    pub fn new(kind: FloatKind, bits: u64) -> Term {
        match soft::unpack(kind, bits) {
            Number::Zero { .. } => Term::Zero,
            Number::Finite { sign, exp, sig } => {
                Term::Finite { sig: sig as u64, sign, exp, lead: exp + 127 - sig.leading_zeros() as i32 }
            }
            _ => Term::Special,
        }
    }

    /// The product of two factors of at most 32 significant bits.
    fn times(self, other: Term) -> Term {
        match (self, other) {
            (Term::Special, _) | (_, Term::Special) => Term::Special,
            (Term::Finite { sig: a, sign: s, exp: x, lead: l }, Term::Finite { sig: b, sign: t, exp: y, lead: m }) => {
                Term::Finite { sig: a * b, sign: s != t, exp: x + y, lead: l + m }
            }
            _ => Term::Zero,
        }
    }

    /// In units of two to the power `unit`, cut toward zero.
    fn cut(self, unit: i32) -> i64 {
        let Term::Finite { sig, sign, exp, .. } = self else { return 0 };
        let magnitude = match exp - unit {
            shift @ 0.. => sig << shift.min(63),
            shift => sig.checked_shr(shift.unsigned_abs()).unwrap_or(0),
        } as i64;
        if sign { -magnitude } else { magnitude }
    }
}

/// The sum of an accumulator of `kind` (f32 or f16) and at most [`AT_ONCE`] products, as bits of that kind. `None` when a
/// term is infinite or not a number.
pub fn sum(kind: FloatKind, start: u64, factors: impl Iterator<Item = (Term, Term)>) -> Option<u64> {
    let mut terms = [Term::Zero; AT_ONCE + 1];
    terms[0] = Term::new(kind, start);
    for (to, (a, b)) in terms.iter_mut().skip(1).zip(factors) {
        *to = a.times(b);
    }
    if terms.contains(&Term::Special) {
        return None;
    }
    let lead = |term: &Term| if let Term::Finite { lead, .. } = term { Some(*lead) } else { None };
    let Some(highest) = terms.iter().filter_map(lead).max() else { return Some(0) };
    let unit = highest - FRACTION;
    let sum: i64 = terms.iter().map(|term| term.cut(unit)).sum();
    if sum == 0 {
        return Some(0);
    }
    let number = Number::Finite { sign: sum < 0, exp: unit, sig: sum.unsigned_abs().into() };
    let beyond = unit + 63 - sum.unsigned_abs().leading_zeros() as i32 > 127;
    let round = if kind == FloatKind::F16 || beyond { Round::Nearest } else { Round::Zero };
    Some(soft::pack(kind, &number, round, false))
}
