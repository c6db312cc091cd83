//! Which values are the same for all threads of a group, and which blocks such a group executes together.
//!
//! A forward analysis that starts from "the same for the whole grid" and only ever lowers. Values get lower through
//! their operands, and through control flow: where a branch depends on the thread, block parameters at the joins of its
//! ways differ (the ways are followed in reverse postorder with the successor they come from as label, and two labels
//! meet at a join), and what a loop computes differs outside of it when threads leave it in different iterations.
//! Blocks between such a branch and the one where all its ways are together again are executed by a part of the group
//! only. (That block is not the post-dominator: in a loop a thread may come to that one an iteration later.)
//!
//! Loads of memory that may be written are taken to be the same for a warp at most: what other warps read they read at
//! another time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use cranelift_entity::SecondaryMap;
use ptxc_targets::Effects;
pub use ptxc_targets::Uniformity as Level;
use smallvec::SmallVec;

use crate::cfg::Cfg;
use crate::dfg::ValueDef;
use crate::dominators::DominatorTree;
use crate::entities::{Block, Inst, Value};
use crate::flags::Flags;
use crate::instruction::{Extra, MemAttrs, TargetOp, TargetOperand};
use crate::loops::{Loop, Loops};
use crate::module::{FuncKind, Function, Module};
use crate::opcode::{Effect, Opcode, Shape};
use crate::target_ops;
use crate::types::Space;

/// The result of the analysis.
pub struct Uniformity {
    values: SecondaryMap<Value, Level>,
    blocks: SecondaryMap<Block, Level>,
}

impl Uniformity {
    /// Analyses a function. Parameters of kernels are the same for the grid, those of other functions differ.
    pub fn new(module: &Module, func: &Function) -> Uniformity {
        let cfg = Cfg::new(func);
        let loops = Loops::new(&cfg, &DominatorTree::new(&cfg));
        let mut solver = Solver {
            module,
            func,
            users: Users::new(func),
            state: Uniformity {
                values: SecondaryMap::with_default(Level::Grid),
                blocks: SecondaryMap::with_default(Level::Grid),
            },
            branches: SecondaryMap::with_default(Level::Grid),
            exits: SecondaryMap::with_default(Level::Grid),
            labels: SecondaryMap::with_default((0, Block::from_u32(0))),
            walk: 0,
            work: Vec::new(),
            cfg: &cfg,
            loops: &loops,
            order: &Order::new(&cfg, &loops),
        };
        solver.start();
        solver.run();
        solver.state
    }

    /// The widest group whose threads see one value whenever they execute its definition together.
    pub fn value(&self, value: Value) -> Level {
        self.values[value]
    }

    /// The widest group whose threads all execute the block together whenever one does. Relative to the function's entry.
    pub fn block(&self, block: Block) -> Level {
        self.blocks[block]
    }
}

/// A reverse postorder in which all blocks of a loop come before those that are reached by leaving it.
struct Order {
    blocks: Vec<Block>,
    index: SecondaryMap<Block, u32>,
}

impl Order {
    /// A depth-first walk that visits what a loop's exits lead to before the loop itself, so that it is finished first.
    fn new(cfg: &Cfg, loops: &Loops) -> Order {
        let mut exits: SecondaryMap<Loop, Vec<Block>> = SecondaryMap::new();
        for block in cfg.rpo() {
            for succ in cfg.succs(*block) {
                let mut around = loops.innermost(*block);
                while let Some(l) = around
                    && !loops.contains(l, *succ)
                {
                    exits[l].push(*succ);
                    around = loops.data(l).parent.expand();
                }
            }
        }
        let next = |block: Block, at: usize| {
            let headed = loops.innermost(block).filter(|l| loops.data(*l).header == block);
            let first = headed.map_or(&[][..], |l| &exits[l]);
            first.get(at).or_else(|| cfg.succs(block).get(at - first.len())).copied()
        };
        let mut order = Order { blocks: Vec::new(), index: SecondaryMap::new() };
        let mut seen: SecondaryMap<Block, bool> = SecondaryMap::new();
        let mut stack: Vec<(Block, usize)> = cfg.rpo().first().map(|entry| (*entry, 0)).into_iter().collect();
        while let Some((block, at)) = stack.last_mut() {
            let (block, now) = (*block, *at);
            seen[block] = true;
            *at += 1;
            match next(block, now) {
                Some(succ) if !seen[succ] => stack.push((succ, 0)),
                Some(_) => {}
                None => {
                    order.blocks.push(block);
                    stack.pop();
                }
            }
        }
        order.blocks.reverse();
        for (index, block) in order.blocks.iter().enumerate() {
            order.index[*block] = index as u32;
        }
        order
    }
}

