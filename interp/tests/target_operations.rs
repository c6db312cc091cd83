//! Kernels of target operations in the interpreter: as they are written, optimized and made legal, with operations in
//! flight that end late, or in random orders.

use cranelift_entity::PrimaryMap;
use ptxc_interp::ir::run;
use ptxc_interp::launch::{Argument, Buffer, Completion, Launch, Options};
use ptxc_ir::{FuncAttrs, FuncId, Module};

fn read(text: &str) -> Module {
    match ptxc_ir::read_module(text) {
        Ok(module) => module,
        Err(errors) => panic!("{:?}", errors.iter().map(|e| e.with_position(text)).collect::<Vec<_>>()),
    }
}

fn optimized(mut module: Module) -> Module {
    for pass in ptxc_opt::PASSES {
        let mut funcs = std::mem::take(&mut module.funcs);
        let attrs: PrimaryMap<FuncId, FuncAttrs> = funcs.values().map(|f| f.attrs.clone()).collect();
        let context = ptxc_opt::Context { module: &module, attrs: &attrs };
        for func in funcs.values_mut().filter(|f| !f.is_declaration()) {
            (pass.run)(func, &context);
        }
        module.funcs = funcs;
    }
    module
}

fn legal(mut module: Module, target: &str) -> Module {
    let target: ptxc_targets::Target = target.parse().expect("a target");
    if let Err(errors) = ptxc_isel::legalize(&mut module, target) {
        panic!("{}", errors.first().map(|e| format!("{e:?}")).unwrap_or_default());
    }
    module
}

const COMPLETIONS: [Completion; 3] = [Completion::Late, Completion::Random(1), Completion::Random(2)];

/// Runs a launch in all forms and orders; `check` judges the buffers.
fn check(text: &str, target: &str, launch: &Launch, buffers: &[Buffer], check: impl Fn(&str, &[Buffer])) {
    let module = read(text);
    let forms = [
        ("written", module.clone()),
        ("optimized", optimized(module.clone())),
        ("legal", legal(optimized(module), target)),
    ];
    for (form, module) in forms {
        for completion in COMPLETIONS {
            let mut buffers = buffers.to_vec();
            let options = Options { completion, ..Options::default() };
            match run(&module, launch, &mut buffers, &options) {
                Ok(outcome) => assert!(outcome.warnings.is_empty(), "{form}: {:?}", outcome.warnings),
                Err(failure) => panic!("{form}, {completion:?}: {failure}"),
            }
            check(form, &buffers);
        }
    }
}

/// What is wrong with a kernel.
fn failure(text: &str, launch: &Launch, buffers: &[Buffer]) -> String {
    match run(&read(text), launch, &mut buffers.to_vec(), &Options::default()) {
        Ok(_) => panic!("nothing is reported"),
        Err(failure) => failure.to_string(),
    }
}

const GEMM: &str = include_str!("../../examples/gemm_bf16.ir");

/// A launch of `gemm_bf16` on small whole numbers, and the product.
fn gemm(m: usize, n: usize, k: usize) -> (Launch, Vec<Buffer>, Vec<u32>) {
    let a = |i: usize, j: usize| ((i * 5 + j * 3) % 7) as f32 - 3.0;
    let b = |i: usize, j: usize| ((i * 2 + j * 11) % 9) as f32 - 4.0;
    let bf16 = |x: f32| ((x.to_bits() >> 16) as u16).to_le_bytes();
    let bytes = |rows: usize, columns: usize, f: &dyn Fn(usize, usize) -> f32| -> Vec<u8> {
        (0..rows * columns).flat_map(|i| bf16(f(i / columns, i % columns))).collect()
    };
    let buffers =
        vec![Buffer::new("a", bytes(m, k, &a)), Buffer::new("b", bytes(k, n, &b)), Buffer::output("c", m * n * 4)];
    let product = |i: usize, j: usize| (0..k).map(|x| a(i, x) * b(x, j)).sum::<f32>().to_bits();
    let want = (0..m * n).map(|i| product(i / n, i % n)).collect();
    let mut arguments: Vec<Argument> = [m, n, k].iter().map(|x| Argument::i32(*x as i32)).collect();
    arguments.extend((0..3).map(Argument::buffer));
    let grid = [n.div_ceil(128) as u32, m.div_ceil(128) as u32, 1];
    (Launch { grid, block: [256, 1, 1], ..Launch::linear("gemm_bf16", 1, 1, arguments) }, buffers, want)
}

#[test]
fn tensor_cores_multiply() {
    let (launch, buffers, want) = gemm(130, 40, 72);
    check(GEMM, "sm_80", &launch, &buffers, |form, buffers| assert_eq!(buffers[2].to_words(), want, "{form}"));
}

#[test]
fn a_missing_wait_shows() {
    let (launch, buffers, _) = gemm(16, 16, 64);
    let late = GEMM.replace("ptx.cp.async.wait_group 1", "ptx.cp.async.wait_group 2");
    let message = failure(&late, &launch, &buffers);
    assert!(message.contains("an asynchronous operation still writes these bytes"), "{message}");
    assert!(message.contains("which was at @gemm_bf16, `ptx.cp.async.cg.shared.global` in block"), "{message}");
    assert!(message.contains("ptx.ldmatrix.sync.aligned.m8n8.x4"), "{message}");
}
