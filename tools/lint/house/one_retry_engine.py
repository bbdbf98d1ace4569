"""SKIP LOCKED is used in one file only: there is one work queue. Deleting old counts of limits, and proving erasures, which
claim no work, skip rows that others hold: their turn comes again."""

import re

NO_QUEUES = r"sql/functions/limits/.*|sql/functions/erasure/erasure_claims.sql|src/erasure/prove.c"


def check(tree):
    users = [
        path
        for path, text in tree.matching(r"(src|sql)/.*")
        if re.search(r"skip\s+locked", text, re.I) and not re.fullmatch(NO_QUEUES, path)
    ]
    for path in users[1:]:
        yield f"{path}: SKIP LOCKED is used in {users[0]} already; use the work queue"


broken = [{"src/work/claim.c": '"... FOR UPDATE SKIP LOCKED"', "sql/functions/mail/mail_claim.sql": "for update skip\n locked"}]
sound = [
    {
        "src/work/claim.c": "FOR UPDATE SKIP LOCKED\nSKIP LOCKED",
        "docs/work.md": "SKIP LOCKED",
        "sql/functions/limits/prune.sql": "FOR UPDATE SKIP LOCKED",
        "src/erasure/prove.c": "FOR UPDATE SKIP LOCKED",
    }
]
