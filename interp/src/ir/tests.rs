use super::*;
use crate::launch::{Argument, Buffer, Failure, Launch, Options, Outcome};

fn module(text: &str) -> Module {
    match ptxc_ir::read_module(text) {
        Ok(module) => module,
        Err(errors) => panic!("{:?}", errors.iter().map(|e| e.with_position(text)).collect::<Vec<_>>()),
    }
}

fn launch(text: &str, launch: &Launch, buffers: &mut [Buffer]) -> Result<Outcome, Failure> {
    run(&module(text), launch, buffers, &Options::default())
}

/// Runs `kernel @k(%out: ptr<global>)` on one block and gives its words.
fn words(body: &str, threads: u32) -> Vec<u32> {
    let mut buffers = [Buffer::output("out", threads as usize * 4)];
    match launch(body, &Launch::linear("k", 1, threads, vec![Argument::buffer(0)]), &mut buffers) {
        Ok(_) => buffers[0].to_words(),
        Err(failure) => panic!("{failure}"),
    }
}

/// The failure of `kernel @k(%out: ptr<global>)` on one block.
fn fails(text: &str, threads: u32) -> String {
    let mut buffers = [Buffer::output("out", threads as usize * 4)];
    launch(text, &Launch::linear("k", 1, threads, vec![Argument::buffer(0)]), &mut buffers).unwrap_err().to_string()
}

/// A kernel that stores `%r`, an i32, in the word of its thread.
fn kernel(globals: &str, body: &str) -> String {
    format!(
        "{globals}\nkernel @k(%out: ptr<global>) {{\nentry:\n  %t = sreg.tid.x\n{body}\n  %q = gep i32, %out, %t\n  store i32 %r, %q, align 4\n  ret\n}}\n"
    )
}

fn floats(n: u32, f: impl Fn(u32) -> f32) -> Vec<u8> {
    (0..n).flat_map(|i| f(i).to_le_bytes()).collect()
}

#[test]
fn saxpy() {
    let n = 1000;
    let mut buffers =
        [Buffer::new("x", floats(n, |i| i as f32 * 0.37)), Buffer::new("y", floats(n, |i| 5.0 - i as f32))];
    let arguments = vec![Argument::i32(n as i32), Argument::f32(1.7), Argument::buffer(0), Argument::buffer(1)];
    let text = include_str!("../../../examples/saxpy.ir");
    launch(text, &Launch::linear("saxpy", 4, 256, arguments), &mut buffers).unwrap();
    let want: Vec<u32> = (0..n).map(|i| (1.7f32 * (i as f32 * 0.37) + (5.0 - i as f32)).to_bits()).collect();
    assert_eq!(buffers[1].to_words(), want);
}

#[test]
fn reduce() {
    let n = 3000;
    let mut buffers = [Buffer::new("x", floats(n, |i| (i % 17) as f32)), Buffer::words("out", [0])];
    let arguments = vec![Argument::i32(n as i32), Argument::buffer(0), Argument::buffer(1)];
    let text = include_str!("../../../examples/reduce.ir");
    launch(text, &Launch::linear("reduce_sum", 3, 256, arguments), &mut buffers).unwrap();
    // Small integers: exact in any order.
    let want: u32 = (0..n).map(|i| i % 17).sum();
    assert_eq!(f32::from_bits(buffers[1].to_words()[0]), want as f32);
}

#[test]
fn scan() {
    let n = 5000u32;
    let value = |i: u32| i.wrapping_mul(2_654_435_761) >> 7;
    let mut buffers = [
        Buffer::words("x", (0..n).map(value)),
        Buffer::output("y", n as usize * 4),
        Buffer::words("status", vec![0; 2 * 5]),
        Buffer::words("ticket", [0]),
    ];
    let mut arguments = vec![Argument::i32(n as i32)];
    arguments.extend((0..4).map(Argument::buffer));
    let text = include_str!("../../../examples/scan.ir");
    launch(text, &Launch::linear("inclusive_scan", 5, 256, arguments), &mut buffers).unwrap();
    let mut sum = 0u32;
    let want: Vec<u32> = (0..n)
        .map(|i| {
            sum = sum.wrapping_add(value(i));
            sum
        })
        .collect();
    assert_eq!(buffers[1].to_words(), want);
}

#[test]
fn histogram() {
    let bytes: Vec<u8> = (0..4099u32).map(|i| ((i * i) >> 3) as u8).collect();
    let mut want = vec![0u32; 256];
    bytes.iter().for_each(|b| want[usize::from(*b)] += 1);
    let arguments = vec![Argument::i32(bytes.len() as i32), Argument::buffer(0), Argument::buffer(1)];
    let mut buffers = [Buffer::new("data", bytes), Buffer::words("bins", vec![0; 256])];
    let text = include_str!("../../../examples/histogram.ir");
    launch(text, &Launch::linear("histogram", 2, 256, arguments), &mut buffers).unwrap();
    assert_eq!(buffers[1].to_words(), want);
}

