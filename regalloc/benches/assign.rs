//! Register assignment: time and moves by shape and size, beside regalloc2 on the same functions.
//!
//! `cargo bench -p ptxc-regalloc` measures; with `-- --moves` it prints a table of moves and of microseconds per
//! instruction instead.

mod backtracking;
#[path = "../tests/common/mod.rs"]
mod common;

use common::random::{Random, Shape, function};
use common::{Ops, empty};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use ptxc_mir::{Block, Function, FunctionBuilder, RegClass, Terminator, VReg};
use std::time::Instant;

/// A loop around `live` values that a chain of instructions updates, as an unrolled kernel does.
fn unrolled(insts: usize, live: usize) -> Function {
    let (ops, mut random, mut func) = (Ops::new(), Random::new(7), empty());
    let (entry, head, exit) = (func.new_block(), func.new_block(), func.new_block());
    let mut b = FunctionBuilder::new(&mut func);
    b.switch_to(entry);
    let mut values: Vec<VReg> = (0..live).map(|_| fresh(&mut b, &ops)).collect();
    let params: Vec<VReg> = (0..live).map(|_| b.block_param(head, RegClass::B32)).collect();
    b.jump(head, &values);
    b.switch_to(head);
    values.copy_from_slice(&params);
    for _ in 0..insts {
        let (x, y, to) = (values[random.below(live)], values[random.below(live)], random.below(live));
        let def = b.vreg(RegClass::B32);
        b.inst(ops.add).def(def).used(x).used(y).finish();
        values[to] = def;
    }
    let p = b.vreg(RegClass::Pred);
    b.inst(ops.setp).def(p).used(values[0]).imm(9).finish();
    let (again, out) = (b.target(head, &values), b.target(exit, &[]));
    b.cond_bra(p, true, again, out);
    b.switch_to(exit);
    b.terminate(Terminator::Exit);
    func
}

fn fresh(b: &mut FunctionBuilder<'_>, ops: &Ops) -> VReg {
    let v = b.vreg(RegClass::B32);
    b.inst(ops.add).def(v).imm(1).finish();
    v
}

/// A byte-code interpreter: a dispatch loop over `cases` blocks that each change some of `state` variables.
fn interpreter(insts: usize, cases: usize, state: usize) -> Function {
    let (ops, mut random, mut func) = (Ops::new(), Random::new(9), empty());
    let entry = func.new_block();
    let head = func.new_block();
    let blocks: Vec<Block> = (0..cases).map(|_| func.new_block()).collect();
    let mut b = FunctionBuilder::new(&mut func);
    b.switch_to(entry);
    let start: Vec<VReg> = (0..state).map(|_| fresh(&mut b, &ops)).collect();
    let params: Vec<VReg> = (0..state).map(|_| b.block_param(head, RegClass::B32)).collect();
    b.jump(head, &start);
    b.switch_to(head);
    let targets = blocks.iter().map(|&block| b.target(block, &[])).collect();
    b.terminate(Terminator::BrxIdx { index: params[0], uniform: false, targets });
    for &block in &blocks {
        b.switch_to(block);
        let mut values = params.clone();
        for _ in 0..insts / cases {
            let (x, y, to) = (values[random.below(state)], values[random.below(state)], random.below(state));
            let def = b.vreg(RegClass::B32);
            b.inst(ops.add).def(def).used(x).used(y).finish();
            values[to] = def;
        }
        b.jump(head, &values);
    }
    func
}

/// A name, and a function of about that many instructions.
type Maker = (&'static str, Box<dyn Fn(usize) -> Function>);

fn shapes() -> Vec<Maker> {
    vec![
        ("unrolled loop, 30 live", Box::new(|n| unrolled(n, 30))),
        ("unrolled loop, 200 live", Box::new(|n| unrolled(n, 200))),
        ("interpreter, 20 variables", Box::new(|n| interpreter(n, (n / 20).clamp(2, 4000), 20))),
        ("random control flow", Box::new(|n| function(3, Shape { blocks: n / 5, insts: 10, params: 3 }))),
    ]
}

fn bench(c: &mut Criterion) {
    for (name, make) in shapes() {
        let mut group = c.benchmark_group(name);
        for size in [2_000, 20_000, 50_000] {
            let func = make(size);
            group.sample_size(20).throughput(Throughput::Elements(func.insts.len() as u64));
            group.bench_function(BenchmarkId::from_parameter(size), |b| {
                b.iter_batched(
                    || func.clone(),
                    |mut f| ptxc_regalloc::run(&mut f, &Default::default()),
                    BatchSize::LargeInput,
                );
            });
        }
    }
}

/// The table of the crate's documentation.
fn moves() {
    println!("shape, instructions: moves (us an instruction) here | regalloc2");
    for (name, make) in shapes() {
        for size in [2_000, 20_000, 50_000] {
            let func = make(size);
            let n = func.insts.len();
            let mut ours = func.clone();
            let start = Instant::now();
            let stats = ptxc_regalloc::run(&mut ours, &Default::default()).expect("it can be assigned");
            let time = start.elapsed().as_secs_f64() * 1e6 / n as f64;
            let theirs = match backtracking::run(&func) {
                Ok((moves, seconds)) => format!("{moves} ({:.2})", seconds * 1e6 / n as f64),
                Err(e) => e,
            };
            println!("{name}, {n}: {} ({time:.2}) | {theirs}", stats.moves);
        }
    }
}

fn main() {
    if std::env::args().any(|a| a == "--moves") {
        moves();
        return;
    }
    let mut criterion = Criterion::default().configure_from_args();
    bench(&mut criterion);
    criterion.final_summary();
}
