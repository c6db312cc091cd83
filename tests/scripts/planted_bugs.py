#!/usr/bin/env python3
"""Plants bugs in a copy of the compiler, one at a time, and has the fuzzer find them.

    tests/scripts/planted_bugs.py [--seconds 300] [--profile release] [--only NAME ...] [--list]

The mutations are in tests/planted_bugs.txt. Each is applied to a copy of the working tree in a temporary folder; the
fuzzer is built there (in the folder planted-bugs of CARGO_TARGET_DIR or target) and run until it finds something or
the time is up. Exit status 0 when every bug is found.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def read_list(path):
    """Entries as (name, file, old text, new text)."""
    entries = []
    for line in path.read_text().splitlines():
        if line.startswith("== "):
            entries.append([line[3:].strip(), None, [], []])
        elif line.startswith("file "):
            entries[-1][1] = line[5:].strip()
        elif line.startswith("-"):
            entries[-1][2].append(line[1:])
        elif line.startswith("+"):
            entries[-1][3].append(line[1:])
        elif line and not line.startswith("#"):
            sys.exit(f"{path}: {line!r} is neither name, file nor change")
    return [(name, file, "\n".join(old) + "\n", "\n".join(new) + "\n") for name, file, old, new in entries]


def mutated(file, old, new):
    """The file's text with the change made; the old text must stand there once, with any indentation."""
    text = (ROOT / file).read_text()
    if text.count(old) != 1:
        raise ValueError(f"{file}: the text to replace occurs {text.count(old)} times")
    return text.replace(old, new)


def build(tree, target, profile):
    """Builds the fuzzer of a tree; gives its path."""
    command = ["cargo", "build", "--profile", profile, "--quiet", "-p", "ptxc-fuzz"]
    environment = dict(os.environ, CARGO_TARGET_DIR=str(target))
    subprocess.run(command, cwd=tree, env=environment, check=True, stdout=subprocess.DEVNULL)
    return target / ("debug" if profile == "dev" else profile) / "ptxc-fuzz"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=300, help="most time for finding one bug")
    parser.add_argument("--profile", default="release", help="cargo profile of the fuzzer")
    parser.add_argument("--only", nargs="*", help="names of the bugs to plant")
    parser.add_argument("--list", action="store_true", help="check the list and print its names")
    arguments = parser.parse_args()
    entries = read_list(ROOT / "tests" / "planted_bugs.txt")
    try:
        texts = {name: (file, mutated(file, old, new)) for name, file, old, new in entries}
    except ValueError as error:
        sys.exit(str(error))
    if arguments.list:
        print("\n".join(texts))
        return
    chosen = arguments.only or list(texts)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "planted-bugs"
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder) / "tree"
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
        )
        for name in listed.stdout.splitlines():
            if (ROOT / name).is_file():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, tree / name)
        for name in chosen:
            file, text = texts[name]
            original = (tree / file).read_text()
            (tree / file).write_text(text)
            try:
                fuzzer = build(tree, target, arguments.profile)
                start = time.monotonic()
                command = [fuzzer, "run", "--count", "1000000000", "--first", "--no-reduction"]
                run = subprocess.run(
                    [*command, "--seconds", str(arguments.seconds)], capture_output=True, text=True, check=False
                )
                taken = time.monotonic() - start
            finally:
                (tree / file).write_text(original)
            found = re.search(r"^seed (\d+) for", run.stdout, re.MULTILINE)
            if found:
                step = re.search(r"first wrong after (?:.*,)?(\S+)", run.stdout)
                print(f"{name}: seed {found[1]}, after {step[1]}, {taken:.1f} s", flush=True)
            else:
                missed.append(name)
                print(f"{name}: NOT FOUND in {taken:.0f} s: {run.stdout.strip()}", flush=True)
    print(f"{len(chosen) - len(missed)} of {len(chosen)} found")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
