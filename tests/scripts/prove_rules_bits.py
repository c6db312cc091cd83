"""Bit-vector terms of operations that the IR and PTX share, for prove_rules.py.

Every value is a bit vector; a predicate has one bit. Floats are their bits: arithmetic on them is a function that nothing is
known of (`opaque`), comparisons, conversions and signs are exact.
"""

import z3

SORTS = {"f16": z3.FPSort(5, 11), "bf16": z3.FPSort(8, 8), "f32": z3.FPSort(8, 24), "f64": z3.FPSort(11, 53)}
WIDTHS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "tf32": 32}
ROUNDINGS = {"rn": z3.RNE(), "rz": z3.RTZ(), "rm": z3.RTN(), "rp": z3.RTP()}
FUNCTIONS = {}


def const(value, width):
    return z3.BitVecVal(value, width)


def bit(condition):
    """A condition as one bit."""
    return z3.If(condition, const(1, 1), const(0, 1))


def holds(value):
    return value == const(1, value.size())


def resize(value, width, signed=False):
    """Cut or extended to a width."""
    if value.size() >= width:
        return z3.Extract(width - 1, 0, value) if value.size() > width else value
    return z3.SignExt(width - value.size(), value) if signed else z3.ZeroExt(width - value.size(), value)


def opaque(name, width, *arguments):
    """A function of the arguments' bits that nothing is known of."""
    key = (name, width, tuple(a.size() for a in arguments))
    if key not in FUNCTIONS:
        FUNCTIONS[key] = z3.Function(f"{name}/{width}", *[z3.BitVecSort(a.size()) for a in arguments], z3.BitVecSort(width))
    return FUNCTIONS[key](*arguments)


def shift(kind, value, amount):
    """A shift as PTX does it: amounts of the width and more give zeros or signs. z3's shifts do the same."""
    width = value.size()
    wide = max(width, amount.size())
    v, n = resize(value, wide, kind == "ashr"), resize(amount, wide)
    n = z3.If(z3.UGE(n, width), const(min(width, (1 << wide) - 1), wide), n)
    # In the wider type what comes in from above has to be what the narrow value has there.
    out = {"shl": v << n, "lshr": z3.LShR(v, n), "ashr": v >> n}[kind]
    return resize(out, width)


def find_nth(mask, base, offset):
    """PTX ISA 9.7.1, fns: the n-th bit that is set, from a place up or, with a negative number, down."""
    found, up, down = z3.BitVecVal(-1, 32), z3.BitVecVal(0, 32), z3.BitVecVal(0, 32)
    for place in range(32):
        here = z3.And(z3.Extract(place, place, mask) == 1, z3.UGE(z3.BitVecVal(place, 32), base))
        up = z3.If(here, up + 1, up)
        found = z3.If(z3.And(here, offset > 0, up == offset), z3.BitVecVal(place, 32), found)
        here = z3.And(z3.Extract(place, place, mask) == 1, base == place, offset == 0)
        found = z3.If(here, z3.BitVecVal(place, 32), found)
    for place in reversed(range(32)):
        here = z3.And(z3.Extract(place, place, mask) == 1, z3.ULE(z3.BitVecVal(place, 32), base))
        down = z3.If(here, down + 1, down)
        found = z3.If(z3.And(here, offset < 0, down == -offset), z3.BitVecVal(place, 32), found)
    return found


def popc(value, width):
    return sum((resize(z3.Extract(i, i, value), width) for i in range(value.size())), const(0, width))


def clz(value, width):
    out = const(value.size(), width)
    for i in range(value.size()):
        out = z3.If(holds(z3.Extract(i, i, value)), const(value.size() - 1 - i, width), out)
    return out


def reverse(value):
    return z3.Concat(*[z3.Extract(i, i, value) for i in range(value.size())])


