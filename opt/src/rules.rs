//! The rules of the passes that replace single instructions, by name: what remarks speak of and tests ask for.

use std::cell::RefCell;

use ptxc_ir::{Inst, Value};

/// What a rule replaces an instruction's result by.
pub(crate) type Found = (Rule, Value);

/// Rules that were applied to a function, with the instruction that each was applied to.
#[derive(Debug, Default)]
pub struct Remarks {
    list: RefCell<Vec<(Inst, Rule)>>,
}

impl Remarks {
    /// A rule is applied to an instruction.
    pub(crate) fn note(&self, inst: Inst, rule: Rule) {
        self.list.borrow_mut().push((inst, rule));
    }

    /// What was applied, in order.
    pub fn into_list(self) -> Vec<(Inst, Rule)> {
        self.list.into_inner()
    }
}

macro_rules! rules {
    ($($name:ident $text:literal $what:literal;)*) => {
        /// A rule.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Rule { $(#[doc = $what] $name),* }

        impl Rule {
            /// Every rule.
            pub const ALL: &[Rule] = &[$(Rule::$name),*];

            /// Its name, unique among all.
            pub fn name(self) -> &'static str {
                match self { $(Rule::$name => $text),* }
            }
        }
    };
}

rules! {
    // Identities (`identities.rs`).
    ZeroLeft "fold.zero_left" "0 + b, 0 | b, 0 ^ b.";
    ZeroRight "fold.zero_right" "a + 0, a - 0, a | 0, a ^ 0, shifts by 0.";
    UmaxZeroRight "fold.umax_zero_right" "umax a, 0.";
    UmaxZeroLeft "fold.umax_zero_left" "umax 0, b.";
    OnesLeft "fold.ones_left" "-1 & b, umin -1, b.";
    OnesRight "fold.ones_right" "a & -1, umin a, -1.";
    SameOperands "fold.same_operands" "a & a, a | a, minima and maxima of a and a.";
    SameCancel "fold.same_cancel" "a - a, a ^ a.";
    OneLeft "fold.one_left" "1 * b.";
    OneRight "fold.one_right" "a * 1, a / 1.";
    ZeroAbsorbs "fold.zero_absorbs" "0 and anything in `and`, `mul`, `umin`.";
    ShiftedZero "fold.shifted_zero" "0 shifted.";
    RemainderOfOne "fold.remainder_of_one" "a % 1.";
    FloatMinusZeroRight "fold.float_minus_zero_right" "a + -0.0.";
    FloatMinusZeroLeft "fold.float_minus_zero_left" "-0.0 + b.";
    FloatSubZero "fold.float_sub_zero" "a - 0.0.";
    FloatOneRight "fold.float_one_right" "a * 1.0, a / 1.0.";
    FloatOneLeft "fold.float_one_left" "1.0 * b.";
    SelectSame "fold.select_same" "A choice of equal values.";
    SelectKnown "fold.select_known" "A choice by a constant.";
    CompareSame "fold.compare_same" "A comparison of a value with itself.";
    GepZero "fold.gep_zero" "An address that is the base.";
    GepSymbol "fold.gep_symbol" "A constant offset of a symbol.";
    SameType "fold.same_type" "A bitcast to the type itself.";
    CastBack "fold.cast_back" "A bitcast of a bitcast to the type that it was.";
    ExtractBeyond "fold.extract_beyond" "A lane that is not there.";
    ExtractConstant "fold.extract_constant" "A lane of a constant.";
    ExtractVector "fold.extract_vector" "A lane of a vector that is put together.";
    ExtractSplat "fold.extract_splat" "A lane of a splat.";

    // Combinations (`combine_instructions/`).
    ConstantLast "combine.constant_last" "The constant of a commutative operation is the second operand.";
    ProvedFlags "combine.proved_flags" "Promises that known bits keep.";
    KnownBits "combine.known_bits" "A result all of whose bits are known.";
    AndKeepsLeft "combine.and_keeps_left" "A mask that keeps every bit that can be one.";
    AndKeepsRight "combine.and_keeps_right" "The same with the mask first.";
    OrKeepsLeft "combine.or_keeps_left" "Bits that are set already.";
    OrKeepsRight "combine.or_keeps_right" "The same with the set bits second.";
    UminLeft "combine.umin_left" "The left operand is never larger.";
    UminRight "combine.umin_right" "The right operand is never larger.";
    UmaxLeft "combine.umax_left" "The left operand is never smaller.";
    UmaxRight "combine.umax_right" "The right operand is never smaller.";
    XorDisjoint "combine.xor_disjoint" "`xor` of values without a common bit is `or`.";
    JoinAnd "combine.join_and" "Two masks.";
    JoinOr "combine.join_or" "Two constants set.";
    JoinXor "combine.join_xor" "Two constants inverted.";
    JoinAdd "combine.join_add" "Two constants added.";
    SubConstant "combine.sub_constant" "A constant is added rather than subtracted.";
    MulPower "combine.mul_power" "A 64-bit product by a power of two is a shift.";
    ShiftTwice "combine.shift_twice" "Two shifts in one direction.";
    ShiftUpDown "combine.shift_up_down" "Up and down again is a mask.";
    ShiftDownUp "combine.shift_down_up" "Down and up again is a mask.";
    CountAll "combine.count_all" "A number of ones compared with that of all bits.";
    CompareDecided "combine.compare_decided" "A comparison that ranges or bits decide.";
    SelectNegated "combine.select_negated" "A choice by a negation.";
    SelectOneZero "combine.select_one_zero" "A choice of one and zero is an extension.";
    SelectOnesZero "combine.select_ones_zero" "A choice of all ones and zero is a signed extension.";
    SelectExtreme "combine.select_extreme" "A choice of what is compared is a minimum or maximum.";
    SelectExtremeSwapped "combine.select_extreme_swapped" "The same, the other way around.";
    SelectExtremeLanes "combine.select_extreme_lanes" "The same of vectors, lane by lane.";
    NegatedCompare "combine.negated_compare" "A negated comparison.";
    ExtendedSign "combine.extended_sign" "An extended test of the sign is a shift.";
    ExtendedSignLanes "combine.extended_sign_lanes" "The same of every lane of a vector.";
    TestedBitMask "combine.tested_bit_mask" "A bit field that is moved to be tested.";
    TestedBitShift "combine.tested_bit_shift" "A bit at a variable place, tested.";
    JoinTests "combine.join_tests" "Two values tested for the same.";
    JoinNan "combine.join_nan" "Two numbers tested for NaN.";
    MagnitudeCompare "combine.magnitude_compare" "Bits of a float without the sign, compared.";
    MagnitudeRange "combine.magnitude_range" "The same with two bounds.";
    NanParts "combine.nan_parts" "The exponent of infinity and NaN, and a fraction that is zero or not.";
    JoinUnordered "combine.join_unordered" "A number tested for NaN and compared.";
    ThreeWay "combine.three_way" "The difference of two comparisons that exclude each other.";
    FlagToFloat "combine.flag_to_float" "A flag as a float.";
    SextTruncRange "combine.sext_trunc_range" "Copies of the sign taken away and added again.";
    DivideShifted "combine.divide_shifted" "An unsigned division by one shifted.";
    DivideNarrow "combine.divide_narrow" "A division of 64 bits that needs 32.";
    SextNonnegative "combine.sext_nonnegative" "A signed extension of what is not negative.";
    TruncExtended "combine.trunc_extended" "An extension taken away again.";
    TruncTrunc "combine.trunc_trunc" "Two truncations.";
    ExtendZext "combine.extend_zext" "An extension of one by zeros.";
    SextSext "combine.sext_sext" "Two signed extensions.";
    ZextTruncZero "combine.zext_trunc_zero" "Zeros taken away and added again.";
    ZextTruncMask "combine.zext_trunc_mask" "Bits taken away, zeros added: a mask.";
    DivideInWords "combine.divide_in_words" "A division of a narrow number by a constant.";
    DivideUnsigned "combine.divide_unsigned" "A signed division of what is not negative.";
    UdivPower "combine.udiv_power" "An unsigned division by a power of two.";
    UremPower "combine.urem_power" "An unsigned remainder by a power of two.";
    UdivMultiply "combine.udiv_multiply" "A division by a multiplier that fits.";
    UdivEven "combine.udiv_even" "A division by an even number, shifted before.";
    UdivLong "combine.udiv_long" "A division by a multiplier of one bit more than the width.";
    SdivPower "combine.sdiv_power" "A signed division by a power of two.";
    SdivExact "combine.sdiv_exact" "A signed division by a power of two without remainder.";
    SdivMultiply "combine.sdiv_multiply" "A signed division by multiplication.";
    SdivMultiplyAdd "combine.sdiv_multiply_add" "The same with a multiplier that reads as a negative number.";
    FloatExtreme "combine.float_extreme" "A choice of what is compared is a minimum or maximum.";
    FloatSignProduct "combine.float_sign_product" "The lesser or greater of two magnitudes with a sign bit.";
    FloatMagnitude "combine.float_magnitude" "A choice of a number and its negation is a magnitude.";
    FloatDividePower "combine.float_divide_power" "A division by a power of two is a product.";
    FloatDivideConstant "combine.float_divide_constant" "A division by a constant whose reciprocal will do.";
    FloatDivideReciprocal "combine.float_divide_reciprocal" "A division that a reciprocal will do for.";
    FloatSaturate "combine.float_saturate" "A sum or product that is clamped to [0, 1].";
    DivideTwice "combine.divide_twice" "A quotient divided again.";
    DivideByQuotient "combine.divide_by_quotient" "A division by a quotient.";
    RootSquared "combine.root_squared" "A root times itself.";
    RootDivided "combine.root_divided" "A number divided by its root.";
    CompareSum "combine.compare_sum" "A sum or difference compared with zero.";
    FloatDivideRoot "combine.float_divide_root" "An approximate division by a root.";
    TestedWord "combine.tested_word" "Bits of one word of 64 bits, tested.";
    ShiftInWord "combine.shift_in_word" "A shift of 64 bits whose result fits a word.";
    SdivNegate "combine.sdiv_negate" "A signed division by 1 or -1.";
    SdivLeast "combine.sdiv_least" "A signed division by the least number.";
    DivideExact "combine.divide_exact" "A division without remainder, by the inverse.";
    ShareQuotient "combine.share_quotient" "A remainder whose quotient is there.";
    ShareQuotientEarlier "combine.share_quotient_earlier" "A remainder whose quotient is wanted later.";
    MultipleUnsigned "combine.multiple_unsigned" "An unsigned remainder that is compared.";
    MultipleSigned "combine.multiple_signed" "A signed remainder that is compared with zero.";
    RemainderBits "combine.remainder_bits" "A signed remainder by a power of two that is compared.";
    CountOnes "combine.count_ones" "Ones counted by shifts and masks.";
    CountParity "combine.count_parity" "The parity by shifts.";
    ReverseBits "combine.reverse_bits" "Bits reversed by shifts and masks.";
    ReverseBitsOfBytes "combine.reverse_bits_of_bytes" "The bits of each byte reversed.";
    ReverseBitsOfHalves "combine.reverse_bits_of_halves" "The bits of each half reversed.";
    CarrylessProduct "combine.carryless_product" "A product without carries, copy by copy.";
    AbsSelect "combine.abs_select" "A choice between a number and its negation by the sign.";
    AbsSign "combine.abs_sign" "A number changed by the copies of its sign.";
    GuardedCount "combine.guarded_count" "A count of zeros that guards against zero.";
    GuardedPlace "combine.guarded_place" "The place of the highest bit that guards against zero.";
    PackedConversions "combine.packed_conversions" "Two numbers as halves whose bits are put together.";
    SaturatedDifference "combine.saturated_difference" "A difference that stays at zero.";
    SaturatedSum "combine.saturated_sum" "A sum that stays at the largest number.";
    SignedAverage "combine.signed_average" "Half of a sum computed in twice the width.";
    ClampedSum "combine.clamped_sum" "A sum in twice the width kept in 32 bits.";
    ClampedDifference "combine.clamped_difference" "A difference in twice the width kept in 32 bits.";
    FindTested "combine.find_tested" "`fns` for the bit at a place.";
    FindFew "combine.find_few" "`fns` for one of the first bits.";
    FindByHalves "combine.find_by_halves" "`fns` for a bit of any number.";
    SaturatedSumMask "combine.saturated_sum_mask" "A sum and copies of its carry.";
    SaturatedDifferenceMask "combine.saturated_difference_mask" "A difference under copies of a comparison.";
    LimitedSum "combine.limited_sum" "An unsigned sum in twice the width kept in 32 bits.";
    AddDifference "combine.add_difference" "A difference from a constant is added.";
    WrappedOnce "combine.wrapped_once" "A number less another where it is not smaller.";
    LessLowBits "combine.less_low_bits" "A number less some of its bits.";
    RoundedUp "combine.rounded_up" "A number, or the next multiple of a power of two.";
    UpperBits "combine.upper_bits" "Upper bits compared for equality.";
    TestedSign "combine.tested_sign" "The sign of a part of a word, tested.";
    JoinRanges "combine.join_ranges" "Two ranges that touch.";
    JoinRangesBit "combine.join_ranges_bit" "Two ranges that differ in one bit.";
    CommonCondition "combine.common_condition" "A condition that two have in common.";
    FloorRemainder "combine.floor_remainder" "A remainder by a power of two, rounded down.";
    FloorRemainderTwice "combine.floor_remainder_twice" "A remainder made positive by another one.";
    FloorQuotient "combine.floor_quotient" "A quotient by a power of two, rounded down.";
    RotateShifts "combine.rotate_shifts" "Two shifts that are a rotation.";
    RotateShifts64 "combine.rotate_shifts64" "The same of 64 bits.";
    FunnelShifts64 "combine.funnel_shifts64" "Two shifts that move a pair of 64 bits.";
    SwapShifts "combine.swap_shifts" "The two bytes of 16 bits exchanged by shifts.";
    RotateProduct "combine.rotate_product" "A product and its copy, moved, that are a rotation.";
    RotateVariable64 "combine.rotate_variable64" "Two shifts of 64 bits that are a rotation by any amount.";
    FunnelLeftSafe "combine.funnel_left_safe" "Shifts that move a pair to the left, by zero too.";
    FunnelRightSafe "combine.funnel_right_safe" "The same to the right.";
    NegatedBit "combine.negated_bit" "The lowest bit negated is copies of it.";
    SignTimes "combine.sign_times" "The highest bit times a constant is a mask.";
    ShiftedSum "combine.shifted_sum" "A sum with a constant that is shifted up.";
    SmaxKept "combine.smax_kept" "A number that is never less than the limit.";
    SminKept "combine.smin_kept" "A number that is never greater than the limit.";
    PowerOfTwo "combine.power_of_two" "One bit set, tested by masks.";
    RoundedDown "combine.rounded_down" "Shifted down and multiplied up again.";
    TruncMasked "combine.trunc_masked" "A mask that keeps what a truncation keeps.";
    FieldShifted "combine.field_shifted" "A field that is shifted down, masked and shifted again.";
    FieldMasked "combine.field_masked" "A field that is shifted twice and masked.";
    FieldOfSum "combine.field_of_sum" "A field that is shifted down, added to and shifted up again.";
    FieldCompared "combine.field_compared" "A field compared with a constant where it is.";
    FieldsCompared "combine.fields_compared" "The same field of two words, compared where it is.";
    ShiftedAlike "combine.shifted_alike" "Logic of two words that are shifted alike.";
    ShiftedAlikeAmong "combine.shifted_alike_among" "The same of two words among three.";
    LimitedAgain "combine.limited_again" "A choice of a limit before another one.";
    LimitedAround "combine.limited_around" "A choice of two limits for what is outside of them.";
    NextToLimit "combine.next_to_limit" "A choice of the number next to the one compared with.";
    CountedDown "combine.counted_down" "A difference from a constant that stays at zero.";
    AwayFromZero "combine.away_from_zero" "A choice of sum and difference by the sign.";
    CrossedChoice "combine.crossed_choice" "Two choices by one flag, the other way around.";
    Exchanged "combine.exchanged" "A value changed into another under a flag, by their difference.";
    Blended "combine.blended" "Two values under copies of a flag and of its negation.";
    NegatedFlag "combine.negated_flag" "A flag as a number, negated.";
    FlagTimes "combine.flag_times" "A flag as a number, times a constant.";
    FlagPlus "combine.flag_plus" "A flag as a number, plus a constant.";
    SignExtended "combine.sign_extended" "The sign of a field, extended by its highest bit.";
    BitsBelowLowest "combine.bits_below_lowest" "The lowest one less one.";
    WithinLimits "combine.within_limits" "A number compared with what limits leave of it.";
    CarryOfProduct "combine.carry_of_product" "The carry of a sum with a product.";
    MoreOrNot "combine.more_or_not" "A sum or its first part, by a flag.";
    ExtendedAlike "combine.extended_alike" "Words extended alike and compared.";
    ProductUpperHalf "combine.product_upper_half" "The upper half of a product of 64 bits, by words.";
    ProductLowerHalf "combine.product_lower_half" "The lower half of one.";
    ProductUpperWord "combine.product_upper_word" "The upper word of a product of words.";
    FloatSignBits "combine.float_sign_bits" "Signs of operands that were changed as bits.";
    GepSum "combine.gep_sum" "An index that is a sum with a product.";
    GepConstantLast "combine.gep_constant_last" "The constant part of an index goes last.";
    // Addresses (`share_addresses.rs`).
    SharedAddress "address.shared" "Addresses that are a constant apart.";
    AddressFurther "address.further" "An address that is an index away from another.";
    SteppedAddress "address.stepped" "An address that grows evenly in a loop.";

    // Bits that nobody reads (`ignore_unread_bits.rs`).
    UnreadMask "unread.mask" "A mask that keeps all bits that are read.";
    UnreadConstant "unread.constant" "A constant that changes none of the bits that are read.";
    UnreadExtension "unread.extension" "A word cut and extended again, whose low bits are read.";

    // Terms and factors (`collect_terms/`).
    CollectTerms "collect.terms" "A sum as multiples of its terms.";
    CollectPowers "collect.powers" "A product of floats as powers of its factors.";
    CollectConstants "collect.constants" "The constants of a sum of floats, as one.";
    FusedFactor "collect.fused_factor" "A number more than one, or less, times another.";
    ConvertedSum "collect.converted" "A sum of integers that were made floats.";
    Interpolation "collect.interpolation" "A weighted mean from the difference.";
    JoinSigns "combine.join_signs" "Three signs, as that of three numbers joined.";
    JoinFloatConditions "combine.join_float_conditions" "Two comparisons of the same floats.";
    BothLanes "combine.both_lanes" "A choice by both flags of two halves compared.";
    PackedLanes "combine.packed_lanes" "Sums, minima or maxima of both halves of words, put together.";
    JoinParities "combine.join_parities" "The lowest bit of two numbers of ones.";
    LowBits "combine.low_bits" "Low bits of 64, kept by logic alone.";
    SignedAverageUp "combine.signed_average_up" "Half of a sum computed in twice the width, rounded up.";

    // Atomic operations (`merge_atomics.rs`).
    MergeAtomics "atomic.merged" "Additions to neighbouring floats.";

    // Threads of a warp (`combine_exchanges/`).
    ButterflyRedux "warp.butterfly" "Shuffles that reduce over a warp.";
    ButterflyFloat "warp.butterfly_float" "The same of minima or maxima of f32.";
    DownRedux "warp.tree_down" "Shuffles down that reduce for lane 0.";
    UpRedux "warp.tree_up" "Shuffles up that reduce for lane 31.";
    BallotAny "warp.ballot_any" "A ballot compared with zero.";
    BallotCounted "warp.ballot_counted" "The ones of a ballot compared with none.";
    AllAlike "warp.all_alike" "All lanes compared with one of them.";

    // Branches that choose values (`choose_values/`).
    ChooseBranch "choose.branch" "A branch to one block with different values.";
    ChooseFew "choose.few" "One or two numbers of a switch that pass constants.";
    ChooseConstant "choose.constant" "Numbers of a switch that pass one constant.";
    ChooseLinear "choose.linear" "Constants that rise evenly.";
    ChooseTested "choose.tested" "Numbers that are told by the bits that they share.";
    ChooseOperands "choose.operands" "Two ways with the same operations on different operands.";
    SwitchPossible "choose.possible" "Numbers of a switch that cannot occur.";
    ChooseMasked "choose.masked" "A value masked by copies of a flag.";
    ChooseBits "choose.bits" "Constants that are bits of one.";

    // Parameters of blocks (`merge_block_params/`).
    ParamsAlike "params.alike" "Two parameters that begin alike and change alike.";

    // Generic pointers (`infer_spaces/`).
    SpaceInferred "space.inferred" "An access through a generic pointer into one space.";

    // Loops over the bits of a number (`solve_loops/`).
    LoopKnown "loop.known" "As many rounds as a constant says.";
    LoopHighest "loop.highest" "Rounds until nothing is left of what moves down: the place of the highest one.";
    LoopLowest "loop.lowest" "Rounds until nothing is left of what moves up: the place of the lowest one.";
    LoopCleared "loop.cleared" "Rounds that clear one bit each: as many as ones.";
    LoopFirst "loop.first" "Rounds until a bit is set, from the lowest on.";
    LoopFirstAbove "loop.first_above" "Rounds until a bit is set, from the highest on.";
    LoopOnes "loop.ones" "Bits added up are the number of ones.";
    LoopParity "loop.parity" "Bits that change another one: the parity.";
    LoopBits "loop.bits" "Bits put together where they were.";
    LoopReversed "loop.reversed" "Bits put together the other way around.";
    LoopCarryless "loop.carryless" "Copies for bits, without carries: a product.";
    LoopStart "loop.start" "A sum that begins with what is added to it behind the loop.";
    LoopProduct "loop.product" "Copies for bits, added: a product.";

    // What a branch decided (`apply_conditions/`).
    ConditionKnown "condition.known" "A condition where a branch on it was taken.";
    ConditionConstant "condition.constant" "A number where it was equal to a constant.";
    ConditionImplied "condition.implied" "A comparison that follows from those that branches asked.";

    // Branches to one destination (`join_branches.rs`).
    BranchBoth "join.both" "Two conditions that both have to hold.";
    BranchEither "join.either" "Two conditions of which one has to hold.";

    // What is cheap in one way of a branch (`compute_ahead.rs`).
    ComputeAhead "ahead.computed" "Cheap operations in a way that is short without them.";

    // Pairs (`pack_scalars/`).
    PackVector "pack.vector" "Lanes that are put together are computed together.";
    PackCarried "pack.carried" "Two scalars that a loop carries are a pair.";
    PackLanes "pack.lanes" "Operations on two lanes of a vector are one.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = Rule::ALL.iter().map(|rule| rule.name()).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
