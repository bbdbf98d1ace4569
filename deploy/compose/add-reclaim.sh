#!/bin/sh
# Adds Reclaim's routes to copies of the gateway's files of a self-hosted Supabase: Envoy's, Kong's, or both if both are there.
# Run it again after an update of Supabase.
#
# usage: add-reclaim.sh [--gate] FOLDER     FOLDER is Supabase's docker/; --gate puts REST and GraphQL behind the gate (Envoy)
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
gate=
if [ "${1-}" = --gate ]; then
    gate=yes
    shift
fi
if [ $# -ne 1 ] || [ ! -d "$1/volumes/api" ]; then
    echo "usage: add-reclaim.sh [--gate] FOLDER, the one with volumes/api" >&2
    exit 2
fi
api=$1/volumes/api

# Copies a file, with lists added to it: behind the line of a list, before its first item, or before the item named. Each
# place must be there once. The lists are indented as the items there are.
insert() { # FROM TO [behind|before LINE FILES]...
    from=$1 to=$2
    shift 2
    cp "$from" "$to.new"
    while [ $# -gt 0 ]; do
        [ -z "$3" ] || awk -v where="$1" -v line="$2" -v files="$3" '
            function add(indent,    names, n, i, text) {
                n = split(files, names, " ")
                for (i = 1; i <= n; i++)
                    while ((getline text < names[i]) > 0)
                        if (text !~ /^#/) print (text == "" ? "" : indent text)
            }
            { bare = $0; sub(/^ +/, "", bare); sub(/ +$/, "", bare) }
            where == "before" && bare == line { found++; match($0, /^ */); add(substr($0, 1, RLENGTH)) }
            waits && bare ~ /^- / { match($0, /^ */); add(substr($0, 1, RLENGTH)); waits = 0 }
            { print }
            where == "behind" && bare == line { found++; waits = 1 }
            END { if (found != 1 || waits) exit 1 }' "$to.new" >"$to.next" || {
            rm -f "$to.new" "$to.next"
            echo "add-reclaim.sh: $from does not have the line \"$2\" once: add $3 by hand" >&2
            exit 1
        }
        [ -z "$3" ] || mv "$to.next" "$to.new"
        shift 3
    done
    mv "$to.new" "$to"
    echo "wrote $to"
}

# Of deploy/kong/kong.yml, the items of the list services.
services=$(mktemp)
trap 'rm -f "$services"' EXIT
sed -e '1,/^services:$/d' -e 's/^  //' "$here/kong/kong.yml" >"$services"

done=
if [ -f "$api/envoy/lds.template.yaml" ]; then
    insert "$api/envoy/cds.yaml" "$api/envoy/cds.reclaim.yaml" behind resources: "$here/envoy/clusters.yaml"
    insert "$api/envoy/lds.template.yaml" "$api/envoy/lds.reclaim.yaml" \
        behind routes: "$here/envoy/routes.yaml${gate:+ $here/envoy/gate-routes.yaml}" \
        before '- name: envoy.filters.http.router' "${gate:+$here/envoy/gate-filter.yaml}"
    done=yes
    echo "start: docker compose -f docker-compose.yml -f docker-compose.reclaim.yml -f docker-compose.reclaim-envoy.yml up -d"
fi
if [ -f "$api/kong.yml" ]; then
    insert "$api/kong.yml" "$api/kong.reclaim.yml" behind services: "$services"
    done=yes
    echo "or, with Kong: the same with docker-compose.reclaim-kong.yml instead of docker-compose.reclaim-envoy.yml"
fi
if [ -z "$done" ]; then
    echo "add-reclaim.sh: $api has neither envoy/lds.template.yaml nor kong.yml" >&2
    exit 1
fi
[ -z "$gate" ] || [ -f "$api/envoy/lds.template.yaml" ] || echo "Kong has no gate: see deploy/kong/kong.yml"
url=$(sed -n 's/^SUPABASE_PUBLIC_URL=//p' "$1/.env" 2>/dev/null | tail -1)
echo "pages:"
for page in recover account admin docs; do echo "  ${url:-http://localhost:8000}/$page"; done
