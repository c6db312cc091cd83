//! Helpers of the emission tests.

use ptxc_emit::{EmitOptions, emit_module};
use ptxc_mir::{FuncKind, Function, FunctionBuilder, Linkage, Module, ParamDecl, Signature, Terminator};
use std::process::Command;

/// An empty module for that target.
pub fn module(target: &str) -> Module {
    Module::new(target.parse().expect("a known target"))
}

/// Adds a function whose body `build` makes; its entry block is current.
pub fn function(
    module: &mut Module,
    name: &str,
    kind: FuncKind,
    signature: Signature,
    build: impl FnOnce(&mut Module, &mut FunctionBuilder<'_>),
) -> usize {
    let symbol = module.symbols.intern(name);
    let mut func = Function::new(symbol, kind, Linkage::Visible, signature);
    let entry = func.new_block();
    let mut builder = FunctionBuilder::new(&mut func);
    builder.switch_to(entry);
    build(module, &mut builder);
    module.functions.push(func);
    module.functions.len() - 1
}

/// Adds a kernel without parameters that only returns.
pub fn empty_kernel(module: &mut Module, name: &str) -> usize {
    function(module, name, FuncKind::Kernel, Signature::default(), |_, b| {
        b.terminate(Terminator::Ret { uniform: false });
    })
}

/// A signature of scalars.
pub fn signature(params: &[ParamDecl], returns: &[ParamDecl]) -> Signature {
    Signature { params: params.to_vec(), returns: returns.to_vec(), noreturn: false }
}

/// The PTX, which `ptxas` takes.
pub fn emit(module: &Module) -> String {
    emit_with(module, EmitOptions::default())
}

/// The PTX under options, which `ptxas` takes.
pub fn emit_with(module: &Module, options: EmitOptions) -> String {
    let text = emit_module(module, &options).expect("the module is legal");
    assemble(&text, module.target.name(), options);
    text
}

/// Runs `ptxas` on the text.
pub fn assemble(text: &str, arch: &str, options: EmitOptions) {
    let target = arch.parse().expect("a target");
    let ptxas = ptxc_test_support::ptxas(ptxc_test_support::Release::for_target(target));
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("ptxc-emit-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a temporary directory");
    let (input, output) = (dir.join("a.ptx"), dir.join("a.cubin"));
    std::fs::write(&input, text).expect("the input is written");
    let mut command = Command::new(ptxas);
    command.arg(format!("-arch={arch}")).arg("-c").arg(&input).arg("-o").arg(&output);
    if options.debug {
        command.arg("-g");
    } else if options.lineinfo {
        command.arg("-lineinfo");
    }
    let result = command.output().expect("ptxas runs");
    let _ = std::fs::remove_dir_all(&dir);
    let log = String::from_utf8_lossy(&result.stderr).into_owned() + &String::from_utf8_lossy(&result.stdout);
    assert!(result.status.success(), "{log}\n{text}");
}

/// That each of these lines occurs in the text, in this order.
#[track_caller]
pub fn check_lines(text: &str, expected: &[&str]) {
    let mut lines = text.lines().map(str::trim);
    for want in expected {
        assert!(lines.any(|line| line == *want), "no line `{want}` (in order) in\n{text}");
    }
}