/// Instructions that use each value, flat.
struct Users {
    ranges: SecondaryMap<Value, (u32, u32)>,
    insts: Vec<Inst>,
}

impl Users {
    fn new(func: &Function) -> Users {
        let mut pairs: Vec<(Value, Inst)> = Vec::new();
        for block in func.layout.blocks() {
            for inst in func.layout.insts(block) {
                func.dfg.for_each_use(inst, |value| pairs.push((func.dfg.resolve(value), inst)));
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut ranges: SecondaryMap<Value, (u32, u32)> = SecondaryMap::new();
        for (at, (value, _)) in pairs.iter().enumerate() {
            let range = &mut ranges[*value];
            if range.1 == 0 {
                range.0 = at as u32;
            }
            range.1 = at as u32 + 1;
        }
        Users { ranges, insts: pairs.into_iter().map(|(_, inst)| inst).collect() }
    }

    fn range(&self, value: Value) -> std::ops::Range<usize> {
        let (start, end) = self.ranges[value];
        start as usize..end as usize
    }
}

/// The ways from one branch, being followed.
struct Walk {
    /// The block that branches.
    from: Block,
    /// How far threads agree on the branch.
    level: Level,
    /// Blocks that are reached, by position in the order.
    heap: BinaryHeap<Reverse<usize>>,
    /// Edges to follow, with the label of the way.
    edges: Vec<(Block, Block, Block)>,
    /// Loops around the branch whose next iteration some way goes on to.
    absorbed: SmallVec<[Loop; 4]>,
    /// Loops around the branch that some way leaves; all their exits are among the edges.
    left: SmallVec<[Loop; 4]>,
    /// Some way ends in the function.
    ended: bool,
}

struct Solver<'x> {
    module: &'x Module,
    func: &'x Function,
    cfg: &'x Cfg,
    loops: &'x Loops,
    order: &'x Order,
    users: Users,
    state: Uniformity,
    /// How far the threads of a group agree on where a block's terminator goes.
    branches: SecondaryMap<Block, Level>,
    /// How far the threads of a group leave a loop in the same iteration.
    exits: SecondaryMap<Loop, Level>,
    /// Walk and label that last reached a block.
    labels: SecondaryMap<Block, (u32, Block)>,
    walk: u32,
    /// Values whose users have to be looked at.
    work: Vec<Value>,
}

impl Solver<'_> {
    fn start(&mut self) {
        let Some(entry) = self.func.layout.entry() else { return };
        if self.func.kind != FuncKind::Kernel {
            for param in self.func.dfg.block_params(entry) {
                self.lower(*param, Level::Thread);
            }
        }
        if self.loops.is_irreducible() {
            // No loop structure to reason with: whatever has a choice differs.
            for block in self.cfg.rpo().iter().skip(1) {
                self.state.blocks[*block] = Level::Thread;
                for param in self.func.dfg.block_params(*block) {
                    self.lower(*param, Level::Thread);
                }
            }
        }
        for block in self.cfg.rpo() {
            for inst in self.func.layout.insts(*block) {
                self.visit(inst, *block);
            }
        }
    }

    fn run(&mut self) {
        while let Some(value) = self.work.pop() {
            for at in self.users.range(value) {
                let inst = self.users.insts[at];
                if let Some(block) = self.func.layout.inst_block(inst) {
                    self.visit(inst, block);
                }
            }
        }
    }

    fn lower(&mut self, value: Value, level: Level) {
        if self.state.values[value] > level {
            self.state.values[value] = level;
            self.work.push(value);
        }
    }

