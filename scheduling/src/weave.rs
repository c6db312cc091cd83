//! Puts instructions that come from another block into the waits of a block, whose own order stays.

use crate::facts::FunctionFacts;
use crate::machine::Machine;
use crate::motion::for_each_carried;
use crate::timeline::Slot;
use cranelift_entity::SecondaryMap;
use ptxc_mir::{Block, Function, Inst, Operand, VReg};
use rustc_hash::FxHashMap;

/// What is known of a register in the current round.
#[derive(Clone, Copy, Default)]
struct Register {
    round: u32,
    /// The cycle in which it is there; [`COMING`] until the instruction that writes it is passed.
    ready: u32,
    /// The last of what comes that writes or reads it, plus one.
    wanted: u32,
    read: u32,
}

const COMING: u32 = u32::MAX;

/// Weaves; keeps what it allocated.
#[derive(Default)]
pub(crate) struct Weaver {
    registers: SecondaryMap<VReg, Register>,
    round: u32,
    /// The block in its new order.
    pub order: Vec<Inst>,
}

/// Where instructions come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum From {
    /// The block above: before what reads them.
    Above,
    /// The block below: behind what they read.
    Below,
}

impl Weaver {
    fn register(&mut self, reg: VReg) -> &mut Register {
        let round = self.round;
        let register = &mut self.registers[reg];
        if register.round != round {
            *register = Register { round, ..Register::default() };
        }
        register
    }

    /// Fills in the order of a block with `coming` among its own instructions, whose timeline is `slots`. What comes keeps
    /// its order. Each is put where the block waits longest or later, as soon as what it reads is there: no unit is busy
    /// for it that an earlier instruction needs, and it lives no longer than it has to. What finds no place stands at the end
    /// of the block, or before what has to follow it.
    pub fn weave(
        &mut self,
        func: &Function,
        (facts, machine): (&FunctionFacts<'_>, &Machine),
        (block, slots): (Block, &[Slot]),
        (from, coming): (From, &[Inst]),
    ) {
        self.round += 1;
        self.order.clear();
        let mut carried: FxHashMap<VReg, VReg> = FxHashMap::default();
        for_each_carried(func, block, |param, arg| {
            carried.insert(arg, param);
        });
        for slot in slots {
            func.for_each_def(slot.inst, |reg| self.register(reg).ready = COMING);
        }
        for (index, &inst) in coming.iter().enumerate() {
            let index = index as u32 + 1;
            func.for_each_def(inst, |reg| self.register(reg).wanted = index);
            func.for_each_use(inst, |reg| self.register(reg).read = index);
        }
        // Nothing moves past a boundary, and what is not pure stays in front of all, or behind.
        let boundary = |slot: &Slot| facts.of(func, slot.inst).boundary;
        let wait = longest_wait(func, block, slots);
        let opens = match from {
            From::Below => slots.iter().rposition(boundary).map_or(wait, |at| wait.max(at + 1)),
            From::Above => wait,
        };
        let closes = match from {
            From::Above => slots.iter().position(boundary).unwrap_or(slots.len()),
            From::Below => slots.len(),
        };
        let fixed = coming.iter().rposition(|&inst| !facts.of(func, inst).is_pure()).map_or(0, |at| at + 1);
        let mut next = 0;
        if from == From::Above {
            self.order.extend(&coming[..fixed]);
            next = fixed;
        }
        let (mut now, mut delay) = (0u32, 0u32);
        for (position, slot) in slots.iter().enumerate() {
            let demanded = match from {
                From::Below => 0,
                From::Above if position == closes => coming.len(),
                From::Above => self.demand(func, &carried, slot.inst),
            };
            while let Some(&inst) = coming.get(next) {
                let timing = machine.timing(func, inst);
                let mut start = now;
                func.for_each_use(inst, |reg| start = start.max(self.register(reg).ready));
                let must = next < demanded;
                let is_free = from == From::Above || fixed == 0;
                let gap = start.saturating_add(timing.issue.into()) <= slot.start + delay;
                if !(must || position >= opens && is_free && gap) {
                    break;
                }
                let start = if start == COMING { now } else { start };
                func.for_each_def(inst, |reg| self.register(reg).ready = start + u32::from(timing.latency));
                now = start + u32::from(timing.issue);
                self.order.push(inst);
                next += 1;
            }
            let start = now.max(slot.start + delay);
            delay = start - slot.start;
            func.for_each_def(slot.inst, |reg| self.register(reg).ready = start + u32::from(slot.timing.latency));
            now = start + u32::from(slot.timing.issue);
            self.order.push(slot.inst);
        }
        self.order.extend(&coming[next..]);
    }

    /// How many of what comes have to stand before an instruction of the block: those that write what it reads, and those
    /// that read what it overwrites.
    fn demand(&mut self, func: &Function, carried: &FxHashMap<VReg, VReg>, inst: Inst) -> usize {
        let mut demand = 0;
        func.for_each_use(inst, |reg| demand = demand.max(self.register(reg).wanted));
        for operand in func.inst_operands(inst) {
            if let Operand::DefUse { used, .. } = operand {
                demand = demand.max(self.register(*used).read);
            }
            if let Some(param) = operand.def().and_then(|reg| carried.get(&reg)) {
                demand = demand.max(self.register(*param).read);
            }
        }
        demand as usize
    }
}

/// The position before which a block waits longest; that of its end when it does so for its branch.
fn longest_wait(func: &Function, block: Block, slots: &[Slot]) -> usize {
    let (mut now, mut longest, mut at) = (0, 0, 0);
    for (position, slot) in slots.iter().enumerate() {
        let wait = slot.start.saturating_sub(now);
        if wait > longest {
            (longest, at) = (wait, position);
        }
        now = slot.start + u32::from(slot.timing.issue);
    }
    let condition = func.blocks[block].terminator.condition();
    let decides = |slot: &&Slot| {
        let mut found = false;
        func.for_each_def(slot.inst, |reg| found |= Some(reg) == condition);
        found
    };
    let decided = slots.iter().rev().find(decides).map_or(0, |slot| slot.start + u32::from(slot.timing.latency));
    if decided.saturating_sub(now) > longest { slots.len() } else { at }
}
