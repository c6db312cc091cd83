#!/usr/bin/env python3
"""Measures what classes of instructions cost on a GPU, for the tables in targets/models.

    measure_machine.py generate DIR [--ptxc target/debug/ptxc] [--sm sm_90a]   kernels as PTX, made by ptxc of IR text
    measure_machine.py run DIR                                                 on the GPU: the table
    measure_machine.py count DIR --ptxas PTXAS --nvdisasm NVDISASM             machine instructions of each step

Every kernel is one warp around a loop of n or 2n steps; the difference between the two, by n, is what one step costs, free
of the loop and of the clock's own cost. For latency a step reads the result of the one before; for the interval there are as
many independent chains as steps. A step may hold instructions of other classes; what was measured for those is taken off.
"""

import argparse
import ctypes
import json
import pathlib
import struct
import subprocess
import sys

ITERATIONS = 64
REPEATS = 5

HEAD = """shared @tile: [4096 x i32], align 1024
const @zeros: [64 x i32] = zero, align 16
kernel @k(%out: ptr<global>, %data: ptr<global>, %a: i32, %b: i32, %n: i32, %zero: i32) reqntid({threads}, 1, 1){attributes} {{
entry:
  %lane = sreg.tid.x
  %lane4 = ptx.mul.lo.u32 %lane, 4
  %ha = trunc i32 %a to i16
  %la0 = zext i32 %a to i64
  %la1 = shl i64 %la0, 33
  %la = or i64 %la1, %la0
  %lb = add i64 %la, 12345
  %fa = ptx.cvt.rn.f32.s32 %a
  %fb = ptx.cvt.rn.f32.s32 %b
  %da = ptx.cvt.rn.f64.s32 %a
  %db = ptx.cvt.rn.f64.s32 %b
  %pa = icmp sgt i32 %a, %lane
  %pb = icmp sgt i32 %b, %lane
  %generic = ptrtoint ptr<shared> @tile to i32
  %sh = ptx.add.u32 %generic, %zero
  %shl = ptx.add.u32 %sh, %lane4
  %lane16 = ptx.mul.lo.u32 %lane, 16
  %shb = ptx.add.u32 %sh, %lane16
  %ldata = ptrtoint ptr<global> %data to i64
  %lane64 = zext i32 %lane4 to i64
  %own = add i64 %ldata, %lane64
  %own16 = ptx.mad.wide.u32 %lane, 16, %ldata
  %h2a = bitcast i32 %a to <2 x f16>
  %czero = ptrtoint ptr<const> @zeros to i64
"""