#[test]
fn divergence_meets_again() {
    // Lanes leave a loop at different times and vote after it together.
    let text = "kernel @k(%out: ptr<global>) {
entry:
  %t = sreg.tid.x
  jump head(0, 0)
head(%i: i32, %s: i32):
  %go = icmp ult i32 %i, %t
  br %go, body, after
body:
  %s1 = add i32 %s, %i
  %i1 = add i32 %i, 1
  jump head(%i1, %s1)
after:
  %odd1 = and i32 %s, 1
  %odd = icmp ne i32 %odd1, 0
  %b = vote.ballot %odd, -1
  %m = activemask
  %same = icmp eq i32 %m, -1
  %r = select i1 %same, i32 %b, 0
  %q = gep i32, %out, %t
  store i32 %r, %q, align 4
  ret
}";
    let want = (0..32u32).fold(0u32, |b, t| b | ((t * t.saturating_sub(1) / 2) & 1) << t);
    assert_eq!(words(text, 32), vec![want; 32]);
}

#[test]
fn threads_of_a_warp_wait_for_each_other() {
    // A lock in shared memory that one lane holds while the others of its warp spin.
    let text = "shared @lock: i32
shared @sum: i32
kernel @k(%out: ptr<global>) {
entry:
  %t = sreg.tid.x
  %first = icmp eq i32 %t, 0
  br %first, clear, wait
clear:
  store i32 0, @lock, align 4
  store i32 0, @sum, align 4
  jump wait
wait:
  barrier.sync aligned 0
  jump try
try:
  %old, %ok = cmpxchg i32 @lock, 0, 1, acquire, relaxed, scope(cta)
  br %ok, inside, try
inside:
  %s = load i32, @sum, align 4
  %s1 = add i32 %s, 1
  store i32 %s1, @sum, align 4
  store i32 0, @lock, align 4, release, scope(cta)
  jump done
done:
  barrier.sync 0
  %r = load i32, @sum, align 4
  %q = gep i32, %out, %t
  store i32 %r, %q, align 4
  ret
}";
    assert_eq!(words(text, 64), vec![64; 64]);
}

#[test]
fn calls_recursion_and_stacks() {
    let functions = "func @fib(%n: i32) -> i32 {
entry:
  %small = icmp ult i32 %n, 2
  br %small, base, more
base:
  ret %n
more:
  %a = sub i32 %n, 1
  %b = sub i32 %n, 2
  %x = call @fib(%a)
  %y = call @fib(%b)
  %s = add i32 %x, %y
  ret %s
}
func @twice(%n: i32) -> i32 {
entry:
  %p = alloca [4 x i32]
  %q = gep [4 x i32], %p, 0, 3
  store i32 %n, %q, align 4
  %g = addrspacecast ptr<local> %q to ptr
  %v = load i32, %g, align 4
  %d = shl i32 %v, 1
  ret %d
}";
    let body = "  %n = and i32 %t, 7
  %odd1 = and i32 %t, 1
  %odd = icmp ne i32 %odd1, 0
  %f = select i1 %odd, ptr @fib, @twice
  %r = call_indirect (i32) -> i32, %f(%n)";
    let fib = [0, 1, 1, 2, 3, 5, 8, 13];
    let want: Vec<u32> = (0..40).map(|t| if t % 2 == 1 { fib[t % 8] } else { 2 * (t as u32 % 8) }).collect();
    assert_eq!(words(&kernel(functions, body), 40), want);
}

#[test]
fn warp_operations() {
    let result = |body: &str| words(&kernel("", body), 32);
    let each = |f: &dyn Fn(u32) -> u32| (0..32).map(f).collect::<Vec<u32>>();
    assert_eq!(result("  %r = shfl.idx i32 %t, 5, 31, -1"), each(&|_| 5));
    assert_eq!(result("  %r = shfl.bfly i32 %t, 3, 31, -1"), each(&|t| t ^ 3));
    assert_eq!(result("  %r = shfl.up i32 %t, 2, 0, -1"), each(&|t| if t < 2 { t } else { t - 2 }));
    // Segments of eight lanes.
    let down = "  %v, %p = shfl.down i32 %t, 2, 6175, -1\n  %r = select i1 %p, i32 %v, 99";
    assert_eq!(result(down), each(&|t| if t % 8 < 6 { t + 2 } else { 99 }));
    assert_eq!(result("  %r = redux.add i32 %t, -1"), each(&|_| 31 * 16));
    assert_eq!(result("  %h = lshr i32 %t, 3\n  %r = match.any i32 %h, -1"), each(&|t| 0xff << (t & !7)));
    let elect = "  %l, %p = elect -1\n  %r = select i1 %p, i32 7, %l";
    assert_eq!(result(elect), each(&|t| if t == 0 { 7 } else { 0 }));
    let uni = "  %c = icmp ult i32 %t, 40\n  %u = vote.uni %c, -1\n  %r = zext i1 %u to i32";
    assert_eq!(result(uni), each(&|_| 1));
    let half = "  %low = icmp ult i32 %t, 16
  br %low, a, b
a:
  %x = redux.umax i32 %t, 65535
  jump c(%x)
b:
  %y = redux.umin i32 %t, 0xffff0000
  jump c(%y)
c(%r: i32):";
    assert_eq!(result(half), each(&|t| if t < 16 { 15 } else { 16 }));
}

