#!/usr/bin/env python3
"""Compares filecheck with LLVM's FileCheck on random check files, options and inputs.

    tests/scripts/filecheck_differential.py [--count 2000] [--seed 1] --ours PATH [--theirs FileCheck-19]

Exit status and everything printed have to be the same, empty lines apart. What differs is kept in
target/filecheck-differential/.
"""

import argparse
import pathlib
import random
import subprocess
import sys
import tempfile

WORDS = ["foo", "bar", "add r1, r2", "add r10, r2", "ret", "x", "[[", "12", "0x1f", "label:", "a b", "abc", "abcbc", "foofoo", "", "  lead", "é"]
PIECES = [
    "foo", "bar", "add ", "r", ", ", "ret", "x", "label:", " ", "{{.*}}", "{{[a-z]+}}", "{{r[0-9]+}}", "{{foo|bar}}",
    "{{^}}", "{{$}}", "[[V:[a-z]+]]", "[[V]]", "[[#N:]]", "[[#N]]", "[[#N+1]]", "[[#%x,H:]]", "[[#H]]", "[[@LINE]]",
    "[[#@LINE-1]]", "[[R:r[0-9]+]]", "[[R]]", "[[#%.2u,P:]]", "[[#add(N,2)]]", "[[$G:.]]", "[[$G]]", "[[#]]", "{{a*}}",
    "[[X:(a|ab)]][[Y:(bc|c|b)*]]", "{{a|ab|b}}[[X:.*]]", "[[X:(fo|f)+]]{{(o|b)?}}[[Y:(o|oo|b|a)*]]", "[[#%d,S:N-20]]", "[[W:(f|fo)o?]]", "{{(a|ab)(c|bcd)?}}",
]
BROKEN = ["{{*}}", "[[", "{{", "[[X", "[[#N*2]]", "[[#%q,N:]]", "[[1X]]", "[[V ]]", "{{(}}", "[[#add(N)]]", "[[#NN:NN]]", "{{[[:foo:]]}}"]
SUFFIXES = ["", "", "", "-NEXT", "-NEXT", "-SAME", "-NOT", "-NOT", "-DAG", "-DAG", "-LABEL", "-EMPTY", "-COUNT-2"]
OPTIONS = [
    "-v", "-vv", "--dump-input=always", "--dump-input=never", "--dump-input-filter=all", "--dump-input-filter=annotation",
    "--dump-input-filter=annotation-full", "--dump-input-context=1", "--strict-whitespace", "--match-full-lines",
    "--ignore-case", "--implicit-check-not=bar", "--implicit-check-not={{r[0-9]}}", "--enable-var-scope", "--allow-empty",
    "-DV=foo", "-D#N=12", "-D#%x,H=0x1e", "--check-prefixes=CHECK,ALT", "--allow-unused-prefixes",
    "--allow-deprecated-dag-overlap", "-D$G=f",
]


def pattern(rng, line):
    if line and rng.random() < 0.5:
        return line
    pieces = [rng.choice(PIECES) for _ in range(rng.randrange(1, 4))]
    if rng.random() < 0.01:
        pieces.append(rng.choice(BROKEN))
    return "".join(pieces)


def case(rng):
    lines = [rng.choice(WORDS) for _ in range(rng.randrange(1, 12))]
    if rng.random() < 0.2:
        lines = [f"{a}\t {b}" for a, b in zip(lines, reversed(lines))]
    end = rng.choice(["\n", "\n", "\n", "", "\r\n"])
    text = end.join(lines) + (end if rng.random() < 0.9 else "")
    checks = []
    upcoming = [line for line in lines]
    for _ in range(rng.randrange(1, 7)):
        suffix = rng.choice(SUFFIXES if checks else ["", "", "-DAG", "-NOT", "-LABEL", "-COUNT-2"])
        prefix = rng.choice(["CHECK"] * 12 + ["ALT"])
        line = upcoming.pop(0) if upcoming and rng.random() < 0.8 else ""
        body = "" if suffix == "-EMPTY" and rng.random() < 0.95 else " " + pattern(rng, line.strip())
        literal = "{LITERAL}" if rng.random() < 0.05 else ""
        checks.append(f"{rng.choice(['', '; ', '// '])}{prefix}{suffix}{literal}:{body}")
    options = rng.sample(OPTIONS, rng.randrange(0, 5))
    return text, "\n".join(checks) + "\n", options


def run(program, options, folder, text):
    command = [program, *options, "checks"]
    result = subprocess.run(command, input=text.encode(), capture_output=True, cwd=folder, timeout=60)
    out = result.stdout + result.stderr
    # The name of the program is part of some messages. LLVM ends some with an empty line more.
    out = out.replace(program.encode(), b"FileCheck")
    return result.returncode, b"\n".join(line for line in out.split(b"\n") if line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--theirs", default="FileCheck-19")
    arguments = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[2]
    kept = root / "target" / "filecheck-differential"
    statuses, different = {}, 0
    with tempfile.TemporaryDirectory() as folder:
        for index in range(arguments.count):
            rng = random.Random(arguments.seed * 1_000_003 + index)
            text, checks, options = case(rng)
            pathlib.Path(folder, "checks").write_text(checks, newline="")
            ours = run(arguments.ours, options, folder, text)
            theirs = run(arguments.theirs, options, folder, text)
            statuses[theirs[0]] = statuses.get(theirs[0], 0) + 1
            if ours == theirs:
                continue
            different += 1
            place = kept / str(index)
            place.mkdir(parents=True, exist_ok=True)
            (place / "checks").write_text(checks, newline="")
            (place / "input").write_text(text, newline="")
            (place / "options").write_text(" ".join(options) + "\n")
            (place / "ours").write_bytes(f"{ours[0]}\n".encode() + ours[1])
            (place / "theirs").write_bytes(f"{theirs[0]}\n".encode() + theirs[1])
            print(f"different: {place} {' '.join(options)}")
    print(f"{arguments.count} cases, {different} different; statuses {statuses}")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
