//! Constants that many ways bring to one parameter are made once, before the ways part.
//!
//! Every case of a switch that passes `false` on would put it into the register of the parameter, one by one. Put there
//! before the switch, the other cases overwrite it. The way that is taken executes one move either way.
//!
//! A branch that passes one constant both ways, to parameters that receive the same from elsewhere, makes it once too
//! ([`share_between_ways`]): a sum that begins with zero in a loop, and is zero where the loop is not entered.

use crate::fences::Kinds;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntitySet, SecondaryMap};
use ptxc_mir::{Block, BlockCall, Cfg, Function, Inst, InstData, Op, Operand, Terminator, VReg};
use ptxc_targets::Opcode;

/// As many edges have to bring the constant, and more than bring any other value.
const LEAST: usize = 3;

/// Shares constants, and removes the moves that made them if nothing else reads those. `depths` says how many loops each
/// block is in: nothing is made outside the loop that it is made in.
pub(crate) fn share(func: &mut Function, cfg: &Cfg, depths: &SecondaryMap<Block, u32>, kinds: &Kinds) {
    if kinds.has_products() {
        return;
    }
    let mut pass = Pass { edges: edges(func, cfg, LEAST), ..Pass::default() };
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

/// Most ways into a block whose parameters are compared with those of another one.
const MOST_WAYS: usize = 8;
/// Most pairs of parameters that are looked at for one branch.
const MOST_PAIRS: u32 = 256;

/// Makes constants once that the two ways of a branch pass to parameters which are one variable: one receives the other, or both
/// the same from elsewhere.
pub(crate) fn share_between_ways(func: &mut Function, cfg: &Cfg, kinds: &Kinds) {
    if kinds.has_products() {
        return;
    }
    let mut pass = Pass { edges: edges(func, cfg, 2), ..Pass::default() };
    if pass.edges.is_empty() {
        return;
    }
    pass.find_constants(func, kinds);
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for &block in func.layout.iter().filter(|block| cfg.reachable(**block)) {
        let Terminator::CondBra { then, otherwise, .. } = func.blocks[block].terminator else { continue };
        if then.block == otherwise.block || then.len.saturating_mul(otherwise.len) > MOST_PAIRS {
            continue;
        }
        for one in 0..then.len as usize {
            let wanted =
                (0..otherwise.len as usize).find(|other| pass.is_one_variable(func, (then, one), (otherwise, *other)));
            pairs.extend(wanted.map(|other| (then.as_range().start + one, otherwise.as_range().start + other)));
        }
    }
    pass.join(func, &pairs);
}

/// The edges into blocks with parameters and so many ways in, each with the index of its first argument, sorted by blocks.
fn edges(func: &Function, cfg: &Cfg, least: usize) -> Vec<(Block, usize)> {
    let mut edges = Vec::new();
    for &block in func.layout.iter().filter(|block| cfg.reachable(**block)) {
        func.blocks[block].terminator.for_each_target(|target| {
            if target.len > 0 && cfg.predecessors(target.block).len() >= least {
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

    /// What comes to a parameter.
    fn ways<'f>(
        &self,
        func: &'f Function,
        block: Block,
        index: usize,
    ) -> impl Iterator<Item = VReg> + Clone + use<'f, '_> {
        let first = self.edges.partition_point(|(other, _)| *other < block);
        let edges = self.edges[first..].iter().take_while(move |(other, _)| *other == block);
        edges.filter_map(move |(_, start)| func.args.get(start + index).copied())
    }

    /// Whether two parameters receive one constant from the two ways of a branch, and otherwise the same or each other.
    fn is_one_variable(&self, func: &Function, one: (BlockCall, usize), other: (BlockCall, usize)) -> bool {
        let value = |(call, index): (BlockCall, usize)| func.call_args(call).get(index).copied();
        let param = |(call, index): (BlockCall, usize)| func.blocks[call.block].params.get(index).copied();
        let (Some(a), Some(b), Some(p), Some(q)) = (value(one), value(other), param(one), param(other)) else {
            return false;
        };
        let constant = self.incoming(func, a);
        if a == b || constant != self.incoming(func, b) || func.vregs[p] != func.vregs[q] {
            return false;
        }
        let (to_p, to_q) = (self.ways(func, one.0.block, one.1), self.ways(func, other.0.block, other.1));
        if to_p.clone().count() > MOST_WAYS || to_q.clone().count() > MOST_WAYS {
            return false;
        }
        let mut shared = to_p.filter(|value| *value != a && *value != b);
        shared.any(|value| value == q || to_q.clone().any(|other| other == value || other == p))
    }

    /// Makes the constants of pairs of arguments once, where the second is read by nothing else.
    fn join(&mut self, func: &mut Function, pairs: &[(usize, usize)]) {
        if pairs.is_empty() {
            return;
        }
        let mut uses: SecondaryMap<VReg, u32> = SecondaryMap::with_capacity(func.vregs.len());
        for &block in &func.layout {
            for &inst in &func.blocks[block].insts {
                func.for_each_use(inst, |value| uses[value] += 1);
            }
            func.for_each_terminator_use(block, |value| uses[value] += 1);
        }
        for &(one, other) in pairs {
            let (shared, replaced) = (func.args[one], func.args[other]);
            if uses[replaced] == 1 && uses[shared] >= 1 {
                func.args[other] = shared;
                uses[replaced] = 0;
                uses[shared] += 1;
                self.replaced.push(replaced);
            }
        }
        self.remove_unread(func);
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
