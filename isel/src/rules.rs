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
    Dp2aUnsigned "dp2a.unsigned" "src/lower/network/emit.rs" "Sums of products of unsigned halves and bytes.";
    Dp2aSigned "dp2a.signed" "src/lower/network/emit.rs" "Sums of products of signed halves and bytes.";
    Dp2aMixed "dp2a.mixed" "src/lower/network/emit.rs" "Sums of products of halves and bytes of which one is signed.";
    Dp2aHigh "dp2a.high" "src/lower/network/emit.rs" "Such a sum with the upper bytes of a word.";
    Dp4aChain "dp4a.chain" "src/lower/network/emit.rs" "Sums of more than one such instruction.";
    Dp4aProduct "dp4a.product" "src/lower/network/emit.rs" "Sums with a product beside those of bytes.";
    SadBytes "sad.bytes" "src/lower/network/emit.rs" "Sums of absolute differences of bytes.";
    LoadExtended "load.extended" "src/lower/memory.rs" "A load that extends what it reads.";
    LoadReadOnly "load.read_only" "src/lower/memory.rs" "A load of what nobody writes in the kernel goes past the coherent cache.";
    AccessVector "access.vector" "src/lower/memory.rs" "Several registers in one access.";
    AccessVector256 "access.vector_256" "src/lower/memory.rs" "The same of 256 bits.";
    AccessWhole128 "access.whole_128" "src/lower/memory.rs" "An access of 128 bits that is atomic as a whole.";
    AccessHinted "access.hinted" "src/lower/memory.rs" "A cache operator, or hints for the caches.";
    AccessHintLeftOut "access.hint_left_out" "src/lower/memory.rs" "Hints that the target or the form has not.";
    StoreImmediate "store.immediate" "src/lower/memory.rs" "A constant that is stored needs no register.";
    StoreLowByte "store.low_byte" "src/lower/memory.rs" "The low byte of a wider register is stored.";
    AddressOffset "address.offset" "src/lower/address.rs" "A register and a constant in the brackets.";
    AddressSymbol "address.symbol" "src/lower/address.rs" "A variable, and a constant, in the brackets.";
    AddressStack "address.stack" "src/lower/address.rs" "A place of the frame in the brackets.";
    AddressParameter "address.parameter" "src/lower/address.rs" "A place of a parameter in the brackets.";
    AddressSpace "address.space" "src/lower/address.rs" "A cast to generic addresses that the access does without.";
    IndexWide "index.wide" "src/lower/address.rs" "An index of 32 bits is extended by the product that scales it.";
    IndexShifted "index.shifted" "src/lower/address.rs" "An index of 64 bits is scaled by a shift.";
    IndexMultiplied "index.multiplied" "src/lower/address.rs" "An index of 64 bits is scaled and added by one product.";
    AtomicReduction "atomic.reduction" "src/lower/atomics.rs" "An atomic operation whose result nobody reads.";
    AtomicNegated "atomic.negated" "src/lower/atomics.rs" "An atomic subtraction adds what is negated.";
    AtomicUnflushed "atomic.unflushed" "src/lower/atomics.rs" "Halves are added without flushing.";
    AtomicPair "atomic.pair" "src/lower/atomics.rs" "Two halves are added in one register.";
    AtomicVector "atomic.vector" "src/lower/atomics.rs" "Several registers in one atomic operation.";
    AtomicHinted "atomic.hinted" "src/lower/atomics.rs" "An atomic operation with a cache policy.";
    BranchNegated "branch.negated" "src/lower/control.rs" "A branch on a negated condition.";
    BranchKnown "branch.known" "src/lower/control.rs" "A branch on a constant.";
    BranchUniform "branch.uniform" "src/lower/control.rs" "A branch that is said to be uniform.";
    SwitchTable "switch.table" "src/lower/switch.rs" "A switch by a table of targets.";
    SwitchTableWhole "switch.table_whole" "src/lower/switch.rs" "The same where no other number occurs.";
    SwitchTree "switch.tree" "src/lower/switch.rs" "A switch by halving its numbers.";
    SwitchCompare "switch.compare" "src/lower/switch.rs" "Numbers compared one after the other.";
    SwitchRange "switch.range" "src/lower/switch.rs" "Neighbouring numbers that lead to one place.";
    SwitchBits "switch.bits" "src/lower/switch.rs" "A bit of a constant for each number that leads to one place.";
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
