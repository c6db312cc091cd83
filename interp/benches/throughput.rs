//! Operations a second of the interpreter and of the emulator on one core, by kind of kernel: a loop of integer
//! operations, one of float operations, and some that load and store: one word each, of a vector, in shared memory, and
//! without race detection.

use std::time::Instant;

use ptxc_interp::launch::{Argument, Buffer, Failure, Launch, Options, Outcome};
use ptxc_interp::{ir, ptx};

/// Runs of each kernel.
const RUNS: usize = 7;

/// A loop's body in the IR, from `%x` and the counter `%i` to `%next`, and the same in PTX, from `%r1` and `%r2` to `%r1`.
struct Row {
    name: &'static str,
    ir: &'static str,
    ptx: &'static str,
    races: bool,
}

const ROWS: [Row; 6] = [
    Row {
        name: "integers",
        ir: "  %x1 = mul i32 %x, 1664525
  %x2 = add i32 %x1, 1013904223
  %x3 = lshr i32 %x2, 7
  %x4 = xor i32 %x2, %x3
  %x5 = shl i32 %x4, 3
  %x6 = and i32 %x5, 65535
  %next = sub i32 %x4, %x6",
        ptx: "mul.lo.s32 %r3, %r1, 1664525;
add.s32 %r3, %r3, 1013904223;
shr.u32 %r4, %r3, 7;
xor.b32 %r4, %r3, %r4;
shl.b32 %r5, %r4, 3;
and.b32 %r5, %r5, 65535;
sub.s32 %r1, %r4, %r5;",
        races: true,
    },
    Row {
        name: "floats",
        ir: "  %f = bitcast i32 %x to f32
  %f1 = fmul f32 %f, 0.5
  %f2 = fadd f32 %f1, 1.25
  %f3 = fma f32 %f2, 0.75, %f1
  %f4 = fsub f32 %f3, %f2
  %next = bitcast f32 %f4 to i32",
        ptx: "mul.f32 %r3, %r1, 0.5;
add.f32 %r4, %r3, 1.25;
fma.rn.f32 %r5, %r4, 0.75, %r3;
sub.f32 %r1, %r5, %r4;",
        races: true,
    },
    Row { name: "memory", ir: WORD, ptx: WORD_PTX, races: true },
    Row { name: "memory, no races", ir: WORD, ptx: WORD_PTX, races: false },
    Row {
        name: "vectors",
        ir: "  %v = load <4 x i32>, %w, align 16
  %v1 = add <4 x i32> %v, %v
  store <4 x i32> %v1, %w, align 16
  %next = add i32 %i, %x",
        ptx: "ld.global.v4.b32 {%r3, %r4, %r5, %r6}, [%rd3];
add.s32 %r3, %r3, %r3;
add.s32 %r4, %r4, %r4;
add.s32 %r5, %r5, %r5;
add.s32 %r6, %r6, %r6;
st.global.v4.b32 [%rd3], {%r3, %r4, %r5, %r6};
add.s32 %r1, %r1, %r2;",
        races: true,
    },
    Row {
        name: "shared memory",
        ir: "  %x1 = load i32, %s, align 4
  %x2 = add i32 %x1, %i
  store i32 %x2, %s, align 4
  %next = add i32 %x2, %x",
        ptx: "ld.shared.b32 %r3, [%rd4];
add.s32 %r3, %r3, %r2;
st.shared.b32 [%rd4], %r3;
add.s32 %r1, %r3, %r1;",
        races: true,
    },
];

const WORD: &str = "  %x1 = load i32, %q, align 4
  %x2 = add i32 %x1, %i
  store i32 %x2, %q, align 4
  %next = add i32 %x2, %x";

const WORD_PTX: &str = "ld.global.b32 %r3, [%rd2];
add.s32 %r3, %r3, %r2;
st.global.b32 [%rd2], %r3;
add.s32 %r1, %r3, %r1;";

fn ir_kernel(body: &str) -> String {
    format!(
        "shared @buffer: [64 x i32], align 16
kernel @k(%out: ptr<global>, %vectors: ptr<global>) {{
entry:
  %t = sreg.tid.x
  %q = gep i32, %out, %t
  %w = gep <4 x i32>, %vectors, %t
  %s = gep i32, @buffer, %t
  store i32 0, %s, align 4
  jump head(0, %t)
head(%i: i32, %x: i32):
{body}
  %i1 = add i32 %i, 1
  %more = icmp ult i32 %i1, 10000
  br %more, head(%i1, %next), end
end:
  store i32 %x, %q, align 4
  ret
}}"
    )
}

fn ptx_kernel(body: &str) -> String {
    format!(
        ".version 8.0
.target sm_90
.address_size 64
.shared .align 16 .b8 buffer[256];
.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1)
{{
.reg .pred %p<2>;
.reg .b32 %r<8>;
.reg .b64 %rd<6>;
ld.param.u64 %rd1, [k_param_0];
ld.param.u64 %rd5, [k_param_1];
mov.u32 %r1, %tid.x;
mad.wide.u32 %rd2, %r1, 4, %rd1;
mad.wide.u32 %rd3, %r1, 16, %rd5;
mov.u64 %rd4, buffer;
mad.wide.u32 %rd4, %r1, 4, %rd4;
st.shared.b32 [%rd4], 0;
mov.b32 %r2, 0;
HEAD:
{body}
add.s32 %r2, %r2, 1;
setp.lt.u32 %p1, %r2, 10000;
@%p1 bra HEAD;
st.global.b32 [%rd2], %r1;
ret;
}}"
    )
}

fn measure(name: &str, races: bool, run: impl Fn(&Launch, &mut [Buffer], &Options) -> Result<Outcome, Failure>) {
    let launch = Launch::linear("k", 1, 64, vec![Argument::buffer(0), Argument::buffer(1)]);
    let mut best = 0f64;
    // The machine does other things too: the best of several counts.
    for _ in 0..RUNS {
        let mut buffers = [Buffer::words("out", vec![0; 64]), Buffer::words("vectors", vec![0; 256])];
        let start = Instant::now();
        match run(&launch, &mut buffers, &Options { races, ..Options::default() }) {
            Ok(outcome) => best = best.max(outcome.lane_steps as f64 / start.elapsed().as_secs_f64()),
            Err(failure) => return println!("{name}: {failure}"),
        }
    }
    println!("{name}: {:.1} million operations a second", best / 1e6);
}

fn main() {
    for row in &ROWS {
        match ptxc_ir::read_module(&ir_kernel(row.ir)) {
            Ok(module) => measure(&format!("IR, {}", row.name), row.races, |launch, buffers, options| {
                ir::run(&module, launch, buffers, options)
            }),
            Err(errors) => println!("{}: {:?}", row.name, errors.first()),
        }
        match ptx::Program::read(&ptx_kernel(row.ptx)) {
            Ok(program) => measure(&format!("PTX, {}", row.name), row.races, |launch, buffers, options| {
                ptx::run(&program, launch, buffers, options)
            }),
            Err(error) => println!("{}: {error}", row.name),
        }
    }
}
