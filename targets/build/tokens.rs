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

    /// The number of a piece that was added.
    pub fn number(&self, text: &str) -> u16 {
        self.texts.get(text).copied().unwrap_or(u16::MAX)
    }

    /// The text of the piece with that number.
    pub fn text(&self, number: u16) -> &str {
        self.texts.iter().find(|(_, other)| **other == number).map_or("", |(text, _)| text)
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }

    pub fn write_table(&self, out: &mut String) {
        let mut size = 64;
        while size < self.texts.len() * 3 {
            size *= 2;
        }
        let mut table = vec![u16::MAX; size];
        let _ = writeln!(out, "pub(crate) static TOKENS: [&str; {}] = [", self.texts.len());
        for (text, &number) in &self.texts {
            let _ = writeln!(out, "{text:?},");
            let mut slot = hash_text(text.as_bytes()) as usize & (size - 1);
            while table[slot] != u16::MAX {
                slot = (slot + 1) & (size - 1);
            }
            table[slot] = number;
        }
        let _ = writeln!(out, "];\npub(crate) static TOKEN_HASH: [u16; {size}] = {table:?};");
    }

    /// The type of a piece that names one, and the numbers in its text.
    pub fn write_attributes(&self, types: &BTreeMap<String, u16>, out: &mut String) {
        let of = |text: &String| types.get(text).copied().unwrap_or(u16::MAX);
        let kinds: Vec<u16> = self.texts.keys().map(of).collect();
        let _ = writeln!(out, "pub(crate) static TOKEN_TYPE: &[u16] = &{kinds:?};");
        let numbers: Vec<u16> = self.texts.keys().map(|text| first_number(text)).collect();
        let _ = writeln!(out, "pub(crate) static TOKEN_NUMBER: &[u16] = &{numbers:?};");
        let shapes: Vec<[u16; 3]> =
            self.texts.keys().map(|text| ['m', 'n', 'k'].map(|side| shape(text, side))).collect();
        let _ = writeln!(out, "pub(crate) static TOKEN_SHAPE: &[[u16; 3]] = &{shapes:?};");
    }

    pub fn constants(&self) -> String {
        let mut out = String::from("use super::Tok;\n");
        for (text, number) in &self.texts {
            let _ = writeln!(out, "/// `.{text}`\npub const {}: Tok = Tok({number});", constant_name(text));
        }
        out
    }
}

/// The first number in a text, or 0.
fn first_number(text: &str) -> u16 {
    let start = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
    let digits = &text[start..];
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().unwrap_or(0)
}

/// One side of a shape `m16n8k32`, or 0.
fn shape(text: &str, side: char) -> u16 {
    text.find(side).map_or(0, |at| {
        let digits = &text[at + 1..];
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().unwrap_or(0)
    })
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
        name.push(if part == ':' { '_' } else { part.to_ascii_uppercase() });
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
