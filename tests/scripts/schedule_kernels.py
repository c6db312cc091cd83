"""How the kernels of examples/ and of the programs that clang made are launched for timing: sizes that keep an H200 busy for
50 microseconds and more. Used by schedule_gain.py.

A buffer is described, not made: ("f32", n, low, high), ("zeros", "f32", n), ("array", dtype, function of the module that
makes arrays), so that the list can be read where there is no GPU.
"""
import struct

N = 1 << 25
ROWS, COLUMNS = 16384, 1000


def f32(n, low=-2, high=2): return ("f32", n, low, high)
def f64(n, low=-2, high=2): return ("f64", n, low, high)
def f16(n): return ("f16", n, -2, 2)
def bf16(n): return ("bf16", n, -2, 2)
def u32(n): return ("u32", n, 0, 1 << 32)
def u64(n): return ("u64", n, 0, 1 << 62)
def u8(n): return ("u8", n, 0, 256)
def i32(n, low=-1000, high=1000): return ("i32", n, low, high)
def zeros(n, kind="f32"): return ("zeros", n, kind, 0)
def made(kind, make): return ("made", 0, kind, make)
def again(buffer): return ("again", 0, buffer, 0)      # is set to its first contents before each launch
def I(x): return ("i", x)
def L(x): return ("l", x)
def F(x): return ("f", x)
def D(x): return ("d", x)


def lengths(xp, n, degree):
    """Row starts of a sparse matrix with up to `degree` entries a row."""
    counts = xp.random.RandomState(7).randint(0, degree, n).astype("int64")
    return xp.concatenate([xp.zeros(1, "int64"), xp.cumsum(counts)]).astype("int32")


def columns(n, degree): return ("i32", n * degree, 0, n)      # more than there are entries


def offsets(xp, n, shift, tiles):
    """Where each tile's keys of each digit go, digit by digit: what counting and scanning give."""
    keys = xp.random.RandomState(9).randint(0, 1 << 31, n).astype("uint32")
    digit = (keys >> shift) & 15
    tile = xp.arange(n) // 1024
    counts = xp.bincount((digit.astype("int64") * tiles + tile), minlength=16 * tiles)
    return (xp.cumsum(counts) - counts).astype("uint32")


def same_keys(xp, n): return xp.random.RandomState(9).randint(0, 1 << 31, n).astype("uint32")


def byte_code():
    push = lambda n: (n & 0xFFFFFF) << 8 | 1
    alu = lambda n: n << 8 | 6
    to = lambda opcode, target: target << 8 | opcode
    loop, end, fibonacci = 12, 25, 33
    return [5, push(7), alu(7), push(4), alu(0), to(9, fibonacci), 5, push(8), alu(6), push(15), alu(7), 2,
            to(7, end), push(1), alu(1), 3, push(1103), alu(2), push(12345), alu(0), 5, alu(3), 3, 2, to(8, loop),
            4, push(3), alu(6), push(-5000), alu(5), push(8000000), alu(4), 0,
            5, push(2), alu(1), push(31), alu(6), to(7, fibonacci + 8), 5, 0,
            5, push(1), alu(1), to(9, fibonacci), 5, push(2), alu(1), to(9, fibonacci), alu(0), 0]


def machine_code():
    """A program of vm_run's that pushes, adds and multiplies."""
    import random
    r = random.Random(5)
    codes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 14, 15, 16, 17, 18, 19, 25]
    return [r.choice(codes) | r.randrange(1 << 24) << 8 for _ in range(200)] + [31]


def scene(width, height):
    light = [x / (1 + 4 + 2.25) ** 0.5 for x in (1, -2, -1.5)]
    spheres = [((0, 0, 4), 1, 200, 3), ((1, .5, 3), .6, 90, -7), ((-1.5, -.5, 5), 1.8, 255, 300), ((.3, .2, -2), .5, 1, 1)]
    body = b"".join(struct.pack("<ffffBBh", *c, r, m, 0xEE, s) for c, r, m, s in spheres)
    return struct.pack("<IIfff", width, height, *light) + body + b"\xEE" * 4 + struct.pack("<d", 0.0625)


def view(buffer, strides, dims): return [("p", buffer)] + [("l", x) for x in strides] + [("i", x) for x in dims] + [("b", bytes(4))]


modulus = 0xFFFFFFFFFFFFFFC5
inverse = pow(modulus, -1, 1 << 64)
tiles = N // 2048
matrix = 2048