    /// A value as it is seen in `block`, which may be outside the loops that it is computed in.
    fn level(&self, value: Value, block: Block) -> Level {
        let value = self.func.dfg.resolve(value);
        let mut level = self.state.values[value];
        let home = match self.func.dfg.def(value) {
            ValueDef::Result(inst, _) => self.func.layout.inst_block(inst),
            ValueDef::Param(block, _) => Some(block),
            _ => return Level::Grid,
        };
        let mut around = home.and_then(|home| self.loops.innermost(home));
        while let Some(l) = around
            && !self.loops.contains(l, block)
        {
            level = level.min(self.exits[l]);
            around = self.loops.data(l).parent.expand();
        }
        level
    }

    /// Recomputes what an instruction gives, or where it branches.
    fn visit(&mut self, inst: Inst, block: Block) {
        let data = &self.func.dfg.insts[inst];
        if data.op.is_terminator() {
            self.visit_terminator(inst, block);
            return;
        }
        if self.func.dfg.num_results(inst) == 0 {
            return;
        }
        let levels = self.results(inst, block);
        for (index, value) in self.func.dfg.results(inst).enumerate() {
            self.lower(value, if index == 0 { levels.0 } else { levels.1 });
        }
    }

    fn visit_terminator(&mut self, inst: Inst, block: Block) {
        let func = self.func;
        let mut edges: Vec<(Value, Level)> = Vec::new();
        func.dfg.for_each_target(inst, |target| {
            let params = func.dfg.block_params(target.block);
            for (param, arg) in params.iter().zip(target.args.as_slice(&func.dfg.pool)) {
                edges.push((*param, self.level(*arg, target.block)));
            }
        });
        for (param, level) in edges {
            self.lower(param, level);
        }
        let data = &func.dfg.insts[inst];
        if matches!(data.op.shape(), Shape::Branch | Shape::Switch)
            && let Some(condition) = func.dfg.args(inst).first()
        {
            let mut level = self.level(*condition, block);
            if data.flags.contains(Flags::UNIFORM) {
                level = level.max(Level::Warp);
            }
            if self.branches[block] > level {
                self.branches[block] = level;
                self.diverge(block, level);
            }
        }
    }

    /// Levels of the first result and of the others.
    fn results(&self, inst: Inst, block: Block) -> (Level, Level) {
        let data = &self.func.dfg.insts[inst];
        let args = self.func.dfg.args(inst);
        let arg = |index: usize| args.get(index).map_or(Level::Grid, |v| self.level(*v, block));
        let all = || args.iter().map(|v| self.level(*v, block)).min().unwrap_or(Level::Grid);
        let both = |level: Level| (level, level);
        match (data.op.shape(), &data.extra) {
            (Shape::Sreg, Extra::Sreg(register)) if !register.is_volatile() => both(register.uniformity()),
            (Shape::Load, Extra::Mem(mem)) => both(self.load(mem, arg(0), args)),
            (Shape::BarrierReduce, _) => both(Level::Cta),
            (Shape::Vote | Shape::Ballot | Shape::Redux | Shape::MatchAll, _) => both(Level::Warp.min(arg(1))),
            (Shape::Elect, _) => (Level::Warp.min(arg(0)), Level::Thread),
            (Shape::Shuffle4, _) => self.shuffle(inst, block),
            (Shape::Target, Extra::Target(id)) => both(self.target(inst, &self.func.dfg.target_ops[*id], all())),
            (Shape::Alloca, _) => both(Level::Thread),
            _ => match data.op.info().effect {
                Effect::Pure | Effect::Traps if data.op.shape() != Shape::Sreg => both(all()),
                _ => both(Level::Thread),
            },
        }
    }

    fn load(&self, mem: &MemAttrs, address: Level, args: &[Value]) -> Level {
        if mem.is_ordered() {
            return Level::Thread;
        }
        let space = args.first().and_then(|v| self.func.dfg.ty(*v).space());
        match space {
            Some(Space::Local) | None => Level::Thread,
            Some(Space::Const | Space::Param) => address,
            _ if mem.invariant && space != Some(Space::Generic) => address,
            Some(Space::Generic) => Level::Thread,
            Some(_) => address.min(Level::Warp),
        }
    }

