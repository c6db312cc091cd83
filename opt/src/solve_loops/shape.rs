//! Loops of one way around and one way out.

use ptxc_ir::{Block, BlockCall, Cfg, Effect, Extra, Function, Inst, Opcode, Value};
use smallvec::SmallVec;

/// Most blocks of a loop, and most instructions in them.
const MOST_BLOCKS: usize = 4;
const MOST_INSTS: usize = 40;

/// Blocks that lead to each other in a ring, with one way in and one out.
pub(super) struct Ring {
    /// The header first.
    pub blocks: SmallVec<[Block; 4]>,
    /// The block that leads into the loop from outside.
    pub entered_from: Block,
    /// The branch that leaves the loop.
    pub exit: Inst,
    /// Where it leads.
    pub out: BlockCall,
    /// Whether the loop is left where the condition holds.
    pub leaves_if: bool,
    /// Whether it is short and only computes.
    pub only_computes: bool,
    /// What is passed to the header by the last block.
    pub next: SmallVec<[Value; 8]>,
}

impl Ring {
    /// The loop that a block heads, if it is such a one.
    pub fn of(func: &Function, cfg: &Cfg, header: Block) -> Option<Ring> {
        let &[a, b] = cfg.preds(header) else { return None };
        let (mut blocks, mut exit, mut at) = (SmallVec::new(), None, header);
        blocks.push(header);
        let back = loop {
            let last = func.layout.last_inst(at)?;
            let step = match func.dfg.insts[last].extra {
                Extra::Jump(target) => target,
                Extra::Branch { then, other, .. } if exit.is_none() => {
                    let inside = (leads_to(func, cfg, &then, header), leads_to(func, cfg, &other, header));
                    let (stays, out, leaves_if) = match inside {
                        (true, false) => (then, other, false),
                        (false, true) => (other, then, true),
                        _ => return None,
                    };
                    exit = Some((last, out, leaves_if));
                    stays
                }
                _ => return None,
            };
            if step.block == header {
                break (at, step);
            }
            if !is_inner(func, cfg, step.block) || blocks.len() == MOST_BLOCKS {
                return None;
            }
            at = step.block;
            blocks.push(at);
        };
        let (exit, out, leaves_if) = exit?;
        let entered_from = if a.block == back.0 { b.block } else { a.block };
        let only_computes = blocks.iter().flat_map(|block| func.layout.insts(*block)).all(|inst| {
            let op = func.dfg.insts[inst].op;
            let divides_by = || func.dfg.args(inst).last().and_then(|by| func.dfg.as_bits(func.dfg.resolve(*by)));
            match op.info().effect {
                Effect::Pure => true,
                Effect::Traps => matches!(op, Opcode::Udiv | Opcode::Urem) && divides_by().is_some_and(|by| by != 0),
                _ => matches!(op, Opcode::Jump | Opcode::Br),
            }
        });
        let count: usize = blocks.iter().map(|block| func.layout.insts(*block).take(MOST_INSTS + 1).count()).sum();
        let next = args_of(func, &back.1);
        let only_computes = only_computes && count <= MOST_INSTS;
        let fits = entered_from != back.0 && !blocks.contains(&entered_from);
        fits.then_some(Ring { blocks, entered_from, exit, out, leaves_if, only_computes, next })
    }

    /// The header.
    pub fn header(&self) -> Block {
        self.blocks[0]
    }
}

/// A block that belongs to the one before it.
fn is_inner(func: &Function, cfg: &Cfg, block: Block) -> bool {
    cfg.preds(block).len() == 1 && func.dfg.block_params(block).is_empty()
}

/// Whether a way leads to the header without branching.
fn leads_to(func: &Function, cfg: &Cfg, way: &BlockCall, header: Block) -> bool {
    let mut at = way.block;
    for _ in 0..MOST_BLOCKS {
        if at == header {
            return true;
        }
        let jump = func.layout.last_inst(at).map(|last| func.dfg.insts[last].extra);
        match jump {
            Some(Extra::Jump(target)) if is_inner(func, cfg, at) => at = target.block,
            _ => return false,
        }
    }
    false
}

/// The arguments of a branch target.
pub(super) fn args_of(func: &Function, call: &BlockCall) -> SmallVec<[Value; 8]> {
    call.args.as_slice(&func.dfg.pool).iter().map(|value| func.dfg.resolve(*value)).collect()
}
