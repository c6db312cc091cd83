#!/usr/bin/env python3
"""The bf16 product in stages against Triton's kernel of the same tile, on a GPU.

    gemm_stages_speed.py prepare FOLDER [--ptxc ptxc] [--ptxas ptxas] [--arch sm_90a]
    gemm_stages_speed.py measure FOLDER [--sizes 4096x4096x4096,8192x8192x4096] [--rounds 40]

The first writes cubins and jobs.json: examples/gemm_bf16_stages.ir without and with scheduling, the order interleaved by
hand (benches/kernels/), and Triton's matrix product, compiled for compute capability 80 so that it is made of mma.sync as
well. ptxas is the same for all. It needs Triton but no GPU. The second needs a GPU and PyTorch (memory, the reference) and
takes the kernels in changing turn, so that clocks and temperature are the same for all; the times are medians over the rounds,
the ratios means over the rounds of the time by that of the order by hand in the same round, with their standard error.
"""
import argparse, ctypes, json, os, statistics, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def triton_source():
    import triton
    import triton.language as tl

    @triton.jit
    def matmul(a, b, c, M, N, K, sam, sbk, scm, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr):
        pid = tl.program_id(0)
        nm = tl.cdiv(M, BM)
        nn = tl.cdiv(N, BN)
        in_group = G * nn
        group = pid // in_group
        first = group * G
        size = min(nm - first, G)
        pm = first + (pid % in_group) % size
        pn = (pid % in_group) // size
        rows = (pm * BM + tl.arange(0, BM)) % M
        cols = (pn * BN + tl.arange(0, BN)) % N
        ks = tl.arange(0, BK)
        pa = a + rows[:, None] * sam + ks[None, :]
        pb = b + ks[:, None] * sbk + cols[None, :]
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            x = tl.load(pa, mask=ks[None, :] < K - k * BK, other=0.0)
            y = tl.load(pb, mask=ks[:, None] < K - k * BK, other=0.0)
            acc = tl.dot(x, y, acc)
            pa += BK
            pb += BK * sbk
        rows = pm * BM + tl.arange(0, BM)
        cols = pn * BN + tl.arange(0, BN)
        pc = c + scm * rows[:, None] + cols[None, :]
        tl.store(pc, acc, mask=(rows[:, None] < M) & (cols[None, :] < N))

    return matmul


def triton_ptx(step, warps, stages):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    fn = triton_source()
    signature = dict(a="*bf16", b="*bf16", c="*fp32", M="i32", N="i32", K="i32", sam="i32", sbk="i32", scm="i32",
                     BM="constexpr", BN="constexpr", BK="constexpr", G="constexpr")
    values = {(fn.arg_names.index(n),): v for n, v in dict(BM=128, BN=128, BK=step, G=8).items()}
    attrs = {(i,): [["tt.divisibility", 16]] for i in range(9)}
    source = ASTSource(fn=fn, signature=signature, constexprs=values, attrs=attrs)
    made = triton.compile(source, target=GPUTarget("cuda", 80, 32), options=dict(num_warps=warps, num_stages=stages))
    return made.asm["ptx"], made.metadata.name, made.metadata.shared


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(" ".join(command) + "\n" + done.stderr)
    return done.stdout + done.stderr


def prepare(o):
    os.makedirs(o.folder, exist_ok=True)
    jobs = []

    def add(name, ptx, kernel, kind, threads, shared):
        path = f"{o.folder}/{name}.ptx"
        if ptx:
            open(path, "w").write(ptx)
        told = run([o.ptxas, "-v", f"-arch={o.arch}", path, "-o", f"{o.folder}/{name}.cubin"])
        registers = int(told.split("Used ")[1].split(" ")[0])
        if " 0 bytes spill stores" not in told:
            print(name, "spills")
        jobs.append(dict(name=name, kernel=kernel, kind=kind, threads=threads, shared=shared, registers=registers))

    for name, ir, options in ours(o):
        text = open(ir).read()
        kernel = text.split("kernel @")[1].split("(")[0]
        threads = int(text.split("reqntid(")[1].split(",")[0])
        shared = int(text.split("shared(")[1].split(")")[0])
        run([o.ptxc, ir, "-O3", "--sm", o.arch, *options, "-o", f"{o.folder}/{name}.ptx"])
        add(name, None, kernel, "ptxc", threads, shared)
    for config in o.triton.split(","):
        if not config:
            continue
        step, warps, stages = (int(x) for x in config.split("x"))
        ptx, kernel, shared = triton_ptx(step, warps, stages)
        ptx = ptx.replace(".target sm_80", f".target {o.arch}") if o.retarget else ptx
        add(f"triton-k{step}-w{warps}-s{stages}", ptx, kernel, "triton", 32 * warps, shared)
    json.dump(jobs, open(f"{o.folder}/jobs.json", "w"), indent=1)
    for j in jobs:
        print(f"{j['name']:32} {j['threads']:4} threads {j['shared']:7} bytes {j['registers']:4} registers")