    /// A shuffle of a value that is the same anyway gives it back; an index that is the same for the warp makes its
    /// result the same when the whole warp takes part as one segment.
    fn shuffle(&self, inst: Inst, block: Block) -> (Level, Level) {
        let args = self.func.dfg.args(inst);
        let [value, lane, clamp, mask] = args else { return (Level::Thread, Level::Thread) };
        let value = self.level(*value, block);
        let whole = self.func.dfg.as_bits(*clamp) == Some(31)
            && self.func.dfg.as_bits(*mask) == Some(u128::from(u32::MAX))
            && self.level(*lane, block) >= Level::Warp
            && self.func.dfg.insts[inst].op == Opcode::ShflIdx;
        let broadcast = if whole { Level::Warp } else { Level::Thread };
        (if value >= Level::Warp { value } else { broadcast }, broadcast)
    }

    fn target(&self, inst: Inst, op: &TargetOp, args: Level) -> Level {
        let TargetOp::Known { toks, operands, guard } = op else { return Level::Thread };
        let dfg = &self.func.dfg;
        let types: Vec<_> = dfg.results(inst).map(|v| dfg.ty(v)).collect();
        let form = target_ops::form(self.module, dfg, toks, dfg.args(inst), operands, &types);
        let Ok(form) = form else { return Level::Thread };
        let registers = operands.iter().filter_map(|operand| match operand {
            TargetOperand::Sreg(register) if register.is_volatile() => Some(Level::Thread),
            TargetOperand::Sreg(register) => Some(register.uniformity()),
            _ => None,
        });
        let sources = registers.min().unwrap_or(Level::Grid).min(args);
        let effects = form.effects();
        match (guard, effects.contains(Effects::UNIFORM), effects.is_pure()) {
            // A result that the guard leaves alone is unspecified.
            (Some(_), _, _) => Level::Thread,
            (None, true, _) => Level::Warp,
            (None, false, true) => sources,
            (None, false, false) => Level::Thread,
        }
    }

    /// The terminator of `from` sends threads of a group of more than `level` different ways.
    fn diverge(&mut self, from: Block, level: Level) {
        self.walk += 1;
        let mut walk = Walk {
            from,
            level,
            heap: BinaryHeap::new(),
            edges: Vec::new(),
            absorbed: SmallVec::new(),
            left: SmallVec::new(),
            ended: false,
        };
        for (at, succ) in self.cfg.succs(from).iter().enumerate() {
            // Two edges to one block differ in their arguments alone.
            if self.cfg.succs(from)[..at].contains(succ) {
                self.join(*succ, level);
            } else {
                walk.edges.push((from, *succ, *succ));
            }
        }
        loop {
            while let Some((source, block, label)) = walk.edges.pop() {
                self.reach(&mut walk, source, block, label);
            }
            let Some(Reverse(index)) = walk.heap.pop() else { return };
            // A join is there once for each label that reached it.
            while walk.heap.peek() == Some(&Reverse(index)) {
                walk.heap.pop();
            }
            let Some(block) = self.order.blocks.get(index).copied() else { continue };
            if self.is_together(&walk, block) {
                return;
            }
            self.state.blocks[block] = self.state.blocks[block].min(level);
            let label = self.labels[block].1;
            let succs = self.cfg.succs(block);
            walk.edges.extend(succs.iter().map(|succ| (block, *succ, label)));
            let last = self.func.layout.last_inst(block).map(|inst| self.func.dfg.insts[inst].op);
            // A trap ends all threads, so nobody goes on without those that reach it.
            walk.ended |= succs.is_empty() && !matches!(last, Some(Opcode::Trap | Opcode::Unreachable));
        }
    }

    /// All threads that took one of the ways come through `block`: no other way is open, none has ended, and those that
    /// went on to another iteration of a loop leave it by a way that leads here.
    fn is_together(&self, walk: &Walk, block: Block) -> bool {
        let gone = |l: &Loop| walk.left.contains(l) && !self.loops.contains(*l, block);
        walk.heap.is_empty() && !walk.ended && walk.absorbed.iter().all(gone)
    }

