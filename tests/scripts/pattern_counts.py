#!/usr/bin/env python3
"""SASS instructions of every pattern of tests/patterns/patterns.txt, compiled by ptxc, LLVM and libNVVM.

Needs `ptxas` and `nvdisasm` (folder in $CUDA13/bin or on PATH), a built ptxc (first argument), rustc's libLLVM (found
below ~/.rustup) and, when given by $LIBNVVM, libNVVM. What a kernel of the same loads and the same store takes besides
is subtracted. usage: pattern_counts.py PTXC [--sm sm_100a] [--only NAME] [--kinds KIND,KIND]
"""
import ctypes as C
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.path.join(os.environ["CUDA13"], "bin", "") if "CUDA13" in os.environ else ""


def patterns():
    name = kind = None
    body = []
    for line in open(os.path.join(HERE, "../patterns/patterns.txt")):
        line = line.rstrip()
        if line.startswith("#") or not line:
            continue
        if line.startswith("== "):
            if name:
                yield name, kind, body
            name, kind = [s.strip() for s in line[3:].split(":")]
            body = []
        else:
            body.append(line)
    yield name, kind, body


def kernel(body):
    text = "\n".join(body)
    names = "abcdefgh"
    out = ['target triple = "nvptx64-nvidia-cuda"',
           'target datalayout = "e-p:64:64:64-p6:32:32:32-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-'
           'f32:32:32-f64:64:64-f128:128:128-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64-a:8:8"',
           "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()"]
    declared = set()
    for ret, name, args in re.findall(r"call (<[^>]*>|\S+) (@llvm[\w.]+)\(([^)]*)\)", text):
        if name not in declared:
            declared.add(name)
            types = ", ".join(re.findall(r"(<[^>]*>|\S+) (?:<[^>]*>|[^,]+)(?:, |$)", args))
            out.append(f"declare {ret} {name}({types})")
    out.append("define ptx_kernel void @k(ptr addrspace(1) noalias %in, ptr addrspace(1) noalias %out) {")
    out.append("start:")
    out.append("%tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()")
    out.append("%src = getelementptr [8 x i32], ptr addrspace(1) %in, i32 %tid")
    out.append("%dst = getelementptr i64, ptr addrspace(1) %out, i32 %tid")
    for i, n in enumerate(names):
        out.append(f"%p{n} = getelementptr i32, ptr addrspace(1) %src, i32 {i}")
        out.append(f"%{n} = load volatile i32, ptr addrspace(1) %p{n}, align 4")
        out.append(f"%f{n} = bitcast i32 %{n} to float")
    for i, n in enumerate("ABCD"):
        out += [f"%lo{n} = zext i32 %{names[2 * i]} to i64", f"%hi{n} = zext i32 %{names[2 * i + 1]} to i64",
                f"%up{n} = shl i64 %hi{n}, 32", f"%{n} = or i64 %lo{n}, %up{n}"]
    # Numbered results get names, so that the patterns need not count.
    out += [re.sub(r"%(\d+)", r"%t\1", line) for line in body]
    result = re.match(r"%(r|R|F) =", body[-1]).group(1)
    ty = {"r": "i32", "R": "i64", "F": "float"}[result]
    out += [f"store {ty} %{result}, ptr addrspace(1) %dst, align 8", "ret void", "}"]
    return "\n".join(out) + "\n"


class Llvm:
    def __init__(self, sm):
        lib = max(glob.glob(os.path.expanduser("~/.rustup/toolchains/*/lib/libLLVM*.so*")), key=os.path.getsize)
        l = self.l = C.CDLL(lib)
        for n in ("LLVMContextCreate", "LLVMCreateMemoryBufferWithMemoryRangeCopy", "LLVMCreateTargetMachine",
                  "LLVMCreatePassBuilderOptions", "LLVMRunPasses", "LLVMGetBufferStart"):
            getattr(l, n).restype = C.c_void_p
        l.LLVMGetBufferSize.restype = C.c_size_t
        for n in ("TargetInfo", "Target", "TargetMC", "AsmPrinter"):
            getattr(l, "LLVMInitializeNVPTX" + n)()
        target, error = C.c_void_p(), C.c_char_p()
        assert l.LLVMGetTargetFromTriple(b"nvptx64-nvidia-cuda", C.byref(target), C.byref(error)) == 0
        version = b"+ptx87"
        self.machine = C.c_void_p(l.LLVMCreateTargetMachine(target, b"nvptx64-nvidia-cuda", sm.encode(), version, 3, 0, 0))

    def compile(self, text):
        l, text = self.l, text.encode()
        context, module, error = C.c_void_p(l.LLVMContextCreate()), C.c_void_p(), C.c_char_p()
        buffer = C.c_void_p(l.LLVMCreateMemoryBufferWithMemoryRangeCopy(text, C.c_size_t(len(text)), b"m"))
        if l.LLVMParseIRInContext(context, buffer, C.byref(module), C.byref(error)):
            raise RuntimeError(error.value.decode()[:200])
        options = C.c_void_p(l.LLVMCreatePassBuilderOptions())
        assert not l.LLVMRunPasses(module, b"default<O3>", self.machine, options)
        out = C.c_void_p()
        if l.LLVMTargetMachineEmitToMemoryBuffer(self.machine, module, 0, C.byref(error), C.byref(out)):
            raise RuntimeError(error.value.decode()[:200])
        return C.string_at(l.LLVMGetBufferStart(out), l.LLVMGetBufferSize(out)).decode()


