//! Checks that a function is well formed machine IR in SSA form.
//!
//! It reports every violation it finds, each naming function, block and instruction. It does not ask whether an
//! opcode is legal for a target or fits its operands: `ptxc-targets` does.

use crate::cfg::Cfg;
use crate::entities::{Block, Inst, VReg};
use crate::function::Function;
use crate::inst::{BlockCall, Callee, InstData, Op, Terminator};
use crate::operand::{Operand, top_level};
use crate::print::vreg_name;
use crate::types::RegClass;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{block}{}: {message}", place(*index))]
pub struct VerifierError {
    /// The block it is in.
    pub block: Block,
    /// Index of the instruction in the block; `None` is the terminator or the block itself.
    pub index: Option<usize>,
    /// What is wrong.
    pub message: String,
}

fn place(index: Option<usize>) -> String {
    index.map_or_else(String::new, |i| format!(", instruction {i}"))
}

/// Checks a function in SSA form.
///
/// # Errors
/// Every violation found.
pub fn verify(func: &Function) -> Result<(), Vec<VerifierError>> {
    let mut verifier = Verifier {
        func,
        cfg: Cfg::default(),
        definition: SecondaryMap::with_capacity(func.vregs.len()),
        errors: Vec::new(),
        block: func.entry().unwrap_or(Block::from_u32(0)),
        index: None,
    };
    verifier.run();
    if verifier.errors.is_empty() { Ok(()) } else { Err(verifier.errors) }
}

/// Where a register is defined: block and position, 0 being the block's entry.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Definition {
    block: PackedOption<Block>,
    position: u32,
}

struct Verifier<'a> {
    func: &'a Function,
    cfg: Cfg,
    definition: SecondaryMap<VReg, Definition>,
    errors: Vec<VerifierError>,
    block: Block,
    index: Option<usize>,
}