    /// A way with this label enters `block` from `source`.
    fn reach(&mut self, walk: &mut Walk, source: Block, block: Block, label: Block) {
        // Ways out of loops that hold the branch: some threads are gone, the others go on.
        let mut around = self.loops.innermost(source);
        while let Some(l) = around
            && !self.loops.contains(l, block)
        {
            if self.loops.contains(l, walk.from) && !walk.left.contains(&l) {
                walk.left.push(l);
                self.leave(walk, l);
            }
            around = self.loops.data(l).parent.expand();
        }
        let is_new = self.labels[block].0 != self.walk;
        if !is_new && self.labels[block].1 == label {
            return;
        }
        let was_join = !is_new && self.labels[block].1 == block;
        self.labels[block] = (self.walk, if is_new { label } else { block });
        if !is_new {
            self.join(block, walk.level);
            if was_join {
                return;
            }
        }
        // The next iteration of a loop around the branch begins a new round.
        let header = self.loops.innermost(block).filter(|l| self.loops.data(*l).header == block);
        if let Some(l) = header.filter(|l| self.loops.contains(*l, walk.from)) {
            if !walk.absorbed.contains(&l) {
                walk.absorbed.push(l);
            }
            return;
        }
        if self.cfg.is_reachable(block) {
            walk.heap.push(Reverse(self.order.index[block] as usize));
        }
    }

    /// Threads leave the loop in different iterations: its blocks run without some of them, every exit is a way of its
    /// own, and users outside see different values.
    fn leave(&mut self, walk: &mut Walk, l: Loop) {
        let lowers = self.exits[l] > walk.level;
        self.exits[l] = self.exits[l].min(walk.level);
        for block in self.cfg.rpo() {
            if !self.loops.contains(l, *block) {
                continue;
            }
            let outside = self.cfg.succs(*block).iter().filter(|succ| !self.loops.contains(l, **succ));
            walk.edges.extend(outside.map(|succ| (*block, *succ, *succ)));
            if !lowers {
                continue;
            }
            self.state.blocks[*block] = self.state.blocks[*block].min(walk.level);
            self.work.extend_from_slice(self.func.dfg.block_params(*block));
            for inst in self.func.layout.insts(*block) {
                self.work.extend(self.func.dfg.results(inst));
            }
        }
    }

