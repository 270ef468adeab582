# lib.sh - what the end-to-end tests share. A test file takes the path of the program as its first
# argument, sources this, defines functions case_NAME and ends with run_cases. Each case runs in a
# directory of its own, with `set -e`, and prints one line of TAP.

WEIR=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
source_root=${WEIR_TEST_SOURCE:-$(cd "$here/../.." && pwd)}
export LC_ALL=C.UTF-8 NO_COLOR=1 COLUMNS=80 TZ=UTC
unset WEIR_STORE WEIR_TOKEN XDG_DATA_HOME XDG_RUNTIME_DIR

weir() { "$WEIR" "$@"; }

# status N COMMAND...: it ends with N; its output is in the files `out` and `err`.
status() {
    local want=$1 got=0
    shift
    "$@" >out 2>err </dev/null || got=$?
    [ "$got" = "$want" ] && return 0
    echo "expected status $want, got $got: $*"
    sed 's/^/  out: /' out | head -20
    sed 's/^/  err: /' err | head -20
    return 1
}

# has FILE TEXT: it contains this text. hasnt: it does not.
has() {
    grep -qF -- "$2" "$1" && return 0
    echo "$1 has no \"$2\":"
    sed 's/^/  /' "$1" | head -30
    return 1
}
hasnt() {
    grep -qF -- "$2" "$1" || return 0
    echo "$1 has \"$2\":"
    sed 's/^/  /' "$1" | head -30
    return 1
}

# same GOT WANT
same() {
    [ "$1" = "$2" ] && return 0
    echo "got \"$1\", expected \"$2\""
    return 1
}

# wait_for COMMAND...: until it succeeds, or the test has failed.
wait_for() {
    local end=$((SECONDS + 30))
    until "$@" >/dev/null 2>&1; do
        if [ $SECONDS -ge $end ]; then
            echo "waited 30 s for: $*"
            return 1
        fi
        sleep 0.02
    done
}

# ended PID: this process is no more (it may still wait to be waited for).
ended() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status"; }

# json_lines FILE: every line is JSON, and there is at least one. weir itself is the judge: with
# --lines each line is checked as a job's data.
json_lines() {
    [ -s "$1" ] || { echo "$1 is empty"; return 1; }
    weir --store mem: add any --lines --quiet <"$1"
}

# member NAME [FILE]: the value of a plain member of the one object in the file.
member() {
    grep -oE "[{,]\"$1\":(\"[^\"]*\"|[^,}]*)" "${2:-out}" | head -1 |
        sed 's/^..[^:]*://' | tr -d '"'
}

# on_terminal COMMAND...: what it shows on a terminal of 80 by 24, in the file `out`.
on_terminal() {
    env -u NO_COLOR TERM=xterm script -qefc "stty cols 80 rows 24; $*" typescript \
        >/dev/null 2>&1 </dev/null || true
    sed '1d' typescript >out
}

# narrow FILE: no line is wider than 80 columns.
narrow() {
    local line
    while IFS= read -r line; do
        [ ${#line} -le 80 ] || { echo "${#line} columns: $line"; return 1; }
    done <"$1"
}

run_cases() {
    local top n=0 name rc bad=0 names
    top=$(mktemp -d)
    names=$(declare -F | sed -n 's/^declare -f case_//p')
    echo "1..$(echo "$names" | wc -l)"
    for name in $names; do
        n=$((n + 1))
        mkdir "$top/$name"
        (
            set -e
            cd "$top/$name"
            export HOME=$PWD TMPDIR=$PWD WEIR_STORE=sqlite:jobs.db
            # The shell's own kill: a small system may have no other.
            # What has just ended by itself is no failure.
            trap 'pids=$(jobs -p); [ -z "$pids" ] || kill $pids 2>/dev/null || :; wait' EXIT
            "case_$name"
        ) >"$top/$name.log" 2>&1
        rc=$?
        if [ $rc = 0 ]; then
            echo "ok $n - ${name//_/ }"
        else
            bad=1
            echo "not ok $n - ${name//_/ }"
            sed 's/^/# /' "$top/$name.log" | tail -40
        fi
    done
    rm -rf "$top"
    exit $bad
}
