#!/bin/sh
# run-fuzz.sh BUILDDIR SECONDS - run every libFuzzer target for so long, starting from its seeds
# (test/fuzz/corpus) and what earlier runs found (BUILDDIR/corpus). Writes "N passed, N failed".
set -u
build=$1
seconds=$2
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
passed=0
failed=0
for target in "$build"/test/fuzz_*; do
    [ -f "$target" ] && [ -x "$target" ] || continue
    name=$(basename "$target")
    name=${name#fuzz_}
    mkdir -p "$build/corpus/$name" "$build/crashes"
    seeds=$root/test/fuzz/corpus/$name
    dictionary=$root/test/fuzz/$name.dict
    log=$build/$name.log
    set -- "$build/corpus/$name"
    [ -d "$seeds" ] && set -- "$@" "$seeds"
    [ -e "$dictionary" ] && set -- "-dict=$dictionary" "$@"
    if "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$build/crashes/$name-" "$@" >"$log" 2>&1; then
        passed=$((passed + 1))
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        echo "ok - $name: $runs runs in $seconds s"
    else
        failed=$((failed + 1))
        echo "not ok - $name"
        tail -n 40 "$log" | sed 's/^/# /'
    fi
done
if [ $((passed + failed)) = 0 ]; then
    echo "no fuzz target was built"
    failed=1
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