def ours(o):
    if o.kernels:
        for k in o.kernels.split(","):
            name, path, *options = k.split(":")
            yield name, path, options
        return
    naive, hand = f"{ROOT}/examples/gemm_bf16_stages.ir", f"{ROOT}/benches/kernels/gemm_bf16_interleaved.ir"
    yield "naive", naive, ["--schedule", "off"]
    yield "interleaved", hand, ["--schedule", "off"]
    yield "scheduled", naive, []
    yield "interleaved-scheduled", hand, []


def measure(o):
    import torch

    cu = ctypes.CDLL("libcuda.so.1")

    def ok(r, what):
        if r:
            raise SystemExit(f"{what}: error {r}")

    torch.zeros(1, device="cuda")
    jobs = json.load(open(f"{o.folder}/jobs.json"))
    for j in jobs:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        ok(cu.cuModuleLoadData(ctypes.byref(module), open(f"{o.folder}/{j['name']}.cubin", "rb").read()), j["name"])
        ok(cu.cuModuleGetFunction(ctypes.byref(function), module, j["kernel"].encode()), j["kernel"])
        ok(cu.cuFuncSetAttribute(function, 8, j["shared"]), "shared memory")
        j["function"] = function
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    for size in o.sizes.split(","):
        m, n, k = (int(x) for x in size.split("x"))
        torch.manual_seed(1)
        a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(k, n, device="cuda", dtype=torch.bfloat16)
        c = torch.empty(m, n, device="cuda", dtype=torch.float32)
        want = torch.matmul(a, b).float()
        exact = a[:64].double() @ b.double()

        def launch(j):
            ints = [m, n, k] if j["kind"] == "ptxc" else []
            pointers = [x.data_ptr() for x in (a, b, c)]
            if j["kind"] == "ptxc":
                args = [ctypes.c_int(x) for x in ints] + [ctypes.c_uint64(x) for x in pointers]
            else:
                args = [ctypes.c_uint64(x) for x in pointers] + [ctypes.c_int(x) for x in (m, n, k, k, n, n)]
                args += [ctypes.c_uint64(0), ctypes.c_uint64(0)]
            array = (ctypes.c_void_p * len(args))(*[ctypes.cast(ctypes.pointer(x), ctypes.c_void_p) for x in args])
            grid = (m // 128) * (n // 128)
            ok(cu.cuLaunchKernel(j["function"], grid, 1, 1, j["threads"], 1, 1, j["shared"], stream, array, None), j["name"])

        first = None
        for j in jobs:
            c.fill_(float("nan"))
            launch(j)
            torch.cuda.synchronize()
            j["error"] = ((c[:64].double() - exact).norm() / exact.norm()).item()
            far = ((c - want).norm() / want.norm()).item()
            if not (j["error"] < 1e-5 and far < 5e-3):
                print(f"{j['name']} IS WRONG: {j['error']} {far}")
            first = c.clone() if first is None else first
            j["same"] = bool((c == first).all())
            j["times"] = []
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        everything = jobs + [dict(name="cublas", times=[], error=0, same=False, registers=0)] if o.cublas else jobs
        for r in range(o.rounds + 3):
            # Another begins each round, and every second goes backwards: what stands before it is not always the same.
            turned = everything[r % len(everything):] + everything[:r % len(everything)]
            for j in turned if r % 2 else reversed(turned):
                begin.record()
                for _ in range(o.launches):
                    if j["name"] == "cublas":
                        torch.matmul(a, b)
                    else:
                        launch(j)
                end.record()
                end.synchronize()
                if r >= 3:
                    j["times"].append(begin.elapsed_time(end) / o.launches)
        print(f"{m} x {n} x {k}:")
        base = next((j for j in jobs if j["name"] == "interleaved"), jobs[0])["times"]
        for j in everything:
            t = sorted(j["times"])
            median = statistics.median(t)
            spread = (t[3 * len(t) // 4] - t[len(t) // 4]) / median
            ratios = [x / y for x, y in zip(j["times"], base)]
            error = statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else 0
            print(f"  {j['name']:32} {2 * m * n * k / median / 1e9:7.1f} TFLOP/s {1e3 * median:9.1f} us, ratio {statistics.fmean(ratios):7.4f} +- {error:6.4f}, "
                  f"quartiles {100 * spread:4.1f} %, {j['registers']} registers, {'same bits' if j['same'] else 'other bits'}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("action", choices=["prepare", "measure"])
    p.add_argument("folder")
    p.add_argument("--ptxc", default="ptxc")
    p.add_argument("--ptxas", default=os.environ.get("PTXAS", "ptxas"))
    p.add_argument("--arch", default="sm_90a")
    p.add_argument("--kernels", help="name:file[:option...], ... instead of the usual four")
    p.add_argument("--triton", default="32x4x3,32x4x4,64x4x3,32x8x4", help="STEPxWARPSxSTAGES, ...")
    p.add_argument("--retarget", action="store_true")
    p.add_argument("--sizes", default="4096x4096x4096,8192x8192x4096")
    p.add_argument("--rounds", type=int, default=40)
    p.add_argument("--launches", type=int, default=5)
    p.add_argument("--cublas", action="store_true", help="the library's product too, of another instruction (wgmma)")
    o = p.parse_args()
    prepare(o) if o.action == "prepare" else measure(o)


main()
