#!/usr/bin/env python3
"""Compares the cycles that `--emit sched` predicts for straight-line code with those that a GPU takes.

    predicted_cycles.py generate DIR [--ptxc target/debug/ptxc] [--sm sm_90a]   kernels as IR and PTX, predictions
    predicted_cycles.py run DIR                                                 on the GPU: measured.json in DIR
    predicted_cycles.py compare DIR                                             the table

One warp goes three times through the block and the last time counts, so that instructions and data are in the caches. The block
begins after one read of the clock and ends before another, held there by branches; what an empty block takes is subtracted.
"""

import argparse
import ctypes
import json
import pathlib
import re
import struct
import subprocess
import sys

MODULE = """shared @tile: [4096 x i32], align 1024
kernel @k(%out: ptr<global>, %data: ptr<global>, %a: i32, %b: i32, %zero: i32) reqntid(32, 1, 1) {{
entry:
  %lane = sreg.tid.x
  %lane4 = ptx.mul.lo.u32 %lane, 4
  %tile = ptrtoint ptr<shared> @tile to i32
  %sh = ptx.add.u32 %tile, %zero
  %shl = ptx.add.u32 %sh, %lane4
  %ldata = ptrtoint ptr<global> %data to i64
  %lane64 = zext i32 %lane4 to i64
  %own = add i64 %ldata, %lane64
  %fa = ptx.cvt.rn.f32.s32 %a
  %fb = ptx.cvt.rn.f32.s32 %b
  %da = ptx.cvt.rn.f64.s32 %a
  %db = ptx.cvt.rn.f64.s32 %b
  %la = ptx.cvt.s64.s32 %a
  ptx.st.shared.v4.b32 [%sh], {{%sh, %sh, %sh, %sh}}
  ptx.st.shared.v4.b32 [%sh + 16], {{%sh, %sh, %sh, %sh}}
  ptx.st.shared.v4.b32 [%sh + 32], {{%sh, %sh, %sh, %sh}}
  ptx.st.shared.v4.b32 [%sh + 48], {{%sh, %sh, %sh, %sh}}
  ptx.st.shared.v4.b32 [%sh + 64], {{%sh, %sh, %sh, %sh}}
  ptx.st.shared.v4.b32 [%sh + 80], {{%sh, %sh, %sh, %sh}}
  ptx.st.shared.v4.b32 [%sh + 96], {{%sh, %sh, %sh, %sh}}
  ptx.st.shared.v4.b32 [%sh + 112], {{%sh, %sh, %sh, %sh}}
  ptx.st.global.v2.b64 [%ldata], {{%ldata, %ldata}}
  ptx.fence.acq_rel.sys
  jump again(3, %lane)
again(%i: i32, %seed: i32) unroll(0):
  %t0 = sreg.clock64
  %never = icmp eq i64 %t0, 0
  br %never, out(%seed), body
body:
{body}
  %stop = icmp eq i32 %r, 123456789
  br %stop, out(%r), after
after:
  %t1 = sreg.clock64
  %cycles = sub i64 %t1, %t0
  store i64 %cycles, %out
  %i1 = sub i32 %i, 1
  %more = icmp ne i32 %i1, 0
  br %more, again(%i1, %r), out(%r)
out(%last: i32):
  %o = gep i64, %out, 4
  store i32 %last, %o
  ret
}}
"""


class Body:
    """Writes the lines of a block. Every value comes from the block's seed, so that nothing is computed outside."""

    def __init__(self):
        self.lines, self.next = [], 0
        self.x = self.op("and i32 %seed, %zero")

    def op(self, text, results=1):
        names = [f"%v{self.next + i}" for i in range(results)]
        self.next += results
        self.lines.append(f"  {', '.join(names)} = {text}")
        return names[0] if results == 1 else names

    def chain(self, value, *steps, times=1):
        for _ in range(times):
            for step in steps:
                value = self.op(step.format(value))
        return value

    def int(self, index=0):
        return self.op(f"ptx.add.s32 {self.x}, {'%lane' if index == 0 else 100 + index}")

    def float(self, index=0):
        return self.op(f"bitcast i32 {self.int(index)} to f32")

    def double(self, index=0):
        return self.op(f"ptx.cvt.rn.f64.s32 {self.int(index)}")

    def sum(self, values, step="ptx.add.s32 {}, {}"):
        """A balanced tree."""
        while len(values) > 1:
            pairs = [self.op(step.format(values[i], values[i + 1])) for i in range(0, len(values) - 1, 2)]
            values = pairs + values[len(values) - len(values) % 2 :]
        return values[0]

    def text(self, value, ty="i32"):
        convert = {"i32": "add i32 {}, 0", "f32": "bitcast f32 {} to i32", "f64": "ptx.cvt.rzi.s32.f64 {}"}
        if ty == "i64":
            low, high = self.op(f"ptx.mov.b64 {value}", 2)
            value, ty = self.op(f"ptx.xor.b32 {low}, {high}"), "i32"
        self.lines.append("  %r = " + convert[ty].format(value))
        return MODULE.format(body="\n".join(self.lines))


def empty(b):
    return b.text(b.x)


