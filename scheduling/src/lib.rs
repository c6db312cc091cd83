//! Scheduling of machine IR in SSA form.
//!
//! * [`facts`] says what an instruction touches besides registers, from the effects of the instruction tables and from
//!   what selection knows of memory ([`ptxc_mir::MemoryRef`]).
//! * [`graph`] makes dependence graphs of it, near linear in the size of a block.
//! * [`random`] puts a block in any order that the graph allows. It is how fuzzing proves the graph.
//! * [`checker`] accepts or rejects an order by a derivation of its own; it runs in builds with debug assertions.
//!
//! What it decides: the order of instructions within blocks. What it does not: which instructions there are, and which
//! registers they use.

pub mod checker;
pub mod facts;
pub mod graph;
pub mod random;

pub use checker::{Violation, check};
pub use facts::{FunctionFacts, ModuleFacts};
pub use graph::{Builder, Edge, Graph, Kind, Node};

use ptxc_mir::{Function, Inst};

/// How to order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// As it is.
    #[default]
    Source,
    /// Any order that the dependences allow, by this seed.
    Random(u64),
}

/// What scheduling is asked to do.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How to order.
    pub mode: Mode,
    /// Check every block afterwards.
    pub check: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { mode: Mode::default(), check: cfg!(debug_assertions) }
    }
}

/// Orders the blocks of a function.
///
/// # Errors
/// The checker refuses the new order, which is a fault of ours.
pub fn run(func: &mut Function, module: &ModuleFacts, options: &Options) -> Result<(), Violation> {
    let Mode::Random(seed) = options.mode else { return Ok(()) };
    let facts = FunctionFacts::new(module, func);
    let mut builder = Builder::new(&facts);
    let mut order: Vec<Inst> = Vec::new();
    for index in 0..func.layout.len() {
        let block = func.layout[index];
        order.clear();
        let mut random = random::Random::new(seed ^ (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        builder.each_region(func, block, |graph| random.order(graph, &mut order));
        if options.check {
            check(func, &facts, block, &func.blocks[block].insts, &order)?;
        }
        std::mem::swap(&mut func.blocks[block].insts, &mut order);
    }
    Ok(())
}
