//! What the uniformity analysis promises holds when threads run: on random functions two threads that execute a
//! definition in the same iterations of its loops get one value where it is said to be uniform, and both or none execute
//! a block that is.

#![allow(clippy::unwrap_used)] // a failure fails the test

use ptxc_ir::loops::{Loop, Loops};
use ptxc_ir::testing::Rng;
use ptxc_ir::uniformity::{Level, Uniformity};
use ptxc_ir::{Block, Cfg, DominatorTree, Extra, Function, Opcode, Value, read_module};
use std::collections::{BTreeMap, BTreeSet};

/// Longest run of a thread, in blocks.
const FUEL: usize = 120;

/// A function whose branches lead downwards, and with `loops` sometimes upwards; `%t` is the thread, `%n` the same for all.
fn random_text(rng: &mut Rng, loops: bool) -> String {
    let blocks = 2 + rng.below(8);
    let params: Vec<usize> = (0..blocks).map(|_| rng.below(3)).collect();
    let mut text = "kernel @k(%n: i32) {\nentry:\n  %t = sreg.tid.x\n".to_string();
    // Values of the entry block dominate everything.
    let global = ["%t", "%n", "%c", "3", "5"];
    text += "  %c = mul i32 %n, 7\n";
    for block in 0..=blocks {
        let mut here: Vec<String> = global.iter().map(ToString::to_string).collect();
        if block > 0 {
            let list: Vec<String> = (0..params[block - 1]).map(|i| format!("%p{block}_{i}: i32")).collect();
            let list = if list.is_empty() { String::new() } else { format!("({})", list.join(", ")) };
            text += &format!("b{block}{list}:\n");
            here.extend((0..params[block - 1]).map(|i| format!("%p{block}_{i}")));
        }
        for i in 0..rng.below(4) {
            let op = ["add", "xor", "and"][rng.below(3)];
            let (a, b) = (rng.pick(&here).unwrap().clone(), rng.pick(&here).unwrap().clone());
            text += &format!("  %v{block}_{i} = {op} i32 {a}, {b}\n");
            here.push(format!("%v{block}_{i}"));
        }
        let target = |rng: &mut Rng| {
            let to = match loops && block > 0 && rng.once_in(4) {
                true => 1 + rng.below(block),
                false => block + 1 + rng.below((blocks - block).min(3)),
            };
            let args: Vec<String> = (0..params[to - 1]).map(|_| rng.pick(&here).unwrap().clone()).collect();
            if args.is_empty() { format!("b{to}") } else { format!("b{to}({})", args.join(", ")) }
        };
        if block == blocks {
            text += "  ret\n";
        } else if rng.once_in(3) {
            text += &format!("  jump {}\n", target(rng));
        } else {
            let (then, other) = (target(rng), target(rng));
            let (a, b) = (rng.pick(&here).unwrap(), rng.pick(&here).unwrap());
            text += &format!("  %k{block} = icmp slt i32 {a}, {b}\n  br %k{block}, {then}, {other}\n");
        }
    }
    text + "}\n"
}

/// A place in a run: a block or value, with the iterations of the loops around it, outermost first.
type At<T> = (T, Vec<u32>);

/// What one thread did.
struct Run {
    blocks: BTreeSet<At<Block>>,
    values: BTreeMap<At<Value>, i32>,
    /// It did not come to an end.
    cut: bool,
}

/// Counts iterations while a thread runs.
struct Iterations<'x> {
    loops: &'x Loops,
    counts: BTreeMap<Loop, u32>,
}

impl Iterations<'_> {
    fn enter(&mut self, from: Option<Block>, block: Block) {
        let Some(inner) = self.loops.innermost(block).filter(|l| self.loops.data(*l).header == block) else { return };
        let again = from.is_some_and(|from| self.loops.contains(inner, from));
        let count = self.counts.entry(inner).or_insert(0);
        *count = if again { *count + 1 } else { 0 };
    }

    fn around(&self, block: Block) -> Vec<u32> {
        let mut out = Vec::new();
        let mut at = self.loops.innermost(block);
        while let Some(l) = at {
            out.push(self.counts.get(&l).copied().unwrap_or(0));
            at = self.loops.data(l).parent.expand();
        }
        out.reverse();
        out
    }
}

