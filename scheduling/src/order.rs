//! Orders one block after the other by latency and registers, and says what an order is worth.

use crate::facts::FunctionFacts;
use crate::graph::{Builder, Node};
use crate::list::{List, Sink};
use crate::live::{Liveness, words};
use crate::rows::turn_rows;
use crate::timeline::{Clock, Timeline};
use crate::{Context, Violation, check};
use cranelift_entity::SecondaryMap;
use ptxc_mir::{Block, Function, Inst, VReg};

/// How many instructions before its user a computation is put that waits for it.
const AHEAD: usize = 6;

/// The orderer of one function's blocks; keeps what it allocated.
pub(crate) struct Orderer<'a> {
    context: &'a Context,
    facts: &'a FunctionFacts<'a>,
    pub clock: Clock<'a>,
    builder: Builder<'a>,
    list: List<'a>,
    sink: Sink,
    /// How often each register is read.
    uses: SecondaryMap<VReg, u32>,
    /// The most registers to be live at once.
    limit: u32,
    nodes: Vec<Node>,
    order: Vec<Inst>,
}

impl<'a> Orderer<'a> {
    pub fn new(func: &Function, context: &'a Context, facts: &'a FunctionFacts<'a>, limit: u32) -> Orderer<'a> {
        Orderer {
            context,
            facts,
            clock: Clock::new(&context.machine, &context.facts),
            builder: Builder::new(facts),
            list: List::new(&context.machine, &context.facts, limit),
            sink: Sink::default(),
            uses: count_uses(func),
            limit,
            nodes: Vec::new(),
            order: Vec::new(),
        }
    }

    /// The best order of a block that `is_better` takes, as its timeline; `peak` is that of the order it has.
    ///
    /// # Errors
    /// `checks` was asked for and the checker refuses an order.
    pub fn order(
        &mut self,
        func: &Function,
        liveness: &Liveness,
        (block, peak, checks): (Block, u32, bool),
        is_better: impl Fn(&Timeline) -> bool,
    ) -> Result<Option<Timeline>, Violation> {
        let mut best: Option<Timeline> = None;
        for spreads in [true, false] {
            if !spreads && !self.list.could_spread() {
                break;
            }
            self.list_order(func, liveness, block, (spreads, peak));
            if checks {
                check(func, self.facts, block, &func.blocks[block].insts, &self.order)?;
            }
            let new = self.clock.run(func, liveness, block, &self.order);
            // What is spread leaves more to other warps: it may take a little longer.
            let better = best.as_ref().is_none_or(|best| new.cycles + new.cycles / 32 < best.cycles);
            if better && is_better(&new) {
                best = Some(new);
            }
        }
        Ok(best)
    }

    /// The longest ways through the regions of the block that was ordered last, in cycles.
    pub fn critical_path(&self) -> u32 {
        self.list.critical_path()
    }

    /// Whether registers were short when the block was ordered.
    pub fn was_pressed(&self) -> bool {
        self.list.was_pressed()
    }

    fn list_order(&mut self, func: &Function, liveness: &Liveness, block: Block, (spreads, peak): (bool, u32)) {
        let Orderer { list, sink, nodes, order, context, facts, uses, .. } = self;
        order.clear();
        list.enter(func, liveness, block, spreads);
        let ahead = if peak > self.limit { 0 } else { AHEAD };
        self.builder.each_region(func, block, |graph| {
            nodes.clear();
            list.region(func, graph, nodes);
            sink.region(graph, nodes, ahead, |inst| may_sink(func, context, facts, uses, inst), order);
        });
        if spreads {
            turn_rows(func, facts, &context.machine, order);
        }
    }
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
