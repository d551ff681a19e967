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

# compile NAME: builds build/NAME; says nothing when nothing is to be done, prints the compiler's words when it fails.
compile() {
    local folder=build/$1 log=build/.$1.log
    case $(ninja -C "$folder" -n 2>&1 | tail -1) in *'no work to do'*) return 0 ;; esac
    say "building $folder"
    ninja -C "$folder" >"$log" 2>&1 || { grep -v '^\[[0-9/]*\]' "$log" | tail -60; die "the build in $folder failed"; }
}

build_debug() {
    mkdir -p build
    configure debug --buildtype=debug -Db_sanitize=address,undefined -Db_lundef=false -Dwerror=true
    compile debug
}

build_release() {
    mkdir -p build
    configure release --buildtype=release -Dwerror=true
    compile release
}

build_benches() {
    build_release
    ninja -C build/release bench/bench_claim bench/bench_stamp bench/bench_stream bench/bench_lexical bench/bench_vector >build/.benches.log 2>&1 || { tail -60 build/.benches.log; die "the measuring programs do not build"; }
}

build_tsan() {
    mkdir -p build
    configure tsan --buildtype=debug -Doptimization=1 -Db_sanitize=thread -Db_lundef=false -Dwerror=true
    compile tsan
}

# suite_close NAME PASSED FAILED: the closing line of a suite, and its exit.
suite_close() {
    printf '%s: %d passed, %d failed\n' "$1" "$2" "$3"
    if [ "$(($2 + $3))" -eq 0 ]; then
        echo "the suite $1 executed nothing, which counts as a failure" >&2
        exit 1
    fi
    [ "$3" -eq 0 ] || exit 1
    exit 0
}

# node_suite NAME GLOB...: Node's test runner over the files, then the closing line.
node_suite() {
    local name=$1 tap=$house_root/build/$1.tap
    shift
    local files=()
    local f
    for f in "$@"; do [ ! -e "$f" ] || files+=("$f"); done
    [ "${#files[@]}" -gt 0 ] || suite_close "$name" 0 0
    rm -f "$tap" "$house_root/build/pauses.log"
    export HEARTH_TEST_PAUSES=$house_root/build/pauses.log
    node tests/tools/metronome.mjs "$HEARTH_TEST_PAUSES" &
    local metronome=$!
    node --disable-warning=ExperimentalWarning --test --test-timeout="${TEST_TIMEOUT_MS:-1500000}" --test-concurrency="${TEST_JOBS:-2}" --test-reporter=spec --test-reporter-destination=stdout \
        --test-reporter=tap --test-reporter-destination="$tap" "${files[@]}" </dev/null || true
    kill "$metronome" 2>/dev/null || true
    local counts
    counts=$(node tests/tools/count.mjs node "$tap")
    # shellcheck disable=SC2086
    suite_close "$name" $counts
}

# one_check NAME CHECK FOLDER: runs check_CHECK and prints what it said, in one piece; a file in FOLDER tells that it passed.
one_check() {
    local out result=FAIL
    if out=$(set -e; "check_$2" 2>&1); then
        result='ok  '
        touch "$3/$2"
    fi
    printf '%s%s %s %s\n' "$out${out:+
}" "$result" "$1" "${2//_/ }"
}

# run_checks NAME CHECK...: runs the functions check_CHECK, CHECK_JOBS (1) at a time; each is one check of the suite.
run_checks() {
    local name=$1 check folder passed
    shift
    folder=$(mktemp -d)
    for check in "$@"; do
        while [ "$(jobs -rp | wc -l)" -ge "${CHECK_JOBS:-1}" ]; do wait -n || true; done
        one_check "$name" "$check" "$folder" &
    done
    wait
    passed=$(find "$folder" -type f | wc -l)
    rm -rf "$folder"
    suite_close "$name" "$passed" "$(($# - passed))"
}
