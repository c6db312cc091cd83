//! Replaces branches that only choose between values by computing the value.
//!
//! A `br` whose two ways are one block becomes a `select` of each argument that differs. A `switch` whose ways pass
//! constants to one block becomes arithmetic on its operand ([`table`]): a linear function, bits of a constant, or a few
//! comparisons ([`possible`] finds numbers that do not occur); what is left of these, by a pass over modules, a load from a
//! table ([`constants`]). Two ways that do the same with different operands choose the operands ([`arms`]). Nothing is
//! executed that would not have been and no instruction moves, so that what is convergent keeps its threads; with short bodies
//! between the branch and the block `ptxas` deals itself, by predicates.

mod arms;
mod constants;
mod possible;
mod table;

use ptxc_ir::{Block, BlockCall, Extra, Function, FunctionBuilder, Inst, IntCC, Opcode, Type, Value};
use smallvec::SmallVec;

use crate::edit::make_jump;
use crate::pass::Context;
use crate::rules::Rule;
pub use constants::tabulate_choices;
use table::{Form, Index};

/// Most arguments of a block that are chosen: each costs an instruction or a few, where a branch costs two.
const MOST_CHOSEN: usize = 4;
/// Most numbers from the first to the last whose constants are computed.
const MOST_NUMBERS: u64 = 64;
/// Most numbers that are compared one by one; where they choose one value that is no constant.
const FEW: usize = 2;
const FEW_OF_ONE: usize = 4;

/// The pass.
pub fn choose_values(func: &mut Function, ctx: &Context<'_>) -> bool {
    let mut changed = arms::join_arms(func, ctx) | possible::restrict(func, ctx);
    let terminators: Vec<Inst> = func.layout.blocks().filter_map(|block| func.layout.last_inst(block)).collect();
    for inst in terminators {
        let rule = match func.dfg.insts[inst].extra {
            Extra::Branch { then, other, .. } => branch(func, inst, &then, &other),
            Extra::Switch(_) => switch(func, inst),
            _ => None,
        };
        if let Some(rule) = rule {
            ctx.note(inst, rule);
            changed = true;
        }
    }
    changed
}

/// The arguments of a branch target.
fn args_of(func: &Function, call: &BlockCall) -> SmallVec<[Value; 4]> {
    call.args.as_slice(&func.dfg.pool).iter().map(|value| func.dfg.resolve(*value)).collect()
}

/// Both ways lead to one block: it is reached with what the condition chooses.
fn branch(func: &mut Function, inst: Inst, then: &BlockCall, other: &BlockCall) -> Option<Rule> {
    if then.block != other.block {
        return None;
    }
    let (a, b) = (args_of(func, then), args_of(func, other));
    let differing = a.iter().zip(&b).filter(|(x, y)| x != y).count();
    if differing == 0 || differing > MOST_CHOSEN {
        return None;
    }
    let condition = *func.dfg.args(inst).first()?;
    let loc = func.dfg.locs[inst];
    let mut builder = FunctionBuilder::before(func, inst);
    builder.set_loc(loc);
    let args: SmallVec<[Value; 4]> =
        a.iter().zip(&b).map(|(x, y)| if x == y { *x } else { builder.select(condition, *x, *y) }).collect();
    jump(func, inst, then.block, &args);
    Some(Rule::ChooseBranch)
}

/// Makes a terminator a jump with these arguments.
fn jump(func: &mut Function, inst: Inst, block: Block, args: &[Value]) {
    let target = func.dfg.block_call(block, args);
    make_jump(func, inst, target);
}

/// A switch all of whose cases pass constants to one block.
struct Choice {
    /// The operand.
    value: Value,
    ty: Type,
    /// Numbers and what they pass, in order from the lowest, which the numbers are counted from.
    cases: Vec<(u64, SmallVec<[Value; 4]>)>,
    block: Block,
    default: Default,
}

/// What happens to all other numbers.
enum Default {
    /// They do not occur.
    Never,
    /// The same block, with these arguments.
    Args(SmallVec<[Value; 4]>),
    /// Another block.
    Elsewhere(BlockCall),
}

fn switch(func: &mut Function, inst: Inst) -> Option<Rule> {
    let choice = Choice::of(func, inst)?;
    let chosen: SmallVec<[usize; 4]> = (0..choice.cases[0].1.len()).filter(|at| choice.differs(*at)).collect();
    let decides = !matches!(choice.default, Default::Never);
    if chosen.len() > MOST_CHOSEN || (chosen.is_empty() && decides) {
        return None;
    }
    if let Some(rule) = choice.test_bits(func, inst, &chosen) {
        return Some(rule);
    }
    if !choice.is_constant(func) {
        return (chosen.len() == 1).then(|| choice.compare(func, inst, &chosen))?;
    }
    if choice.cases.len() <= FEW {
        return choice.compare(func, inst, &chosen);
    }
    let index = Index::of(func, &choice, MOST_NUMBERS)?;
    let forms =
        chosen.iter().map(|at| Form::of(func, &choice, &index, *at)).collect::<Option<SmallVec<[Form; 4]>>>()?;
    let rule = match forms.iter().find(|form| !matches!(form, Form::Constant(_))) {
        Some(Form::Linear { .. }) => Rule::ChooseLinear,
        Some(_) => Rule::ChooseBits,
        None => Rule::ChooseConstant,
    };
    compute(func, inst, &choice, &index, &chosen, &forms);
    Some(rule)
}