/// Runs one thread.
fn run(func: &Function, loops: &Loops, thread: i32, n: i32) -> Run {
    let dfg = &func.dfg;
    let mut values: BTreeMap<Value, i32> = BTreeMap::new();
    let mut out = Run { blocks: BTreeSet::new(), values: BTreeMap::new(), cut: true };
    let mut iterations = Iterations { loops, counts: BTreeMap::new() };
    let mut block = func.layout.entry().unwrap();
    values.insert(dfg.block_params(block)[0], n);
    for _ in 0..FUEL {
        let around = iterations.around(block);
        out.blocks.insert((block, around.clone()));
        for param in dfg.block_params(block) {
            out.values.insert((*param, around.clone()), values[param]);
        }
        let mut next = None;
        for inst in func.layout.insts(block) {
            let get = |v: &Value| dfg.as_bits(*v).map_or_else(|| values[v], |bits| bits as i32);
            let args: Vec<i32> = dfg.args(inst).iter().map(get).collect();
            let result = match dfg.insts[inst].op {
                Opcode::Sreg => thread,
                Opcode::Add => args[0].wrapping_add(args[1]),
                Opcode::Mul => args[0].wrapping_mul(args[1]),
                Opcode::Xor => args[0] ^ args[1],
                Opcode::And => args[0] & args[1],
                Opcode::Icmp => i32::from(args[0] < args[1]),
                Opcode::Jump | Opcode::Br => {
                    let target = match dfg.insts[inst].extra {
                        Extra::Jump(target) => target,
                        Extra::Branch { then, other, .. } => {
                            if args[0] != 0 {
                                then
                            } else {
                                other
                            }
                        }
                        _ => unreachable!("only these branch"),
                    };
                    next = Some((target.block, target.args.as_slice(&dfg.pool).iter().map(get).collect::<Vec<i32>>()));
                    continue;
                }
                _ => {
                    out.cut = false;
                    return out;
                }
            };
            values.insert(dfg.result(inst, 0), result);
            out.values.insert((dfg.result(inst, 0), around.clone()), result);
        }
        let (to, passed) = next.unwrap();
        for (param, value) in dfg.block_params(to).iter().zip(passed) {
            values.insert(*param, value);
        }
        iterations.enter(Some(block), to);
        block = to;
    }
    out
}

/// Compares threads on `count` random functions; gives how many comparisons were of uniform values, and of all.
fn compare(count: u32, with_loops: bool) -> (u32, u32) {
    let mut rng = Rng::new(7);
    let (mut uniform, mut all) = (0u32, 0u32);
    for _ in 0..count {
        let text = random_text(&mut rng, with_loops);
        let module = read_module(&text).unwrap_or_else(|e| panic!("{}\n{text}", e[0].with_position(&text)));
        let func = module.funcs.values().next().unwrap();
        let cfg = Cfg::new(func);
        let loops = Loops::new(&cfg, &DominatorTree::new(&cfg));
        let result = Uniformity::new(&module, func);
        for n in [0, 1, 4] {
            let runs: Vec<Run> = (0..6).map(|t| run(func, &loops, t, n)).collect();
            let (first, others) = runs.split_first().unwrap();
            for other in others {
                if !first.cut && !other.cut {
                    let differ = first.blocks.symmetric_difference(&other.blocks);
                    for (block, around) in differ {
                        assert!(result.block(*block) < Level::Warp, "{block:?} {around:?}\n{text}");
                    }
                }
                for (at, seen) in &other.values {
                    let same = first.values.get(at).is_none_or(|value| value == seen);
                    assert!(same || result.value(at.0) < Level::Warp, "{at:?}\n{text}");
                    uniform += u32::from(result.value(at.0) >= Level::Warp);
                    all += 1;
                }
            }
        }
    }
    (uniform, all)
}

#[test]
fn without_loops() {
    let (uniform, all) = compare(300, false);
    // The analysis is of no use if it calls nothing uniform.
    assert!(uniform * 4 > all, "{uniform} of {all}");
}

#[test]
fn with_loops() {
    let (uniform, all) = compare(300, true);
    assert!(uniform * 6 > all, "{uniform} of {all}");
}
