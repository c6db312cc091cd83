//! Emission: time by the number of instructions.

use criterion::{BenchmarkId, Criterion, Throughput};
use ptxc_emit::{EmitOptions, emit_module};
use ptxc_mir::{FuncKind, Function, FunctionBuilder, Linkage, Module, RegClass, Signature, Terminator, VReg};

/// A kernel of `size` instructions of four kinds.
fn module(size: usize) -> Module {
    let mut module = Module::new("sm_90a".parse().expect("a known target"));
    let name = module.symbols.intern("k");
    let mut func = Function::new(name, FuncKind::Kernel, Linkage::Visible, Signature::default());
    let entry = func.new_block();
    let mut op = |text: &str| module.opcodes.intern_text(text).expect("a known mnemonic");
    let (fma, load, store, add) = (op("fma.rn.f32"), op("ld.global.v4.b32"), op("st.global.b32"), op("add.s64"));
    let mut b = FunctionBuilder::new(&mut func);
    b.switch_to(entry);
    let r: Vec<VReg> = (0..64).map(|_| b.vreg(RegClass::B32)).collect();
    let d: Vec<VReg> = (0..16).map(|_| b.vreg(RegClass::B64)).collect();
    for i in 0..size / 4 {
        b.inst(fma).def(r[i % 64]).used(r[(i + 1) % 64]).used(r[(i + 2) % 64]).used(r[i % 64]).finish();
        b.inst(load).def_vector(&r[(i * 4) % 60..(i * 4) % 60 + 4]).address(d[i % 16], 16 * i as i64).finish();
        b.inst(add).def(d[i % 16]).used(d[(i + 1) % 16]).imm(-(i as i64)).finish();
        b.inst(store).address(d[(i + 3) % 16], 0).used(r[i % 64]).finish();
    }
    b.terminate(Terminator::Ret { uniform: false });
    module.functions.push(func);
    module
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("emit");
    for size in [2_000, 20_000] {
        let module = module(size);
        group.sample_size(20).throughput(Throughput::Elements(size as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| emit_module(&module, &EmitOptions::default()));
        });
    }
    group.finish();
    criterion.final_summary();
}
