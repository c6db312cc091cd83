#!/usr/bin/env python3
"""Writes the bf16 product in stages, C = A * B, as ptxc IR, in one of two orders of the same instructions.

    gemm_bf16_stages.py naive        the loop body as one writes it first: all copies, all `ldmatrix`, all `mma`
    gemm_bf16_stages.py interleaved  by hand, as libraries do it: the fragments of the next slice of K are read and the
                                     tiles of the step ahead are copied between the `mma` of this slice

`examples/gemm_bf16_stages.ir` is the first with the defaults, `gemm_bf16_interleaved.ir` beside this the second.
Options choose another shape.
"""
import argparse


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("order", choices=["naive", "interleaved"])
    p.add_argument("--stages", type=int, default=4)
    p.add_argument("--step", type=int, default=32, choices=[32, 64])
    p.add_argument("--warps", default="2x2", help="warps of a block, rows x columns")
    p.add_argument("--blocks", type=int, default=2, help="blocks a multiprocessor holds")
    p.add_argument("--name", help="name of the kernel")
    return p.parse_args()


class Shape:
    """Sizes that follow from the options; lengths in elements unless they say bytes."""

    def __init__(self, o):
        self.rows = self.columns = 128
        self.step, self.stages, self.order = o.step, o.stages, o.order
        self.warp_rows, self.warp_columns = (int(x) for x in o.warps.split("x"))
        self.warps = self.warp_rows * self.warp_columns
        self.threads = 32 * self.warps
        self.wm, self.wn = self.rows // self.warp_rows, self.columns // self.warp_columns
        self.mi, self.nj, self.slices = self.wm // 16, self.wn // 8, self.step // 16
        self.a_bytes = self.rows * self.step * 2
        self.stage_bytes = self.a_bytes + self.columns * self.step * 2
        self.a_chunks, self.b_chunks = self.step // 8, self.columns // 8  # of 16 bytes, in a row of the tile
        self.a_copies = self.rows * self.a_chunks // self.threads
        self.b_copies = self.step * self.b_chunks // self.threads
        self.a_skip, self.b_skip = self.threads // self.a_chunks, self.threads // self.b_chunks  # rows between copies
        self.blocks = o.blocks
        self.name = o.name or "gemm_bf16_stages"


class Text:
    def __init__(self):
        self.lines = []

    def __call__(self, text):
        self.all(text.split("\n"))

    def all(self, lines):
        self.lines.extend("  " + line for line in lines)

    def raw(self, text=""):
        self.lines.append(text)


def log2(n):
    assert n & (n - 1) == 0, n
    return n.bit_length() - 1


def accumulators(s, prefix, typed=False):
    rows = []
    for i in range(s.mi):
        for j in range(0, s.nj, 2):
            rows.append(", ".join(f"%{prefix}{i}{c}_{e}" + (": f32" if typed else "") for c in (j, j + 1) for e in range(4)))
    return rows


def load_a(s, k, i, stage):
    r = ", ".join(f"%a{k}{i}_{e}" for e in range(4))
    offset = 16 * i * s.step * 2
    return f"{r} = ptx.ldmatrix.sync.aligned.m8n8.x4.shared.b16 [%fa{k}{stage}{f' + {offset}' if offset else ''}]"


def load_b(s, k, j, stage):
    r = f"%b{k}{j}_0, %b{k}{j}_1, %b{k}{j + 1}_0, %b{k}{j + 1}_1"
    offset = 16 * k * s.columns * 2
    return f"{r} = ptx.ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%fb{j // 2}{stage}{f' + {offset}' if offset else ''}]"


def mma(k, i, j, before, after):
    d = ", ".join(f"%{after}{i}{j}_{e}" for e in range(4))
    a = ", ".join(f"%a{k}{i}_{e}" for e in range(4))
    c = ", ".join(f"%{before}{i}{j}_{e}" for e in range(4))
    return f"{d} = ptx.mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {{{a}}}, {{%b{k}{j}_0, %b{k}{j}_1}}, {{{c}}}"


def copies(s, at, guard, pointers):
    """The copies of one step: from the pointers named into the stage that begins at `at`."""
    g = f"@{guard} " if guard else ""
    out = []
    for c in range(s.a_copies):
        o = c * s.a_skip * s.step * 2
        out.append(f"ptx.{g}cp.async.cg.shared.global [%a_to{at}{f' + {o}' if o else ''}], [{pointers('a', c)}], 16")
    for c in range(s.b_copies):
        o = c * s.b_skip * s.columns * 2
        out.append(f"ptx.{g}cp.async.cg.shared.global [%b_to{at}{f' + {o}' if o else ''}], [{pointers('b', c)}], 16")
    return out


