#!/bin/sh
# test_kue.sh WEIR DIR CASES - weir beside the real Kue: the cases in test/kue/CASES. Kue is installed
# into DIR, as the lock file says, unless it is there already. Writes TAP.
set -eu
weir=$1 modules=$2 cases=$3
here=$(cd "$(dirname "$0")/../kue" && pwd)

mkdir -p "$(dirname "$modules")"
exec 9>"$modules.lock"      # one of the tests installs, the others wait for it
flock 9
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
exec 9>&-
exec node "$here/$cases" "$weir" "$modules/node_modules"
