//! Pairs that a loop carries.
//!
//! Two scalars that a loop updates by one operation, `a = fma(x, y, a)` and `b = fma(z, w, b)`, become one block parameter, a pair, when
//! what updates them is worth computing in pairs with the parameters' lanes side by side. Without it the pair would be put together at
//! the head of every round, which for halves takes the instruction that packing saves. Loops are looked at from the inside out: around
//! one that carries a pair, another does when it only hands both values on.
//!
//! What a loop without a second way back to its head passes on is known from one edge; others stay as they are. What is read behind the
//! loop is taken out of the pair there, once.

use ptxc_ir::loops::{Loop, Loops};
use ptxc_ir::{
    Block, Cfg, ConstData, DominatorTree, Extra, Flags, Function, FunctionBuilder, Inst, Opcode, Type, Value,
};
use smallvec::SmallVec;

use super::cost;
use super::lanes::{lane_of, scalar_of};
use super::place;
use super::tree::{NodeId, Tree};
use super::{Packer, isomorphic, packable};
use crate::edit::{KeptParams, drop_params, resolve_all_uses};
use crate::pass::Context;
use crate::rules::Rule;

/// Pairs of parameters of one loop that are tried.
const MOST_TRIED: usize = 128;

/// Makes pairs of what loops carry. Tells whether anything changed.
pub(super) fn carry_pairs(func: &mut Function, ctx: &Context<'_>) -> bool {
    let cfg = Cfg::new(func);
    let loops = Loops::new(&cfg, &DominatorTree::new(&cfg));
    // Headers of inner loops come later in the order.
    let mut headers: Vec<(Loop, Block)> = loops.iter().map(|(number, data)| (number, data.header)).collect();
    headers.retain(|(_, header)| carried(func, *header).len() > 1);
    headers.sort_by_key(|(_, header)| std::cmp::Reverse(cfg.rpo_index(*header)));
    if headers.is_empty() {
        return false;
    }
    let mut carrier = Carrier { packer: Packer::new(func, ctx), cfg: &cfg, loops: &loops, kept: KeptParams::new() };
    let mut changed = false;
    for (number, header) in headers {
        changed |= carrier.header(func, number, header);
    }
    if changed {
        let kept = carrier.kept;
        drop_params(func, &kept);
        resolve_all_uses(func);
    }
    changed
}

/// Parameters of a block that may be lanes, with their positions.
fn carried(func: &Function, block: Block) -> SmallVec<[(usize, Value); 8]> {
    let params = func.dfg.block_params(block).iter().copied().enumerate();
    params.filter(|(_, param)| matches!(func.dfg.ty(*param), Type::F16 | Type::BF16 | Type::F32)).collect()
}

struct Carrier<'a> {
    packer: Packer<'a>,
    cfg: &'a Cfg,
    loops: &'a Loops,
    /// Which parameters stay.
    kept: KeptParams,
}

/// Two parameters of a loop, and what the loop passes for them when it comes round.
struct Pair {
    inside: Loop,
    header: Block,
    /// Positions of the parameters.
    at: [usize; 2],
    params: [Value; 2],
    next: [Value; 2],
    /// The terminator that leads back to the header.
    latch: Inst,
}

