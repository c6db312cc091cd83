//! Recorded results as text, and the comparison with them.
//!
//! ```text
//! gpu NVIDIA H200, compute capability 9.0
//! case f32,f32 4096 1f9a3c
//! add.rn.f32 | 0a1b2c3d4e5f | 0 7f800000
//! ```
//!
//! A case begins with the kinds of its operands, the number of items and a hash of the operands. A variant is a line:
//! its text without operands; hashes of the results, six digits a block; the results of the items that are shown,
//! several results of one item joined by `,`. Lines of approximations end in ` | ` and the largest error found.

use std::fmt::Write as _;

use crate::Inputs;
use crate::row::{Case, Language};

/// Most items in a block with a hash of its own.
const BLOCK_ITEMS: usize = 8192;
/// Fewest blocks, where there are as many items.
const BLOCKS: usize = 4;

/// What distinguishes a variant: its text without operands.
pub fn key(variant: &str) -> String {
    let words = variant.split([' ', ',']).filter(|w| !w.is_empty() && !w.starts_with('%'));
    let words: Vec<&str> = words.map(|w| w.trim_end_matches(';')).collect();
    words.join(" ")
}

/// A hash of 24 bits.
fn hash(values: impl IntoIterator<Item = u64>) -> u32 {
    let mut h = 0x243f_6a88_85a3_08d3u64;
    for value in values {
        h = (h ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        h ^= h >> 29;
    }
    (h.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as u32
}

/// Items of a block.
fn block_items(items: usize) -> usize {
    items.div_ceil(BLOCKS).clamp(1, BLOCK_ITEMS)
}

/// The results of one variant: those of result `r` and item `i` at `r * items + i`.
#[derive(Clone, Copy, Debug)]
pub struct Results<'a> {
    /// All results.
    pub values: &'a [u64],
    /// Number of items.
    pub items: usize,
}

impl Results<'_> {
    /// The results of an item.
    fn item(&self, index: usize) -> impl Iterator<Item = u64> + '_ {
        self.values.iter().skip(index).step_by(self.items.max(1)).copied()
    }

    fn hashes(&self) -> Vec<u32> {
        let size = block_items(self.items);
        let count = self.values.len() / self.items.max(1);
        let starts = (0..self.items).step_by(size);
        let block = |start: usize| {
            let end = (start + size).min(self.items);
            let parts = (0..count).map(move |r| r * self.items + start..r * self.items + end);
            hash(parts.flat_map(|range| self.values.get(range).unwrap_or_default()).copied())
        };
        starts.map(block).collect()
    }
}

/// What of results is recorded and compared: which NaN an operation of the IR gives is open.
pub fn settle(case: &Case, inputs: &Inputs, values: &mut [u64]) {
    if case.language == Language::Ir {
        for (chunk, result) in values.chunks_mut(inputs.len().max(1)).zip(case.results.iter().cycle()) {
            chunk.iter_mut().for_each(|value| *value = result.kind.settle_nan(*value));
        }
    }
}

/// Cuts the results of a kernel into its variants'.
pub fn split<'a>(case: &Case, inputs: &Inputs, values: &'a [u64]) -> impl Iterator<Item = Results<'a>> {
    let items = inputs.len();
    values.chunks(items * case.results.len().max(1)).map(move |values| Results { values, items })
}

/// The line that begins a case.
fn head(case: &Case, inputs: &Inputs) -> String {
    let all = hash(inputs.columns.iter().flatten().copied());
    format!("case {} {} {all:06x}", case.signature(), inputs.len())
}

/// Writes the results of a case. `errors` gives the largest error of each variant, of approximations.
pub fn write(out: &mut String, case: &Case, inputs: &Inputs, values: &[u64], errors: Option<&[f64]>) {
    out.push_str(&head(case, inputs));
    out.push('\n');
    for (index, (variant, results)) in case.variants.iter().zip(split(case, inputs, values)).enumerate() {
        out.push_str(&key(variant));
        out.push_str(" | ");
        for hash in results.hashes() {
            // Writing to a string does not fail.
            let _ = write!(out, "{hash:06x}");
        }
        out.push_str(" |");
        for item in if errors.is_some() { &inputs.points } else { &inputs.shown } {
            out.push(' ');
            out.push_str(&digits(results.item(*item)));
        }
        if let Some(error) = errors.and_then(|e| e.get(index)) {
            let _ = write!(out, " | {error:.3}");
        }
        out.push('\n');
    }
}

fn digits(values: impl Iterator<Item = u64>) -> String {
    let words: Vec<String> = values.map(|v| format!("{v:x}")).collect();
    words.join(",")
}

/// A variant as recorded.
#[derive(Clone, PartialEq, Debug)]
pub struct Recorded {
    /// One a block.
    hashes: Vec<u32>,
    /// Results of the items that are shown; of [`Inputs::points`] where there is an error.
    pub shown: Vec<Vec<u64>>,
    /// Largest error of an approximation.
    pub error: Option<f64>,
}

/// The recorded results of a family.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The GPU.
    pub gpu: String,
    /// Each head with the keys of its variants.
    cases: Vec<(String, Vec<(String, Recorded)>)>,
}