#[test]
fn barriers_reduce_and_count() {
    let body = "  %c = icmp ult i32 %t, 10
  %n = barrier.red.popc aligned 0, %c
  %all = barrier.red.and aligned 1, %c
  %any = barrier.red.or aligned 2, %c
  %a = zext i1 %all to i32
  %b = zext i1 %any to i32
  %a1 = shl i32 %a, 8
  %b1 = shl i32 %b, 9
  %x = or i32 %n, %a1
  %r = or i32 %x, %b1";
    assert_eq!(words(&kernel("", body), 96), vec![10 + 512; 96]);
    // The first warp hands its values to the second through a barrier that it does not wait at.
    let text = "shared @box: [32 x i32]
kernel @k(%out: ptr<global>) {
entry:
  %t = sreg.tid.x
  %lane = and i32 %t, 31
  %p = gep [32 x i32], @box, 0, %lane
  %maker = icmp ult i32 %t, 32
  br %maker, make, use
make:
  store i32 %t, %p, align 4
  barrier.arrive aligned 1, 64
  jump done(1)
use:
  barrier.sync aligned 1, 64
  %v = load i32, %p, align 4
  jump done(%v)
done(%r: i32):
  %q = gep i32, %out, %t
  store i32 %r, %q, align 4
  ret
}";
    let want: Vec<u32> = (0..64).map(|t| if t < 32 { 1 } else { t - 32 }).collect();
    assert_eq!(words(text, 64), want);
}

#[test]
fn wide_integers_vectors_and_memory() {
    let body = "  %w = zext i32 %t to i128
  %big = shl i128 %w, 100
  %odd = or i128 %big, 5
  %p = alloca i128
  store i128 %odd, %p, align 16
  %back = load i128, %p, align 16
  %high = lshr i128 %back, 98
  %v = vector <4 x i16> 1, 2, 3, 4
  %x = trunc i32 %t to i16
  %v1 = insert <4 x i16> %v, %x, 2
  %v2 = shuffle <4 x i16> %v1, %v, [2, 7, 0, 2]
  %bits = bitcast <4 x i16> %v2 to i64
  %s = reduce.add <4 x i16> %v2
  %b = trunc i128 %high to i32
  %c = zext i16 %s to i32
  %top = lshr i64 %bits, 48
  %d = trunc i64 %top to i32
  %e = add i32 %b, %c
  %r = add i32 %e, %d";
    let want: Vec<u32> = (0..8).map(|t| 4 * t + (2 * t + 4 + 1) + t).collect();
    assert_eq!(words(&kernel("", body), 8), want);
}

#[test]
fn globals_and_constants() {
    let globals = "const @table: [4 x i32] = [10, 20, 30, 40]
global @pair: {i8, i32} = {1, 77}
global @at: ptr = generic(@pair + 4)
extern shared @dyn: [0 x i32]";
    let body = "  %i = and i32 %t, 3
  %p = gep [4 x i32], @table, 0, %i
  %v = load i32, %p, align 4
  %g = addrspacecast ptr<const> %p to ptr
  %w = load i32, %g, align 4
  %h = load ptr, @at
  %x = load i32, %h, align 4
  %isg = isspace global %h
  %isc = isspace const %g
  %y = zext i1 %isg to i32
  %z = zext i1 %isc to i32
  %a = add i32 %v, %w
  %b = add i32 %a, %x
  %c = add i32 %b, %y
  %r = add i32 %c, %z";
    let want: Vec<u32> = (0..8).map(|t| 20 * (t % 4 + 1) + 77 + 2).collect();
    assert_eq!(words(&kernel(globals, body), 8), want);
}

