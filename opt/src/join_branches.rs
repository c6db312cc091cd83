//! Makes one branch of two that share a destination.
//!
//! `if (p && q)` is two branches: what fails `p` goes where what fails `q` goes. Where computing `q` is cheap and does nothing
//! else, it is computed in any case, and one branch is decided by both. Measured with ptxas 13.5 on sm_75, sm_90 and sm_100a over
//! 13 shapes of `and` and `or` (`isel/rules/README.md`): one to four instructions fewer where the function ends behind the
//! body, three to eleven in loops with two ways out, since the assembler keeps both branches there; never more with one operation
//! besides the comparison, or in the ways out of loops without any.
//!
//! The block between the two branches is entered from the first alone. What moves computes of registers, so it may be poison where it
//! was not executed before: both conditions meet in a `select`, which does not read the second where the first decides. The
//! threads that reach each destination are the same as before, together at one branch instead of two.

use cranelift_entity::SecondaryMap;
use ptxc_ir::loops::Loops;
use ptxc_ir::{
    Block, BlockCall, Cfg, DominatorTree, Extra, Flags, Function, FunctionBuilder, Inst, LoopHints, Opcode, Value,
};
use smallvec::SmallVec;

use crate::cheap::cost_ahead;
use crate::edit::resolve_all_uses;
use crate::pass::Context;
use crate::rules::Rule;

/// Most operations that are executed although the first condition decides: the comparison and one for its operand.
const MOST_COMPUTED: usize = 2;
/// Most that are where threads leave a loop: with more, ptxas computes the first round twice (sm_75).
const MOST_IN_LOOPS: usize = 1;
/// Most branches that become one.
const MOST_JOINED: usize = 6;

/// The pass.
pub fn join_branches(func: &mut Function, ctx: &Context<'_>) -> bool {
    let cfg = Cfg::new(func);
    let mut edges: SecondaryMap<Block, u32> = SecondaryMap::new();
    for block in cfg.rpo() {
        edges[*block] = cfg.preds(*block).len() as u32;
    }
    let mut loops = None;
    let mut changed = false;
    // Inner conditions first, so that a chain of them is one when the outer ones come.
    for block in cfg.rpo().iter().rev().copied() {
        for _ in 0..MOST_JOINED {
            let Some(pair) = Pair::find(func, block, &edges) else { break };
            let loops = loops.get_or_insert_with(|| Loops::new(&cfg, &DominatorTree::new(&cfg)));
            let leaves = loops.innermost(block).is_some_and(|l| !loops.contains(l, pair.shared.block));
            let continues = loops.innermost(block).is_some_and(|l| loops.data(l).header == pair.shared.block);
            let most = if leaves || continues { MOST_IN_LOOPS } else { MOST_COMPUTED };
            if pair.computed > most {
                break;
            }
            // One of the two edges into the shared block goes.
            edges[pair.shared.block] -= 1;
            let rule = pair.join(func);
            ctx.note(pair.outer, rule);
            changed = true;
        }
    }
    if changed {
        resolve_all_uses(func);
    }
    changed
}

/// A branch, and one that it leads to, which both lead to one block.
struct Pair {
    outer: Inst,
    inner: Inst,
    /// The block of the inner branch, and what is passed to it.
    between: BlockCall,
    /// Operations there that cost something.
    computed: usize,
    /// Where both may lead.
    shared: BlockCall,
    /// Where only the inner branch may.
    rest: BlockCall,
    /// The outer branch leads to the shared block where its condition is false.
    outer_inverted: bool,
    /// So does the inner one.
    inner_inverted: bool,
}

