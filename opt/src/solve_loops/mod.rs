//! Computes in a few operations what loops over the bits of a number compute.
//!
//! A loop of one way around and one way out that only computes ([`shape`]) is described by functions of the number of the round
//! ([`forms`]): counters, numbers moved by one more place each time or without their lowest one, bits of numbers, and sums of copies
//! for bits. The round in which it is left follows from the condition of the way out ([`rounds`]): a constant, or how many ones a
//! number has, or where its first or last one is. What the loop leaves behind is then an expression ([`closed`]): ones counted,
//! parities, bits reversed, products with and without carries. Where one value is wanted that is none of these, the loop stays.
//!
//! Of loops that stay, sums that begin with zero begin with what is added to them behind ([`starts`]).
//!
//! A loop that would not end stays as well: a search for a one is a loop without end for zero, unless the way into it says otherwise.

mod closed;
mod forms;
mod rounds;
mod shape;
mod starts;

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Block, BlockCall, Cfg, Extra, Function, FunctionBuilder, Inst, Type, Value, ValueDef};
use smallvec::SmallVec;

use crate::choose_values::choose_values;
use crate::compute_ahead::compute_ahead;
use crate::edit::{make_jump, resolve_all_uses};
use crate::pass::Context;
use crate::simplify_control_flow::simplify_control_flow;
use crate::widths::int_width;
use closed::{Closed, close};
use forms::Forms;
use rounds::{Rounds, zero_test};
use shape::{Ring, args_of};

/// The width of a flag, or of an integer that the machine has.
fn width_of(ty: Type) -> Option<u32> {
    int_width(ty).filter(|width| matches!(width, 1 | 8 | 16 | 32 | 64))
}

/// The pass.
pub fn solve_loops(func: &mut Function, ctx: &Context<'_>) -> bool {
    let solved = solve(func, ctx);
    let begun = starts::begin_sums(func, ctx);
    if begun {
        resolve_all_uses(func);
    }
    solved | begun
}

/// Replaces the loops that have a solution.
fn solve(func: &mut Function, ctx: &Context<'_>) -> bool {
    let cfg = Cfg::new(func);
    let rings: Vec<Ring> = cfg.rpo().iter().filter_map(|block| Ring::of(func, &cfg, *block)).collect();
    if rings.is_empty() {
        return false;
    }
    let read = Readers::of(func, &rings);
    // Where the way out of a loop that is gone now comes from.
    let mut left_from: SecondaryMap<Block, Option<Block>> = SecondaryMap::new();
    let mut changed = false;
    for ring in &rings {
        if !ring.only_computes {
            continue;
        }
        let entered_from = left_from[ring.entered_from].unwrap_or(ring.entered_from);
        let Some(solved) = Solved::of(func, ctx, &cfg, ring, entered_from, &read) else { continue };
        let exit_block = func.layout.inst_block(ring.exit);
        let now_from = solved.replace(func, ctx, ring, entered_from);
        if let Some(block) = exit_block {
            left_from[block] = Some(now_from);
        }
        changed = true;
    }
    if changed {
        resolve_all_uses(func);
        simplify_control_flow(func, ctx);
        // What guarded a loop may guard little now, and what was around it may be a choice.
        compute_ahead(func, ctx);
        choose_values(func, ctx);
        simplify_control_flow(func, ctx);
    }
    changed
}

/// Which values of loops others read than the loop itself.
struct Readers(SecondaryMap<Value, bool>);

impl Readers {
    /// One walk over the function.
    fn of(func: &Function, rings: &[Ring]) -> Readers {
        let mut ring_of: SecondaryMap<Block, Option<u32>> = SecondaryMap::new();
        for (index, ring) in rings.iter().enumerate() {
            for block in &ring.blocks {
                ring_of[*block] = Some(index as u32);
            }
        }
        let mut readers = Readers(SecondaryMap::new());
        for block in func.layout.blocks() {
            for inst in func.layout.insts(block) {
                func.dfg.for_each_use(inst, |value| {
                    let value = func.dfg.resolve(value);
                    let defined = match func.dfg.def(value) {
                        ValueDef::Result(inst, _) => func.layout.inst_block(inst),
                        ValueDef::Param(block, _) => Some(block),
                        ValueDef::Const(_) | ValueDef::Alias(_) => None,
                    };
                    if let Some(ring) = defined.and_then(|block| ring_of[block])
                        && ring_of[block] != Some(ring)
                    {
                        readers.0[value] = true;
                    }
                });
            }
        }
        readers
    }
}

/// What a loop computes.
struct Solved {
    rounds: Rounds,
    /// Values that are read when the loop is left: what they are then, so many rounds after the last.
    values: SmallVec<[(Value, Closed, u32); 4]>,
}

