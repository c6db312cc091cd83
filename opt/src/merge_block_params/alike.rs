//! Which parameters of a block always hold the same value.
//!
//! Two counters of a loop that begin alike and step alike are one. What they become around the loop is equal only if they are,
//! so it is assumed until it is disproved: every value has a number, parameters of one block share it that receive values of
//! equal numbers on every edge, instructions that compute the same of operands of equal numbers. What has no number yet, from
//! around a loop in the first round, is equal to anything. Rounds over all blocks, in reverse postorder, go on until no
//! number changes; then equal numbers are equal values.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Block, Cfg, Function, Inst, Opcode, Type, Value, ValueDef, ValueList};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::Promises;
use crate::edit::Incoming;
use crate::effects::is_function_of_operands;
use crate::number_values::{Key, VALUE_FLAGS, key};

/// Rounds after which nothing is merged. Loops in loops take about one each, and two more.
const MOST_ROUNDS: usize = 12;

/// The number of each value: the first value found that is equal to it. `None` before it has one.
struct Numbers {
    of: SecondaryMap<Value, Option<Value>>,
}

impl Numbers {
    fn get(&self, value: Value) -> Value {
        self.of[value].unwrap_or(value)
    }

    /// Gives a value its number and tells whether that is another one than before.
    fn set(&mut self, value: Value, number: Value) -> bool {
        self.of[value].replace(number) != Some(number)
    }
}

/// What a parameter receives on each edge, by number.
#[derive(PartialEq, Eq, Hash)]
struct Received {
    block: Block,
    ty: Type,
    numbers: SmallVec<[Option<Value>; 4]>,
}

/// Pairs of parameters of one block that are equal, the later one first. Promises that not all instructions behind a pair
/// make are dropped, since one of the two stands for both from now on. No use in the function names an alias.
pub(super) fn find(func: &mut Function, incoming: &Incoming, promises: Promises) -> Vec<(Value, Value)> {
    if !is_promising(func, incoming) {
        return Vec::new();
    }
    let cfg = Cfg::new(func);
    let Some(numbers) = number(func, &cfg, incoming) else { return Vec::new() };
    let mut pairs = Vec::new();
    for block in cfg.rpo() {
        // The first parameter of each number stands for the others.
        let mut firsts: FxHashMap<Value, Value> = FxHashMap::default();
        for param in func.dfg.block_params(*block).iter().filter(|_| Some(*block) != func.layout.entry()) {
            let first = *firsts.entry(numbers.get(*param)).or_insert(*param);
            if first != *param && (promises == Promises::Dropped || promise_alike(func, incoming, first, *param)) {
                pairs.push((*param, first));
            }
        }
    }
    if !pairs.is_empty() {
        drop_promises(func, &cfg, incoming, &numbers, &pairs);
    }
    pairs
}

/// Whether what two parameters of a block receive promises the same.
fn promise_alike(func: &Function, incoming: &Incoming, a: Value, b: Value) -> bool {
    let (ValueDef::Param(block, a), ValueDef::Param(_, b)) = (func.dfg.def(a), func.dfg.def(b)) else { return true };
    let promises = |args: &ValueList, index: u16| {
        let inst = args.get(usize::from(index), &func.dfg.pool).and_then(|arg| func.dfg.def_inst(arg));
        inst.map_or(0, |inst| func.dfg.insts[inst].flags.bits() & !VALUE_FLAGS)
    };
    incoming[block].iter().all(|args| promises(args, a) == promises(args, b))
}

/// Whether two parameters of one type get the same value on some edge.
fn is_promising(func: &Function, incoming: &Incoming) -> bool {
    let mut seen: Vec<(Value, Type)> = Vec::new();
    func.layout.blocks().any(|block| {
        let params = func.dfg.block_params(block);
        params.len() > 1
            && incoming[block].iter().any(|args| {
                let args = args.as_slice(&func.dfg.pool);
                seen.clear();
                seen.extend(args.iter().zip(params).map(|(arg, param)| (*arg, func.dfg.ty(*param))));
                seen.sort_unstable_by_key(|(arg, _)| *arg);
                seen.windows(2).any(|pair| pair[0] == pair[1])
            })
    })
}

