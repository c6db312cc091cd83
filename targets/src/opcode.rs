//! Whole mnemonics as small integers.

use crate::{FormError, Tok};
use rustc_hash::FxHashMap;

/// A whole mnemonic, interned in an [`OpcodeTable`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Opcode(u32);

impl Opcode {
    /// Position in the table, in order of interning.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

struct Entry {
    start: u32,
    len: u32,
    text: Box<str>,
}

/// The mnemonics of one module.
///
/// Numbers are given in order of interning, so that the same module gives the same
/// numbers. Mnemonics are kept in the specification's order of modifiers.
#[derive(Default)]
pub struct OpcodeTable {
    by_toks: FxHashMap<Box<[Tok]>, Opcode>,
    entries: Vec<Entry>,
    toks: Vec<Tok>,
}

impl OpcodeTable {
    /// An empty table.
    pub fn new() -> OpcodeTable {
        OpcodeTable::default()
    }

    /// The opcode of the mnemonic `toks`, put into the specification's order.
    ///
    /// A mnemonic that no form of the table has is interned as it is; [`crate::resolve`]
    /// tells what is wrong with it.
    pub fn intern(&mut self, toks: &[Tok]) -> Opcode {
        if let Some(&opcode) = self.by_toks.get(toks) {
            return opcode;
        }
        let ordered = crate::form::spec_order(toks);
        let opcode = match self.by_toks.get(&ordered[..]) {
            Some(&opcode) => opcode,
            None => self.add(&ordered),
        };
        self.by_toks.insert(toks.into(), opcode);
        opcode
    }

    fn add(&mut self, toks: &[Tok]) -> Opcode {
        let opcode = Opcode(self.entries.len() as u32);
        let mut text = String::new();
        for (index, piece) in toks.iter().enumerate() {
            if index > 0 {
                text.push('.');
            }
            text.push_str(piece.text());
        }
        let start = self.toks.len() as u32;
        self.toks.extend_from_slice(toks);
        self.entries.push(Entry { start, len: toks.len() as u32, text: text.into() });
        self.by_toks.insert(toks.into(), opcode);
        opcode
    }

    /// The opcode of the mnemonic written `text`, such as `add.rn.f32`.
    ///
    /// # Errors
    /// A piece that no instruction has.
    pub fn intern_text(&mut self, text: &str) -> Result<Opcode, FormError> {
        let mut toks = smallvec::SmallVec::<[Tok; 16]>::new();
        for piece in text.split('.') {
            toks.push(Tok::from_text(piece).ok_or_else(|| crate::form::unknown_piece(&toks, piece))?);
        }
        Ok(self.intern(&toks))
    }

    /// The pieces of a mnemonic, in the specification's order.
    pub fn toks(&self, opcode: Opcode) -> &[Tok] {
        let entry = &self.entries[opcode.index()];
        &self.toks[entry.start as usize..(entry.start + entry.len) as usize]
    }

    /// The whole mnemonic as PTX spells it.
    pub fn text(&self, opcode: Opcode) -> &str {
        &self.entries[opcode.index()].text
    }

    /// The pieces of every mnemonic, in the order of their numbers.
    pub fn all(&self) -> impl Iterator<Item = &[Tok]> {
        self.entries.iter().map(|entry| &self.toks[entry.start as usize..(entry.start + entry.len) as usize])
    }

    /// How many mnemonics are interned.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is interned.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tok;

    #[test]
    fn interning_twice_gives_one_opcode() {
        let mut table = OpcodeTable::new();
        let first = table.intern(&[tok::ADD, tok::RN, tok::F32]);
        assert_eq!(table.intern_text("add.rn.f32"), Ok(first));
        assert_eq!(table.text(first), "add.rn.f32");
        assert!(table.intern_text("add.foo").is_err());
    }
}
