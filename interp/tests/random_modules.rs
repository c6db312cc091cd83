//! Random well-formed modules: the interpreter ends with an outcome or an error and never panics, says the same twice,
//! and where a module runs without error, it does so after optimization as well.

use cranelift_entity::PrimaryMap;
use ptxc_interp::ir::run;
use ptxc_interp::launch::{Argument, Buffer, Failure, Launch, Options, Outcome};
use ptxc_ir::testing::random_module;
use ptxc_ir::{FuncAttrs, FuncId, FuncKind, Module};

fn optimize(module: &mut Module) {
    for pass in ptxc_opt::PASSES {
        let mut funcs = std::mem::take(&mut module.funcs);
        let attrs: PrimaryMap<FuncId, FuncAttrs> = funcs.values().map(|f| f.attrs.clone()).collect();
        let context = ptxc_opt::Context::new(module, &attrs);
        for func in funcs.values_mut().filter(|f| !f.is_declaration()) {
            (pass.run)(func, &context);
        }
        module.funcs = funcs;
    }
    // Functions keep their numbers: nothing is removed from the module.
    ptxc_opt::inline_calls(module);
}

fn execute(module: &Module, kernel: FuncId) -> (Result<Outcome, Failure>, Vec<Buffer>) {
    let func = &module.funcs[kernel];
    let argument = |(index, param): (usize, &ptxc_ir::Param)| {
        let layout = module.param_layout(param);
        match param.ty {
            ptxc_ir::MemType::Value(ty) if ty.is_ptr() && layout.size == 8 => Argument::buffer(0),
            _ => Argument::Bytes((0..layout.size).map(|i| (i as u8).wrapping_mul(37) ^ index as u8).collect()),
        }
    };
    let arguments = func.sig.params.iter().enumerate().map(argument).collect();
    let block = func.attrs.reqntid.unwrap_or([40, 1, 1]);
    let launch = Launch { block, ..Launch::linear(func.name.clone(), 2, 1, arguments) };
    let mut buffers = vec![Buffer::words("data", (0..256).map(|i| i * 0x0101_0101))];
    let options = Options { step_limit: 20_000, races: false, ..Options::default() };
    let outcome = run(module, &launch, &mut buffers, &options);
    (outcome, buffers)
}

#[test]
fn random_modules_never_panic_and_survive_optimization() {
    let (mut ran, mut failed) = (0, 0);
    for seed in 0..300 {
        let module = random_module(seed, &ptxc_ir::testing::Options::default());
        let mut better = module.clone();
        optimize(&mut better);
        for kernel in module.func_ids().filter(|id| module.funcs[*id].kind == FuncKind::Kernel) {
            if module.funcs[kernel].is_declaration() {
                continue;
            }
            let (first, buffers) = execute(&module, kernel);
            assert_eq!((first.clone(), buffers.clone()), execute(&module, kernel), "seed {seed}");
            let (second, after) = execute(&better, kernel);
            match first {
                Ok(_) => {
                    ran += 1;
                    let name = &module.funcs[kernel].name;
                    assert!(second.is_ok(), "seed {seed}, @{name}: {}", second.unwrap_err());
                    assert_eq!(buffers, after, "seed {seed}, @{name}");
                }
                Err(_) => failed += 1,
            }
        }
    }
    // Most random kernels do something undefined.
    println!("{ran} kernels ran, {failed} ended with an error");
    assert!(ran > 20 && failed > 20);
}
