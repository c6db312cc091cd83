//! Which registers are live where, and how many at once.

use cranelift_entity::SecondaryMap;
use ptxc_mir::{Block, Cfg, Function, Inst, RegClass, VReg};

/// How many 32-bit registers a value takes. Predicates have a file of their own.
pub fn words(class: RegClass) -> u32 {
    match class {
        RegClass::Pred => 0,
        _ => class.bits().div_ceil(32),
    }
}

/// Registers that live across the ends of blocks.
#[derive(Debug, Default)]
pub struct Liveness {
    live_in: SecondaryMap<Block, Vec<VReg>>,
    live_out: SecondaryMap<Block, Vec<VReg>>,
    /// Registers that were seen in a round of [`Liveness::update`].
    seen: SecondaryMap<VReg, u32>,
    round: u32,
}

impl Liveness {
    /// Computes it for a function in SSA form: from every use back to the definition, in time linear in the result.
    pub fn of(func: &Function, cfg: &Cfg) -> Liveness {
        let mut defined: SecondaryMap<VReg, Option<Block>> = SecondaryMap::with_capacity(func.vregs.len());
        for &block in &func.layout {
            let data = &func.blocks[block];
            data.params.iter().for_each(|&reg| defined[reg] = Some(block));
            data.insts.iter().for_each(|&inst| func.for_each_def(inst, |reg| defined[reg] = Some(block)));
        }
        let mut uses: Vec<(VReg, Block)> = Vec::new();
        for &block in &func.layout {
            let mut add = |reg: VReg| {
                if defined[reg] != Some(block) {
                    uses.push((reg, block));
                }
            };
            func.blocks[block].insts.iter().for_each(|&inst| func.for_each_use(inst, &mut add));
            func.for_each_terminator_use(block, &mut add);
        }
        uses.sort_unstable();
        uses.dedup();
        let mut liveness = Liveness::default();
        // The register for which a block was reached last, plus one.
        let mut reached_in: SecondaryMap<Block, u32> = SecondaryMap::new();
        let mut reached_out: SecondaryMap<Block, u32> = SecondaryMap::new();
        let mut pending = Vec::new();
        for (reg, block) in uses {
            let stamp = reg.as_u32() + 1;
            pending.push(block);
            while let Some(block) = pending.pop() {
                if std::mem::replace(&mut reached_in[block], stamp) == stamp {
                    continue;
                }
                liveness.live_in[block].push(reg);
                for &pred in cfg.predecessors(block) {
                    if std::mem::replace(&mut reached_out[pred], stamp) == stamp {
                        continue;
                    }
                    liveness.live_out[pred].push(reg);
                    if defined[reg] != Some(pred) {
                        pending.push(pred);
                    }
                }
            }
        }
        liveness
    }

    /// Takes note that instructions went from one to the other of two blocks, of which `below` is entered from `above`
    /// only: nothing changes but what lives between them.
    pub fn update(&mut self, func: &Function, above: Block, below: Block) {
        self.round += 1;
        let (defined, data) = (self.round, &func.blocks[below]);
        data.params.iter().for_each(|&reg| self.seen[reg] = defined);
        data.insts.iter().for_each(|&inst| func.for_each_def(inst, |reg| self.seen[reg] = defined));
        let mut live = std::mem::take(&mut self.live_in[below]);
        live.clear();
        let seen = &mut self.seen;
        let mut read = |reg: VReg| {
            if seen[reg] != defined {
                seen[reg] = defined;
                live.push(reg);
            }
        };
        data.insts.iter().for_each(|&inst| func.for_each_use(inst, &mut read));
        func.for_each_terminator_use(below, &mut read);
        self.live_out[below].iter().for_each(|&reg| read(reg));
        live.sort_unstable();
        self.live_in[below] = live;
        self.round += 1;
        let mut live = std::mem::take(&mut self.live_out[above]);
        live.clear();
        let (round, seen, live_in) = (self.round, &mut self.seen, &self.live_in);
        func.blocks[above].terminator.for_each_target(|target| {
            for &reg in &live_in[target.block] {
                if std::mem::replace(&mut seen[reg], round) != round {
                    live.push(reg);
                }
            }
        });
        live.sort_unstable();
        self.live_out[above] = live;
    }

    /// Registers defined elsewhere that the block or a later one reads, without the block's parameters; rising.
    pub fn live_in(&self, block: Block) -> &[VReg] {
        &self.live_in[block]
    }

    /// Registers that a later block reads, without arguments of branches; rising.
    pub fn live_out(&self, block: Block) -> &[VReg] {
        &self.live_out[block]
    }
}

/// Counts live registers while instructions of a block are put into an order.
#[derive(Debug, Default)]
pub struct Pressure {
    /// Reads to come, and one more for every way out of the block.
    left: SecondaryMap<VReg, u32>,
    /// Live 32-bit registers.
    live: u32,
    peak: u32,
}

impl Pressure {
    /// The state at the entry of a block.
    pub fn enter(&mut self, func: &Function, liveness: &Liveness, block: Block) {
        let data = &func.blocks[block];
        // Counts of an earlier block are taken back by setting them anew.
        for &reg in liveness.live_in(block).iter().chain(&data.params) {
            self.left[reg] = 0;
        }
        for &inst in &data.insts {
            func.for_each_def(inst, |reg| self.left[reg] = 0);
        }
        for &inst in &data.insts {
            func.for_each_use(inst, |reg| self.left[reg] += 1);
        }
        func.for_each_terminator_use(block, |reg| self.left[reg] += 1);
        liveness.live_out(block).iter().for_each(|&reg| self.left[reg] += 1);
        let live = liveness.live_in(block).iter().chain(&data.params).filter(|reg| self.left[**reg] != 0);
        self.live = live.map(|reg| words(func.class(*reg))).sum();
        self.peak = self.live;
    }

    /// By how much an instruction changes the number of live registers.
    pub fn change(&self, func: &Function, inst: Inst) -> i32 {
        let mut change = 0i32;
        func.for_each_def(inst, |reg| {
            if self.left[reg] != 0 {
                change += words(func.class(reg)) as i32;
            }
        });
        func.for_each_use(inst, |reg| {
            if self.left[reg] == 1 {
                change -= words(func.class(reg)) as i32;
            }
        });
        change
    }

    /// Executes an instruction.
    pub fn step(&mut self, func: &Function, inst: Inst) {
        func.for_each_use(inst, |reg| {
            let left = &mut self.left[reg];
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.live = self.live.saturating_sub(words(func.class(reg)));
            }
        });
        // Results that nobody reads hold a register for a moment.
        let mut dead = 0;
        func.for_each_def(inst, |reg| {
            self.live += words(func.class(reg));
            if self.left[reg] == 0 {
                dead += words(func.class(reg));
            }
        });
        self.peak = self.peak.max(self.live);
        self.live -= dead;
    }

    /// Live 32-bit registers.
    pub fn live(&self) -> u32 {
        self.live
    }

    /// The most there were.
    pub fn peak(&self) -> u32 {
        self.peak
    }
}
