//! When asynchronous operations are complete, and which of them a wait waits for.

use crate::facts::{Chains, ModuleFacts};
use ptxc_mir::{Function, Inst, Operand};

/// Chains of asynchronous operations that a wait ends.
const CHAINS: [Chains; 4] = [Chains::COPY_GROUP, Chains::BULK_GROUP, Chains::WGMMA, Chains::TENSOR_REGISTERS];

/// Groups of asynchronous operations that were begun since the start of a block. Those of earlier blocks count as
/// complete, as they are in the loops that counted waits are for.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    chains: [Group; CHAINS.len()],
}

#[derive(Clone, Debug, Default)]
struct Group {
    /// When the operations of every committed group are complete, and of all before it.
    committed: Vec<u32>,
    /// The same of those that no group holds yet.
    open: u32,
}

impl Groups {
    /// Forgets all operations.
    pub fn clear(&mut self) {
        for group in &mut self.chains {
            group.committed.clear();
            group.open = 0;
        }
    }

    /// Notes an instruction that is `asynchronous` and then complete at `end`, or commits a group.
    pub fn begin(&mut self, facts: &ModuleFacts, func: &Function, inst: Inst, asynchronous: bool, end: u32) {
        let Some(opcode) = facts.opcode(func, inst) else { return };
        for (chain, group) in CHAINS.iter().zip(&mut self.chains) {
            if asynchronous && opcode.reads.union(opcode.writes).intersects(*chain) {
                group.open = group.open.max(end);
            }
            if opcode.commits && opcode.writes.intersects(*chain) {
                let before = group.committed.last().copied().unwrap_or(0);
                group.committed.push(before.max(group.open));
                group.open = 0;
            }
        }
    }

    /// When all is complete that an instruction waits for; 0 when it waits for nothing.
    pub fn awaited(&self, facts: &ModuleFacts, func: &Function, inst: Inst) -> u32 {
        let Some(opcode) = facts.opcode(func, inst).filter(|opcode| opcode.waits) else { return 0 };
        let left = groups_left(func, inst);
        let waited = CHAINS.iter().zip(&self.chains).filter(|(chain, _)| opcode.writes.intersects(**chain));
        waited.map(|(_, group)| group.complete(left)).max().unwrap_or(0)
    }
}

/// The number that a wait names.
fn groups_left(func: &Function, inst: Inst) -> Option<usize> {
    func.inst_operands(inst).iter().find_map(|operand| match operand {
        Operand::Imm(count) => usize::try_from(*count).ok(),
        _ => None,
    })
}

impl Group {
    /// When all but the last `left` groups are complete; all operations where the wait counts nothing.
    fn complete(&self, left: Option<usize>) -> u32 {
        let count = self.committed.len().saturating_sub(left.unwrap_or(0));
        let committed = count.checked_sub(1).map_or(0, |last| self.committed[last]);
        if left.is_none() { committed.max(self.open) } else { committed }
    }
}