def fragment_addresses(t, s, stage, at):
    """Where a lane reads its fragments of the stage at byte `at`."""
    for k in range(s.slices):
        t(f"%fa{k}{stage} = gep i8, %fa{k}, {at}")
    for p in range(s.nj // 2):
        t(f"%fb{p}{stage} = gep i8, %fb{p}, {at}")


def interleave(work, between):
    """`between` spread evenly over the gaps before and between `work`."""
    out, n = [], 0
    for i, w in enumerate(work):
        due = (i * len(between) + len(work) - 1) // len(work)
        while n < due:
            out.append(between[n])
            n += 1
        out.append(w)
    return out + between[n:]


def products(s, k, before, after):
    """The mma of slice k; every second row from right to left, so that neighbours share a fragment."""
    out = []
    for i in range(s.mi):
        for j in range(s.nj) if i % 2 == 0 or s.order == "naive" else reversed(range(s.nj)):
            out.append(mma(k, i, j, before, after))
    return out


HEAD = """\
; {name}: C = A * B on the tensor cores; A is M x K and B is K x N in bf16, C is M x N in f32, all row-major.
; Needs sm_80 or later.
;
; Launch: {threads} threads a block, as many blocks as C has tiles of 128 x 128, {shared} bytes of dynamic shared memory. M and N
; are multiples of 128, K of {step}.
;
; A block computes 128 x 128 of C in steps of {step} along K. The tiles of A and B are copied asynchronously, 16 bytes a copy,
; {ahead} steps ahead of the tensor cores, into a ring of {stages} stages; each step commits one group of copies, an empty one at the
; end, so that the group that a step waits for is always the same number of groups back. {Warps} warps, {wr} by {wc}, hold
; {wm} x {wn} of C each: {mi} x {nj} fragments of 16 x 8, %c<row><column>_<element>. Rows of the tiles are not padded: chunk c of
; 16 bytes of row r lies at chunk {swizzle} of A's, c ^ (r & 7) of B's, so that the eight rows that `ldmatrix`
; reads at a time fall into different banks. Blocks that are near in time share rows of A and columns of B in the
; second-level cache: eight rows of tiles are walked column by column.
;"""

NUMBERS = {2: "two", 4: "four", 8: "eight", 1: "one"}


def head(t, s):
    for line in HEAD.format(
        name=s.name, threads=s.threads, shared=s.stages * s.stage_bytes, step=s.step, ahead=s.stages - 1, stages=s.stages,
        Warps=NUMBERS[s.warps].capitalize(), wr=NUMBERS[s.warp_rows], wc=NUMBERS[s.warp_columns], wm=s.wm, wn=s.wn, mi=s.mi,
        nj=s.nj, swizzle="c ^ (r >> 1 & 3)" if s.step == 32 else "c ^ (r & 7)",
    ).split("\n"):
        t.raw(line)
    if s.order == "naive":
        t.raw("; The loop body stands in the order in which one thinks of it, all copies, all `ldmatrix`, all `mma`, although the last")
        t.raw("; fragments could wait and the `mma` need not: to interleave them is the compiler's work.")
    else:
        t.raw("; The loop body is interleaved by hand: the fragments of the next slice of 16 along K, and the copies, stand between the")
        t.raw("; `mma` of this slice. This file is written by gemm_bf16_stages.py, beside it.")
    t.raw(";")
    for d in [
        "target sm_80", "let m = 128", "let n = 256", f"let k = {s.step * (s.stages + 1)}",
        "buffer a: bf16[m * k] = random(1, -1, 1)", "buffer b: bf16[k * n] = random(2, -1, 1)", "buffer c: f32[m * n]",
        f"launch @{s.name}(m, n, k, a, b, c) grid((m / 128) * (n / 128)) shared({s.stages * s.stage_bytes})",
        "expect c = sum(j in 0..k: real(a[i / n * k + j]) * real(b[j * n + i % n])) where i % 13 == 0 absolute 1e-4",
    ]:
        t.raw(";! " + d)
    t.raw()
    t.raw(f"extern shared @stages: [0 x i8], align 128    ; [stage]: A's tile [row][k], then B's tile [k][column]")
    t.raw()
    t.raw(f"kernel @{s.name}(%m: i32, %n: i32, %k: i32, %a: ptr<global> noalias readonly align 16,")
    pad = " " * len(f"kernel @{s.name}(")
    t.raw(f"{pad}%b: ptr<global> noalias readonly align 16, %c: ptr<global> noalias align 16)")
    t.raw(f"    reqntid({s.threads}, 1, 1) minnctapersm({s.blocks}) {{")


def entry(t, s):
    t.raw("entry:")
    t(f"""\
%t    = sreg.tid.x
%tile = sreg.ctaid.x
%lane = and i32 %t, 31
%warp = lshr i32 %t, 5
; The tile of the block: groups of eight rows of tiles, the last perhaps of fewer.
%m_tiles = lshr i32 %m, 7
%n_tiles = lshr i32 %n, 7
%in_group = shl i32 %n_tiles, 3
%group   = udiv i32 %tile, %in_group
%place   = urem i32 %tile, %in_group
%first   = shl i32 %group, 3
%rows_left = sub i32 %m_tiles, %first
%group_rows = umin i32 %rows_left, 8
%tile_column = udiv i32 %place, %group_rows
%in_column = urem i32 %place, %group_rows
%tile_row = add i32 %first, %in_column
%row0 = shl i32 %tile_row, 7
%col0 = shl i32 %tile_column, 7
%k64  = zext i32 %k to i64
%n64  = zext i32 %n to i64""")
    t(f"""\
; Copies: rows %ar, %ar + {s.a_skip}, … of A's tile and %br, %br + {s.b_skip}, … of B's, one chunk of eight elements each.
%ar   = lshr i32 %t, {log2(s.a_chunks)}
%aq   = and i32 %t, {s.a_chunks - 1}
%br   = lshr i32 %t, {log2(s.b_chunks)}
%bq   = and i32 %t, {s.b_chunks - 1}
%ak   = shl i32 %aq, 3
%bc   = shl i32 %bq, 3
%a_row = add i32 %row0, %ar
%b_col = add i32 %col0, %bc
%a_row64 = zext i32 %a_row to i64
%b_row64 = zext i32 %br to i64
%a_line = mul i64 %a_row64, %k64
%b_line = mul i64 %b_row64, %n64
%a_begin = gep bf16, %a, %a_line
%b_begin = gep bf16, %b, %b_line
%a_next = shl i64 %k64, {log2(s.a_skip)}
%b_next = shl i64 %n64, {log2(s.b_skip)}
%b_step = shl i64 %n64, {log2(s.step)}
%ga0 = gep bf16, %a_begin, %ak
%gb0 = gep bf16, %b_begin, %b_col""")
    for c in range(1, s.a_copies):
        t(f"%ga{c} = gep bf16, %ga{c - 1}, %a_next")
    for c in range(1, s.b_copies):
        t(f"%gb{c} = gep bf16, %gb{c - 1}, %b_next")
    # A row's swizzle is the same for all copies of a thread and all fragments of a lane: their rows differ by multiples of 8.
    if s.step == 32:
        t("%ar_half = lshr i32 %ar, 1\n%a_turn = and i32 %ar_half, 3")
    else:
        t("%a_turn = and i32 %ar, 7")
    assert s.a_skip % 8 == 0
    if s.b_skip % 8:
        raise SystemExit("a shape whose copies of B turn differently is not written")
    t(f"""\
%b_turn = and i32 %br, 7
%aq_to = xor i32 %aq, %a_turn
%bq_to = xor i32 %bq, %b_turn
%a_to_row = shl i32 %ar, {log2(s.step * 2)}
%b_to_row = shl i32 %br, {log2(s.columns * 2)}
%a_to_q = shl i32 %aq_to, 4
%b_to_q = shl i32 %bq_to, 4
%a_to_in = or disjoint i32 %a_to_row, %a_to_q
%b_to_in = or disjoint i32 %b_to_row, %b_to_q
%a_to = gep i8, @stages, %a_to_in
%b_to = gep i8, @stages + {s.a_bytes}, %b_to_in
; Fragments: a lane hands `ldmatrix` the address of row lane mod 16, and of the upper eight columns if lane >= 16.
%wm    = lshr i32 %warp, {log2(s.warp_columns)}
%wn    = and i32 %warp, {s.warp_columns - 1}
%wrow  = shl i32 %wm, {log2(s.wm)}
%wcol  = shl i32 %wn, {log2(s.wn)}
%l_row = and i32 %lane, 15
%l_hi  = lshr i32 %lane, 4
%l_turn = and i32 %lane, 7
%fa_row = add i32 %wrow, %l_row
%fa_line = shl i32 %fa_row, {log2(s.step * 2)}
%fb_line = shl i32 %l_row, {log2(s.columns * 2)}
%fb_q0  = lshr i32 %wcol, 3""")
    if s.step == 32:
        t("%l_row_half = lshr i32 %l_row, 1\n%fa_turn = and i32 %l_row_half, 3")
    else:
        t("%fa_turn = and i32 %l_row, 7")
    for k in range(s.slices):
        t(f"""\
%fa_q{k} = add i32 %l_hi, {2 * k}
%fa_x{k} = xor i32 %fa_q{k}, %fa_turn
%fa_s{k} = shl i32 %fa_x{k}, 4
%fa_o{k} = or disjoint i32 %fa_line, %fa_s{k}
%fa{k} = gep i8, @stages, %fa_o{k}""")
    t("%fb_hi = add i32 %fb_q0, %l_hi")
    for p in range(s.nj // 2):
        t(f"""\
%fb_q{p + 1} = add i32 %fb_hi, {2 * p}
%fb_x{p} = xor i32 %fb_q{p + 1}, %l_turn
%fb_s{p} = shl i32 %fb_x{p}, 4
%fb_o{p} = or disjoint i32 %fb_line, %fb_s{p}
%fb{p} = gep i8, @stages + {s.a_bytes}, %fb_o{p}""")
    t(f"%steps = lshr i32 %k, {log2(s.step)}")


def pointers_after(step):
    return lambda matrix, c: f"%g{matrix}{c}" + (f"_{step}" if step else "")


def advance(t, s, before, after):
    for c in range(s.a_copies):
        t(f"%ga{c}{after} = gep i8, %ga{c}{before}, {s.step * 2}")
    for c in range(s.b_copies):
        t(f"%gb{c}{after} = gep bf16, %gb{c}{before}, %b_step")


def prologue(t, s):
    t(f"; The first {s.stages - 1} steps, as far as there are any.")
    for p in range(s.stages - 1):
        if p:
            t(f"%a_to_{p} = gep i8, %a_to, {p * s.stage_bytes}\n%b_to_{p} = gep i8, %b_to, {p * s.stage_bytes}")
        t(f"%start_{p} = icmp ugt i32 %steps, {p}")
        for line in copies(s, f"_{p}" if p else "", f"%start_{p}", pointers_after(p)):
            t(line)
        t("ptx.cp.async.commit_group")
        advance(t, s, f"_{p}" if p else "", f"_{p + 1}")


def pointer_names(s, suffix, typed=False):
    kind = ": ptr<global>" if typed else ""
    return (", ".join(f"%ga{c}{suffix}{kind}" for c in range(s.a_copies)),
            ", ".join(f"%gb{c}{suffix}{kind}" for c in range(s.b_copies)))


def jump(t, label, rows, close=")"):
    first = f"  jump {label}("
    t.raw(first + rows[0] + ",")
    for i, r in enumerate(rows[1:]):
        t.raw(" " * len(first) + r + ("," if i + 2 < len(rows) else close))


def label(t, name, rows):
    first = f"{name}("
    t.raw(first + rows[0] + ",")
    for i, r in enumerate(rows[1:]):
        t.raw(" " * len(first) + r + ("," if i + 2 < len(rows) else "):"))


def zero_rows(s):
    return [", ".join(["0.0"] * 8)] * (s.mi * s.nj // 2)


def turn(t, s):
    """The ring: the stage that is filled becomes the one before the stage that is read, and both go on by one."""
    last = (s.stages - 1) * s.stage_bytes
    t(f"""\
%at_end = icmp eq i32 %read, {last}
%at_more = add i32 %read, {s.stage_bytes}
%read_next = select i1 %at_end, i32 0, %at_more""")


def fragment_names(s, k, typed=False, prefix=""):
    kind = ": i32" if typed else ""
    a = [f"%{prefix}a{k}{i}_{e}{kind}" for i in range(s.mi) for e in range(4)]
    b = [f"%{prefix}b{k}{j}_{e}{kind}" for j in range(s.nj) for e in range(2)]
    names = a + b
    return [", ".join(names[i:i + 8]) for i in range(0, len(names), 8)]


def reads(s, k, stage, prefix=""):
    """Slice k of a step, in the order in which the mma need it: the first row of A and all of B, then the other rows."""
    a = [load_a(s, k, i, stage) for i in range(s.mi)]
    b = [load_b(s, k, j, stage) for j in range(0, s.nj, 2)]
    lines = a[:1] + b + a[1:] if s.order == "interleaved" else a + b
    return [x.replace("%a0", f"%{prefix}a0").replace("%b0", f"%{prefix}b0") if prefix else x for x in lines]


def loop(t, s):
    ready = [f"ptx.cp.async.wait_group {s.stages - 2}", "barrier.sync aligned 0"]
    t("; The first slice of the first step.")
    t.all(ready + reads(s, 0, "", "first_"))
    parameters = ["%step: i32, %read: i32, %write: i32", *pointer_names(s, "_at", True), *fragment_names(s, 0, True), *accumulators(s, "c", True)]
    begin = [f"0, 0, {(s.stages - 1) * s.stage_bytes}", *pointer_names(s, f"_{s.stages - 1}"), *fragment_names(s, 0, False, "first_"), *zero_rows(s)]
    jump(t, "steps", begin)
    t.raw()
    label(t, "steps", parameters)
    t(f"%ahead = add i32 %step, {s.stages - 1}\n%more = icmp ult i32 %ahead, %steps")
    t("%a_to_at = gep i8, %a_to, %write\n%b_to_at = gep i8, %b_to, %write")
    fragment_addresses(t, s, "_at", "%read")
    turn(t, s)
    for p in range(s.nj // 2):
        t(f"%fb{p}_on = gep i8, %fb{p}, %read_next")
    t("%fa0_on = gep i8, %fa0, %read_next")
    names = "cxyzw"
    copying = copies(s, "_at", "%more", lambda m, c: f"%g{m}{c}_at") + ["ptx.cp.async.commit_group"]
    meant = [
        "; The tiles of the next step are there, for everybody after the barrier, and everybody has read all of this step's.",
        *ready,
    ]
    last = s.slices - 1

    def heading(k):
        return [f"; Columns {16 * k} to {16 * k + 15} of the step."]

    if s.order == "naive":
        t.all(["; The copies of the step ahead.", *copying])
        for k in range(1, s.slices):
            t.all([f"; Fragments: columns {16 * k} to {16 * k + 15} of the step, whose first {16 * k} are there already.", *reads(s, k, "_at")])
        t.all([*meant, "; Fragments: the first columns of the next step.", *reads(s, 0, "_on", "next_")])
        for k in range(s.slices):
            t.all(heading(k) + products(s, k, names[k], names[k + 1]))
    else:
        # The copies stand together behind the last fragments of the step: each change from `ldmatrix` to copies costs more.
        for k in range(s.slices):
            between = reads(s, k + 1, "_at") if k < last else reads(s, 0, "_on", "next_")
            if k == last - 1:
                between += copying
            if k == last:
                t.all(meant)
            t.all(heading(k) + interleave(products(s, k, names[k], names[k + 1]), between))
    advance(t, s, "_at", "_on")
    t("%step_next = add nuw i32 %step, 1\n%again = icmp ult i32 %step_next, %steps")
    result = names[s.slices]
    out = ["%step_next, %read_next, %read", *pointer_names(s, "_on"), *fragment_names(s, 0, False, "next_"), *accumulators(s, result)]
    t("br %again, steps(" + out[0] + ",")
    for i, r in enumerate(out[1:]):
        t(" " * 18 + r + ("," if i + 2 < len(out) else "), store, uniform"))
    return result


def store(t, s, last):
    t.raw()
    t.raw("store:")
    t("; Fragment (i, j): rows lane / 4 and + 8 of 16, columns 2 (lane mod 4) and + 1 of 8.")
    t(f"""\
%o_r   = lshr i32 %lane, 2
%o_q   = and i32 %lane, 3
%o_c   = shl i32 %o_q, 1
%o_row1 = add i32 %row0, %wrow
%o_row = add i32 %o_row1, %o_r
%o_col1 = add i32 %col0, %wcol
%o_col = add i32 %o_col1, %o_c
%o_row64 = zext i32 %o_row to i64
%o_line = mul i64 %o_row64, %n64
%o_begin = gep f32, %c, %o_line
%o_0   = gep f32, %o_begin, %o_col
%o_next = shl i64 %n64, 3""")
    for r in range(2 * s.mi):
        if r:
            t(f"%o_{r}   = gep f32, %o_{r - 1}, %o_next")
        i, e = r // 2, 2 * (r % 2)
        for j in range(s.nj):
            t(f"%v{r}_{j} = vector <2 x f32> %{last}{i}{j}_{e}, %{last}{i}{j}_{e + 1}")
            to = f"%o_{r}"
            if j:
                t(f"%to{r}_{j} = gep f32, %o_{r}, {8 * j}")
                to = f"%to{r}_{j}"
            t(f"store <2 x f32> %v{r}_{j}, {to}, align 8")
    t("ret")
    t.raw("}")


def main():
    s = Shape(parse())
    t = Text()
    head(t, s)
    entry(t, s)
    prologue(t, s)
    store(t, s, loop(t, s))
    print("\n".join(t.lines))


main()
