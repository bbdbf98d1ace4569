#!/usr/bin/python3
"""Counts the single tests inside unit-test programs, and shows those that failed.

usage: tally.py TESTLOG.json TALLY

TESTLOG.json is what `meson test` writes about the cmocka programs it ran; TALLY becomes "PASSED FAILED". A
program that ends badly counts as one failure even if all its tests passed, for sanitizers report at the end.
"""

import json
import re
import sys
from pathlib import Path

LINE = re.compile(r"\[ *(RUN|OK|SKIPPED|FAILED) *\] (\w+)$")


def programs(log):
    if not log.exists():
        return
    for line in log.read_text(errors="replace").splitlines():
        yield json.loads(line)


def outcomes(words):
    """How each test ended that began; the summary, which names some again, is passed over."""
    running = None
    for line in words.splitlines():
        match = LINE.match(line)
        if not match:
            continue
        if match[1] == "RUN":
            if running:
                yield "FAILED"
            running = match[2]
        elif match[2] == running:
            yield match[1]
            running = None
    if running:
        yield "FAILED"  # it took the program with it


def count(program):
    ends = list(outcomes(program.get("stdout", "")))
    well = program["result"] in ("OK", "EXPECTEDFAIL", "SKIP")
    if not ends:
        return int(well and program["result"] != "SKIP"), int(not well)
    failed = ends.count("FAILED")
    return ends.count("OK"), failed if well else max(failed, 1)


def show(program):
    print(f"--- {program['name']}: {program['result']}")
    for stream in ("stdout", "stderr"):
        lines = [line for line in program.get(stream, "").splitlines() if not re.match(r"\[ *(RUN|OK) *\]", line)]
        print("\n".join(lines[-80:]))


def meson(log, tally):
    passed = failed = 0
    for program in programs(log):
        ok, bad = count(program)
        passed, failed = passed + ok, failed + bad
        if bad:
            show(program)
    if log.exists():
        tally.write_text(f"{passed} {failed}\n")


meson(Path(sys.argv[1]), Path(sys.argv[2]))
