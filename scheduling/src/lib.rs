//! Scheduling of machine IR in SSA form.
//!
//! * [`facts`] says what an instruction touches besides registers, from the effects of the instruction tables and from
//!   what selection knows of memory ([`ptxc_mir::MemoryRef`]).
//! * [`graph`] makes dependence graphs of it, near linear in the size of a block.
//! * [`list`] puts it in the order that the machine's latencies and the register budget want; [`timeline`] says when
//!   each instruction of an order issues. A block whose cycles do not fall by 3 % stays as it was, and so does one whose
//!   order the assembler makes good by itself.
//! * [`superblocks`] are chains of blocks with ways out and none in; [`motion`] says which instructions may go from one to
//!   its neighbour, and those go where the model sees a gain.
//! * Values that cost next to nothing are made again behind stretches with more live registers than there are (`remat`).
//! * [`random`] puts a block in any order that the graph allows, after any moves between blocks. It is how fuzzing proves the graph.
//! * [`show_module`] and [`draw_module`] show timelines to people.
//! * [`checker`] accepts or rejects an order by a derivation of its own; it runs in builds with debug assertions.
//!
//! What it decides: the order of instructions within superblocks. What it does not: which instructions there are, and which
//! registers they use.

mod assembler;
pub mod checker;
mod checker_of_copies;
mod draw;
pub mod facts;
pub mod graph;
pub mod groups;
pub mod list;
pub mod live;
pub mod loops;
pub mod machine;
pub mod motion;
mod order;
pub mod random;
mod regions;
mod remat;
mod report;
mod rows;
mod show;
pub mod superblocks;
pub mod timeline;
mod weave;

pub use checker::{Violation, check, check_function};
pub use checker_of_copies::check_copies;
pub use draw::draw_module;
pub use facts::{FunctionFacts, ModuleFacts};
pub use graph::{Builder, Edge, Graph, Kind, Node};
pub use live::{Liveness, words};
pub use machine::Machine;
pub use report::{BlockReport, Outcome};
pub use show::show_module;
pub use timeline::{Clock, Slot, Timeline};

use cranelift_entity::SecondaryMap;
use list::List;
use loops::Loops;
use motion::Seam;
use order::Orderer;
use ptxc_mir::{Block, Cfg, Function, Inst, Module};
use regions::{Regions, Standing};
use superblocks::Superblocks;

/// How to order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// As it is.
    #[default]
    Source,
    /// By latencies and register pressure.
    Latency,
    /// Any order that the dependences allow, by this seed.
    Random(u64),
}

/// What scheduling is asked to do.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How to order.
    pub mode: Mode,
    /// The most 32-bit registers to be live at once; `None` is what launch bounds and the function as it is say.
    pub registers: Option<u32>,
    /// Check every block afterwards.
    pub check: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { mode: Mode::default(), registers: None, check: cfg!(debug_assertions) }
    }
}

/// What scheduling a function came to, by the machine's model. Cycles are sums over the blocks, each counted once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Blocks in another order than before.
    pub changed: u32,
    /// Values that were made again instead of kept.
    pub made_again: u32,
    /// Instructions that went from one block to another.
    pub moved: u64,
    /// Cycles before.
    pub cycles_before: u64,
    /// Cycles afterwards.
    pub cycles_after: u64,
    /// Cycles of the longest chains of dependences.
    pub critical_path: u64,
    /// The most live 32-bit registers before.
    pub peak_before: u32,
    /// The most live 32-bit registers afterwards.
    pub peak_after: u32,
}

impl Summary {
    /// Adds what a block came to.
    fn keep(&mut self, block: &Standing) {
        self.cycles_after += u64::from(block.cycles);
        self.peak_after = self.peak_after.max(block.peak);
        self.critical_path += u64::from(block.critical);
        self.moved += u64::from(block.risen + block.sunk);
    }
}

/// What scheduling asks of a module; computed once for all its functions.
#[derive(Clone, Debug)]
pub struct Context {
    /// What instructions touch.
    pub facts: ModuleFacts,
    /// What they cost.
    pub machine: Machine,
}

impl Context {
    /// Reads a module.
    pub fn new(module: &Module) -> Context {
        Context { facts: ModuleFacts::new(module), machine: Machine::new(module) }
    }

    /// The timelines of a function's blocks as they are, in the order of its layout.
    pub fn timelines(&self, func: &Function) -> Vec<(Block, Timeline)> {
        let liveness = Liveness::of(func, &Cfg::compute(func));
        let mut clock = Clock::new(&self.machine, &self.facts);
        let blocks = func.layout.iter();
        blocks.map(|&block| (block, clock.run(func, &liveness, block, &func.blocks[block].insts))).collect()
    }

