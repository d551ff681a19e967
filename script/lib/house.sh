# Sourced by every script here: where the project stands, how it speaks, which Node it uses, how it builds.
set -euo pipefail

house_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
house_tools=$house_root/.tools
house_node_min=22
cd "$house_root"

export PATH="$house_tools/node_modules/node/bin:$PATH:/usr/sbin:/sbin"

say() { printf '%s: %s\n' "${0##*/}" "$*"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

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
    rm -f "$tap"
    node --disable-warning=ExperimentalWarning --test --test-concurrency="${TEST_JOBS:-2}" --test-reporter=spec --test-reporter-destination=stdout \
        --test-reporter=tap --test-reporter-destination="$tap" "${files[@]}" </dev/null || true
    local counts
    counts=$(node tests/tools/count.mjs node "$tap")
    # shellcheck disable=SC2086
    suite_close "$name" $counts
}

# checks NAME: run the functions whose names follow, each one check of the suite.
run_checks() {
    local name=$1 passed=0 failed=0 check
    shift
    for check in "$@"; do
        if ( set -e; "check_$check" ); then
            echo "ok   $name ${check//_/ }"
            passed=$((passed + 1))
        else
            echo "FAIL $name ${check//_/ }"
            failed=$((failed + 1))
        fi
    done
    suite_close "$name" "$passed" "$failed"
}
