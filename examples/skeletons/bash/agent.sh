#!/usr/bin/env bash
# The agent: Hearth starts this program once for each new row. The JSON that it prints is the row's result; with another
# exit code than 0 the row has failed, and what stands on standard error is the reason.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
. "$here/json.sh"
. "$here/words.sh"

activity=${ACTIVITY_DATA:-}
[ -z "${ACTIVITY_FILE:-}" ] || activity=$(<"$ACTIVITY_FILE") # the file, when the row is large

raw_data=${activity#*\"raw_data\":}
text=$(json_member text "$raw_data") || { echo '`raw_data.text` must be a string' >&2; exit 1; }
count "$text"
