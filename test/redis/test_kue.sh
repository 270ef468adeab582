#!/bin/sh
# test_kue.sh WEIR DIR - weir beside the real Kue (test/kue). Its modules are installed into DIR, as
# the lock file says, unless they are there already. Writes TAP.
set -eu
weir=$1 modules=$2
here=$(cd "$(dirname "$0")/../kue" && pwd)

if ! cmp -s "$here/package-lock.json" "$modules/done"; then
    rm -rf "$modules"
    mkdir -p "$modules"
    cp "$here/package.json" "$here/package-lock.json" "$modules"
    if ! (cd "$modules" && npm ci --ignore-scripts --no-audit --no-fund) >"$modules/npm.log" 2>&1; then
        sed 's/^/# /' "$modules/npm.log"
        echo "Bail out! npm could not install kue"
        exit 1
    fi
    cp "$here/package-lock.json" "$modules/done"
fi
exec node "$here/cases.js" "$weir" "$modules/node_modules"
