//! Legal PTX names.
//!
//! A PTX identifier is `[A-Za-z][A-Za-z0-9_$]*` or `[_$%][A-Za-z0-9_$]+` (PTX ISA, 4.4); `WARP_SZ` is a constant.
//! Names of symbols that are legal are kept, kernels' in particular, since hosts look them up. In others, every
//! character that is not allowed becomes `$` and its code point in hexadecimal; should the result be taken, a number
//! is appended. Symbols never start with `%`, so that local names (registers, and parameters that would hide a
//! symbol) have a namespace of their own.

use cranelift_entity::SecondaryMap;
use ptxc_mir::{SymId, Symbols};
use rustc_hash::FxHashSet;
use std::fmt::Write;

/// The PTX names of a module's symbols.
#[derive(Debug)]
pub(crate) struct Names {
    names: SecondaryMap<SymId, String>,
    used: FxHashSet<String>,
    /// Some symbol has a name like those inside a call sequence.
    call_names_taken: bool,
}

impl Names {
    pub fn new(symbols: &Symbols) -> Names {
        let mut names: SecondaryMap<SymId, String> = SecondaryMap::with_capacity(symbols.len());
        let mut used = FxHashSet::default();
        for (symbol, name) in symbols.iter().filter(|(_, name)| is_legal(name)) {
            names[symbol] = name.to_owned();
            used.insert(name.to_owned());
        }
        for (symbol, name) in symbols.iter().filter(|(_, name)| !is_legal(name)) {
            let base = legalize(name);
            let mut candidate = base.clone();
            let mut n = 0u32;
            while !used.insert(candidate.clone()) {
                n += 1;
                candidate = format!("{base}${n}");
            }
            names[symbol] = candidate;
        }
        let call_names_taken = used.iter().any(|name| is_call_name(name));
        Names { names, used, call_names_taken }
    }

    /// The PTX name of a symbol.
    pub fn get(&self, symbol: SymId) -> &str {
        &self.names[symbol]
    }

    /// The prefix of names inside call sequences (`param0`, `retval0`, `prototype_0`).
    pub fn call_prefix(&self) -> &'static str {
        if self.call_names_taken { "%" } else { "" }
    }

    /// A name of function scope that hides no symbol.
    pub fn local(&self, name: String) -> String {
        if self.used.contains(&name) { format!("%{name}") } else { name }
    }
}

/// Whether PTX takes the name as it is and nothing we generate has it.
fn is_legal(name: &str) -> bool {
    let bytes = name.as_bytes();
    let Some((&first, rest)) = bytes.split_first() else {
        return false;
    };
    let start = first.is_ascii_alphabetic() || (matches!(first, b'_' | b'$') && !rest.is_empty());
    start
        && rest.iter().all(|&c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$'))
        && name != "WARP_SZ"
        && !name.starts_with("$L__")
        && !name.starts_with("__local_depot")
}

fn legalize(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '$') {
            out.push(c);
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "${:X}$", u32::from(c));
        }
    }
    if !is_legal(&out) {
        out.insert_str(0, "_$");
    }
    out
}

fn is_call_name(name: &str) -> bool {
    ["param", "retval", "prototype_", "func_retval"]
        .iter()
        .any(|prefix| name.strip_prefix(prefix).is_some_and(|n| !n.is_empty() && n.bytes().all(|c| c.is_ascii_digit())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: &[&str], expected: &[&str]) {
        let mut symbols = Symbols::default();
        let ids: Vec<SymId> = names.iter().map(|n| symbols.intern(n)).collect();
        let ptx = Names::new(&symbols);
        let found: Vec<&str> = ids.iter().map(|&id| ptx.get(id)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn legal_names_are_kept() {
        check(&["add", "_Z3fooPf", "$x", "a$b", "k_param_0"], &["add", "_Z3fooPf", "$x", "a$b", "k_param_0"]);
    }

    #[test]
    fn others_become_legal_without_collision() {
        check(&["a.b", "a$2E$b", "a b"], &["a$2E$b$1", "a$2E$b", "a$20$b"]);
        check(&["", "_", "0x", "é", "WARP_SZ", "%r1"], &["_$", "_$_", "_$0x", "$E9$", "_$WARP_SZ", "$25$r1"]);
        check(&["$L__BB0_1", "__local_depot0"], &["_$$L__BB0_1", "_$__local_depot0"]);
    }

    #[test]
    fn local_names_hide_no_symbol() {
        let mut symbols = Symbols::default();
        symbols.intern("k_param_0");
        symbols.intern("param3");
        let names = Names::new(&symbols);
        assert_eq!(names.local("k_param_0".into()), "%k_param_0");
        assert_eq!(names.local("k_param_1".into()), "k_param_1");
        assert_eq!(names.call_prefix(), "%");
    }
}
