# Used by every command of ./dev: output, packages, builds. Sourced with the checkout as working directory.
# shellcheck shell=bash

say() { printf '%s\n' "dev: $*"; }
die() {
    printf '%s\n' "dev: $*" >&2
    exit 1
}

# Writes a command's output to build/logs/NAME.log and shows the end of it if the command fails.
quietly() { # NAME COMMAND...
    local log=build/logs/$1.log code=0
    shift
    mkdir -p build/logs
    "$@" >"$log" 2>&1 </dev/null || code=$?
    [[ $code -ne 0 ]] || return 0
    tail -n 60 "$log" >&2
    die "failed (exit $code): $*; all of its output is in $log"
}

# Serializes ninja and apt-get in this checkout.
alone() { # COMMAND...
    local fd
    mkdir -p build
    exec {fd}>build/.lock
    flock -n "$fd" || { say "waiting for another ./dev in this folder" && flock "$fd"; }
    "$@" {fd}>&-
    exec {fd}>&-
}

# --- Debian packages ---

packages_of() { # SET...
    local set
    for set in "$@"; do
        sed -n "s/^$set  *//p" tools/packages.txt
    done | tr -s ' ' '\n'
}

is_installed() {
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# Prints the packages of the sets that are not installed.
missing_packages() { # SET...
    local entry command
    packages_of "$@" | while read -r entry; do
        command=${entry%=*}
        if [[ $entry == *=* ]] && { command -v "$command" || compgen -G "$command"; } >/dev/null; then
            continue
        fi
        is_installed "${entry#*=}" || echo "${entry#*=}"
    done
}

as_root=()

need_packages() { # SET...
    local missing
    command -v dpkg-query >/dev/null || { say "not a Debian machine: packages are not checked" && return; }
    mapfile -t missing < <(missing_packages "$@")
    [[ ${#missing[@]} -gt 0 ]] || return 0
    if [[ $EUID -ne 0 ]]; then
        # Without a terminal sudo would wait for a password for ever.
        if command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
            as_root=(sudo)
        else
            die "packages are missing; as root run:  apt-get update && apt-get install -y ${missing[*]}"
        fi
    fi
    say "installing ${missing[*]}"
    alone install_packages "${missing[@]}"
}

apt() {
    quietly apt "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@"
}

# In a subshell, whose EXIT trap removes the policy file, however the installation ends.
install_packages() ( # PACKAGE...
    apt update
    start_no_services
    apt install -y --no-install-recommends "$@"
)

# Keeps Debian from starting servers when they are installed: Reclaim runs its own.
start_no_services() {
    local policy=/usr/sbin/policy-rc.d
    [[ ! -e $policy ]] || return 0
    trap '"${as_root[@]}" rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee $policy >/dev/null
    "${as_root[@]}" chmod 755 $policy
}
# --- npm packages ---

# What the scripts of the pages are bundled with.
# Called with the lock held, by compile().
need_web_packages() {
    local stamp=build/npm-web.stamp
    [[ ! -d web/node_modules ]] || ! cmp -s web/package-lock.json $stamp || return 0
    say "installing the npm packages of the pages"
    mkdir -p build
    quietly npm-web npm ci --prefix web
    cp web/package-lock.json $stamp
}


need_npm_packages() {
    local major stamp=build/npm.stamp
    major=$(node -p 'process.versions.node.split(".")[0]')
    [[ $major -ge 18 ]] || die "the tests need Node 18 or newer; this is $(node --version)"
    if [[ ! -d tests/node_modules ]] || ! cmp -s tests/package-lock.json $stamp; then
        say "installing the npm packages of the tests"
        [[ ! -L tests/node_modules ]] || rm tests/node_modules # npm does not follow a link
        alone quietly npm npm ci --prefix tests
        cp tests/package-lock.json $stamp
    fi
}

# --- builds ---

# Configures build/NAME if it is new, has other options, or was moved here from another folder.
configure() { # NAME MESON-OPTION...
    local name=$1
    shift
    local wanted="$PWD $*" stamp=build/$name/dev-options
    need_web_packages
    [[ ! -f build/$name/build.ninja || $(cat "$stamp" 2>/dev/null) != "$wanted" ]] || return 0
    rm -rf "build/$name"
    quietly "configure-$name" meson setup "build/$name" "$@"
    printf '%s\n' "$wanted" >"$stamp"
}

compile() { # NAME TARGETS MESON-OPTION...; TARGETS is a function that prints them
    local name=$1 targets
    say "building build/$name"
    configure "$name" "${@:3}"
    mapfile -t targets < <("$2" "build/$name")
    quietly "build-$name" ninja --quiet -C "build/$name" "${targets[@]}"
}

everything() { echo all; }
the_program() { echo src/reclaim; }
fuzz_programs() { (shopt -s nullglob && printf '%s\n' tests/fuzz/fuzz_*.c) | sed 's/\.c$//'; }
threaded_tests() { # BUILD
    meson introspect --tests "$1" |
        python3 -c 'import json, os, sys
for test in json.load(sys.stdin):
    if any(suite.endswith("threaded") for suite in test["suite"]):
        print(os.path.relpath(test["cmd"][0], sys.argv[1]))' "$1"
}

# One build for releases and benchmarks: the program that benchmarks measure differs only in what they compare with.
compile_release() { alone compile release "$1" -Doptimization=2 -Ddebug=true -Dtests=false -Dbench=true; }
install_release() { cmp -s build/release/src/reclaim build/reclaim || install -m 755 build/release/src/reclaim build/reclaim; }
build_release() { compile_release the_program && install_release; }
build_bench() { compile_release everything && install_release; }

compile_tsan() { alone compile tsan "$1" -Doptimization=1 -Ddebug=true -Db_sanitize=thread -Dtest_hooks=true; }
build_tsan() { compile_tsan everything; }
build_threads() { compile_tsan threaded_tests; }

build_asan() { alone compile asan everything -Doptimization=1 -Ddebug=true -Db_sanitize=address,undefined -Dtest_hooks=true; }

build_fuzz() {
    CC=clang alone compile fuzz fuzz_programs -Doptimization=1 -Ddebug=true -Db_sanitize=address,undefined -Dwerror=false \
        -Dtests=false -Dfuzz=true -Dc_args=-fsanitize=fuzzer-no-link
}
