//! What the instructions of a module cost, and how many registers a function may use.

use ptxc_mir::{Function, FunctionAttrs, Inst, Module, Op, Operand};
use ptxc_targets::timing::{Class, LaunchBounds, Model, Timing, Unit, WARP_SIZE};

/// Costs of a module's mnemonics on one machine; computed once.
#[derive(Clone)]
pub struct Machine {
    model: &'static Model,
    opcodes: Vec<Timing>,
    copy: Timing,
    special: Timing,
    call: Timing,
    /// Copies of 64 bits, which reads of `%clock64` and its like are spelled as.
    wide_move: Option<Class>,
    tensor: Option<Unit>,
    spread: [Option<Class>; 2],
}

impl Machine {
    /// The machine of the module's target.
    pub fn new(module: &Module) -> Machine {
        let model = Model::of(module.target);
        Machine {
            model,
            opcodes: module.opcodes.all().map(|toks| model.timing(toks)).collect(),
            copy: model.timing_of_class(Class::OTHER),
            special: model.timing_of_class(Class::SPECIAL_REGISTER),
            call: model.timing_of_class(Class::CALL),
            wide_move: Class::named("move_pair"),
            tensor: Unit::all().find(|unit| unit.name() == "tensor"),
            spread: ["load_matrix", "copy_async"].map(Class::named),
        }
    }

    /// The tables behind it.
    pub fn model(&self) -> &'static Model {
        self.model
    }

    /// What an instruction costs.
    pub fn timing(&self, func: &Function, inst: Inst) -> Timing {
        match func.insts[inst].op {
            Op::Ptx(opcode) => {
                let timing = self.opcodes.get(opcode.index()).copied().unwrap_or(self.copy);
                let special = (timing.class == Class::OTHER || self.wide_move == Some(timing.class))
                    && func.inst_operands(inst).iter().any(|operand| matches!(operand, Operand::SReg(_)));
                if special { self.special } else { timing }
            }
            Op::Copy(_) => self.copy,
            Op::Call(_) | Op::Asm(_) => self.call,
        }
    }

    /// Whether it multiplies matrices.
    pub fn is_product(&self, timing: Timing) -> bool {
        self.tensor == Some(timing.unit)
    }

    /// Whether it is best spread evenly between products of matrices: loads of matrices and asynchronous copies.
    pub fn is_spread(&self, timing: Timing) -> bool {
        self.spread.contains(&Some(timing.class))
    }

    /// How many warps a partition holds of a function that needs `registers` registers, as far as they are the limit.
    pub fn warps_of_partition(&self, attrs: &FunctionAttrs, registers: u32) -> u32 {
        let registers = registers.min(self.register_budget(attrs));
        let occupancy = self.model.occupancy(registers, 0, threads_of_block(attrs).unwrap_or(WARP_SIZE));
        occupancy.warps / self.model.partitions().max(1)
    }

    /// The most registers that the function may use, as launch bounds promise.
    pub fn register_budget(&self, attrs: &FunctionAttrs) -> u32 {
        self.model.register_budget(LaunchBounds {
            threads: threads_of_block(attrs),
            blocks: attrs.minnctapersm,
            registers: attrs.maxnreg,
        })
    }

    /// Registers of a thread with which a multiprocessor still holds all the warps it can.
    pub fn free_registers(&self) -> u32 {
        self.model.registers() / (self.model.warps() * WARP_SIZE).max(1)
    }
}

/// The most threads of a block, where launch bounds say it.
fn threads_of_block(attrs: &FunctionAttrs) -> Option<u32> {
    attrs.reqntid.or(attrs.maxntid).map(|threads| threads.iter().fold(1, |all: u32, one| all.saturating_mul(*one)))
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("model", &self.model.name()).finish_non_exhaustive()
    }
}
