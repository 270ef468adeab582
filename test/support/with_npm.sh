#!/bin/sh
# with_npm.sh WEIR DIR ROOM CASES - weir beside programs of others: the cases in test/ROOM/CASES. The
# packages of test/ROOM are installed into DIR, as the lock file says, unless they are there already.
# Writes TAP.
set -eu
weir=$1 modules=$2 cases=$4
here=$(cd "$(dirname "$0")/../$3" && pwd)

mkdir -p "$(dirname "$modules")"
exec 9>"$modules.lock"      # one of the tests installs, the others wait for it
flock 9
if ! cmp -s "$here/package-lock.json" "$modules/done"; then
    rm -rf "$modules"
    mkdir -p "$modules"
    cp "$here/package.json" "$here/package-lock.json" "$modules"
    if ! (cd "$modules" && npm ci --ignore-scripts --no-audit --no-fund) >"$modules/npm.log" 2>&1; then
        sed 's/^/# /' "$modules/npm.log"
        echo "Bail out! npm could not install the packages of test/$3"
        exit 1
    fi
    cp "$here/package-lock.json" "$modules/done"
fi
exec 9>&-
exec node "$here/$cases" "$weir" "$modules/node_modules"
