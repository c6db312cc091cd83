//! Writes registers and moves into the function.

mod before_branch;

use crate::Stats;
use crate::coalesce::Classes;
use crate::liveness::Liveness;
use crate::parallel::{self, Moves};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
use ptxc_mir::{
    Block, BlockCall, BlockData, Cfg, Function, Inst, InstData, LocId, Op, Operand, RegClass, Terminator, VReg,
};
use smallvec::SmallVec;

/// Gives every class a register and puts the remaining moves in place.
pub(crate) fn rewrite(func: &mut Function, cfg: &Cfg, liveness: &Liveness, classes: Classes) -> Stats {
    debug_assert!(func.layout.iter().all(|&b| cfg.reachable(b)));
    let mut rewriter = Rewriter {
        registers: Registers {
            classes,
            of: vec![None.into(); func.vregs.len()],
            made: PrimaryMap::with_capacity(func.vregs.len()),
            values: SecondaryMap::new(),
            old: std::mem::take(&mut func.vregs),
        },
        cfg,
        liveness,
        stats: Stats::default(),
        sequence: Vec::new(),
    };
    let layout = std::mem::take(&mut func.layout);
    let mut new_layout = Vec::with_capacity(layout.len());
    for &block in &layout {
        rewriter.instructions(func, block);
        new_layout.push(block);
        rewriter.terminator(func, block, &mut new_layout);
    }
    for &block in &layout {
        func.blocks[block].params = Vec::new();
        func.blocks[block].terminator.for_each_target_mut(|t| t.len = 0);
    }
    func.layout = new_layout;
    func.args = Vec::new();
    for class in rewriter.registers.made.values() {
        rewriter.stats.registers[*class as usize] += 1;
    }
    func.vregs = rewriter.registers.made;
    rewriter.stats
}

/// The registers of values.
struct Registers {
    classes: Classes,
    /// The register of each value, or of the value that stands for its class.
    of: Vec<PackedOption<VReg>>,
    made: PrimaryMap<VReg, RegClass>,
    /// A value in each register.
    values: SecondaryMap<VReg, PackedOption<VReg>>,
    old: PrimaryMap<VReg, RegClass>,
}

impl Registers {
    /// The register of a value, numbered at its first mention.
    fn get(&mut self, vreg: VReg) -> VReg {
        if let Some(register) = self.of[vreg.index()].expand() {
            return register;
        }
        let root = self.classes.find(vreg);
        let register = match self.of[root.index()].expand() {
            Some(register) => register,
            None => {
                let register = self.made.push(self.old[root]);
                self.values[register] = root.into();
                register
            }
        };
        self.of[root.index()] = register.into();
        self.of[vreg.index()] = register.into();
        register
    }

    /// A value that a register holds at times; `None` when it only breaks cycles of moves.
    fn value(&self, register: VReg) -> Option<VReg> {
        self.values[register].expand()
    }
}

/// The edges out of a block with the moves on each.
type Edges = SmallVec<[(BlockCall, Moves); 2]>;

struct Rewriter<'a> {
    registers: Registers,
    cfg: &'a Cfg,
    liveness: &'a Liveness,
    stats: Stats,
    sequence: Vec<(VReg, VReg)>,
}

