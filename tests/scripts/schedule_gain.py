#!/usr/bin/env python3
"""What the scheduler gains: every kernel of examples/ and of the programs that clang made, with and without it, on a GPU.

    schedule_gain.py prepare FOLDER [--clang DIRECTORY] [--ptxc ptxc] [--ptxas ptxas] [--off OPTIONS|llvm] [--on OPTIONS]
    schedule_gain.py measure FOLDER [--rounds 40] [--only NAME,...]
    schedule_gain.py table FOLDER RESULTS          the table again, as Markdown

The first compiles all at -O3 both ways and assembles them with the same ptxas: no GPU is needed. It notes registers, spills,
the length of the machine code, the scheduler's prediction, and how much of the new order ptxas kept. DIRECTORY holds `o2/`
and `raw/` with LLVM IR. `--off llvm` compares with what rustc's libLLVM makes of that IR at -O3 instead. The second needs a GPU and CuPy. It takes each pair in turn, with the order of the two reversed from
round to round, so that clocks and temperature are the same for both; the ratio is the median over the rounds of the ratio
in a round, and each round runs a kernel often enough for a millisecond. Results are compared bit for bit.
"""
import argparse, ctypes, difflib, glob, json, math, os, re, statistics, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import schedule_kernels as launches

WAYS = ("off", "on")


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(" ".join(command) + "\n" + done.stderr[:2000])
    return done.stdout + done.stderr


def sources(o):
    for path in sorted(glob.glob(os.path.join(HERE, "../../examples/*.ir"))):
        yield "examples", path
    for kind in ("o2", "raw"):
        for path in sorted(glob.glob(f"{o.clang}/{kind}/*.ll")) if o.clang else []:
            yield kind, path


def orders(text):
    """The instructions of each kernel of nvdisasm's output, without addresses and registers."""
    kernels, now = {}, None
    for line in text.splitlines():
        begin = re.match(r"\.text\.(\w+):", line)
        if begin:
            now = kernels.setdefault(begin.group(1), [])
        found = re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", line)
        if found and now is not None and not found.group(1).startswith("NOP"):
            now.append(re.sub(r"\b(UR|R|P|UP|B)\d+\b", r"\1", found.group(1)))
    return kernels


def bodies(ptx):
    """The instructions of each kernel in PTX, without registers."""
    kernels, now = {}, None
    for line in ptx.splitlines():
        begin = re.search(r"\.entry (\w+)", line)
        if begin:
            now = kernels.setdefault(begin.group(1), [])
        line = line.strip()
        if now is not None and line.endswith(";") and not line.startswith("."):
            now.append(re.sub(r"%\w+", "%", line))
    return kernels


def likeness(a, b):
    """How much of two sequences stands in the same order, from 0 to 1."""
    return 1.0 if a == b else difflib.SequenceMatcher(None, a, b, autojunk=False).ratio()


def predictions(text):
    """Cycles of each kernel in what `--emit sched` prints, summed over its blocks."""
    found, name = {}, None
    for kernel, cycles in re.findall(r"^(?:@(\w+) on |\w+: \d+ instructions,.*?(\d+) cycles)", text, re.MULTILINE):
        name = kernel or name
        found[name] = found.get(name, 0) + int(cycles or 0)
    return found


def ptx_of(o, options, path):
    """The PTX of a file, and what the scheduler predicts for each kernel."""
    if options == "llvm":
        # In a process of its own: LLVM ends the process on what it cannot select.
        command = f"import sys, pattern_counts as p; print(p.Llvm('{o.arch}').compile(open(sys.argv[1]).read()))"
        return run([sys.executable, "-c", f"import sys; sys.path.insert(0, {HERE!r}); {command}", path]), {}
    compile = [o.ptxc, path, "-O3", "--sm", o.arch, *options.split()]
    return run(compile), predictions(run([*compile, "--emit", "sched"]))


