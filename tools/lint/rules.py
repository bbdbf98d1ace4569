#!/usr/bin/python3
"""Checks the house rules, each in a module of tools/lint/house.

usage: rules.py

A module states its rule in the first line of its docstring, and has check(tree), which yields findings. Each has
examples as trees of files, so that a rule that stops working is detected: `broken` must yield findings, `sound` must
not. Both count as tests. The counts are written to the file $TALLY.
"""

import importlib
import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

from tree import Tree  # noqa: E402


def trials(rule, tree):
    for number, files in enumerate(rule.broken, 1):
        faults = list(rule.check(Tree(files)))
        yield f"finds broken example {number}", [] if faults else [f"no findings in {files}"]
    for number, files in enumerate(rule.sound, 1):
        yield f"passes sound example {number}", list(rule.check(Tree(files)))
    yield "holds here", list(rule.check(tree))


def main():
    tree = Tree.of(ROOT)
    passed = failed = 0
    for path in sorted((HERE / "house").glob("*.py")):
        rule = importlib.import_module(f"house.{path.stem}")
        for name, faults in trials(rule, tree):
            passed, failed = passed + (not faults), failed + bool(faults)
            if faults:
                print(f"{path.stem}, {name}: {rule.__doc__.splitlines()[0]}", *faults, sep="\n  ")
    print(f"house rules: {passed} checks passed, {failed} failed")
    if "TALLY" in os.environ:
        Path(os.environ["TALLY"]).write_text(f"{passed} {failed}\n")
    return 1 if failed else 0


sys.exit(main())
