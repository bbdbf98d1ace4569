"""An SQL function is defined in one file, sql/functions/AREA/name.sql; a step that needs one drops it again."""

import re

CREATE = r"create\s+(?:or\s+replace\s+)?(?:function|procedure)\s+([\w.]+)"


def without_comments(text):
    return re.sub(r"--[^\n]*", lambda found: " " * len(found[0]), text)


def check_function(path, text):
    name = path.split("/")[-1].removesuffix(".sql")
    found = re.findall(CREATE, text, re.I)
    if found != [f"reclaim.{name}"]:
        yield f"{path}: defines {', '.join(found) or 'nothing'} instead of reclaim.{name} alone"
    if not re.search(r"create\s+or\s+replace", text, re.I):
        yield f"{path}: not CREATE OR REPLACE, so a set cannot be applied over another"
    if f"REVOKE ALL ON FUNCTION reclaim.{name} FROM PUBLIC;" not in text:
        yield f"{path}: lacks REVOKE ALL ON FUNCTION reclaim.{name} FROM PUBLIC;"


def check(tree):
    defined = {}
    for path, text in tree.matching(r"sql/.*\.sql"):
        text = without_comments(text)
        if path.startswith("sql/tests/"):
            continue
        if re.fullmatch(r"sql/functions/[^/]+/[^/]+\.sql", path):
            yield from check_function(path, text)
            name = path.split("/")[-1]
            if name in defined:
                yield f"{path}: {name} is defined in {defined[name]} too"
            defined[name] = path
            continue
        # What a step in parts leaves until the triggers are there goes with them.
        dropped = text + without_comments(dict(tree.matching(r"sql/triggers\.sql")).get("sql/triggers.sql", ""))
        for name in re.findall(CREATE, text, re.I):
            if name.startswith("pg_temp."):
                continue
            if not re.search(rf"drop\s+function\s+(if\s+exists\s+)?{re.escape(name)}\b", dropped, re.I):
                yield f"{path}: creates {name} and does not drop it: functions that stay are in sql/functions"


F = "CREATE OR REPLACE FUNCTION reclaim.f() RETURNS int LANGUAGE sql AS 'SELECT 1';\nREVOKE ALL ON FUNCTION reclaim.f FROM PUBLIC;\n"
broken = [
    {"sql/functions/base/g.sql": F},
    {"sql/functions/base/f.sql": F + F},
    {"sql/functions/base/f.sql": F.replace(" OR REPLACE", "")},
    {"sql/functions/base/f.sql": F.split("\n")[0]},
    {"sql/functions/base/f.sql": F, "sql/functions/calls/f.sql": F},
    {"sql/functions/f.sql": F},
    {"sql/tables/0001_a.up.sql": "CREATE TABLE reclaim.a (n int);\ncreate function reclaim.f() returns int"},
    {"sql/triggers.sql": F},
]
sound = [
    {
        "sql/functions/base/f.sql": "-- CREATE FUNCTION is what this is not.\n" + F,
        "sql/tables/0001_a.up.sql": "CREATE FUNCTION reclaim.adopt(t text) …;\nDROP FUNCTION reclaim.adopt(text);\n",
        "sql/tests/base.sql": "CREATE FUNCTION pg_temp.f()",
    }
]
