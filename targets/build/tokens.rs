//! Mnemonic pieces: numbering, constants and the hash table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

#[derive(Default)]
pub struct Tokens {
    texts: BTreeMap<String, u16>,
}

impl Tokens {
    pub fn add(&mut self, text: &str) {
        self.texts.entry(text.to_owned()).or_insert(0);
    }

    /// Numbers the pieces in alphabetical order.
    pub fn finish(mut self) -> Tokens {
        for (index, number) in self.texts.values_mut().enumerate() {
            *number = index as u16;
        }
        self
    }

    pub fn write_table(&self, out: &mut String) {
        let mut size = 64;
        while size < self.texts.len() * 3 {
            size *= 2;
        }
        let mut table = vec![u16::MAX; size];
        let _ = writeln!(
            out,
            "pub(crate) static TOKENS: [&str; {}] = [",
            self.texts.len()
        );
        for (text, &number) in &self.texts {
            let _ = writeln!(out, "{text:?},");
            let mut slot = hash_text(text.as_bytes()) as usize & (size - 1);
            while table[slot] != u16::MAX {
                slot = (slot + 1) & (size - 1);
            }
            table[slot] = number;
        }
        let _ = writeln!(
            out,
            "];\npub(crate) static TOKEN_HASH: [u16; {size}] = {table:?};"
        );
    }

    pub fn constants(&self) -> String {
        let mut out = String::from("use super::Tok;\n");
        for (text, number) in &self.texts {
            let _ = writeln!(
                out,
                "/// `.{text}`\npub const {}: Tok = Tok({number});",
                constant_name(text)
            );
        }
        out
    }
}

fn constant_name(text: &str) -> String {
    if text == "NaN" {
        return "PROPAGATE_NAN".to_owned();
    }
    let mut name = String::new();
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        name.push('_');
    }
    for part in text.chars() {
        name.push(if part == ':' {
            '_'
        } else {
            part.to_ascii_uppercase()
        });
    }
    name
}

/// FNV-1a, as `src/tables.rs` has it.
fn hash_text(text: &[u8]) -> u32 {
    let mut hash = 0x811c_9dc5u32;
    for &byte in text {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    hash ^ (hash >> 15)
}
