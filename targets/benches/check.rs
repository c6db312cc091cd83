//! How many statements a second the checker reads and checks, on one core.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use ptxc_targets::{Checker, OpcodeTable, PtxVersion, RegType, Shape, Target, check_module, resolve, tok};
use std::hint::black_box;

/// A body like those of real kernels: address arithmetic, loads, fma, predicates, a barrier, mma.
const BODY: &str = "\
    mad.lo.s32 %r1, %r2, %r3, %r4;\n\
    mul.wide.s32 %rd1, %r1, 4;\n\
    add.s64 %rd2, %rd3, %rd1;\n\
    ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd2+16];\n\
    fma.rn.f32 %f5, %f1, %f2, %f5;\n\
    fma.rn.f32 %f6, %f3, %f4, %f6;\n\
    st.shared.f32 [%r5+128], %f5;\n\
    setp.lt.s32 %p1, %r1, %r6;\n\
    @%p1 bra again;\n\
    bar.sync 0;\n\
    cp.async.cg.shared.global [%r5], [%rd2], 16;\n\
    mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, %f6, %f7, %f8};\n\
    shfl.sync.bfly.b32 %r7|%p2, %r8, 16, 31, -1;\n\
    selp.b32 %r9, %r7, %r8, %p2;\n\
    cvt.rn.bf16x2.f32 %r10, %f1, %f2;\n\
    atom.global.add.f32 %f9, [%rd2], %f1;\n";
const STATEMENTS: usize = 16;

fn module(repeats: usize) -> String {
    let mut text = String::from(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n\
         .reg .pred %p<4>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<8>;\n.reg .f32 %f<16>;\nagain:\n",
    );
    for _ in 0..repeats {
        text.push_str(BODY);
    }
    text.push_str("ret;\n}\n");
    text
}

fn check(criterion: &mut Criterion) {
    let Ok(target) = "sm_90".parse::<Target>() else { return };
    let repeats = 2000;
    let text = module(repeats);
    let found = check_module(&text, target, 4);
    assert!(found.is_empty(), "{found:?}");
    let mut group = criterion.benchmark_group("check");
    group.throughput(Throughput::Elements((repeats * STATEMENTS) as u64));
    group.bench_function("module", |bencher| bencher.iter(|| check_module(black_box(&text), target, 0)));
    group.throughput(Throughput::Elements(1));
    group.bench_function("new", |bencher| bencher.iter(|| Checker::new(target, PtxVersion::MAX)));
    group.finish();
}

fn intern(criterion: &mut Criterion) {
    let pieces = [
        tok::MMA,
        tok::SYNC,
        tok::ALIGNED,
        tok::M16N8K16,
        tok::ROW,
        tok::COL,
        tok::F32,
        tok::BF16,
        tok::BF16,
        tok::F32,
    ];
    let mut group = criterion.benchmark_group("opcode");
    let mut table = OpcodeTable::new();
    group.bench_function("intern again", |bencher| bencher.iter(|| table.intern(black_box(&pieces))));
    group.bench_function("intern first", |bencher| {
        bencher.iter_batched(OpcodeTable::new, |mut table| table.intern(black_box(&pieces)), BatchSize::SmallInput)
    });
    let shapes = [Shape::Register(RegType::F32); 3];
    group.bench_function("resolve", |bencher| {
        bencher.iter(|| resolve(black_box(&[tok::ADD, tok::RN, tok::F32]), black_box(&shapes)))
    });
    group.finish();
}

criterion_group!(benches, check, intern);
criterion_main!(benches);