def integer_chain(b):
    return b.text(b.chain(b.int(), "ptx.add.s32 {}, %a", "ptx.xor.b32 {}, %b", "ptx.prmt.b32 {}, %a, 12816", "ptx.min.s32 {}, %b", times=8))


def integer_parallel(b):
    chains = [b.chain(b.int(i), "ptx.add.s32 {}, %a", "ptx.xor.b32 {}, %b", times=5) for i in range(6)]
    return b.text(b.sum(chains))


def multiply_chain(b):
    return b.text(b.chain(b.int(), "ptx.mad.lo.s32 {}, %a, %b", times=20))


def multiply_wide(b):
    chains = [b.chain(b.int(i), "ptx.mul.hi.u32 {}, %a", "ptx.mad.lo.s32 {}, %b, %a", times=3) for i in range(4)]
    return b.text(b.sum(chains))


def float_chain(b):
    return b.text(b.chain(b.float(), "ptx.fma.rn.f32 {}, %fa, %fb", times=30), "f32")


def float_parallel(b):
    chains = [b.chain(b.float(i), "ptx.fma.rn.f32 {}, %fa, %fb", times=8) for i in range(8)]
    return b.text(b.sum(chains, "ptx.add.rn.f32 {}, {}"), "f32")


def double_chain(b):
    return b.text(b.chain(b.double(), "ptx.fma.rn.f64 {}, %da, %db", times=12), "f64")


def double_parallel(b):
    chains = [b.chain(b.double(i), "ptx.fma.rn.f64 {}, %da, %db", times=5) for i in range(6)]
    return b.text(b.sum(chains, "ptx.add.rn.f64 {}, {}"), "f64")


def special_chain(b):
    return b.text(b.chain(b.float(), "ptx.ex2.approx.ftz.f32 {}", "ptx.tanh.approx.f32 {}", times=4), "f32")


def special_parallel(b):
    values = [b.op(f"ptx.rcp.approx.ftz.f32 {b.float(i)}") for i in range(12)]
    return b.text(b.sum(values, "ptx.add.rn.f32 {}, {}"), "f32")


def division(b):
    quotient = b.op(f"ptx.div.u32 %a, {b.int()}")
    return b.text(b.op(f"ptx.rem.u32 %b, {quotient}"))


def shared_chase(b):
    return b.text(b.chain(b.op(f"ptx.add.u32 {b.x}, %sh"), "ptx.ld.shared.b32 [{}]", times=8))


def shared_parallel(b):
    base = b.op(f"ptx.add.u32 {b.x}, %shl")
    return b.text(b.sum([b.op(f"ptx.ld.shared.b32 [{base} + {128 * i}]") for i in range(16)]))


def shared_vectors(b):
    base = b.op(f"ptx.add.u32 {b.x}, %sh")
    values = [value for i in range(6) for value in b.op(f"ptx.ld.shared.v4.b32 [{base} + {16 * i}]", 4)]
    return b.text(b.sum(values))


def global_second_level(b):
    offset = b.op(f"ptx.cvt.u64.u32 {b.x}")
    base = b.op(f"ptx.add.s64 {offset}, %own")
    return b.text(b.sum([b.op(f"ptx.ld.global.cg.b32 [{base} + {128 * i}]") for i in range(8)]))


def global_cached_chase(b):
    offset = b.op(f"ptx.cvt.u64.u32 {b.x}")
    base = b.op(f"ptx.add.s64 {offset}, %ldata")
    return b.text(b.chain(base, "ptx.ld.global.ca.b64 [{}]", times=6), "i64")


def mma(b, accumulators, index):
    a = ", ".join(b.int(i) for i in range(index, index + 4))
    c = ", ".join(accumulators)
    return b.op(f"ptx.mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {{{a}}}, {{%a, %b}}, {{{c}}}", 4)


def mma_chain(b):
    value = [b.float(i) for i in range(4)]
    for _ in range(5):
        value = mma(b, value, 1)
    return b.text(b.sum(value, "ptx.add.rn.f32 {}, {}"), "f32")


def mma_parallel(b):
    fragments = [value for i in range(8) for value in mma(b, [b.float(4 * i + j) for j in range(4)], 1)]
    return b.text(b.sum(fragments, "ptx.add.rn.f32 {}, {}"), "f32")


def matrix_loads(b):
    base = b.op(f"ptx.add.u32 {b.x}, %sh")
    total = []
    for i in range(3):
        a = b.op(f"ptx.ldmatrix.sync.aligned.m8n8.x4.shared.b16 [{base} + {512 * i}]", 4)
        c = ", ".join(b.float(4 * i + j) for j in range(4))
        total += b.op(f"ptx.mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {{{', '.join(a)}}}, {{%a, %b}}, {{{c}}}", 4)
    return b.text(b.sum(total, "ptx.add.rn.f32 {}, {}"), "f32")


def addresses(b):
    index = b.int()
    value = "%own"
    for i in range(8):
        scaled = b.op(f"ptx.mul.wide.s32 {index}, {20 + 4 * i}")
        value = b.op(f"ptx.add.s64 {value}, {scaled}")
        index = b.op(f"ptx.cvt.u32.u64 {value}")
    return b.text(value, "i64")


