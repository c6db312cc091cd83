"""Reads functions of one block of the IR and makes terms of them, for prove_rules.py. The language is `ir/LANGUAGE.md`."""

import re

import z3

import prove_rules_bits as t
from prove_rules_bits import const


class Unknown(Exception):
    """Something that is not modelled."""


def width(ty):
    if m := re.fullmatch(r"<(\d+) x (.+)>", ty):
        return int(m[1]) * width(m[2])
    if m := re.fullmatch(r"i(\d+)", ty):
        return int(m[1])
    if ty in t.WIDTHS:
        return t.WIDTHS[ty]
    if ty.startswith("ptr"):
        return 64
    raise Unknown(f"type {ty}")


FUNC = re.compile(r"^func @([\w.$-]+)\((.*)\) -> (.+) \{$")
TYPE = r"(<\d+ x \w+>|ptr(?:<\w+>)?|[a-z]+\d+|i\d+)"
FLAGS = {"nsw", "nuw", "exact", "disjoint", "nneg", "nonzero", "contract", "afn", "arcp", "ninf", "nnan", "nsz", "reassoc", "fast",
         "rn", "rz", "rm", "rp", "ftz", "sat", "relu", "inbounds"}


class Function:
    """A function's text: parameters, result type, instructions."""

    def __init__(self, name, params, result):
        self.name, self.params, self.result, self.lines = name, params, result, []
        self.fires, self.equals, self.tolerance, self.skip = [], None, False, False


def read(text):
    """The functions of a file, by name, with their directives."""
    functions, current, pending = {}, None, []
    for line in text.splitlines():
        if line.startswith(";! "):
            pending.append(line[3:].split())
        elif m := FUNC.match(line):
            params = [p.strip().split(": ") for p in re.findall(r"%[\w.]+: (?:<[^>]*>|[^,<]+(?:<\w+>)?)", m[2])]
            current = Function(m[1], params, m[3])
            for words in pending:
                if words[0] == "fires":
                    current.fires += words[1:]
                elif words[0] == "equals":
                    current.equals = words[1].lstrip("@")
                elif words[0] in ("tolerance", "skip"):
                    setattr(current, words[0], True)
            functions[current.name] = current
            pending = []
        elif line == "}":
            current = None
        elif current is not None and line.strip() not in ("", "entry:"):
            current.lines.append(line.split(";")[0].strip())
    return functions


