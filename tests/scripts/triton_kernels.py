#!/usr/bin/env python3
"""Triton kernels: `triton_kernels.py OUT` runs and times them and writes results and times to OUT (see triton_override.py)."""
import pickle
import sys

import torch
import triton
import triton.language as tl


@triton.jit
def add_k(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


@triton.jit
def softmax_k(o, x, xs, os, n, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    m = c < n
    v = tl.load(x + r * xs + c, mask=m, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(o + r * os + c, e / tl.sum(e, axis=0), mask=m)


@triton.jit
def layernorm_k(x, y, w, b, s, N, eps, B: tl.constexpr):
    r = tl.program_id(0)
    x += r * s
    y += r * s
    acc = tl.zeros([B], tl.float32)
    for o in range(0, N, B):
        c = o + tl.arange(0, B)
        acc += tl.load(x + c, mask=c < N, other=0.).to(tl.float32)
    mean = tl.sum(acc, axis=0) / N
    var = tl.zeros([B], tl.float32)
    for o in range(0, N, B):
        c = o + tl.arange(0, B)
        v = tl.load(x + c, mask=c < N, other=0.).to(tl.float32)
        v = tl.where(c < N, v - mean, 0.)
        var += v * v
    rstd = 1 / tl.sqrt(tl.sum(var, axis=0) / N + eps)
    for o in range(0, N, B):
        c = o + tl.arange(0, B)
        m = c < N
        v = tl.load(x + c, mask=m, other=0.).to(tl.float32)
        tl.store(y + c, (v - mean) * rstd * tl.load(w + c, mask=m) + tl.load(b + c, mask=m), mask=m)


@triton.jit
def matmul_k(a, b, c, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + rm[:, None] * sam + rk[None, :] * sak
    pb = b + rk[:, None] * sbk + rn[None, :] * sbn
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        pa += BK * sak
        pb += BK * sbk
    tl.store(c + rm[:, None] * scm + rn[None, :] * scn, acc.to(c.dtype.element_ty))


@triton.jit
def attention_k(Q, K, V, O, scale, S, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    h = tl.program_id(1) * S * D
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(Q + h + rm[:, None] * D + d[None, :])
    m = tl.full([BM], -float("inf"), tl.float32)
    l = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for s in range(0, S, BN):
        rn = s + tl.arange(0, BN)
        k = tl.load(K + h + rn[None, :] * D + d[:, None])
        qk = tl.dot(q, k) * scale
        new = tl.maximum(m, tl.max(qk, 1))
        p = tl.exp2(qk - new[:, None])
        old = tl.exp2(m - new)
        l = l * old + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), tl.load(V + h + rn[:, None] * D + d[None, :]), acc * old[:, None])
        m = new
    tl.store(O + h + rm[:, None] * D + d[None, :], (acc / l[:, None]).to(tl.float16))


@triton.jit
def argmax_k(x, o, n, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    tl.store(o + r, tl.argmax(tl.load(x + r * n + c, mask=c < n, other=-float("inf")), axis=0))


@triton.jit
def cumsum_k(x, o, n, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    tl.store(o + r * n + c, tl.cumsum(tl.load(x + r * n + c), axis=0))


RESULTS = {}


def record(name, launch, out):
    launch()
    torch.cuda.synchronize()
    RESULTS[name] = (out.float().cpu(), triton.testing.do_bench(launch, warmup=20, rep=60))


def main():
    torch.manual_seed(1)
    rand = lambda *shape, t=torch.float32: torch.randn(*shape, device="cuda", dtype=t)
    half = torch.float16
    n = 1 << 24
    x, y, o = rand(n), rand(n), rand(n)
    record("vector_add", lambda: add_k[(triton.cdiv(n, 1024),)](x, y, o, n, 1024), o)
    rows, out = rand(4096, 2000), rand(4096, 2000)
    record("softmax", lambda: softmax_k[(4096,)](out, rows, 2000, 2000, 2000, 2048), out)
    w, b, wide, norm = rand(4096, t=half), rand(4096, t=half), rand(4096, 4096, t=half), rand(4096, 4096, t=half)
    record("layernorm", lambda: layernorm_k[(4096,)](wide, norm, w, b, 4096, 4096, 1e-5, 1024), norm)
    for name, t, (m, k, d), warps, stages in [
        ("matmul_f16_128", half, (128, 128, 64), 4, 3), ("matmul_f16_128x256", half, (128, 256, 64), 8, 3),
        ("matmul_bf16_128", torch.bfloat16, (128, 128, 64), 4, 3), ("matmul_f16_64", half, (64, 64, 32), 4, 4),
        ("matmul_tf32", torch.float32, (64, 128, 32), 4, 3)]:
        a, c, r = rand(2048, 2048, t=t), rand(2048, 2048, t=t), rand(2048, 2048, t=t)
        grid = (2048 // m, 2048 // k)
        record(name, lambda: matmul_k[grid](a, c, r, 2048, 2048, 2048, 2048, 1, 2048, 1, 2048, 1, m, k, d,
                                            num_warps=warps, num_stages=stages), r)
    for d in (64, 128):
        q, k, v, r = (rand(32, 1024, d, t=half) for _ in range(4))
        record(f"attention_d{d}", lambda: attention_k[(8, 32)](q, k, v, r, 1.44 / d ** .5, 1024, d, 128, 64,
                                                               num_warps=8 if d == 128 else 4, num_stages=2), r)
    largest = torch.empty(4096, device="cuda", dtype=torch.int32)
    record("argmax", lambda: argmax_k[(4096,)](rows, largest, 2000, 2048), largest)
    short, sums = rand(4096, 1024), rand(4096, 1024)
    record("cumsum", lambda: cumsum_k[(4096,)](short, sums, 1024, 1024), sums)
    pickle.dump(RESULTS, open(sys.argv[1], "wb"))


main()
