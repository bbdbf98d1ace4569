"""docs/settings.md is what `reclaim help settings --markdown` prints.

Not looked at before the program is built. The program is RECLAIM_PROGRAM, or the newest under build/.
"""

import os
import subprocess
from pathlib import Path

PAGE = "docs/settings.md"
BUILT = ["build/asan/src/reclaim", "build/release/src/reclaim"]


def program(tree):
    built = [Path(tree.home, path) for path in BUILT if Path(tree.home, path).exists()]
    return os.environ.get("RECLAIM_PROGRAM") or max(built, key=lambda path: path.stat().st_mtime, default=None)


def printed(tree):
    if "printed" in tree.files:  # the examples'
        return tree.files["printed"]
    command = program(tree)
    if command is None:
        return None
    return subprocess.run([command, "help", "settings", "--markdown"], capture_output=True, text=True, check=True).stdout


def check(tree):
    wanted = printed(tree)
    if wanted is not None and tree.files.get(PAGE) != wanted:
        yield f"{PAGE}: out of date; run: build/reclaim help settings --markdown >{PAGE}"


broken = [{"printed": "| a | 1 |\n", PAGE: "| a | 2 |\n"}, {"printed": "| a | 1 |\n"}]
sound = [{"printed": "| a | 1 |\n", PAGE: "| a | 1 |\n"}, {}]
