#!/bin/sh
# run-tests.sh BUILDDIR [ARGUMENTS OF meson test] - run the tests of a build directory. The last
# line is "N passed, N failed" and counts cases, not programs; fails when a case failed or none ran.
set -u
build=$1
shift
rm -f "$build/meson-logs/testlog.json"
meson test -C "$build" --no-rebuild "$@"
exec python3 "$(dirname "$0")/count-cases.py" "$build/meson-logs/testlog.json"