    /// Cycles of each block once the assembler has ordered it: it puts independent computations where they wait least,
    /// within the dependences and with all registers that launch bounds grant.
    pub fn assembled(&self, func: &Function) -> Vec<u32> {
        let facts = FunctionFacts::new(&self.facts, func);
        let liveness = Liveness::of(func, &Cfg::compute(func));
        let mut clock = Clock::new(&self.machine, &self.facts);
        let mut builder = Builder::new(&facts);
        let mut list = List::new(&self.machine, &self.facts, self.machine.register_budget(&func.attrs));
        let (mut nodes, mut order): (Vec<Node>, Vec<Inst>) = (Vec::new(), Vec::new());
        let mut cycles = Vec::with_capacity(func.layout.len());
        for &block in &func.layout {
            order.clear();
            list.enter(func, &liveness, block, false);
            builder.each_region(func, block, |graph| {
                nodes.clear();
                list.region(func, graph, &mut nodes);
                order.extend(nodes.iter().filter_map(|&node| graph.inst(node)));
            });
            let as_it_stands = clock.run(func, &liveness, block, &func.blocks[block].insts).cycles;
            cycles.push(clock.run(func, &liveness, block, &order).cycles.min(as_it_stands));
        }
        cycles
    }
}

/// Registers of a thread that the assembler takes for itself: addresses, constants, stack.
const RESERVED: u32 = 8;

/// More than any function has live; a limit above it is none.
const MOST_REGISTERS: u32 = 1 << 24;

/// Orders the blocks of a function in SSA form.
///
/// # Errors
/// The checker refuses the new order, which is a fault of ours.
pub fn run(func: &mut Function, context: &Context, options: &Options) -> Result<Summary, Violation> {
    run_with_report(func, context, options, None)
}

/// The same, and tells what became of each block in the order of the layout, where blocks are ordered by latency.
///
/// # Errors
/// As [`run`].
pub fn run_with_report(
    func: &mut Function,
    context: &Context,
    options: &Options,
    report: Option<&mut Vec<BlockReport>>,
) -> Result<Summary, Violation> {
    match options.mode {
        Mode::Source => Ok(Summary::default()),
        Mode::Latency => by_latency(func, context, options, report),
        Mode::Random(seed) => at_random(func, context, options, seed),
    }
}