def prepare(o):
    os.makedirs(o.folder, exist_ok=True)
    jobs = []
    table = {"examples": launches.EXAMPLES, "o2": launches.CLANG, "raw": launches.CLANG}
    for kind, path in sources(o):
        module = f"{kind}.{os.path.splitext(os.path.basename(path))[0]}"
        made = {}
        try:
            for way, options in zip(WAYS, (o.off, o.on)):
                base = f"{o.folder}/{module}.{way}"
                if options == "llvm" and kind == "examples":
                    raise RuntimeError("LLVM does not read this language")
                text, predicted = ptx_of(o, options, path)
                open(base + ".ptx", "w").write(text)
                assembled = run([o.ptxas, "-v", f"-arch={o.arch}", base + ".ptx", "-o", base + ".cubin"])
                used = dict(re.findall(r"Compiling entry function '(\w+)'.*?Used (\d+) registers", assembled, re.S))
                spills = dict(re.findall(r"Compiling entry function '(\w+)'.*?(\d+) bytes spill stores", assembled, re.S))
                code = orders(run([o.nvdisasm, "-c", base + ".cubin"]))
                made[way] = used, spills, code, bodies(text), predicted
        except RuntimeError as error:
            print(module, "left out:", error)
            continue
        for kernel in made["off"][0]:
            if kernel not in table[kind]:
                print(f"{module}: {kernel} has no launch")
                continue
            job = dict(module=module, kind=kind, kernel=kernel, independent=kernel in launches.INDEPENDENT[kind])
            for way in WAYS:
                used, spills, code, _, cycles = made[way]
                job[way] = dict(registers=int(used[kernel]), spills=int(spills[kernel]), instructions=len(code[kernel]),
                                predicted=cycles.get(kernel, 0))
            job["ptx"] = likeness(made["off"][3][kernel], made["on"][3][kernel])
            job["sass"] = likeness(made["off"][2][kernel], made["on"][2][kernel])
            jobs.append(job)
    json.dump(jobs, open(f"{o.folder}/jobs.json", "w"), indent=1)
    changed = [j for j in jobs if j["ptx"] < 1]
    print(len(jobs), "kernels;", len(changed), "in another order in PTX,", sum(j["sass"] < 1 for j in changed), "of these in machine code too")
    for j in jobs:
        old, new = j["off"], j["on"]
        if j["ptx"] < 1 or old != new:
            print(f"{j['module'][:24]:24} {j['kernel'][:20]:20} ptx {j['ptx']:.2f} sass {j['sass']:.2f} registers {old['registers']} -> "
                  f"{new['registers']}, instructions {old['instructions']} -> {new['instructions']}"
                  + (f", SPILLS {old['spills']} -> {new['spills']}" if new["spills"] or old["spills"] else ""))
    ratio = [j["on"]["registers"] / j["off"]["registers"] for j in jobs]
    print("registers:", f"{statistics.mean(ratio):.4f} on the mean")


class Card:
    """The driver, and memory through CuPy."""

    def __init__(self):
        import cupy
        self.xp, self.cu = cupy, ctypes.CDLL("libcuda.so.1")
        cupy.zeros(1)
        # The interpreter recurses.
        self.ok(self.cu.cuCtxSetLimit(0, ctypes.c_size_t(16 << 10)), "stack")
        self.stream = ctypes.c_void_p(cupy.cuda.get_current_stream().ptr)
        self.made = {}

    def ok(self, result, what):
        if result:
            raise RuntimeError(f"{what}: error {result}")

    def function(self, cubin, name):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.ok(self.cu.cuModuleLoadData(ctypes.byref(module), open(cubin, "rb").read()), cubin)
        self.ok(self.cu.cuModuleGetFunction(ctypes.byref(function), module, name.encode()), name)
        return function

    def array(self, spec):
        kind, n, low, high = spec
        xp, random = self.xp, self.xp.random
        if kind == "zeros":
            return xp.zeros(n, dict(f32="float32", f64="float64", f16="float16", u8="uint8", u16="uint16", u32="uint32", u64="uint64", i32="int32")[low])
        if kind == "made":
            return xp.ascontiguousarray(high(xp))
        if kind in ("f32", "f16", "bf16"):
            x = random.random(n, dtype="float32") * (high - low) + low
            return x if kind == "f32" else x.astype("float16") if kind == "f16" else (x.view("uint32") >> 16).astype("uint16")
        if kind == "f64":
            return random.random(n, dtype="float64") * (high - low) + low
        x = random.random(n, dtype="float64") * (float(high) - low) + low
        return x.astype(dict(u8="uint8", u32="uint32", u64="uint64", i32="int32")[kind])


