//! When the instructions of a block would issue, by the model of one warp that has the multiprocessor for itself: in
//! order, each when its sources and its unit are there.

use crate::facts::ModuleFacts;
use crate::groups::Groups;
use crate::live::{Liveness, Pressure};
use crate::machine::Machine;
use cranelift_entity::SecondaryMap;
use ptxc_mir::{Block, Function, Inst, VReg};
use ptxc_targets::timing::{Timing, Unit};

/// An instruction in a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The instruction.
    pub inst: Inst,
    /// The cycle in which it issues; the block's entry is 0.
    pub start: u32,
    /// What it costs.
    pub timing: Timing,
    /// Live 32-bit registers after it.
    pub live: u32,
}

/// A block in time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The instructions in their order.
    pub slots: Vec<Slot>,
    /// The cycle in which the terminator issues, or the last result that later blocks read is there.
    pub cycles: u32,
    /// The most 32-bit registers live at once.
    pub peak: u32,
}

/// How long the way through two blocks takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// The cycle in which the first block's terminator issues: what a way out at it takes.
    pub out: u32,
    /// Cycles to the end of the second block, when all it leaves to others is there.
    pub through: u32,
}

/// Makes timelines; keeps what it allocated.
#[derive(Debug)]
pub struct Clock<'a> {
    machine: &'a Machine,
    facts: &'a ModuleFacts,
    pressure: Pressure,
    /// When each register is there, and in which timeline it was written.
    ready: SecondaryMap<VReg, (u32, u32)>,
    round: u32,
    groups: Groups,
    busy: [u32; Unit::COUNT],
    now: u32,
}

impl<'a> Clock<'a> {
    /// A clock for one function.
    pub fn new(machine: &'a Machine, facts: &'a ModuleFacts) -> Clock<'a> {
        Clock {
            machine,
            facts,
            pressure: Pressure::default(),
            ready: SecondaryMap::new(),
            round: 0,
            groups: Groups::default(),
            busy: [0; Unit::COUNT],
            now: 0,
        }
    }

    /// The timeline of a block with its instructions in this order.
    pub fn run(&mut self, func: &Function, liveness: &Liveness, block: Block, order: &[Inst]) -> Timeline {
        self.begin();
        self.pressure.enter(func, liveness, block);
        let mut slots = Vec::with_capacity(order.len());
        for &inst in order {
            let (start, timing) = self.issue(func, inst);
            self.pressure.step(func, inst);
            slots.push(Slot { inst, start, timing, live: self.pressure.live() });
        }
        Timeline { slots, cycles: self.end(func, liveness, block), peak: self.pressure.peak() }
    }

    /// How long the way from one block through the next takes, with the instructions of both as they are: what the first
    /// leaves to the second is waited for where it is read.
    pub fn way(&mut self, func: &Function, liveness: &Liveness, above: Block, below: Block) -> Way {
        self.begin();
        for &inst in &func.blocks[above].insts {
            self.issue(func, inst);
        }
        if let Some(condition) = func.blocks[above].terminator.condition() {
            self.now = self.now.max(self.ready(condition));
        }
        let out = self.now;
        for &inst in &func.blocks[below].insts {
            self.issue(func, inst);
        }
        Way { out, through: self.end(func, liveness, below) }
    }

    fn begin(&mut self) {
        self.round += 1;
        self.busy = [0; Unit::COUNT];
        self.groups.clear();
        self.now = 0;
    }

    /// The cycle in which the next instruction issues.
    fn issue(&mut self, func: &Function, inst: Inst) -> (u32, Timing) {
        let timing = self.machine.timing(func, inst);
        let mut start = self.now.max(self.busy[timing.unit.index()]);
        func.for_each_use(inst, |reg| start = start.max(self.ready(reg)));
        start = start.max(self.groups.awaited(self.facts, func, inst));
        let end = start + u32::from(timing.latency);
        func.for_each_def(inst, |reg| self.ready[reg] = (self.round, end));
        self.groups.begin(self.facts, func, inst, timing.class.is_asynchronous(), end);
        self.busy[timing.unit.index()] = start + u32::from(timing.interval);
        self.now = start + u32::from(timing.issue);
        (start, timing)
    }

    /// The cycle in which all that a block leaves to others is there.
    fn end(&self, func: &Function, liveness: &Liveness, block: Block) -> u32 {
        let mut cycles = self.now;
        func.for_each_terminator_use(block, |reg| cycles = cycles.max(self.ready(reg)));
        liveness.live_out(block).iter().for_each(|&reg| cycles = cycles.max(self.ready(reg)));
        cycles
    }

    fn ready(&self, reg: VReg) -> u32 {
        let (round, ready) = self.ready[reg];
        if round == self.round { ready } else { 0 }
    }
}
