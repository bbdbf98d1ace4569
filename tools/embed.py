#!/usr/bin/python3
"""Writes the C file that embeds the SQL, the API description and pages into the program.

usage: embed.py ROOT OUTPUT [NAME FILE]...

FILE is one that the build made, embedded under NAME. See src/base/embedded.h for what the file defines. OUTPUT is left alone when it would not change.
"""

import sys
from pathlib import Path

PATTERNS = ["deploy/nginx/*.conf", "sql/*.sql", "sql/tables/*.sql", "sql/functions/set", "sql/functions/*/*.sql", "openapi/*.json", "web/templates/**/*.html"]

# Escapes question marks too: two in a row may begin a trigraph.
PLAIN = {byte for byte in range(0x20, 0x7F)} - set(b'"\\?')


def found(root, made):
    """The files by name, in the order of strcmp()."""
    paths = {path.relative_to(root).as_posix(): path for pattern in PATTERNS for path in root.glob(pattern) if path.is_file()}
    ours = {name: path for name, path in paths.items() if not any(part.startswith(".") for part in name.split("/")) and name[-1] != "~"}
    return dict(sorted({**ours, **made}.items(), key=lambda one: one[0].encode()))


def literal(data):
    lines = data.splitlines(keepends=True) or [b""]
    return "\n".join('    "' + "".join(chr(b) if b in PLAIN else f"\\{b:03o}" for b in line) + '"' for line in lines)


def source(root, made):
    files = found(root, made)
    entries = []
    for name, path in files.items():
        data = path.read_bytes()
        entries.append(f"{{{literal(name.encode()).strip()}, {{\n{literal(data)},\n    {len(data)}}}}},\n")
    # C arrays cannot be empty: a last entry without a name is not counted.
    return (
        '#include "base/embedded.h"\n\n'
        f"const struct embedded embedded_files[] = {{\n{''.join(entries)}{{\"\", {{\"\", 0}}}},\n}};\n"
        f"const size_t embedded_count = {len(files)};\n"
    )


def main():
    root, output = Path(sys.argv[1]), Path(sys.argv[2])
    made = dict(zip(sys.argv[3::2], map(Path, sys.argv[4::2])))
    text = source(root, made)
    if not output.exists() or output.read_text() != text:
        output.write_text(text)


main()
