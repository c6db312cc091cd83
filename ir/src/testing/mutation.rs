//! Small changes of texts: what reads one has to read or refuse the other, and never panics.

use super::Rng;

/// Pieces that mean something somewhere in a text of the IR, or nothing anywhere.
pub const PIECES: &[&str] = &[
    "%",
    "@",
    "\"",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ",",
    ":",
    "=",
    "->",
    "-",
    "+",
    "!",
    "|",
    ";",
    "\n",
    " ",
    "\\",
    "i32",
    "i1",
    "i129",
    "ptr",
    "ptr<",
    "<4 x i32>",
    "{ i8, i64 }",
    "0",
    "-1",
    "1e999",
    "0x",
    "0f7FC00000",
    "nan",
    "poison",
    "zero",
    "splat(",
    "true",
    "99999999999999999999999999999999999999999",
    "align 4",
    "scope(cta)",
    "loc(1, 1, 1)",
    "ptx.",
    "ptx.@",
    "add",
    "br",
    "switch",
    "call",
    "ret",
    "gep",
    "load",
    "sreg.tid.x",
    "kernel @x(",
    "func",
    "declare",
    "type %T =",
    "global @g:",
    "byval(",
    "é",
    "\u{0}",
    "::",
    "L2::128B",
    "_",
    "..",
    "$",
    "block0",
    "unroll(4)",
    "0h",
    "asm",
    "weak",
];

/// Changes one to four places of a text: pieces of it are dropped, repeated and exchanged, pieces of another text and of
/// the lists are put in. What comes out need not be UTF-8.
pub fn mutate(rng: &mut Rng, text: &[u8], other: &[u8], pieces: &[&[&str]]) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for _ in 0..1 + rng.below(4) {
        let at = rng.below(bytes.len() + 1);
        let end = (at + rng.below(30)).min(bytes.len());
        match rng.below(16) {
            0 | 1 => drop(bytes.drain(at..end)),
            2 | 3 => {
                let copy = bytes[at..end].to_vec();
                let to = rng.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            4 | 5 => {
                let from = rng.below(other.len());
                let piece = &other[from..(from + rng.below(40)).min(other.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
            6..=8 => lines(rng, &mut bytes),
            9 | 10 => {
                // Digits are registers, sizes and offsets.
                if let Some(byte) = bytes.iter_mut().skip(at).find(|byte| byte.is_ascii_digit()) {
                    *byte = b'0' + rng.below(10) as u8;
                }
            }
            11 if at < bytes.len() => bytes[at] = rng.bits() as u8,
            12 if rng.once_in(4) => bytes.truncate(at),
            _ => {
                let list = rng.pick(pieces).copied().unwrap_or_default();
                let piece = rng.pick(list).copied().unwrap_or_default();
                bytes.splice(at..if rng.once_in(2) { at } else { end }, piece.bytes());
            }
        }
    }
    bytes
}

/// Swaps, repeats or drops lines.
fn lines(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    if lines.is_empty() {
        return;
    }
    let (a, b) = (rng.below(lines.len()), rng.below(lines.len()));
    match rng.below(3) {
        0 => lines.swap(a, b),
        1 => drop(lines.remove(a)),
        _ => lines.insert(b, lines[a]),
    }
    *bytes = lines.concat();
}
