//! Constants that many ways bring to one parameter are made once, before the ways part.
//!
//! Every case of a switch that passes `false` on would put it into the register of the parameter, one by one. Put there
//! before the switch, the other cases overwrite it. The way that is taken executes one move either way.

use crate::fences::Kinds;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntitySet, SecondaryMap};
use ptxc_mir::{Block, Cfg, Function, Inst, InstData, Op, Operand, VReg};
use ptxc_targets::Opcode;

/// As many edges have to bring the constant, and more than bring any other value.
const LEAST: usize = 3;

/// Shares constants, and removes the moves that made them if nothing else reads those. `depths` says how many loops each
/// block is in: nothing is made outside the loop that it is made in.
pub(crate) fn share(func: &mut Function, cfg: &Cfg, depths: &SecondaryMap<Block, u32>, kinds: &Kinds) {
    if kinds.has_products() {
        return;
    }
    let mut pass = Pass { edges: edges(func, cfg), ..Pass::default() };
    if pass.edges.is_empty() {
        return;
    }
    pass.find_constants(func, kinds);
    let mut first = 0;
    while let Some(&(block, _)) = pass.edges.get(first) {
        let count = pass.edges[first..].iter().take_while(|(other, _)| *other == block).count();
        let above = cfg.idom(block).filter(|&above| depths[above] == depths[block]);
        if let (Some(above), LEAST..) = (above, count) {
            pass.params(func, first..first + count, above);
        }
        first += count;
    }
    pass.remove_unread(func);
}

/// The edges into blocks with parameters, each with the index of its first argument, sorted by blocks.
fn edges(func: &Function, cfg: &Cfg) -> Vec<(Block, usize)> {
    let mut edges = Vec::new();
    for &block in func.layout.iter().filter(|block| cfg.reachable(**block)) {
        func.blocks[block].terminator.for_each_target(|target| {
            if target.len > 0 && cfg.predecessors(target.block).len() >= LEAST {
                edges.push((target.block, target.as_range().start));
            }
        });
    }
    edges.sort_unstable();
    edges
}

/// What an edge brings to a parameter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Incoming {
    /// A number, and the `mov` that makes it.
    Constant(Opcode, i64),
    Value(VReg),
}

/// What an edge brings, and the index of the argument.
type Way = (Incoming, usize);

#[derive(Default)]
struct Pass {
    edges: Vec<(Block, usize)>,
    /// The move that makes a constant.
    moves: SecondaryMap<VReg, PackedOption<Inst>>,
    /// Constants that some edge passes no more.
    replaced: Vec<VReg>,
}

impl Pass {
    fn find_constants(&mut self, func: &Function, kinds: &Kinds) {
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                if let (None, [Operand::Def(value), Operand::Imm(_)]) =
                    (func.insts[inst].guard, func.inst_operands(inst))
                    && kinds.is_move(func, inst)
                {
                    self.moves[*value] = inst.into();
                }
            }
        }
    }

    /// Shares what comes to the parameters of a block along `edges`; it is made at the end of the block `above`.
    fn params(&mut self, func: &mut Function, edges: std::ops::Range<usize>, above: Block) {
        let block = self.edges[edges.start].0;
        let mut incoming: Vec<Way> = Vec::with_capacity(edges.len());
        for index in 0..func.blocks[block].params.len() {
            incoming.clear();
            for &(_, start) in &self.edges[edges.clone()] {
                let Some(&value) = func.args.get(start + index) else { return };
                incoming.push((self.incoming(func, value), start + index));
            }
            incoming.sort_unstable();
            let Some((opcode, number, places)) = most_frequent(&incoming) else { continue };
            let class = func.vregs[func.blocks[block].params[index]];
            let shared = func.vregs.push(class);
            let operands = func.add_operands(&[Operand::Def(shared), Operand::Imm(number)]);
            let loc = func.blocks[above].terminator_loc;
            let inst = func.insts.push(InstData { op: Op::Ptx(opcode), guard: None, operands, loc });
            func.blocks[above].insts.push(inst);
            for (_, at) in places {
                self.replaced.push(std::mem::replace(&mut func.args[*at], shared));
            }
        }
    }

    fn incoming(&self, func: &Function, value: VReg) -> Incoming {
        if let Some(inst) = self.moves[value].expand()
            && let (Op::Ptx(opcode), [_, Operand::Imm(number)]) = (func.insts[inst].op, func.inst_operands(inst))
        {
            return Incoming::Constant(opcode, *number);
        }
        Incoming::Value(value)
    }

    /// Removes the moves of replaced constants that nothing reads.
    fn remove_unread(&self, func: &mut Function) {
        if self.replaced.is_empty() {
            return;
        }
        let mut unread: EntitySet<VReg> = EntitySet::with_capacity(func.vregs.len());
        self.replaced.iter().for_each(|value| {
            unread.insert(*value);
        });
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                func.for_each_use(inst, |value| {
                    unread.remove(value);
                });
            }
            func.for_each_terminator_use(block, |value| {
                unread.remove(value);
            });
        }
        let Function { blocks, layout, insts, operands, .. } = func;
        for block in layout.iter() {
            blocks[*block].insts.retain(|inst| match operands[insts[*inst].operands.as_range()] {
                [Operand::Def(value), Operand::Imm(_)] => !unread.contains(value),
                _ => true,
            });
        }
    }
}

/// The constant that comes along most edges, if it is enough of them and nothing else comes along as many; with the
/// edges. What is incoming is sorted.
fn most_frequent(incoming: &[Way]) -> Option<(Opcode, i64, &[Way])> {
    let runs = || incoming.chunk_by(|one, other| one.0 == other.0);
    let most = runs().max_by_key(|run| run.len())?;
    let Incoming::Constant(opcode, number) = most.first()?.0 else { return None };
    let alone = runs().filter(|run| run.len() == most.len()).count() == 1;
    (most.len() >= LEAST && alone).then_some((opcode, number, most))
}
