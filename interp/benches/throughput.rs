//! Operations a second of the interpreter on one core, by kind of kernel: a loop of integer operations, one of float
//! operations, and one that loads and stores.

use std::time::Instant;

use ptxc_interp::ir::run;
use ptxc_interp::launch::{Argument, Buffer, Launch, Options};

const INTEGERS: &str = "  %x1 = mul i32 %x, 1664525
  %x2 = add i32 %x1, 1013904223
  %x3 = lshr i32 %x2, 7
  %x4 = xor i32 %x2, %x3
  %x5 = shl i32 %x4, 3
  %x6 = and i32 %x5, 65535
  %next = sub i32 %x4, %x6";

const FLOATS: &str = "  %f = bitcast i32 %x to f32
  %f1 = fmul f32 %f, 0.5
  %f2 = fadd f32 %f1, 1.25
  %f3 = fma f32 %f2, 0.75, %f1
  %f4 = fsub f32 %f3, %f2
  %next = bitcast f32 %f4 to i32";

const MEMORY: &str = "  %x1 = load i32, %q, align 4
  %x2 = add i32 %x1, %i
  store i32 %x2, %q, align 4
  %next = add i32 %x2, %x";

fn kernel(body: &str) -> String {
    format!(
        "kernel @k(%out: ptr<global>) {{
entry:
  %t = sreg.tid.x
  %q = gep i32, %out, %t
  jump head(0, %t)
head(%i: i32, %x: i32):
{body}
  %i1 = add i32 %i, 1
  %more = icmp ult i32 %i1, 20000
  br %more, head(%i1, %next), end
end:
  store i32 %x, %q, align 4
  ret
}}"
    )
}

fn main() {
    for (name, body) in [("integers", INTEGERS), ("floats", FLOATS), ("memory", MEMORY)] {
        let Ok(module) = ptxc_ir::read_module(&kernel(body)) else {
            println!("{name}: does not read");
            continue;
        };
        let mut buffers = [Buffer::words("out", vec![0; 64])];
        let launch = Launch::linear("k", 1, 64, vec![Argument::buffer(0)]);
        let start = Instant::now();
        match run(&module, &launch, &mut buffers, &Options::default()) {
            Ok(outcome) => {
                let seconds = start.elapsed().as_secs_f64();
                println!("{name}: {:.1} million operations a second", outcome.lane_steps as f64 / seconds / 1e6);
            }
            Err(failure) => println!("{name}: {failure}"),
        }
    }
}