def conversions(b):
    return b.text(b.chain(b.int(), "ptx.cvt.rn.f32.s32 {}", "ptx.cvt.rni.s32.f32 {}", times=5))


def halves(b):
    return b.text(b.chain(b.int(), "ptx.fma.rn.bf16x2 {}, %a, %b", times=24))


def shuffles(b):
    value = b.float()
    for distance in (16, 8, 4, 2, 1):
        bits = b.op(f"bitcast f32 {value} to i32")
        other = b.op(f"ptx.shfl.sync.bfly.b32 {bits}, {distance}, 31, -1")
        value = b.op(f"ptx.add.rn.f32 {value}, {b.op(f'bitcast i32 {other} to f32')}")
    return b.text(value, "f32")


def mixed(b):
    base = b.op(f"ptx.add.u32 {b.x}, %shl")
    loads = [b.op(f"ptx.ld.shared.b32 [{base} + {128 * i}]") for i in range(4)]
    hashed = b.chain(b.int(), "ptx.mad.lo.s32 {}, %a, %b", "ptx.shf.l.wrap.b32 {0}, {0}, 13", "ptx.xor.b32 {}, %a", times=4)
    polynomial = b.chain(b.float(), "ptx.fma.rn.f32 {}, %fa, %fb", times=6)
    power = b.op(f"bitcast f32 {b.op(f'ptx.ex2.approx.ftz.f32 {polynomial}')} to i32")
    return b.text(b.sum([hashed, power] + [b.op(f"ptx.xor.b32 {value}, %a") for value in loads]))


KERNELS = [
    empty, integer_chain, integer_parallel, multiply_chain, multiply_wide, float_chain, float_parallel, double_chain,
    double_parallel, special_chain, special_parallel, division, shared_chase, shared_parallel, shared_vectors,
    global_second_level, global_cached_chase, mma_chain, mma_parallel, matrix_loads, addresses, conversions, halves,
    shuffles, mixed,
]  # fmt: skip


def generate(options):
    options.dir.mkdir(parents=True, exist_ok=True)
    for kernel in KERNELS:
        path = options.dir / kernel.__name__
        path.with_suffix(".ir").write_text(kernel(Body()))
        for suffix, extra in ((".ptx", []), (".sched", ["--emit", "sched"])):
            command = [options.ptxc, str(path.with_suffix(".ir")), "-O3", "--schedule", options.schedule, "--sm", options.sm, *extra, "-o", str(path.with_suffix(suffix))]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                print(f"{kernel.__name__}: {done.stderr[:600]}", file=sys.stderr)


def run(options):
    from gpu_driver import Driver

    driver = Driver()
    out, data = driver.buffer(1 << 12), driver.buffer(1 << 16)
    measured = {"gpu": driver.name, "driver": driver.version}
    for kernel in KERNELS:
        module = driver.module((options.dir / f"{kernel.__name__}.ptx").read_text())
        function, best = driver.function(module, "k"), None
        for _ in range(7):
            values = [ctypes.c_uint64(out), ctypes.c_uint64(data), ctypes.c_int32(7), ctypes.c_int32(3), ctypes.c_int32(0)]
            driver.launch(function, values)
            (cycles,) = struct.unpack("q", driver.read(out, 8))
            best = cycles if best is None else min(best, cycles)
        measured[kernel.__name__] = best
        print(f"{kernel.__name__:22} {best}", flush=True)
        driver.unload(module)
    (options.out or options.dir / "measured.json").write_text(json.dumps(measured, indent=1) + "\n")


def predicted(text):
    """Cycles of the block with the code, the third of the kernel, as the assembler is taken to order it."""
    return int(re.search(r"^block2: .*, (\d+) assembled", text, re.MULTILINE).group(1))


def compare(options):
    measured = json.loads((options.out or options.dir / "measured.json").read_text())
    print(f"{measured['gpu']}, driver {measured['driver']}\n\n| kernel | predicted | measured | error |\n| --- | ---: | ---: | ---: |")
    errors = []
    base = {kind: None for kind in ("predicted", "measured")}
    for kernel in KERNELS:
        now = predicted((options.dir / f"{kernel.__name__}.sched").read_text())
        if kernel is empty:
            base = now, measured["empty"]
            continue
        model, machine = now - base[0], measured[kernel.__name__] - base[1]
        errors.append(abs(model - machine) / machine)
        print(f"| {kernel.__name__.replace('_', ' ')} | {model} | {machine} | {100 * (model - machine) / machine:+.0f} % |")
    print(f"\n{len(errors)} kernels, mean error {100 * sum(errors) / len(errors):.1f} %, largest {100 * max(errors):.0f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["generate", "run", "compare"])
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--ptxc", default="target/debug/ptxc")
    parser.add_argument("--sm", default="sm_90a")
    parser.add_argument("--schedule", default="level", help="how ptxc orders instructions")
    parser.add_argument("--out", type=pathlib.Path, help="the file of measured cycles")
    options = parser.parse_args()
    {"generate": generate, "run": run, "compare": compare}[options.action](options)


if __name__ == "__main__":
    main()