/// Numbers all values; `None` when that takes too many rounds.
fn number(func: &Function, cfg: &Cfg, incoming: &Incoming) -> Option<Numbers> {
    let mut numbers = Numbers { of: SecondaryMap::with_capacity(func.dfg.num_values()) };
    for _ in 0..MOST_ROUNDS {
        let mut computed: FxHashMap<Key, Inst> = FxHashMap::default();
        let mut received: FxHashMap<Received, Value> = FxHashMap::default();
        let mut changed = false;
        for block in cfg.rpo() {
            for (index, param) in func.dfg.block_params(*block).iter().enumerate() {
                let args = incoming[*block].iter().filter_map(|args| args.get(index, &func.dfg.pool));
                let of_arg = |arg| match func.dfg.def(arg) {
                    ValueDef::Const(_) => Some(arg),
                    _ => numbers.of[arg],
                };
                let got = Received { block: *block, ty: func.dfg.ty(*param), numbers: args.map(of_arg).collect() };
                let number = if got.numbers.is_empty() { *param } else { *received.entry(got).or_insert(*param) };
                changed |= numbers.set(*param, number);
            }
            for inst in func.layout.insts(*block) {
                changed |= number_inst(func, inst, &mut numbers, &mut computed);
            }
        }
        if !changed {
            return Some(numbers);
        }
    }
    None
}

fn number_inst(func: &Function, inst: Inst, numbers: &mut Numbers, computed: &mut FxHashMap<Key, Inst>) -> bool {
    if func.dfg.num_results(inst) == 0 {
        return false;
    }
    // Each `freeze` of poison makes a choice of its own.
    let plain = func.dfg.insts[inst].op != Opcode::Freeze && is_function_of_operands(func, inst);
    let key = if plain { key(func, inst, |value| numbers.get(value)) } else { None };
    let leader = key.map_or(inst, |key| *computed.entry(key).or_insert(inst));
    let mut changed = false;
    for (result, number) in func.dfg.results(inst).zip(func.dfg.results(leader)) {
        changed |= numbers.set(result, number);
    }
    changed
}

/// Of all instructions whose equality the pairs rest on, leaves those promises that each of their equals makes too.
fn drop_promises(func: &mut Function, cfg: &Cfg, incoming: &Incoming, numbers: &Numbers, pairs: &[(Value, Value)]) {
    let mut members: FxHashMap<Value, SmallVec<[Value; 4]>> = FxHashMap::default();
    for block in cfg.rpo() {
        let results = func.layout.insts(*block).flat_map(|inst| func.dfg.results(inst));
        for value in func.dfg.block_params(*block).iter().copied().chain(results) {
            members.entry(numbers.get(value)).or_default().push(value);
        }
    }
    let mut seen: FxHashSet<Value> = FxHashSet::default();
    let mut work: Vec<Value> = pairs.iter().map(|(param, _)| numbers.get(*param)).collect();
    while let Some(number) = work.pop() {
        let Some(values) = members.get(&number).filter(|values| values.len() > 1) else { continue };
        if !seen.insert(number) {
            continue;
        }
        let insts: SmallVec<[Inst; 4]> = values.iter().filter_map(|value| func.dfg.def_inst(*value)).collect();
        let common = insts.iter().map(|inst| func.dfg.insts[*inst].flags.bits()).fold(u32::MAX, |all, one| all & one);
        for inst in insts {
            let flags = func.dfg.insts[inst].flags;
            func.dfg.insts[inst].flags = ptxc_ir::Flags::from_bits(flags.bits() & (common | VALUE_FLAGS));
            work.extend(func.dfg.args(inst).iter().map(|arg| numbers.get(*arg)));
        }
        for value in values {
            if let ValueDef::Param(block, index) = func.dfg.def(*value) {
                let args = incoming[block].iter().filter_map(|args| args.get(usize::from(index), &func.dfg.pool));
                work.extend(args.map(|arg| numbers.get(arg)));
            }
        }
    }
}
