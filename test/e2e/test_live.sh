# test_live.sh - what goes on while something else happens: watch, top, --wait, --follow, demo.
. "$(dirname "$0")/lib.sh"

# ready PID: it has the descriptor that tells it of signals, so it is past its start.
ready() { readlink "/proc/$1"/fd/* | grep -q signalfd; }

case_watch() {
    weir add t
    "$WEIR" watch --json --type t --event start,progress,complete --limit 3 >seen &
    local watch=$!
    wait_for ready $watch
    # How soon a watch finds a new owner is not promised: work until it has seen enough.
    until ended $watch; do
        weir add t --quiet
        timeout 60 "$WEIR" work t --quiet --drain \
            --exec 'echo "progress 1/2" >&3; sleep 0.3; echo 7'
    done
    wait $watch
    json_lines seen
    same "$(wc -l <seen)" 3
    hasnt seen enqueue
}

case_watch_bad_calls() {
    weir add t
    status 2 weir watch --event nonsense
    has err "nonsense"
    status 2 weir watch --id 0
    status 0 timeout 60 "$WEIR" watch --for 50ms
}

# The text of an error is not cut to the width of a screen.
case_watch_shows_errors_whole() {
    local server watch
    "$WEIR" serve --listen 127.0.0.1:0 --store mem: --data data >serve.out 2>serve.err </dev/null &
    server=$!
    wait_for grep -q '^weir: serving ' serve.out
    WEIR_STORE=$(sed -n 's/.* at \(http:.*\)$/\1/p' serve.out) COLUMNS=60 "$WEIR" watch >seen &
    watch=$!
    wait_for ready $watch
    kill -9 $server
    wait_for has seen " error "
    kill $watch
    hasnt seen "…"
}

case_watch_ends_by_signal() {
    weir add t
    "$WEIR" watch &
    local pid=$!
    wait_for ready $pid
    kill $pid
    wait $pid
}

case_add_waits_for_the_result() {
    weir add other
    "$WEIR" add t '{"x":1}' --wait 30s >result 2>wait.err &
    local pid=$!
    wait_for eval '[ "$(weir count t)" = 1 ]'
    status 0 timeout 60 "$WEIR" work t --drain --exec cat
    wait $pid
    same "$(cat result)" '{"x":1}'
}

case_add_waits_for_a_failure() {
    weir add other
    "$WEIR" add t --wait 30s >result 2>wait.err &
    local pid=$! got=0
    wait_for eval '[ "$(weir count t)" = 1 ]'
    status 0 timeout 60 "$WEIR" work t --drain --exec 'echo "no paper" >&2; exit 1'
    wait $pid || got=$?
    same $got 1
    has wait.err "exit status 1: no paper"
    [ ! -s result ]
}

case_a_failure_shows_no_control_characters() {
    weir add t --wait 20s >out 2>err &
    local pid=$!
    wait_for weir get 1
    weir work t --drain -q --exec 'printf "a\302\23331mb\n" >&2; exit 1' 2>/dev/null
    local got=0
    wait $pid || got=$?
    same "$got" 1
    has err "exit status 1: a.31mb"
}

case_add_waits_in_vain() {
    status 12 weir add t --wait 100ms
    has err "explain 1"
    status 0 weir count
    same "$(cat out)" 1
    status 2 weir add t --wait 1s --count 2
    status 2 weir add t --wait 1s --store mem:
    has err "mem:"
}

case_log_follow() {
    weir add t
    timeout 60 "$WEIR" work t --exec 'echo "log one" >&3; until [ -e go ]; do sleep 0.02; done
        echo "log two" >&3' >/dev/null &
    local work=$!
    wait_for eval 'weir log 1 | grep -q one'
    "$WEIR" log 1 --follow >follow &
    local follow=$!
    wait_for grep -q one follow
    hasnt follow two
    touch go
    wait $follow
    has follow two
    kill $work
    wait $work
}

case_top_once() {
    weir add mail --count 7 -q
    weir add a-type-with-a-rather-long-name-that-does-not-fit-anywhere --delay 1h
    weir add bad
    weir work bad --drain --exec 'echo "$(seq 100 | tr "\n" " ")" >&2; exit 1' -q
    status 0 weir top --once
    narrow out
    has out "mail"
    has out "FAILED LAST"
    has out "exit status 1"
    hasnt out "/s"
    status 0 weir top --json
    json_lines out
    same "$(member inactive)" 7
}

case_top_on_a_terminal() {
    command -v script >/dev/null || return 0
    weir add mail --count 7 -q
    TERM=xterm script -qefc "echo \$\$ >pid; exec $WEIR top" typescript >/dev/null 2>&1 </dev/null &
    local pid=$!
    wait_for grep -q "q quits" typescript
    kill "$(cat pid)"
    wait $pid
    has typescript "$(printf '\033[?1049h')"
    has typescript "$(printf '\033[?1049l')"
    has typescript "$(printf '\033[?25h')"
}

case_top_quits_by_key() {
    command -v script >/dev/null || return 0
    weir add mail
    mkfifo keys
    TERM=xterm script -qefc "$WEIR top" typescript >/dev/null 2>&1 <keys &
    local pid=$!
    exec 9>keys
    wait_for grep -q "q quits" typescript
    printf q >&9
    wait_for ended $pid
    wait $pid
    exec 9>&-
}

case_colours_only_on_a_terminal() {
    command -v script >/dev/null || return 0
    weir add mail
    unset NO_COLOR
    status 0 env TERM=xterm "$WEIR" list
    hasnt out "$(printf '\033')"
    on_terminal "$WEIR list"
    has out "$(printf '\033[')"
    on_terminal "NO_COLOR=1 $WEIR list"
    hasnt out "$(printf '\033')"
}

# What a job says must not reach the terminal as a command, nor turn the text beside it.
case_hidden_characters_on_a_terminal() {
    command -v script >/dev/null || return 0
    local csi override space del bad
    csi=$(printf '\302\233')                # U+009B
    override=$(printf '\342\200\256')       # U+202E
    space=$(printf '\342\200\213')          # U+200B
    del=$(printf '\177')
    weir add mail "{\"to\":\"a${csi}b${override}c${space}d${del}e\"}"
    weir log 1 "l${csi}m${override}n${space}o${del}p"
    for bad in "$csi" "$override" "$space" "$del"; do
        status 2 weir add "mail$bad"
        has err "invisible or control character"
        for command in "get 1 --json" "get 1" "list" "list --json" "log 1" "log 1 --json" "export"; do
            on_terminal "$WEIR $command"
            hasnt out "$bad"
        done
    done
    on_terminal "$WEIR get 1 --json"
    has out 'a\u009bb\u202ec\u200bd\u007fe'
    on_terminal "$WEIR log 1 --json"
    has out 'l\u009bm\u202en\u200bo\u007fp'
    # A program that reads gets the data as it is.
    status 0 weir get 1 --json
    has out "a${csi}b${override}c${space}d${del}e"
}

case_wide_text_fits() {
    weir add "日本語の種類" '{"名前":"とても長い名前とても長い名前とても長い名前とても長い名前とても長い名前"}'
    status 0 weir list
    # each of these takes two columns
    local line wide
    while IFS= read -r line; do
        wide=${line//[[:ascii:]]/}
        wide=${wide//…/}
        [ $((${#line} + ${#wide})) -le 80 ]
    done <out
    status 0 env LC_ALL=C "$WEIR" list
    status 0 weir get 1
}

case_demo() {
    status 0 timeout 120 "$WEIR" demo --fast
    narrow out
    has out "failed for good"
    has out "at last"
    has out "all           96        95       1   103"
    has out "weir demo --store sqlite:demo.db"
    hasnt out "weir explain"
    [ -z "$(ls -d weir-* 2>/dev/null)" ]
    [ ! -e jobs.db ]
    status 0 timeout 120 "$WEIR" demo --fast --json
    json_lines out
    same "$(wc -l <out)" 6
}

case_demo_on_a_store() {
    status 0 timeout 120 "$WEIR" demo --fast --store sqlite:demo.db
    sed -n 's/.*`\(weir explain .*\)`.*/\1/p' out >command
    # shellcheck disable=SC2046
    status 0 $(cat command)
    has out "failed"
    status 0 weir --store sqlite:demo.db count --state complete
    same "$(cat out)" 95
    status 0 weir --store sqlite:demo.db check
    status 0 timeout 120 "$WEIR" demo --fast --store mem:
}

case_demo_on_a_terminal() {
    command -v script >/dev/null || return 0
    on_terminal "$WEIR demo --fast"
    has out "running now"
    has out "$(printf '\033[?25h')"
    has out "WORK TIME"
}

case_bench_and_demo_interrupted() {
    local cmd pid got
    for cmd in "bench --count 10000000" demo; do
        # shellcheck disable=SC2086
        "$WEIR" $cmd >/dev/null 2>err &
        pid=$!
        wait_for eval 'ls weir-*/jobs.db'
        kill -INT $pid
        got=0
        wait $pid || got=$?
        same $got 13
        has err interrupted
        [ -z "$(ls -d weir-* 2>/dev/null)" ]
    done
}

case_bench() {
    status 0 timeout 120 "$WEIR" bench --count 500 --producers 2 --workers 2
    narrow out
    has out "LIVES/S"
    status 0 timeout 120 "$WEIR" bench --count 500 --bulk 50 --prefetch 10 --json
    json_lines out
    same "$(member jobs)" 500
    weir add mine
    status 0 timeout 120 "$WEIR" bench --count 200 --store sqlite:jobs.db
    status 0 weir count
    same "$(cat out)" 1
    status 2 weir bench --count 0
}

run_cases
