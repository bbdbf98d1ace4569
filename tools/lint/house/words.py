"""Docs, comments and messages describe what is there, in plain English.

The first list has words that announce something instead: what does not exist is not mentioned, what exists is described as
it is. The second has mannered phrases; each was in the tree once. Text is a Markdown file, or a comment in C, SQL, shell,
Python or JavaScript.
"""

import re

ANNOUNCEMENTS = [
    r"\(?(?:is|are|was|were|still|stays?) planned\b(?! (?:at|again|once|with|anew))|\(planned\)",
    r"\(coming\)|\bcoming soon\b|[\"“]coming[\"”]",
    r"\bnot (?:built|implemented|written|supported) yet\b|\bnot yet (?:built|implemented|written|supported)\b",
    r"\bno \w+(?: \w+)? yet; until\b|\bno flow \w+ yet\b",
    r"\bin a later (?:version|release|issue|change|round)\b",
    r"\bwill be (?:added|built|implemented|supported)\b",
    r"\b(?:TODO|FIXME|XXX)\b",
]
ANNOUNCEMENTS_IN_DOCS = [r"\bplanned\b", r"\bcoming\b", r"\byet\b", r"[;(] ?later\b(?! than)"]

MANNERED = [
    r"\bchange of heart\b",
    r"\bdares? to\b",
    r"\bfound wanting\b",
    r"\blast words\b",
    r"\bstillborn\b",
    r"\baloft\b",
    r"\berrands?\b",
    r"\bto the world\b",
    r"\bby the book\b",
    r"\bat one stroke\b",
    r"\bin its own time\b",
    r"\bbad luck\b",
    r"\bfarewells?\b",
    r"\bregret(?:s|ted)?\b",
    r"\brooms?\b(?= (?:answers|of their|that|for each|stands)\b)",
    r"\ban? (?:admin|operator)'s word\b",
]

COMMENTS = {
    r"(?:src|tests|bench)/.*\.[ch]": r"/\*.*?\*/|//[^\n]*",
    r"sql/.*\.sql": r"--[^\n]*",
    r"(?:tests|bench|tools)/.*\.m?js": r"/\*.*?\*/|(?<!:)//[^\n]*",
    r"dev|tools/[\w-]+|tools/.*\.(?:sh|py)": r"#[^\n]*",
}
OWN = "tools/lint/house/words.py"


def texts(tree):
    """Path, text with everything but comments blanked, and whether it is a document."""
    for path, text in tree.matching(r".*\.md"):
        yield path, text, True
    for paths, comment in COMMENTS.items():
        for path, text in tree.matching(paths):
            if path != OWN:
                blank = re.compile(r"[^\n]")
                kept, end = [], 0
                for found in re.finditer(comment, text, re.S):
                    kept += [blank.sub(" ", text[end : found.start()]), found[0]]
                    end = found.end()
                yield path, "".join(kept), False


def faults(path, text, patterns, message):
    for pattern in patterns:
        # A phrase may be broken by the end of a line and the comment's decoration.
        wide = pattern.replace(" ", r"(?: |\n[ *#/-]*)")
        for found in re.finditer(wide, text, re.I):
            line = text.count("\n", 0, found.start()) + 1
            yield f"{path}:{line}: {message}: \"{' '.join(found[0].split())}\""


def check(tree):
    for path, text, is_document in texts(tree):
        yield from faults(path, text, ANNOUNCEMENTS, "says what will be, not what is")
        if is_document and path != "CHANGELOG.md":
            yield from faults(path, text, ANNOUNCEMENTS_IN_DOCS, "says what will be, not what is")
        yield from faults(path, text, MANNERED, "mannered")


broken = [
    {"docs/architecture.md": "Limits (planned) are kept in PostgreSQL.\n"},
    {"docs/decisions/0001.md": "Applies to: mail (coming).\n"},
    {"docs/security.md": "There is no rate limit yet; until then use a gateway.\n"},
    {"docs/a.md": "Applies to: the probe; later the clean-up.\n"},
    {"src/pg/tx.c": "/* Retries are not\n * implemented yet. */\n"},
    {"src/server/serve.c": "/* 503, and one log line per change of\n * heart. */\n"},
    {"sql/triggers.sql": "-- TODO: the order\n"},
    {"tools/bare": "# tries its bad luck\n"},
    {"bench/run.js": "// the errand of a request\n"},
]
sound = [
    {
        "docs/architecture.md": "A reply leaves a whole number of holds later. A later event waits.\n",
        "src/pg/pg.c": "/* Planned again at every call. */ const char *s = \"stillborn\"; int regret;\n",
        "src/base/buf.h": "/* takes no memory yet */\n",
        "sql/functions/limits/admit.sql": "-- inlined, and planned with the statement\n",
        "bench/run.js": "const url = 'http://example.com/errand';\n",
    }
]
