#!/usr/bin/env python3
"""Time of reading textual LLVM IR: this project's reader beside LLVM's own parser, in one run.

usage: llvm_reading_speed.py READ FILE.ll... [--megabytes N]

READ is the example `read` of ptxc-llvm, release build:

    cargo build --release -p ptxc-llvm --example read

Of every file a large one is made: its function definitions are repeated under new names until it has N megabytes
(10 when not given). LLVM is the one that rustc is built with, a release build, called through its C API; its time
is that of LLVMParseIRInContext. Both times are the least of five readings, in processor time of one thread.
"""

import argparse
import ctypes
import glob
import os
import re
import subprocess
import sys
import tempfile
import time


def enlarge(text, size):
    """The file with its definitions repeated under new names."""
    definitions = re.findall(r"^define .*?^}\n", text, flags=re.M | re.S)
    if not definitions:
        sys.exit("the file has no definitions")
    names = [re.search(r'@("[^"]*"|[-\w.$]+)\(', one).group(1) for one in definitions]
    names = {name for name in names if not name.startswith('"')}
    calls = re.compile(r"@(" + "|".join(sorted(map(re.escape, names), key=len, reverse=True)) + r")(?![-\w.$])")
    body = "\n".join(definitions)
    # Comdats belong to one definition each.
    body = re.sub(r" comdat(\([^)]*\))?", "", body)
    parts, total, turn = [text], len(text), 0
    while total < size:
        turn += 1
        part = calls.sub(lambda match: f"@{match.group(1)}.{turn}", body)
        parts.append(part)
        total += len(part) + 1
    return "\n".join(parts)


class Llvm:
    """The parser of the LLVM that rustc brings."""

    def __init__(self):
        found = glob.glob(os.path.expanduser("~/.rustup/toolchains/*/lib/libLLVM*.so*"))
        if not found:
            sys.exit("no libLLVM in the Rust toolchains")
        self.path = max(found, key=os.path.getsize)
        self.library = ctypes.CDLL(self.path)
        for name in ("LLVMContextCreate", "LLVMCreateMemoryBufferWithMemoryRangeCopy"):
            getattr(self.library, name).restype = ctypes.c_void_p

    def seconds(self, text):
        library = self.library
        context = ctypes.c_void_p(library.LLVMContextCreate())
        module, error = ctypes.c_void_p(), ctypes.c_char_p()
        buffer = ctypes.c_void_p(
            library.LLVMCreateMemoryBufferWithMemoryRangeCopy(text, ctypes.c_size_t(len(text)), b"input")
        )
        start = time.thread_time()
        failed = library.LLVMParseIRInContext(context, buffer, ctypes.byref(module), ctypes.byref(error))
        taken = time.thread_time() - start
        if failed:
            sys.exit(f"LLVM: {error.value.decode(errors='replace')[:300]}")
        library.LLVMDisposeModule(module)
        library.LLVMContextDispose(context)
        return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("read")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--megabytes", type=float, default=10)
    arguments = parser.parse_args()
    llvm = Llvm()
    print(f"LLVM: {os.path.basename(llvm.path)}")
    print("| file | megabytes | LLVM ms | ptxc ms | ptxc MB/s | ratio |")
    print("|---|---|---|---|---|---|")
    for path in arguments.files:
        with open(path, encoding="utf-8") as file:
            text = enlarge(file.read(), arguments.megabytes * 1e6)
        data = text.encode()
        with tempfile.NamedTemporaryFile(suffix=".ll") as large:
            large.write(data)
            large.flush()
            result = subprocess.run(
                [arguments.read, "--repeat", "5", large.name], capture_output=True, text=True, check=False
            )
        if result.returncode != 0:
            sys.exit(result.stdout + result.stderr)
        ours = float(result.stdout.split()[-1])
        theirs = min(llvm.seconds(data) for _ in range(5))
        size = len(data) / 1e6
        print(
            f"| {os.path.basename(path)} | {size:.1f} | {theirs * 1e3:.1f} | {ours * 1e3:.1f} "
            f"| {size / ours:.0f} | {theirs / ours:.1f} |"
        )


if __name__ == "__main__":
    main()
