#!/bin/sh
# under-load.sh - repeat tests side by side on a busy machine, and count failures per test.
#
# Usage: scripts/under-load.sh [-n RUNS] [-j SIDE] [-b BURNERS] [-k DIR] BUILD TEST...
#   RUNS     how often each test runs (30)
#   SIDE     how many run at the same time (4)
#   BURNERS  processes that only use the processor, at nice 19 (2)
#   DIR      where the logs of failed runs are kept (build/under-load)
# TEST is a name of `meson test -C BUILD --list`, such as test_trouble or e2e-test_work. A test that
# fails under load is at fault, or weir is. The exit status is 1 if any run failed.
set -eu

runs=30 side=4 burners=2 dir=build/under-load
while getopts n:j:b:k: option; do
    case $option in
    n) runs=$OPTARG ;;
    j) side=$OPTARG ;;
    b) burners=$OPTARG ;;
    k) dir=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 2 ] || { sed -n '4,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
build=$1
shift
mkdir -p "$dir"
: >"$dir/results"

burning=
stop_burners() { [ -z "$burning" ] || kill $burning 2>/dev/null || :; }
trap stop_burners EXIT
trap 'exit 130' INT TERM
while [ "$burners" -gt 0 ]; do
    nice -n 19 sh -c 'while :; do :; done' &
    burning="$burning $!"
    burners=$((burners - 1))
done

# One run: a line in the results, and its log if it failed.
export build dir
i=0
while [ $i -lt "$runs" ]; do
    i=$((i + 1))
    for name; do
        echo "$name $i"
    done
done | xargs -P "$side" -L 1 sh -c '
    log=under-load-$1-$2
    if meson test -C "$build" --no-rebuild --logbase "$log" "$1" >/dev/null 2>&1; then
        echo "$1 ok" >>"$dir/results"
    else
        echo "$1 failed $2" >>"$dir/results"
        cp "$build/meson-logs/$log.txt" "$dir/" 2>/dev/null || :
    fi
    rm -f "$build/meson-logs/$log."*' run

printf '%-28s %6s %8s\n' test runs failures
bad=0
for name; do
    all=$(grep -c "^$name " "$dir/results" || :)
    failed=$(grep -c "^$name failed" "$dir/results" || :)
    printf '%-28s %6s %8s\n' "$name" "$all" "$failed"
    [ "$failed" = 0 ] || bad=1
done
[ $bad = 0 ] || echo "logs of failed runs: $dir"
exit $bad
