"""A path of this repository that a text or a comment names exists.

Looked for are paths from the root (src/…, sql/…, tests/…, tools/…, docs/…, bench/…, deploy/…, openapi/…, examples/…) in
Markdown and in comments, and headers and sources by their path from src/ (pg/tx.h). A path with a placeholder in capitals,
an asterisk or an ellipsis is a pattern and not looked for.
"""

import re

from house.words import texts

ROOTS = "src|sql|tests|tools|docs|bench|deploy|openapi|examples|web"
FROM_ROOT = re.compile(rf"(?<![\w./-])((?:{ROOTS})/[\w./*{{}}…-]*[\w/*}}…])")
FROM_SRC = re.compile(r"(?<![\w./-])([a-z]+/[a-z_]+\.[ch])\b")
# Made by a build or a run, or others' (a path in an example of what not to write).
NOT_OURS = re.compile(r"tests/node_modules|bench/results|web/")


def named(path, text):
    for pattern, base in ((FROM_ROOT, ""), (FROM_SRC, "src/")):
        for found in pattern.finditer(text):
            name = found[1].rstrip("./")
            if base and re.match(rf"(?:{ROOTS})/", name):
                continue  # found from the root
            if not re.search(r"[*{}…]|[A-Z]{2,}", name) and not NOT_OURS.match(name):
                yield base, name, text.count("\n", 0, found.start()) + 1


def check(tree):
    folders = {"/".join(path.split("/")[:depth]) for path in tree.files for depth in range(1, path.count("/") + 1)}
    for path, text, _ in texts(tree):
        if path == "CHANGELOG.md" or path.startswith("tools/lint/"):
            continue
        for base, name, line in named(path, text):
            known = base + name in tree.files or base + name in folders
            if base and not known:  # a test's own header, by its path from tests/unit
                known = "tests/unit/" + name in tree.files
            if not known and not any(f.startswith(base + name + ".") for f in tree.files):
                yield f"{path}:{line}: there is no {base + name}"


broken = [
    {"docs/architecture.md": "See `src/auth/who.c`.\n"},
    {"src/pg/tx.c": "/* see pg/wood.h */\n"},
    {"CONTRIBUTING.md": "Steps are in sql/migrations/.\n"},
]
sound = [
    {
        "docs/architecture.md": "See `src/pg/tx.c`, pg/tx.h, sql/functions/AREA/name.sql, tests/unit/ and sql/*.sql.\n",
        "src/pg/tx.c": '/* pg/tx.h */\n#include "pg/none.h"\n',
        "src/pg/tx.h": "/* http://example.com/src/none and build/src/reclaim */\n",
        "tests/unit/pg/test_tx.c": "",
    }
]
