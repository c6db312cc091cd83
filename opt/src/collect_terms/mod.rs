//! Sums and products of several operations, computed another way where that takes fewer of them.
//!
//! A tree of sums, differences and multiples of integers is so many times each of its terms and a constant
//! ([`integers`]); a tree of products of floats that may be computed in any order is powers of its factors, and of sums of
//! them the constants are one ([`floats`]). What is wanted elsewhere too is a term and stays. The costs of both ways are those
//! of the machine, where one instruction multiplies and adds. Integer rules need no flags, since all is modulo 2^n, and
//! keep none.

mod floats;
mod integers;

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Block, Function, FunctionBuilder, Inst, Opcode, Value};
use smallvec::SmallVec;

use crate::edit::{for_each_inst, resolve_all_uses};
use crate::pass::Context;

/// Most operations of a tree, so that time is linear.
const MOST_OPERATIONS: usize = 32;

/// The pass.
pub fn collect_terms(func: &mut Function, ctx: &Context<'_>) -> bool {
    let uses = Uses::of(func);
    let mut roots: Vec<(Inst, bool)> = Vec::new();
    for_each_inst(func, |inst| match func.dfg.insts[inst].op {
        Opcode::Add | Opcode::Sub => roots.push((inst, true)),
        Opcode::Fadd | Opcode::Fsub | Opcode::Fmul => roots.push((inst, false)),
        _ => {}
    });
    let mut changed = false;
    // Those that are wanted come after what they are made of: a tree is found from its root.
    for (inst, is_integer) in roots.into_iter().rev() {
        let found = match is_integer {
            true => integers::rewrite(func, &uses, inst),
            false => floats::rewrite(func, &uses, inst),
        };
        let (Some((rule, value)), Some(result)) = (found, func.dfg.first_result(inst)) else { continue };
        ctx.note(inst, rule);
        func.dfg.alias(result, value);
        func.layout.remove_inst(inst);
        changed = true;
    }
    if changed {
        resolve_all_uses(func);
    }
    changed
}

/// How often each value is used, and by what last.
struct Uses {
    count: SecondaryMap<Value, u32>,
    by: SecondaryMap<Value, Option<Inst>>,
}

impl Uses {
    fn of(func: &Function) -> Uses {
        let mut uses = Uses { count: SecondaryMap::new(), by: SecondaryMap::new() };
        for_each_inst(func, |inst| {
            func.dfg.for_each_use(inst, |value| {
                let value = func.dfg.resolve(value);
                uses.count[value] += 1;
                uses.by[value] = Some(inst);
            });
        });
        uses
    }

    /// The operation behind a value that nothing else uses, in the block.
    fn only(&self, func: &Function, value: Value, block: Option<Block>) -> Option<Inst> {
        let inst = func.dfg.def_inst(value)?;
        (self.count[value] == 1 && func.layout.inst_block(inst) == block).then_some(inst)
    }

    /// Whether nothing uses an instruction's result any more, since its only user was replaced.
    fn is_abandoned(&self, func: &Function, inst: Inst) -> bool {
        let Some(result) = func.dfg.first_result(inst) else { return false };
        self.count[result] == 1 && self.by[result].is_some_and(|user| func.layout.inst_block(user).is_none())
    }

    /// What alone uses a value, in the same block.
    fn only_user(&self, func: &Function, inst: Inst) -> Option<Inst> {
        let result = func.dfg.first_result(inst)?;
        let user = self.by[result].filter(|_| self.count[result] == 1)?;
        (func.layout.inst_block(user) == func.layout.inst_block(inst)).then_some(user)
    }
}

/// The operands of an instruction with two.
fn operands(func: &Function, inst: Inst) -> Option<[Value; 2]> {
    let args: SmallVec<[Value; 2]> = func.dfg.args(inst).iter().map(|value| func.dfg.resolve(*value)).collect();
    args[..].try_into().ok()
}

/// A builder that puts instructions before one, with its source location.
fn before(func: &mut Function, inst: Inst) -> FunctionBuilder<'_> {
    let loc = func.dfg.locs[inst];
    let mut builder = FunctionBuilder::before(func, inst);
    builder.set_loc(loc);
    builder
}
