"""No source file has more than 600 lines: a longer one has two purposes and can be split."""

MOST = 600


def check(tree):
    for path, text in tree.matching(r"dev|.*\.(c|h|js|mjs|py|sh|sql|css|html)"):
        lines = text.count("\n")
        if lines > MOST:
            yield f"{path}: {lines} lines, {MOST} at most"


broken = [{"src/base/str.c": "\n" * (MOST + 1)}]
sound = [{"src/base/str.c": "\n" * MOST, "openapi/openapi.json": "\n" * 5000}]
