#!/usr/bin/python3
"""Counts the tests inside unit-test programs, and prints those that failed.

usage: tally.py failed TESTLOG.json                  prints the names of programs with failures, and the failures
       tally.py sum TALLY TESTLOG.json                counts

TESTLOG.json is written by `meson test` for cmocka programs. Writes "PASSED FAILED" to TALLY. A program with an error at exit
counts as one failure even if all its tests passed: sanitizers report at exit.
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
    """Each test that began and its outcome; the summary, which repeats some names, is ignored."""
    running = None
    for line in words.splitlines():
        match = LINE.match(line)
        if not match:
            continue
        if match[1] == "RUN":
            if running:
                yield running, "FAILED"
            running = match[2]
        elif match[2] == running:
            yield running, match[1]
            running = None
    if running:
        yield running, "FAILED"  # the program crashed


def judge(program):
    """The number of tests that passed, and the names of those that failed."""
    ends = list(outcomes(program.get("stdout", "")))
    well = program["result"] in ("OK", "EXPECTEDFAIL", "SKIP")
    if not ends:
        return int(well and program["result"] != "SKIP"), [] if well else [program["result"]]
    failed = [name for name, end in ends if end == "FAILED"]
    return sum(end == "OK" for _, end in ends), failed if well or failed else [program["result"]]


def show(program):
    print(f"--- {program['name']}: {program['result']}", file=sys.stderr)
    for stream in ("stdout", "stderr"):
        lines = [line for line in program.get(stream, "").splitlines() if not re.match(r"\[ *(RUN|OK) *\]", line)]
        print("\n".join(lines[-80:]), file=sys.stderr)


def short_name(program):
    return program["name"].rsplit(" / ", 1)[-1]


def failed(log):
    for program in programs(log):
        if judge(program)[1]:
            show(program)
            print(short_name(program))


def total(tally, log):
    judged = [judge(program) for program in programs(log)]
    if log.exists():
        tally.write_text(f"{sum(good for good, _ in judged)} {sum(len(wrong) for _, wrong in judged)}\n")


def main(verb, *paths):
    {"failed": failed, "sum": total}[verb](*map(Path, paths))


main(*sys.argv[1:])