def swap_bytes(value):
    return z3.Concat(*[z3.Extract(8 * i + 7, 8 * i, value) for i in range(value.size() // 8)])


def funnel(low, high, amount, left):
    """`shf.wrap`, which is fshl(high, low) and fshr(high, low)."""
    both = z3.Concat(high, low)
    n = z3.ZeroExt(32, amount & 31)
    return z3.Extract(63, 32, both << n) if left else z3.Extract(31, 0, z3.LShR(both, n))


def carryless(a, b, bits):
    """The product of two numbers without carries; the second has so many bits."""
    width = a.size()
    total = z3.BitVecVal(0, width)
    for at in range(bits):
        total = total ^ z3.If(z3.Extract(at, at, b) == 1, a << at, z3.BitVecVal(0, width))
    return total


def high_product(a, b, signed):
    w = a.size()
    return z3.Extract(2 * w - 1, w, resize(a, 2 * w, signed) * resize(b, 2 * w, signed))


def extreme(a, b, larger, signed):
    less = a < b if signed else z3.ULT(a, b)
    return z3.If(less, b, a) if larger else z3.If(less, a, b)


def saturated(a, b, subtract):
    w = a.size()
    x, y = z3.SignExt(1, a), z3.SignExt(1, b)
    exact = x - y if subtract else x + y
    top, bottom = const((1 << (w - 1)) - 1, w + 1), z3.SignExt(1, const(1 << (w - 1), w))
    return resize(z3.If(exact > top, top, z3.If(exact < bottom, bottom, exact)), w)


COMPARE = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
    "ult": z3.ULT, "ule": z3.ULE, "ugt": z3.UGT, "uge": z3.UGE,
    "slt": lambda a, b: a < b, "sle": lambda a, b: a <= b, "sgt": lambda a, b: a > b, "sge": lambda a, b: a >= b,
}


def fp(bits, ty):
    return z3.fpBVToFP(bits, SORTS[ty])


def is_nan(bits, ty):
    return z3.fpIsNaN(fp(bits, ty))


def flush(bits, ty, ftz):
    """Subnormal numbers as zeros of their sign."""
    if not ftz or ty not in ("f32", "f16"):
        return bits
    return z3.If(z3.fpIsSubnormal(fp(bits, ty)), bits & const(1 << (WIDTHS[ty] - 1), WIDTHS[ty]), bits)


def compare_floats(code, a, b, ty, ftz):
    """A comparison by its name in the IR."""
    x, y = fp(flush(a, ty, ftz), ty), fp(flush(b, ty, ftz), ty)
    nan = z3.Or(z3.fpIsNaN(x), z3.fpIsNaN(y))
    ordered = {"eq": z3.fpEQ(x, y), "ne": z3.Not(z3.fpEQ(x, y)), "lt": z3.fpLT(x, y), "le": z3.fpLEQ(x, y),
               "gt": z3.fpGT(x, y), "ge": z3.fpGEQ(x, y), "rd": z3.BoolVal(True), "no": z3.BoolVal(False)}
    if code in ("false", "true"):
        return z3.BoolVal(code == "true")
    plain = ordered[code[1:]]
    return z3.And(z3.Not(nan), plain) if code[0] == "o" else z3.Or(nan, plain)


def negate(bits):
    return bits ^ const(1 << (bits.size() - 1), bits.size())


def magnitude(bits):
    return bits & const((1 << (bits.size() - 1)) - 1, bits.size())


def copy_sign(bits, sign):
    return magnitude(bits) | (sign & const(1 << (bits.size() - 1), bits.size()))


def convert_float(bits, source, to, rounding):
    return z3.fpToIEEEBV(z3.fpFPToFP(ROUNDINGS[rounding], fp(bits, source), SORTS[to]))


def from_int(bits, to, signed, rounding):
    convert = z3.fpSignedToFP if signed else z3.fpUnsignedToFP
    return z3.fpToIEEEBV(convert(ROUNDINGS[rounding], bits, SORTS[to]))


def to_int(bits, source, width, signed, rounding, ftz):
    """The saturated integer, and whether the number is in range. z3 is asked for numbers in range alone."""
    x = z3.fpRoundToIntegral(ROUNDINGS[rounding], fp(flush(bits, source, ftz), source))
    sort = z3.FPSort(15, 113)
    wide = z3.fpFPToFP(z3.RNE(), x, sort)
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    below, above = z3.fpLT(wide, z3.FPVal(low, sort)), z3.fpGT(wide, z3.FPVal(high, sort))
    inside = z3.And(z3.Not(z3.fpIsNaN(x)), z3.Not(below), z3.Not(above))
    exact = z3.fpToSBV(z3.RTZ(), x, z3.BitVecSort(width)) if signed else z3.fpToUBV(z3.RTZ(), x, z3.BitVecSort(width))
    clamped = z3.If(below, const(low, width), z3.If(above, const(high, width), exact))
    return z3.If(z3.fpIsNaN(x), const(0, width), clamped), inside


def class_of(bits, ty, mask):
    """`fclass`, as the condition that one of the classes of the mask applies."""
    x = fp(bits, ty)
    quiet = holds(z3.Extract(SORTS[ty].sbits() - 2, SORTS[ty].sbits() - 2, bits))
    minus = z3.fpIsNegative(x)
    plus = z3.Not(minus)
    parts = [z3.And(z3.fpIsNaN(x), z3.Not(quiet)), z3.And(z3.fpIsNaN(x), quiet), z3.And(z3.fpIsInf(x), minus),
             z3.And(z3.fpIsNormal(x), minus), z3.And(z3.fpIsSubnormal(x), minus), z3.And(z3.fpIsZero(x), minus),
             z3.And(z3.fpIsZero(x), plus), z3.And(z3.fpIsSubnormal(x), plus), z3.And(z3.fpIsNormal(x), plus),
             z3.And(z3.fpIsInf(x), plus)]
    return z3.Or([part for i, part in enumerate(parts) if mask >> i & 1])


# Whether arithmetic of floats is always exact: slow, but what is compared then need not be the same operations.
EXACT = False


def arithmetic(name, mods, ty, arguments):
    """Arithmetic of floats: exact where an operand is a constant, else a function of which is known that factors and summands may be
    exchanged, that a difference is the sum with the negation, and that -0 is the least summand."""
    if ty.endswith("x2"):
        lanes = [lanes_of(a, WIDTHS[ty[:-2]]) for a in arguments]
        return z3.Concat(*reversed([arithmetic(name, mods, ty[:-2], list(lane)) for lane in zip(*lanes)]))
    if "sat" in mods:
        value = arithmetic(name, [m for m in mods if m != "sat"], ty, arguments)
        one, zero = fp_bits(1.0, ty), const(0, value.size())
        low = z3.If(z3.Or(z3.fpIsNaN(fp(value, ty)), value < 0), zero, value)
        return z3.If(z3.UGT(low, one), one, low)
    rounding = [m for m in mods if m in ROUNDINGS]
    if ty in SORTS and name in ("add", "sub", "mul", "div") and len(rounding) == 1 and set(mods) <= {*rounding, "ftz"}:
        if EXACT or any(z3.is_bv_value(z3.simplify(a)) for a in arguments):
            exact = {"add": z3.fpAdd, "sub": z3.fpSub, "mul": z3.fpMul, "div": z3.fpDiv}[name]
            operands = [fp(flush(a, ty, "ftz" in mods), ty) for a in arguments]
            return flush(z3.fpToIEEEBV(exact(ROUNDINGS[rounding[0]], *operands)), ty, "ftz" in mods)
    if name == "fma" and mods == ["rn"] and is_minus_zero(arguments[2]):
        name, arguments = "mul", arguments[:2]
    if name == "sub":
        name, arguments = "add", [arguments[0], negate(arguments[1])]
    if ty in SORTS:
        # One NaN is as good as another.
        arguments = [z3.If(is_nan(a, ty), fp_bits(float("nan"), ty), a) for a in arguments]
    if name in ("add", "mul", "fma"):
        a, b, *rest = arguments
        arguments = [z3.If(z3.ULE(a, b), a, b), z3.If(z3.ULE(a, b), b, a), *rest]
    return opaque(".".join([name, *sorted(mods), ty]), arguments[0].size(), *arguments)


def is_negative(bits):
    """The sign bit is set."""
    return bits < 0


def is_minus_zero(bits):
    bits = z3.simplify(bits)
    return z3.is_bv_value(bits) and bits.as_long() == 1 << (bits.size() - 1)


def extreme_float(a, b, ty, larger, nan_wins, ftz):
    """Minimum or maximum: -0 is less than +0; a NaN operand gives the other one, or wins."""
    a, b = flush(a, ty, ftz), flush(b, ty, ftz)
    x, y = fp(a, ty), fp(b, ty)
    zeros = z3.And(z3.fpIsZero(x), z3.fpIsZero(y))
    less = z3.If(zeros, z3.fpIsNegative(x), z3.fpLT(x, y))
    plain = z3.If(less, b, a) if larger else z3.If(less, a, b)
    nan = fp_bits(float("nan"), ty)
    if nan_wins:
        return z3.If(z3.Or(z3.fpIsNaN(x), z3.fpIsNaN(y)), nan, plain)
    return z3.If(z3.fpIsNaN(x), b, z3.If(z3.fpIsNaN(y), a, plain))


def lanes_of(value, part):
    """The lanes of a vector, lane 0 first."""
    return [z3.Extract(part * i + part - 1, part * i, value) for i in range(value.size() // part)]


def fp_bits(number, ty):
    value = z3.fpNaN(SORTS[ty]) if number != number else z3.FPVal(number, SORTS[ty])
    return z3.fpToIEEEBV(value)
