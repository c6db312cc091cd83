//! Names in scope of a statement.

use crate::{RegType, Space};
use rustc_hash::FxHashMap;

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Symbol {
    /// A register.
    Register(RegType),
    /// A vector register, `.reg .v4 .f32`.
    Vector(RegType, u8),
    /// A variable or a parameter.
    Variable(Space),
    /// A texture, sampler or surface.
    Opaque(RegType),
    /// A function, a prototype, or a list of call targets.
    Function,
    /// A label, or a list of branch targets.
    Label,
}

/// Names with scopes that nest, as braces do in PTX.
#[derive(Default)]
pub struct Declarations<'a> {
    names: FxHashMap<&'a str, Symbol>,
    /// `%r<8>`: by prefix, how many.
    ranges: FxHashMap<&'a str, (u32, Symbol)>,
    undo: Vec<Undo<'a>>,
    scopes: Vec<usize>,
}

enum Undo<'a> {
    Name(&'a str, Option<Symbol>),
    Range(&'a str, Option<(u32, Symbol)>),
}

impl<'a> Declarations<'a> {
    /// No names.
    pub fn new() -> Declarations<'a> {
        Declarations::default()
    }

    /// Declares `name`; false if this scope already has it.
    pub fn declare(&mut self, name: &'a str, symbol: Symbol) -> bool {
        let before = self.names.insert(name, symbol);
        let scope = self.scopes.last().copied().unwrap_or(0);
        let fresh = match before {
            None => true,
            Some(_) if self.scopes.is_empty() => false,
            Some(_) => !self.undo[scope..].iter().any(|undo| matches!(undo, Undo::Name(other, _) if *other == name)),
        };
        if !self.scopes.is_empty() {
            self.undo.push(Undo::Name(name, before));
        }
        fresh
    }

    /// Declares `prefix0` to `prefix(count-1)`.
    pub fn declare_range(&mut self, prefix: &'a str, count: u32, symbol: Symbol) {
        let before = self.ranges.insert(prefix, (count, symbol));
        if !self.scopes.is_empty() {
            self.undo.push(Undo::Range(prefix, before));
        }
    }

    /// What `name` stands for.
    pub fn lookup(&self, name: &str) -> Option<Symbol> {
        if let Some(&symbol) = self.names.get(name) {
            return Some(symbol);
        }
        let prefix = name.trim_end_matches(|last: char| last.is_ascii_digit());
        let digits = name.get(prefix.len()..).filter(|digits| !digits.is_empty())?;
        // A prefix may itself end in digits, as in `%r1_<4>` against `%a1<4>`; try every split.
        for split in 0..digits.len().min(9) {
            let (more, index) = digits.split_at(split);
            let canonical = index.len() == 1 || !index.starts_with('0');
            let known = self.ranges.get(&name[..prefix.len() + more.len()]);
            if let Some(&(count, symbol)) = known
                && canonical
                && index.parse::<u32>().is_ok_and(|index| index < count)
            {
                return Some(symbol);
            }
        }
        None
    }

    /// Opens a scope.
    pub fn push_scope(&mut self) {
        self.scopes.push(self.undo.len());
    }

    /// Closes the innermost scope and forgets its names.
    pub fn pop_scope(&mut self) {
        let start = self.scopes.pop().unwrap_or(0);
        while self.undo.len() > start {
            match self.undo.pop() {
                Some(Undo::Name(name, Some(symbol))) => drop(self.names.insert(name, symbol)),
                Some(Undo::Name(name, None)) => drop(self.names.remove(name)),
                Some(Undo::Range(prefix, Some(range))) => drop(self.ranges.insert(prefix, range)),
                Some(Undo::Range(prefix, None)) => drop(self.ranges.remove(prefix)),
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_and_ranges() {
        let mut names = Declarations::new();
        names.declare_range("%r", 12, Symbol::Register(RegType::B32));
        names.push_scope();
        assert!(names.declare("%r3", Symbol::Register(RegType::F32)));
        assert!(!names.declare("%r3", Symbol::Register(RegType::F32)));
        assert_eq!(names.lookup("%r3"), Some(Symbol::Register(RegType::F32)));
        names.pop_scope();
        assert_eq!(names.lookup("%r3"), Some(Symbol::Register(RegType::B32)));
        assert_eq!(names.lookup("%r12"), None);
        assert_eq!(names.lookup("%r03"), None);
    }
}
