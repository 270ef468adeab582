#!/bin/sh
# check-example.sh PROGRAM EXPECTED - run an example in a directory of its own and compare what it
# prints with the file EXPECTED. Writes TAP.
set -u
program=$(realpath "$1")
expected=$2
name=$(basename "$program")
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

echo "1..2"
(cd "$dir" && exec "$program") >"$dir/.out" 2>"$dir/.err"
status=$?
if [ "$status" = 0 ]; then
    echo "ok 1 - $name ends well"
else
    echo "not ok 1 - $name ends with status $status"
    sed 's/^/# /' "$dir/.err"
fi
if diff -u "$expected" "$dir/.out" >"$dir/.diff"; then
    echo "ok 2 - $name prints what it should"
else
    echo "not ok 2 - $name prints something else"
    sed 's/^/# /' "$dir/.diff"
fi
