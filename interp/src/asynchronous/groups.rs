//! Groups of a thread's asynchronous operations (PTX ISA 9.7.10.28.1.1).

use std::collections::VecDeque;

/// The operations of one thread under one mechanism, by number.
#[derive(Clone, Default, Debug)]
pub struct Groups {
    open: Vec<u32>,
    committed: VecDeque<Vec<u32>>,
}

impl Groups {
    /// Adds an operation that is not committed yet.
    pub fn add(&mut self, operation: u32) {
        self.open.push(operation);
    }

    /// Makes a group of what is not committed.
    pub fn commit(&mut self) {
        self.committed.push_back(std::mem::take(&mut self.open));
    }

    /// Operations of all groups but the newest `n`. With `forget` these groups are complete.
    pub fn before(&mut self, n: usize, forget: bool) -> Vec<u32> {
        let count = self.committed.len().saturating_sub(n);
        if forget {
            self.committed.drain(..count).flatten().collect()
        } else {
            self.committed.iter().take(count).flatten().copied().collect()
        }
    }

    /// All operations that no wait has ended, the committed ones first.
    pub fn all(&self) -> Vec<u32> {
        self.committed.iter().flatten().chain(&self.open).copied().collect()
    }
}