impl Pair {
    /// The pair that begins with the branch at the end of a block.
    fn find(func: &Function, block: Block, edges: &SecondaryMap<Block, u32>) -> Option<Pair> {
        let outer = func.layout.last_inst(block)?;
        let Extra::Branch { then, other, .. } = func.dfg.insts[outer].extra else { return None };
        let ways = [(then, other, true), (other, then, false)];
        ways.into_iter().find_map(|(between, shared, outer_inverted)| {
            let plain = func.dfg.blocks[between.block].hints == LoopHints::default();
            if edges[between.block] != 1 || between.block == block || !plain {
                return None;
            }
            let inner = func.layout.last_inst(between.block)?;
            let Extra::Branch { then, other, .. } = func.dfg.insts[inner].extra else { return None };
            let same = |way: &BlockCall| way.block == shared.block && passes_same(func, way, &between, &shared);
            let (rest, inner_inverted) = match (same(&then), same(&other)) {
                (true, false) => (other, false),
                (false, true) => (then, true),
                _ => return None,
            };
            let computed = computed(func, between.block, inner)?;
            // A block that leads back to itself is a loop of its own.
            (rest.block != between.block).then_some(Pair {
                outer,
                inner,
                between,
                computed,
                shared,
                rest,
                outer_inverted,
                inner_inverted,
            })
        })
    }

    /// Puts what lies between the branches before the first one, which is replaced by one that both conditions decide.
    fn join(&self, func: &mut Function) -> Rule {
        let params: SmallVec<[Value; 4]> = func.dfg.block_params(self.between.block).iter().copied().collect();
        for (param, arg) in params.into_iter().zip(args_of(func, &self.between)) {
            func.dfg.alias(param, arg);
        }
        let moved: SmallVec<[Inst; 8]> = func.layout.insts(self.between.block).collect();
        for inst in moved.into_iter().filter(|inst| *inst != self.inner) {
            func.layout.remove_inst(inst);
            func.layout.insert_inst_before(inst, self.outer);
        }
        let condition = |func: &Function, inst: Inst| func.dfg.args(inst).first().map(|value| func.dfg.resolve(*value));
        let (Some(first), Some(second)) = (condition(func, self.outer), condition(func, self.inner)) else {
            return Rule::BranchBoth;
        };
        let uniform = [self.outer, self.inner].iter().all(|inst| func.dfg.insts[*inst].flags.contains(Flags::UNIFORM));
        let loc = func.dfg.locs[self.inner];
        let mut builder = FunctionBuilder::before(func, self.outer);
        builder.set_loc(loc);
        // What the inner branch asks, in the sense of the outer one: the second condition is the one that is inverted.
        let second = if self.inner_inverted == self.outer_inverted {
            second
        } else {
            builder.binary_imm(Opcode::Xor, second, -1)
        };
        let decided = builder.bool(!self.outer_inverted);
        // Where the first condition leads to the shared block, the second is not asked.
        let (both, rule) = if self.outer_inverted {
            (builder.select(first, second, decided), Rule::BranchBoth)
        } else {
            (builder.select(first, decided, second), Rule::BranchEither)
        };
        let (then, other) = if self.outer_inverted { (self.rest, self.shared) } else { (self.shared, self.rest) };
        let data = &mut func.dfg.insts[self.outer];
        data.extra = Extra::Branch { then, other, weights: (0, 0) };
        data.flags = if uniform { Flags::UNIFORM } else { Flags::EMPTY };
        if let Some(condition) = func.dfg.args_mut(self.outer).first_mut() {
            *condition = both;
        }
        func.layout.remove_block(self.between.block);
        rule
    }
}

fn args_of(func: &Function, call: &BlockCall) -> SmallVec<[Value; 4]> {
    call.args.as_slice(&func.dfg.pool).iter().map(|value| func.dfg.resolve(*value)).collect()
}

/// Whether the inner branch passes to the shared block what the outer one does.
fn passes_same(func: &Function, inner: &BlockCall, between: &BlockCall, outer: &BlockCall) -> bool {
    let params = func.dfg.block_params(between.block);
    let given = args_of(func, between);
    let meant = |value: Value| match params.iter().position(|param| *param == value) {
        Some(index) => given.get(index).copied().unwrap_or(value),
        None => value,
    };
    let (a, b) = (args_of(func, inner), args_of(func, outer));
    a.len() == b.len() && a.into_iter().zip(b).all(|(x, y)| meant(x) == y)
}

/// How many operations of a block cost something, if all may be executed in any case.
fn computed(func: &Function, block: Block, last: Inst) -> Option<usize> {
    let mut count = 0;
    for inst in func.layout.insts(block).take_while(|inst| *inst != last) {
        count += cost_ahead(func, inst)?;
        if count > MOST_COMPUTED {
            return None;
        }
    }
    Some(count)
}
