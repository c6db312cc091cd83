#!/usr/bin/env python3
"""LLVM's own tests of its NVPTX backend, through `ptxc llc`, judged by ptxas.

usage: llvm_nvptx_tests.py [--tests DIR] [--ptxc PATH] [--ptxas PATH] [--filter REGEX] [--jobs N] [--opt LEVEL]

DIR holds the files of llvm/test/CodeGen/NVPTX; without it they are fetched from Debian's source package of LLVM 19
into target/llvm-tests (a deb-src line is needed; nothing of LLVM is kept in this repository).

Every RUN line that calls llc is executed up to llc, with ptxc in its place; what FileCheck would say of the text does
not count, since the code is another one. Of every output ptxas says whether it takes it. ptxas 13 knows sm_75 and
later: lower targets are raised for it. The list of what is not compiled or not taken is printed with reasons; the exit
status is 1 when something fails that KNOWN does not name.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Files with lines that fail, and why.
KNOWN = {
    "atomicrmw-expand.ll": "atomics of 128 bits exist from sm_90 on",
    "alias-errors.ll": "what LLVM refuses for old targets and PTX versions is possible here",
    "empty-type.ll": "what LLVM refuses is possible here",
    "lower-ctor-dtor.ll": "tables of constructors are not made",
    "managed.ll": "what LLVM refuses for old targets is possible here",
    "module-inline-asm.ll": "assembly of a module, outside functions",
    "nvvm-reflect-arch-O0.ll": "its inline assembly is no PTX",
}

# Options that ask for parts of LLVM itself.
INTERNAL = re.compile(r"-(stop|start)-(after|before)|-run-pass|-print-|-debug-pass")


def fetch(folder):
    """The tests, from the source package."""
    found = sorted(folder.glob("*/llvm/test/CodeGen/NVPTX"))
    if found:
        return found[0]
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["apt-get", "source", "--download-only", "llvm-toolchain-19"], cwd=folder, check=True)
    archive = next(folder.glob("llvm-toolchain-19_*.orig.tar.*"))
    wanted = "*/llvm/test/CodeGen/NVPTX/*"
    subprocess.run(["tar", "-xf", archive.name, "--wildcards", wanted], cwd=folder, check=True)
    return sorted(folder.glob("*/llvm/test/CodeGen/NVPTX"))[0]


def run_lines(path):
    """The RUN lines of a file, continued ones joined."""
    lines, open_line = [], ""
    for line in path.read_text(errors="replace").splitlines():
        match = re.search(r"\bRUN:(.*)$", line)
        if not match:
            continue
        text = open_line + match.group(1).strip()
        if text.endswith("\\"):
            open_line = text[:-1] + " "
            continue
        open_line = ""
        inner = re.match(r"%if\s+[^%]+%\{(.*)%\}\s*$", text)
        lines.append(inner.group(1).strip() if inner else text)
    return lines


def until_llc(line):
    """The part of a pipeline up to llc, and whether llc must fail; None when llc is not in it."""
    stages = re.split(r"\|(?!\|)", line)
    for index, stage in enumerate(stages):
        words = stage.split()
        if "llc" in words:
            must_fail = "not" in words[: words.index("llc")]
            kept = [word for word in words if word not in ("not", "--crash", "2>&1")]
            return "|".join([*stages[:index], " ".join(kept)]), must_fail
    return None


def raised(text):
    """The text for a target that ptxas knows, and the target; None when there is none in it."""
    match = re.search(r"^\.target (sm_(\d+)\w*)", text, flags=re.M)
    if not match:
        return None
    if int(match.group(2)) >= 75:
        return text, match.group(1)
    text = re.sub(r"^\.target sm_\d+", ".target sm_75", text, count=1, flags=re.M)
    version = re.search(r"^\.version (\d+)\.(\d+)", text, flags=re.M)
    if version and (int(version.group(1)), int(version.group(2))) < (6, 3):
        text = re.sub(r"^\.version \S+", ".version 6.3", text, count=1, flags=re.M)
    return text, "sm_75"


class Suite:
    """The programs, and a folder where ptxc is called llc."""

    def __init__(self, arguments, tests):
        self.tests = tests
        self.ptxas = arguments.ptxas
        self.bin = pathlib.Path(tempfile.mkdtemp(prefix="ptxc-llc-"))
        level = f" -O{arguments.opt}" if arguments.opt else ""
        # A level behind the test's own is the one that counts.
        wrapper = f'#!/bin/sh\nexec "{pathlib.Path(arguments.ptxc).resolve()}" llc "$@"{level}\n'
        (self.bin / "llc").write_text(wrapper)
        (self.bin / "llc").chmod(0o755)
        tools = pathlib.Path("/usr/lib/llvm-19/bin")
        for name in ("opt", "llvm-as", "split-file"):
            if (tools / name).exists():
                (self.bin / name).symlink_to(tools / name)

    def line(self, path, line):
        """What becomes of one RUN line: a word and a message."""
        command = until_llc(line)
        if command is None:
            return None
        text, must_fail = command
        if INTERNAL.search(text):
            return "internal", ""
        with tempfile.TemporaryDirectory() as folder:
            names = {"%%": "%", "%s": str(path), "%S": str(self.tests), "%t": f"{folder}/t", "%T": folder}
            text = re.sub(r"%[sStT%]", lambda match: names[match.group(0)], text)
            environment = dict(os.environ, PATH=f"{self.bin}:{os.environ['PATH']}")
            shell = ["bash", "-c", "set -o pipefail; " + text]
            try:
                done = subprocess.run(
                    shell, capture_output=True, env=environment, cwd=folder, timeout=120, check=False
                )
            except subprocess.TimeoutExpired:
                return "error", "no end within two minutes"
            output = done.stdout.decode(errors="replace")
            for file in re.findall(r"(?:-o[= ]|> *)(\S+)", text):
                written = pathlib.Path(file)
                if file != "-" and written.is_file():
                    output += written.read_text(errors="replace")
        if done.returncode:
            message = next((one for one in done.stderr.decode(errors="replace").splitlines() if "error" in one), "")
            crash = done.returncode not in (0, 1)
            return ("crash" if crash else "refused as meant" if must_fail else "error"), message
        if must_fail:
            return "not refused", ""
        return self.assemble(output)

    def assemble(self, output):
        found = raised(output)
        if found is None:
            return "no output", ""
        text, target = found
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
            file.write(text)
            file.flush()
            done = subprocess.run(
                [self.ptxas, "-O0", f"-arch={target}", "-c", file.name, "-o", "/dev/null"],
                capture_output=True,
                text=True,
                check=False,
            )
        if done.returncode == 0:
            return "taken", ""
        message = (done.stderr + done.stdout).replace(file.name, "")
        return "not taken", " ".join(message.split())[:200]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--tests", type=pathlib.Path)
    parser.add_argument("--ptxc", default=str(root / "target/release/ptxc"))
    parser.add_argument("--ptxas", default=os.environ.get("PTXAS") or shutil.which("ptxas") or "ptxas")
    parser.add_argument("--filter", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--opt", choices=["0", "1", "2", "3"], help="this level in place of the tests' own")
    arguments = parser.parse_args()
    tests = arguments.tests or fetch(root / "target/llvm-tests")
    suite = Suite(arguments, tests.resolve())
    work = [
        (path, line)
        for path in sorted(suite.tests.glob("*.ll"))
        if re.search(arguments.filter, path.name)
        for line in run_lines(path)
    ]
    counts, failures = collections.Counter(), []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for (path, line), result in zip(work, pool.map(lambda one: suite.line(*one), work)):
            if result is None:
                continue
            counts[result[0]] += 1
            if result[0] in ("error", "crash", "not taken", "not refused"):
                failures.append((path.name, line, *result))
    shutil.rmtree(suite.bin)
    for name, line, what, message in failures:
        reason = KNOWN.get(name)
        print(f"{name}: {what}: {message}" + (f" (known: {reason})" if reason else f"\n    {line}"))
    print(", ".join(f"{what}: {number}" for what, number in sorted(counts.items())))
    judged = counts["taken"] + counts["not taken"] + counts["error"] + counts["crash"]
    if judged:
        print(f"taken of what is to be compiled: {100 * counts['taken'] / judged:.1f} %")
    unknown = [failure for failure in failures if failure[0] not in KNOWN]
    sys.exit(1 if unknown else 0)


if __name__ == "__main__":
    main()
