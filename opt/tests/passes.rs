//! Each pass on small functions: IR text in, IR text out.
#![cfg(test)]

use cranelift_entity::PrimaryMap;
use ptxc_ir::{FuncAttrs, FuncId, has_errors, print_module, read_module, verify_module};

/// Runs passes, by name, on a module in text and returns the text after them.
fn run(passes: &[&str], text: &str) -> String {
    let mut module = read_module(text).unwrap_or_else(|errors| {
        panic!("{}", errors.iter().map(|e| e.with_position(text)).collect::<Vec<_>>().join("\n"))
    });
    let attrs: PrimaryMap<FuncId, FuncAttrs> = module.funcs.values().map(|func| func.attrs.clone()).collect();
    for name in passes {
        let pass = ptxc_opt::find(name).unwrap();
        let mut funcs = std::mem::take(&mut module.funcs);
        let context = ptxc_opt::Context::new(&module, &attrs);
        for func in funcs.values_mut().filter(|func| !func.is_declaration()) {
            (pass.run)(func, &context);
        }
        module.funcs = funcs;
    }
    let printed = print_module(&module);
    let faults = verify_module(&module);
    assert!(!has_errors(&faults), "{faults:?} in\n{printed}");
    assert!(read_module(&printed).is_ok(), "the result does not read back:\n{printed}");
    printed
}

/// Checks the body of a function with parameters `params` after one pass, lines compared without indentation.
fn check(pass: &str, params: &str, body: &str, expected: &str) {
    let text = format!("func @f({params}) {{\n{body}\n}}\n");
    let printed = run(&[pass], &text);
    let lines = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
    };
    let printed = lines(&printed);
    let got = &printed[1..printed.len() - 1];
    let expected = lines(expected);
    assert_eq!(got, expected.as_slice(), "after {pass}");
}

#[test]
fn constants_fold_through_chains() {
    check(
        "fold-constants",
        "%p: ptr",
        "entry:
           %a = add i32 40, 2
           %b = mul i32 %a, 2
           %c = icmp ugt i32 %b, 80
           %d = select i1 %c, i32 %b, 0
           store i32 %d, %p
           ret",
        "entry:
           store i32 84, %p
           ret",
    );
}

#[test]
fn vectors_fold_lane_by_lane() {
    check(
        "fold-constants",
        "%p: ptr",
        "entry:
           %a = add <2 x i32> <1, 2>, splat(10)
           %b = extract <2 x i32> %a, 1
           store i32 %b, %p
           ret",
        "entry:
           store i32 12, %p
           ret",
    );
}

#[test]
fn identities_give_the_operand() {
    check(
        "fold-constants",
        "%x: i32, %p: ptr",
        "entry:
           %a = add i32 %x, 0
           %b = and i32 %a, -1
           %c = shl i32 %b, 0
           %d = xor i32 %c, %x
           %e = or i32 %d, %c
           %f = mul i32 1, %e
           store i32 %f, %p
           ret",
        "entry:
           store i32 %x, %p
           ret",
    );
}

#[test]
fn float_identities_need_nnan_and_the_default_rounding() {
    check(
        "fold-constants",
        "%x: f32, %p: ptr",
        "entry:
           %a = fmul nnan f32 %x, 1.0
           %b = fmul f32 %a, 1.0
           %c = fadd nnan rm f32 %b, -0.0
           store f32 %c, %p
           ret",
        "entry:
           %b = fmul f32 %x, 1.0
           %c = fadd nnan rm f32 %b, -0.0
           store f32 %c, %p
           ret",
    );
}

#[test]
fn undefined_operations_stay() {
    check(
        "fold-constants",
        "%p: ptr",
        "entry:
           %a = udiv i32 1, 0
           store i32 %a, %p
           ret",
        "entry:
           %a = udiv i32 1, 0
           store i32 %a, %p
           ret",
    );
}

#[test]
fn addresses_of_globals_take_constant_offsets() {
    let printed = run(
        &["fold-constants"],
        "global @g: [4 x {i32, [2 x i16]}]
         func @f() {
         entry:
           %p = gep [4 x {i32, [2 x i16]}], @g, 0, 2, 1, 1
           store i16 7, %p
           ret
         }",
    );
    assert!(printed.contains("store i16 7, @g + 22"), "{printed}");
}

