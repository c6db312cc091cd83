#!/usr/bin/env python3
"""Whether ptxas makes other code of registers that are declared .f32 and .f64 than of .b32 and .b64.

Compiles files with ptxc, rewrites a copy of the PTX so that every register that only float instructions and moves touch is
declared with its float type, assembles both and compares the instructions and the registers. Needs `ptxas` and `nvdisasm`
(folder in $CUDA13/bin or on PATH). usage: register_types.py PTXC FILE... [--sm sm_80,sm_90,sm_100a]
"""
import os
import re
import subprocess
import sys
import tempfile

BIN = os.path.join(os.environ["CUDA13"], "bin", "") if "CUDA13" in os.environ else ""
# Instructions that take a register of any type of its size.
UNTYPED = re.compile(r"(ld|st|mov|selp|shfl|atom|red)\b.*\.b(32|64)$")


def retyped(text):
    """The text with float registers declared as such, and how many there are."""
    floats, others = set(), set()
    for line in text.splitlines():
        found = re.match(r"\s+(?:@!?%p\d+ )?([a-z][\w.:]*)\s+(.*);", line)
        if not found:
            continue
        name, operands = found.groups()
        registers = re.findall(r"%(?:rd|r)\d+", re.sub(r"\[[^\]]*\]", "", operands))
        addresses = re.findall(r"\[(%(?:rd|r)\d+)", operands)
        others.update(addresses)
        if re.search(r"\.f(32|64)\b", name) and not re.search(r"\.[sub](8|16|32|64)\b|x2", name):
            floats.update(registers)
        elif not UNTYPED.match(name):
            others.update(registers)
    chosen = floats - others
    rename = lambda m: m.group(0).replace("%rd", "%fd").replace("%r", "%f") if m.group(0) in chosen else m.group(0)
    out = []
    for line in text.splitlines():
        found = re.match(r"(\s+)\.reg \.b(32|64) %(rd|r)<(\d+)>;", line)
        if found:
            space, bits, prefix, count = found.groups()
            out += [line, f"{space}.reg .f{bits} %{'fd' if prefix == 'rd' else 'f'}<{count}>;"]
        else:
            out.append(re.sub(r"%(?:rd|r)\d+", rename, line))
    return "\n".join(out) + "\n", len(chosen)


def assembled(text, sm, folder):
    """Instructions, and registers and spills as ptxas reports them."""
    source, cubin = os.path.join(folder, "k.ptx"), os.path.join(folder, "k.cubin")
    open(source, "w").write(text)
    run = subprocess.run([BIN + "ptxas", "-v", "-arch=" + sm, source, "-o", cubin], capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError((run.stdout + run.stderr)[:300])
    listing = subprocess.run([BIN + "nvdisasm", "-c", cubin], capture_output=True, text=True).stdout
    code = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", listing, re.M)
    return [i for i in code if i != "NOP"], [int(n) for n in re.findall(r"Used (\d+) registers", run.stdout + run.stderr)]


def main():
    args = sys.argv[1:]
    targets = ["sm_80", "sm_90", "sm_100a"]
    if "--sm" in args:
        at = args.index("--sm")
        targets = args[at + 1].split(",")
        del args[at:at + 2]
    same = different = floats = 0
    with tempfile.TemporaryDirectory() as folder:
        for file in args[1:]:
            for sm in targets:
                run = subprocess.run([args[0], file, "-O3", "--sm", sm], capture_output=True, text=True)
                if run.returncode:
                    continue
                other, count = retyped(run.stdout)
                if not count:
                    continue
                try:
                    (code, registers), (typed, others) = (assembled(t, sm, folder) for t in (run.stdout, other))
                except RuntimeError as error:
                    print(f"{file} {sm}: {error}")
                    continue
                floats += count
                if code == typed and registers == others:
                    same += 1
                    continue
                different += 1
                print(f"{os.path.basename(file)} {sm}: {len(code)} instructions, registers {registers}; "
                      f"typed {len(typed)}, {others}")
    print(f"{same + different} files with {floats} float registers: {same} the same, {different} different")


main()
