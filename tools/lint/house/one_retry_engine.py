"""SKIP LOCKED stands in one file at most: retry engines multiply otherwise."""

import re


def check(tree):
    users = [path for path, text in tree.matching(r"(src|sql)/.*") if re.search(r"skip\s+locked", text, re.I)]
    for path in users[1:]:
        yield f"{path}: SKIP LOCKED again, after {users[0]}; use the work queue"


broken = [{"src/work/claim.c": '"... FOR UPDATE SKIP LOCKED"', "sql/functions/mail/mail_claim.sql": "for update skip\n locked"}]
sound = [{"src/work/claim.c": "FOR UPDATE SKIP LOCKED\nSKIP LOCKED", "docs/work.md": "SKIP LOCKED"}]
