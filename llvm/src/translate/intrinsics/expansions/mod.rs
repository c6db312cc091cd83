//! Intrinsics that become more than one operation.

mod math;
mod memory;
mod threads;
mod vectors;

use super::Site;
use crate::translate::Result;
use crate::translate::body::Writer;

/// Writes what a call of an intrinsic becomes; the words are those of the table's line.
pub(in crate::translate) type Expansion = for<'c, 'm> fn(&mut Writer<'c, 'm>, &Site<'m>, &[String]) -> Result<()>;

/// The expansions by their name in the tables.
const EXPANSIONS: &[(&str, Expansion)] = &[
    ("barrier_zero", threads::barrier_zero),
    ("barrier_zero_reduce", threads::barrier_zero_reduce),
    ("bfloat_to_half", math::bfloat_to_half),
    ("block", memory::block),
    ("canonicalize", math::canonicalize),
    ("classify", math::classify),
    ("compare_and_swap", memory::compare_and_swap),
    ("convert_space", memory::convert_space),
    ("copy_arguments", memory::copy_arguments),
    ("count", math::count),
    ("exp2_approx", math::exp2_approx),
    ("exponential", math::exponential),
    ("find_leading", math::find_leading),
    ("from_half", math::from_half),
    ("function", math::function),
    ("half_of_double", math::half_of_double),
    ("in_space", memory::in_space),
    ("integer_power", math::integer_power),
    ("load_readonly", memory::load_readonly),
    ("logarithm", math::logarithm),
    ("mask_pointer", memory::mask_pointer),
    ("masked", memory::masked),
    ("object_size", memory::object_size),
    ("permute", vectors::permute),
    ("power", math::power),
    ("promised", math::promised),
    ("reduce_from", vectors::reduce_from),
    ("reflect", threads::reflect),
    ("rotate", math::rotate),
    ("saturated_fma", math::saturated_fma),
    ("scale_by_power", math::scale_by_power),
    ("shuffle_without_mask", threads::shuffle_without_mask),
    ("sine_and_cosine", math::sine_and_cosine),
    ("split_exponent", math::split_exponent),
    ("split_fraction", math::split_fraction),
    ("start_arguments", memory::start_arguments),
    ("stack_restore", memory::stack_restore),
    ("stack_save", memory::stack_save),
    ("step_vector", vectors::step_vector),
    ("subvector", vectors::subvector),
    ("swap_halves", math::swap_halves),
    ("texture_handle", memory::texture_handle),
    ("three_way", math::three_way),
    ("through_float", math::through_float),
    ("to_half", math::to_half),
    ("to_integer", math::to_integer),
    ("vote_without_mask", threads::vote_without_mask),
    ("widened", memory::widened),
];

/// The expansion of that name.
pub(super) fn expansion(name: &str) -> Option<Expansion> {
    EXPANSIONS.iter().find(|(known, _)| *known == name).map(|(_, expansion)| *expansion)
}

/// The first word of a line, empty when there is none.
fn word(words: &[String]) -> &str {
    words.first().map_or("", String::as_str)
}
