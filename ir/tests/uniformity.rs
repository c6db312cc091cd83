//! What the uniformity analysis promises holds when threads run: on random functions without loops two threads that
//! execute a definition get one value where it is said to be uniform, and both or none execute a block that is.

#![allow(clippy::unwrap_used)] // a failure fails the test

use ptxc_ir::testing::Rng;
use ptxc_ir::uniformity::{Level, Uniformity};
use ptxc_ir::{Block, Extra, Function, Opcode, Value, read_module};
use std::collections::BTreeMap;

/// A function whose branches lead downwards; `%t` is the thread, `%n` the same for all.
fn random_text(rng: &mut Rng) -> String {
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
            let to = block + 1 + rng.below((blocks - block).min(3));
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

/// Runs one thread; gives the blocks it executes and the values it computes.
fn run(func: &Function, thread: i32, n: i32) -> (Vec<Block>, BTreeMap<Value, i32>) {
    let dfg = &func.dfg;
    let mut values: BTreeMap<Value, i32> = BTreeMap::new();
    let mut block = func.layout.entry().unwrap();
    values.insert(dfg.block_params(block)[0], n);
    let mut path = Vec::new();
    loop {
        path.push(block);
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
                Opcode::Ret => return (path, values),
                _ => {
                    let target = match dfg.insts[inst].extra {
                        Extra::Jump(target) => target,
                        Extra::Branch { then, other, .. } => {
                            if args[0] != 0 {
                                then
                            } else {
                                other
                            }
                        }
                        _ => return (path, values),
                    };
                    let passed: Vec<i32> = target.args.as_slice(&dfg.pool).iter().map(get).collect();
                    next = Some((target.block, passed));
                    continue;
                }
            };
            values.insert(dfg.result(inst, 0), result);
        }
        let (to, passed) = next.unwrap();
        for (param, value) in dfg.block_params(to).iter().zip(passed) {
            values.insert(*param, value);
        }
        block = to;
    }
}

#[test]
fn uniform_values_and_blocks_are_uniform() {
    let mut rng = Rng::new(7);
    let (mut uniform, mut all) = (0u32, 0u32);
    for _ in 0..1500 {
        let text = random_text(&mut rng);
        let module = read_module(&text).unwrap_or_else(|e| panic!("{}\n{text}", e[0].with_position(&text)));
        let func = module.funcs.values().next().unwrap();
        let result = Uniformity::new(&module, func);
        for n in [0, 1, 4] {
            let runs: Vec<_> = (0..6).map(|t| run(func, t, n)).collect();
            let (first, others) = runs.split_first().unwrap();
            for (path, values) in others {
                for block in func.layout.blocks().filter(|b| result.block(*b) >= Level::Warp) {
                    assert_eq!(first.0.contains(&block), path.contains(&block), "{block:?}\n{text}");
                }
                for (value, seen) in values {
                    let same = first.1.get(value).is_none_or(|other| other == seen);
                    assert!(same || result.value(*value) < Level::Warp, "{value:?}\n{text}");
                    uniform += u32::from(result.value(*value) >= Level::Warp);
                    all += 1;
                }
            }
        }
    }
    // The analysis is of no use if it calls nothing uniform.
    assert!(uniform * 4 > all, "{uniform} of {all}");
}