/// Puts what the forms say in place of a switch.
fn compute(func: &mut Function, inst: Inst, choice: &Choice, index: &Index, chosen: &[usize], forms: &[Form]) {
    let loc = func.dfg.locs[inst];
    let mut builder = FunctionBuilder::before(func, inst);
    builder.set_loc(loc);
    let computed = index.emit(&mut builder, forms);
    let mut args = choice.cases[0].1.clone();
    for (at, form) in chosen.iter().zip(forms) {
        let default = match &choice.default {
            Default::Args(args) => Some(args[*at]),
            _ => None,
        };
        args[*at] = form.emit(&mut builder, &computed, choice.cases[0].1[*at], default);
    }
    match (&choice.default, computed.inside) {
        (Default::Elsewhere(other), Some(inside)) => {
            let other_args = args_of(builder.func, other);
            builder.br(inside, (choice.block, &args), (other.block, &other_args));
            func.layout.remove_inst(inst);
        }
        _ => jump(func, inst, choice.block, &args),
    }
}

impl Choice {
    /// Reads a switch; `None` where it is no choice of constants.
    fn of(func: &Function, inst: Inst) -> Option<Choice> {
        let Extra::Switch(id) = func.dfg.insts[inst].extra else { return None };
        let data = &func.dfg.switches[id];
        let value = *func.dfg.args(inst).first()?;
        let ty = func.dfg.ty(value);
        if !ty.is_int() || !(8..=64).contains(&ty.bits()) || func.dfg.as_const(value).is_some() {
            return None;
        }
        let block = data.cases.first()?.1.block;
        let never = func.layout.first_inst(data.default.block).map(|first| func.dfg.insts[first].op);
        let default = if data.default.block == block {
            Default::Args(args_of(func, &data.default))
        } else if never == Some(Opcode::Unreachable) {
            Default::Never
        } else {
            Default::Elsewhere(data.default)
        };
        let mut cases = Vec::with_capacity(data.cases.len());
        for (number, call) in &data.cases {
            let args = args_of(func, call);
            if call.block != block {
                return None;
            }
            match &default {
                Default::Args(others) if *others == args => {}
                _ => cases.push((*number as u64, args)),
            }
        }
        let is_few = cases.len() <= FEW_OF_ONE;
        let choice = Choice { value, ty, cases, block, default };
        (!choice.cases.is_empty() && (is_few || choice.is_constant(func))).then_some(choice)
    }

    /// Whether the numbers pass constants. What all pass need not be constant.
    fn is_constant(&self, func: &Function) -> bool {
        let first = &self.cases[0].1;
        let passes = |at: usize| {
            self.cases.iter().all(|(_, args)| args[at] == first[at] || func.dfg.as_bits(args[at]).is_some())
        };
        (0..first.len()).all(passes)
    }

    /// Numbers that differ in some bits only, in every way, and pass the same: all other bits are tested.
    fn test_bits(&self, func: &mut Function, inst: Inst, chosen: &[usize]) -> Option<Rule> {
        let Default::Args(others) = &self.default else { return None };
        let (base, free) =
            self.cases.iter().fold((u64::MAX, 0), |(base, free), (n, _)| (base & n, free | (n ^ self.cases[0].0)));
        let same = self.cases.iter().all(|(_, args)| *args == self.cases[0].1);
        let all = self.cases.len().is_power_of_two() && self.cases.len().ilog2() == free.count_ones();
        // Neighbours are told by a range as well.
        let low = free & free.wrapping_add(1) == 0;
        if !same || !all || low {
            return None;
        }
        let loc = func.dfg.locs[inst];
        let mut builder = FunctionBuilder::before(func, inst);
        builder.set_loc(loc);
        let rest = builder.bits(self.ty, u128::from(!free & (u64::MAX >> (64 - self.ty.bits()))));
        let masked = builder.binary(Opcode::And, self.value, rest);
        let base = builder.bits(self.ty, base.into());
        let hit = builder.icmp(IntCC::Eq, masked, base);
        let mut args = others.clone();
        for at in chosen {
            args[*at] = builder.select(hit, self.cases[0].1[*at], others[*at]);
        }
        jump(func, inst, self.block, &args);
        Some(Rule::ChooseTested)
    }

    /// Whether an argument is not the same for all numbers.
    fn differs(&self, at: usize) -> bool {
        let first = self.cases[0].1[at];
        let other = match &self.default {
            Default::Args(args) => args[at] != first,
            _ => false,
        };
        other || self.cases.iter().any(|(_, args)| args[at] != first)
    }

    /// A few numbers: each is compared with.
    fn compare(&self, func: &mut Function, inst: Inst, chosen: &[usize]) -> Option<Rule> {
        let mut rest = self.cases.iter();
        let mut args = match &self.default {
            Default::Args(args) => args.clone(),
            // The last number is what is left.
            Default::Never => rest.next_back()?.1.clone(),
            Default::Elsewhere(_) => return None,
        };
        let loc = func.dfg.locs[inst];
        let mut builder = FunctionBuilder::before(func, inst);
        builder.set_loc(loc);
        for (number, values) in rest.rev() {
            let key = builder.bits(self.ty, u128::from(*number));
            let equal = builder.icmp(IntCC::Eq, self.value, key);
            for at in chosen {
                if args[*at] != values[*at] {
                    args[*at] = builder.select(equal, values[*at], args[*at]);
                }
            }
        }
        jump(func, inst, self.block, &args);
        Some(Rule::ChooseFew)
    }
}
