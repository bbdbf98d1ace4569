#!/usr/bin/python3
"""Runs clang-tidy on C files, except those that were clean and have not changed since.

usage: tidy.py FILE...

The compile commands are build/asan's. A file's fingerprint covers its text, all headers of the repository that it
includes, its command, the checks and clang-tidy's version; those of clean files are stored in build/tidy.

If clang-tidy cannot read .clang-tidy, it uses a few default checks and reports no error. So it is run first on a
program that violates the rules.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CLEAN = Path("build/tidy")
COMMANDS = Path("build/asan/compile_commands.json")


def commands():
    return {
        os.path.relpath(Path(entry["directory"], entry["file"])): entry["command"]
        for entry in json.loads(COMMANDS.read_text())
    }


def reached(path, seen):
    """The file and the headers of the repository that it includes, directly or indirectly."""
    if path in seen or not path.exists():
        return seen
    seen.add(path)
    for name in re.findall(r'^#include "([^"]+)"', path.read_text(errors="replace"), re.M):
        for folder in (Path("src"), path.parent):
            reached(folder / name, seen)
    return seen


def fingerprint(path, command, common):
    digest = hashlib.sha256(common + command.encode())
    for part in sorted(reached(Path(path), set())):
        digest.update(str(part).encode() + b"\0" + part.read_bytes())
    return digest.hexdigest()


BROKEN = "int NotOurName(int x)\n{\n    int y = x ? 1 : x;\n    return y / 0;\n}\n"
FINDINGS = ["readability-identifier-naming", "clang-analyzer-core.DivideZero"]


def finds_violation():
    example = CLEAN.parent / "tidy-example.c"
    example.write_text(BROKEN)
    result = subprocess.run(
        ["clang-tidy", "--quiet", "--config-file=.clang-tidy", str(example), "--", "-std=gnu17"],
        capture_output=True,
        text=True,
        check=False,
    )
    if all(finding in result.stdout for finding in FINDINGS):
        return True
    print("clang-tidy reports nothing for a program that violates the rules; check .clang-tidy")
    print(result.stdout + result.stderr)
    return False


def tidy(path):
    result = subprocess.run(
        ["clang-tidy", "-p", str(COMMANDS.parent), "--quiet", "--extra-arg=-Wno-unknown-warning-option", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    output = result.stdout if result.stdout.strip() else result.stderr
    return result.returncode == 0, output


def main():
    CLEAN.mkdir(parents=True, exist_ok=True)
    if not finds_violation():
        return 1
    known = commands()
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    common = version + Path(".clang-tidy").read_bytes()
    marks = {path: CLEAN / fingerprint(path, known[path], common) for path in sys.argv[1:] if path in known}
    due = [path for path, mark in marks.items() if not mark.exists()]

    failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, (clean, output) in zip(due, pool.map(tidy, due)):
            if clean:
                marks[path].touch()
            else:
                failed += 1
                print(output, flush=True)
    print(f"clang-tidy: {len(due)} files checked, {len(marks) - len(due)} unchanged, {failed} with findings")
    return 1 if failed else 0


sys.exit(main())