impl Rewriter<'_> {
    fn instructions(&mut self, func: &mut Function, block: Block) {
        let mut insts = std::mem::take(&mut func.blocks[block].insts);
        let mut idle = false;
        // Moves for ties, by the index of the instruction they go before.
        let mut before: Vec<(usize, Moves)> = Vec::new();
        for (i, &inst) in insts.iter().enumerate() {
            let moves = self.operands(func, inst);
            if !moves.is_empty() {
                before.push((i, moves));
            }
            match copied(func, inst) {
                Some((to, from)) if to == from => idle = true,
                Some(_) => self.stats.moves += 1,
                None => {}
            }
        }
        if !before.is_empty() {
            let old = std::mem::take(&mut insts);
            let mut before = before.into_iter().peekable();
            for (i, inst) in old.into_iter().enumerate() {
                if let Some((_, moves)) = before.next_if(|(at, _)| *at == i) {
                    let loc = func.insts[inst].loc;
                    self.moves(func, &moves, loc, &mut insts);
                }
                insts.push(inst);
            }
        }
        if idle {
            insts.retain(|&inst| copied(func, inst).is_none_or(|(to, from)| to != from));
        }
        func.blocks[block].insts = insts;
    }

    /// Rewrites an instruction's registers. Returns the moves its ties need.
    fn operands(&mut self, func: &mut Function, inst: Inst) -> Moves {
        let mut moves = Moves::new();
        if let Some(guard) = &mut func.insts[inst].guard {
            guard.pred = self.registers.get(guard.pred);
        }
        for operand in func.inst_operands_mut(inst) {
            match operand {
                Operand::Def(v) | Operand::Use(v) | Operand::UseNot(v) | Operand::UseMinus(v) => {
                    *v = self.registers.get(*v);
                }
                Operand::DefUse { def, used } => {
                    *def = self.registers.get(*def);
                    let from = self.registers.get(*used);
                    if from != *def {
                        moves.push((*def, from));
                    }
                    *used = *def;
                }
                _ => {}
            }
        }
        moves
    }

    /// Rewrites the condition and places the moves of outgoing edges.
    fn terminator(&mut self, func: &mut Function, block: Block, layout: &mut Vec<Block>) {
        let loc = func.blocks[block].terminator_loc;
        let mut terminator = std::mem::take(&mut func.blocks[block].terminator);
        if let Some(condition) = terminator.condition() {
            terminator.set_condition(self.registers.get(condition));
        }
        if let Terminator::Jump(target) = terminator {
            let moves = self.edge(func, target);
            let mut insts = std::mem::take(&mut func.blocks[block].insts);
            self.moves(func, &moves, loc, &mut insts);
            func.blocks[block].insts = insts;
        } else {
            let mut edges: Edges = SmallVec::new();
            terminator.for_each_target(|target| edges.push((target, self.edge(func, target))));
            // The condition has its register already.
            let early = self.before_branch(func, block, terminator.condition(), &mut edges);
            if !early.is_empty() {
                let mut insts = std::mem::take(&mut func.blocks[block].insts);
                self.moves(func, &early, loc, &mut insts);
                func.blocks[block].insts = insts;
            }
            let mut edges = edges.into_iter();
            terminator.for_each_target_mut(|target| {
                let Some((_, moves)) = edges.next().filter(|(_, moves)| !moves.is_empty()) else { return };
                // They go where no other way comes: into a block of their own.
                let mut insts = Vec::with_capacity(moves.len());
                self.moves(func, &moves, loc, &mut insts);
                let jump = Terminator::Jump(BlockCall { len: 0, ..*target });
                let data = BlockData { insts, terminator: jump, terminator_loc: loc, ..BlockData::default() };
                let between = func.blocks.push(data);
                layout.push(between);
                self.stats.edge_blocks += 1;
                *target = BlockCall { block: between, start: 0, len: 0 };
            });
        }
        func.blocks[block].terminator = terminator;
    }

    /// The moves an edge needs. Parameters that nobody reads need none.
    fn edge(&mut self, func: &Function, target: BlockCall) -> Moves {
        let mut moves = Moves::new();
        for (&param, &arg) in func.blocks[target.block].params.iter().zip(func.call_args(target)) {
            if self.liveness.is_used(param) {
                let (to, from) = (self.registers.get(param), self.registers.get(arg));
                if to != from {
                    moves.push((to, from));
                }
            }
        }
        moves
    }

    /// Appends moves in sequence.
    fn moves(&mut self, func: &mut Function, moves: &[(VReg, VReg)], loc: LocId, out: &mut Vec<Inst>) {
        if moves.is_empty() {
            return;
        }
        self.sequence.clear();
        let made = &mut self.registers.made;
        let cycles = parallel::sequence(moves, |v| made.push(made[v]), &mut self.sequence);
        self.stats.moves += self.sequence.len() as u32;
        self.stats.cycle_moves += cycles;
        for &(to, from) in &self.sequence {
            let op = Op::Copy(self.registers.made[to]);
            let operands = func.add_operands(&[Operand::Def(to), Operand::Use(from)]);
            out.push(func.insts.push(InstData { op, guard: None, operands, loc }));
        }
    }
}

/// What an unconditional copy writes and reads.
fn copied(func: &Function, inst: Inst) -> Option<(VReg, VReg)> {
    match (func.insts[inst].op, func.insts[inst].guard, func.inst_operands(inst)) {
        (Op::Copy(_), None, &[Operand::Def(to), Operand::Use(from)]) => Some((to, from)),
        _ => None,
    }
}
