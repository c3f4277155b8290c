#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh: tests the library with real servers. It starts an Xvfb for each kind of server and ends it by its process id.
#
# usage: run.sh path/of/server_test
#
# XQOS_MODULE   the server module; target/release/libxqos_module.so of this tree by default
# XVFB          the server; Xvfb by default
#
# exit status: 0 if all tests passed, 1 if a test or a server failed, 77 if Xvfb or the module is missing

set -u

here=$(cd "$(dirname "$0")" && pwd) || exit 1
test_program=${1:-$here/../build/server_test}
module=${XQOS_MODULE:-$here/../../target/release/libxqos_module.so}
xvfb=${XVFB:-Xvfb}
failed=
skipped=

if ! command -v "$xvfb" >/dev/null; then
    echo "run.sh: skipped, $xvfb is not installed (Debian package: xvfb)"
    exit 77
fi

scratch=$(mktemp -d) || exit 1
server=
end_server() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null
        wait "$server" 2>/dev/null
        server=
    fi
}
trap 'end_server; rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

# start_server NAME [PRELOAD]: sets server and DISPLAY. The server chooses its display number and prints it when ready.
start_server() {
    : >"$scratch/display"
    LD_PRELOAD=${2:-} "$xvfb" -displayfd 3 -noreset -nolisten tcp -screen 0 640x480x24 \
        3>"$scratch/display" >"$scratch/$1.log" 2>&1 &
    server=$!
    tries=0
    while ! [ -s "$scratch/display" ]; do
        tries=$((tries + 1))
        if [ $tries -gt 600 ] || ! kill -0 "$server" 2>/dev/null; then
            echo "run.sh: the $1 server did not start; its output:"
            cat "$scratch/$1.log"
            return 1
        fi
        sleep 0.1
    done
    DISPLAY=:$(cat "$scratch/display")
    export DISPLAY
}

# run NAME PRELOAD [ARGUMENT]: runs the test program with one server, which must still be running at the end.
run() {
    echo "== $1 server"
    if ! start_server "$1" "$2"; then
        failed="$failed $1"
        return
    fi
    if ! "$test_program" ${3:+"$3"}; then
        failed="$failed $1"
    fi
    if ! kill -0 "$server" 2>/dev/null; then
        echo "run.sh: the $1 server exited during the test; its output:"
        cat "$scratch/$1.log"
        failed="$failed $1-died"
    fi
    end_server
}

run stock "" stock
if [ -f "$module" ]; then
    XQOS_HOST=dix
    export XQOS_HOST
    run xqos "$module"
    XQOS_HOST=libc
    run libc "$module" libc
else
    echo "== xqos server: skipped, $module does not exist (build it, or set XQOS_MODULE)"
    skipped=1
fi

if [ -n "$failed" ]; then
    echo "run.sh: FAILED:$failed"
    exit 1
fi
echo "run.sh: passed${skipped:+, without the tests that need the module}"
[ -z "$skipped" ] || exit 77
