//! Scheduling of machine IR in SSA form.
//!
//! * [`facts`] says what an instruction touches besides registers, from the effects of the instruction tables and from
//!   what selection knows of memory ([`ptxc_mir::MemoryRef`]).
//! * [`graph`] makes dependence graphs of it, near linear in the size of a block.
//! * [`list`] puts it in the order that the machine's latencies and the register budget want; [`timeline`] says when
//!   each instruction of an order issues. A block whose cycles do not fall by 3 % stays as it was.
//! * [`random`] puts a block in any order that the graph allows. It is how fuzzing proves the graph.
//! * [`show_module`] and [`draw_module`] show timelines to people.
//! * [`checker`] accepts or rejects an order by a derivation of its own; it runs in builds with debug assertions.
//!
//! What it decides: the order of instructions within blocks. What it does not: which instructions there are, and which
//! registers they use.

pub mod checker;
mod draw;
pub mod facts;
pub mod graph;
pub mod groups;
pub mod list;
pub mod live;
pub mod machine;
pub mod random;
mod show;
pub mod timeline;

pub use checker::{Violation, check};
pub use draw::draw_module;
pub use facts::{FunctionFacts, ModuleFacts};
pub use graph::{Builder, Edge, Graph, Kind, Node};
pub use live::{Liveness, words};
pub use machine::Machine;
pub use show::show_module;
pub use timeline::{Clock, Slot, Timeline};

use cranelift_entity::SecondaryMap;
use list::{List, Sink};
use ptxc_mir::{Block, Function, Inst, Module, VReg};

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
    fn keep(&mut self, timeline: &Timeline, critical_path: u32) {
        self.cycles_after += u64::from(timeline.cycles);
        self.peak_after = self.peak_after.max(timeline.peak);
        self.critical_path += u64::from(critical_path);
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
        let liveness = Liveness::of(func);
        let mut clock = Clock::new(&self.machine, &self.facts, &liveness);
        let blocks = func.layout.iter();
        blocks.map(|&block| (block, clock.run(func, block, &func.blocks[block].insts))).collect()
    }

    /// Cycles of each block once the assembler has ordered it: it puts independent computations where they wait least,
    /// within the dependences and with all registers that launch bounds grant.
    pub fn assembled(&self, func: &Function) -> Vec<u32> {
        let facts = FunctionFacts::new(&self.facts, func);
        let liveness = Liveness::of(func);
        let mut clock = Clock::new(&self.machine, &self.facts, &liveness);
        let mut builder = Builder::new(&facts);
        let mut list = List::new(&self.machine, &self.facts, &liveness, self.machine.register_budget(&func.attrs));
        let (mut nodes, mut order): (Vec<Node>, Vec<Inst>) = (Vec::new(), Vec::new());
        let mut cycles = Vec::with_capacity(func.layout.len());
        for &block in &func.layout {
            order.clear();
            list.enter(func, block, false);
            builder.each_region(func, block, |graph| {
                nodes.clear();
                list.region(func, graph, &mut nodes);
                order.extend(nodes.iter().filter_map(|&node| graph.inst(node)));
            });
            let as_it_stands = clock.run(func, block, &func.blocks[block].insts).cycles;
            cycles.push(clock.run(func, block, &order).cycles.min(as_it_stands));
        }
        cycles
    }
}

/// Registers of a thread that the assembler takes for itself: addresses, constants, stack.
const RESERVED: u32 = 8;

/// How many instructions before its user a computation is put that waits for it.
const AHEAD: usize = 6;

/// Orders the blocks of a function in SSA form.
///
/// # Errors
/// The checker refuses the new order, which is a fault of ours.
pub fn run(func: &mut Function, context: &Context, options: &Options) -> Result<Summary, Violation> {
    match options.mode {
        Mode::Source => Ok(Summary::default()),
        Mode::Latency => by_latency(func, context, options),
        Mode::Random(seed) => at_random(func, context, options, seed),
    }
}

fn at_random(func: &mut Function, context: &Context, options: &Options, seed: u64) -> Result<Summary, Violation> {
    let facts = FunctionFacts::new(&context.facts, func);
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
    Ok(Summary::default())
}

