"""A SQL function that turns sequential scans off turns JIT off too.

A table without a usable index is then scanned at a cost of 10^10, which makes PostgreSQL compile the statement each time:
milliseconds for what takes microseconds.
"""

import re

from tree import findings


def check(tree):
    for path, text in tree.matching(r"sql/functions/.*\.sql"):
        if not re.search(r"SET jit = off", text):
            yield from findings(path, text, r"SET (enable_seqscan) = off", "{0} = off needs SET jit = off")


broken = [{"sql/functions/billing/a.sql": "LANGUAGE plpgsql SET search_path = pg_catalog SET enable_seqscan = off\n"}]
sound = [{"sql/functions/billing/a.sql": "LANGUAGE plpgsql SET enable_seqscan = off SET jit = off\n"}]
