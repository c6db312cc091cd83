//! How long a block of so many instructions takes to schedule, and a function of so many blocks. The one block has loads,
//! arithmetic and stores in the proportions of an unrolled loop, over eight parameters of which some are `noalias`, with a
//! barrier every 500 instructions.

#![allow(clippy::unwrap_used)]

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ptxc_mir::{
    Block, FuncKind, Function, FunctionBuilder, GroupKind, Linkage, MemoryRef, Module, Object, Operand, RegClass,
    Signature, Terminator, VReg,
};
use ptxc_scheduling::{Context, Mode, Options, run};

const SIZES: [usize; 3] = [5_000, 10_000, 50_000];

fn block(module: &mut Module, count: usize) -> Function {
    let mut intern = |text: &str| module.opcodes.intern_text(text).unwrap();
    let (load, store, barrier) = (intern("ld.global.b32"), intern("st.global.b32"), intern("bar.sync"));
    let (fma, wide, add) = (intern("fma.rn.f32"), intern("mul.wide.s32"), intern("add.s64"));
    let param = intern("ld.param.u64");
    let name = module.symbols.intern("block");
    let mut func = Function::new(name, FuncKind::Kernel, Linkage::Visible, Signature::default());
    let entry = func.new_block();
    let mut seed = 1u32;
    let mut random = move |bound: usize| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as usize % bound
    };
    let mut accesses = Vec::new();
    let mut builder = FunctionBuilder::new(&mut func);
    builder.switch_to(entry);
    let bases: Vec<VReg> = (0..8)
        .map(|index| {
            let base = builder.vreg(RegClass::B64);
            let address = [Operand::Open(GroupKind::Address, 1), Operand::Param(index, 0)];
            builder.emit(param, &[Operand::Def(base), address[0], address[1]]);
            base
        })
        .collect();
    let mut floats = vec![builder.vreg(RegClass::B32)];
    builder.emit(param, &[Operand::Def(floats[0]), Operand::Open(GroupKind::Address, 1), Operand::Param(8, 0)]);
    let mut made = 8;
    while made < count {
        let object = random(8);
        let (scaled, address) = (builder.vreg(RegClass::B64), builder.vreg(RegClass::B64));
        let index = builder.vreg(RegClass::B32);
        builder.copy(index, floats[floats.len() - 1]);
        builder.emit(wide, &[Operand::Def(scaled), Operand::Use(index), Operand::Imm(4)]);
        builder.emit(add, &[Operand::Def(address), Operand::Use(scaled), Operand::Use(bases[object])]);
        for offset in 0..4 {
            let value = builder.vreg(RegClass::B32);
            let inst = builder.inst(load).def(value).address(address, offset * 4).finish();
            accesses.push((inst, object));
            floats.push(value);
        }
        for _ in 0..8 {
            let value = builder.vreg(RegClass::B32);
            let recent = floats.len().saturating_sub(24);
            let mut pick = || Operand::Use(floats[recent + random(floats.len() - recent)]);
            let operands = [Operand::Def(value), pick(), pick(), pick()];
            builder.emit(fma, &operands);
            floats.push(value);
        }
        let inst = builder.inst(store).address(address, 16).used(floats[floats.len() - 1]).finish();
        accesses.push((inst, object));
        made += 16;
        if made % 512 == 8 {
            builder.emit(barrier, &[Operand::Imm(0)]);
        }
    }
    builder.terminate(Terminator::Ret { uniform: false });
    for (inst, object) in accesses {
        let object = if object < 5 { Object::NoAlias(object as u32) } else { Object::Parameters };
        func.memory[inst] = MemoryRef { objects: [object, Object::Unknown], constant: false };
    }
    func
}

/// Times scheduling of functions of these sizes, as `make` makes them, by the size.
fn measure(
    criterion: &mut Criterion,
    name: &str,
    (sizes, registers): (&[usize], Option<u32>),
    make: fn(&mut Module, usize) -> Function,
) {
    let mut group = criterion.benchmark_group(name);
    group.sample_size(20);
    let options = Options { mode: Mode::Latency, registers, check: false };
    for &count in sizes {
        let mut module = Module::new("sm_90".parse().unwrap());
        let func = make(&mut module, count);
        let context = Context::new(&module);
        group.throughput(Throughput::Elements(count as u64));
        group.bench_with_input(BenchmarkId::from_parameter(count), &func, |bencher, func| {
            bencher.iter_batched_ref(
                || func.clone(),
                |func| run(func, &context, &options).unwrap(),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

fn schedule(criterion: &mut Criterion) {
    measure(criterion, "schedule", (&SIZES, Some(128)), block);
}

/// A function of so many blocks: guards in a row that leave to one block, all of them one superblock; every eighth is a
/// loop.
fn blocks(module: &mut Module, count: usize) -> Function {
    let mut intern = |text: &str| module.opcodes.intern_text(text).unwrap();
    let (load, mul, compare) = (intern("ld.global.b32"), intern("mul.lo.s32"), intern("setp.lt.s32"));
    let (store, param) = (intern("st.global.b32"), intern("ld.param.u64"));
    let name = module.symbols.intern("blocks");
    let mut func = Function::new(name, FuncKind::Kernel, Linkage::Visible, Signature::default());
    let all: Vec<Block> = (0..=count).map(|_| func.new_block()).collect();
    let mut builder = FunctionBuilder::new(&mut func);
    builder.switch_to(all[0]);
    let base = builder.vreg(RegClass::B64);
    builder.emit(param, &[Operand::Def(base), Operand::Open(GroupKind::Address, 1), Operand::Param(0, 0)]);
    let first = builder.vreg(RegClass::B32);
    let mut last = first;
    builder.emit(param, &[Operand::Def(first), Operand::Open(GroupKind::Address, 1), Operand::Param(1, 0)]);
    let mut branches = Vec::new();
    for (index, &block) in all[..count].iter().enumerate() {
        builder.switch_to(block);
        let loaded = builder.vreg(RegClass::B32);
        builder.inst(load).def(loaded).address(base, index as i64 % 64 * 4).finish();
        for _ in 0..6 {
            let value = builder.vreg(RegClass::B32);
            builder.emit(mul, &[Operand::Def(value), Operand::Use(last), Operand::Use(last)]);
            last = value;
        }
        let pred = builder.vreg(RegClass::Pred);
        builder.emit(compare, &[Operand::Def(pred), Operand::Use(loaded), Operand::Imm(5)]);
        let out = if index % 8 == 7 { block } else { all[count] };
        branches.push((block, pred, all[index + 1], out));
    }
    builder.switch_to(all[count]);
    builder.inst(store).address(base, 0).used(first).finish();
    builder.terminate(Terminator::Ret { uniform: false });
    for (block, pred, next, out) in branches {
        let (then, otherwise) = (func.block_call(next, &[]), func.block_call(out, &[]));
        func.blocks[block].terminator = Terminator::CondBra { pred, negated: false, uniform: false, then, otherwise };
    }
    func
}

fn schedule_blocks(criterion: &mut Criterion) {
    measure(criterion, "schedule-blocks", (&[1_000, 10_000], None), blocks);
}

criterion_group!(benches, schedule, schedule_blocks);
criterion_main!(benches);
