//! Registers that an operation goes on reading or writing after its instruction: the matrices of `wgmma.mma_async`
//! (PTX ISA 9.7.17) and the results of `tcgen05.ld` (9.7.18.8).

use super::{Chains, Facts, ModuleFacts};
use cranelift_entity::SecondaryMap;
use ptxc_mir::{Function, Inst, Op, RegClass, RegUse, VReg};

const WGMMA: u8 = 1;
const TENSOR: u8 = 2;

/// Which registers are, somewhere in the function, in flight. Nothing is known about when: every other access to them
/// keeps its place among the waits and fences.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    /// `None` when there are none, which is the rule.
    of: Option<SecondaryMap<VReg, u8>>,
}

impl InFlight {
    pub(super) fn of(module: &ModuleFacts, func: &Function) -> InFlight {
        let mut of: SecondaryMap<VReg, u8> = SecondaryMap::new();
        let mut pending = Vec::new();
        let mark = |of: &mut SecondaryMap<VReg, u8>, reg: VReg, kind: u8, pending: &mut Vec<VReg>| {
            if of[reg] & kind != kind {
                of[reg] |= kind;
                pending.push(reg);
            }
        };
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                let Some(facts) = module.opcode(func, inst) else { continue };
                if !(facts.wgmma || facts.tensor_load) {
                    continue;
                }
                for access in func.inst_operands(inst).iter().filter_map(|operand| operand.reg()) {
                    let (def, used) = match access {
                        RegUse::Use(reg) => (None, Some(reg)),
                        RegUse::Def(reg) => (Some(reg), None),
                        RegUse::Tied { def, used } => (Some(def), Some(used)),
                    };
                    let kind = if facts.wgmma { WGMMA } else { TENSOR };
                    def.into_iter().for_each(|reg| mark(&mut of, reg, kind, &mut pending));
                    // Fragments are 32-bit registers; descriptors and predicates are read when the instruction is.
                    let fragment = |reg: &VReg| facts.wgmma && func.class(*reg) == RegClass::B32;
                    used.into_iter().filter(fragment).for_each(|reg| mark(&mut of, reg, kind, &mut pending));
                }
            }
        }
        if pending.is_empty() {
            return InFlight::default();
        }
        let edges = same_value(func);
        while let Some(reg) = pending.pop() {
            let kind = of[reg];
            for &other in edges.get(reg).map_or(&[][..], Vec::as_slice) {
                mark(&mut of, other, kind, &mut pending);
            }
        }
        InFlight { of: Some(of) }
    }

    /// Adds the chains of registers in flight that an instruction accesses.
    pub(super) fn add(&self, func: &Function, inst: Inst, facts: &mut Facts) {
        let Some(of) = &self.of else { return };
        let mut kinds = 0;
        func.for_each_def(inst, |reg| kinds |= of[reg]);
        func.for_each_use(inst, |reg| kinds |= of[reg]);
        if kinds & WGMMA != 0 {
            facts.reads = facts.reads | Chains::WGMMA_REGISTERS.without(facts.writes);
        }
        if kinds & TENSOR != 0 {
            facts.reads = facts.reads | Chains::TENSOR_REGISTERS.without(facts.writes);
        }
    }
}

/// For every register those that are, or may become, the same: branch arguments and parameters, copies, ties.
fn same_value(func: &Function) -> SecondaryMap<VReg, Vec<VReg>> {
    let mut edges: SecondaryMap<VReg, Vec<VReg>> = SecondaryMap::new();
    let mut link = |a: VReg, b: VReg| {
        edges[a].push(b);
        edges[b].push(a);
    };
    for &block in &func.layout {
        let data = &func.blocks[block];
        for &inst in &data.insts {
            let is_copy = matches!(func.insts[inst].op, Op::Copy(_));
            let (mut def, mut used) = (None, None);
            for access in func.inst_operands(inst).iter().filter_map(|operand| operand.reg()) {
                match access {
                    RegUse::Tied { def, used } => link(def, used),
                    RegUse::Def(reg) => def = Some(reg),
                    RegUse::Use(reg) => used = Some(reg),
                }
            }
            if let (true, Some(def), Some(used)) = (is_copy, def, used) {
                link(def, used);
            }
        }
        data.terminator.for_each_target(|target| {
            let params = &func.blocks[target.block].params;
            params.iter().zip(func.call_args(target)).for_each(|(&param, &arg)| link(param, arg));
        });
    }
    edges
}
