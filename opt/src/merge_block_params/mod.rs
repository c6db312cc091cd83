//! Replaces a block parameter that receives one and the same value on every edge (or itself, around a loop) by that
//! value, and parameters of one block that always hold the same value by one of them ([`alike`]).
//!
//! The value dominates the block because it dominates every predecessor. Replacing one parameter can make another one
//! redundant; in layout order one round settles most of them, and a fixed number of rounds bounds the time.
//!
//! Poison may be taken for anything. A parameter that receives it on some edges, and one value that dominates the block on
//! all others, is that value. One that receives what another parameter of the block does on all others is the other: a
//! loop left by two ways has two sets of its results otherwise, of which one says nothing on one way.

mod alike;

use ptxc_ir::{Block, Cfg, ConstData, DominatorTree, Function, Value, ValueDef, ValueList};

use crate::edit::{KeptParams, drop_params, incoming_arguments, resolve_all_uses};
use crate::pass::Context;
use crate::rules::Rule;

/// Rounds over all parameters. Each is linear; what a later round would find is left to the next run of the pass.
const ROUNDS: usize = 3;

/// Parameters of a block with more are not compared with each other.
const COMPARED: usize = 32;

/// The pass.
pub fn merge_block_params(func: &mut Function, ctx: &Context<'_>) -> bool {
    let same = merge_same(func);
    let alike = merge_alike(func, ctx, Promises::Kept);
    same || alike
}

/// The pass over counters alone, some of which promise less than those that they are one with: behind all passes that
/// the promises tell something.
pub fn merge_counters(func: &mut Function, ctx: &Context<'_>) -> bool {
    merge_alike(func, ctx, Promises::Dropped)
}

/// What becomes of promises that only one of two equal values makes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Promises {
    /// The values stay two.
    Kept,
    /// They go.
    Dropped,
}

/// Replaces parameters that are equal to another one of their block.
fn merge_alike(func: &mut Function, ctx: &Context<'_>, promises: Promises) -> bool {
    resolve_all_uses(func);
    let incoming = incoming_arguments(func);
    let pairs = alike::find(func, &incoming, promises);
    let mut kept = KeptParams::new();
    for (param, first) in &pairs {
        let ValueDef::Param(block, index) = func.dfg.def(*param) else { continue };
        let count = func.dfg.block_params(block).len();
        kept[block].get_or_insert_with(|| vec![true; count])[usize::from(index)] = false;
        func.dfg.alias(*param, *first);
        if let Some(inst) = func.layout.first_inst(block) {
            ctx.note(inst, Rule::ParamsAlike);
        }
    }
    if !pairs.is_empty() {
        drop_params(func, &kept);
        resolve_all_uses(func);
    }
    !pairs.is_empty()
}

/// Replaces parameters that receive one value only.
fn merge_same(func: &mut Function) -> bool {
    let incoming = incoming_arguments(func);
    let entry = func.layout.entry();
    let blocks: Vec<Block> = func.layout.blocks().filter(|block| Some(*block) != entry).collect();
    let mut kept = KeptParams::new();
    let mut changed = false;
    let mut above = Above::default();
    for _ in 0..ROUNDS {
        let mut changed_now = false;
        for block in &blocks {
            let params = func.dfg.block_params(*block).to_vec();
            for (index, param) in params.iter().enumerate() {
                if kept[*block].as_ref().is_some_and(|flags| !flags[index]) {
                    continue;
                }
                let only = only_value(func, &incoming[*block], index, *param);
                let value = match only {
                    Only::One(value) => Some(value),
                    Only::OrPoison(value) if above.dominates(func, value, *block) => Some(value),
                    Only::OrPoison(_) | Only::SeveralOrPoison if params.len() <= COMPARED => {
                        let stays = |other: usize| kept[*block].as_ref().is_none_or(|flags| flags[other]);
                        (0..params.len())
                            .filter(|other| *other != index && stays(*other))
                            .find(|other| agrees(func, &incoming[*block], &params, index, *other))
                            .map(|other| params[other])
                    }
                    _ => None,
                };
                if let Some(value) = value {
                    kept[*block].get_or_insert_with(|| vec![true; params.len()])[index] = false;
                    func.dfg.alias(*param, value);
                    changed_now = true;
                }
            }
        }
        changed |= changed_now;
        if !changed_now {
            break;
        }
    }
    if changed {
        drop_params(func, &kept);
        resolve_all_uses(func);
    }
    changed
}

/// What a parameter receives, apart from itself.
enum Only {
    /// One value from everywhere.
    One(Value),
    /// One value that is no constant, or poison.
    OrPoison(Value),
    SeveralOrPoison,
    Several,
}

fn only_value(func: &Function, incoming: &[ValueList], index: usize, param: Value) -> Only {
    let mut only: Option<Value> = None;
    let mut poison: Option<Value> = None;
    let mut several = false;
    for args in incoming {
        let Some(value) = args.get(index, &func.dfg.pool) else { return Only::Several };
        let value = func.dfg.resolve(value);
        if value == param {
            continue;
        }
        if is_poison(func, value) {
            poison = Some(value);
            continue;
        }
        several |= only.is_some_and(|seen| seen != value);
        only = Some(value);
    }
    match (only, poison) {
        _ if several => poison.map_or(Only::Several, |_| Only::SeveralOrPoison),
        // A value that is not a constant need not dominate an edge that brings poison.
        (Some(value), Some(_)) if func.dfg.as_const(value).is_none() => Only::OrPoison(value),
        (Some(value), _) | (None, Some(value)) => Only::One(value),
        (None, None) => Only::Several,
    }
}

fn is_poison(func: &Function, value: Value) -> bool {
    matches!(func.dfg.as_const(value), Some(ConstData::Poison))
}

/// Whether parameter `other` receives what parameter `index` does wherever that is not poison.
fn agrees(func: &Function, incoming: &[ValueList], params: &[Value], index: usize, other: usize) -> bool {
    if func.dfg.ty(params[index]) != func.dfg.ty(params[other]) {
        return false;
    }
    incoming.iter().all(|args| {
        let value = |at: usize| args.get(at, &func.dfg.pool).map(|value| func.dfg.resolve(value));
        let (Some(mine), Some(others)) = (value(index), value(other)) else { return false };
        // Around a loop each may pass itself on: they were equal the round before.
        mine == others || is_poison(func, mine) || (mine == params[index] && others == params[other])
    })
}

/// Which blocks dominate which, computed when that is asked first.
#[derive(Default)]
struct Above(Option<(Cfg, DominatorTree)>);

impl Above {
    /// Whether a value is defined in a block that dominates another one, and is not that.
    fn dominates(&mut self, func: &Function, value: Value, block: Block) -> bool {
        let defined = match func.dfg.def(value) {
            ValueDef::Result(inst, _) => func.layout.inst_block(inst),
            ValueDef::Param(block, _) => Some(block),
            ValueDef::Const(_) | ValueDef::Alias(_) => None,
        };
        let (cfg, tree) = self.0.get_or_insert_with(|| {
            let cfg = Cfg::new(func);
            let tree = DominatorTree::new(&cfg);
            (cfg, tree)
        });
        defined.is_some_and(|defined| defined != block && tree.dominates(cfg, defined, block))
    }
}
