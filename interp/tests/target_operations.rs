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
        let context = ptxc_opt::Context::new(&module, &attrs);
        for func in funcs.values_mut().filter(|f| !f.is_declaration()) {
            (pass.run)(func, &context);
        }
        module.funcs = funcs;
    }
    module
}

fn legal(mut module: Module, target: &str) -> Module {
    let target: ptxc_targets::Target = target.parse().expect("a target");
    if let Err(errors) = ptxc_isel::legalize(&mut module, target, None) {
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
        Ok(_) => panic!("nothing is reported of {text}"),
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

/// One block copies `x` in, doubles it and copies it out: the copy in tells an mbarrier object.
const BULK: &str = "
shared @buf: [256 x i32], align 128
shared @bar: i64, align 8
kernel @k(%x: ptr<global>, %y: ptr<global>) {
entry:
  %t = sreg.tid.x
  %first = icmp eq i32 %t, 0
  br %first, init, ready
init:
  ptx.mbarrier.init.shared::cta.b64 [@bar], 1
  jump ready
ready:
  barrier.sync aligned 0
  br %first, issue, spin
issue:
  ptx.mbarrier.arrive.expect_tx.shared::cta.b64 _, [@bar], 1024
  ptx.cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [@buf], [%x], 1024, [@bar]
  jump spin
spin:
  %done = ptx.mbarrier.try_wait.parity.shared::cta.b64 [@bar], 0
  br %done, work, spin
work:
  %p = gep [256 x i32], @buf, 0, %t
  %v = load i32, %p
  %d = add i32 %v, %v
  store i32 %d, %p
  barrier.sync aligned 0
  br %first, out, end
out:
  ptx.cp.async.bulk.global.shared::cta.bulk_group [%y], [@buf], 1024
  ptx.cp.async.bulk.commit_group
  ptx.cp.async.bulk.wait_group 0
  jump end
end:
  ret
}
";

fn bulk() -> (Launch, Vec<Buffer>) {
    let buffers = vec![Buffer::words("x", 0..256), Buffer::output("y", 1024)];
    (Launch::linear("k", 1, 256, vec![Argument::buffer(0), Argument::buffer(1)]), buffers)
}

#[test]
fn bulk_copies_go_in_and_out() {
    let (launch, buffers) = bulk();
    check(BULK, "sm_90", &launch, &buffers, |form, buffers| {
        assert_eq!(buffers[1].to_words(), (0..256).map(|i| 2 * i).collect::<Vec<_>>(), "{form}");
    });
}

#[test]
fn misuses_of_bulk_copies_show() {
    let (launch, buffers) = bulk();
    let expect = |from: &str, to: &str, parts: &[&str]| {
        assert!(BULK.contains(from), "{from}");
        let message = failure(&BULK.replace(from, to), &launch, &buffers);
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    };
    // Nobody waits for the copy.
    let written = "still writes these bytes: nothing has waited for its end, which was at @k, `ptx.cp.async.bulk";
    let race = "race with a write of an asynchronous operation that nobody here has waited for";
    expect("br %done, work, spin", "jump work", &[race, "@k, `%v = load` in block work"]);
    // Waits for the wrong phase, which lies before the first.
    expect("[@bar], 0\n", "[@bar], 1\n", &[written]);
    // Fewer bytes come than are expected.
    expect("_, [@bar], 1024", "_, [@bar], 2048", &["never complete: 0 arrivals and 1024 bytes are missing"]);
    // More arrive than the object counts.
    let twice = "_, [@bar], 1024\n  ptx.mbarrier.arrive.shared::cta.b64 _, [@bar], 2";
    expect("_, [@bar], 1024", twice, &["2 arrive at an mbarrier object whose phase waits for 0"]);
    // The object is used before all threads know of it.
    expect(
        "ready:\n  barrier.sync aligned 0",
        "ready:\n  barrier.warp -1",
        &[
            "race with a write of thread 0 of block 0, which was at @k, `ptx.mbarrier.init.shared::cta.b64` in block init",
        ],
    );
    // The block ends while its memory is read.
    expect("  ptx.cp.async.bulk.wait_group 0\n", "", &["ends while an asynchronous operation still reads"]);
    // What the copy reads is overwritten.
    let early = "commit_group\n  store i32 0, @buf\n";
    expect("commit_group\n", early, &["an asynchronous operation still reads these bytes", "`store` in block out"]);
    // The object is ordinary memory to others.
    expect("%v = load i32, %p", "%v = load i32, @bar", &["are an mbarrier object"]);
}

/// Every block adds its rows to the same sums.
const REDUCE: &str = "
shared @buf: [64 x i32], align 16
kernel @k(%y: ptr<global>) {
entry:
  %t = sreg.tid.x
  %b = sreg.ctaid.x
  %v = add i32 %t, %b
  %p = gep [64 x i32], @buf, 0, %t
  store i32 %v, %p
  barrier.sync aligned 0
  %first = icmp eq i32 %t, 0
  br %first, out, end
out:
  ptx.cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%y], [@buf], 256
  ptx.cp.async.bulk.commit_group
  ptx.cp.async.bulk.wait_group.read 0
  jump end
end:
  ret
}
";

#[test]
fn bulk_reductions_add_up() {
    let buffers = [Buffer::words("y", vec![5; 64])];
    let launch = Launch::linear("k", 20, 64, vec![Argument::buffer(0)]);
    check(REDUCE, "sm_90", &launch, &buffers, |form, buffers| {
        let want: Vec<u32> = (0..64).map(|t| 5 + 20 * t + 190).collect();
        assert_eq!(buffers[0].to_words(), want, "{form}");
    });
}
