//! Kernels of any size for benches and for the test of linear time.

use std::fmt::Write as _;

/// A kernel of about `instructions` instructions: loops one after another, each with a diamond in its body, integer
/// and float arithmetic, loads and stores, and values that live across all of it.
pub fn kernel(instructions: usize) -> String {
    let mut text = String::from(
        "kernel @generated(%x: ptr<global>, %n: i32) {\nentry:\n  %t = sreg.tid.x\n  %v0 = add i32 %t, 1\n  jump head0(%v0, 0)\n",
    );
    // One round is 29 instructions.
    let rounds = (instructions / 29).max(1);
    for round in 0..rounds {
        let next = if round + 1 == rounds { "done(%a_out".to_owned() } else { format!("head{}(%a_out", round + 1) };
        let next = next.replace("%a_out", &format!("%a{round}"));
        let exit = if round + 1 == rounds { format!("{next})") } else { format!("{next}, 0)") };
        let _ = write!(
            text,
            "head{round}(%a{round}: i32, %i{round}: i32):
  %c{round} = icmp slt i32 %i{round}, %n
  br %c{round}, body{round}, {exit}
body{round}:
  %w{round} = zext i32 %i{round} to i64
  %p{round} = gep f32, %x, %w{round}
  %f{round} = load f32, %p{round}, align 4
  %g{round} = fmul contract f32 %f{round}, 1.5
  %h{round} = fadd contract f32 %g{round}, %f{round}
  %k{round} = fma f32 %h{round}, %g{round}, %f{round}
  store f32 %k{round}, %p{round}, align 4
  %b{round} = mul i32 %a{round}, {odd}
  %d{round} = xor i32 %b{round}, %i{round}
  %e{round} = lshr i32 %d{round}, 3
  %l{round} = and i32 %e{round}, 255
  %m{round} = add i32 %l{round}, %t
  %o{round} = and i32 %m{round}, 1
  %q{round} = icmp eq i32 %o{round}, 0
  br %q{round}, even{round}, odd{round}
even{round}:
  %r{round} = shl i32 %m{round}, 1
  %s{round} = sub i32 %r{round}, %v0
  jump latch{round}(%s{round})
odd{round}:
  %u{round} = add i32 %m{round}, %a{round}
  %y{round} = smax i32 %u{round}, %n
  %z{round} = or i32 %y{round}, 1
  jump latch{round}(%z{round})
latch{round}(%j{round}: i32):
  %ja{round} = add i32 %j{round}, %b{round}
  %in{round} = add i32 %i{round}, 1
  %jb{round} = xor i32 %ja{round}, %e{round}
  jump head{round}(%jb{round}, %in{round})
",
            odd = 2 * round + 3,
        );
    }
    text.push_str("done(%result: i32):\n  store i32 %result, %x, align 4\n  ret\n}\n");
    text
}
