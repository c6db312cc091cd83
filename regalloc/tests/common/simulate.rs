//! Executes machine IR with made-up meanings: every instruction's results are a hash of its number and of what it
//! reads. Two functions that read the same values at the same instructions in the same order compute the same.

use ptxc_mir::{Block, BlockCall, Function, Inst, Op, Operand, Terminator, VReg};
use std::collections::BTreeMap;

/// What happened: instruction and the values it read, in order.
pub type Trace = Vec<(u32, Vec<u64>)>;

/// Runs until the trace has `steps` entries or the function ends, which the second result tells. `known` is the number
/// of instructions that are not inserted moves.
pub fn run(func: &Function, known: usize, seed: u64, steps: usize) -> (Trace, bool) {
    let mut machine = Machine { func, known, seed, registers: BTreeMap::new(), trace: Vec::new() };
    let mut block = func.entry().expect("a block");
    // Loops without instructions do not lengthen the trace.
    for _ in 0..steps * 4 {
        for &inst in &func.blocks[block].insts {
            machine.inst(inst);
            if machine.trace.len() >= steps {
                return (machine.trace, false);
            }
        }
        match machine.terminator(block) {
            Some(target) => block = machine.jump(target),
            None => return (machine.trace, true),
        }
    }
    (machine.trace, false)
}

fn mix(a: u64, b: u64) -> u64 {
    let x = (a ^ b.rotate_left(23)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^ (x >> 29)
}

struct Machine<'a> {
    func: &'a Function,
    known: usize,
    seed: u64,
    registers: BTreeMap<VReg, u64>,
    trace: Trace,
}

impl Machine<'_> {
    fn read(&self, v: VReg) -> u64 {
        // An undefined register has a value that depends on the register, so that reading it is noticed.
        self.registers.get(&v).copied().unwrap_or_else(|| mix(0xdead, u64::from(v.as_u32())))
    }

    fn inst(&mut self, inst: Inst) {
        let data = self.func.insts[inst];
        let operands = self.func.inst_operands(inst);
        if let (Op::Copy(_), None, &[Operand::Def(to), Operand::Use(from)]) = (data.op, data.guard, operands) {
            let value = self.read(from);
            self.registers.insert(to, value);
            return;
        }
        assert!((inst.as_u32() as usize) < self.known, "an inserted instruction that is no move");
        let mut reads = Vec::new();
        let execute = data.guard.is_none_or(|guard| {
            let value = self.read(guard.pred);
            reads.push(value);
            (value & 1 == 1) != guard.negated
        });
        reads.extend(operands.iter().filter_map(|o| o.used()).map(|v| self.read(v)));
        let hash = reads.iter().fold(mix(self.seed, u64::from(inst.as_u32())), |h, &r| mix(h, r));
        let mut written = Vec::new();
        for (i, operand) in operands.iter().enumerate() {
            match *operand {
                Operand::Def(v) => written.push((v, mix(hash, i as u64))),
                Operand::DefUse { def, used } => {
                    let value = if execute { mix(hash, i as u64) } else { self.read(used) };
                    written.push((def, value));
                }
                _ => {}
            }
        }
        self.registers.extend(written);
        self.trace.push((inst.as_u32(), reads));
    }

    fn terminator(&mut self, block: Block) -> Option<BlockCall> {
        let (value, targets): (u64, Vec<BlockCall>) = match &self.func.blocks[block].terminator {
            Terminator::Jump(t) => return Some(*t),
            Terminator::CondBra { pred, negated, then, otherwise, .. } => {
                let value = self.read(*pred);
                let order = if *negated { [*then, *otherwise] } else { [*otherwise, *then] };
                (value, order.to_vec())
            }
            Terminator::BrxIdx { index, targets, .. } => (self.read(*index), targets.clone()),
            _ => return None,
        };
        self.trace.push((u32::MAX, vec![value]));
        Some(targets[(value % targets.len() as u64) as usize])
    }

    fn jump(&mut self, target: BlockCall) -> Block {
        let params = &self.func.blocks[target.block].params;
        if !params.is_empty() {
            let values: Vec<u64> = self.func.call_args(target).iter().map(|&a| self.read(a)).collect();
            self.registers.extend(params.iter().copied().zip(values));
        }
        target.block
    }
}
