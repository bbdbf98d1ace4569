"""A command that is not in a minimal Debian is used only if tools/packages.txt has a package that contains it."""

import re

LIST = "tools/packages.txt"

# Commands outside debootstrap's minbase, each with the package that contains it or depends on it.
PACKAGES = {
    "bc": "bc",
    "c++": "g++",
    "caddy": "caddy",
    "cc": "gcc",
    "clang": "clang",
    "clang-format": "clang-format",
    "clang-tidy": "clang-tidy",
    "cppcheck": "cppcheck",
    "curl": "curl",
    "debootstrap": "debootstrap",
    "dig": "bind9-dnsutils",
    "dpkg-shlibdeps": "dpkg-dev",
    "epmd": "rabbitmq-server",
    "esbuild": "esbuild",
    "file": "file",
    "free": "procps",
    "gcc": "gcc",
    "gdb": "gdb",
    "git": "git",
    "groff": "groff-base",
    "ip": "iproute2",
    "jq": "jq",
    "kamailio": "kamailio",
    "killall": "psmisc",
    "less": "less",
    "lsof": "lsof",
    "make": "make",
    "meson": "meson",
    "nc": "netcat-openbsd",
    "netstat": "net-tools",
    "ninja": "ninja-build",
    "node": "nodejs",
    "npm": "npm",
    "openssl": "openssl",
    "patch": "patch",
    "pgbackrest": "pgbackrest",
    "pgrep": "procps",
    "ping": "iputils-ping",
    "pkg-config": "pkg-config",
    "pkill": "procps",
    "ps": "procps",
    "psql": "postgresql",
    "python3": "python3",
    "rsync": "rsync",
    "shellcheck": "shellcheck",
    "sipp": "sip-tester",
    "socat": "socat",
    "ss": "iproute2",
    "strace": "strace",
    "sysctl": "procps",
    "top": "procps",
    "unzip": "unzip",
    "wget": "wget",
    "wrk": "wrk",
    "xxd": "xxd",
    "/usr/sbin/nginx": "nginx",
    "/usr/sbin/pgbouncer": "pgbouncer",
    "zip": "zip",
}

# Commands of minbase that programs in other languages than the shell run.
MINIMAL = {"/bin/sh", "bash", "flock", "id", "script", "setpriv", "sleep"}

SCRIPTS = r"dev|\.ci/run|(tools|tests|bench|deploy)/(?!.*node_modules).*"
SHELL_COMMAND = re.compile(
    r"(?:^|[|&;({!]|\$\(|\b(?:then|do|else|if|while|until|exec|guarded|limited|beside_postgres|quietly [\w-]+)\s)\s*"
    r"(%s)(?=\s|$|[);|])" % "|".join(re.escape(name) for name in PACKAGES),
    re.M,
)
NODE_COMMAND = re.compile(r"\b(?:spawn|execFile|start)(?:Sync)?\(\s*'([^']+)'")
PYTHON_COMMAND = re.compile(r"\bsubprocess\.\w+\(\s*\[\s*\"([^\"]+)\"")


def listed(tree):
    lines = [line.split()[1:] for line in tree.files.get(LIST, "").splitlines() if not line.startswith("#")]
    return {entry.rsplit("=", 1)[-1] for line in lines for entry in line}


def uses(tree):
    """Path of the script and command, for commands run by name."""
    for path, text in tree.matching(SCRIPTS):
        if path.endswith((".js", ".mjs")):
            pattern = NODE_COMMAND
        elif path.endswith(".py"):
            pattern = PYTHON_COMMAND
        elif path.endswith(".sh") or text.startswith(("#!/bin/bash", "#!/bin/sh")):
            pattern, text = SHELL_COMMAND, re.sub(r"(?m)(?:^|\s)#.*$", "", text)
        else:
            continue
        for match in pattern.finditer(text):
            yield path, match[1]


def check(tree):
    packages = listed(tree)
    for path, command in sorted(set(uses(tree))):
        if command not in MINIMAL and PACKAGES.get(command) not in packages:
            yield f"{path}: runs {command}, but {LIST} has no package for it; name it there and in this rule"


broken = [
    {"tools/x.sh": "curl -s http://127.0.0.1/\n", LIST: "run postgresql\n"},
    {"tools/x.sh": "if ! pids=$(ps ax | make); then\n", LIST: "run procps\n"},
    {"tests/service/lib/x.js": "spawn('frobnicate', []);", LIST: "test nodejs\n"},
]
sound = [
    {"tools/x.sh": "psql -c x | grep y\n# curl\nsay make\n", LIST: "# curl\nrun /usr/*/bin/postgres=postgresql\n"},
    {"tests/service/lib/x.js": "spawn('sleep', ['1']); execFileSync('make');", LIST: "test make\n"},
]
