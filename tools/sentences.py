#!/usr/bin/python3
"""Checks the sentences of web/texts and writes them as C.

usage: sentences.py ROOT HEADER SOURCE

Every language has the same keys, with the same placeholders, templates name only keys that exist, and every error that a page can
get has a sentence.
"""

import configparser
import re
import sys
from pathlib import Path

LANGUAGES = ["en", "de"]


def read(path):
    parser = configparser.RawConfigParser(delimiters=("=",), comment_prefixes=(";",), strict=True)
    parser.optionxform = str
    parser.read_string(path.read_text(encoding="utf-8"), str(path))
    return {f"{section}.{key}": value for section in parser.sections() for key, value in parser.items(section)}


def placeholders(text):
    return set(re.findall(r"\{[^}]*\}", text))


def problems(root, texts):
    base = texts[LANGUAGES[0]]
    for key in sorted(base):
        if not re.fullmatch(r"[a-z0-9_]+\.[A-Za-z0-9_.]+", key):
            yield f"{key}: keys are lower case letters, digits, _ and ."
    for language in LANGUAGES[1:]:
        other = texts[language]
        yield from (f"{language}.ini lacks {key}" for key in sorted(base.keys() - other.keys()))
        yield from (f"{language}.ini has {key}, which en.ini lacks" for key in sorted(other.keys() - base.keys()))
        for key in sorted(base.keys() & other.keys()):
            if placeholders(base[key]) != placeholders(other[key]):
                yield f"{key} has other placeholders in {language}.ini"
    for path in sorted((root / "web/templates").glob("**/*.html")):
        for key in re.findall(r"\{\{t ([^\s}]+)", path.read_text(encoding="utf-8")):
            if key not in base and key + ".one" not in base:
                yield f"{path.relative_to(root)}: there is no sentence {key}"
        for prefix in re.findall(r"\{\{word ([^\s}]+)", path.read_text(encoding="utf-8")):
            if prefix + ".other" not in base:
                yield f"{path.relative_to(root)}: there is no sentence {prefix}.other"
    missing = {f"error.{code}": path for code, path in refusals(root) if f"error.{code}" not in base}
    yield from (f"there is no sentence {key}, for {path}" for key, path in sorted(missing.items()))


def refusals(root):
    """Codes of errors that a page can get from the endpoints it asks, each with the file that has it."""
    calls = r"\b(?:reply_refuse|reply_error|refuse_\w+|fields_read)\([^;]*;|\.code = \"[A-Z_]+\""
    for folder in ["api", "customers", "gate", "http", "erasure"]:
        for path in sorted((root / "src" / folder).glob("*.c")):
            for call in re.findall(calls, path.read_text(encoding="utf-8")):
                for code in re.findall(r'"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)"', call):
                    yield code, path.relative_to(root)


def literal(text):
    return '"' + "".join(chr(b) if 0x20 <= b < 0x7F and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode()) + '"'


def write(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    root, header, source = (Path(argument) for argument in sys.argv[1:])
    texts = {language: read(root / "web/texts" / f"{language}.ini") for language in LANGUAGES}
    found = list(problems(root, texts))
    if found:
        sys.exit("\n".join("web/texts: " + line for line in found))
    keys = sorted(texts["en"], key=lambda key: key.encode())
    names = ["TEXT_" + re.sub(r"[^A-Z0-9]", "_", key.upper()) for key in keys]
    write(header, "enum text {\n" + "".join(f"    {name},\n" for name in names) + f"}};\n#define TEXT_COUNT {len(keys)}\n")
    columns = "".join(
        f"    [LANGUAGE_{language.upper()}] = {{\n"
        + "".join(f"        {literal(texts[language][key])},\n" for key in keys)
        + "    },\n"
        for language in LANGUAGES
    )
    write(
        source,
        '#include "text/sentences.h"\n\n'
        "const char *const sentence_keys[TEXT_COUNT] = {\n"
        + "".join(f"    {literal(key)},\n" for key in keys)
        + "};\n\nconst char *const built_in_sentences[LANGUAGES][TEXT_COUNT] = {\n"
        + columns
        + "};\n",
    )


main()
