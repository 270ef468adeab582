#!/bin/sh
# check-abi.sh [--accept] LIBRARY [BASELINE] - compare what programs see of libweir.so (functions,
# public structs, enumerators) with the baseline in dist/abi. New functions are fine, since older
# programs do not call them. Anything else fails. With --accept, what LIBRARY has is the baseline
# from now on.
set -eu
accept=
if [ "${1:-}" = --accept ]; then
    accept=1
    shift
fi
library=${1:?usage: check-abi.sh [--accept] LIBRARY [BASELINE]}
root=$(cd "$(dirname "$0")/.." && pwd)
headers=$root/include/weir
baseline=${2:-$root/dist/abi/libweir.so.0.abi}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Public types alone: those that the headers define. Nothing of where or by what it was built.
abidw --headers-dir "$headers" --drop-private-types --exported-interfaces-only --no-show-locs \
    --no-corpus-path --no-comp-dir-path --no-architecture --no-elf-needed --no-write-default-sizes \
    --no-parameter-names --type-id-style hash --out-file "$tmp/now.abi" "$library"
if [ -n "$accept" ]; then
    # Paths as seen from the tree, whatever the build directory.
    sed "s,path='[./]*src/,path='src/," "$tmp/now.abi" >"$baseline"
    echo "check-abi.sh: $baseline has the ABI of $library"
    exit 0
fi

status=0
abidiff --leaf-changes-only --no-added-syms "$baseline" "$tmp/now.abi" >"$tmp/changes" || status=$?
[ "$status" = 0 ] && exit 0
cat "$tmp/changes"
cat >&2 <<END

check-abi.sh: the ABI has changed: see above. Programs that were built with the last baseline
may break. If nothing was released with it, or if the change is a member in the place of a
reserved one, accept it, and commit the file:
    scripts/check-abi.sh --accept $library
Otherwise the soname changes, too (CONTRIBUTING.md, "Releases").
END
exit 1
