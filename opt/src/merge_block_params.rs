//! Replaces a block parameter that receives one and the same value on every edge (or itself, around a loop) by that
//! value.
//!
//! The value dominates the block because it dominates every predecessor. Replacing one parameter can make another one
//! redundant; in layout order one round settles most of them, and a fixed number of rounds bounds the time.

use ptxc_ir::{Block, ConstData, Function, Value};

use crate::edit::{Incoming, KeptParams, drop_params, incoming_arguments, resolve_all_uses};
use crate::pass::Context;

/// Rounds over all parameters. Each is linear; what a later round would find is left to the next run of the pass.
const ROUNDS: usize = 3;

/// The pass.
pub fn merge_block_params(func: &mut Function, _ctx: &Context<'_>) -> bool {
    let incoming = incoming_arguments(func);
    let entry = func.layout.entry();
    let blocks: Vec<Block> = func.layout.blocks().filter(|block| Some(*block) != entry).collect();
    let mut kept = KeptParams::new();
    let mut changed = false;
    for _ in 0..ROUNDS {
        let mut changed_now = false;
        for block in &blocks {
            let params = func.dfg.block_params(*block).to_vec();
            for (index, param) in params.iter().enumerate() {
                if kept[*block].as_ref().is_some_and(|flags| !flags[index]) {
                    continue;
                }
                if let Some(value) = only_value(func, &incoming, *block, index, *param) {
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

/// The one value that a parameter receives, apart from itself and poison.
fn only_value(func: &Function, incoming: &Incoming, block: Block, index: usize, param: Value) -> Option<Value> {
    let mut only: Option<Value> = None;
    let mut poison: Option<Value> = None;
    for args in &incoming[block] {
        let value = func.dfg.resolve(args.get(index, &func.dfg.pool)?);
        if value == param {
            continue;
        }
        if matches!(func.dfg.as_const(value), Some(ConstData::Poison)) {
            poison = Some(value);
            continue;
        }
        match only {
            Some(seen) if seen != value => return None,
            _ => only = Some(value),
        }
    }
    // Poison may be taken for anything, but a value that is not a constant need not dominate an edge that brings
    // poison, so it stands for poison only when it is one.
    match (only, poison) {
        (Some(value), Some(_)) if func.dfg.as_const(value).is_none() => None,
        (Some(value), _) => Some(value),
        (None, poison) => poison,
    }
}