#[test]
fn errors_name_their_place() {
    let fail = |body: &str| fails(&kernel("shared @s: [32 x i32]", body), 32);
    let expect = |body: &str, parts: &[&str]| {
        let message = fail(body);
        assert!(parts.iter().all(|p| message.contains(p)), "{message}");
    };
    expect(
        "  %z = and i32 %t, 0\n  %r = udiv i32 5, %z",
        &["division by zero", "@k, `%r = udiv` in block entry", "thread 0"],
    );
    expect("  %p = gep i32, %out, 32\n  %r = load i32, %p, align 4", &["out of bounds", "byte 128 of `out`"]);
    expect("  %p = gep i8, %out, 1\n  %r = load i32, %p, align 4", &["no multiple of 4"]);
    expect(
        "  %x = shl i32 1, 32\n  %c = icmp eq i32 %x, 0\n  br %c, a, a\na:\n  %r = add i32 1, 1",
        &["branch is poison"],
    );
    expect(
        "  %x = sub nuw i32 1, %t\n  %p = gep i32, %out, %x\n  %r = load i32, %p, align 4",
        &["address is poison", "thread 2"],
    );
    expect("  %r = add i32 1, 1\n  trap", &["trap"]);
    expect("  %c = icmp ult i32 %t, 8\n  assume %c\n  %r = add i32 1, 1", &["assumed", "thread 8"]);
    let race = "  %p = gep [32 x i32], @s, 0, %t
  store i32 %t, %p, align 4
  %u = xor i32 %t, 1
  %o = gep [32 x i32], @s, 0, %u
  %r = load i32, %o, align 4";
    expect(race, &["race with a write of thread 1 of block 0, which was at @k, `store`", "`%r = load`"]);
    let apart = "  %c = icmp ult i32 %t, 8
  br %c, a, b
a:
  barrier.sync aligned 0
  jump b
b:
  barrier.sync aligned 1
  %r = add i32 1, 1";
    expect(apart, &["wait for others of it that do not come"]);
    let missing = "  %c = icmp ult i32 %t, 8
  br %c, a, b
a:
  jump b
b:
  %n = sreg.ntid.x
  barrier.sync 1, 64
  %r = add i32 1, 1";
    expect(missing, &["barrier 1 is never complete", "barrier.sync"]);
    expect(
        "  ptx.tcgen05.wait::ld.sync.aligned\n  %r = add i32 1, 1",
        &["`tcgen05.wait::ld.sync.aligned` is not executed", "@k, `ptx.tcgen05.wait::ld.sync.aligned` in block entry"],
    );
    let endless = module("kernel @k(%out: ptr<global>) {\nentry:\n  jump l\nl:\n  jump l\n}");
    let options = Options { step_limit: 1000, ..Options::default() };
    let mut buffers = [Buffer::output("out", 4)];
    let failure = run(&endless, &Launch::linear("k", 1, 1, vec![Argument::buffer(0)]), &mut buffers, &options);
    assert!(failure.unwrap_err().message.contains("more than 1000 steps"));
}

#[test]
fn poison_goes_through_memory_and_freeze_ends_it() {
    let body = "  %x = shl i32 1, %t
  %p = gep i32, %out, %t
  store i32 %x, %p, align 4
  %y = load i32, %p, align 4
  %f = freeze i32 %y
  %r = or i32 %f, 1";
    let want: Vec<u32> = (0..40).map(|t| 1u32.checked_shl(t).unwrap_or(0) | 1).collect();
    assert_eq!(words(&kernel("", body), 40), want);
}

#[test]
fn uninitialized_reads_are_warnings() {
    let text = kernel("shared @s: i32", "  %r = load i32, @s, align 4");
    let mut buffers = [Buffer::output("out", 8)];
    let outcome = launch(&text, &Launch::linear("k", 1, 2, vec![Argument::buffer(0)]), &mut buffers).unwrap();
    assert_eq!(outcome.warnings, ["memory is read that was never written, at @k, `%r = load` in block entry"]);
    assert_eq!(buffers[0].to_words(), [0xa5a5_a5a5; 2]);
}

#[test]
fn a_poison_carry_is_poison_where_it_is_taken() {
    let body = "  %x = shl i32 1, %t
  %l = ptx.add.cc.u32 %x, 1
  %h = ptx.addc.u32 %t, 0
  %in = icmp ult i32 %t, 32
  %r = select i1 %in, i32 %h, 7";
    let want: Vec<u32> = (0..40).map(|t| if t < 32 { t } else { 7 }).collect();
    assert_eq!(words(&kernel("", body), 40), want);
}

#[test]
fn atomic_differences_flush_as_sums_do() {
    let body = "  %p = gep f32, %out, %t
  store i32 6, %p
  %a = atomicrmw fsub f32 %p, 0.0, relaxed, scope(gpu)
  %b = load i32, %p
  store i32 6, %p
  %c = atomicrmw fadd f32 %p, -0.0, relaxed, scope(gpu)
  %d = load i32, %p
  %e = sub i32 %b, %d
  %r = or i32 %e, %b";
    assert_eq!(words(&kernel("", body), 2), [0, 0]);
}