class Launch:
    """One kernel's buffers, arguments and sizes, the same for both ways."""

    def __init__(self, card, spec):
        self.card, self.buffers, self.restore, store = card, [], [], []
        grid, block, arguments, *shared = spec
        self.grid, self.block, self.shared = (list(grid) + [1, 1])[:3], (list(block) + [1, 1])[:3], shared[0] if shared else 0
        for argument in arguments:
            raw = b"".join(map(self.bytes_of, argument[1])) if argument[0] == "struct" else self.bytes_of(argument)
            store.append(ctypes.create_string_buffer(raw, len(raw)))
        self.first = [b.copy() for b in self.buffers]
        self.store = store
        self.pointers = (ctypes.c_void_p * len(store))(*[ctypes.cast(ctypes.pointer(s), ctypes.c_void_p) for s in store])

    def bytes_of(self, a):
        import struct
        kind = a[0]
        if kind == "i":
            return struct.pack("<I", a[1] & 0xFFFFFFFF)
        if kind == "l":
            return struct.pack("<Q", a[1] & (1 << 64) - 1)
        if kind in "fd" and len(a) == 2:
            return struct.pack("<" + kind, a[1])
        if kind == "b":
            return a[1]
        if kind == "p":
            return self.bytes_of(a[1])
        again = kind == "again"
        self.buffers.append(self.card.array(a[2] if again else a))
        if again:
            self.restore.append(len(self.buffers) - 1)
        return struct.pack("<Q", self.buffers[-1].data.ptr)

    def fresh(self):
        for buffer, first in zip(self.buffers, self.first):
            buffer[...] = first

    def go(self, function):
        for at in self.restore:
            b, f = self.buffers[at], self.first[at]
            self.card.cu.cuMemcpyDtoDAsync_v2(ctypes.c_uint64(b.data.ptr), ctypes.c_uint64(f.data.ptr), ctypes.c_size_t(b.nbytes), self.card.stream)
        self.card.ok(self.card.cu.cuLaunchKernel(function, *self.grid, *self.block, self.shared, self.card.stream, self.pointers, None), "launch")


def measure(o):
    """Measures in a process of its own, and goes on with another behind a kernel that fails, which takes the process along."""
    out = o.results or os.path.join(os.environ.get("OUT", o.folder), "results.json")
    lines = out + ".lines"
    open(lines, "w").close()
    jobs = chosen(o)
    while (done := sum(1 for _ in open(lines))) < len(jobs):
        child = subprocess.run([sys.executable, *sys.argv, "--begin", str(done), "--lines", lines], stderr=subprocess.PIPE, text=True)
        reached = sum(1 for _ in open(lines))
        if child.returncode and reached < len(jobs):
            print(jobs[reached]["module"], jobs[reached]["kernel"], "FAILS:", (child.stderr.strip() or "?").splitlines()[-1])
            open(lines, "a").write("null\n")
    jobs = [j for j in map(json.loads, open(lines)) if j]
    json.dump(jobs, open(out, "w"), indent=1)
    os.remove(lines)
    summary(jobs)


def chosen(o):
    jobs = json.load(open(f"{o.folder}/jobs.json"))
    return [j for j in jobs if not o.only or j["kernel"] in o.only.split(",")]


