#!/usr/bin/env bash
# The app: inserts one row, waits for the agent's result, prints it and ends. `hearth app start my-app` runs it,
# `hearth app logs my-app` shows what it printed. Hearth sets SVC_APP_ID (who this app is), SVC_APP_SECRET (which proves
# it) and SERVER_URL (where the service is).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/json.sh"

# hearth METHOD PATH [BODY]: prints the answer. The headers come through a pipe: every user may read the arguments of curl.
hearth() {
    local answer
    answer=$(curl -sS --max-time 60 -X "$1" "$SERVER_URL$2" ${3:+--data-binary "$3"} -H 'content-type: application/json' \
        -H @<(printf 'x-app-id: %s\nx-app-secret: %s\n' "$SVC_APP_ID" "$SVC_APP_SECRET"))
    case $answer in
    '{"success":true'*) printf '%s' "$answer" ;;
    *) # a missing permission: `hearth permission grant my-app --requested`
        echo "$1 $2: $answer" >&2
        return 1
        ;;
    esac
}

echo 'asks for activities.read, activities.write' # and waits for you, when you have not granted them
hearth POST /sdk/register "{\"app_id\":\"$SVC_APP_ID\",\"app_name\":\"my-app\",\"permissions\":[\"activities.read\",\"activities.write\"]}" >/dev/null
row=$(hearth POST /activities '{"raw_data":{"text":"The app itself says hello"}}')
id=$(json_member id "$row")
echo "inserted $id"
while status=$(json_member status "$row") && [ "$status" != completed ] && [ "$status" != failed ]; do
    sleep 0.2
    row=$(hearth GET "/activities/$id")
done
result=${row#*\"result\":}
echo "$status: ${result%%\}*}}"
