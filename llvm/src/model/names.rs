//! Interned byte strings. LLVM's names are bytes; most are UTF-8, none has to be.

use std::borrow::Cow;

use cranelift_entity::EntityRef;

use super::entities::Name;
use super::interner::{Interner, List, hash_of};

/// All strings of a module.
#[derive(Clone, Debug, Default)]
pub struct Names {
    bytes: Vec<u8>,
    runs: Vec<List>,
    index: Interner,
}

impl Names {
    /// The id of a string.
    pub fn intern(&mut self, text: &[u8]) -> Name {
        let hash = hash_of(text);
        let (runs, bytes) = (&self.runs, &self.bytes);
        if let Some(found) = self.index.find(hash, |entry| runs[entry as usize].of(bytes) == text) {
            return Name::new(found as usize);
        }
        let entry = self.runs.len();
        self.runs.push(List::push(&mut self.bytes, text));
        self.index.insert(hash, entry as u32);
        Name::new(entry)
    }

    /// The id of a string that is already known.
    pub fn find(&self, text: &[u8]) -> Option<Name> {
        let found = self.index.find(hash_of(text), |entry| self.runs[entry as usize].of(&self.bytes) == text)?;
        Some(Name::new(found as usize))
    }

    /// The bytes of a string.
    pub fn bytes(&self, name: Name) -> &[u8] {
        self.runs[name.index()].of(&self.bytes)
    }

    /// The string as text; what is not UTF-8 is replaced.
    pub fn text(&self, name: Name) -> Cow<'_, str> {
        String::from_utf8_lossy(self.bytes(name))
    }
}
