# The stages of ./dev test, and the long runs. Sourced by ./dev.
# shellcheck shell=bash

all_stages=(lint unit threads service interleavings worlds browser faults fuzz bench canary)

declare -A about=(
    [lint]="house rules"
    [unit]="units, with the address and undefined-behaviour sanitizers"
    [threads]="threaded units, with the thread sanitizer"
    [service]="the service, black box"
    [interleavings]="races, each in every order of its steps"
    [worlds]="the core story beside other programs, and what follows from every change"
    [browser]="the pages, in a browser"
    [faults]="faults, a short seeded run"
    [fuzz]="fuzzing, a short seeded run"
    [bench]="benchmarks, for execution only"
    [canary]="no secret and no address in any log"
    [thread-service]="the service, with the thread sanitizer"
    [long-faults]="faults, the long run"
    [long-fuzz]="fuzzing, the long run"
)

# Stages without files are skipped.
stage_has_files() { # STAGE
    local part=${1#long-}
    case $part in
    browser | faults) compgen -G "tests/$part/*.test.js" ;;
    fuzz) [[ -f tests/fuzz/meson.build ]] ;;
    bench) [[ -f bench/run.js ]] ;;
    canary) [[ -f tests/canary.sh ]] ;;
    *) true ;;
    esac >/dev/null
}

# --- running a command and ending all of its processes ---

child=
run_id=$$.$RANDOM.$RANDOM # in the environment of all processes of the run

# Waits so that signals interrupt it; the command has a separate process group, and is ended when this script ends.
guarded() { # COMMAND...
    local code=0
    set -m
    TEST_RUN=$run_id setpriv --pdeathsig TERM -- "$@" </dev/null {stage_lock}>&- &
    child=$!
    set +m
    wait "$child" || code=$?
    child=
    return "$code"
}

# The same with the time limit of a stage; then with a PostgreSQL.
stage_seconds=1500 file_seconds=300
limited() { guarded timeout --foreground -k 60 "$stage_seconds" "$@"; }
beside_postgres() { limited tools/with-postgres "$@"; }

# Processes with this run's TEST_RUN, and orphaned programs built for tests.
still_running() {
    local pid
    grep -lsz "^TEST_RUN=$run_id\$" /proc/[0-9]*/environ | cut -d/ -f3
    for pid in $(find /proc -maxdepth 2 -name exe -lname "$PWD/build/[at]san/*" 2>/dev/null | cut -d/ -f3); do
        ! grep -qsE '^PPid:\s1$' "/proc/$pid/status" || echo "$pid"
    done
}

# Kills and lists processes that a stage left running, after waiting for those that are about to exit.
end_left_over() {
    local tries left pid
    for ((tries = 0; tries < 150; tries++)); do
        [[ -n $(still_running) ]] || return 0
        sleep 0.1
    done
    mapfile -t left < <(still_running)
    say "left running, now ended:"
    for pid in "${left[@]}"; do
        printf '%7d %s\n' "$pid" "$(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline")"
    done
    kill -KILL "${left[@]}" 2>/dev/null || true
    return 1
}

on_exit() {
    local code=$?
    trap - EXIT
    trap '' INT TERM HUP
    if [[ -n $child ]]; then
        kill -TERM -- "-$child" 2>/dev/null || true
        wait "$child" 2>/dev/null || true
    fi
    end_left_over || true
    exit "$code"
}

# --- the stages: each sets passed and failed ---

# Reads "PASSED FAILED" from the tally of a runner. A runner with another exit code than 0 counts as failed, whatever its tally.
count() { # EXIT-CODE
    [[ ! -s $tally ]] || read -r passed failed <"$tally"
    if [[ $1 -ne 0 && $failed -eq 0 ]]; then
        failed=1
        say "exit $1; the end of $log:"
        tail -n 40 "$log"
    fi
}

# A pass or a failure for one command.
count_one() { # NAME COMMAND...
    local name=$1
    shift
    if "$@" >>"$log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        say "failed: $name; the end of $log:"
        tail -n 40 "$log"
    fi
}

stage_lint() {
    local code=0
    TALLY=$tally limited tools/lint/rules.py >"$log" 2>&1 || code=$?
    [[ $code -eq 0 ]] || cat "$log"
    count $code
}