impl Carrier<'_> {
    fn header(&mut self, func: &mut Function, inside: Loop, header: Block) -> bool {
        let params = carried(func, header);
        let mut back = self.cfg.preds(header).iter().filter(|pred| self.loops.contains(inside, pred.block));
        let (Some(latch), None) = (back.next().map(|pred| pred.inst), back.next()) else { return false };
        let mut taken: SmallVec<[usize; 8]> = SmallVec::new();
        let mut tried = 0;
        for (index, (i, p)) in params.iter().enumerate() {
            for (j, q) in &params[index + 1..] {
                let free = !taken.contains(i) && !taken.contains(j) && func.dfg.ty(*p) == func.dfg.ty(*q);
                if !free || tried >= MOST_TRIED {
                    continue;
                }
                let Some(next) = passed(func, latch, header, [*i, *j]) else { continue };
                tried += 1;
                let pair = Pair { inside, header, at: [*i, *j], params: [*p, *q], next, latch };
                if self.attempt(func, &pair) {
                    taken.extend([*i, *j]);
                }
            }
        }
        !taken.is_empty()
    }

    /// Carries a pair, if that saves instructions of the loop.
    fn attempt(&mut self, func: &mut Function, pair: &Pair) -> bool {
        if let Some(vector) = self.handed_on(func, pair) {
            let made = self.carry(func, pair);
            self.replace(func, made.at_latch, vector);
            return true;
        }
        let Some(block) = func.dfg.def_inst(pair.next[0]).and_then(|inst| func.layout.inst_block(inst)) else {
            return false;
        };
        self.packer.enter(func, block);
        let Some((tree, root)) = self.tree(func, pair, true) else { return false };
        if self.cost(func, pair, &tree, root) >= 0 || place::places(&self.packer, func, &tree, root).is_none() {
            return false;
        }
        let made = self.carry(func, pair);
        // The same tree, with the lanes of the new parameter.
        let Some((tree, root)) = self.tree(func, pair, false) else { return true };
        if let Some(places) = place::places(&self.packer, func, &tree, root) {
            let packed = place::emit(&mut self.packer, func, &tree, root, &places);
            self.replace(func, made.at_latch, packed);
        }
        true
    }

    /// The tree that computes what the loop passes on. With `assumed`, the parameters count as lanes of a vector.
    fn tree(&self, func: &Function, pair: &Pair, assumed: bool) -> Option<(Tree, NodeId)> {
        let [x, y] = pair.next.map(|value| scalar_of(func, value));
        let [a, b] = [func.dfg.def_inst(x)?, func.dfg.def_inst(y)?];
        let fits = [a, b].iter().all(|inst| self.packer.is_here(func, *inst) && packable(self.packer.ctx, func, *inst));
        if !fits || !isomorphic(func, a, b) {
            return None;
        }
        let mut tree = Tree::new();
        if assumed {
            tree.assume(pair.params[0], pair.params[1]);
        }
        let root = tree.grow(&self.packer, func, x, y)?;
        Some((tree, root))
    }

    /// Instructions that a round of the loop takes more.
    fn cost(&self, func: &Function, pair: &Pair, tree: &Tree, root: NodeId) -> i32 {
        if !tree.reads_assumed() {
            return 0;
        }
        let inside = |user: &&Inst| {
            let block = func.layout.inst_block(**user);
            block.is_some_and(|block| self.loops.contains(pair.inside, block))
                && **user != pair.latch
                && !tree.members.contains_key(user)
        };
        let mut cost = tree.own_cost(root);
        for (upper, user) in tree.uppers() {
            cost += cost::extraction(func, upper, self.packer.users[user].iter().filter(inside));
        }
        let upper = pair.params[1];
        cost + cost::extraction_of(func, func.dfg.ty(upper), self.packer.users[upper].iter().filter(inside))
    }

    /// The vector whose lanes a loop passes on, when it reads both parameters as one vector alone.
    fn handed_on(&self, func: &Function, pair: &Pair) -> Option<Value> {
        let [p, q] = pair.params;
        let (Some((vector, 0)), Some((other, 1))) = (lane_of(func, pair.next[0]), lane_of(func, pair.next[1])) else {
            return None;
        };
        let whole = vector == other && func.dfg.ty(vector) == func.dfg.ty(p).with_lanes(2);
        let users = &self.packer.users[p];
        let read = !users.is_empty() && users.len() == self.packer.users[q].len();
        (whole && read && users.iter().all(|user| is_vector_of(func, *user, [p, q]))).then_some(vector)
    }

    /// Makes the parameters lanes of a new one.
    fn carry(&mut self, func: &mut Function, pair: &Pair) -> Made {
        let ty = func.dfg.ty(pair.params[0]).with_lanes(2);
        let vector = func.dfg.append_block_param(pair.header, ty);
        let mut at_latch = None;
        let preds: SmallVec<[Inst; 4]> = self.cfg.preds(pair.header).iter().map(|pred| pred.inst).collect();
        for (index, terminator) in preds.iter().enumerate() {
            // Two edges of one branch are two entries.
            if preds[..index].contains(terminator) {
                continue;
            }
            let made = self.pass_vectors(func, pair, *terminator, ty);
            if *terminator == pair.latch {
                at_latch = made;
            }
        }
        let flags = self.kept[pair.header].get_or_insert_with(|| vec![true; func.dfg.block_params(pair.header).len()]);
        flags.resize(func.dfg.block_params(pair.header).len(), true);
        for at in pair.at {
            flags[at] = false;
        }
        self.take_apart(func, pair, vector, ty);
        self.packer.ctx.note(pair.latch, Rule::PackCarried);
        Made { at_latch }
    }

    /// Passes a vector of the two values on every edge of a terminator into the header. The last one that is no constant.
    fn pass_vectors(&mut self, func: &mut Function, pair: &Pair, terminator: Inst, ty: Type) -> Option<Inst> {
        let mut given: SmallVec<[[Value; 2]; 2]> = SmallVec::new();
        func.dfg.for_each_target(terminator, |target| {
            let args = target.args.as_slice(&func.dfg.pool);
            if let (true, Some(a), Some(b)) = (target.block == pair.header, args.get(pair.at[0]), args.get(pair.at[1]))
            {
                given.push([func.dfg.resolve(*a), func.dfg.resolve(*b)]);
            }
        });
        let mut made = None;
        let mut vectors: SmallVec<[Value; 2]> = SmallVec::new();
        for [a, b] in given {
            for value in [a, b] {
                self.packer.forget_use(value, terminator);
            }
            let constant = func.dfg.as_const(a).is_some() && func.dfg.as_const(b).is_some();
            let whole = if constant {
                func.dfg.constant(ty, ConstData::Vector(vec![a, b]))
            } else {
                let inst = FunctionBuilder::before(func, terminator).inst_with_results(
                    Opcode::Vector,
                    Flags::EMPTY,
                    ty,
                    &[a, b],
                    Extra::None,
                    &[ty],
                );
                self.packer.add_uses(func, inst);
                self.packer.position[inst] = self.packer.position[terminator];
                made = Some(inst);
                func.dfg.result(inst, 0)
            };
            self.packer.users[whole].push(terminator);
            vectors.push(whole);
        }
        let mut next = vectors.into_iter();
        func.dfg.for_each_target_mut(terminator, |target, pool| {
            if target.block == pair.header
                && let Some(whole) = next.next()
            {
                target.args.push(whole, pool);
            }
        });
        made
    }

    /// Lets users of the parameters read lanes of the vector; those that put both together, the vector.
    fn take_apart(&mut self, func: &mut Function, pair: &Pair, vector: Value, ty: Type) {
        let together: SmallVec<[Inst; 4]> = self.packer.users[pair.params[0]]
            .iter()
            .copied()
            .filter(|user| is_vector_of(func, *user, pair.params))
            .collect();
        for inst in together {
            self.packer.drop_uses(func, inst);
            let whole = func.dfg.result(inst, 0);
            self.packer.rename(func, whole, vector);
            func.layout.remove_inst(inst);
        }
        let Some(first) = func.layout.first_inst(pair.header) else { return };
        for (lane, param) in pair.params.into_iter().enumerate() {
            let index = func.dfg.int(Type::I32, lane as i64);
            let inst = FunctionBuilder::before(func, first).inst_with_results(
                Opcode::Extract,
                Flags::EMPTY,
                ty,
                &[vector, index],
                Extra::None,
                &[ty.scalar()],
            );
            self.packer.add_uses(func, inst);
            let scalar = func.dfg.result(inst, 0);
            self.packer.rename(func, param, scalar);
        }
    }

    /// A vector that is put together at the end of the loop is one that is there.
    fn replace(&mut self, func: &mut Function, vector: Option<Inst>, by: Value) {
        let Some(inst) = vector else { return };
        self.packer.drop_uses(func, inst);
        let old = func.dfg.result(inst, 0);
        self.packer.rename(func, old, by);
        func.layout.remove_inst(inst);
    }
}

/// What was made to carry a pair.
struct Made {
    /// The vector that is put together where the loop leads back.
    at_latch: Option<Inst>,
}

/// What a terminator passes for two parameters of a block that it leads to once.
fn passed(func: &Function, terminator: Inst, block: Block, at: [usize; 2]) -> Option<[Value; 2]> {
    let mut found = None;
    let mut edges = 0;
    func.dfg.for_each_target(terminator, |target| {
        if target.block == block {
            edges += 1;
            let args = target.args.as_slice(&func.dfg.pool);
            found = args.get(at[0]).zip(args.get(at[1])).map(|(a, b)| [func.dfg.resolve(*a), func.dfg.resolve(*b)]);
        }
    });
    found.filter(|_| edges == 1)
}

/// Whether an instruction puts exactly these two together.
fn is_vector_of(func: &Function, inst: Inst, lanes: [Value; 2]) -> bool {
    let args = func.dfg.args(inst);
    func.dfg.insts[inst].op == Opcode::Vector
        && args.len() == 2
        && args.iter().zip(lanes).all(|(arg, lane)| func.dfg.resolve(*arg) == lane)
}
