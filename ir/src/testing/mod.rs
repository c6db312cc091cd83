//! Random well-formed modules and samples of every instruction.
//!
//! The generator is a function of its seed: the same seed and options give the same module on every machine. What it
//! makes passes the verifier, which its own tests check. It draws from every opcode, type, attribute and flag that the
//! tables know, so a new row is covered without a change here unless it brings a new shape.

mod functions;
mod instructions;
mod items;
pub mod mutation;
mod samples;
mod types;

pub use samples::{Sample, samples};
pub use types::{controlling_types, scalar_types};

use crate::module::Module;

/// A small generator of numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator that starts at a seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 when `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { (self.bits() % n as u64) as usize }
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of the items; `None` when there are none.
    pub fn pick<'x, T>(&mut self, items: &'x [T]) -> Option<&'x T> {
        items.get(self.below(items.len()))
    }
}

/// How large a random module is and what it holds.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Functions with a body.
    pub functions: usize,
    /// Most blocks of a function.
    pub blocks: usize,
    /// Most instructions of a block, besides its terminator.
    pub insts: usize,
    /// Branches may lead backwards.
    pub loops: bool,
    /// Names with characters that need quotes, and names that are used twice.
    pub odd_names: bool,
    /// Calls, target operations and inline assembly.
    pub calls: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { functions: 3, blocks: 6, insts: 12, loops: true, odd_names: true, calls: true }
    }
}

/// A random module that the verifier accepts.
pub fn random_module(seed: u64, options: &Options) -> Module {
    let mut rng = Rng::new(seed);
    let mut module = items::module(&mut rng, options);
    functions::bodies(&mut module, &mut rng, options);
    module
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printer::print_module;
    use crate::reader::read_module;
    use crate::verifier::{has_errors, verify_module};
    use crate::{Inst, Opcode};
    use rustc_hash::FxHashSet;

    #[test]
    fn random_modules_are_valid_and_print_stably() {
        for seed in 0..300 {
            let module = random_module(seed, &Options::default());
            let errors = verify_module(&module);
            let first = print_module(&module);
            assert!(!has_errors(&errors), "seed {seed}: {errors:?}\n{first}");
            let read = read_module(&first).unwrap_or_else(|errors| {
                let list: Vec<String> = errors.iter().map(|e| e.with_position(&first)).collect();
                panic!("seed {seed}: {}\n{first}", list.join("\n"))
            });
            let second = print_module(&read);
            assert_eq!(first, second, "seed {seed}");
            let errors = verify_module(&read);
            assert!(!has_errors(&errors), "seed {seed}: {errors:?}\n{first}");
        }
    }

    #[test]
    fn random_modules_cover_every_opcode() {
        let mut seen: FxHashSet<Opcode> = FxHashSet::default();
        for seed in 0..300 {
            let module = random_module(seed, &Options::default());
            for func in module.funcs.values() {
                let ops = |inst: Inst| func.dfg.insts[inst].op;
                seen.extend(func.layout.blocks().flat_map(|b| func.layout.insts(b)).map(ops));
            }
        }
        let missing: Vec<_> = Opcode::ALL.iter().filter(|op| !seen.contains(op)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn samples_are_valid_and_cover_every_opcode() {
        let mut seen: FxHashSet<Opcode> = FxHashSet::default();
        for sample in samples() {
            let errors = verify_module(&sample.module);
            assert!(!has_errors(&errors), "{}: {errors:?}\n{}", sample.name, sample.module);
            seen.insert(sample.op);
        }
        let missing: Vec<_> = Opcode::ALL.iter().filter(|op| !seen.contains(op)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
