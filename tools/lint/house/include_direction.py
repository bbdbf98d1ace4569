"""Rooms look downwards only: features, then services, then platform, then base.

`ops` and `main` wire everything together and may look anywhere; nothing looks into `ops`. Tests may include anything.
"""

from tree import findings

PLATFORM = {"pg", "http"}
SERVICES = {"auth", "limits", "work", "mail", "events"}
FEATURES = {"recovery", "customers", "enforce", "cascade"}

MAY_INCLUDE = {
    "base": set(),
    **{room: {"base"} for room in PLATFORM},
    **{room: {"base"} | PLATFORM for room in SERVICES},
    "mail": {"base", "work"} | PLATFORM,  # delivering a mail is a kind of work
    **{room: {"base"} | PLATFORM | SERVICES for room in FEATURES},
    "ops": {"base"} | PLATFORM | SERVICES | FEATURES,
}


def check(tree):
    for path, text in tree.matching(r"src/[^/]+/.*\.[ch]"):
        room = path.split("/")[1]
        if room not in MAY_INCLUDE:
            yield f"{path}:1: room '{room}' is not in the table of tools/lint/house/include_direction.py"
            continue
        for other in sorted(set(MAY_INCLUDE) - MAY_INCLUDE[room] - {room}):
            yield from findings(path, text, rf'#include "({other}/[^"]+)"', f"{room} must not include {{0}}")
        yield from findings(path, text, r'#include "([^/"]+)"', 'include "{0}" by its path from src/')


broken = [
    {"src/base/str.c": '#include "base/str.h"\n#include "pg/pg.h"\n'},
    {"src/http/server.c": '#include "ops/settings.h"\n'},
    {"src/recovery/probe.c": '#include "customers/state.h"\n'},
    {"src/pg/pool.c": '#include "pool.h"\n'},
    {"src/cellar/wine.c": ""},
]
sound = [
    {
        "src/recovery/probe.c": '#include "recovery/probe.h"\n#include "limits/tiers.h"\n#include "pg/tx.h"\n',
        "src/ops/serve.c": '#include "recovery/probe.h"\n',
        "src/main.c": '#include "ops/serve.h"\n',
        "tests/unit/base/test_str.c": '#include "pg/pg.h"\n',
    }
]
