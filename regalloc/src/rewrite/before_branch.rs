//! Moves of edges that go before the branch.
//!
//! `@!p bra exit; mov …; bra head` is a loop with a block behind its test, of which `ptxas` (13.5) peels a round, and
//! whose threads it gathers once more; `mov …; @p bra head` is one block. So all moves of an edge back to the head of a
//! loop go before the branch when the other way minds none of them, and so does a move that every way makes.

use super::{Edges, Rewriter};
use crate::parallel::Moves;
use ptxc_mir::{Block, BlockCall, Function, VReg};

impl Rewriter<'_> {
    /// Takes from the edges out of `block`, whose branch reads the register `condition`, the moves that go before it.
    /// While products are in flight a register may be the hardware's on one way only, and every move stays.
    pub(super) fn before_branch(
        &mut self,
        func: &Function,
        block: Block,
        condition: Option<VReg>,
        edges: &mut Edges,
    ) -> Moves {
        if self.liveness.in_flight || edges.iter().all(|(_, moves)| moves.is_empty()) {
            return Moves::new();
        }
        edges.iter_mut().for_each(|(_, moves)| moves.sort_unstable());
        let early = match edges.as_slice() {
            [one, other] if self.goes_back(block, one.0.block, other.0.block) => {
                self.of_back_edge(func, condition, one, other)
            }
            [other, one] if self.goes_back(block, one.0.block, other.0.block) => {
                self.of_back_edge(func, condition, one, other)
            }
            _ => None,
        };
        let early = early.unwrap_or_else(|| of_all(condition, edges));
        if !early.is_empty() {
            edges.iter_mut().for_each(|(_, moves)| moves.retain(|m| early.binary_search(m).is_err()));
        }
        early
    }

    /// Whether the way to `head` closes a loop that the way to `other` leaves, or an inner one of the loops of both.
    fn goes_back(&self, block: Block, head: Block, other: Block) -> bool {
        let cfg = self.cfg;
        cfg.dominates(head, block) && (!cfg.dominates(other, block) || other != head && cfg.dominates(other, head))
    }

    /// All moves of the edge `back`, if the branch and the other edge read nothing that they write.
    fn of_back_edge(
        &mut self,
        func: &Function,
        condition: Option<VReg>,
        back: &(BlockCall, Moves),
        other: &(BlockCall, Moves),
    ) -> Option<Moves> {
        let (target, others) = other;
        for (to, from) in &back.1 {
            if Some(*to) == condition {
                return None;
            }
            let shared = others.binary_search(&(*to, *from)).is_ok();
            let minds = if shared {
                others.iter().any(|&(other, read)| read == *to && back.1.binary_search(&(other, read)).is_err())
            } else {
                self.is_read_on(func, *to, *target)
            };
            if minds {
                return None;
            }
        }
        Some(back.1.clone())
    }

    /// Whether the way along an edge reads what a register holds at its start.
    fn is_read_on(&mut self, func: &Function, register: VReg, target: BlockCall) -> bool {
        for (&param, &arg) in func.blocks[target.block].params.iter().zip(func.call_args(target)) {
            if self.liveness.is_used(param) && self.registers.get(arg) == register {
                return true;
            }
        }
        // A register without a value is made for a cycle of moves, and read by nothing else.
        let Some(value) = self.registers.value(register) else { return false };
        self.registers.classes.is_live_into(value, target.block, self.cfg, self.liveness)
    }
}

/// The moves that every edge makes, but for those that write what the branch or a move left on an edge reads.
fn of_all(condition: Option<VReg>, edges: &Edges) -> Moves {
    let Some(((_, first), rest)) = edges.split_first() else { return Moves::new() };
    let on_all = |m: &(VReg, VReg)| rest.iter().all(|(_, moves)| moves.binary_search(m).is_ok());
    let mut early: Moves = first.iter().copied().filter(|m| Some(m.0) != condition && on_all(m)).collect();
    loop {
        let left = edges.iter().flat_map(|(_, moves)| moves).filter(|m| early.binary_search(m).is_err());
        let mut read: Moves = left.copied().map(|(to, from)| (from, to)).collect();
        read.sort_unstable();
        let before = early.len();
        early.retain(|(to, _)| {
            let at = read.partition_point(|(from, _)| from < to);
            read.get(at).is_none_or(|(from, _)| from != to)
        });
        if early.len() == before {
            return early;
        }
    }
}
