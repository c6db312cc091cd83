//! What the printer writes reads back, and prints as the same bytes.

use ptxc_ir::{print_module, read_module_with_spans};

/// Reads, prints, reads and prints again; gives the first print.
fn round_trip(text: &str) -> String {
    let module = read(text);
    let first = print_module(&module);
    let second = print_module(&read(&first));
    assert_eq!(first, second, "the second print differs");
    first
}

fn read(text: &str) -> ptxc_ir::Module {
    match read_module_with_spans(text) {
        Ok((module, _)) => module,
        Err(errors) => {
            let list: Vec<String> = errors.iter().map(|e| e.with_position(text)).collect();
            panic!("{}\n{text}", list.join("\n"));
        }
    }
}

/// The text is already as the printer writes it.
fn canonical(text: &str) {
    assert_eq!(round_trip(text), text);
}

#[test]
fn saxpy() {
    canonical(
        "kernel @saxpy(%n: i32, %a: f32, %x: ptr<global> noalias readonly, %y: ptr<global> noalias) reqntid(256, 1, 1) {
entry:
  %t = sreg.tid.x
  %b = sreg.ctaid.x
  %d = sreg.ntid.x
  %bd = mul i32 %b, %d
  %i = add i32 %bd, %t
  %in = icmp slt i32 %i, %n
  br %in, body, done
body:
  %i64 = sext i32 %i to i64
  %px = gep f32, %x, %i64
  %py = gep f32, %y, %i64
  %vx = load f32, %px
  %vy = load f32, %py, align 2
  %m = fmul contract f32 %a, %vx
  %s = fadd contract f32 %m, %vy
  store f32 %s, %py
  jump done
done:
  ret
}
",
    );
}

#[test]
fn module_items() {
    canonical(
        r#"file 1 "saxpy.cu"
type %Pair = { i32, f32 }
type %Packed = <{ i8, %Pair, [3 x <2 x f16>] }>
const @table: [4 x i32] = [1, 2, 3, -4], align 16
global @counter: i32 = 0
internal global @msg: [6 x i8] = "hello\00"
global @pp: [2 x ptr] = [generic(@counter + 4), null]
global @at: ptr<global> = @counter - 8
global @fp: ptr = @two
shared @tile: [32 x [33 x f32]], align 16
extern shared @dyn: [0 x i8], align 16
extern global @elsewhere: i32
weak global @pair: %Pair = {7, 1.5}
common global @v: <2 x f16> = <1.0, -inf>
texture @tex
surface @surf
sampler @"smp with\22quotes"

declare func @ext(i32, ptr, %Pair) -> f32 noreturn

internal func @f(%a: i32, (%b0, %b1): %Pair) -> f32 alwaysinline {
entry:
  ret %b1
}

func @two(%a: i32, %p: ptr nonnull align 8 byval(%Pair)) -> { i32, f64 } {
entry:
  ret %a, 0.1
}
"#,
    );
}

#[test]
fn control_flow() {
    canonical(
        r#"func @f(%n: i32, %fp: ptr) -> i32 {
entry:
  jump loop(0, %n)
loop(%i: i32, %x: i32) unroll(4) pipeline(stages=3):
  %next = add nsw i32 %i, 1 loc(1, 2, 3)
  %c = icmp slt i32 %next, %n
  br %c, loop(%next, 7), out, uniform, weights(9, 1)
out unroll(full):
  switch i32 %x, "a b"(%x) [0: out, -7: "a b"(%i)]
"a b"(%r: i32):
  %r2 = call @f(%r, null)
  call nonconvergent @g() loc(1, 1, 1)
  %r3 = call_indirect nonconvergent (i32, ptr byval({ i32 })) -> i32, %fp(%r2, %fp)
  call_indirect (), ptr<global> null()
  %r4 = asm pure "add.s32 $0, $1, $2;" (i32 %r3, i32 5) -> (i32)
  asm "bar.sync 0;" ()
  assume true
  breakpoint
  ret %r4
}

declare func @g()
"#,
    );
}

#[test]
fn forward_references_and_late_geps() {
    let text = "func @f(%p: ptr<shared>) -> ptr<shared> {
entry:
  jump b
d:
  ret %q2
b:
  jump c
c:
  %q2 = gep i8, %q1, 1
  %q1 = gep i8, %q0, 1
  %q0 = gep i8, %p, 1
  jump d
}
";
    canonical(text);
    let module = read(text);
    let func = module.funcs.values().next().unwrap();
    let types: Vec<String> = func.dfg.values().map(|v| func.dfg.ty(v).to_string()).collect();
    assert!(types.iter().filter(|t| *t == "ptr<shared>").count() >= 4, "{types:?}");
}

#[test]
fn target_operations() {
    canonical(
        r#"shared @s: [64 x i32]

func @f(%p: ptr<global>, %a: i32, %x: f32, %c: i1, %t: ptr<tensor>, %d: i64) {
entry:
  %lo = ptx.add.cc.u32 %a, 5
  %v, %in = ptx.shfl.sync.bfly.b32 %a, 1, 31, -1
  %only = ptx.shfl.sync.idx.b32 %a, 0, 31, -1
  %tid = ptx.mov.u32 sreg.tid.x
  %sum = ptx.@%c fma.rn.f32 %x, %x, 0f3F800000
  ptx.@!%c st.global.v2.u32 [%p + 8], {%a, %lo}
  %l0, %l1, %l2, %l3 = ptx.ld.shared.v4.b32 [@s + 16]
  ptx.st.global.u32 [%p - 4], %a
  %a0, %a1 = ptx.ldmatrix.sync.aligned.m8n8.x2.shared.b16 [@s]
  %m0, %m1, %m2, %m3 = ptx.mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%a0, %a1}, {%l0}, {%x, %x, %x, %x}
  %w0, %w1, %w2, %w3 = ptx.wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%m0, %m1, %m2, f32 0.0}, %d, %d, %c, 1, 1, 0, 0
  %e0 = ptx.tcgen05.ld.sync.aligned.16x64b.x1.b32 [%t]
  ptx.bar.warp.sync -1
  ret
}
"#,
    );
}

#[test]
fn target_operations_are_typed_by_the_table() {
    let message = |line: &str| {
        let text = format!("func @f(%a: i32, %w: i64, %p: ptr<global>) {{\nentry:\n  {line}\n  ret\n}}");
        ptxc_ir::read_module(&text).err().map(|e| e[0].with_position(&text)).unwrap_or_default()
    };
    assert_eq!(message("%r = ptx.nonsense.u32 %a"), "3:8: unknown target instruction `nonsense`");
    assert!(message("%r = ptx.add.zz.u32 %a, %a").starts_with("3:8: unknown modifier `.zz` of `add`"));
    assert!(message("%r = ptx.add.u32 %a, %w").contains("add"), "{}", message("%r = ptx.add.u32 %a, %w"));
    assert_eq!(message("%r, %q, %s = ptx.add.u32 %a, %a"), "3:16: `add.u32` has 1 result, 3 names left of `=`");
}
