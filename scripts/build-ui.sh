#!/bin/sh
# build-ui.sh OUT.c OUT.d - the page of ui/ as C. Fetches what it is made of when that has changed.
set -eu
out=$(realpath -m "$1")
deps=$(realpath -m "$2")
cd "$(dirname "$0")/../ui"
(
    flock 9     # several build directories may be at it
    if ! cmp -s package-lock.json node_modules/.installed-lock; then
        npm ci --loglevel=error --no-audit --no-fund --ignore-scripts
        cp package-lock.json node_modules/.installed-lock
    fi
) 9>.install-lock
exec node build.mjs "$out" "$deps"
