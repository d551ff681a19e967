# Sourced by every script here: where the project stands, how it speaks, which Node it uses, how it builds. A script's `--help` is the comment at its head.
set -euo pipefail

house_cwd=$PWD
house_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
house_tools=$house_root/.tools
house_node_min=22

say() { printf '%s: %s\n' "${0##*/}" "$*"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# The comment at the head of the script; then more_help, which a script may define before it sources this file.
print_help() {
    sed -n '2,${/^#/!q;s/^# \{0,1\}//p}' "$0"
    ! declare -F more_help >/dev/null || more_help
}
for house_argument in "$@"; do
    case $house_argument in -h | --help) print_help; exit 0 ;; esac
done

# Under sudo, a tree that belongs to its user would fill with files of root's, and the service would use root's data folder.
house_refuse_sudo() {
    [ "$(id -u)" -eq 0 ] && [ "${SUDO_UID:-0}" -ne 0 ] || return 0
    [ "$(stat -c %u "$house_root")" -ne 0 ] || [ "${0##*/}" = server ] || return 0
    die "run it as yourself, without sudo; it asks for sudo when it installs packages"
}
house_refuse_sudo

cd "$house_root"
house_path=$PATH
export PATH="$house_tools/node_modules/node/bin:$PATH:/usr/sbin:/sbin"

# Compilers, npm and browsers keep caches in the home folder; a user without one gets a folder for them.
house_home=${HOME:-}
[ -n "$house_home" ] || house_home=$(getent passwd "$(id -u)" | cut -d: -f6) || house_home=
export HOME="$house_home"
if [ ! -d "$HOME" ]; then
    export HOME="$house_tools/home"
    mkdir -p "$HOME"
fi

node_major() {
    command -v node >/dev/null || { echo 0; return; }
    node -p 'process.versions.node.split(".")[0]' 2>/dev/null || echo 0
}

# configure NAME OPTION...: build/NAME is set up once, and anew when its options change.
configure() {
    local folder=build/$1 options
    shift
    options="$* ${CC:-} ${CXX:-}"
    if [ -f "$folder/build.ninja" ]; then
        [ ! -f "$folder/.options" ] || [ "$(cat "$folder/.options")" != "$options" ] || return 0
        [ -f "$folder/.options" ] || return 0
        rm -rf "$folder"
    fi
    say "configuring $folder"
    meson setup "$folder" "$@" >"$house_root/build/.setup.log" 2>&1 || { cat "$house_root/build/.setup.log"; die "meson setup of $folder failed"; }
    printf '%s' "$options" >"$folder/.options"
}

# compile NAME [TARGET...]: builds build/NAME, or these programs; says nothing when nothing is to be done, prints the compiler's words when it fails.
compile() {
    local folder=build/$1 log=build/.$1.log
    shift
    case $(ninja -C "$folder" -n "$@" 2>&1 | tail -1) in *'no work to do'*) return 0 ;; esac
    say "building $folder"
    ninja -C "$folder" "$@" >"$log" 2>&1 9>&- || { grep -v '^\[[0-9/]*\]' "$log" | tail -60; die "the build in $folder failed"; }
}

# Suites run beside each other: one at a time works in build/NAME, until `leave`.
enter() {
    mkdir -p build
    exec 9>"build/.$1.lock"
    flock 9
}
leave() { exec 9>&-; }

build_debug() {
    enter debug
    configure debug --buildtype=debug -Db_sanitize=address,undefined -Db_lundef=false -Dwerror=true
    compile debug
    leave
}

# The program alone: the unit tests run in debug and tsan.
build_release() {
    enter release
    configure release --buildtype=release -Dwerror=true
    compile release hearth
    leave
}

build_benches() {
    build_release
    enter release
    compile release bench/bench_claim bench/bench_postgres bench/bench_stamp bench/bench_stream bench/bench_lexical bench/bench_vector bench/bench_espeak
    leave
}

# Only the tests that run under it.
build_tsan() {
    local programs
    enter tsan
    configure tsan --buildtype=debug -Db_sanitize=thread -Db_lundef=false -Dwerror=true
    compile tsan build.ninja # names the tests that came since the last configuration
    mapfile -t programs < <(node tests/tools/stamps.mjs programs tsan threads)
    compile tsan "${programs[@]}"
    leave
}

build_fuzz() {
    enter fuzz
    CC='ccache clang-14' CXX='ccache clang++-14' configure fuzz --buildtype=debugoptimized -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false
    compile fuzz
    leave
}

# --- Suites ---

