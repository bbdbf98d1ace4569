"""Every advisory lock has its number in src/pg/lock_ids.h; only the clean-up's locks have one number alone.

SQL repeats the numbers, since it cannot include the header. A function that locks for several callers takes p_class.
"""

import re

from tree import findings

HEADER = "src/pg/lock_ids.h"
# The clean-up's, which other programs take too: reclaim.email_to_lock_id and its users.
CLEANUP = r"sql/functions/recovery/.*|src/recovery/.*"
CALL = re.compile(r"pg_(?:try_)?advisory(?:_xact)?_(?:un)?lock(?:_shared)?\(\s*([^,()]+|[^,]*?\([^)]*\))\s*(,\s*(\w+))?")


def check(tree):
    numbers = set(re.findall(r'"(\d+)"', tree.files.get(HEADER, "")))
    for path, text in tree.matching(r"sql/(?:functions/.*|triggers|tables/.*)(?:\.sql)?"):
        if re.fullmatch(CLEANUP, path):
            continue
        for found in CALL.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            first, second = found[1].strip(), found[3]
            if not second:
                yield f"{path}:{line}: this advisory lock needs a class of {HEADER} and a second number"
            elif (first not in numbers and first != "p_class") or (second.isdigit() and second not in numbers):
                yield f"{path}:{line}: {first}, {second} is not in {HEADER}"
    for path, text in tree.matching(r"src/.*\.c"):
        if not re.fullmatch(CLEANUP, path):
            yield from findings(path, text, r"advisory\w*lock\w*\((\d+)", "take the number {0} from src/pg/lock_ids.h")


HERE = {HEADER: '#define LOCK_CLASS "1919247212"\n#define LOCK_LEADER "2"\n'}
broken = [
    {**HERE, "sql/functions/limits/admit.sql": "PERFORM pg_advisory_xact_lock(7233173838382854240);\n"},
    {**HERE, "sql/functions/limits/admit.sql": "PERFORM pg_advisory_xact_lock(1919247212, 9);\n"},
    {**HERE, "sql/functions/calls/a.sql": "PERFORM pg_advisory_xact_lock_shared(reclaim.customer_turn(x));\n"},
    {**HERE, "src/work/leader.c": '"SELECT pg_try_advisory_lock(7233173838382854241)"\n'},
]
sound = [
    {
        **HERE,
        "sql/functions/limits/admit.sql": "PERFORM pg_advisory_xact_lock(1919247212, 2);\n",
        "sql/functions/calls/a.sql": "PERFORM pg_advisory_xact_lock_shared(1919247212, reclaim.customer_turn(x));\n",
        "sql/functions/recovery/acquire_cleanup_lock.sql": "pg_try_advisory_lock(v_id)\n",
        "src/work/leader.c": '"SELECT pg_try_advisory_lock(" LOCK_CLASS ", " LOCK_LEADER ")"\n',
    }
]
