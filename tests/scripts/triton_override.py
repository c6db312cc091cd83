#!/usr/bin/env python3
"""Kernels of tests/scripts/triton_kernels.py in Triton, once as Triton compiles them and once with the PTX that ptxc makes
of the LLVM IR that Triton dumps (its kernel override). Prints the time of both and the largest difference of the results.

Needs a GPU, PyTorch and Triton. usage: triton_override.py PTXC [--sm sm_90a]
"""
import glob
import os
import pickle
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def kernels(results, **settings):
    environment = dict(os.environ, TRITON_ALWAYS_COMPILE="1", **settings)
    run = subprocess.run([sys.executable, os.path.join(HERE, "triton_kernels.py"), results], env=environment,
                         capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr[-2000:])
    return pickle.load(open(results, "rb")), (run.stdout + run.stderr).lower().count("overriding")


def main():
    args = sys.argv[1:]
    sm = "sm_90a"
    if "--sm" in args:
        at = args.index("--sm")
        sm = args[at + 1]
        del args[at:at + 2]
    command = os.path.abspath(args[0])
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        theirs, _ = kernels(path("theirs"), TRITON_CACHE_DIR=path("cache1"), TRITON_KERNEL_DUMP="1",
                            TRITON_DUMP_DIR=path("dump"))
        compiled = failed = 0
        for file in sorted(glob.glob(path("dump/**/*.llir"), recursive=True)):
            base = file.replace(path("dump"), path("override"), 1)[:-len(".llir")]
            os.makedirs(os.path.dirname(base), exist_ok=True)
            os.rename(file, file + ".ll")
            run = subprocess.run([command, file + ".ll", "-O3", "--sm", sm, "-o", base + ".ptx"], capture_output=True,
                                 text=True)
            compiled += 1
            if run.returncode:
                failed += 1
                print(f"{os.path.basename(base)}: {run.stderr[:300]}")
        ours, overridden = kernels(path("ours"), TRITON_CACHE_DIR=path("cache2"), TRITON_KERNEL_OVERRIDE="1",
                                   TRITON_OVERRIDE_DIR=path("override"))
    print(f"{compiled} kernels compiled, {failed} refused, {overridden} overridden")
    print("| kernel | Triton us | ptxc us | ratio | largest difference |\n|---|---|---|---|---|")
    for name, (result, time) in theirs.items():
        other, mine = ours[name]
        difference = (result - other).abs().max().item()
        print(f"| {name} | {time * 1e3:.1f} | {mine * 1e3:.1f} | {mine / time:.2f} | {difference:.2g} |")


main()
