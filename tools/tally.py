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

RUN, OK, SKIPPED = (re.compile(rf"^\[ *{word} *\] (.+)$", re.M) for word in ("RUN", "OK", "SKIPPED"))


def programs(log):
    if not log.exists():
        return
    for line in log.read_text(errors="replace").splitlines():
        yield json.loads(line)


def count(program):
    words = program.get("stdout", "") + "\n" + program.get("stderr", "")
    began, passed, skipped = (len(pattern.findall(words)) for pattern in (RUN, OK, SKIPPED))
    well = program["result"] in ("OK", "EXPECTEDFAIL")
    if not began:
        skip = program["result"] == "SKIP"
        return int(well), int(not well and not skip)
    failed = began - passed - skipped
    return passed, failed if well else max(failed, 1)


def show(program):
    print(f"--- {program['name']}: {program['result']}")
    for stream in ("stdout", "stderr"):
        lines = [line for line in program.get(stream, "").splitlines() if not OK.match(line) and not RUN.match(line)]
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
