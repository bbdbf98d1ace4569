"""Error-prone functions are not called; the table gives the replacement."""

from tree import C_FILES, code_only, findings

INSTEAD = {
    "sprintf vsprintf": "snprintf",
    "strcpy stpcpy strncpy strcat strncat": "str_copy, or a buf with its ceiling",
    "gets": "fgets, or read with a length",
    "strtok strtok_r": "str_split",
    "atoi atol atoll atof": "str_to_i64, which has bounds",
    "system popen": "posix_spawn or fork and exec with an argument list",
    "alloca": "the arena",
    "rand srand random srandom rand_r drand48": "base/random.h",
    "localtime gmtime ctime asctime": "gmtime_r, or base/clock.h",
    "tmpnam tempnam mktemp": "mkstemp or mkdtemp",
    "setjmp longjmp": "return an enum err",
}

# Time comes from one module, so that tests can set the clock.
CLOCKS = "clock_gettime gettimeofday time"
CLOCK_HOME = "src/base/clock.c"


def calls(names):
    return r"(?<![\w.>])(" + "|".join(names.split()) + r")\s*\("


def check(tree):
    for path, text in tree.matching(C_FILES):
        code = code_only(text)
        for names, instead in INSTEAD.items():
            yield from findings(path, code, calls(names), "{0}() is banned; use " + instead)
        if path.startswith("src/") and path != CLOCK_HOME:
            yield from findings(path, code, calls(CLOCKS), "{0}() belongs to " + CLOCK_HOME + "; use base/clock.h")


broken = [
    {"src/pg/pg.c": "void f(char *s)\n{\n    strcpy(s, t);\n}\n"},
    {"tests/unit/base/test_str.c": "int x = atoi (s);\n"},
    {"src/http/loop.c": "clock_gettime(CLOCK_MONOTONIC, &now);\n"},
    {"src/server/health.c": "long now = time(NULL);\n"},
]
sound = [
    {
        "src/base/clock.c": "clock_gettime(CLOCK_MONOTONIC, &now);\n",
        "src/pg/pg.c": '/* strcpy( */ const char *s = "system(ls)"; str_copy(a, b, c); lifetime(x); thing->time(y);\n',
        "docs/c.md": "strcpy(a, b)",
    }
]