# A plan of an earlier run must not speak for one that could not be made.
stamps() {
    case $1 in due*) rm -f "build/stamps/$2/plan" ;; esac
    node tests/tools/stamps.mjs "$@"
}

# suite_close NAME PASSED FAILED [PLAN...]: what was skipped (of these plans of stamps; NAME), the closing line of a suite, and its exit. A suite of which
# all was skipped says so in its closing line, and how many tests passed before.
suite_close() {
    local name=$1 passed=$2 failed=$3 skipped
    shift 3
    mapfile -t skipped < <(stamps skipped "${@:-$name}")
    [ "${#skipped[@]}" -le 1 ] || printf '%s\n' "${skipped[@]:1}"
    if [ "${#skipped[@]}" -gt 1 ] && [ "$((passed + failed))" -eq 0 ]; then
        printf '%s: %d passed, 0 failed (before; this run executed nothing of it)\n' "$name" "${skipped[0]% *}"
        exit 0
    fi
    printf '%s: %d passed, %d failed\n' "$name" "$passed" "$failed"
    if [ "$((passed + failed))" -eq 0 ]; then
        echo "the suite $name executed nothing, which counts as a failure" >&2
        exit 1
    fi
    [ "$failed" -eq 0 ] || exit 1
    exit 0
}

# node_suite NAME FILE...: Node's test runner over the files that are due, then the closing line. Most files wait most of the time: four at a time, also on
# two cores (TEST_JOBS).
node_suite() {
    local name=$1 tap=$house_root/build/$1.tap results=$house_root/build/$1.files pauses=$house_root/build/$1.pauses files=() f counts
    shift
    for f in "$@"; do [ ! -e "$f" ] || files+=("$f"); done
    rm -f "$tap" "$results"
    [ "${#files[@]}" -gt 0 ] || suite_close "$name" 0 0 none
    mapfile -t files < <(stamps due-tests "$name" "${HEARTH_BIN:-}" "${files[@]}")
    [ "${#files[@]}" -gt 0 ] || suite_close "$name" 0 0
    rm -f "$pauses"
    node tests/tools/metronome.mjs "$pauses" &
    local metronome=$!
    HEARTH_TEST_PAUSES=$pauses node --disable-warning=ExperimentalWarning --test --test-timeout="${TEST_TIMEOUT_MS:-1500000}" \
        --test-concurrency="${TEST_JOBS:-4}" --test-reporter=spec --test-reporter-destination=stdout --test-reporter=tap --test-reporter-destination="$tap" \
        --test-reporter="$house_root/tests/tools/per_file.mjs" --test-reporter-destination="$results" "${files[@]}" </dev/null || true
    kill "$metronome" 2>/dev/null || true
    counts=$(node tests/tools/count.mjs node "$tap")
    node tests/tools/slowest.mjs "$results"
    stamps passed "$name" <"$results"
    # shellcheck disable=SC2086
    suite_close "$name" $counts
}

# one_check NAME CHECK FOLDER: runs check_CHECK and prints what it said, in one piece; a file in FOLDER tells that it passed.
one_check() {
    local out result=FAIL started=$SECONDS
    if out=$(set -e; "check_$2" 2>&1); then
        result='ok  '
        touch "$3/$2"
    fi
    printf '%s%s %s %s%s\n' "$out${out:+
}" "$result" "$1" "${2//_/ }" "$([ $((SECONDS - started)) -lt 5 ] || echo " ($((SECONDS - started)) s)")"
}

# due_checks NAME CHECK...: the checks that are due. One that has a function inputs_CHECK (a line of inputs with tabs between) is stamped.
due_checks() {
    local name=$1 check
    shift
    for check in "$@"; do
        ! declare -F "inputs_$check" >/dev/null || printf '%s\t%s\n' "$check" "$("inputs_$check")"
    done | stamps due "$name"
    for check in "$@"; do declare -F "inputs_$check" >/dev/null || echo "$check"; done
}

# run_checks NAME CHECK...: runs the functions check_CHECK that are due, CHECK_JOBS (1) at a time; each is one check of the suite.
run_checks() {
    local name=$1 checks check folder passed
    shift
    mapfile -t checks < <(due_checks "$name" "$@")
    folder=$(mktemp -d)
    for check in "${checks[@]}"; do
        while [ "$(jobs -rp | wc -l)" -ge "${CHECK_JOBS:-1}" ]; do wait -n || true; done
        one_check "$name" "$check" "$folder" &
    done
    wait
    find "$folder" -type f -printf '%f\n' | stamps passed "$name"
    passed=$(find "$folder" -type f | wc -l)
    rm -rf "$folder"
    suite_close "$name" "$passed" "$((${#checks[@]} - passed))"
}