class Bench:
    """One class. `step` is text with {x} for the chain's value, {d} for the new one, {t} for temporaries."""

    def __init__(self, name, unit, types, step, ops=1, n=16, minus=(), setup="", start=None, chains=None, count=1, threads=32, before="", after="", only=None, blocks=1, finish=""):
        self.name, self.unit, self.types, self.step, self.ops, self.n = name, unit, types, step, ops, n
        self.minus, self.setup, self.start, self.count = minus, setup, start, count
        self.chains, self.threads, self.before, self.after, self.only = chains or n, threads, before, after, only
        # More blocks than one are a cluster.
        self.blocks, self.finish = blocks, finish

    def module(self, steps, parallel):
        """IR of a kernel whose loop has that many steps, in one chain or each in a chain of its own."""
        attributes = f" reqnctapercluster({self.blocks}, 1, 1)" if self.blocks > 1 else ""
        lines = [HEAD.format(threads=self.threads, attributes=attributes) + self.setup]
        chains = steps if parallel else 1
        state = [f"%s{c}_{i}" for c in range(chains) for i in range(len(self.types))]
        types = self.types * chains
        start = {"i32": "%lane", "i64": "%lane64", "f32": "%fa", "f64": "%da", "i16": "%ha", "i1": "%pa", "<2 x f16>": "%h2a"}
        initial = [self.start or start[ty] for ty in types]
        lines.append("  %t0 = sreg.clock64\n  jump loop(" + ", ".join(["%n"] + initial) + ")")
        lines.append("loop(" + ", ".join(["%i: i32"] + [f"{name}: {ty}" for name, ty in zip(state, types)]) + ") unroll(0):")
        lines.append(self.before)
        current = list(state)
        width = len(self.types)
        for index in range(steps):
            chain = index if parallel else 0
            old = current[chain * width : (chain + 1) * width]
            new = [f"%v{index}_{i}" for i in range(width)]
            names = {"x": old[0] if old else "", "d": new[0] if new else "", "t": f"%t_{index}_", "line": index * 128, "row": index * 512, "phase": index % 2}
            names.update({f"x{i}": name for i, name in enumerate(old)})
            names.update({f"d{i}": name for i, name in enumerate(new)})
            lines.append("  " + self.step.format(**names).replace("; ", "\n  "))
            current[chain * width : (chain + 1) * width] = new
        lines.append(self.after)
        lines.append("  %i1 = sub i32 %i, 1\n  %more = icmp ne i32 %i1, 0")
        lines.append("  br %more, loop(" + ", ".join(["%i1"] + current) + "), done")
        lines.append("done:\n  %t1 = sreg.clock64\n  %cycles = sub i64 %t1, %t0\n  store i64 %cycles, %out\n" + self.finish)
        for index, (name, ty) in enumerate(zip(current, types)):
            lines.append(f"  %o{index} = gep i64, %out, {index + 4}\n  store {ty} {name}, %o{index}")
        return "\n".join(lines) + "\n  ret\n}\n"

    def variants(self):
        # More state than registers would be measured with its spills.
        chains = max(2, min(self.chains, 96 // max(1, sum(2 if ty in ("i64", "f64") else 1 for ty in self.types))))
        for kind, n, parallel in (("latency", self.n, False), ("interval", chains, True)):
            if self.only in (None, kind):
                for factor in (1, 2):
                    yield kind, factor, n, (n * factor, parallel)


def alu(name, types, step, **more):
    return Bench(name, "alu", [types], step, **more)


def fma(name, types, step, **more):
    return Bench(name, "fma", [types], step, **more)


def special(name, types, step, **more):
    return Bench(name, "special", [types], step, **more)


def memory(name, types, step, **more):
    return Bench(name, "memory", types, step, **more)


def control(name, step, **more):
    return Bench(name, "control", [], step, only="latency", **more)


def mma(name, text, c, a, b, cty="f32", aty="i32", **more):
    """A chain through the accumulators."""
    setup = "".join(f"  %ma{i} = bitcast i32 %a to {aty}\n" if aty != "f64" else f"  %ma{i} = fadd f64 %da, {i}.0\n" for i in range(a))
    names = lambda stem, count: ", ".join(f"{{{stem}{i}}}" for i in range(count))
    sources = lambda count: "{{" + ", ".join(f"%ma{i}" for i in range(count)) + "}}"
    brace = lambda text, count: "{{" + text + "}}"
    step = f"{names('d', c)} = ptx.mma.sync.aligned.{text} {sources(a)}, {sources(b)}, {brace(names('x', c), c)}"
    return Bench(name, "tensor", [cty] * c, step, n=8, setup=setup, chains=6, **more)


def wgmma(columns, name="wgmma_half", types="k16.f32.bf16.bf16", accumulator="f32", width=1, scales=", 1, 1, 0, 0"):
    """`width` registers hold so many accumulators of 32 bits in two."""
    registers = columns // 2 // width
    names = lambda stem: ", ".join(f"{{{stem}{i}}}" for i in range(registers))
    shape, of = types.split(".", 1)
    step = f"{names('d')} = ptx.wgmma.mma_async.sync.aligned.m64n{columns}{shape}.{of} {{{{{names('x')}}}}}, %desc, %desc, %pa{scales}"
    # A matrix descriptor (PTX ISA 9.7.16.5.1): the tile's address and two strides, in units of 16 bytes.
    setup = "  %sh16 = ptx.bfe.u32 %sh, 4, 14\n  %start = zext i32 %sh16 to i64\n  %desc = or i64 %start, 68719738880\n"
    return Bench(name, "tensor", [accumulator] * registers, step, n=4, count=columns // 8, threads=128, setup=setup,
                 before="  ptx.wgmma.fence.sync.aligned", after="  ptx.wgmma.commit_group.sync.aligned\n  ptx.wgmma.wait_group.sync.aligned 0", only="latency")


# The shared tile holds its own address, and so does the buffer in global memory: loads chase it.
FILL = """  %fill = ptx.add.u32 %sh, %lane4
  ptx.st.shared.v4.b32 [%sh], {%sh, %sh, %sh, %sh}
  ptx.st.shared.v4.b32 [%sh + 16], {%sh, %sh, %sh, %sh}
  ptx.st.shared.v4.b32 [%sh + 32], {%sh, %sh, %sh, %sh}
  ptx.st.shared.v4.b32 [%sh + 48], {%sh, %sh, %sh, %sh}
  ptx.st.shared.v4.b32 [%sh + 64], {%sh, %sh, %sh, %sh}
  ptx.st.shared.v4.b32 [%sh + 80], {%sh, %sh, %sh, %sh}
  ptx.st.shared.v4.b32 [%sh + 96], {%sh, %sh, %sh, %sh}
  ptx.st.shared.v4.b32 [%sh + 112], {%sh, %sh, %sh, %sh}
  ptx.st.global.v2.b64 [%ldata], {%ldata, %ldata}
  ptx.st.global.v2.b64 [%ldata + 16], {%ldata, %ldata}
  ptx.fence.acq_rel.sys
"""
BARRIER = """  %mine = icmp eq i32 %lane, 0
  ptx.@%mine mbarrier.init.shared::cta.b64 [%sh], 32
  ptx.bar.warp.sync -1
  %shz = ptx.add.u32 %sh, %zero
"""
# A barrier of the first thread, for copies that one thread starts.
ONE = """  %mine = icmp eq i32 %lane, 0
  ptx.@%mine mbarrier.init.shared::cta.b64 [%sh], 1
  ptx.fence.proxy.async
  ptx.bar.warp.sync -1
"""


# A second block of the cluster, whose tile this one's threads see at %far; tiles hold their own addresses as all see them.
CLUSTER = """  %rank = sreg.cluster_ctarank
  %other = ptx.xor.b32 %rank, 1
  %far = ptx.mapa.shared::cluster.u32 %sh, %other
  %here = ptx.mapa.shared::cluster.u32 %sh, %rank
  ptx.st.shared.v4.b32 [%shb], {%here, %here, %here, %here}
  %mine = icmp eq i32 %lane, 0
  ptx.@%mine mbarrier.init.shared::cta.b64 [%sh + 4096], 32
  ptx.barrier.cluster.arrive.aligned
  ptx.barrier.cluster.wait.aligned
"""
TOGETHER = "  ptx.barrier.cluster.arrive.aligned\n  ptx.barrier.cluster.wait.aligned"
# The buffer's second half holds tensor maps of 512 and 2048 bytes and a texture's handle (see `put_objects`).
OBJECTS = """  %map512 = add i64 %ldata, 524288
  %map2048 = add i64 %ldata, 524416
  %handle_at = add i64 %ldata, 524544
  %handle = ptx.ld.global.u64 [%handle_at]
"""
ROWS = """  ptx.st.shared.v4.b32 [%shb], {%sh, %sh, %sh, %sh}
  ptx.bar.warp.sync -1
"""


def wmma(name, shape, a, b, c, types, cty="f32", aty="i32"):
    """A chain through the accumulators."""
    setup = "".join(f"  %ma{i} = bitcast i32 %a to {aty}\n" if aty != "f64" else f"  %ma{i} = fadd f64 %da, {i}.0\n" for i in range(max(a, b)))
    brace = lambda stem, count: "{{" + ", ".join(stem.format(i) for i in range(count)) + "}}"
    results = ", ".join(f"{{d{i}}}" for i in range(c))
    step = f"{results} = ptx.wmma.mma.sync.aligned.row.col.{shape}.{types} {brace('%ma{}', a)}, {brace('%ma{}', b)}, {brace('{{x{}}}', c)}"
    return Bench(name, "tensor", [cty] * c, step, n=8, setup=setup, chains=6)


def bulk_copy(name, text, bytes):
    step = f"ptx.@%mine {text} [%ldata], [%sh + 1024], {bytes}; ptx.cp.async.bulk.commit_group; ptx.cp.async.bulk.wait_group 0"
    return Bench(name, "copy", [], step, setup=ONE, only="latency", n=4, count=bytes // 512)


def tensor_load(bytes):
    """As `bulk_load`, of a box of a tensor in two dimensions."""
    bench = bulk_load("tensor_load", bytes)
    bench.step = bench.step.replace("cp.async.bulk.shared::cluster.global", "cp.async.bulk.tensor.2d.shared::cluster.global.tile")
    bench.step = bench.step.replace(f"[%ldata], {bytes}, [%sh]", f"[%map{bytes}, {{{{%zero, %zero}}}}], [%sh]")
    bench.setup += OBJECTS
    return bench


def tensor_copy(name, text, bytes, group="; ptx.cp.async.bulk.commit_group; ptx.cp.async.bulk.wait_group 0"):
    box = f"[%map{bytes}, {{{{%zero, %zero}}}}]"
    return Bench(name, "copy", [], f"ptx.@%mine {text.format(box=box)}{group}", setup=ONE + OBJECTS, only="latency", n=4, count=bytes // 512)


def bulk_load(name, bytes):
    """A copy by one thread, from its start until the barrier's phase is complete. What the wait tells is used: ptxas makes a
    test that waits for nothing of one whose result nobody reads."""
    step = (f"ptx.mbarrier.arrive.expect_tx.shared::cta.b64 _, [%sh], {bytes}; "
            f"ptx.cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%sh + 1024], [%ldata], {bytes}, [%sh]; "
            "{t}0 = ptx.mbarrier.try_wait.parity.shared::cta.b64 [%sh], {phase}, 10000000; {d} = ptx.selp.b32 {x}, %zero, {t}0")
    return Bench(name, "copy", ["i32"], step, setup=ONE.replace("  ptx.bar.warp.sync -1\n", ""), only="latency", n=4, count=bytes // 512, threads=1)



BENCHES = [
    alu("integer", "i32", "{t}0 = ptx.add.s32 {x}, %a; {d} = ptx.xor.b32 {t}0, %b", ops=2),
    alu("integer:shf", "i32", "{d} = ptx.shf.l.wrap.b32 {x}, %b, %a"),
    alu("integer:prmt", "i32", "{d} = ptx.prmt.b32 {x}, %b, %a"),
    alu("integer:min", "i32", "{t}0 = ptx.min.s32 {x}, %a; {d} = ptx.max.s32 {t}0, %lane", ops=2),
    alu("integer:selp", "i32", "{t}0 = ptx.setp.lt.s32 {x}, %a; {d} = ptx.selp.b32 {x}, %b, {t}0", ops=2),
    alu("integer:shl", "i32", "{t}0 = ptx.shl.b32 {x}, %a; {d} = ptx.xor.b32 {t}0, %b", ops=2),
    alu("integer_pair", "i64", "{t}0 = ptx.add.s64 {x}, %la; {d} = ptx.xor.b64 {t}0, %lb", ops=2),
    alu("integer_pair:min", "i64", "{t}0 = ptx.min.s64 {x}, %la; {d} = ptx.max.s64 {t}0, %lane64", ops=2),
    alu("integer_pair:setp", "i64", "{t}0 = ptx.setp.lt.s64 {x}, %la; {d} = ptx.selp.b64 {x}, %lb, {t}0", ops=2),
    alu("integer_pair:shl", "i64", "{t}0 = ptx.shl.b64 {x}, %a; {d} = ptx.xor.b64 {t}0, %lb", ops=2),
    alu("bit_field", "i32", "{d} = ptx.bfe.u32 {x}, %a, %b"),
    alu("bit_field:bfi", "i32", "{d} = ptx.bfi.b32 %lane, {x}, %a, %b"),
    alu("bit_field_pair", "i64", "{d} = ptx.bfe.u64 {x}, %a, %b", n=4),
    special("count_bits", "i32", "{d} = ptx.popc.b32 {x}"),
    special("count_bits:clz", "i32", "{d} = ptx.clz.b32 {x}"),
    special("count_bits_pair", "i64", "{t}0 = ptx.popc.b64 {x}; {d} = ptx.cvt.u64.u32 {t}0", n=8),
    alu("predicate", "i1", "{t}0 = ptx.and.pred {x}, %pa; {d} = ptx.xor.pred {t}0, %pb", ops=2, chains=5),
    fma("multiply", "i32", "{d} = ptx.mad.lo.s32 {x}, %a, %b"),
    fma("multiply_high", "i32", "{d} = ptx.mul.hi.u32 {x}, %a"),
    fma("multiply_wide", "i32", "{t}0 = ptx.mul.wide.u32 {x}, %a; {t}1, {t}2 = ptx.mov.b64 {t}0; {d} = ptx.xor.b32 {t}1, {t}2", minus=["integer:shf"]),
    fma("multiply_wide:mad", "i64", "{t}0, {t}1 = ptx.mov.b64 {x}; {t}2 = ptx.xor.b32 {t}0, {t}1; {d} = ptx.mad.wide.u32 {t}2, %a, %lb", minus=["integer:shf"]),
    alu("integer_sum", "i32", "{t}0 = ptx.add.s32 {x}, %a; {d} = ptx.shf.l.wrap.b32 {t}0, {t}0, %b", minus=["integer:shf"]),
    alu("integer_sum:three", "i32", "{t}0 = ptx.add.s32 {x}, %a; {t}1 = ptx.add.s32 {t}0, %lane; {d} = ptx.shf.l.wrap.b32 {t}1, {t}1, %b", minus=["integer:shf"]),
    fma("multiply_long", "i64", "{d} = ptx.mad.lo.s64 {x}, %la, %lb", n=8),
    fma("multiply_long_high", "i64", "{d} = ptx.mul.hi.u64 {x}, %la", n=4),
    fma("dot_product", "i32", "{d} = ptx.dp4a.s32.s32 {x}, %a, %b"),
    special("divide", "i32", "{d} = ptx.div.u32 %a, {x}", n=4),
    special("divide:signed", "i32", "{d} = ptx.div.s32 %a, {x}", n=4),
    special("divide:rem", "i32", "{d} = ptx.rem.s32 %a, {x}", n=4),
    special("divide_short", "i16", "{d} = ptx.div.u16 %ha, {x}", n=4),
    special("divide_long", "i64", "{t}0 = ptx.div.u64 %lb, {x}; {d} = ptx.or.b64 {t}0, %la", n=2, minus=["integer_pair"], chains=2),
    alu("video", "i32", "{d} = ptx.vadd.s32.s32.s32 {x}, %a"),
    alu("video_lanes", "i32", "{d} = ptx.vadd4.u32.u32.u32 {x}, %a, %b", n=4),
    fma("float", "f32", "{d} = ptx.fma.rn.f32 {x}, %fa, %fb"),
    fma("float:add", "f32", "{d} = ptx.add.rn.f32 {x}, %fa"),
    alu("float_compare", "f32", "{t}0 = ptx.min.f32 {x}, %fa; {d} = ptx.max.f32 {t}0, %fb", ops=2),
    alu("float_compare:setp", "f32", "{t}0 = ptx.setp.lt.f32 {x}, %fa; {d} = ptx.selp.f32 {x}, %fb, {t}0", ops=2),
    Bench("half", "half", ["<2 x f16>"], "{d} = ptx.fma.rn.f16x2 {x}, %a, %b"),
    Bench("half:bf16", "half", ["i32"], "{d} = ptx.fma.rn.bf16x2 {x}, %a, %b"),
    Bench("half_compare", "half", ["<2 x f16>"], "{t}0 = ptx.min.f16x2 {x}, %a; {d} = ptx.max.f16x2 {t}0, %b", ops=2),
    Bench("double", "double", ["f64"], "{d} = ptx.fma.rn.f64 {x}, %da, %db"),
    Bench("double_compare", "double", ["f64"], "{t}0 = ptx.min.f64 {x}, %da; {d} = ptx.max.f64 {t}0, %db", ops=2),
    special("approximate", "f32", "{d} = ptx.ex2.approx.ftz.f32 {x}"),
    special("approximate:rsqrt", "f32", "{d} = ptx.rsqrt.approx.ftz.f32 {x}"),
    special("approximate:tanh", "f32", "{d} = ptx.tanh.approx.f32 {x}"),
    special("approximate_scaled", "f32", "{d} = ptx.ex2.approx.f32 {x}"),
    special("approximate_scaled:rcp", "f32", "{d} = ptx.rcp.approx.f32 {x}"),
    special("approximate_scaled:sin", "f32", "{d} = ptx.sin.approx.f32 {x}"),
    special("approximate_scaled:lg2", "f32", "{d} = ptx.lg2.approx.f32 {x}"),
    special("approximate_scaled:rsqrt", "f32", "{d} = ptx.rsqrt.approx.f32 {x}"),
    special("approximate_scaled:sqrt", "f32", "{d} = ptx.sqrt.approx.f32 {x}"),
    special("float_divide_approx", "f32", "{d} = ptx.div.full.f32 %fa, {x}", n=8),
    special("float_divide_approx:approx", "f32", "{d} = ptx.div.approx.f32 %fa, {x}", n=8),
    special("float_divide", "f32", "{d} = ptx.div.rn.f32 %fa, {x}", n=2, chains=4),
    special("float_root", "f32", "{t}0 = ptx.sqrt.rn.f32 {x}; {d} = ptx.add.rn.f32 {t}0, %fa", n=2, chains=4, minus=["float"]),
    special("float_root:rcp", "f32", "{d} = ptx.rcp.rn.f32 {x}", n=2, chains=4),
    special("double_approximate", "f64", "{d} = ptx.rcp.approx.ftz.f64 {x}", n=8),
    special("double_approximate:rsqrt", "f64", "{d} = ptx.rsqrt.approx.f64 {x}", n=4),
    Bench("double_divide", "double", ["f64"], "{d} = ptx.div.rn.f64 %da, {x}", n=2, chains=3),
    Bench("double_root", "double", ["f64"], "{t}0 = ptx.sqrt.rn.f64 {x}; {d} = ptx.add.rn.f64 {t}0, %da", n=2, chains=3, minus=["double"]),
    Bench("double_root:rcp", "double", ["f64"], "{d} = ptx.rcp.rn.f64 {x}", n=2, chains=3),
    special("convert", "i32", "{t}0 = ptx.cvt.rn.f32.s32 {x}; {d} = ptx.cvt.rni.s32.f32 {t}0", ops=2),
    special("convert:u8", "i32", "{t}0 = ptx.cvt.rn.f32.u8 {x}; {d} = ptx.cvt.rni.s32.f32 {t}0", ops=2),
    fma("convert_half", "f32", "{t}0 = ptx.cvt.rn.f16.f32 {x}; {d} = ptx.cvt.f32.f16 {t}0", ops=2),
    fma("convert_half:pack", "f32", "{t}0 = ptx.cvt.rn.f16x2.f32 {x}, %fa; {d} = bitcast <2 x f16> {t}0 to f32"),
    alu("convert_integer", "i32", "{t}0 = ptx.add.s32 {x}, %a; {d} = ptx.cvt.s32.s8 {t}0", minus=["integer"]),
    special("convert_round", "f32", "{t}0 = ptx.cvt.rni.f32.f32 {x}; {d} = ptx.add.rn.f32 {t}0, %fa", minus=["float"]),
    special("convert_double", "f32", "{t}0 = ptx.cvt.f64.f32 {x}; {d} = ptx.cvt.rn.f32.f64 {t}0", ops=2),
    special("convert_double:int", "i32", "{t}0 = ptx.cvt.rn.f64.s32 {x}; {d} = ptx.cvt.rni.s32.f64 {t}0", ops=2),
    special("convert_long", "i64", "{t}0 = ptx.cvt.rn.f32.s64 {x}; {d} = ptx.cvt.rni.s64.f32 {t}0", ops=2, n=8),
    special("convert_narrow", "f32", "{t}0 = ptx.cvt.rn.satfinite.e4m3x2.f32 {x}, %fa; {t}1 = ptx.cvt.rn.f16x2.e4m3x2 {t}0; {d} = bitcast <2 x f16> {t}1 to f32", ops=2),
    memory("load_shared", ["i32"], "{d} = ptx.ld.shared.b32 [{x}]", setup=FILL, start="%sh", chains=32),
    memory("load_shared", ["i32"], "{t}0, {t}1 = ptx.ld.shared.v2.b32 [{x}]; {d} = ptx.min.u32 {t}0, {t}1", setup=FILL, start="%sh", minus=["integer:shf"], chains=16, count=2),
    memory("load_shared", ["i32"], "{t}0, {t}1, {t}2, {t}3 = ptx.ld.shared.v4.b32 [{x}]; {t}4 = ptx.lop3.b32 {t}1, {t}2, {t}3, 128; {d} = ptx.min.u32 {t}0, {t}4", setup=FILL, start="%sh", minus=["integer:shf", "integer:shf"], chains=16, count=4),
    memory("load_cached", ["i64"], "{d} = ptx.ld.global.ca.b64 [{x}]", setup=FILL, start="%ldata", chains=24, count=2),
    memory("load_cached", ["i64"], "{t}0, {t}1 = ptx.ld.global.ca.v2.b64 [{x}]; {d} = ptx.and.b64 {t}0, {t}1", setup=FILL, start="%ldata", minus=["integer:shf"], chains=16, count=4),
    memory("load_global", ["i64"], "{d} = ptx.ld.global.cg.b64 [{x}]", setup=FILL, start="%ldata", chains=24, count=2, n=8),
    memory("load_global", ["i64"], "{t}0, {t}1 = ptx.ld.global.cg.v2.b64 [{x}]; {d} = ptx.and.b64 {t}0, {t}1", setup=FILL, start="%ldata", minus=["integer:shf"], chains=16, count=4, n=8),
    memory("load_global:lanes", ["i32"], "{t}0 = ptx.mad.wide.u32 {x}, %zero, %own; {d} = ptx.ld.global.cg.b32 [{t}0 + {line}]", chains=16),
    memory("load_acquire", ["i64"], "{d} = ptx.ld.acquire.gpu.global.b64 [{x}]", setup=FILL, start="%ldata", chains=8, n=4),
    memory("load_constant", ["i32"], "{t}0 = ptx.cvt.u64.u32 {x}; {t}1 = ptx.add.s64 %czero, {t}0; {d} = ptx.ld.const.b32 [{t}1]", start="%zero", minus=["integer_pair"]),
    memory("store_shared", ["i32"], "ptx.st.volatile.shared.b32 [%shl], {x}; {d} = ptx.ld.volatile.shared.b32 [%shl]", minus=["load_shared"], only="latency"),
    memory("store_shared:interval", [], "ptx.st.shared.b32 [%shl + {line}], %a", only="latency"),
    memory("store_shared:v4", [], "ptx.st.shared.v4.b32 [%shb + {row}], {{%a, %b, %a, %b}}", only="latency"),
    memory("store_global:interval", [], "ptx.st.global.b32 [%own + {line}], %a", only="latency"),
    memory("store_global:v4", [], "ptx.st.global.v4.b32 [%own16 + {row}], {{%a, %b, %a, %b}}", only="latency"),
    memory("store_release", [], "ptx.st.release.gpu.global.b32 [%own], %a", only="latency", n=4),
    memory("atomic_shared", ["i32"], "{d} = ptx.atom.shared.add.u32 [%shl], {x}"),
    memory("atomic_shared:max", ["i32"], "{d} = ptx.atom.shared.max.s32 [%shl], {x}"),
    memory("atomic_swap_shared", ["i32"], "{d} = ptx.atom.shared.cas.b32 [%shl], {x}, %a"),
    memory("atomic_swap_shared:f32", ["f32"], "{d} = ptx.atom.shared.add.f32 [%shl], {x}", n=4),
    memory("reduce_shared", [], "ptx.red.shared.add.u32 [%shl], %a", only="latency"),
    memory("atomic_global", ["i32"], "{d} = ptx.atom.global.add.u32 [%own], {x}", n=4),
    memory("atomic_global:cas", ["i32"], "{d} = ptx.atom.global.cas.b32 [%own], {x}, %a", n=4),
    memory("reduce_global", [], "ptx.red.global.add.u32 [%own], %a", only="latency"),
    memory("load_matrix", ["i32"], "{d} = ptx.ldmatrix.sync.aligned.m8n8.x1.shared.b16 [{x}]", setup=FILL, start="%sh", chains=24),
    memory("load_matrix", ["i32"] * 2, "{d0}, {d1} = ptx.ldmatrix.sync.aligned.m8n8.x2.shared.b16 [{x0}]", setup=FILL, start="%sh", chains=16, count=2),
    memory("load_matrix", ["i32"] * 4, "{d0}, {d1}, {d2}, {d3} = ptx.ldmatrix.sync.aligned.m8n8.x4.shared.b16 [{x0}]", setup=FILL, start="%sh", chains=12, count=4),
    memory("store_matrix", [], "ptx.stmatrix.sync.aligned.m8n8.x1.shared.b16 [%sh], {{%a}}", only="latency"),
    memory("store_matrix", [], "ptx.stmatrix.sync.aligned.m8n8.x4.shared.b16 [%sh], {{%a, %a, %a, %a}}", only="latency", count=4),
    memory("move_matrix", ["i32"], "{d} = ptx.movmatrix.sync.aligned.m8n8.trans.b16 {x}"),
    memory("shuffle", ["i32"], "{d} = ptx.shfl.sync.bfly.b32 {x}, 1, 31, -1", chains=32),
    alu("vote", "i32", "{t}0 = ptx.setp.lt.s32 {x}, %a; {d} = ptx.vote.sync.ballot.b32 {t}0, -1", minus=["integer"]),
    memory("match", ["i32"], "{d} = ptx.match.any.sync.b32 {x}, -1", n=4, start="%a"),
    Bench("reduce_lanes", "uniform", ["i32"], "{d} = ptx.redux.sync.add.s32 {x}, -1", n=8),
    Bench("reduce_lanes:and", "uniform", ["i32"], "{d} = ptx.redux.sync.and.b32 {x}, -1", n=8),
    mma("mma_f16_k8", "m16n8k8.row.col.f16.f16.f16.f16", 2, 2, 1, cty="i32"),
    mma("mma_f16_k16", "m16n8k16.row.col.f16.f16.f16.f16", 2, 4, 2, cty="i32"),
    mma("mma_f32_k8", "m16n8k8.row.col.f32.bf16.bf16.f32", 4, 2, 1),
    mma("mma_f32_k16", "m16n8k16.row.col.f32.bf16.bf16.f32", 4, 4, 2),
    mma("mma_tf32_k4", "m16n8k4.row.col.f32.tf32.tf32.f32", 4, 2, 1),
    mma("mma_tf32_k8", "m16n8k8.row.col.f32.tf32.tf32.f32", 4, 4, 2),
    mma("mma_f64_k4", "m8n8k4.row.col.f64.f64.f64.f64", 2, 1, 1, cty="f64", aty="f64"),
    mma("mma_f64_wide", "m16n8k4.row.col.f64.f64.f64.f64", 4, 2, 1, cty="f64", aty="f64"),
    mma("mma_f64_wide", "m16n8k16.row.col.f64.f64.f64.f64", 4, 8, 4, cty="f64", aty="f64", count=4),
    mma("mma_i8_small", "m8n8k16.row.col.s32.s8.s8.s32", 2, 1, 1, cty="i32"),
    mma("mma_i8_k16", "m16n8k16.row.col.s32.s8.s8.s32", 4, 2, 1, cty="i32"),
    mma("mma_i8_k32", "m16n8k32.row.col.s32.s8.s8.s32", 4, 4, 2, cty="i32"),
    mma("mma_i4_small", "m8n8k32.row.col.s32.s4.s4.s32", 2, 1, 1, cty="i32"),
    mma("mma_i4_k32", "m16n8k32.row.col.s32.s4.s4.s32", 4, 2, 1, cty="i32"),
    mma("mma_i4_k64", "m16n8k64.row.col.s32.s4.s4.s32", 4, 4, 2, cty="i32"),
    mma("mma_b1_k256", "m16n8k256.row.col.s32.b1.b1.s32.and.popc", 4, 4, 2, cty="i32"),
    mma("mma_f8_k32", "m16n8k32.row.col.f32.e4m3.e4m3.f32", 4, 4, 2),
    control("barrier", "ptx.bar.sync 0"),
    control("barrier_arrive", "ptx.bar.arrive 1, 64", threads=64),
    control("barrier_warp", "ptx.bar.warp.sync -1"),
    Bench("barrier_reduce", "control", ["i32"], "{t}0 = ptx.setp.lt.s32 {x}, %a; {d} = ptx.bar.red.popc.u32 0, {t}0", minus=["integer"], only="latency"),
    control("fence_block", "ptx.fence.acq_rel.cta"),
    control("fence_gpu", "ptx.fence.acq_rel.gpu", n=4),
    control("fence_system", "ptx.fence.acq_rel.sys", n=4),
    control("fence_proxy", "ptx.fence.proxy.async", n=4),
    memory("mbarrier_init", [], "ptx.mbarrier.init.shared::cta.b64 [%sh + 2048], 32", only="latency"),
    memory("mbarrier_arrive", [], "ptx.mbarrier.arrive.shared::cta.b64 _, [%sh]", setup=BARRIER, only="latency"),
    memory("mbarrier_wait", ["i32"], "{t}0 = ptx.mbarrier.test_wait.parity.shared::cta.b64 [{x}], 1; {d} = ptx.selp.b32 %sh, %shz, {t}0", setup=BARRIER, start="%sh", minus=["integer"], chains=8),
    memory("mbarrier_wait:try", ["i32"], "{t}0 = ptx.mbarrier.try_wait.parity.shared::cta.b64 [{x}], 1; {d} = ptx.selp.b32 %sh, %shz, {t}0", setup=BARRIER, start="%sh", minus=["integer"], chains=8),
    memory("copy_async", [], "ptx.cp.async.cg.shared.global [%sh], [%ldata], 16; ptx.cp.async.commit_group; ptx.cp.async.wait_all", n=4, only="latency"),
    memory("copy_async:interval", [], "ptx.cp.async.cg.shared.global [%sh], [%ldata], 16", after="  ptx.cp.async.commit_group\n  ptx.cp.async.wait_all", only="latency", n=8),
    memory("copy_async:ca4", [], "ptx.cp.async.ca.shared.global [%shl], [%own], 4", after="  ptx.cp.async.commit_group\n  ptx.cp.async.wait_all", only="latency", n=8),
    control("copy_async_wait", "ptx.cp.async.commit_group; ptx.cp.async.wait_all"),
    wgmma(8),
    wgmma(64),
    wgmma(128),
    wgmma(8, "wgmma_half:f16", "k16.f16.f16.f16", "i32", 2),
    wgmma(128, "wgmma_half:f16", "k16.f16.f16.f16", "i32", 2),
    wgmma(8, "wgmma_tf32", "k8.f32.tf32.tf32", scales=", 1, 1"),
    wgmma(128, "wgmma_tf32", "k8.f32.tf32.tf32", scales=", 1, 1"),
    wgmma(8, "wgmma_byte", "k32.f32.e4m3.e4m3", scales=", 1, 1"),
    wgmma(128, "wgmma_byte", "k32.f32.e4m3.e4m3", scales=", 1, 1"),
    wgmma(8, "wgmma_byte:s8", "k32.s32.s8.s8", "i32", scales=""),
    wgmma(128, "wgmma_byte:s8", "k32.s32.s8.s8", "i32", scales=""),
    wgmma(8, "wgmma_bit", "k256.s32.b1.b1.and.popc", "i32", scales=""),
    wgmma(128, "wgmma_bit", "k256.s32.b1.b1.and.popc", "i32", scales=""),
    control("wgmma_fence", "ptx.wgmma.fence.sync.aligned", threads=128),
    control("wgmma_wait", "ptx.wgmma.commit_group.sync.aligned; ptx.wgmma.wait_group.sync.aligned 0", threads=128),
    bulk_load("bulk_load", 512),
    bulk_load("bulk_load", 2048),
    bulk_copy("bulk_store", "cp.async.bulk.global.shared::cta.bulk_group", 512),
    bulk_copy("bulk_store", "cp.async.bulk.global.shared::cta.bulk_group", 2048),
    bulk_copy("bulk_reduce", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32", 512),
    bulk_copy("bulk_reduce", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32", 2048),
    tensor_load(512),
    tensor_load(2048),
    tensor_copy("tensor_store", "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group {box}, [%sh + 1024]", 512),
    tensor_copy("tensor_store", "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group {box}, [%sh + 1024]", 2048),
    tensor_copy("tensor_reduce", "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group {box}, [%sh + 1024]", 512),
    tensor_copy("tensor_reduce", "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group {box}, [%sh + 1024]", 2048),
    tensor_copy("tensor_prefetch", "cp.async.bulk.prefetch.tensor.2d.L2.global.tile {box}", 512, group=""),
    memory("load_cluster", ["i32"], "{d} = ptx.ld.shared::cluster.b32 [{x}]", setup=CLUSTER, start="%far", chains=16, blocks=2, finish=TOGETHER),
    memory("mbarrier_arrive_far:other", [], "ptx.mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%far + 4096]", setup=CLUSTER, only="latency", n=4, blocks=2, finish=TOGETHER),
    control("barrier_cluster_wait:other", "ptx.barrier.cluster.arrive.aligned; ptx.barrier.cluster.wait.aligned", n=4, blocks=2, finish=TOGETHER),
    control("barrier_cluster_arrive", "ptx.barrier.cluster.arrive.relaxed.aligned; ptx.barrier.cluster.wait.aligned", n=4, blocks=2, finish=TOGETHER),
    Bench("texture", "texture", ["i32"], "{d}, {t}1, {t}2, {t}3 = ptx.tex.1d.v4.u32.s32 [%handle, {{{x}}}]", setup=OBJECTS, start="%zero", chains=8),
    wmma("wmma_half", "m16n16k16", 8, 8, 8, "f32.f32"),
    wmma("wmma_half:f16", "m16n16k16", 8, 8, 4, "f16.f16", "i32"),
    wmma("wmma_half:bf16", "m16n16k16", 4, 4, 8, "f32.bf16.bf16.f32"),
    wmma("wmma_tf32", "m16n16k8", 4, 4, 8, "f32.tf32.tf32.f32"),
    wmma("wmma_double", "m8n8k4", 1, 1, 2, "f64.f64.f64.f64", "f64", "f64"),
    wmma("wmma_integer", "m16n16k16", 2, 2, 8, "s32.s8.s8.s32", "i32"),
    wmma("wmma_small", "m8n8k32", 1, 1, 2, "s32.s4.s4.s32", "i32"),
    memory("wmma_load", ["i32"], "{d}, {t}1, {t}2, {t}3, {t}4, {t}5, {t}6, {t}7 = ptx.wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 [{x}], 16", setup=ROWS, start="%sh", n=8),
    memory("wmma_store", [], "ptx.wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [%sh], {{%a, %b, %a, %b}}, 16", only="latency"),
    Bench("bulk_prefetch", "copy", [], "ptx.@%mine cp.async.bulk.prefetch.L2.global [%ldata], 512", setup=ONE, only="latency", n=4),
    control("bulk_wait", "ptx.cp.async.bulk.commit_group; ptx.cp.async.bulk.wait_group 0"),
    control("bulk_commit", "ptx.cp.async.bulk.commit_group", after="  ptx.cp.async.bulk.wait_group 0"),
    control("barrier_cluster_wait", "ptx.barrier.cluster.arrive.aligned; ptx.barrier.cluster.wait.aligned", n=4),
    memory("load_cluster:own", ["i32"], "{d} = ptx.ld.shared::cluster.b32 [{x}]", setup=FILL, start="%sh", chains=16),
    memory("prefetch", [], "ptx.prefetch.global.L2 [%own + {line}]", only="latency"),
    memory("mbarrier_arrive_far", [], "ptx.mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%sh]", setup=BARRIER, only="latency", n=4),
    Bench("double_compare:setp", "double", ["f64"], "{t}0 = ptx.setp.lt.f64 {x}, %da; {d} = ptx.selp.f64 {x}, %db, {t}0", minus=["integer"]),
]


def stem(index, bench, kind, factor):
    return f"{index:03}_{bench.name.replace(':', '_')}_{bench.count}_{kind}_{factor}"


def generate(options):
    options.dir.mkdir(parents=True, exist_ok=True)
    failed = 0
    for index, bench in enumerate(BENCHES):
        for kind, factor, _, (steps, parallel) in bench.variants():
            path = options.dir / stem(index, bench, kind, factor)
            text = bench.module(steps, parallel)
            path.with_suffix(".ir").write_text(text)
            command = [options.ptxc, str(path.with_suffix(".ir")), "-O0", "--sm", options.sm, "-o", str(path.with_suffix(".ptx"))]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                failed += 1
                print(f"{path.name}: {done.stderr[:600]}", file=sys.stderr)
    print(f"{len(list(options.dir.glob('*.ptx')))} kernels, {failed} refused")


def put_objects(driver, data):
    """Tensor maps and a texture of zeros, where OBJECTS looks for them."""
    zeros = driver.buffer(1 << 16)
    boxes = b"".join(driver.tensor_map(zeros, (32, 64), (32, rows)) for rows in (4, 16))
    driver.write(data + 524288, boxes + struct.pack("Q", driver.texture(zeros, 4096)))


def cycles(driver, path, buffers, bench):
    module = driver.module(path.read_text())
    function = driver.function(module, "k")
    out, data = buffers
    best = None
    for _ in range(REPEATS):
        values = [ctypes.c_uint64(out), ctypes.c_uint64(data), ctypes.c_int32(7), ctypes.c_int32(3), ctypes.c_int32(ITERATIONS), ctypes.c_int32(0)]
        driver.launch(function, values, threads=bench.threads, blocks=bench.blocks)
        (now,) = struct.unpack("q", driver.read(out, 8))
        best = now if best is None else min(best, now)
    driver.unload(module)
    return best


def run(options):
    from gpu_driver import Driver

    driver = Driver()
    print(f"# {driver.name}, driver {driver.version}; one warp, {ITERATIONS} iterations, least of {REPEATS} launches")
    buffers = driver.buffer(1 << 16), driver.buffer(1 << 20)
    put_objects(driver, buffers[1])
    found = {}
    print(f"# {'class':30} {'count':>5} {'latency':>8} {'interval':>8}")
    for index, bench in enumerate(BENCHES):
        result = {}
        for kind in ("latency", "interval"):
            by_factor = {}
            for this, factor, n, _ in bench.variants():
                path = options.dir / (stem(index, bench, kind, factor) + ".ptx")
                if this != kind or not path.exists():
                    continue
                try:
                    by_factor[factor] = cycles(driver, path, buffers, bench)
                    by_factor["n"] = n
                except RuntimeError as error:
                    print(f"# {path.name}: {error}")
                    if "ILLEGAL" in str(error) or "LAUNCH" in str(error) or "MISALIGNED" in str(error):
                        return
            if 1 in by_factor and 2 in by_factor:
                step = (by_factor[2] - by_factor[1]) / ITERATIONS / by_factor["n"]
                step -= sum(found.get((name, 1), {}).get(kind, 0) for name in bench.minus)
                result[kind] = step / bench.ops
                result[kind + "_loop"] = by_factor[1] / ITERATIONS
        found[(bench.name, bench.count)] = result
        show = lambda kind: f"{result[kind]:8.2f}" if kind in result else f"{'':8}"
        loop = f"{result['latency_loop']:9.1f}" if "latency_loop" in result else ""
        print(f"{bench.name:32} {bench.count:5} {show('latency')} {show('interval')} {loop}", flush=True)
    if options.json:
        options.json.write_text(json.dumps([[name, count, result] for (name, count), result in found.items()], indent=1))


def count(options):
    """Machine instructions of a step, which tell the issue slots of a class."""
    for index, bench in enumerate(BENCHES):
        for kind in ("latency", "interval"):
            counts = {}
            for this, factor, n, _ in bench.variants():
                path = options.dir / (stem(index, bench, kind, factor) + ".ptx")
                if this == kind and path.exists():
                    cubin = path.with_suffix(".cubin")
                    done = subprocess.run([options.ptxas, "-arch=" + options.sm, str(path), "-o", str(cubin)], capture_output=True, text=True)
                    if done.returncode:
                        print(f"{path.name}: {done.stderr[:300]}")
                        continue
                    text = subprocess.run([options.nvdisasm, "-c", str(cubin)], capture_output=True, text=True).stdout
                    lines = [line.split("*/", 1)[1].split("/*")[0].strip() for line in text.splitlines() if line.strip().startswith("/*0") and ";" in line]
                    counts[factor] = lines
            if 1 in counts and 2 in counts:
                steps = (len(counts[2]) - len(counts[1])) / n
                tally = {}
                for factor, sign in ((2, 1), (1, -1)):
                    for line in counts[factor]:
                        words = [word for word in line.split() if not word.startswith("@")]
                        name = words[0].rstrip(";")
                        tally[name] = tally.get(name, 0) + sign
                shown = ", ".join(f"{name} {number / n:g}" for name, number in sorted(tally.items()) if number)
                print(f"{bench.name:28} {bench.count} {kind:8} {steps:6.2f}: {shown}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["generate", "run", "count"])
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--ptxc", default="target/debug/ptxc")
    parser.add_argument("--sm", default="sm_90a")
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--nvdisasm", default="nvdisasm")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    {"generate": generate, "run": run, "count": count}[options.action](options)


if __name__ == "__main__":
    main()