class Nvvm:
    def __init__(self, path, sm):
        self.l, self.arch = C.CDLL(path), sm.replace("sm_", "compute_")

    def compile(self, text):
        l = self.l
        text = text.replace("define ptx_kernel void", "define void")
        text += '!nvvm.annotations = !{!0}\n!0 = !{ptr @k, !"kernel", i32 1}\n!nvvmir.version = !{!1}\n!1 = !{i32 2, i32 0, i32 3, i32 1}\n'
        data = text.encode()
        program = C.c_void_p()
        assert l.nvvmCreateProgram(C.byref(program)) == 0
        assert l.nvvmAddModuleToProgram(program, data, C.c_size_t(len(data)), b"m") == 0
        options = (C.c_char_p * 2)(("-arch=" + self.arch).encode(), b"-opt=3")
        if l.nvvmCompileProgram(program, 2, options):
            size = C.c_size_t()
            l.nvvmGetProgramLogSize(program, C.byref(size))
            log = C.create_string_buffer(size.value)
            l.nvvmGetProgramLog(program, log)
            raise RuntimeError(log.value.decode()[:200])
        size = C.c_size_t()
        l.nvvmGetCompiledResultSize(program, C.byref(size))
        out = C.create_string_buffer(size.value)
        l.nvvmGetCompiledResult(program, out)
        return out.value.decode()


def ptxc(command, sm, text, folder):
    source = os.path.join(folder, "k.ll")
    open(source, "w").write(text)
    run = subprocess.run([command, source, "-O3", "--sm", sm], capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr[:200])
    return run.stdout


def sass(text, sm, folder):
    source, cubin = os.path.join(folder, "k.ptx"), os.path.join(folder, "k.cubin")
    open(source, "w").write(text)
    run = subprocess.run([BIN + "ptxas", "-O3", "-arch=" + sm, source, "-o", cubin], capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError("ptxas: " + (run.stdout + run.stderr)[:200])
    listing = subprocess.run([BIN + "nvdisasm", "-c", cubin], capture_output=True, text=True).stdout
    found = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", listing, re.M)
    return [i for i in found if not re.match(r"(NOP|BRA)\b", i)]


def main():
    args = sys.argv[1:]
    sm, only, kinds = "sm_100a", None, None
    if "--sm" in args:
        at = args.index("--sm")
        sm = args[at + 1]
        del args[at:at + 2]
    if "--kinds" in args:
        at = args.index("--kinds")
        kinds = args[at + 1].split(",")
        del args[at:at + 2]
    if "--only" in args:
        at = args.index("--only")
        only = args[at + 1]
        del args[at:at + 2]
    with tempfile.TemporaryDirectory() as folder:
        compilers = {"ptxc": lambda t: ptxc(args[0], sm, t, folder), "LLVM": Llvm(sm).compile}
        if os.environ.get("LIBNVVM"):
            compilers["libNVVM"] = Nvvm(os.environ["LIBNVVM"], sm).compile
        base = {}
        print("| pattern | kind | " + " | ".join(compilers) + " |\n|---|---|" + "---|" * len(compilers))
        better = worse = rows = 0
        for name, kind, body in [("(base)", "", ["%r = or i32 %a, 0"])] + list(patterns()):
            if name != "(base)" and (only and name != only or kinds and kind not in kinds):
                continue
            counts, notes = {}, []
            for compiler, compile_text in compilers.items():
                try:
                    text = compile_text(kernel(body))
                    code = sass(text, sm, folder)
                    counts[compiler] = len(code)
                    if only and name == only:
                        notes.append(f"{compiler}:\n  " + "\n  ".join(code))
                except RuntimeError as error:
                    notes.append(f"{compiler}: {error}")
            if name == "(base)":
                base = counts
                print(f"| (loads and store) | | " + " | ".join(str(counts.get(c, "-")) for c in compilers) + " |")
                continue
            rows += 1
            counts = {c: n - base.get(c, 0) for c, n in counts.items()}
            mine = counts.get("ptxc")
            cells = [str(counts.get(c, "-")) for c in compilers]
            others = [counts[c] for c in compilers if c != "ptxc" and c in counts]
            mark = ""
            if mine is None or any(mine > o for o in others):
                worse += 1
                mark = " **more**"
            elif others and all(mine < o for o in others):
                better += 1
                mark = " less"
            print(f"| {name} | {kind} | " + " | ".join(cells) + f" |{mark}")
            for note in notes:
                print(note)
        print(f"\n{rows} patterns on {sm}: fewer in {better}, more in {worse}")


if __name__ == "__main__":
    main()