# name: grid, block, arguments [, dynamic shared memory]
EXAMPLES = {
    "saxpy": ((N // 256,), (256,), [I(N), F(1.75), f32(N), f32(N)]),
    "transpose": ((250, 250), (32, 8), [I(8000), I(8000), f32(8000 * 8000), zeros(8000 * 8000)]),
    "sgemm": ((16, 16), (256,), [I(matrix)] * 3 + [F(1.5), F(-.25), f32(matrix**2), f32(matrix**2), f32(matrix**2)]),
    "gemm_bf16": ((16, 16), (256,), [I(matrix)] * 3 + [bf16(matrix**2), bf16(matrix**2), zeros(matrix**2)]),
    "gemm_bf16_stages": ((1024,), (128,), [I(4096)] * 3 + [bf16(4096**2), bf16(4096**2), zeros(4096**2)], 65536),
    "spmv_csr": ((1 << 15,), (256,), [I(1 << 18), made("i32", lambda xp: lengths(xp, 1 << 18, 60)), columns(1 << 18, 60), f32(60 << 18), f32(1 << 18), zeros(1 << 18)]),
    "black_scholes": ((1056,), (256,), [I(1 << 24), F(.02), F(.3), f32(1 << 24, 5, 30), f32(1 << 24, 1, 100), f32(1 << 24, .25, 10), zeros(1 << 24), zeros(1 << 24)]),
    "half_blend": ((2 * N // 1024,), (128,), [I(2 * N), F(.3), f16(2 * N), f16(2 * N), zeros(2 * N, "u16"), zeros(1, "u32")]),
    "hash_insert": ((4096,), (256,), [I(1 << 20), I((1 << 18) - 1), ("u64", 1 << 20, 0, 200000), u32(1 << 20), made("u64", lambda xp: xp.full(1 << 18, 2**64 - 1, "uint64")), zeros(1 << 18, "u64"), zeros(1, "u32")]),
    "mod_power": ((1024,), (256,), [I(1 << 18), L(modulus), L((1 << 64) - inverse), L((1 << 128) % modulus), u64(1 << 18), u64(1 << 18), zeros(1 << 18, "u64")]),
    "sha256": ((2048,), (128,), [I(1 << 18), I(3), u8(192 << 18), zeros(32 << 18, "u8")]),
    "interpret": ((1024,), (128,), [I(1 << 17), made("u32", lambda xp: xp.asarray(byte_code(), "uint32")), u32(1 << 17), zeros(1 << 17, "u32")]),
    "cast_rays": ((250, 250), (16, 16), [("struct", [("b", scene(4000, 4000))]), zeros(4000 * 4000), zeros(4000 * 4000, "i32")]),
    "softmax": ((ROWS,), (256,), [I(COLUMNS), f32(ROWS * COLUMNS, -8, 8), zeros(ROWS * COLUMNS)]),
    "layernorm": ((ROWS,), (256,), [I(COLUMNS), F(1e-5), f32(ROWS * COLUMNS, 9, 11), f32(COLUMNS), f32(COLUMNS), zeros(ROWS * COLUMNS)]),
    "reduce_sum": ((1056,), (256,), [I(N), f32(N, 0, 1), zeros(1)]),
    "inclusive_scan": ((1 << 14,), (256,), [I(1 << 24), u32(1 << 24), zeros(1 << 24, "u32"), again(zeros(1 << 14, "u64")), again(zeros(1, "u32"))]),
    "histogram": ((1056,), (256,), [I(2 * N), u8(2 * N), zeros(256, "u32")]),
    "radix_count": ((tiles,), (256,), [I(tiles * 1024), I(8), I(tiles), u32(tiles * 1024), zeros(16 * tiles, "u32")]),
    "radix_offsets": ((1,), (512,), [I(16 * tiles), again(i32(16 * tiles, 0, 100))]),
    "radix_scatter": ((tiles,), (256,), [I(tiles * 1024), I(8), I(tiles), made("u32", lambda xp: same_keys(xp, tiles * 1024)), u32(tiles * 1024), made("u32", lambda xp: offsets(xp, tiles * 1024, 8, tiles)), zeros(tiles * 1024, "u32"), zeros(tiles * 1024, "u32")]),
    "nbody_step": ((128,), (256,), [I(32768), F(.01), F(.05), f32(4 * 32768, .01, 1), again(f32(4 * 32768, -.1, .1)), zeros(4 * 32768)]),
    "mandelbrot": ((125, 250), (32, 8), [I(4000), I(2000), F(-2.1), F(-.8), F(.00075), I(500), zeros(4000 * 2000, "u32")]),
    "stencil3d": ((16, 63), (32, 8), [I(500), I(500), I(200), F(.4), F(.1), f32(500 * 500 * 200), zeros(500 * 500 * 200)]),
}
V = 1 << 24
sparse = lambda n: [made("i32", lambda xp: lengths(xp, n, 20)), columns(n, 20)]
CLANG = {
    "saxpy": ((N // 256,), (256,), [I(N - 3), F(1.7), f32(N), f32(N)]),
    "saxpy_grid_stride": ((1056,), (256,), [I(N - 3), F(1.7), f32(N), f32(N)]),
    "saxpy_vec4": ((N // 1024,), (256,), [I(N // 4 - 1), F(1.7), f32(N), f32(N)]),
    "daxpy": ((1056,), (256,), [L(N - 3), D(1.7), f64(N), f64(N)]),
    "vadd_f16": ((N // 256,), (256,), [f16(N), f16(N), zeros(N, "u16"), I(N - 3)]),
    "vadd_bf16": ((N // 256,), (256,), [bf16(N), bf16(N), zeros(N, "u16"), I(N - 3)]),
    "scale_f16_to_f32": ((N // 256,), (256,), [f16(N), zeros(N), F(1.3), I(N - 3)]),
    "fma_bf16_poly": ((N // 256,), (256,), [bf16(N), zeros(N, "u16"), I(N - 3)]),
    "reduce_sum": ((1056,), (256,), [f32(N), zeros(1), I(N - 3)]),
    "reduce_tree_shared": ((N // 1024,), (512,), [i32(N), zeros(N // 1024, "i32"), I(N - 3)]),
    "reduce_minmax": ((1056,), (256,), [f32(N), zeros(1056 * 8), zeros(1056 * 8), I(N - 3)]),
    "scan_block": ((V // 1024,), (256,), [i32(V), zeros(V, "i32"), zeros(V // 1024, "i32"), I(V - 3)]),
    "scan_blelloch": ((1,), (1024,), [i32(2048, 0, 2), I(2048)]),
    "transpose_tiled": ((250, 250), (32, 8), [f32(8000 * 8000), zeros(8000 * 8000), I(8000), I(8000)]),
    "transpose_u8": ((256, 256), (32, 8), [u8(8192 * 8192), zeros(8192 * 8192, "u8"), L(8192), L(8192)]),
    "sgemm_naive": ((64, 64), (16, 16), [f32(1 << 20), f32(1 << 20), f32(1 << 20), I(1024), I(1024), I(1024), F(1.5), F(.5)]),
    "sgemm_tiled": ((64, 64), (16, 16), [f32(1 << 20), f32(1 << 20), zeros(1 << 20), I(1024), I(1024), I(1024)]),
    "sgemm_reg8x8": ((16, 16), (256,), [f32(matrix**2), f32(matrix**2), zeros(matrix**2), I(matrix), I(matrix), I(matrix)]),
    "softmax_row": ((ROWS,), (256,), [f32(ROWS * COLUMNS), zeros(ROWS * COLUMNS), I(COLUMNS)]),
    "softmax_online": ((ROWS // 4,), (128,), [f32(ROWS * COLUMNS), zeros(ROWS * COLUMNS), I(COLUMNS)]),
    "layernorm": ((ROWS,), (256,), [f32(ROWS * 1024), f32(1024), f32(1024), zeros(ROWS * 1024), I(1024), F(1e-5)]),
    "rmsnorm_gelu": ((ROWS,), (32,), [f32(ROWS * COLUMNS), f32(COLUMNS), zeros(ROWS * COLUMNS), I(COLUMNS)]),
    "mandelbrot": ((125, 125), (16, 16), [zeros(4000000, "u32"), I(2000), I(2000), F(-2), F(-1.5), F(.0015), F(.0015), I(300)]),
    "julia_f64": ((15625,), (256,), [zeros(4000000, "u8"), I(2000), I(2000), D(-.8), D(.156)]),
    "spmv_csr_scalar": ((2048,), (256,), [*sparse(1 << 19), f32(20 << 19), f32(1 << 19), zeros(1 << 19), I((1 << 19) - 6)]),
    "spmv_csr_vector": ((1 << 16,), (256,), [*sparse(1 << 19), f32(20 << 19), f32(1 << 19), zeros(1 << 19), I((1 << 19) - 6)]),
    "bfs_step": ((512,), (256,), [*sparse(1 << 20), again(made("i32", lambda xp: xp.where(xp.arange(1 << 20) < 1 << 17, 0, -1).astype("int32"))), made("i32", lambda xp: xp.arange(1 << 17).astype("int32")), I(1 << 17), zeros(1 << 21, "i32"), again(zeros(1, "i32")), I(1)]),
    "sssp_relax": ((4096,), (256,), [*sparse(1 << 20), i32(20 << 20, 1, 100), again(made("i32", lambda xp: xp.where(xp.arange(1 << 20) % 4 == 0, 0, 0x7FFFFFFF).astype("int32"))), again(zeros(1, "i32")), I(1 << 20)]),
    "radix_count": ((V // 1024,), (256,), [u32(V), zeros(V // 64, "u32"), I(V - 3), I(4)]),
    "radix_scatter": ((1,), (256,), [u32(256), zeros(4096, "u32"), made("u32", lambda xp: (xp.arange(16) * 256).astype("uint32")), I(250), I(4)]),
    "bitonic_step": ((N // 256,), (256,), [u32(N), I(64), I(256)]),
    "black_scholes": ((1056,), (256,), [zeros(V), zeros(V), f32(V, 5, 30), f32(V, 1, 100), f32(V, .25, 10), F(.02), F(.3), I(V - 3)]),
    "special_math": ((V // 256,), (256,), [f32(V, -30, 30), zeros(V), I(V - 3)]),
    "special_math64": ((V // 1024,), (256,), [f64(V // 4, 0, 30), zeros(V // 4, "f64"), I(V // 4 - 3)]),
    "dot_s8_pattern": ((1056,), (128,), [u8(2 * N), u8(2 * N), zeros(1, "i32"), I(2 * N)]),
    "dot_s8_packed": ((1056,), (128,), [u32(N), u32(N), zeros(1, "i32"), I(N)]),
    "dot_s8_asm": ((1056,), (128,), [u32(N), u32(N), zeros(1, "i32"), I(N)]),
    "dequant_int4": ((ROWS,), (32,), [u32(ROWS * 128), f32(ROWS * 32), f32(1024), zeros(ROWS), I(128)]),
    "struct_params": ((2, 256, 256), (64,), [("struct", view(f32(256 * 25600), (25600, 100, 1), (256, 256, 100)) + view(f32(256 * 25600), (25600, 100, 1), (256, 256, 100)) + view(zeros(256 * 25600), (25600, 100, 1), (256, 256, 100)) + [("f", 1.25), ("i", 0), ("b", bytes([0, 1, 0, 1, 1, 0, 0, 1]))])]),
    "struct_small": ((V // 256,), (256,), [("struct", [("b", bytes([5, 1, 0x3C, 100]))]), u8(4 * V), zeros(4 * V, "u8"), I(V - 4)]),
    "xform": ((N // 1024,), (256,), [("struct", [("b", struct.pack("<16f", *[(k * 7 % 11) / 5 - 1 for k in range(16)]))]), f32(N), zeros(N), I(N // 4 - 4), I(2)]),
    "vm_run": ((256,), (64,), [made("u32", lambda xp: xp.asarray(machine_code(), "uint32")), again(u32(16384 * 257)), I(500)]),
    "utf8_states": ((2048,), (128,), [u8(128 * 2048 * 32), zeros(2 * 128 * 2048, "i32"), I(32)]),
    "haxpy2": ((N // 256,), (256,), [f16(2 * N), f16(2 * N), F(1.5), I(N - 3)]),
    "hgemv2": ((ROWS,), (32,), [f16(ROWS * 2000), f16(2000), zeros(ROWS), I(1000)]),
    "hpoly2": ((N // 256,), (256,), [f16(2 * N), zeros(2 * N, "u16"), I(N - 3)]),
    "compact": ((1,), (32,), [i32(32), zeros(32, "i32"), again(zeros(1, "i32")), I(30)]),
    "votes": ((V // 256,), (256,), [i32(V, 0, 9), zeros(V, "i32")]),
    "warp_bitonic": ((V // 256,), (256,), [u32(V)]),
    "divergent_loop": ((1 << 12,), (256,), [("u32", 1 << 20, 1, 1 << 20), zeros(1 << 20, "u32")]),
    "dot_pipeline": ((1056,), (128,), [f32(1056 * 64 * 512), f32(1056 * 64 * 512), zeros(1056), I(64)]),
}

# Kernels with independent work in one block: tensor cores or asynchronous copies, or three and more loads none of which waits
# for another (unrolled loops, stencils, several operands). Named from the code, before anything was timed.
INDEPENDENT = {
    "examples": {"gemm_bf16", "gemm_bf16_stages", "sgemm", "layernorm", "stencil3d", "black_scholes"},
    "o2": {"saxpy_vec4", "transpose_u8", "sgemm_naive", "sgemm_tiled", "sgemm_reg8x8", "layernorm", "spmv_csr_scalar", "black_scholes",
           "dot_s8_pattern", "dequant_int4", "struct_small", "xform", "dot_pipeline"},
    "raw": {"black_scholes", "dot_pipeline"},
}
# What these write depends on the order in which threads come, or is a float sum in that order; threads of vm_run write at the
# end what others may still read.
UNORDERED = {"hash_insert", "reduce_sum", "bfs_step", "sssp_relax", "dot_pipeline", "vm_run"}
