#!/usr/bin/env bash
# The agent of chaos tests with thousands of runs: as agent.mjs, in few milliseconds. plan is a string, a letter for each attempt. A report that is
# not answered, or answered with "later" (429, 503), is sent again.
n=0 plan=r row=
[[ $ACTIVITY_DATA =~ \"n\":\ *([0-9]+) ]] && n=${BASH_REMATCH[1]}
[[ $ACTIVITY_DATA =~ \"plan\":\ *\"([a-z]+)\" ]] && plan=${BASH_REMATCH[1]}
[[ $ACTIVITY_DATA =~ \"id\":\ *\"([0-9a-f-]{36})\" ]] && row=${BASH_REMATCH[1]}
read -r uuid </proc/sys/kernel/random/uuid
token=$n/$TASK_ATTEMPT/$uuid
act=${plan:(TASK_ATTEMPT - 1) % ${#plan}:1}

# note WHAT [MORE]: a line of the ledger, by one write.
note() {
    printf '\n{"what":"%s","n":%s,"row":"%s","task":"%s","attempt":%s,"machine":"%s","token":"%s","act":"%s"%s,"at":%s}\n' \
        "$1" "$n" "$row" "$TASK_UUID" "$TASK_ATTEMPT" "$MACHINE_ID" "$token" "$act" "${2:-}" "${EPOCHREALTIME/./}" >>"$CHAOS_LEDGER"
}

# ask BODY: its status in `status`, empty without an answer.
ask() {
    local host=${SERVER_URL#http://} path=/api/external-tasks/$TASK_UUID/webhook
    status=
    { exec 3<>"/dev/tcp/${host%:*}/${host##*:}"; } 2>/dev/null || return
    printf 'POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s' "$path" "$host" "${#1}" "$1" >&3 2>/dev/null
    read -r -t 60 _ status _ <&3
    exec 3>&-
}

# report ACTION DATA
report() {
    local try
    for ((try = 0; try < 60; try++)); do
        ask "{\"action\":\"$1\",\"machine_id\":\"$MACHINE_ID\",\"attempt\":$TASK_ATTEMPT,\"data\":$2}"
        case $status in '' | 429 | 503) sleep 0.2 ;; *) break ;; esac
    done
    if [ "$status" = 200 ]; then note "$1 acknowledged"; else note "$1 refused" ",\"status\":\"$status\""; fi
}

success="{\"result\":{\"token\":\"$token\"}}" failure='{"error":{"message":"failed on purpose"}}'
note started
case $act in
r) report completed "$success" ;;
p) printf '{"token":"%s"}' "$token" ;;
t) report completed "$success"; report completed "$success" ;;
c) report completed "$success"; report failed "$failure" ;;
s) sleep 0.6; report completed "$success" ;;
f) report failed "$failure"; note ended; exit 1 ;;
x) note ended; exit 3 ;;
k) kill -9 $$ ;;
l) note 'wants a late report'; exit 9 ;;
esac
# What was said counts, not what is printed here.
[ "$act" = p ] || printf '{"token":"%s","printed":true}' "$token"
note ended