impl Solved {
    fn of(
        func: &Function,
        ctx: &Context<'_>,
        cfg: &Cfg,
        ring: &Ring,
        entered_from: Block,
        read: &Readers,
    ) -> Option<Solved> {
        let initial = args_of(func, &edge(func, entered_from, ring.header())?);
        let forms = Forms::new(func, ring, &initial);
        let rounds = Rounds::of(func, cfg, ring, &forms)?;
        let params = func.dfg.block_params(ring.header());
        let results = ring.blocks.iter().flat_map(|block| func.layout.insts(*block));
        let results = results.flat_map(|inst| func.dfg.results(inst));
        let mut wanted: SmallVec<[Value; 4]> =
            params.iter().copied().chain(results).filter(|value| read.0[*value]).collect();
        wanted.extend(args_of(func, &ring.out).into_iter().filter(|value| forms.is_inside(*value)));
        wanted.sort_unstable();
        wanted.dedup();
        let mut values = SmallVec::new();
        for value in wanted {
            // What a parameter is in the next round, or a value in this one.
            let later = ring.next.iter().position(|next| *next == value).and_then(|at| params.get(at));
            let (of, more) = match later {
                Some(param) if !params.contains(&value) => (*param, 1),
                _ => (value, 0),
            };
            let closed = close(func, ctx, forms.form(of)?, more, rounds)?;
            values.push((value, closed, more));
        }
        Some(Solved { rounds, values })
    }

    /// Puts what the loop computes in its place. Returns the block that leads on from there.
    fn replace(&self, func: &mut Function, ctx: &Context<'_>, ring: &Ring, entered_from: Block) -> Block {
        for rule in
            std::iter::once(self.rounds.rule()).chain(self.values.iter().filter_map(|(_, value, _)| value.rule()))
        {
            ctx.note(ring.exit, rule);
        }
        let Some(entry) = func.layout.last_inst(entered_from) else { return entered_from };
        // Where the other way leads to the same place, the values are computed before it: it may go.
        let guard = match func.dfg.insts[entry].extra {
            Extra::Branch { then, .. } if then.block == ring.out.block => Some(then),
            Extra::Branch { other, .. } if other.block == ring.out.block => Some(other),
            _ => None,
        };
        let here = guard.is_some() || matches!(func.dfg.insts[entry].extra, Extra::Jump(_));
        let (block, before) = if here { (entered_from, entry) } else { detour(func, ring, entered_from, entry) };
        let tested = zero_test(func, entered_from)
            .filter(|(_, nonzero, zero)| *nonzero == ring.header() && *zero == ring.out.block && guard.is_some());
        let old_args = args_of(func, &ring.out);
        let mut builder = FunctionBuilder::before(func, before);
        let made: SmallVec<[(Value, Value); 4]> = self
            .values
            .iter()
            .map(|(value, closed, more)| {
                let ty = builder.ty(*value);
                (*value, closed.emit(&mut builder, ty, self.rounds, *more))
            })
            .collect();
        for (value, new) in &made {
            func.dfg.alias(*value, *new);
        }
        let args: SmallVec<[Value; 8]> = old_args.iter().map(|value| func.dfg.resolve(*value)).collect();
        let out = func.dfg.block_call(ring.out.block, &args);
        if let (Some(guard), Some((base, ..))) = (guard, tested) {
            let skipped = self.without_guard(func, &guard, &old_args, &args, base);
            redirect(func, before, guard.block, guard.block, &skipped);
        }
        match func.dfg.insts[before].extra {
            Extra::Jump(_) => make_jump(func, before, out),
            _ => redirect(func, before, ring.header(), ring.out.block, &args),
        }
        block
    }

    /// What the guard passes where the loop is not entered: what was computed, where that is the same.
    fn without_guard(
        &self,
        func: &Function,
        guard: &BlockCall,
        old_args: &[Value],
        args: &[Value],
        base: Value,
    ) -> SmallVec<[Value; 8]> {
        let same = |old: &Value, given: Value| {
            let found = self.values.iter().find(|(value, ..)| value == old);
            let at_zero = matches!(self.rounds, Rounds::Until { base: of, ahead, .. }
                if of == base && found.is_some_and(|(_, _, more)| *more == ahead));
            found.is_some_and(|(_, closed, _)| at_zero && closed.is_at_zero(func, base, given))
        };
        let given = args_of(func, guard);
        given
            .iter()
            .zip(old_args)
            .zip(args)
            .map(|((given, old), new)| if same(old, *given) { *new } else { *given })
            .collect()
    }
}

/// What a block passes to another.
fn edge(func: &Function, from: Block, to: Block) -> Option<BlockCall> {
    let mut found = None;
    func.dfg.for_each_target(func.layout.last_inst(from)?, |target| {
        if target.block == to {
            found = Some(*target);
        }
    });
    found
}

/// Makes the ways of a terminator that lead to one block lead to another.
fn redirect(func: &mut Function, inst: Inst, from: Block, to: Block, args: &[Value]) {
    func.dfg.for_each_target_mut(inst, |target, pool| {
        if target.block == from {
            target.block = to;
            target.args.clear(pool);
            target.args.extend(args.iter().copied(), pool);
        }
    });
}

/// Makes a block on the way into a loop that jumps to where the loop leads.
fn detour(func: &mut Function, ring: &Ring, entered_from: Block, entry: Inst) -> (Block, Inst) {
    let loc = func.dfg.locs[ring.exit];
    let mut builder = FunctionBuilder::new(func);
    let block = builder.block_after(entered_from);
    builder.switch_to(block);
    builder.set_loc(loc);
    let jump = builder.jump(ring.out.block, &[]);
    redirect(func, entry, ring.header(), block, &[]);
    (block, jump)
}
