"""Reads device functions of one block of PTX and makes terms of them, for prove_rules.py (PTX ISA 9.7)."""

import re

import z3

import prove_rules_bits as t
from prove_rules_bits import const
from prove_rules_ir import Unknown

CLASSES = {"%p": 1, "%rs": 16, "%r": 32, "%rd": 64}


def functions(text):
    """The bodies of the functions, by name."""
    out = {}
    for m in re.finditer(r"\.visible \.func \((.*?)\) ([\w$]+)\((.*?)\)\s*\{(.*?)\n\}", text, re.S):
        out[m[2]] = [line.strip().rstrip(";") for line in m[4].splitlines() if line.strip().endswith(";")]
    return out


def class_width(name):
    return CLASSES[re.match(r"%[a-z]+", name)[0]]


def type_width(piece):
    return {"pred": 1, "f16x2": 32, "bf16x2": 32, "f32x2": 64}.get(piece) or int(re.sub(r"\D", "", piece) or 0)


class Terms:
    """The result of a function."""

    def __init__(self, name, lines, arguments):
        self.registers, self.result = {}, None
        self.name, self.arguments = name, arguments
        for line in lines:
            if line.startswith((".reg", "//")) or line == "ret":
                continue
            self.line(line)

    def read(self, text, w, float_type=None):
        text = text.strip()
        if m := re.fullmatch(r"!(%\w+)", text):
            return ~self.registers[m[1]]
        if text.startswith("%"):
            if text not in self.registers:
                raise Unknown(f"register {text}")
            value = self.registers[text]
            return t.resize(value, w)
        if m := re.fullmatch(r"0[fdFD]([0-9A-Fa-f]{8,16})", text):
            return const(int(m[1], 16), w)
        return const(int(text, 0), w)

    def write(self, name, value):
        if name != "_":
            self.registers[name] = t.resize(value, class_width(name))

    def line(self, line):
        m = re.match(r"([\w.:]+)\s+(.*)$", line)
        if not m or line.startswith("@"):
            raise Unknown(line)
        pieces, rest = m[1].split("."), m[2]
        operands = [x.strip() for x in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*", rest)]
        head = pieces[0]
        if head == "ld" and pieces[1] == "param":
            return self.load(operands)
        if head == "st" and pieces[1] == "param":
            return self.store(pieces, operands)
        if head == "mov":
            return self.move(pieces, operands)
        method = getattr(self, "do_" + head, None)
        if method is None:
            raise Unknown(m[1])
        sources = operands[1:]
        self.write(operands[0], method(pieces, sources))

    def load(self, operands):
        m = re.fullmatch(r"\[\w+?_param_(\d+)(?:\+(\d+))?\]", operands[1].replace(" ", ""))
        argument, offset = self.arguments[int(m[1])], int(m[2] or 0)
        names = operands[0].strip("{}").split(", ")
        for name in names:
            w = class_width(name)
            value = t.resize(argument, max(argument.size(), 8 * offset + w))
            self.registers[name] = z3.Extract(8 * offset + w - 1, 8 * offset, value)
            offset += w // 8

    def store(self, pieces, operands):
        names = operands[1].strip("{}").split(", ")
        w = type_width(pieces[-1])
        parts = [self.read(name, w) for name in names]
        value = z3.Concat(*reversed(parts)) if len(parts) > 1 else parts[0]
        self.result = value if self.result is None else z3.Concat(value, self.result)

    def move(self, pieces, operands):
        w = type_width(pieces[-1])
        if operands[0].startswith("{"):
            names = operands[0].strip("{}").split(", ")
            value, part = self.read(operands[1], w), w // len(names)
            for i, name in enumerate(names):
                self.write(name, z3.Extract(part * i + part - 1, part * i, value))
        elif operands[1].startswith("{"):
            names = operands[1].strip("{}").split(", ")
            self.write(operands[0], z3.Concat(*[self.read(x, w // len(names)) for x in reversed(names)]))
        else:
            self.write(operands[0], self.read(operands[1], w))

    def two(self, pieces, sources):
        w = type_width(pieces[-1])
        return w, pieces[-1][0] == "s", [self.read(x, w) for x in sources]

    def is_float(self, pieces):
        return pieces[-1] in t.WIDTHS or pieces[-1] in ("f16x2", "bf16x2", "f32x2")

    def opaque(self, pieces, sources):
        ty = pieces[-1]
        w = type_width(ty)
        mods = [p for p in pieces[1:-1] if p != "NaN"]
        if "approx" in mods or "full" in mods:
            raise Unknown("an approximation")
        head = pieces[0] + (".NaN" if "NaN" in pieces else "")
        if pieces[0] in ("add", "sub", "mul") and not any(m in t.ROUNDINGS for m in mods):
            mods.append("rn")
        if pieces[-2] == "f32" and ty in ("f16", "bf16"):
            # Halves that the instruction extends; the last operand is f32.
            halves = [t.convert_float(self.read(x, w), ty, "f32", "rn") for x in sources[:-1]]
            return t.arithmetic(head, [m for m in mods if m != "f32"], "f32", [*halves, self.read(sources[-1], 32)])
        return t.arithmetic(head, mods, ty, [self.read(x, w) for x in sources])

    def signs(self, pieces, value, work):
        """What is done to the sign of every lane."""
        width = 16 if pieces[-1].endswith("16x2") else 32 if pieces[-1] == "f32x2" else value.size()
        return z3.Concat(*reversed([work(x) for x in t.lanes_of(value, width)])) if width < value.size() else work(value)

    def by_lanes(self, pieces, sources, work):
        """An operation on pairs of 16-bit integers."""
        if pieces[-1] not in ("u16x2", "s16x2"):
            raise Unknown(".".join(pieces))
        lanes = [t.lanes_of(self.read(x, 32), 16) for x in sources]
        return z3.Concat(*[work(*pair, pieces[-1][0] == "s") for pair in reversed(list(zip(*lanes)))])

    def do_add(self, pieces, sources):
        if pieces[-1].endswith("8x4"):
            raise Unknown(".".join(pieces))
        if self.is_float(pieces):
            return self.opaque(pieces, sources)
        if pieces[-1].endswith("16x2"):
            if "sat" not in pieces:
                return self.by_lanes(pieces, sources, lambda a, b, signed: a + b)
            unsigned = lambda a, b: z3.If(z3.ULT(a + b, a), const(-1, 16), a + b)
            return self.by_lanes(pieces, sources, lambda a, b, s: t.saturated(a, b, False) if s else unsigned(a, b))
        w, _, (a, b) = self.two(pieces, sources)
        return t.saturated(a, b, False) if "sat" in pieces else a + b

    def do_sub(self, pieces, sources):
        if pieces[-1].endswith("8x4"):
            raise Unknown(".".join(pieces))
        if self.is_float(pieces):
            return self.opaque(pieces, sources)
        w, _, (a, b) = self.two(pieces, sources)
        return t.saturated(a, b, True) if "sat" in pieces else a - b

    def do_mul(self, pieces, sources):
        if self.is_float(pieces):
            return self.opaque(pieces, sources)
        w, signed, (a, b) = self.two(pieces, sources)
        if pieces[1] == "wide":
            return t.resize(a, 2 * w, signed) * t.resize(b, 2 * w, signed)
        return t.high_product(a, b, signed) if pieces[1] == "hi" else a * b

    def do_mad(self, pieces, sources):
        w, signed, _ = self.two(pieces, [])
        a, b = (self.read(x, w) for x in sources[:2])
        if pieces[1] == "wide":
            return t.resize(a, 2 * w, signed) * t.resize(b, 2 * w, signed) + self.read(sources[2], 2 * w)
        return a * b + self.read(sources[2], w)

    def do_fma(self, pieces, sources):
        return self.opaque(pieces, sources)

    do_sqrt = do_rcp = do_fma

    def do_div(self, pieces, sources):
        if self.is_float(pieces):
            return self.opaque(pieces, sources)
        w, signed, (a, b) = self.two(pieces, sources)
        return a / b if signed else z3.UDiv(a, b)

    def do_rem(self, pieces, sources):
        w, signed, (a, b) = self.two(pieces, sources)
        return z3.SRem(a, b) if signed else z3.URem(a, b)

    def do_min(self, pieces, sources):
        ty = pieces[-1]
        if ty in ("f16x2", "bf16x2"):
            pairs = zip(*[t.lanes_of(self.read(x, 32), 16) for x in sources])
            parts = [self.extreme(*p, ty[:-2], pieces) for p in pairs]
            return z3.Concat(*reversed(parts))
        if ty.endswith("x2"):
            return self.by_lanes(pieces, sources, lambda a, b, signed: t.extreme(a, b, pieces[0] == "max", signed))
        if self.is_float(pieces):
            a, b = (self.read(x, t.WIDTHS[ty]) for x in sources)
            return self.extreme(a, b, ty, pieces)
        w, signed, (a, b) = self.two(pieces, sources)
        return t.extreme(a, b, pieces[0] == "max", signed)

    do_max = do_min

    def extreme(self, a, b, ty, pieces):
        """The lesser or greater of two numbers; with `xorsign`, of their magnitudes, with the sign of the product."""
        signs = t.is_negative(a) != t.is_negative(b)
        if "abs" in pieces:
            a, b = t.magnitude(a), t.magnitude(b)
        value = t.extreme_float(a, b, ty, pieces[0] == "max", "NaN" in pieces, "ftz" in pieces)
        if "xorsign" not in pieces:
            return value
        return z3.If(z3.Or(t.is_nan(value, ty), z3.Not(signs)), value, t.negate(value))

    def do_neg(self, pieces, sources):
        w, _, (a,) = self.two(pieces, sources)
        return self.signs(pieces, a, t.negate) if self.is_float(pieces) else -a

    def do_abs(self, pieces, sources):
        w, _, (a,) = self.two(pieces, sources)
        return self.signs(pieces, a, t.magnitude) if self.is_float(pieces) else z3.If(a < 0, -a, a)

    def do_copysign(self, pieces, sources):
        w, _, (sign, a) = self.two(pieces, sources)
        return t.copy_sign(a, sign)

    def do_and(self, pieces, sources):
        w, _, (a, b) = self.two(pieces, sources)
        return {"and": a & b, "or": a | b, "xor": a ^ b}[pieces[0]]

    do_or = do_xor = do_and

    def do_not(self, pieces, sources):
        return ~self.two(pieces, sources)[2][0]

    def do_shl(self, pieces, sources):
        w = type_width(pieces[-1])
        kind = "shl" if pieces[0] == "shl" else "ashr" if pieces[-1][0] == "s" else "lshr"
        return t.shift(kind, self.read(sources[0], w), self.read(sources[1], 32))

    do_shr = do_shl

    def do_shf(self, pieces, sources):
        low, high, n = (self.read(x, 32) for x in sources)
        if pieces[2] != "wrap":
            raise Unknown(".".join(pieces))
        return t.funnel(low, high, n, pieces[1] == "l")

    def do_setp(self, pieces, sources):
        ty, code, ftz = pieces[-1], pieces[1], "ftz" in pieces
        w = type_width(ty)
        a, b = (self.read(x, w) for x in sources[:2])
        if ty in t.WIDTHS:
            names = {"num": "ord", "nan": "uno", "neu": "une", "equ": "ueq"}
            ir = names.get(code) or ("u" + code[:-1] if code.endswith("u") else "o" + code)
            condition = t.compare_floats("one" if ir == "one" else ir, a, b, ty, ftz)
        else:
            ir = code if code in ("eq", "ne") else ("s" if ty[0] == "s" else "u") + code
            condition = t.COMPARE[ir](a, b)
        if len(sources) == 3:
            with_ = t.holds(self.read(sources[2], 1))
            condition = {"and": z3.And, "or": z3.Or, "xor": z3.Xor}[pieces[2]](condition, with_)
        return t.bit(condition)

    def do_selp(self, pieces, sources):
        w = type_width(pieces[-1])
        return z3.If(t.holds(self.read(sources[2], 1)), self.read(sources[0], w), self.read(sources[1], w))

    def do_testp(self, pieces, sources):
        masks = {"finite": 0x1f8, "infinite": 0x204, "number": 0x3fc, "notanumber": 0x3, "normal": 0x168, "subnormal": 0x90}
        w = type_width(pieces[-1])
        return t.bit(t.class_of(self.read(sources[0], w), pieces[-1], masks[pieces[1]]))

    def do_popc(self, pieces, sources):
        return t.popc(self.read(sources[0], type_width(pieces[-1])), 32)

    def do_clz(self, pieces, sources):
        return t.clz(self.read(sources[0], type_width(pieces[-1])), 32)

    def do_bfind(self, pieces, sources):
        w = type_width(pieces[-1])
        a = self.read(sources[0], w)
        if pieces[-1][0] == "s":
            # The highest bit that differs from the sign.
            a = a ^ (a >> (w - 1))
        zeros = t.clz(a, 32)
        place = zeros if "shiftamt" in pieces else const(w - 1, 32) - zeros
        return z3.If(a == 0, const(-1, 32), place)

    def do_brev(self, pieces, sources):
        return t.reverse(self.read(sources[0], type_width(pieces[-1])))

    def do_bmsk(self, pieces, sources):
        at, n = (self.read(x, 32) for x in sources)
        if pieces[1] != "clamp":
            raise Unknown("bmsk.wrap")
        wide_at = z3.If(z3.UGE(at, 32), const(32, 64), z3.ZeroExt(32, at))
        wide_n = z3.If(z3.UGE(n, 32), const(32, 64), z3.ZeroExt(32, n))
        return z3.Extract(31, 0, ((const(1, 64) << wide_n) - 1) << wide_at)

    def do_szext(self, pieces, sources):
        a, n = (self.read(x, 32) for x in sources)
        if pieces[1] != "clamp":
            raise Unknown("szext.wrap")
        up = const(32, 32) - z3.If(z3.UGE(n, 32), const(32, 32), n)
        kind = "ashr" if pieces[-1][0] == "s" else "lshr"
        out = t.shift(kind, t.shift("shl", a, up), up)
        return z3.If(n == 0, const(0, 32), out)

    def do_bfe(self, pieces, sources):
        w, signed, _ = self.two(pieces, [])
        a = self.read(sources[0], w)
        at, n = (self.read(x, 32) & 255 for x in sources[1:])
        if not all(z3.is_bv_value(z3.simplify(x)) for x in (at, n)):
            raise Unknown("a field that is not constant")
        at, n = (z3.simplify(x).as_long() for x in (at, n))
        if n == 0 or at + n > w:
            raise Unknown("a field beyond the word")
        return t.resize(z3.Extract(at + n - 1, at, a), w, signed)

    def do_lop3(self, pieces, sources):
        a, b, c = (self.read(x, 32) for x in sources[:3])
        table, out = int(sources[3], 0), const(0, 32)
        for i in range(8):
            if table >> i & 1:
                out = out | ((a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c))
        return out

    def do_prmt(self, pieces, sources):
        a, b = (self.read(x, 32) for x in sources[:2])
        both = z3.Concat(b, a)
        if pieces[-1] == "f4e":
            # Four bytes from the one of that number on, modulo four.
            start = z3.ZeroExt(32, (self.read(sources[2], 32) & 3) << 3)
            return z3.Extract(31, 0, z3.LShR(both, start))
        if pieces[-1] != "b32" or sources[2].startswith("%"):
            raise Unknown(".".join(pieces))
        selector = int(sources[2], 0)
        out = []
        for i in range(4):
            control = selector >> (4 * i) & 15
            byte = z3.Extract(8 * (control & 7) + 7, 8 * (control & 7), both)
            out.append(byte >> 7 if control & 8 else byte)
        return z3.Concat(*reversed(out))

    def do_dp4a(self, pieces, sources):
        a, b, c = (self.read(x, 32) for x in sources)
        for i in range(4):
            x, y = (z3.Extract(8 * i + 7, 8 * i, v) for v in (a, b))
            c = c + t.resize(x, 32, pieces[1][0] == "s") * t.resize(y, 32, pieces[2][0] == "s")
        return c

    def do_dp2a(self, pieces, sources):
        a, b, c = (self.read(x, 32) for x in sources)
        first = 2 if pieces[1] == "hi" else 0
        for i in range(2):
            x, y = z3.Extract(16 * i + 15, 16 * i, a), z3.Extract(8 * (first + i) + 7, 8 * (first + i), b)
            c = c + t.resize(x, 32, pieces[2][0] == "s") * t.resize(y, 32, pieces[3][0] == "s")
        return c

    def do_clmad(self, pieces, sources):
        a, b, c = (self.read(x, 64) for x in sources)
        product = t.carryless(z3.ZeroExt(64, a), z3.ZeroExt(64, b), 64)
        half = z3.Extract(127, 64, product) if pieces[1] == "hi" else z3.Extract(63, 0, product)
        return half ^ c

    def do_vabsdiff4(self, pieces, sources):
        a, b, c = (self.read(x, 32) for x in sources)
        if pieces[-1] != "add":
            raise Unknown(".".join(pieces))
        for x, y in zip(t.lanes_of(a, 8), t.lanes_of(b, 8)):
            x, y = t.resize(x, 32, pieces[2][0] == "s"), t.resize(y, 32, pieces[3][0] == "s")
            c = c + z3.If(x < y, y - x, x - y)
        return c

    def do_sad(self, pieces, sources):
        w, signed, (a, b, c) = self.two(pieces, sources)
        less = a < b if signed else z3.ULT(a, b)
        return c + z3.If(less, b - a, a - b)

    def do_cvt(self, pieces, sources):
        to, source = pieces[-2], pieces[-1]
        mods, ftz = pieces[1:-2], "ftz" in pieces
        if to in ("f16x2", "bf16x2") and source == "f32" and mods == ["rn"]:
            return z3.Concat(*[t.convert_float(self.read(x, 32), "f32", to[:-2], "rn") for x in sources])
        if "relu" in mods and to in ("f16", "bf16") and source == "f32":
            out = t.convert_float(self.read(sources[0], 32), "f32", to, "rn")
            return z3.If(t.is_nan(out, to), out, z3.If(out < 0, const(0, 16), out))
        if "sat" in mods or "relu" in mods or "x2" in to or len(sources) > 1:
            raise Unknown(".".join(pieces))
        a = self.read(sources[0], type_width(source) if source not in t.WIDTHS else t.WIDTHS[source])
        rounding = next((m.rstrip("i") for m in mods if m.rstrip("i") in t.ROUNDINGS), "rn")
        if to in t.WIDTHS and source in t.WIDTHS:
            if any(m in ("rni", "rzi", "rmi", "rpi") for m in mods):
                if to != source:
                    raise Unknown(".".join(pieces))
                return z3.fpToIEEEBV(z3.fpRoundToIntegral(t.ROUNDINGS[rounding], t.fp(a, to)))
            return t.convert_float(a, source, to, rounding)
        if to in t.WIDTHS:
            return t.from_int(a, to, source[0] == "s", rounding)
        if source in t.WIDTHS:
            return t.to_int(a, source, type_width(to), to[0] == "s", rounding, ftz)[0]
        return t.resize(a, type_width(to), source[0] == "s")
