//! What a random program may hold, by name.

use ptxc_ir::testing::Rng;

macro_rules! features {
    ($($name:ident $doc:literal;)*) => {
        /// What a random program may hold. Each can be turned off by its name.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct Features {
            $(#[doc = $doc] pub $name: bool,)*
        }

        impl Features {
            /// Every name with what it stands for, in order.
            pub const NAMES: &'static [(&'static str, &'static str)] = &[$((stringify!($name), $doc),)*];

            /// Everything, or nothing but 32-bit integers in straight lines.
            pub const fn all(on: bool) -> Features {
                Features { $($name: on,)* }
            }

            /// The feature of that name.
            pub fn by_name(&mut self, name: &str) -> Option<&mut bool> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)*
                    _ => None,
                }
            }

            /// Those that both have.
            #[must_use]
            pub const fn and(self, other: Features) -> Features {
                Features { $($name: self.$name & other.$name,)* }
            }
        }
    };
}

features! {
    branches "Two-way branches, also divergent ones";
    loops "Loops with bounded trip counts, breaks and hints";
    switches "Multi-way branches and state machines";
    tangles "Loops with two entries";
    early_exit "Threads that leave before the end";
    calls "Calls of other functions";
    recursion "Recursion with bounded depth";
    indirect_calls "Calls through addresses from a table";
    aggregates "Aggregate parameters and results, copies by value";
    vectors "Vectors and what works on them";
    odd_ints "Integers of odd widths";
    wide_ints "128-bit integers";
    floats "f32 and f64";
    half_floats "f16 and bf16";
    narrow_floats "Conversions to the 4, 6 and 8-bit formats, tf32 and back";
    stochastic "Conversions that round by random bits";
    signs "Minima and maxima of magnitudes with the sign of a product";
    classes "Classes of floats by their bits and by comparisons";
    rounding "Rounding modes, flush to zero, saturation";
    division "Integer division and remainder";
    memory "Loads and stores of private and of read-only memory";
    unaligned "Accesses with less than natural alignment";
    block_copies "memcpy, memmove and memset";
    allocas "Stack objects";
    generic_addresses "Generic pointers into all spaces";
    atomics "Atomics on private cells, and commutative ones on cells of all threads";
    shared_memory "Shared memory, exchanged between threads at barriers";
    warps "Shuffles, votes, matches and reductions over warps";
    flags "Flags that promise something, where it holds";
    guarded_poison "Poison that a select hides";
    byte_shuffles "Words built from bytes of others";
    logic_trees "Trees of and, or, xor and not";
    dot_products "Sums of products of bytes and halves";
    carry_chains "Sums over several words with carries";
    packed_halves "Arithmetic on packed halves, shorts and bytes";
    bit_fields "Extraction and insertion of bit fields, rotations";
    echoes "Instructions that nearly repeat earlier ones";
    adjacent "Loads and stores of neighbouring elements, in the order of unrolled loops";
    noalias "Parameters of the kernel that nothing else points into";
    dense_switches "Switches with many neighbouring cases";
    short_branches "Branches around one or two operations";
    chained_branches "Branches decided one after the other that share a destination";
    accumulators "Loops that carry floats updated side by side";
    carried_pointers "Loops that carry pointers into one space or several, and counters that are alike";
    bit_loops "Loops over the bits of a number";
    strided "Loops whose addresses grow evenly, by counters that promise something or wrap";
    find_nth "The n-th bit that is set";
    conversions "Conversions among clamps and roundings";
    pairs "Scalar operations whose results become lanes";
    many_words "Sums and products over many words, by operations that say what they carry";
    idioms "Counts, parities and reversals by shifts, magnitudes and saturation by others, compared remainders";
    spellings "Rotations, low and highest bits, wide products, minima of lanes, permuted bytes as others spell them";
    halves "Products by words, sums that a flag decides, bytes put into vectors, masks that are added, signs as bits";
    choices "Switches and branches that only choose values";
    warp_trees "Reductions over warps by shuffles, ballots that are compared, lanes that are all alike";
    adjacent_atomics "Atomic additions to neighbouring floats";
    comparisons "Minima, maxima, absolute differences and selects on comparisons";
    branch_promises "Promises that hold because of a branch, also through parameters of blocks, and poison that a branch hides";
    tangled_switches "Switches on few bits: cases that share a block, that cannot occur, defaults with arguments or without use";
    pointer_results "Functions that return pointers beside other results, and accesses that may be of the same memory";
    compared_objects "Stack objects that are alive one after the other and whose addresses are compared";
    rule_shapes "Functions in which rules are applied, or nearly, called with operands of the program";
}

impl Features {
    /// A random choice for a seed: some programs have much of everything, some little of much.
    pub fn for_seed(seed: u64) -> Features {
        let mut rng = Rng::new(seed ^ 0x6665_6174_7572_6573);
        let mut out = Features::all(true);
        // Of sixteen: how many are kept on average.
        let kept = [16, 14, 10, 6].get(rng.below(4)).copied().unwrap_or(16);
        for (name, _) in Features::NAMES {
            if let Some(feature) = out.by_name(name) {
                *feature = rng.below(16) < kept;
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_features() {
        let mut features = Features::all(false);
        for (name, doc) in Features::NAMES {
            assert!(!doc.is_empty());
            *features.by_name(name).unwrap() = true;
        }
        assert_eq!(features, Features::all(true));
        assert_eq!(features.by_name("luck"), None);
    }
}
