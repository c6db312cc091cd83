"""Divisions by constants as terms over integers, for prove_rules.py: linear arithmetic decides at once what bit vectors do not.

A value is a number from 0 to 2^width - 1. Products have a constant factor.
"""

import re

import z3

from prove_rules_ir import Unknown, width
from prove_rules_ptx import type_width


def signed(value, w):
    return z3.If(value >= 2 ** (w - 1), value - 2**w, value)


def number(text, w):
    """A constant; None where the operand is none."""
    return int(text, 0) % 2**w if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)", text) else None


class Before:
    """A function of the IR whose one instruction is a division."""

    def __init__(self, function, argument):
        m = re.fullmatch(r"(%\w+) = ([us])(div|rem) (i\d+) (%\w+), (-?\d+)", function.lines[0])
        if not m or function.lines[1:] != [f"ret {m[1]}"] or m[5] != function.params[0][0]:
            raise Unknown("more than a division by a constant")
        w = width(m[4])
        divisor = int(m[6])
        x = signed(argument, w) if m[2] == "s" else argument
        size = abs(divisor) if m[2] == "s" else divisor % 2**w
        # Toward zero, on magnitudes.
        quotient = z3.If(x >= 0, x / size, -((-x) / size))
        quotient = -quotient if m[2] == "s" and divisor < 0 else quotient
        divisor = divisor if m[2] == "s" else divisor % 2**w
        self.result = (quotient if m[3] == "div" else x - quotient * divisor) % 2**w


class After:
    """The PTX of such a function."""

    def __init__(self, body, argument):
        self.values = {}
        for line in body:
            if not line.startswith(".reg") and line != "ret":
                self.line(line, argument)

    def line(self, line, argument):
        mnemonic, rest = line.split(None, 1)
        pieces, operands = mnemonic.split("."), [x.strip() for x in rest.split(",")]
        w = type_width(pieces[-1])
        if pieces[0] == "ld":
            self.values[operands[0]] = argument
            return
        if pieces[0] == "st":
            if operands[1] not in self.values:
                raise Unknown(line)
            self.result = self.values[operands[1]]
            return
        args = [self.values.get(x, number(x, w)) for x in operands[1:]]
        if any(a is None for a in args):
            raise Unknown(line)
        self.values[operands[0]] = self.compute(pieces, args, w)

    def compute(self, pieces, args, w):
        a = args[0]
        b = args[1] if len(args) > 1 else None
        is_signed = pieces[-1][0] == "s"
        modulus = 2**w
        if pieces[0] in ("mul", "mad") and not isinstance(b, int):
            a, b = b, a
        if pieces[0] in ("mul", "mad") and not isinstance(b, int) or pieces[0] == "shr" and not isinstance(b, int):
            raise Unknown("no constant")
        if pieces[:2] == ["mul", "hi"]:
            if is_signed:
                return ((signed(a, w) * (b - modulus if b >= modulus // 2 else b)) / modulus) % modulus
            return (a * b) / modulus
        if pieces[:2] == ["mul", "lo"]:
            return (a * b) % modulus
        if pieces[:2] == ["mad", "lo"]:
            return (a * b + args[2]) % modulus
        if pieces[0] == "shr":
            return (signed(a, w) / 2**b) % modulus if is_signed else a / 2**b
        if pieces[0] in ("add", "sub"):
            return (a + b if pieces[0] == "add" else a - b) % modulus
        if pieces[0] == "neg":
            return -a % modulus
        if pieces[0] == "mov":
            return a
        raise Unknown(".".join(pieces))


def prove(function, body, seconds):
    """Whether the division is right for every number; None where that is not known."""
    if len(function.params) != 1 or len(function.lines) != 2:
        return None
    try:
        w = width(function.params[0][1])
        argument = z3.Int("n")
        before, after = Before(function, argument), After(body, argument)
    except Unknown:
        return None
    solver = z3.Solver()
    solver.set("timeout", int(1000 * seconds))
    solver.add(argument >= 0, argument < 2**w, before.result != after.result)
    result = solver.check()
    if result == z3.sat:
        return f"of {solver.model()[argument]}"
    return "" if result == z3.unsat else None
