"""Folders include downwards only: what wires, then features, then services, then platform, then base.

`settings` knows the types of what it sets; only `server`, `cli` and `main` know it. A private header is included by its own
folder only. Tests may include anything.
"""

import re

from tree import findings

PLATFORM = {"text", "pg", "cluster", "http", "client"}
SERVICES = {"credentials", "limits", "work", "mail", "events", "proof"}
ENTRY = {"gate", "api"}
FEATURES = {"recovery", "customers", "calls", "billing", "erasure", "sandbox"}

MAY_INCLUDE = {
    "base": set(),
    **{folder: {"base"} for folder in PLATFORM},
    **{folder: {"base"} | PLATFORM for folder in SERVICES},
    "mail": {"base", "work"} | PLATFORM,  # delivering a mail is a kind of work
    "api": {"base"} | PLATFORM | SERVICES,
    "gate": {"base", "api"} | PLATFORM | SERVICES,
    **{folder: {"base"} | PLATFORM | SERVICES | ENTRY for folder in FEATURES},
    "console": {"base"} | PLATFORM | SERVICES | ENTRY | FEATURES,  # shows what the features have
    "pages": {"base"} | PLATFORM | SERVICES | ENTRY | FEATURES,
    "settings": {"base"} | PLATFORM | SERVICES | FEATURES,
    "server": {"base", "settings", "console", "pages"} | PLATFORM | SERVICES | ENTRY | FEATURES,
    "cli": {"base", "settings", "server", "console", "pages"} | PLATFORM | SERVICES | ENTRY | FEATURES,
}


def private_headers(tree):
    """By path from src/: those named inside.h, and those whose first lines say "Private to"."""
    for path, text in tree.matching(r"src/[^/]+/.*\.h"):
        if path.endswith("/inside.h") or re.search(r"\A/\* *Private to\b|\A/\*[^/]*?\bPrivate to src/", text):
            yield path.removeprefix("src/")


def check(tree):
    private = list(private_headers(tree))
    for path, text in tree.matching(r"src/[^/]+/.*\.[ch]"):
        folder = path.split("/")[1]
        if folder not in MAY_INCLUDE:
            yield f"{path}:1: folder '{folder}' is not in the table of tools/lint/house/include_direction.py"
            continue
        for other in sorted(set(MAY_INCLUDE) - MAY_INCLUDE[folder] - {folder}):
            yield from findings(path, text, rf'#include "({other}/[^"]+)"', f"{folder} must not include {{0}}")
        yield from findings(path, text, r'#include "([^/"]+)"', 'include "{0}" by its path from src/')
    for path, text in tree.matching(r"src/.*\.[ch]"):
        for header in private:
            if not path.startswith(f"src/{header.split('/')[0]}/"):
                yield from findings(path, text, rf'#include "({re.escape(header)})"', "{0} is private to its folder")


broken = [
    {"src/base/str.c": '#include "base/str.h"\n#include "pg/pg.h"\n'},
    {"src/http/server.c": '#include "settings/settings.h"\n'},
    {"src/recovery/probe.c": '#include "customers/state.h"\n'},
    {"src/server/serve.c": '#include "cli/options.h"\n'},
    {"src/pg/pool.c": '#include "pool.h"\n'},
    {"src/cellar/wine.c": ""},
    {"src/mail/inside.h": "", "src/customers/mails.c": '#include "mail/inside.h"\n'},
    {"src/calls/statements.h": "/* Private to src/calls: SQL. */\n", "src/main.c": '#include "calls/statements.h"\n'},
    {"src/calls/a.h": "/* What is\n * asked. Private to src/calls. */\n", "src/cli/b.c": '#include "calls/a.h"\n'},
]
sound = [
    {
        "src/recovery/probe.c": '#include "recovery/probe.h"\n#include "limits/tiers.h"\n#include "pg/tx.h"\n',
        "src/server/serve.c": '#include "recovery/probe.h"\n#include "settings/settings.h"\n',
        "src/main.c": '#include "server/serve.h"\n',
        "src/mail/inside.h": "",
        "src/mail/post.c": '#include "mail/inside.h"\n',
        "tests/unit/base/test_str.c": '#include "pg/pg.h"\n#include "mail/inside.h"\n',
    }
]