impl Verifier<'_> {
    fn error(&mut self, message: String) {
        self.errors.push(VerifierError { block: self.block, index: self.index, message });
    }

    fn run(&mut self) {
        let func = self.func;
        let Some(entry) = func.entry() else {
            self.error("the function has no blocks".into());
            return;
        };
        let mut placed: SecondaryMap<Block, bool> = SecondaryMap::new();
        for &block in &func.layout {
            self.block = block;
            if std::mem::replace(&mut placed[block], true) {
                self.error("the block is in the layout twice".into());
            }
        }
        for &block in &func.layout {
            self.block = block;
            self.targets(block, &placed);
            self.define_all(block);
        }
        if !func.blocks[entry].params.is_empty() {
            self.block = entry;
            self.error("the entry block has parameters".into());
        }
        // Dominance needs edges that lead somewhere.
        if self.errors.is_empty() {
            self.cfg = Cfg::compute(func);
            for &block in &func.layout {
                self.uses(block);
            }
        }
    }

    fn targets(&mut self, block: Block, placed: &SecondaryMap<Block, bool>) {
        let func = self.func;
        self.index = None;
        let terminator = &func.blocks[block].terminator;
        if matches!(terminator, Terminator::None) {
            self.error("the block has no terminator".into());
        }
        terminator.for_each_target(|t| {
            if !func.blocks.is_valid(t.block) || !placed[t.block] {
                self.error(format!("branches to {}, which is not in the layout", t.block));
            } else {
                self.arguments(t);
            }
        });
        let expected = match terminator {
            Terminator::CondBra { .. } => Some(RegClass::Pred),
            Terminator::BrxIdx { .. } => Some(RegClass::B32),
            _ => None,
        };
        if let (Some(class), Some(vreg)) = (expected, terminator.condition()) {
            self.expect_class(vreg, class);
        }
        if matches!(terminator, Terminator::BrxIdx { targets, .. } if targets.is_empty()) {
            self.error("brx has no targets".into());
        }
    }

    fn arguments(&mut self, target: BlockCall) {
        let func = self.func;
        let params = &func.blocks[target.block].params;
        let Some(args) = func.args.get(target.as_range()) else {
            self.error(format!("the arguments for {} lie outside the pool", target.block));
            return;
        };
        if params.len() != args.len() {
            self.error(format!("{} takes {} arguments, {} given", target.block, params.len(), args.len()));
            return;
        }
        for (&param, &arg) in params.iter().zip(args) {
            if func.vregs.get(param) != func.vregs.get(arg) {
                let (a, p) = (vreg_name(func, arg), vreg_name(func, param));
                self.error(format!("argument {a} and parameter {p} of {} differ in class", target.block));
            }
        }
    }

    fn expect_class(&mut self, vreg: VReg, class: RegClass) {
        if self.func.vregs.get(vreg) != Some(&class) {
            let name = vreg_name(self.func, vreg);
            self.error(format!("{name} is not a .{} register", class.ptx_type()));
        }
    }

    fn define(&mut self, vreg: VReg, position: u32) {
        if !self.func.vregs.is_valid(vreg) {
            self.error(format!("{vreg} is not declared"));
            return;
        }
        if self.definition[vreg].block.is_some() {
            let name = vreg_name(self.func, vreg);
            self.error(format!("{name} is defined twice"));
        }
        self.definition[vreg] = Definition { block: self.block.into(), position };
    }

    fn define_all(&mut self, block: Block) {
        let func = self.func;
        self.index = None;
        for &param in &func.blocks[block].params {
            self.define(param, 0);
        }
        for (i, &inst) in func.blocks[block].insts.iter().enumerate() {
            self.index = Some(i);
            if !func.insts.is_valid(inst) || func.operands.get(func.insts[inst].operands.as_range()).is_none() {
                self.error(format!("{inst} lies outside the function's arenas"));
                continue;
            }
            self.shape(inst);
            func.for_each_def(inst, |v| self.define(v, i as u32 + 1));
        }
        self.index = None;
    }

    /// Groups that fit, ties of one class, guards that are predicates, calls whose operands add up.
    fn shape(&mut self, inst: Inst) {
        let func = self.func;
        let data: &InstData = &func.insts[inst];
        let operands = func.inst_operands(inst);
        if let Some(guard) = data.guard {
            self.expect_class(guard.pred, RegClass::Pred);
            if operands.iter().any(|o| matches!(o, Operand::Def(_))) {
                self.error("a guarded instruction defines a register it does not also read".into());
            }
        }
        // Ends of the open groups, innermost last.
        let mut ends: Vec<usize> = Vec::new();
        for (i, operand) in operands.iter().enumerate() {
            ends.retain(|&end| end > i);
            match *operand {
                Operand::Open(_, n) => {
                    let end = i + 1 + usize::from(n);
                    if end > ends.last().copied().unwrap_or(operands.len()) {
                        self.error("a group of operands is longer than what surrounds it".into());
                    }
                    ends.push(end);
                }
                Operand::UseNot(v) => self.expect_class(v, RegClass::Pred),
                Operand::DefUse { def, used } if func.vregs.get(def) != func.vregs.get(used) => {
                    let (d, u) = (vreg_name(func, def), vreg_name(func, used));
                    self.error(format!("{d} and {u} share a register but differ in class"));
                }
                _ => {}
            }
        }
        match data.op {
            Op::Copy(class) => match operands {
                [Operand::Def(d), Operand::Use(s)] | [Operand::DefUse { def: d, .. }, Operand::Use(s)] => {
                    self.expect_class(*d, class);
                    self.expect_class(*s, class);
                }
                _ => self.error("a copy takes a destination and a source".into()),
            },
            Op::Call(id) => match func.calls.get(id) {
                Some(call) => {
                    let indirect = usize::from(matches!(call.callee, Callee::Indirect(_)));
                    let pieces = call.args.iter().chain(&call.rets).map(|p| usize::from(p.len)).sum::<usize>();
                    let given = top_level(operands).count();
                    if given != indirect + pieces {
                        self.error(format!("the call describes {} operands and has {given}", indirect + pieces));
                    }
                }
                None => self.error(format!("{id} does not exist")),
            },
            Op::Asm(id) if !func.asms.is_valid(id) => self.error(format!("{id} does not exist")),
            _ => {}
        }
    }

    fn uses(&mut self, block: Block) {
        if !self.cfg.reachable(block) {
            return;
        }
        let func = self.func;
        self.block = block;
        for (i, &inst) in func.blocks[block].insts.iter().enumerate() {
            self.index = Some(i);
            func.for_each_use(inst, |v| self.used(v, i as u32 + 1));
        }
        self.index = None;
        func.for_each_terminator_use(block, |v| self.used(v, u32::MAX));
    }

    fn used(&mut self, vreg: VReg, position: u32) {
        let definition = self.definition[vreg];
        match definition.block.expand() {
            None => self.error(format!("{} is used but never defined", vreg_name(self.func, vreg))),
            Some(block) if block == self.block && definition.position < position => {}
            Some(block) if block != self.block && self.cfg.dominates(block, self.block) => {}
            Some(_) => {
                let name = vreg_name(self.func, vreg);
                self.error(format!("the definition of {name} does not dominate this use"));
            }
        }
    }
}