#[test]
fn constant_branches_become_jumps_and_chains_join() {
    check(
        "simplify-control-flow",
        "%x: i32, %p: ptr",
        "entry:
           br true, a, b
         a:
           jump c(%x)
         b:
           jump c(7)
         c(%v: i32):
           store i32 %v, %p
           ret",
        "entry:
           store i32 %x, %p
           ret",
    );
}

#[test]
fn switches_on_constants_go_one_way() {
    check(
        "simplify-control-flow",
        "%p: ptr",
        "entry:
           switch i32 7, other [0: zero, 7: seven]
         zero:
           store i32 0, %p
           ret
         seven:
           store i32 1, %p
           ret
         other:
           store i32 2, %p
           ret",
        "entry:
           store i32 1, %p
           ret",
    );
}

#[test]
fn empty_blocks_are_skipped_with_their_arguments() {
    check(
        "simplify-control-flow",
        "%c: i1, %x: i32, %p: ptr",
        "entry:
           br %c, a(1), b
         a(%v: i32):
           jump join(%v, %x)
         b:
           jump join(2, 3)
         join(%s: i32, %t: i32):
           store i32 %s, %p
           store i32 %t, %p
           ret",
        "entry:
           br %c, join(1, %x), join(2, 3)
         join(%s: i32, %t: i32):
           store i32 %s, %p
           store i32 %t, %p
           ret",
    );
}

#[test]
fn a_parameter_used_elsewhere_keeps_its_empty_block() {
    let body = "entry:
           br %c, a(1), a(2)
         a(%v: i32):
           jump b
         b:
           store i32 %v, %p
           br %c, b, out
         out:
           ret";
    check("simplify-control-flow", "%c: i1, %p: ptr", body, body);
}

#[test]
fn a_latch_that_gathers_edges_stays_one_latch() {
    let body = "entry:
           jump head(0)
         head(%i: i32):
           %c = icmp slt i32 %i, %n
           br %c, body, out
         body:
           %next = add i32 %i, 1
           %odd = trunc i32 %i to i1
           br %odd, work, latch(%next)
         work:
           store i32 %i, %p
           jump latch(%next)
         latch(%k: i32):
           jump head(%k)
         out:
           ret";
    check("simplify-control-flow", "%n: i32, %p: ptr", body, body);
}

#[test]
fn loops_of_empty_blocks_stay_loops() {
    check(
        "simplify-control-flow",
        "",
        "entry:
           jump a
         a:
           jump b
         b:
           jump a",
        "entry:
           jump a
         a:
           jump a",
    );
}

#[test]
fn blocks_with_barriers_are_not_duplicated() {
    let body = "entry:
           %t = sreg.tid.x
           %c = icmp ult i32 %t, 16
           br %c, a, b
         a:
           store i32 1, %p
           jump m
         b:
           store i32 2, %p
           jump m
         m:
           barrier.sync 14, 32
           br %c, x, y
         x:
           store i32 3, %p
           ret
         y:
           store i32 4, %p
           ret";
    check("simplify-control-flow", "%p: ptr", body, body);
}

#[test]
fn parameters_with_one_value_merge() {
    check(
        "merge-block-params",
        "%n: i32, %x: i32, %p: ptr",
        "entry:
           jump head(0, %x)
         head(%i: i32, %same: i32):
           store i32 %same, %p
           %next = add i32 %i, 1
           %c = icmp slt i32 %next, %n
           br %c, head(%next, %same), out(%same)
         out(%v: i32):
           store i32 %v, %p
           ret",
        "entry:
           jump head(0)
         head(%i: i32):
           store i32 %x, %p
           %next = add i32 %i, 1
           %c = icmp slt i32 %next, %n
           br %c, head(%next), out
         out:
           store i32 %x, %p
           ret",
    );
}

#[test]
fn a_value_that_does_not_dominate_does_not_stand_for_poison() {
    let body = "entry:
           br %c, a, b(poison)
         a:
           %v = add i32 %x, 1
           jump b(%v)
         b(%w: i32):
           store i32 %w, %p
           ret";
    check("merge-block-params", "%c: i1, %x: i32, %p: ptr", body, body);
}

