#!/bin/bash
# Looks for canaries in everything the tests left behind: server logs, and dumps of the schema reclaim of each database.
#
# usage: tests/canary.sh [DIRECTORY]     (default $RECLAIM_TEST_LOGS, else build/test-logs)
#
# Every address, client IP, token, password and key that the tests use carries one of these marks
# (tests/service/lib/people.js), so a single find is a leak.
set -euo pipefail

logs=${1:-${RECLAIM_TEST_LOGS:-$(dirname "${BASH_SOURCE[0]}")/../build/test-logs}}
marks=(canary- 127.66.77.88 198.51.100. 2001:db8:ca11 203.0.113.)

shopt -s nullglob
files=("$logs"/*.log)
dumps=("$logs"/*.sql)
if [[ ${#files[@]} -eq 0 ]]; then
    echo "canary: no log in $logs: run the service tests first" >&2
    exit 1
fi

patterns=()
for mark in "${marks[@]}"; do patterns+=(-e "$mark"); done
if found=$(grep -inF "${patterns[@]}" -- "${files[@]}" ${dumps[@]+"${dumps[@]}"}); then
    echo "canary: found in logs or database:" >&2
    cut -c1-300 <<<"$found" | head -50 >&2
    exit 1
fi
echo "canary: nothing in ${#files[@]} logs and ${#dumps[@]} dumps"