/// How results differ from recorded ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Difference {
    /// Nothing is recorded of these operands or this variant.
    Missing,
    /// An item that is recorded as it is.
    Item {
        /// Its index.
        index: usize,
        /// Its results here.
        here: String,
        /// Its recorded results.
        recorded: String,
    },
    /// Only hashes differ: the blocks of items, of how many.
    Blocks {
        /// The first item of each block.
        starts: Vec<usize>,
        /// Items of a block.
        items: usize,
        /// Blocks.
        count: usize,
    },
}

impl Recording {
    /// Reads recorded results.
    ///
    /// # Errors
    /// Names the line that is no such text.
    pub fn read(text: &str) -> Result<Recording, String> {
        let mut recording = Recording::default();
        for (index, line) in text.lines().enumerate() {
            let at = |what: &str| format!("line {}: {what}", index + 1);
            if let Some(gpu) = line.strip_prefix("gpu ") {
                recording.gpu = gpu.to_owned();
            } else if line.starts_with("case ") {
                recording.cases.push((line.to_owned(), Vec::new()));
            } else {
                let (_, variants) = recording.cases.last_mut().ok_or_else(|| at("a variant before a case"))?;
                variants.push(variant(line).ok_or_else(|| at("no recorded variant"))?);
            }
        }
        Ok(recording)
    }

    /// True when nothing is recorded.
    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }

    /// What is recorded of a variant.
    pub fn find(&self, case: &Case, inputs: &Inputs, variant: &str) -> Option<&Recorded> {
        let (head, key) = (head(case, inputs), key(variant));
        let cases = self.cases.iter().filter(|(h, _)| *h == head);
        cases.flat_map(|(_, variants)| variants).find(|(k, _)| *k == key).map(|(_, recorded)| recorded)
    }

    /// Compares the results of a variant.
    pub fn compare(&self, case: &Case, inputs: &Inputs, variant: &str, results: Results<'_>) -> Option<Difference> {
        let Some(recorded) = self.find(case, inputs, variant) else { return Some(Difference::Missing) };
        for (index, want) in inputs.shown.iter().zip(&recorded.shown) {
            if !results.item(*index).eq(want.iter().copied()) {
                let (here, recorded) = (digits(results.item(*index)), digits(want.iter().copied()));
                return Some(Difference::Item { index: *index, here, recorded });
            }
        }
        let hashes = results.hashes();
        if hashes == recorded.hashes {
            return None;
        }
        let items = block_items(results.items);
        let pairs = hashes.iter().zip(&recorded.hashes).enumerate();
        let starts = pairs.filter(|(_, (here, there))| here != there).map(|(i, _)| i * items).collect();
        Some(Difference::Blocks { starts, items, count: hashes.len() })
    }
}

/// Reads the line of a variant.
fn variant(line: &str) -> Option<(String, Recorded)> {
    let mut fields = line.split('|').map(str::trim);
    let (key, hashes, shown) = (fields.next()?, fields.next()?, fields.next()?);
    let hash = |digits: &[u8]| std::str::from_utf8(digits).ok().and_then(|h| u32::from_str_radix(h, 16).ok());
    let hashes = hashes.as_bytes().chunks(6).map(hash).collect::<Option<_>>()?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let shown = shown.split_whitespace().map(|item| item.split(',').map(number).collect()).collect::<Option<_>>()?;
    let error = match fields.next() {
        Some(text) => Some(text.parse().ok()?),
        None => None,
    };
    Some((key.to_owned(), Recorded { hashes, shown, error }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row;

    #[test]
    fn what_is_written_is_read_and_differences_are_placed() {
        let case = row::read(Language::Ptx, "setp.<lt gt>.f16 %d:pred|%e:pred, %a:f16, 3;").unwrap().remove(0);
        let inputs = Inputs::of(&[case.sources[0].kind]);
        let items = inputs.len();
        let mut values: Vec<u64> = (0..4 * items).map(|i| (i % 3) as u64).collect();
        let mut text = String::from("gpu none\n");
        write(&mut text, &case, &inputs, &values, None);
        let recording = Recording::read(&text).unwrap();
        let compare = |values: &[u64], variant: usize| {
            let results = split(&case, &inputs, values).nth(variant).unwrap();
            recording.compare(&case, &inputs, &case.variants[variant], results)
        };
        assert_eq!(key(&case.variants[1]), "setp.gt.f16 3");
        assert_eq!(compare(&values, 0), None);
        assert_eq!(compare(&values, 1), None);
        let hidden = (0..).find(|i| !inputs.shown.contains(i)).unwrap();
        values[2 * items + hidden] = 77;
        assert_eq!(compare(&values, 0), None);
        assert_eq!(compare(&values, 1), Some(Difference::Blocks { starts: vec![0], items: 8192, count: 8 }));
        values[3 * items + inputs.shown[1]] = 78;
        assert!(matches!(compare(&values, 1), Some(Difference::Item { index, .. }) if index == inputs.shown[1]));
        let other = recording.compare(&case, &inputs, "other", Results { values: &values, items });
        assert_eq!(other, Some(Difference::Missing));
        let mut text = String::new();
        write(&mut text, &case, &inputs, &values, Some(&[1.5, 2.0]));
        let recording = Recording::read(&text).unwrap();
        let found = recording.find(&case, &inputs, &case.variants[1]).unwrap();
        assert_eq!((found.error, found.shown.len()), (Some(2.0), inputs.points.len()));
    }
}
