//! Compile time: whole compilations of the examples, single stages, and time per instruction as functions grow.

#[path = "generate.rs"]
mod generate;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ptxc::{Emit, OptLevel, Options, compile_text};

fn options(opt_level: OptLevel) -> Options {
    let target = "sm_90a".parse().unwrap_or(ptxc::targets::Target::ALL[0]);
    Options { opt_level, verify_each: false, ..Options::new(target) }
}

fn compile(name: &str, text: &str, options: &Options) -> String {
    match compile_text(name, text, options) {
        Ok(output) => output.text,
        Err(diagnostics) => panic!("{diagnostics}"),
    }
}

/// Each example at each level.
fn examples(c: &mut Criterion) {
    let mut group = c.benchmark_group("example");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "ir"));
    files.sort();
    for path in files {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for level in [OptLevel::O0, OptLevel::O3] {
            let options = options(level);
            group.bench_function(BenchmarkId::new(&name, format!("{level:?}")), |b| {
                b.iter(|| compile(&name, black_box(&text), &options));
            });
        }
    }
}

/// Time per instruction has to stay the same from 2,000 to 20,000 instructions.
fn growth(c: &mut Criterion) {
    let mut group = c.benchmark_group("growth");
    for size in [2_000, 20_000] {
        let text = generate::kernel(size);
        group.throughput(Throughput::Elements(size as u64));
        for level in [OptLevel::O0, OptLevel::O3] {
            let options = options(level);
            group.bench_function(BenchmarkId::new(format!("{level:?}"), size), |b| {
                b.iter(|| compile("generated.ir", black_box(&text), &options));
            });
        }
    }
}

/// Prefixes of the pipeline on one large function; the difference of two is a stage.
fn stages(c: &mut Criterion) {
    let mut group = c.benchmark_group("through");
    let text = generate::kernel(20_000);
    group.throughput(Throughput::Elements(20_000));
    let cases = [
        ("print", Options { emit: Emit::Ir, ..options(OptLevel::O0) }),
        ("passes", Options { emit: Emit::Ir, ..options(OptLevel::O3) }),
        ("select", Options { emit: Emit::Mir, ..options(OptLevel::O3) }),
        ("emit", options(OptLevel::O3)),
    ];
    for (name, options) in cases {
        group.bench_function(name, |b| b.iter(|| compile("generated.ir", black_box(&text), &options)));
    }
    group.bench_function("read", |b| {
        b.iter(|| ptxc::ir::read_module(black_box(&text)).map(|module| module.funcs.len()))
    });
}

criterion_group!(benches, examples, growth, stages);
criterion_main!(benches);
