//! Finding an entry of an arena by its content, without owning a second copy of that content.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

const END: u32 = u32::MAX;

/// Chains of arena entries by the hash of their content. The arena itself compares and stores.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interner {
    heads: FxHashMap<u64, u32>,
    /// By entry: the next entry with the same hash.
    next: Vec<u32>,
}

impl Interner {
    /// The entry with that hash for which `same` holds.
    pub(crate) fn find(&self, hash: u64, mut same: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut entry = *self.heads.get(&hash)?;
        while entry != END {
            if same(entry) {
                return Some(entry);
            }
            entry = self.next.get(entry as usize).copied().unwrap_or(END);
        }
        None
    }

    /// Makes entry `entry` findable under that hash.
    pub(crate) fn insert(&mut self, hash: u64, entry: u32) {
        if self.next.len() <= entry as usize {
            self.next.resize(entry as usize + 1, END);
        }
        let previous = self.heads.insert(hash, entry);
        self.next[entry as usize] = previous.unwrap_or(END);
    }
}

/// The hash of a value.
pub(crate) fn hash_of(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A run of entries of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct List {
    /// Index of the first entry.
    pub start: u32,
    /// Number of entries.
    pub len: u32,
}

impl List {
    /// The entries in `pool`; empty when the run lies outside.
    pub fn of<T>(self, pool: &[T]) -> &[T] {
        let start = self.start as usize;
        pool.get(start..start + self.len as usize).unwrap_or(&[])
    }

    /// Appends entries to `pool`.
    pub fn push<T: Clone>(pool: &mut Vec<T>, entries: &[T]) -> List {
        let list = List { start: pool.len() as u32, len: entries.len() as u32 };
        pool.extend_from_slice(entries);
        list
    }

    /// Whether there are no entries.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}
