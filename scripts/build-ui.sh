#!/bin/sh
# build-ui.sh OUT.c OUT.d - the page of ui/ as C. A release tarball has it already (ui/built).
# Otherwise npm first fetches what the page is made of, when that has changed.
set -eu
out=$(realpath -m "$1")
deps=$(realpath -m "$2")
cd "$(dirname "$0")/../ui"
if [ -e built/ui_assets.c ]; then
    cp built/ui_assets.c "$out"
    : >"$deps"
    exit 0
fi
(
    flock 9     # several build directories may be at it
    if ! cmp -s package-lock.json node_modules/.installed-lock; then
        npm ci --loglevel=error --no-audit --no-fund --ignore-scripts
        cp package-lock.json node_modules/.installed-lock
    fi
) 9>.install-lock
exec node build.mjs "$out" "$deps"
