//! Mnemonic pieces as small integers.

use crate::tables;
use std::fmt;

/// One dotted piece of a mnemonic: `add`, `rn`, `f32`, `shared::cta`, `L2::128B`.
///
/// Pieces are numbered by the build script in alphabetical order; the numbers may
/// change between builds, so only the text may be stored outside a process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tok(pub(crate) u16);

impl Tok {
    /// The piece as PTX spells it, without a dot.
    pub fn text(self) -> &'static str {
        tables::TOKENS[usize::from(self.0)]
    }

    /// The piece spelled `text`, if any instruction has it.
    pub fn from_text(text: &str) -> Option<Tok> {
        let mask = tables::TOKEN_HASH.len() - 1;
        let mut slot = tables::hash_text(text.as_bytes()) as usize & mask;
        loop {
            match tables::TOKEN_HASH[slot] {
                u16::MAX => return None,
                index if tables::TOKENS[usize::from(index)] == text => return Some(Tok(index)),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// How many pieces there are; their numbers are below this.
    pub fn count() -> usize {
        tables::TOKENS.len()
    }

    /// The number of the piece, below [`Tok::count`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for Tok {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Debug for Tok {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".{}", self.text())
    }
}

/// One constant a mnemonic piece, named after its text: capitals, `__` for `::`, a
/// leading `_` before a digit (`tok::ADD`, `tok::SHARED__CTA`, `tok::_1D`).
///
/// `.NaN` of min and max is `tok::PROPAGATE_NAN`, since `.nan` of setp is `tok::NAN`.
pub mod tok {
    include!(concat!(env!("OUT_DIR"), "/tok.rs"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_found_by_its_text() {
        for index in 0..Tok::count() {
            let piece = Tok(index as u16);
            assert_eq!(Tok::from_text(piece.text()), Some(piece));
        }
        assert_eq!(Tok::from_text("nonsense"), None);
        assert_eq!(tok::SHARED__CTA.text(), "shared::cta");
        assert_eq!(tok::_1D.text(), "1d");
        assert_eq!(tok::NAN.text(), "nan");
        assert_eq!(tok::PROPAGATE_NAN.text(), "NaN");
    }
}