meson_tests() { # BUILD SUITE [PATTERN]
    local code=0 logs=build/$1/meson-logs names
    local how=(-C "build/$1" --no-rebuild --suite "$2")
    mapfile -t names < <(meson test "${how[@]}" --list 2>/dev/null | sed -n 's|^.* / ||p' | grep -F -- "${3:-}")
    [[ ${#names[@]} -gt 0 ]] || return 0
    rm -f "$logs/$stage.json"
    how+=(-t 5)
    beside_postgres meson test "${how[@]}" --num-processes 4 --logbase "$stage" "${names[@]}" >"$log" 2>&1 || code=$?
    tools/tally.py failed "$logs/$stage.json" >/dev/null
    tools/tally.py sum "$tally" "$logs/$stage.json"
    count $code
}

stage_unit() { meson_tests asan reclaim "$@"; } # meson's suite of all tests has the project's name
stage_threads() { meson_tests tsan threaded "$@"; }

# A pattern selects files, or tests by name if no file matches.
node_tests() { # FOLDER [PATTERN]
    local code=0 files name=()
    mapfile -t files < <(cd "tests/$1" && compgen -G '*.test.js' | grep -F -- "${2:-}" | sort)
    if [[ ${#files[@]} -eq 0 && -n ${2:-} ]]; then
        mapfile -t files < <(cd "tests/$1" && compgen -G '*.test.js' | sort)
        name=(--name "$2")
    fi
    [[ ${#files[@]} -gt 0 ]] || return 0
    FILE_SECONDS=$file_seconds beside_postgres node tools/node-tests.mjs "$log" "$tally" "${name[@]}" "${files[@]/#/tests/$1/}" || code=$?
    count $code
}

with_program() { # BUILD COMMAND...
    RECLAIM_PROGRAM=$PWD/build/$1/src/reclaim "${@:2}"
}

stage_service() { with_program asan node_tests service "$@"; }
stage_interleavings() { with_program asan node_tests interleavings "$@"; }
stage_worlds() { with_program asan node_tests worlds "$@"; }
stage_browser() { FILES_TOGETHER=7 with_program asan node_tests browser "$@"; }
stage_faults() { ROUNDS=1 FILES_TOGETHER=4 with_program asan node_tests faults "$@"; }
stage_thread-service() { with_program tsan node_tests service; }
stage_long-faults() { FILES_TOGETHER=2 with_program asan node_tests faults; }

# As many at a time as there are processors.
fuzz_targets() { # LIBFUZZER-OPTION...
    local name outputs=build/logs/fuzz
    rm -rf $outputs
    mkdir -p $outputs
    fuzz_programs | sed 's|.*/||' >$outputs/names
    guarded xargs -a $outputs/names -I NAME -P "$(nproc)" tools/fuzz-target NAME "$@" >"$log" 2>&1 || true
    while read -r name; do
        cat "$outputs/$name.log" >>"$log" || true
        if [[ $(cat "$outputs/$name.exit") == 0 ]]; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            say "failed: $name; the end of $outputs/$name.log:"
            tail -n 40 "$outputs/$name.log" || true
        fi
    done <$outputs/names
}

stage_fuzz() { fuzz_targets -runs=500000 -max_total_time=3; }
stage_long-fuzz() { fuzz_targets -max_total_time="${FUZZ_SECONDS:-60}"; }

# A release reads no variable that is there for tests, and has no route for them (src/server/test_hooks.h).
release_has_no_test_hooks() {
    [[ -x build/reclaim ]] || return 1
    ! grep -aoE 'RECLAIM_TEST_[A-Z_]+|/constant-pass' build/reclaim
}

smoke() {
    release_has_no_test_hooks || return 1
    RECLAIM_PROGRAM=$PWD/build/release/src/reclaim-bench BENCH_TOOLS=$PWD/build/release/bench beside_postgres node bench/run.js --smoke
}

stage_bench() { count_one benchmarks smoke; }

stage_canary() { count_one canary limited bash tests/canary.sh "$RECLAIM_TEST_LOGS"; }

# --- all of it ---

prepare() { # STAGE...
    local stage build sets=(build run test)
    for stage in "$@"; do
        case ${stage#long-} in
        browser | fuzz) sets+=("${stage#long-}") ;;
        esac
    done
    need_packages "${sets[@]}"
    need_npm_packages
    for build in asan threads tsan fuzz bench; do
        if needed_by "$build" "$@"; then
            "build_$build"
        fi
    done
}

needed_by() { # BUILD STAGE...
    local stage
    for stage in "${@:2}"; do
        case $1:$stage in
        asan:lint | asan:unit | asan:service | asan:interleavings | asan:worlds | asan:browser | asan:*faults) return 0 ;;
        threads:threads | tsan:thread-service) return 0 ;;
        fuzz:*fuzz | bench:bench) return 0 ;;
        esac
    done
    return 1
}

one_stage() { # STAGE [PATTERN]
    local stage=$1 began=$SECONDS passed=0 failed=0 log=build/logs/$1.log tally=build/logs/$1.tally
    shift
    say "testing: ${about[$stage]}"
    rm -f "$log" "$tally"
    "stage_$stage" "$@"
    end_left_over || failed=$((failed + 1))
    [[ $((passed + failed)) -gt 0 ]] || { say "$stage ran no test" && failed=1; }
    total_passed=$((total_passed + passed)) total_failed=$((total_failed + failed))
    summary+=("$(printf '%-16s %6d passed %5d failed %5d s' "$stage" "$passed" "$failed" $((SECONDS - began)))")
}

# Where the servers of tests keep their data: in memory if there is plenty, since creating and removing their files on a
# disk takes long.
test_directory() {
    local free available
    free=$(df --output=avail /dev/shm 2>/dev/null | tail -1)
    available=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
    if [[ $(stat -f -c %T /dev/shm 2>/dev/null) == tmpfs && -w /dev/shm && $free -gt 4000000 && $available -gt 8000000 ]]; then
        echo /dev/shm
    else
        echo /tmp
    fi
}

test_environment() {
    local name
    for name in "${!RECLAIM_@}"; do
        unset "$name" # a developer's settings must not affect the tests
    done
    RECLAIM_TEST_DIRECTORY=$(test_directory)
    export RECLAIM_TEST_DIRECTORY RECLAIM_TEST_LOGS=$PWD/build/test-logs CMOCKA_MESSAGE_OUTPUT=STDOUT
    export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
    export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
    export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
    [[ ! -f tools/tsan.supp ]] || TSAN_OPTIONS+=":suppressions='$PWD/tools/tsan.supp'"
}

# The files and programs that took longest, as the runners of the stages wrote them.
slowest() { # STAGE...
    local stage
    for stage in "$@"; do
        sed -nE -e 's/^ *([0-9.]+) s  (tests.*)/\1 \2/p' \
            -e "s|^ *[0-9]+/[0-9]+ .* / ([^ ]+) +[A-Z]+ +([0-9.]+)s.*|\2 $stage: \1|p" "build/logs/$stage.log" 2>/dev/null || true
    done | sort -rn | awk 'NR <= 10 { printf "%7.1f s  %s %s\n", $1, $2, $3 } END { if (NR) print "" }'
}

choose() { # PART
    local stage
    case $1 in
    all) for stage in "${all_stages[@]}"; do ! stage_has_files "$stage" || echo "$stage"; done ;;
    long-faults) printf '%s\n' thread-service long-faults ;;
    *) echo "$1" ;;
    esac
}

run_stages() { # PART|all [PATTERN]
    local part=$1 stage chosen total_passed=0 total_failed=0 summary=() stage_lock
    shift
    [[ $part == all || -n ${about[$part]:-} ]] || die "there is no part '$part' of the tests; see ./dev help"
    mapfile -t chosen < <(choose "$part")
    for stage in "${chosen[@]}"; do
        stage_has_files "$stage" || die "there are no files for the part '${stage#long-}' of the tests"
    done
    prepare "${chosen[@]}"

    exec {stage_lock}>build/.test-lock
    flock -n "$stage_lock" || { say "waiting for other tests in this folder" && flock "$stage_lock"; }
    trap on_exit EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    trap 'exit 129' HUP
    [[ $part != long-* ]] || stage_seconds=0 file_seconds=0 # no limit
    [[ $part == canary ]] || rm -rf build/test-logs
    mkdir -p build/test-logs build/logs
    test_environment

    for stage in "${chosen[@]}"; do
        one_stage "$stage" "$@"
    done
    printf '\n'
    slowest "${chosen[@]}"
    printf '%s\n' "${summary[@]}" "" "$total_passed passed, $total_failed failed"
    [[ $total_failed -eq 0 ]]
}
