//! The rules of selection by name: what remarks speak of and tests ask for.
//!
//! A rule of `isel/rules/` has the name that stands behind `rule` there; the build makes the table of them. Patterns that
//! are found in Rust, before the rules are asked, are listed here.

use ptxc_ir::{FuncId, Inst};

/// A rule of selection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Its name, unique among all.
    pub name: &'static str,
    /// The file that it stands in, below `isel/`.
    pub file: &'static str,
    /// Its line there; 0 where the file has no single place for it.
    pub line: u32,
}

/// A rule was applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remark {
    /// The function.
    pub func: FuncId,
    /// The instruction that it selected; none where it belongs to no instruction of the IR.
    pub inst: Option<Inst>,
    /// The rule.
    pub rule: &'static Rule,
}

/// Every rule: those of `isel/rules/` in the order of files and lines, then the patterns.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    RULES.iter().chain(PATTERNS)
}

include!(concat!(env!("OUT_DIR"), "/rule_names.rs"));

macro_rules! patterns {
    ($($name:ident $text:literal $file:literal $what:literal;)*) => {
        /// Patterns that are found in Rust.
        static PATTERNS: &[Rule] = &[$(Rule { name: $text, file: $file, line: 0 }),*];

        /// The number of each pattern.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Pattern { $(#[doc = $what] $name),* }

        impl Pattern {
            /// The pattern as a rule.
            pub(crate) fn rule(self) -> &'static Rule {
                &PATTERNS[self as usize]
            }
        }
    };
}

patterns! {
    Lop3 "lop3" "src/lower/network/emit.rs" "One table of three inputs.";
    Lop3OfTwo "lop3.of_two" "src/lower/network/emit.rs" "One table of one or two inputs.";
    Lop3Twice "lop3.twice" "src/lower/network/emit.rs" "Two tables of four or five inputs.";
    Lop3Halves "lop3.halves" "src/lower/network/emit.rs" "Tables for the halves of 64 bits.";
    PrmtWord "prmt.word" "src/lower/network/emit.rs" "Bytes that are a word as it stands.";
    Prmt "prmt" "src/lower/network/emit.rs" "Bytes of two words.";
    PrmtSteps "prmt.steps" "src/lower/network/emit.rs" "Bytes that take several arrangements.";
    PrmtHalves "prmt.halves" "src/lower/network/emit.rs" "Bytes of 64 bits, by halves.";
    Dp4aUnsigned "dp4a.unsigned" "src/lower/network/emit.rs" "Sums of products of unsigned bytes.";
    Dp4aSigned "dp4a.signed" "src/lower/network/emit.rs" "Sums of products of signed bytes.";
    Dp4aMixed "dp4a.mixed" "src/lower/network/emit.rs" "Sums of products of signed and unsigned bytes.";
    Dp4aChain "dp4a.chain" "src/lower/network/emit.rs" "Sums of more than one such instruction.";
    Dp4aProduct "dp4a.product" "src/lower/network/emit.rs" "Sums with a product beside those of bytes.";
    SadBytes "sad.bytes" "src/lower/network/emit.rs" "Sums of absolute differences of bytes.";
    LoadExtended "load.extended" "src/lower/memory.rs" "A load that extends what it reads.";
    CvtPacked "cvt.packed" "src/lower/bundles.rs" "A conversion between pairs.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_say_where_rules_stand() {
        let mut names: Vec<&str> = all().map(|rule| rule.name).collect();
        assert!(names.len() > 200, "{}", names.len());
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        let mad = all().find(|rule| rule.name == "mad.left").unwrap();
        let text = std::fs::read_to_string(mad.file).unwrap();
        let line = text.lines().nth(mad.line as usize - 1).unwrap();
        assert!(line.starts_with("(rule mad.left "), "{line}");
        assert_eq!(Pattern::CvtPacked.rule().name, "cvt.packed");
    }
}
