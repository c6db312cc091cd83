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

/// Makes timelines; keeps what it allocated.
#[derive(Debug)]
pub struct Clock<'a> {
    machine: &'a Machine,
    facts: &'a ModuleFacts,
    liveness: &'a Liveness,
    pressure: Pressure,
    /// When each register is there, and in which timeline it was written.
    ready: SecondaryMap<VReg, (u32, u32)>,
    round: u32,
    groups: Groups,
}

impl<'a> Clock<'a> {
    /// A clock for one function.
    pub fn new(machine: &'a Machine, facts: &'a ModuleFacts, liveness: &'a Liveness) -> Clock<'a> {
        Clock {
            machine,
            facts,
            liveness,
            pressure: Pressure::default(),
            ready: SecondaryMap::new(),
            round: 0,
            groups: Groups::default(),
        }
    }

    /// The timeline of a block whose instructions are in the order `order`. What comes from other blocks is there at
    /// the start.
    pub fn run(&mut self, func: &Function, block: Block, order: &[Inst]) -> Timeline {
        self.round += 1;
        self.pressure.enter(func, self.liveness, block);
        let mut busy = [0u32; Unit::COUNT];
        self.groups.clear();
        let mut now = 0u32;
        let mut slots = Vec::with_capacity(order.len());
        for &inst in order {
            let timing = self.machine.timing(func, inst);
            let mut start = now.max(busy[timing.unit.index()]);
            func.for_each_use(inst, |reg| start = start.max(self.ready(reg)));
            start = start.max(self.groups.awaited(self.facts, func, inst));
            let end = start + u32::from(timing.latency);
            func.for_each_def(inst, |reg| self.ready[reg] = (self.round, end));
            self.groups.begin(self.facts, func, inst, timing.class.is_asynchronous(), end);
            busy[timing.unit.index()] = start + u32::from(timing.interval);
            now = start + u32::from(timing.issue);
            self.pressure.step(func, inst);
            slots.push(Slot { inst, start, timing, live: self.pressure.live() });
        }
        let mut cycles = now;
        func.for_each_terminator_use(block, |reg| cycles = cycles.max(self.ready(reg)));
        for &reg in self.liveness.live_out(block) {
            cycles = cycles.max(self.ready(reg));
        }
        Timeline { slots, cycles, peak: self.pressure.peak() }
    }

    fn ready(&self, reg: VReg) -> u32 {
        let (round, ready) = self.ready[reg];
        if round == self.round { ready } else { 0 }
    }
}
