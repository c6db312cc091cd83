//! What is left is small, valid, and still what was asked for.
#![cfg(test)]

use ptxc_ir::testing::{Options as Shape, random_module};
use ptxc_ir::{Module, Opcode, has_errors, print_module, read_module, verify_module};
use ptxc_reduce::{Options, reduce};

fn count(module: &Module, op: Opcode) -> usize {
    let funcs = module.funcs.values();
    funcs
        .flat_map(|f| f.layout.blocks().flat_map(|b| f.layout.insts(b)).map(|i| f.dfg.insts[i].op))
        .filter(|found| *found == op)
        .count()
}

fn size(module: &Module) -> usize {
    module.funcs.values().map(|f| f.layout.blocks().map(|b| f.layout.insts(b).count()).sum::<usize>()).sum()
}

#[test]
fn one_instruction_is_left_of_a_kernel() {
    let text = "
const @table: [4 x i32] = [1, 2, 3, 4]
func @helper(%a: i32) -> i32 {
entry:
  %b = add i32 %a, 1
  ret %b
}
kernel @k(%out: ptr<global>, %n: i32, %f: f32) reqntid(32) {
entry:
  %t = sreg.tid.x
  %c = icmp slt i32 %t, %n
  br %c, a, b(0)
a:
  %h = call @helper(%t)
  %m = mul nsw i32 %h, %n
  %i = fptosi f32 %f to i32
  %s = udiv i32 %m, %i
  jump b(%s)
b(%r: i32):
  %p = gep i32, %out, %t
  store i32 %r, %p, volatile
  ret
}
";
    let module = read_module(text).unwrap();
    let (small, summary) = reduce(&module, &Options::default(), &mut |m| count(m, Opcode::Udiv) == 1);
    let want = "kernel @k() {\nentry:\n  %s = udiv i32 0, 0\n  ret\n}\n";
    assert_eq!(print_module(&small), want);
    assert!(summary.kept > 5 && summary.tests >= summary.kept);
}

#[test]
fn kernels_keep_their_parameters_when_asked() {
    let text = "kernel @k(%n: i32) {\nentry:\n  %a = ctpop i32 %n\n  ret\n}\n";
    let module = read_module(text).unwrap();
    let options = Options { keep_kernels: true, ..Options::default() };
    let (small, _) = reduce(&module, &options, &mut |m| m.symbol("k").is_some());
    assert_eq!(small.funcs.values().next().unwrap().sig.params.len(), 1);
    assert_eq!(size(&small), 1);
}

#[test]
fn random_modules_stay_valid_and_shrink() {
    for seed in 0..12 {
        let shape = Shape { functions: 2, ..Shape::default() };
        let module = random_module(seed, &shape);
        let op = [Opcode::Select, Opcode::Load, Opcode::Add][seed as usize % 3];
        if count(&module, op) == 0 {
            continue;
        }
        let mut valid = true;
        let options = Options { tests: 800, ..Options::default() };
        let (small, _) = reduce(&module, &options, &mut |m| {
            valid &= !has_errors(&verify_module(m));
            count(m, op) > 0
        });
        assert!(valid, "seed {seed}");
        assert!(count(&small, op) > 0, "seed {seed}");
        assert!(size(&small) < 12, "seed {seed}: {} instructions\n{}", size(&small), print_module(&small));
    }
}