fn by_latency(func: &mut Function, context: &Context, options: &Options) -> Result<Summary, Violation> {
    let facts = FunctionFacts::new(&context.facts, func);
    let liveness = Liveness::of(func);
    let mut clock = Clock::new(&context.machine, &context.facts, &liveness);
    let before: Vec<Timeline> =
        func.layout.iter().map(|&block| clock.run(func, block, &func.blocks[block].insts)).collect();
    let peak = before.iter().map(|timeline| timeline.peak).max().unwrap_or(0);
    let limit = options.registers.unwrap_or_else(|| register_limit(func, &context.machine, peak));
    let mut builder = Builder::new(&facts);
    let mut list = List::new(&context.machine, &context.facts, &liveness, limit);
    let mut sink = Sink::default();
    let uses = count_uses(func);
    let mut summary = Summary { peak_before: peak, ..Summary::default() };
    let (mut nodes, mut order): (Vec<Node>, Vec<Inst>) = (Vec::new(), Vec::new());
    for (index, old) in before.iter().enumerate() {
        let block = func.layout[index];
        summary.cycles_before += u64::from(old.cycles);
        if cannot_gain(old, limit) {
            summary.keep(old, old.cycles);
            continue;
        }
        let mut best: Option<Timeline> = None;
        for spreads in [true, false] {
            if !spreads && !list.could_spread() {
                break;
            }
            order.clear();
            list.enter(func, block, spreads);
            builder.each_region(func, block, |graph| {
                nodes.clear();
                list.region(func, graph, &mut nodes);
                let may_sink = |inst| may_sink(func, context, &facts, &uses, inst);
                let ahead = if old.peak > limit { 0 } else { AHEAD };
                sink.region(graph, &nodes, ahead, may_sink, &mut order);
            });
            if options.check {
                check(func, &facts, block, &func.blocks[block].insts, &order)?;
            }
            let new = clock.run(func, block, &order);
            // What is spread leaves more to other warps: it may take a little longer.
            let better = best.as_ref().is_none_or(|best| new.cycles + new.cycles / 32 < best.cycles);
            if better && is_better(old, &new, limit) {
                best = Some(new);
            }
        }
        let kept = match &best {
            Some(new) => {
                func.blocks[block].insts.clear();
                func.blocks[block].insts.extend(new.slots.iter().map(|slot| slot.inst));
                summary.changed += 1;
                new
            }
            None => old,
        };
        summary.keep(kept, list.critical_path());
    }
    Ok(summary)
}

/// Whether no order of a block is worth it, as far as its timeline tells: it waits for nothing, and has enough registers.
fn cannot_gain(old: &Timeline, limit: u32) -> bool {
    let issue: u32 = old.slots.iter().map(|slot| u32::from(slot.timing.issue)).sum();
    old.peak <= limit && u64::from(issue) * 100 + 400 > u64::from(old.cycles) * 97
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
    let smaller = old.peak > limit && new.peak < old.peak && u64::from(new.cycles) * 100 <= u64::from(old.cycles) * 102;
    fits && faster || smaller
}

/// Whether an instruction may stand anywhere between its operands and its users, and is cheap: a short computation of one
/// value.
fn may_sink(
    func: &Function,
    context: &Context,
    facts: &FunctionFacts<'_>,
    uses: &SecondaryMap<VReg, u32>,
    inst: Inst,
) -> bool {
    let timing = context.machine.timing(func, inst);
    if timing.latency > 8 || timing.class.is_asynchronous() || !facts.of(func, inst).is_pure() {
        return false;
    }
    let (mut defined, mut read) = (0, 0);
    func.for_each_def(inst, |reg| defined += words(func.class(reg)));
    // Sources that end here would live on in its place.
    func.for_each_use(inst, |reg| read += if uses[reg] == 1 { words(func.class(reg)) } else { 0 });
    defined >= read
}

/// How often each register is read.
fn count_uses(func: &Function) -> SecondaryMap<VReg, u32> {
    let mut uses = SecondaryMap::with_capacity(func.vregs.len());
    for &block in &func.layout {
        func.blocks[block].insts.iter().for_each(|&inst| func.for_each_use(inst, |reg| uses[reg] += 1));
        func.for_each_terminator_use(block, |reg| uses[reg] += 1);
    }
    uses
}
