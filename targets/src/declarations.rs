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
        let bytes = name.as_bytes();
        let ranged = bytes.last().is_some_and(u8::is_ascii_digit) && !self.ranges.is_empty();
        match self.names.get(name) {
            Some(&symbol) => Some(symbol),
            None if ranged => self.ranged(name),
            None => None,
        }
    }

    /// A name that a range declares: its prefix and a number below the count.
    fn ranged(&self, name: &str) -> Option<Symbol> {
        let bytes = name.as_bytes();
        let digits = bytes.iter().rev().take_while(|byte| byte.is_ascii_digit()).count().min(9);
        // A prefix may itself end in digits, as `%a1` of `%a1<4>`; try every split, the shortest prefix
        // first.
        for length in (1..=digits).rev() {
            let at = bytes.len() - length;
            if length > 1 && bytes[at] == b'0' {
                continue;
            }
            if let Some(&(count, symbol)) = name.get(..at).and_then(|prefix| self.ranges.get(prefix)) {
                let number = bytes[at..].iter().fold(0u32, |sum, digit| sum * 10 + u32::from(digit - b'0'));
                if number < count {
                    return Some(symbol);
                }
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
