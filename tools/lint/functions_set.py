"""The set of SQL functions and triggers that a database has as a whole: its number and its checksum."""

import hashlib
import re

RECORD = "sql/functions/set"
MEMBERS = r"sql/functions/[^/]+/[^/]+\.sql"
TRIGGERS = "sql/triggers.sql"


def checksum(files):
    """SHA-256 over names and texts, the triggers last, as src/pg/migrations.c takes it; `files` is path: text."""
    names = sorted((path for path in files if re.fullmatch(MEMBERS, path)), key=str.encode)
    names += [TRIGGERS] if TRIGGERS in files else []
    return hashlib.sha256("".join(f"{name}\n{files[name]}" for name in names).encode()).hexdigest()


def recorded(files):
    """Number and checksum of the record; 0 and nothing when there is none."""
    found = re.fullmatch(r"([1-9][0-9]*) ([0-9a-f]{64})\n", files.get(RECORD, ""))
    return (int(found[1]), found[2]) if found else (0, "")
