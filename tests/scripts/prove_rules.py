#!/usr/bin/env python3
"""Proves that what rules make of the functions of tests/rules is what the functions say, for all values (z3).

    PTXC_RULES_DUMP=/tmp/rules cargo test --test rules computes    # writes the PTX of each file there
    pip install z3-solver
    tests/scripts/prove_rules.py /tmp/rules [--seconds 20] [--only NAME] [--file NAME] [--table FILE]

Both forms become terms over bit vectors: poison and undefined behaviour of the IR leave the result open, shifts of PTX clamp,
tables and selectors are those of the specification. Divisions by constants are proved over integers. Arithmetic of floats is a
function that nothing is known of, the same on both sides, unless an operand is a constant; so a proof of a fused product says that the operands are right, and that fusing is allowed is the business of
the flags (`equals`). A function that is approximated, reads memory or is not modelled is left to the executors
(`cargo test --test rules`). Prints what holds, does not, or was not decided, and for each rule how it was checked.
"""

import argparse
import collections
import pathlib
import re
import sys
import time

import z3

import prove_rules_integers as integers
import prove_rules_ir as ir
import prove_rules_ptx as ptx
import prove_rules_bits as t

# Expansions whose arithmetic of floats is not that of the function, operation by operation.
OTHER_FLOATS = {"legal.bf16_by_fma", "legal.relu", "legal.saturate", "legal.half_by_single", "legal.half_fma", "legal.rsqrt", "legal.nan_wins"}
# A function of arithmetic in a model.
OPAQUE = re.compile(r"\b(add|mul|div|fma)\.")
FOLDER = pathlib.Path(__file__).resolve().parent.parent / "rules"


def differ(function, before, after):
    """The condition that a defined result is another one after the rules."""
    ty = function.result
    same = before.result == t.resize(after.result, before.result.size())
    if ty in t.SORTS:
        same = z3.Or(same, z3.And(t.is_nan(before.result, ty), t.is_nan(t.resize(after.result, ir.width(ty)), ty)))
    if pair := re.fullmatch(r"<2 x (b?f16)>", ty):
        # One NaN is as good as another, lane by lane.
        lanes = zip(t.lanes_of(before.result, 16), t.lanes_of(t.resize(after.result, 32), 16))
        same = z3.And([z3.Or(a == b, z3.And(t.is_nan(a, pair[1]), t.is_nan(b, pair[1]))) for a, b in lanes])
    return z3.And(z3.Not(z3.Or(before.poison, *before.undefined)), z3.Not(same))


def check(function, functions, body, seconds):
    """How it went, and what was found."""
    if function.skip or function.tolerance:
        return "executors", "approximated or in memory"
    if OTHER_FLOATS & set(function.fires):
        return "executors", "floats are computed another way"
    division = integers.prove(function, body, seconds)
    if division is not None:
        return ("wrong", division) if division else ("proved", "")
    outcome, text = compare(function, functions, body, seconds)
    if outcome == "wrong" and OPAQUE.search(text):
        # Found with a function that nothing is known of: asked again with what it computes.
        t.EXACT = True
        outcome, text = compare(function, functions, body, seconds)
        t.EXACT = False
    return outcome, text


def compare(function, functions, body, seconds):
    """The same by bit vectors."""
    try:
        arguments = [z3.BitVec(name, ir.width(ty)) for name, ty in function.params]
        reference = functions[function.equals] if function.equals else function
        before = ir.Terms(reference, arguments)
        after = ptx.Terms(function.name, body, arguments)
    except ir.Unknown as unknown:
        return "executors", str(unknown)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, z3.Z3Exception) as error:
        return "executors", f"not modelled: {error}"
    solver = z3.Solver()
    solver.set("timeout", int(1000 * seconds))
    solver.add(differ(function, before, after))
    result = solver.check()
    if result == z3.unsat:
        return "proved", ""
    if result == z3.sat:
        return "wrong", str(solver.model())
    return "executors", "not decided in time"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--only", default="", help="functions whose name contains this")
    parser.add_argument("--file", default="*", help="files of this name, without .ir")
    parser.add_argument("--table", type=pathlib.Path)
    arguments = parser.parse_args()
    counts, rules = collections.Counter(), collections.defaultdict(collections.Counter)
    for path in sorted(FOLDER.glob(arguments.file + ".ir")):
        functions = ir.read(path.read_text())
        bodies = ptx.functions((arguments.dump / path.with_suffix(".ptx").name).read_text())
        for function in functions.values():
            if not function.fires or arguments.only not in function.name:
                continue
            start = time.monotonic()
            outcome, text = check(function, functions, bodies[function.name], arguments.seconds)
            counts[outcome] += 1
            for rule in function.fires:
                rules[rule][outcome] += 1
            spent = time.monotonic() - start
            if outcome != "proved" or spent > 5:
                print(f"{path.name}: @{function.name}: {outcome} {text} ({spent:.1f} s)", flush=True)
    best = collections.Counter("proved" if row["proved"] else "executors" for row in rules.values())
    print(", ".join(f"{number} functions {what}" for what, number in sorted(counts.items())))
    print(", ".join(f"{number} rules {what}" for what, number in sorted(best.items())))
    if arguments.table:
        rows = (f"{rule} proved {row['proved']} executors {row['executors']}\n" for rule, row in sorted(rules.items()))
        arguments.table.write_text("".join(rows))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