def measure_from(o):
    import cupy
    card = Card()
    jobs = chosen(o)[o.begin:]
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()

    def time(launch, function, count):
        begin.record()
        for _ in range(count):
            launch.go(function)
        end.record()
        end.synchronize()
        return cupy.cuda.get_elapsed_time(begin, end) / count

    for j in jobs:
        cupy.random.seed(3)
        launch = Launch(card, (launches.EXAMPLES if j["kind"] == "examples" else launches.CLANG)[j["kernel"]])
        functions = {w: card.function(f"{o.folder}/{j['module']}.{w}.cubin", j["kernel"]) for w in WAYS}
        for f in functions.values():
            if launch.shared:
                card.ok(card.cu.cuFuncSetAttribute(f, 8, launch.shared), "shared memory")
        kept = {}
        for way in WAYS:
            launch.fresh()
            launch.go(functions[way])
            cupy.cuda.runtime.deviceSynchronize()
            kept[way] = [b.copy() for b in launch.buffers]
        # CuPy compares NaN as unequal: bits.
        same = all(bool((a.view("uint8") == b.view("uint8")).all()) for a, b in zip(kept["off"], kept["on"]))
        j["bits"] = "same" if same else "unordered" if j["kernel"] in launches.UNORDERED else "DIFFERENT"
        del kept
        once = min(time(launch, functions["off"], 2) for _ in range(2))
        count = max(2, min(200, math.ceil(o.batch / once)))
        times = {w: [] for w in WAYS}
        for r in range(o.rounds + 2):
            for way in WAYS if r % 2 == 0 else reversed(WAYS):
                t = time(launch, functions[way], count)
                if r >= 2:
                    times[way].append(t)
        ratios = sorted(a / b for a, b in zip(times["on"], times["off"]))
        j["us"] = [1e3 * statistics.median(times[w]) for w in WAYS]
        j["ratio"] = statistics.median(ratios)
        # The error of a median, from the quartiles.
        j["error"] = 1.25 * 0.74 * (ratios[3 * len(ratios) // 4] - ratios[len(ratios) // 4]) / math.sqrt(len(ratios))
        print(line(j), flush=True)
        with open(o.lines, "a") as lines:
            lines.write(json.dumps(j) + "\n")
        del launch
        cupy.get_default_memory_pool().free_all_blocks()


def line(j):
    order = "same" if j["ptx"] == 1 else "undone" if j["sass"] == 1 else f"{100 * (1 - j['sass']):.0f} % other"
    predicted = f"{j['off']['predicted']} -> {j['on']['predicted']}"
    return (f"{j['module'][:22]:22} {j['kernel'][:18]:18} {j['us'][0]:9.1f} us {j['ratio']:6.3f} +-{j['error']:.3f} {j['on']['registers']:4}/{j['off']['registers']:<4}"
            f" {j['on']['instructions']:5}/{j['off']['instructions']:<5} {order:10} {predicted:18} {'*' if j['independent'] else ' '} {'' if j['bits'] == 'same' else j['bits']}")


def mean(values):
    values = list(values)
    return math.exp(statistics.mean(map(math.log, values))) if values else float("nan")


def summary(jobs):
    long = [j for j in jobs if j["us"][0] >= 20]
    named = [j for j in long if j["independent"]]
    print(f"{len(jobs)} kernels, {len(jobs) - len(long)} too short to time; geometric mean of the ratio {mean(j['ratio'] for j in long):.4f}, "
          f"of the {len(named)} with independent work {mean(j['ratio'] for j in named):.4f}; registers {statistics.mean(j['on']['registers'] / j['off']['registers'] for j in jobs):.4f} on the mean")
    print("slower than 1.01:", [(j["module"], j["kernel"], round(j["ratio"], 3)) for j in long if j["ratio"] > 1.01])
    print("bits differ:", [(j["module"], j["kernel"]) for j in jobs if j["bits"] == "DIFFERENT"])


def table(o):
    jobs = json.load(open(o.results))
    print("| kernel | time, us | ratio | registers | machine instructions | predicted cycles | order in PTX / machine code |\n| --- | ---: | ---: | ---: | ---: | ---: | --- |")
    for j in jobs:
        order = "as before" if j["ptx"] == 1 else "changed / undone by ptxas" if j["sass"] == 1 else f"changed / {100 * j['sass']:.0f} % as before"
        print(f"| {j['module']} {j['kernel']}{' *' if j['independent'] else ''} | {j['us'][0]:.1f} | {j['ratio']:.3f} | {j['off']['registers']} → {j['on']['registers']} | "
              f"{j['off']['instructions']} → {j['on']['instructions']} | {j['off']['predicted']} → {j['on']['predicted']} | {order} |")
    summary(jobs)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("action", choices=["prepare", "measure", "table"])
    p.add_argument("folder")
    p.add_argument("results", nargs="?")
    p.add_argument("--clang")
    p.add_argument("--ptxc", default="ptxc")
    p.add_argument("--ptxas", default=os.environ.get("PTXAS", "ptxas"))
    p.add_argument("--nvdisasm", default="nvdisasm")
    p.add_argument("--arch", default="sm_90a")
    p.add_argument("--off", default="--schedule off")
    p.add_argument("--on", default="")
    p.add_argument("--rounds", type=int, default=40)
    p.add_argument("--batch", type=float, default=1.0, help="milliseconds a kernel is repeated in a round")
    p.add_argument("--only", help="kernels, by name")
    p.add_argument("--begin", type=int, default=-1, help=argparse.SUPPRESS)
    p.add_argument("--lines", help=argparse.SUPPRESS)
    o = p.parse_args()
    {"prepare": prepare, "measure": measure if o.begin < 0 else measure_from, "table": table}[o.action](o)


main()