    /// Ways that threads of one group took meet at the block: its parameters differ.
    fn join(&mut self, block: Block, level: Level) {
        for param in self.func.dfg.block_params(block) {
            self.lower(*param, level);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::read_module;

    /// Levels of the values named in `wanted`, and of blocks whose label is.
    fn check(body: &str, wanted: &[(&str, Level)]) {
        let text = format!("kernel @k(%n: i32, %p: ptr<global>, %q: ptr) {{\nentry:\n{body}\n}}");
        let module = read_module(&text).unwrap_or_else(|e| panic!("{}", e[0].with_position(&text)));
        let func = module.funcs.values().next().unwrap();
        let result = Uniformity::new(&module, func);
        for (name, level) in wanted {
            let value = func.dfg.value_names.iter().find(|(_, n)| n.as_ref() == *name).map(|(v, _)| result.value(*v));
            let block = func.dfg.block_names.iter().find(|(_, n)| n.as_ref() == *name).map(|(b, _)| result.block(*b));
            assert_eq!(value.or(block), Some(*level), "{name}\n{text}");
        }
    }

    #[test]
    fn values_follow_their_operands() {
        check(
            "  %t = sreg.tid.x
  %b = sreg.ctaid.x
  %w = sreg.clock
  %a = add i32 %b, %n
  %c = add i32 %a, %t
  %g = gep i32, %p, %n
  %l = load i32, %g
  %i = load i32, %g, invariant
  %x = load i32, %q
  %v = vote.ballot true, -1
  %s = shfl.idx i32 %t, 3, 31, -1
  %u = shfl.up i32 %t, 3, 0, -1
  %r = ptx.mov.u32 sreg.ctaid.y
  %k = ptx.add.u32 %r, %t
  ret",
            &[
                ("t", Level::Thread),
                ("b", Level::Cta),
                ("w", Level::Thread),
                ("a", Level::Cta),
                ("c", Level::Thread),
                ("g", Level::Grid),
                ("l", Level::Warp),
                ("i", Level::Grid),
                ("x", Level::Thread),
                ("v", Level::Warp),
                ("s", Level::Warp),
                ("u", Level::Thread),
                ("r", Level::Cta),
                ("k", Level::Thread),
            ],
        );
    }

    #[test]
    fn parameters_differ_where_ways_meet() {
        check(
            "  %t = sreg.tid.x
  %c = icmp slt i32 %t, %n
  br %c, then, else
then:
  %d = icmp eq i32 %n, 0
  br %d, x, y
x:
  jump z(1)
y:
  jump z(2)
z(%inner: i32):
  jump join(1)
else:
  jump join(2)
join(%outer: i32):
  br %c, last(1), last(2)
last(%same: i32):
  ret",
            &[
                ("outer", Level::Thread),
                ("inner", Level::Grid),
                ("same", Level::Thread),
                ("then", Level::Thread),
                ("z", Level::Thread),
                ("join", Level::Grid),
                ("last", Level::Grid),
            ],
        );
    }

    #[test]
    fn loops_that_threads_leave_apart() {
        check(
            "  %t = sreg.tid.x
  jump loop(0)
loop(%i: i32):
  %j = add i32 %i, 1
  %c = icmp slt i32 %j, %t
  br %c, loop(%j), out(%j)
out(%o: i32):
  %x = add i32 %j, 1
  jump even(0)
even(%k: i32):
  %l = add i32 %k, 1
  %d = icmp slt i32 %l, %n
  br %d, even(%l), done(%l)
done(%m: i32):
  ret",
            &[
                ("i", Level::Grid),
                ("j", Level::Grid),
                ("o", Level::Thread),
                ("x", Level::Thread),
                ("loop", Level::Thread),
                ("out", Level::Grid),
                ("k", Level::Grid),
                ("m", Level::Grid),
                ("even", Level::Grid),
            ],
        );
    }

    #[test]
    fn a_break_makes_the_other_exit_a_way_too() {
        check(
            "  %t = sreg.tid.x
  jump loop(0)
loop(%i: i32):
  %c = icmp slt i32 %i, %n
  br %c, body, full
body:
  %d = icmp eq i32 %i, %t
  %j = add i32 %i, 1
  br %d, found, loop(%j)
found:
  jump join(1)
full:
  jump join(2)
join(%r: i32):
  ret",
            &[("r", Level::Thread), ("i", Level::Grid), ("full", Level::Thread), ("join", Level::Grid)],
        );
    }

    #[test]
    fn an_early_exit_leaves_the_rest_in_step() {
        check(
            "  %t = sreg.tid.x
  %c = icmp slt i32 %t, %n
  br %c, body, done
body:
  jump loop(0)
loop(%i: i32):
  %j = add i32 %i, 1
  %d = icmp slt i32 %j, %n
  br %d, loop(%j), done
done:
  ret",
            &[("i", Level::Grid), ("j", Level::Grid), ("loop", Level::Thread), ("done", Level::Grid)],
        );
    }

    #[test]
    fn threads_are_together_again_behind_a_loop() {
        check(
            "  %t = sreg.tid.x
  jump outer(0)
outer(%o: i32):
  jump inner(%t)
inner(%i: i32):
  %more = icmp slt i32 %i, %n
  br %more, first, behind
first:
  %odd = icmp eq i32 %i, 3
  br %odd, second, third
second:
  %j = add i32 %i, 2
  br %more, inner(%j), behind
third:
  %k = add i32 %i, 1
  jump inner(%k)
behind:
  %o1 = add i32 %o, 1
  %again = icmp slt i32 %o1, %n
  br %again, outer(%o1), done
done:
  ret",
            &[
                ("behind", Level::Grid),
                ("done", Level::Grid),
                ("o", Level::Grid),
                ("o1", Level::Grid),
                ("i", Level::Thread),
                ("first", Level::Thread),
                ("outer", Level::Grid),
            ],
        );
    }

    #[test]
    fn a_branch_that_is_said_to_be_uniform_is() {
        check(
            "  %t = sreg.tid.x
  %w = lshr i32 %t, 5
  %c = icmp slt i32 %w, %n
  br %c, body, done, uniform
body:
  jump done
done:
  ret",
            &[("body", Level::Warp)],
        );
    }
}
