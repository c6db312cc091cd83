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
    Lop3Tested "lop3.tested" "src/lower/network/tested.rs" "Logic compared with zero, joined with another condition.";
    Lop3Halves "lop3.halves" "src/lower/network/emit.rs" "Tables for the halves of 64 bits.";
    PrmtWord "prmt.word" "src/lower/network/emit.rs" "Bytes that are a word as it stands.";
    Prmt "prmt" "src/lower/network/emit.rs" "Bytes of two words.";
    PrmtSteps "prmt.steps" "src/lower/network/emit.rs" "Bytes that take several arrangements.";
    PrmtHalves "prmt.halves" "src/lower/network/emit.rs" "Bytes of 64 bits, by halves.";
    Dp4aUnsigned "dp4a.unsigned" "src/lower/network/emit.rs" "Sums of products of unsigned bytes.";
    Dp4aSigned "dp4a.signed" "src/lower/network/emit.rs" "Sums of products of signed bytes.";
    Dp4aMixed "dp4a.mixed" "src/lower/network/emit.rs" "Sums of products of signed and unsigned bytes.";
    Dp4aBytes "dp4a.bytes" "src/lower/network/emit.rs" "Sums of bytes, as of products with one.";
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
    AddressStackOffset "address.stack_offset" "src/lower/frame.rs" "The offset of an object in the frame is added by the accesses behind an index.";
    StackShared "stack.shared" "src/lower/frame.rs" "Objects of the stack that are never alive together lie in one place.";
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
    ReduxMagnitude "redux.magnitude" "src/lower/threads.rs" "A reduction of f32 over a warp takes magnitudes itself.";
    CvtPacked "cvt.packed" "src/lower/bundles.rs" "A conversion between pairs.";
    // Legalization.
    LegalAtomicNegated "legal.atomic_negated" "src/legalize/atomics.rs" "An atomic difference adds what is negated.";
    LegalAtomicSplit "legal.atomic_split" "src/legalize/atomics.rs" "An atomic operation on a vector, element by element.";
    LegalAtomicLoop "legal.atomic_loop" "src/legalize/atomics.rs" "An atomic operation as a loop of exchanges.";
    LegalAtomicWord "legal.atomic_word" "src/legalize/atomics.rs" "An atomic operation on a part of a word, as a loop on the word.";
    LegalExchangeWord "legal.cmpxchg_word" "src/legalize/atomics.rs" "An exchange of a part of a word.";
    LegalJoinBytes "legal.join_bytes" "src/legalize/bits.rs" "Bytes put together by permutation.";
    LegalJoinShifts "legal.join_shifts" "src/legalize/bits.rs" "Pieces put together by shifts.";
    LegalBytesDistance "legal.bytes_distance" "src/legalize/byte_words.rs" "The greater of four bytes less the smaller.";
    LegalBytesExtreme "legal.bytes_extreme" "src/legalize/byte_words.rs" "Least and greatest of four bytes by pairs.";
    LegalBytesQuad "legal.bytes_quad" "src/legalize/byte_words.rs" "Four bytes by one instruction.";
    LegalBytesLogic "legal.bytes_logic" "src/legalize/byte_words.rs" "Logic on four bytes as on a word.";
    LegalBytesSum "legal.bytes_sum" "src/legalize/byte_words.rs" "Sums and differences of four bytes as of a word.";
    LegalBytesShift "legal.bytes_shift" "src/legalize/byte_words.rs" "Four bytes shifted as a word.";
    LegalBytesTruncated "legal.bytes_truncated" "src/legalize/byte_words.rs" "Shorts to bytes by permutation.";
    LegalBytesExtended "legal.bytes_extended" "src/legalize/byte_words.rs" "Bytes to shorts by permutation.";
    CarryChain "carry.chain" "src/legalize/carry.rs" "Sums of limbs with the condition code.";
    CarryOut "carry.out" "src/legalize/carry.rs" "What the last limb of such a chain carries.";
    MaskBehindShift "mask.behind_shift" "src/legalize/moved_masks.rs" "A mask before a shift goes behind it, into logic.";
    SumOfParts "parts.sum" "src/legalize/moved_masks.rs" "Parts without a common bit, one shifted up, are added.";
    MaskAmount "mask.amount" "src/legalize/moved_masks.rs" "The mask of a multiple that is an amount.";
    BytesFrom "bytes.from" "src/legalize/moved_masks.rs" "A shift by a number of bytes, by permutation.";
    FmaProducts "fma.products" "src/legalize/contract.rs" "A product that all sums which use it take in.";
    FieldsMoved "fields.moved" "src/legalize/bit_fields.rs" "Bit fields put together, each moved at once.";
    NarrowWord "narrow.word" "src/legalize/narrow_words.rs" "A word of logic and shifts of 64 bits, computed from words.";
    NarrowProduct "narrow.product" "src/legalize/narrow_words.rs" "A product of 64 bits of numbers that fit words.";
    PackClamped "pack.clamped" "src/legalize/clamped_packs.rs" "Clamped words put together by `cvt.pack.sat`.";
    LegalReduxLoop "legal.redux_loop" "src/legalize/control.rs" "A reduction over some lanes, lane by lane.";
    LegalReduxButterfly "legal.redux_butterfly" "src/legalize/convergent.rs" "A reduction over the warp by exchanges.";
    LegalElectLowest "legal.elect_lowest" "src/legalize/convergent.rs" "The lowest lane is elected.";
    LegalExchangeWords "legal.shuffle_words" "src/legalize/convergent.rs" "A value other than a word is exchanged by words.";
    LegalMatchPieces "legal.match_pieces" "src/legalize/convergent.rs" "Values match when their pieces do.";
    LegalFloatToWide "legal.float_to_wide" "src/legalize/convert.rs" "A float as an integer of more than 64 bits.";
    LegalWideToFloat "legal.wide_to_float" "src/legalize/convert.rs" "An integer of more than 64 bits as a float.";
    LegalPackedTruncation "legal.packed_truncation" "src/legalize/convert.rs" "Floats to halves, two at a time.";
    LegalFloatClass "legal.fclass" "src/legalize/float_class.rs" "Classes of floats by comparisons of their bits.";
    LegalRelu "legal.relu" "src/legalize/float_ops.rs" "Negative results become zero by a selection.";
    LegalRemainder "legal.remainder" "src/legalize/float_ops.rs" "A remainder of floats by a function or a product.";
    LegalRoundAway "legal.round_away" "src/legalize/float_ops.rs" "Rounding halves away from zero.";
    LegalTanh "legal.tanh" "src/legalize/float_ops.rs" "A hyperbolic tangent by a power.";
    LegalFlushHalf "legal.flush_half" "src/legalize/float_ops.rs" "Subnormal halves become zero.";
    LegalBf16ByFma "legal.bf16_by_fma" "src/legalize/float_ops.rs" "Sums and products of bf16 as fused ones.";
    LegalHalfFma "legal.half_fma" "src/legalize/float_ops.rs" "A fused sum of halves in f64.";
    LegalRoundToOdd "legal.round_to_odd" "src/legalize/float_ops.rs" "A result rounded to odd, to be rounded again.";
    LegalFloatCompare "legal.fcmp" "src/legalize/float_ops.rs" "A comparison of halves as f32.";
    LegalRoundBits "legal.round_bits" "src/legalize/float_ops.rs" "An f32 rounded to fewer bits by integers.";
    LegalConvertSaturating "legal.cvt_saturating" "src/legalize/float_ops.rs" "A saturating conversion and a selection on NaN.";
    LegalIntegerToBf16 "legal.integer_to_bf16" "src/legalize/float_ops.rs" "An integer as bf16 through f32.";
    LegalNanWins "legal.nan_wins" "src/legalize/float_ops.rs" "The least or greatest, or NaN by a selection.";
    LegalRsqrt "legal.rsqrt" "src/legalize/float_ops.rs" "The reciprocal of a root.";
    LegalSaturate "legal.saturate" "src/legalize/float_ops.rs" "A result clamped to 0 and 1.";
    LegalHalfBySingle "legal.half_by_single" "src/legalize/float_ops.rs" "An operation on halves as one on f32.";
    LegalShort "legal.short" "src/legalize/int_ops.rs" "An operation on 16 bits in 32.";
    LegalFunnel64 "legal.funnel64" "src/legalize/int_ops.rs" "A funnel shift of 64 bits by words.";
    LegalCarryless "legal.clmul" "src/legalize/int_ops.rs" "A product without carries, bit by bit.";
    LegalSaturating "legal.saturating" "src/legalize/int_ops.rs" "Saturation by what fits, or by overflow.";
    LegalOverflow "legal.overflow" "src/legalize/int_ops.rs" "Overflow by a comparison or the upper half.";
    LegalPieces "legal.pieces" "src/legalize/memory.rs" "An access that is several.";
    LegalCopyStraight "legal.copy_straight" "src/legalize/memory_intrinsics.rs" "Memory copied or filled by a row of accesses.";
    LegalCopyLoop "legal.copy_loop" "src/legalize/memory_intrinsics.rs" "Memory copied or filled by a loop.";
    LegalNarrowPairs "legal.narrow_pairs" "src/legalize/narrow_float.rs" "Floats to narrow formats in pairs.";
    LegalNarrowNibbles "legal.narrow_nibbles" "src/legalize/narrow_float.rs" "Floats to four bits.";
    LegalExtendNibbles "legal.extend_nibbles" "src/legalize/narrow_float.rs" "Floats of four bits to halves.";
    LegalExtendScales "legal.extend_scales" "src/legalize/narrow_float.rs" "Scale factors of eight bits to bf16.";
    LegalEncode "legal.encode" "src/legalize/narrow_float.rs" "A float to a narrow format by its bits.";
    LegalDecode "legal.decode" "src/legalize/narrow_float.rs" "A narrow format to a float by its bits.";
    LegalNarrowUnary "legal.narrow_unary" "src/legalize/narrow_int.rs" "An operation of one operand on odd widths, in a wider number.";
    LegalNarrowBinary "legal.narrow_binary" "src/legalize/narrow_int.rs" "An operation of two operands on odd widths, in a wider number.";
    LegalNarrowHighProduct "legal.narrow_high_product" "src/legalize/narrow_int.rs" "The upper half of a product of odd widths.";
    LegalNarrowSaturating "legal.narrow_saturating" "src/legalize/narrow_int.rs" "Saturation at an odd width.";
    LegalNarrowOverflow "legal.narrow_overflow" "src/legalize/narrow_int.rs" "Overflow of an odd width.";
    LegalNarrowFunnel "legal.narrow_funnel" "src/legalize/narrow_int.rs" "A funnel shift of odd widths.";
    LegalNarrowCompare "legal.narrow_compare" "src/legalize/narrow_int.rs" "A comparison of odd widths.";
    LegalPredicateUnary "legal.predicate_unary" "src/legalize/predicates.rs" "Arithmetic of one operand on single bits.";
    LegalPredicateBinary "legal.predicate_binary" "src/legalize/predicates.rs" "Arithmetic of two operands on single bits.";
    LegalPredicateOverflow "legal.predicate_overflow" "src/legalize/predicates.rs" "Overflow of single bits.";
    LegalPredicateCompare "legal.predicate_compare" "src/legalize/predicates.rs" "A comparison of single bits.";
    LegalShortSum "legal.short_sum" "src/legalize/short_pairs.rs" "Sums and differences of 16-bit pairs by words.";
    LegalShortProduct "legal.short_product" "src/legalize/short_pairs.rs" "Products of 16-bit pairs by words.";
    LegalShortHighProduct "legal.short_high_product" "src/legalize/short_pairs.rs" "Upper halves of products of 16-bit pairs.";
    LegalShortExtreme "legal.short_extreme" "src/legalize/short_pairs.rs" "Least and greatest of 16-bit pairs by words.";
    LegalShortShift "legal.short_shift" "src/legalize/short_pairs.rs" "Shifts of 16-bit pairs by words.";
    LegalShortCompare "legal.short_compare" "src/legalize/short_pairs.rs" "Comparisons of 16-bit pairs by words.";
    LegalShortDifference "legal.short_difference" "src/legalize/short_pairs.rs" "A difference of 16-bit pairs by the packed sum.";
    LegalShortSaturating "legal.short_saturating" "src/legalize/short_pairs.rs" "Saturation of unsigned 16-bit pairs by what fits.";
    LegalShortFunnel "legal.short_funnel" "src/legalize/short_pairs.rs" "A funnel shift of 16-bit pairs by words.";
    LegalShortSelect "legal.short_select" "src/legalize/short_pairs.rs" "Words are selected for each lane of a pair.";
    LegalStochastic "legal.stochastic" "src/legalize/stochastic.rs" "Rounding by random bits as sums of integers.";
    LegalStochasticPair "legal.stochastic_pair" "src/legalize/stochastic.rs" "Two numbers rounded by random bits at once.";
    LegalStochasticQuad "legal.stochastic_quad" "src/legalize/stochastic.rs" "Four numbers rounded by random bits at once.";
    LegalPairs "legal.pairs" "src/legalize/types.rs" "A float operation on a long vector, a pair of lanes at a time.";
    LegalSwitchWide "legal.switch_wide" "src/legalize/types.rs" "A switch on more than 64 bits.";
    LegalLanes "legal.lanes" "src/legalize/types.rs" "A vector's lanes computed one by one.";
    LegalExtract "legal.extract" "src/legalize/vectors.rs" "A lane is picked by the bits of its number.";
    LegalInsert "legal.insert" "src/legalize/vectors.rs" "A lane is put in where its number is.";
    LegalReduceOrdered "legal.reduce_ordered" "src/legalize/vectors.rs" "Lanes are folded from the first to the last.";
    LegalReduceTree "legal.reduce_tree" "src/legalize/vectors.rs" "Lanes are folded two by two.";
    LegalWideSum "legal.wide_sum" "src/legalize/wide_int.rs" "A sum of limbs.";
    LegalWideDifference "legal.wide_difference" "src/legalize/wide_int.rs" "A difference of limbs.";
    LegalWideProduct "legal.wide_product" "src/legalize/wide_int.rs" "A product of limbs.";
    LegalWideCarryless "legal.wide_clmul" "src/legalize/wide_int.rs" "A product without carries of limbs.";
    LegalWideHighProduct "legal.wide_high_product" "src/legalize/wide_int.rs" "The upper half of a product of limbs.";
    LegalWideLogic "legal.wide_logic" "src/legalize/wide_int.rs" "Logic on limbs.";
    LegalWideShift "legal.wide_shift" "src/legalize/wide_int.rs" "A shift of limbs.";
    LegalWideCompare "legal.wide_compare" "src/legalize/wide_int.rs" "A comparison of limbs.";
    LegalWideUnary "legal.wide_unary" "src/legalize/wide_int.rs" "Counts, magnitudes and orders of bits of limbs.";
    LegalWideDivision "legal.wide_division" "src/legalize/wide_int.rs" "A division of limbs, by a function.";
    LegalWideSaturating "legal.wide_saturating" "src/legalize/wide_int.rs" "Saturation of limbs.";
    LegalWideOverflow "legal.wide_overflow" "src/legalize/wide_int.rs" "Overflow of limbs.";
    LegalWideFunnel "legal.wide_funnel" "src/legalize/wide_int.rs" "A funnel shift of limbs.";
    LegalWideSquare "legal.wide_square" "src/legalize/wide_int.rs" "A square of limbs.";
    LegalWideExtreme "legal.wide_extreme" "src/legalize/wide_int.rs" "Least and greatest of limbs.";
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
