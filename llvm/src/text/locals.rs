//! Names and numbers of the function that is being read.

use cranelift_entity::EntityRef;

use crate::model::{Body, Name, Operand};
use rustc_hash::FxHashMap;

/// The body under construction with what its names and numbers mean. Tables are kept between functions; an entry
/// counts only when it bears the stamp of the current one.
#[derive(Debug, Default)]
pub(super) struct Locals {
    pub(super) body: Body,
    /// The number that the next unnamed argument, block or instruction gets.
    pub(super) next: u32,
    /// By value: where it was first mentioned.
    pub(super) mentions: Vec<u32>,
    /// By block: where it was first mentioned.
    pub(super) block_mentions: Vec<u32>,
    stamp: u32,
    names: Vec<(u32, Option<Operand>)>,
    numbers: Vec<(u32, Option<Operand>)>,
    large: FxHashMap<u32, Operand>,
}

/// Numbers from here on go to a map.
const DENSE: u32 = 1 << 20;

impl Locals {
    /// Forgets everything of the function before.
    pub(super) fn start(&mut self) {
        self.body.clear();
        self.next = 0;
        self.mentions.clear();
        self.block_mentions.clear();
        self.large.clear();
        self.stamp += 1;
    }

    /// The body, of just the size it needs.
    pub(super) fn finish(&mut self) -> Body {
        let body = self.body.clone();
        self.body.clear();
        body
    }

    /// What `%name` is.
    pub(super) fn name(&self, name: Name) -> Option<Operand> {
        match self.names.get(name.index()) {
            Some((stamp, operand)) if *stamp == self.stamp => *operand,
            _ => None,
        }
    }

    /// What `%number` is.
    pub(super) fn number(&self, number: u32) -> Option<Operand> {
        if number >= DENSE {
            return self.large.get(&number).copied();
        }
        match self.numbers.get(number as usize) {
            Some((stamp, operand)) if *stamp == self.stamp => *operand,
            _ => None,
        }
    }

    /// Says what `%name` is.
    pub(super) fn set_name(&mut self, name: Name, operand: Operand) {
        set(&mut self.names, name.index(), (self.stamp, Some(operand)));
    }

    /// Says what `%number` is.
    pub(super) fn set_number(&mut self, number: u32, operand: Operand) {
        if number >= DENSE {
            self.large.insert(number, operand);
        } else {
            set(&mut self.numbers, number as usize, (self.stamp, Some(operand)));
        }
    }
}

fn set(table: &mut Vec<(u32, Option<Operand>)>, index: usize, entry: (u32, Option<Operand>)) {
    if table.len() <= index {
        table.resize(index + 1, (0, None));
    }
    table[index] = entry;
}
