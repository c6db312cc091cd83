#!/usr/bin/env python3
"""Compares the speed of filecheck with LLVM's FileCheck on large inputs, in one run.

    tests/scripts/filecheck_speed.py [--megabytes 50] [--checks 10000] [--runs 5]
                                     [--ours PATH] [--theirs FileCheck-19]

Both programs check the same generated inputs with the same generated directives, alternating; the
fastest of the runs counts. Without --ours a release build is made.
"""

import argparse
import pathlib
import random
import subprocess
import sys
import tempfile
import time

OPERATIONS = ["add.s32", "sub.s32", "mul.lo.s32", "mad.lo.s32", "xor.b32", "shl.b32"]


def body_line(rng, spaces):
    a, b, c = (rng.randrange(10000) for _ in range(3))
    gap = "  " if spaces and rng.random() < 0.5 else " "
    return f"\t{rng.choice(OPERATIONS)}{gap}\t%r{a}, %r{b},{gap}%r{c};"


def generate(kind, megabytes, checks, rng):
    """The input and the directives. Every 'function' gets the same number of both."""
    per_function = 5
    functions = checks // per_function
    lines_each = max(8, megabytes * 1_000_000 // functions // 30)
    text, directives = [], []
    for function in range(functions):
        text.append(f".visible .entry kernel_{function}(")
        body = [body_line(rng, kind != "literal") for _ in range(lines_each)]
        at = sorted(rng.sample(range(2, lines_each - 2), 3))
        n = rng.randrange(10000)
        body[at[0]] = f"\tld.param.u64 \t%rd{n}, [kernel_{function}_param_0];"
        body[at[0] + 1] = f"\tcvta.to.global.u64 \t%rd{n + 1}, %rd{n};"
        body[at[2]] = f"\tst.global.f32 \t[%rd{n + 1}+{function}], %f{n};"
        body.append("\tret;")
        text.extend(body)
        text.append("}")
        label = f"// CHECK-LABEL: .entry kernel_{function}("
        if kind == "literal":
            directives += [
                label,
                f"// CHECK: ld.param.u64 %rd{n}, [kernel_{function}_param_0];",
                f"// CHECK-NEXT: cvta.to.global.u64 %rd{n + 1}, %rd{n};",
                f"// CHECK: st.global.f32 [%rd{n + 1}+{function}], %f{n};",
                "// CHECK: ret;",
            ]
        elif kind == "regex":
            directives += [
                label,
                f"// CHECK: ld.param.u64 {{{{%rd[0-9]+}}}}, [kernel_{function}_param_0];",
                "// CHECK-NEXT: cvta.to.global.u64 {{%rd[0-9]+, %rd[0-9]+}};",
                f"// CHECK: st.global.f{{{{(32|64)}}}} [%rd{{{{[0-9]+}}}}+{function}], %f{{{{[0-9]+}}}};",
                "// CHECK: {{^ *}}ret;{{$}}",
            ]
        else:
            directives += [
                label,
                f"// CHECK: ld.param.u64 [[P:%rd[0-9]+]], [kernel_{function}_param_0];",
                "// CHECK-NEXT: cvta.to.global.u64 [[G:%rd[0-9]+]], [[P]];",
                "// CHECK-NOT: trap;",
                f"// CHECK-DAG: st.global.f32 {{{{\\[}}}}[[G]]+[[#{function}]]], [[F:%f[0-9]+]];",
            ]
    return "\n".join(text) + "\n", "\n".join(directives) + "\n"


def measure(command, input_path):
    with open(input_path, "rb") as stream:
        started = time.perf_counter()
        result = subprocess.run(command, stdin=stream, capture_output=True)
        elapsed = time.perf_counter() - started
    if result.returncode != 0:
        sys.exit(f"{command} failed:\n{result.stderr.decode(errors='replace')[:2000]}")
    return elapsed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=50)
    parser.add_argument("--checks", type=int, default=10000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--ours")
    parser.add_argument("--theirs", default="FileCheck-19")
    arguments = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[2]
    ours = arguments.ours
    if ours is None:
        subprocess.run(["cargo", "build", "--release", "-p", "filecheck"], cwd=root, check=True)
        ours = root / "target/release/filecheck"
    slower = False
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("literal", "regex", "variables"):
            text, directives = generate(kind, arguments.megabytes, arguments.checks, random.Random(7))
            input_path, check_path = pathlib.Path(folder, "input"), pathlib.Path(folder, "checks")
            input_path.write_text(text)
            check_path.write_text(directives)
            times = {"ours": [], "theirs": []}
            for _ in range(arguments.runs):
                times["ours"].append(measure([str(ours), str(check_path)], input_path))
                times["theirs"].append(measure([arguments.theirs, str(check_path)], input_path))
            best = {name: min(values) for name, values in times.items()}
            count = directives.count("CHECK")
            print(
                f"{kind:10} {len(text) / 1e6:6.1f} MB {count:6} checks   ours {best['ours']:.3f} s   "
                f"{arguments.theirs} {best['theirs']:.3f} s   {best['theirs'] / best['ours']:.1f}x",
                flush=True,
            )
            slower |= best["ours"] > best["theirs"]
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()
