"""sql/functions/set has the checksum of the functions and triggers: a changed set needs a higher number."""

from functions_set import RECORD, checksum, recorded


def check(tree):
    number, sum_then = recorded(tree.files)
    if sum_then != checksum(tree.files):
        yield (
            f"{RECORD}: the functions or triggers changed since set {number}, and databases would keep the old ones; "
            "record them under the next number: tools/sql-set --write"
        )


FILES = {"sql/functions/base/f.sql": "1", "sql/triggers.sql": "2"}
broken = [
    FILES,
    {**FILES, RECORD: f"0 {checksum(FILES)}\n"},
    {**FILES, RECORD: f"3 {checksum(FILES)}\n", "sql/triggers.sql": "3"},
    {**FILES, RECORD: f"3 {checksum(FILES)}\n", "sql/functions/base/g.sql": ""},
    {RECORD: f"3 {checksum(FILES)}\n", "sql/functions/base/g.sql": "1", "sql/triggers.sql": "2"},
]
sound = [{**FILES, RECORD: f"3 {checksum(FILES)}\n", "sql/tables/0001_a.up.sql": "4"}]