#[test]
fn dead_chains_and_dead_cycles_go() {
    check(
        "remove-dead-code",
        "%n: i32, %p: ptr",
        "entry:
           %dead = load i32, %p
           %deader = mul i32 %dead, 3
           jump head(0, 1)
         head(%i: i32, %unused: i32):
           %grown = add i32 %unused, 5
           %next = add i32 %i, 1
           %c = icmp slt i32 %next, %n
           br %c, head(%next, %grown), out
         out:
           ret",
        "entry:
           jump head(0)
         head(%i: i32):
           %next = add i32 %i, 1
           %c = icmp slt i32 %next, %n
           br %c, head(%next), out
         out:
           ret",
    );
}

#[test]
fn effects_and_convergence_are_kept() {
    let body = "entry:
           %v = load i32, %p, volatile
           %s = shfl.bfly i32 %x, 1, 31, -1
           %o = atomicrmw add i32 %p, 1, relaxed, scope(gpu)
           %m = activemask
           barrier.sync aligned 0
           ret";
    check("remove-dead-code", "%x: i32, %p: ptr", body, body);
}

#[test]
fn an_unused_alloca_goes() {
    check(
        "remove-dead-code",
        "",
        "entry:
           %a = alloca i32
           %q = gep i32, %a, 1
           ret",
        "entry:
           ret",
    );
}

#[test]
fn equal_instructions_merge_below_the_first() {
    check(
        "number-values",
        "%c: i1, %x: i32, %y: i32, %p: ptr",
        "entry:
           %a = add nsw i32 %x, %y
           br %c, t, f
         t:
           %b = add i32 %y, %x
           store i32 %b, %p
           ret
         f:
           %d = icmp slt i32 %x, %y
           %e = icmp sgt i32 %y, %x
           %g = and i1 %d, %e
           %h = select i1 %g, i32 %a, %x
           store i32 %h, %p
           ret",
        "entry:
           %a = add i32 %x, %y
           br %c, t, f
         t:
           store i32 %a, %p
           ret
         f:
           %d = icmp slt i32 %x, %y
           %g = and i1 %d, %d
           %h = select i1 %g, i32 %a, %x
           store i32 %h, %p
           ret",
    );
}

#[test]
fn equal_instructions_in_different_arms_stay() {
    let body = "entry:
           br %c, t, f
         t:
           %a = udiv i32 %x, %y
           jump m(%a)
         f:
           %b = udiv i32 %x, %y
           jump m(%b)
         m(%v: i32):
           %d = udiv i32 %x, %y
           %s = add i32 %v, %d
           store i32 %s, %p
           ret";
    check("number-values", "%c: i1, %x: i32, %y: i32, %p: ptr", body, body);
}

#[test]
fn what_differs_in_rounding_type_or_time_stays() {
    let body = "entry:
           %a = fadd f32 %x, %y
           %b = fadd rz f32 %x, %y
           %n = bitcast f32 %a to i32
           %d = zext i32 %n to i64
           %e = sext i32 %n to i64
           %f = sreg.clock64
           %g = sreg.clock64
           %h = load f32, %p
           %i = load f32, %p
           store f32 %b, %p
           store i64 %d, %p
           store i64 %e, %p
           store i64 %f, %p
           store i64 %g, %p
           store f32 %h, %p
           store f32 %i, %p
           ret";
    check("number-values", "%x: f32, %y: f32, %p: ptr", body, body);
}

#[test]
fn both_results_of_an_overflow_operation_merge() {
    check(
        "number-values",
        "%x: i32, %y: i32, %p: ptr",
        "entry:
           %a, %o = uadd_overflow i32 %x, %y
           %b, %q = uadd_overflow i32 %y, %x
           %c = select i1 %q, i32 %a, %b
           store i32 %c, %p
           ret",
        "entry:
           %a, %o = uadd_overflow i32 %x, %y
           %c = select i1 %o, i32 %a, %a
           store i32 %c, %p
           ret",
    );
}