fn at_random(func: &mut Function, context: &Context, options: &Options, seed: u64) -> Result<Summary, Violation> {
    let facts = FunctionFacts::new(&context.facts, func);
    let original = options.check.then(|| func.clone());
    remat::scatter(func, &facts, &context.machine, &mut random::Random::new(!seed));
    if let Some(original) = original {
        check_copies(&original, func, &facts)?;
    }
    let old = options.check.then(|| orders(func));
    let superblocks = random::move_between_blocks(func, &facts, seed);
    let mut builder = Builder::new(&facts);
    let mut order: Vec<Inst> = Vec::new();
    for index in 0..func.layout.len() {
        let block = func.layout[index];
        order.clear();
        let mut random = random::Random::new(seed ^ (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        builder.each_region(func, block, |graph| random.order(graph, &mut order));
        std::mem::swap(&mut func.blocks[block].insts, &mut order);
    }
    if let Some(old) = old {
        check_function(func, &facts, &old, superblocks.iter())?;
    }
    Ok(Summary::default())
}

/// The instructions of every block in their order.
fn orders(func: &Function) -> SecondaryMap<Block, Vec<Inst>> {
    let mut orders = SecondaryMap::with_capacity(func.blocks.len());
    func.layout.iter().for_each(|&block| orders[block] = func.blocks[block].insts.clone());
    orders
}

fn by_latency(
    func: &mut Function,
    context: &Context,
    options: &Options,
    report: Option<&mut Vec<BlockReport>>,
) -> Result<Summary, Violation> {
    let facts = FunctionFacts::new(&context.facts, func);
    let cfg = Cfg::compute(func);
    let mut liveness = Liveness::of(func, &cfg);
    let mut clock = Clock::new(&context.machine, &context.facts);
    let before: Vec<Timeline> =
        func.layout.iter().map(|&block| clock.run(func, &liveness, block, &func.blocks[block].insts)).collect();
    let peak = before.iter().map(|timeline| timeline.peak).max().unwrap_or(0);
    let asked = options.registers.map(|registers| registers.min(MOST_REGISTERS));
    let limit = asked.unwrap_or_else(|| register_limit(func, &context.machine, peak));
    let loops = Loops::of(func, &cfg);
    let original = options.check.then(|| func.clone());
    let tools = (&facts, &context.machine, &loops);
    let made_again = remat::relieve(func, tools, &liveness, &before, limit);
    let mut start = None;
    if made_again > 0 {
        liveness = Liveness::of(func, &cfg);
        let blocks = func.layout.iter();
        start = Some(blocks.map(|&block| clock.run(func, &liveness, block, &func.blocks[block].insts)).collect());
        if let Some(original) = original {
            check_copies(&original, func, &facts)?;
        }
    }
    let start: &Vec<Timeline> = start.as_ref().unwrap_or(&before);
    let old_orders = options.check.then(|| orders(func));
    let mut orderer = Orderer::new(func, context, &facts, limit);
    let mut standing: SecondaryMap<Block, Standing> = SecondaryMap::with_capacity(func.blocks.len());
    let mut summary = Summary { peak_before: peak, made_again, ..Summary::default() };
    summary.cycles_before = before.iter().map(|timeline| u64::from(timeline.cycles)).sum();
    for (index, old) in start.iter().enumerate() {
        let block = func.layout[index];
        standing[block] = Standing { cycles: old.cycles, peak: old.peak, critical: old.cycles, ..Standing::default() };
        standing[block].kept = cannot_gain(func, &facts, &context.machine, (block, old), limit);
        if standing[block].kept.is_some() {
            continue;
        }
        let best =
            orderer.order(func, &liveness, (block, old.peak, options.check), |new| is_better(old, new, limit))?;
        standing[block].critical = orderer.critical_path();
        standing[block].pressed = orderer.was_pressed();
        if let Some(new) = best {
            func.blocks[block].insts.clear();
            func.blocks[block].insts.extend(new.slots.iter().map(|slot| slot.inst));
            standing[block].cycles = new.cycles;
            standing[block].peak = new.peak;
            summary.changed += 1;
        }
    }
    let superblocks = Superblocks::of(func, &cfg, &loops);
    // What lives longer for a move should fit in what the function needs anyway.
    let room = asked.unwrap_or(limit.min(peak));
    let warps = context.machine.warps_of_partition(&func.attrs, asked.unwrap_or(peak) + RESERVED);
    let mut regions = Regions::new(context, &facts, &loops, (room, warps));
    for (above, below) in superblocks.neighbours() {
        regions.improve(func, &mut liveness, Seam { above, below }, &mut standing);
    }
    for &block in &func.layout {
        summary.keep(&standing[block]);
    }
    if let Some(report) = report {
        let blocks = func.layout.iter().zip(&before);
        report.extend(blocks.map(|(&block, old)| BlockReport::new(func, &loops, (block, old, &standing[block]))));
    }
    if let Some(old) = old_orders {
        check_function(func, &facts, &old, superblocks.iter())?;
    }
    Ok(summary)
}

/// Why no order of a block is worth it, as far as its timeline tells: it has enough registers, and waits for nothing, for a
/// unit that is full, or for what the assembler deals with. A loop of one block is worth it even so: what comes around
/// again the assembler does not see.
fn cannot_gain(
    func: &Function,
    facts: &FunctionFacts<'_>,
    machine: &Machine,
    (block, old): (Block, &Timeline),
    limit: u32,
) -> Option<Outcome> {
    let issue: u32 = old.slots.iter().map(|slot| u32::from(slot.timing.issue)).sum();
    let waits = u64::from(issue) * 100 + 400 <= u64::from(old.cycles) * 97;
    let warps = || machine.warps_of_partition(&func.attrs, old.peak + RESERVED);
    if old.peak > limit {
        None
    } else if !waits {
        Some(Outcome::NoGain)
    } else if assembler::is_full(machine, &old.slots, old.cycles, warps()) {
        Some(Outcome::Full)
    } else if !is_loop(func, block) && assembler::orders_as_well(func, facts, machine, &old.slots) {
        Some(Outcome::Assembler)
    } else {
        None
    }
}

/// Whether a block follows itself.
fn is_loop(func: &Function, block: Block) -> bool {
    let mut found = false;
    func.blocks[block].terminator.for_each_target(|target| found |= target.block == block);
    found
}

/// How many registers may be live. What the function needs as it is sets the measure: latency is bought with a few more
/// at most, and only as long as they cost no warps. Launch bounds are passed only where the function does so already, and
/// by no more than a quarter: addresses that the assembler folds count here.
fn register_limit(func: &Function, machine: &Machine, peak: u32) -> u32 {
    let budget = machine.register_budget(&func.attrs).saturating_sub(RESERVED);
    let free = machine.free_registers().saturating_sub(RESERVED);
    let more = (peak + peak / 4 + 4).min(free).min(budget);
    if peak > budget + budget / 4 { budget } else { peak.max(more) }
}

/// Whether an order is worth to leave the source's, which the assembler knows to read.
fn is_better(old: &Timeline, new: &Timeline, limit: u32) -> bool {
    let fits = new.peak <= limit.max(old.peak);
    let faster = u64::from(new.cycles) * 100 <= u64::from(old.cycles) * 97 && new.cycles + 4 <= old.cycles;
    // Far above the limit a peak a little lower says nothing of what is spilled.
    let lower = new.peak <= limit || u64::from(new.peak) * 16 <= u64::from(old.peak) * 15;
    let smaller = old.peak > limit && lower && u64::from(new.cycles) * 100 <= u64::from(old.cycles) * 102;
    fits && faster || smaller
}
