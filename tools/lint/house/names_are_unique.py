"""No two structs, unions or enums of src have the same name.

A name that means different things in two files has to be looked up in both.
"""

import re

from tree import code_only

DEFINITION = re.compile(r"\b(struct|union|enum)\s+(\w+)\s*\{")


def check(tree):
    places = {}
    for path, text in tree.matching(r"src/.*\.[ch]"):
        code = code_only(text)
        for found in DEFINITION.finditer(code):
            places.setdefault(found[2], []).append(f"{path}:{code.count(chr(10), 0, found.start()) + 1}")
    for name, where in sorted(places.items()):
        for place in where[1:]:
            yield f"{place}: {name} is also defined at {where[0]}"


broken = [
    {"src/pg/a.c": "struct place {\n};\n", "src/http/b.c": "static const struct place {\n} x;\n"},
    {"src/pg/a.h": "enum step { A };\n", "src/pg/b.c": "struct step {\n};\n"},
]
sound = [
    {
        "src/pg/a.h": "struct place;\nstruct place *place_of(void);\n",
        "src/pg/a.c": "/* struct place { */\nstruct place {\n    int x;\n};\n",
        "tests/unit/pg/t.c": "struct place {\n};\n",
    }
]
