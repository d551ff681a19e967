#!/usr/bin/env bash
# The tests of my-app: the work and the agent without Hearth; then, with a running Hearth on which my-app is registered,
# a row and its result (skipped, with the reason, when there is none). HEARTH names the program, HEARTH_DATA its data folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. ./json.sh
. ./words.sh
failed=0

is() { # is WHAT EXPECTED ACTUAL
    if [ "$2" = "$3" ]; then echo "ok: $1"; else
        printf 'FAILED: %s\n  expected %s\n  got      %s\n' "$1" "$2" "$3"
        failed=1
    fi
}

is 'words are counted' '{"words":3,"longest":"example"}' "$(count $' A small\n example ')"
is 'no words are counted' '{"words":0,"longest":""}' "$(count '')"
is 'the agent prints the result' '{"words":2,"longest":"\"words\\"}' \
    "$(ACTIVITY_DATA='{"id":"1","raw_data":{"text":"two\n\"words\\"}}' bash agent.sh)"
is 'the agent fails with a reason' '`raw_data.text` must be a string 1' \
    "$(ACTIVITY_DATA='{"raw_data":{}}' bash agent.sh 2>&1 | tr '\n' ' '; echo "${PIPESTATUS[0]}")"

whole() {
    local hearth=${HEARTH:-hearth} url id row n
    url=$("$hearth" status --json 2>&1) && url=$(json_member url "$url") || { echo "skipped: a row gets its result: no Hearth runs"; return; }
    id=$("$hearth" app show my-app --json 2>&1) || { echo "skipped: a row gets its result: $id"; return; }
    id=$(json_member app_id "$id")
    send() { curl -sS --max-time 60 "$url$1" -H "x-app-id: $id" -H 'content-type: application/json' "${@:2}"; }
    row=$(send /activities -d '{"raw_data":{"text":"a whole sentence"}}')
    for ((n = 0; n < 600; n++)); do
        case $(json_member status "$row" || echo refused) in
        completed | failed) break ;;
        refused) row="$row: hearth permission grant my-app --requested"; break ;;
        esac
        sleep 0.1
        row=$(send "/activities/$(json_member id "$row")")
    done
    case $row in *'"result":{"words":3,"longest":"sentence"}'*) row='its result' ;; esac
    is 'a row gets its result' 'its result' "$row"
}
whole
exit "$failed"