class Terms:
    """The result of a function, and when it is poison."""

    def __init__(self, function, arguments):
        self.values = {name: (term, z3.BoolVal(False)) for (name, _), term in zip(function.params, arguments)}
        self.undefined = []
        for line in function.lines:
            self.line(line, function.result)

    def operand(self, text, ty):
        """Term and poison of an operand."""
        text = text.strip()
        w = width(ty)
        if text.startswith("%"):
            return self.values[text]
        if text == "zero":
            return const(0, w), z3.BoolVal(False)
        if text in ("true", "false"):
            return const(int(text == "true"), w), z3.BoolVal(False)
        if text.startswith(("0x", "-0x")) or re.fullmatch(r"-?\d+", text):
            return const(int(text, 0), w), z3.BoolVal(False)
        if re.fullmatch(r"-?\d+\.\d+(e-?\d+)?", text) and ty in t.SORTS:
            return z3.simplify(t.fp_bits(float(text), ty)), z3.BoolVal(False)
        raise Unknown(f"operand {text}")

    def line(self, line, result):
        if m := re.match(r"ret (.+)$", line):
            self.result, self.poison = self.operand(m[1], result)
            return
        m = re.match(r"(%[\w.]+) = ([\w.]+) (.*)$", line)
        if not m:
            raise Unknown(line)
        name, op, rest = m[1], m[2], m[3]
        flags = []
        while (word := rest.split(" ", 1)[0]) in FLAGS:
            flags.append(word)
            rest = rest.split(" ", 1)[1]
        self.values[name] = self.value(op, flags, rest)

    def value(self, op, flags, rest):
        if op in ("icmp", "fcmp"):
            if (word := rest.split(" ", 1)[0]) in FLAGS:
                raise Unknown(rest)
            code, rest = rest.split(" ", 1)
            while code in FLAGS:
                flags.append(code)
                code, rest = rest.split(" ", 1)
            ty, operands = self.typed(rest)
            (a, p), (b, q) = operands
            cond = t.COMPARE[code](a, b) if op == "icmp" else t.compare_floats(code, a, b, ty, "ftz" in flags)
            return t.bit(cond), z3.Or(p, q)
        if op == "select":
            m = re.match(r"i1 ([^,]+), (.*)$", rest)
            c, p = self.operand(m[1], "i1")
            ty, ((a, pa), (b, pb)) = self.typed(m[2])
            return z3.If(t.holds(c), a, b), z3.Or(p, z3.If(t.holds(c), pa, pb))
        if op == "fclass":
            m = re.match(TYPE + r" ([^,]+), (\w+)$", rest)
            a, p = self.operand(m[2], m[1])
            return t.bit(t.class_of(a, m[1], int(m[3], 0))), p
        if m := re.match(TYPE + r" ([^,]+) to " + TYPE + "$", rest):
            return self.convert(op, flags, self.operand(m[2], m[1]), m[1], m[3])
        if op in ("extract", "vector", "splat"):
            return self.lanes(op, rest)
        if op == "ptx.fns.b32":
            operands = [self.operand(x, "i32") for x in rest.split(", ")]
            return t.find_nth(*[v for v, _ in operands]), z3.Or([p for _, p in operands])
        if op == "gep":
            return self.address(rest)
        ty, operands = self.typed(rest)
        poison = z3.Or([p for _, p in operands]) if operands else z3.BoolVal(False)
        value, more = self.compute(op, flags, ty, [v for v, _ in operands])
        if op == "freeze":
            if not z3.is_false(z3.simplify(poison)):
                raise Unknown("freeze of what may be poison")
        return value, z3.Or(poison, more)

    def typed(self, rest):
        """A type and the operands of it."""
        m = re.match(TYPE + r" (.*)$", rest)
        if not m:
            raise Unknown(rest)
        return m[1], [self.operand(x, m[1]) for x in m[2].split(", ")]

    def lanes(self, op, rest):
        m = re.match(r"(<(\d+) x (\w+)>) (.*)$", rest)
        ty, count, scalar = m[1], int(m[2]), m[3]
        words = m[4].split(", ")
        w = width(scalar)
        if op == "extract":
            a, p = self.operand(words[0], ty)
            if words[1].startswith("%"):
                raise Unknown("a lane by its number")
            lane = int(words[1])
            if a.size() != w * count:
                raise Unknown("lanes of " + rest)
            if lane >= count:
                return const(0, w), z3.BoolVal(True)
            return z3.Extract(w * lane + w - 1, w * lane, a), p
        parts = [self.operand(x, scalar) for x in (words if op == "vector" else words * count)]
        return z3.Concat(*[v for v, _ in reversed(parts)]), z3.Or([p for _, p in parts])

    def address(self, rest):
        m = re.match(r"(?:inbounds )?(i\d+), ([^,]+), (?:(i\d+) )?([^,]+)$", rest)
        if not m or not m[2].startswith("%"):
            raise Unknown("gep " + rest)
        base, p = self.operand(m[2], "ptr")
        index, q = self.operand(m[4], m[3] or "i64") if not m[4].startswith("%") else self.values[m[4]]
        return base + t.resize(index, 64, True) * (width(m[1]) // 8), z3.Or(p, q)

    def convert(self, op, flags, operand, source, to):
        a, p = operand
        none = z3.BoolVal(False)
        w = width(to)
        rounding = next((f for f in flags if f in t.ROUNDINGS), "rn")
        if "<" in source or "<" in to:
            if op == "bitcast":
                return a, p
            m, n = re.fullmatch(r"<2 x (\w+)>", source), re.fullmatch(r"<2 x (\w+)>", to)
            if not m or not n or op != "fptrunc":
                raise Unknown(f"{op} of vectors")
            part = width(m[1])
            lanes = [z3.Extract(part * i + part - 1, part * i, a) for i in (1, 0)]
            return z3.Concat(*[t.convert_float(x, m[1], n[1], rounding) for x in lanes]), p
        if op in ("zext", "sext", "trunc"):
            more = none
            if "nneg" in flags:
                more = a < 0
            return t.resize(a, w, op == "sext"), z3.Or(p, more)
        if op in ("bitcast", "ptrtoint", "inttoptr"):
            return a, p
        if op in ("fptrunc", "fpext"):
            if "tf32" in (source, to):
                return a, p
            return t.convert_float(a, source, to, rounding), p
        if op in ("sitofp", "uitofp"):
            more = a < 0 if "nneg" in flags else none
            return t.from_int(a, to, op[0] == "s", rounding), z3.Or(p, more)
        if op.startswith(("fptosi", "fptoui")):
            given = next((f for f in flags if f in t.ROUNDINGS), "rz")
            value, inside = t.to_int(a, source, w, op[4] == "s", given, "ftz" in flags)
            return value, p if op.endswith("_sat") else z3.Or(p, z3.Not(inside))
        raise Unknown(op)

    def compute(self, op, flags, ty, v):
        if m := re.fullmatch(r"<2 x (b?f16)>", ty):
            if op in ("fadd", "fsub", "fmul", "fma") and not flags:
                return self.floats(op, flags, m[1] + "x2", v), z3.BoolVal(False)
        if m := re.fullmatch(r"<(\d+) x (i\d+|b?f16|f32)>", ty):
            lanes = [t.lanes_of(x, width(m[2])) for x in v]
            parts = [self.compute(op, flags, m[2], [x[i] for x in lanes]) for i in range(int(m[1]))]
            return z3.Concat(*[value for value, _ in reversed(parts)]), z3.Or([poison for _, poison in parts])
        if "<" in ty:
            raise Unknown(f"{op} of vectors")
        if ty in t.WIDTHS:
            value = self.floats(op, flags, ty, v)
            nan = [t.is_nan(x, ty) for x in [*v, value]] if "nnan" in flags else []
            return value, z3.Or(nan)
        a, w = v[0], width(ty)
        b = v[1] if len(v) > 1 else None
        wrap = []
        if op in ("add", "sub", "mul"):
            n = 2 * w if op == "mul" else w + 1
            for flag, signed in (("nsw", True), ("nuw", False)):
                if flag in flags:
                    x, y = t.resize(a, n, signed), t.resize(b, n, signed)
                    exact = {"add": x + y, "sub": x - y, "mul": x * y}[op]
                    wrap.append(exact != t.resize(t.resize(exact, w), n, signed))
            return {"add": a + b, "sub": a - b, "mul": a * b}[op], z3.Or(wrap)
        if op in ("and", "or", "xor"):
            joint = (a & b) != 0 if "disjoint" in flags else z3.BoolVal(False)
            return {"and": a & b, "or": a | b, "xor": a ^ b}[op], joint
        if op in ("shl", "lshr", "ashr"):
            out = t.shift(op, a, b)
            if "exact" in flags:
                wrap.append(t.shift("shl", out, b) != a)
            if "nuw" in flags:
                wrap.append(t.shift("lshr", out, b) != a)
            if "nsw" in flags:
                wrap.append(t.shift("ashr", out, b) != a)
            return out, z3.Or(z3.UGE(b, w), *wrap)
        if op in ("udiv", "sdiv", "urem", "srem"):
            self.undefined.append(b == 0)
            if op[0] == "s":
                self.undefined.append(z3.And(a == const(1 << (w - 1), w), b == const(-1, w)))
            out = {"udiv": z3.UDiv, "urem": z3.URem, "srem": z3.SRem, "sdiv": lambda x, y: x / y}[op](a, b)
            return out, out * b != a if "exact" in flags else z3.BoolVal(False)
        if op in ("smin", "smax", "umin", "umax"):
            return t.extreme(a, b, op.endswith("max"), op[0] == "s"), z3.BoolVal(False)
        none = z3.BoolVal(False)
        simple = {
            "clmul": lambda: t.carryless(a, b, w),
            "umulh": lambda: t.high_product(a, b, False), "smulh": lambda: t.high_product(a, b, True),
            "abs": lambda: z3.If(a < 0, -a, a), "freeze": lambda: a, "ctpop": lambda: t.popc(a, w),
            "uadd_sat": lambda: z3.If(z3.ULT(a + b, a), const(-1, w), a + b),
            "sadd_sat": lambda: t.saturated(a, b, False), "ssub_sat": lambda: t.saturated(a, b, True),
            "ctlz": lambda: t.clz(a, w), "cttz": lambda: t.clz(t.reverse(a), w), "bitreverse": lambda: t.reverse(a),
            "bswap": lambda: t.swap_bytes(a),
            "fshl": lambda: t.funnel(b, a, v[2], True), "fshr": lambda: t.funnel(b, a, v[2], False),
        }
        if op in simple:
            return simple[op](), a == 0 if "nonzero" in flags else none
        raise Unknown(op)

    def floats(self, op, flags, ty, v):
        if op in ("fneg", "fabs", "copysign"):
            return {"fneg": t.negate, "fabs": t.magnitude, "copysign": t.copy_sign}[op](*v)
        if op == "freeze":
            return v[0]
        if "afn" in flags and ty == "f32":
            raise Unknown("an approximation")
        rounding = next((f for f in flags if f in t.ROUNDINGS), "rn")
        names = {"fadd": "add", "fsub": "sub", "fmul": "mul", "fma": "fma", "fdiv": "div", "fsqrt": "sqrt", "frcp": "rcp"}
        if op.startswith(("fmin", "fmax")):
            return t.extreme_float(*v, ty, op[1:4] == "max", op.endswith("imum"), "ftz" in flags)
        # A reciprocal is the correctly rounded quotient of one.
        if op == "fdiv" and z3.is_bv_value(v[0]) and v[0].as_long() == z3.simplify(t.fp_bits(1.0, ty)).as_long():
            op, v = "frcp", v[1:]
        if op in names:
            mods = [rounding] + [f for f in ("ftz", "sat", "relu") if f in flags]
            return t.arithmetic(names[op], mods, ty, v)
        rounds = {"ffloor": "rm", "fceil": "rp", "ftrunc": "rz", "frint": "rn"}
        if op in rounds:
            return z3.fpToIEEEBV(z3.fpRoundToIntegral(t.ROUNDINGS[rounds[op]], t.fp(v[0], ty)))
        raise Unknown(op)
