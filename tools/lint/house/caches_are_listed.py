"""Every cache is marked in code as /* cache: NAME */ and has its row in docs/caches.md, and no row is stale."""

import re

from tree import C_FILES

TABLE = "docs/caches.md"


def check(tree):
    rows = set(re.findall(r"^\|\s*`?([\w -]+?)`?\s*\|", tree.files.get(TABLE, ""), re.M)) - {"cache", "name"}
    rows = {row for row in rows if row.strip("- ")}
    marked = {}
    for path, text in tree.matching(C_FILES):
        for name in re.findall(r"/\* cache: ([\w -]+?) \*/", text):
            marked[name] = path
    for name in sorted(set(marked) - rows):
        yield f"{marked[name]}: the cache '{name}' has no row in {TABLE}"
    for name in sorted(rows - set(marked)):
        yield f"{TABLE}: no code is marked /* cache: {name} */"


broken = [
    {"src/limits/refusals.c": "/* cache: refusals */"},
    {"docs/caches.md": "| cache | ceiling |\n| --- | --- |\n| refusals | 4096 |\n"},
]
sound = [
    {
        "src/limits/refusals.c": "/* cache: refusals */",
        "docs/caches.md": "| cache | ceiling |\n| --- | --- |\n| refusals | 4096 |\n",
    },
    {},
]
