#!/usr/bin/python3
"""Bundles the style sheets and scripts of web/ and writes them as C, compressed, under names with a hash.

usage: assets.py ROOT OUTPUT

Each .css and .js file directly in web/ is one asset, with what it imports; .svg files are taken as they are. See
src/pages/assets.h for what the file defines. OUTPUT is left alone when it would not change.
"""

import gzip
import hashlib
import subprocess
import sys
from pathlib import Path

TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
PLAIN = {byte for byte in range(0x20, 0x7F)} - set(b'"\\?')


def run(*command, data=None):
    return subprocess.run(command, input=data, check=True, stdout=subprocess.PIPE).stdout


def bundled(path):
    if path.suffix == ".svg":
        return path.read_bytes()
    return run("esbuild", str(path), "--bundle", "--minify", "--format=esm", "--target=es2020", "--log-level=warning",
               "--charset=utf8")


def literal(data):
    parts = [data[i : i + 100] for i in range(0, len(data), 100)] or [b""]
    return "\n".join('        "' + "".join(chr(b) if b in PLAIN else f"\\{b:03o}" for b in part) + '"' for part in parts)


def entry(path):
    data = bundled(path)
    address = f"/assets/{path.stem}-{hashlib.sha256(data).hexdigest()[:10]}{path.suffix}"
    packed = [data, gzip.compress(data, 9, mtime=0), run("brotli", "-q", "11", "-c", data=data)]
    bodies = ",\n".join(f"     {{\n{literal(body)},\n        {len(body)}}}" for body in packed)
    return f'    {{"{path.name}", "{address}", "{TYPES[path.suffix]}",\n{bodies}}},\n'


def main():
    root, output = Path(sys.argv[1]), Path(sys.argv[2])
    paths = sorted(path for path in (root / "web").iterdir() if path.suffix in TYPES)
    text = (
        '#include "pages/assets.h"\n\n'
        f"const struct asset built_in_assets[] = {{\n{''.join(entry(path) for path in paths)}}};\n"
        f"const size_t built_in_asset_count = {len(paths)};\n"
    )
    if not output.exists() or output.read_text() != text:
        output.write_text(text)


main()
