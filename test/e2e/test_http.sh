#!/bin/bash
# test_http.sh - the program with a server as its store: all commands, several processes at once, the
# server that is found by itself, tokens, and a server that is killed.
# shellcheck source=test/e2e/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
unset WEIR_LISTEN WEIR_DATA WEIR_CONFIG NOTIFY_SOCKET

# serve ARGUMENTS...: start a server and wait for its line; sets pid, url.
serve() {
    rm -f serve.out
    "$WEIR" serve --listen "127.0.0.1:${port:-0}" "$@" >serve.out 2>serve.err </dev/null &
    pid=$!
    wait_for serving
    url=$(sed -n 's/.* at \(https*:.*\)$/\1/p' serve.out)
    port=${url##*:}
}
serving() { grep -q '^weir: serving ' serve.out; }

# served: a server on a file, which is the store of all that follows.
served() {
    serve --store sqlite:served.db "$@"
    export WEIR_STORE=$url
}
ready() { readlink "/proc/$1"/fd/* | grep -q signalfd; }

# A library that cannot be loaded stands before the real one: only what speaks HTTP needs it.
case_libcurl_is_loaded_on_demand() {
    mkdir broken && : >broken/libcurl.so.4
    export LD_LIBRARY_PATH=$PWD/broken
    same "$(weir --store sqlite:j.db add mail)" 1
    status 2 weir --store http://127.0.0.1:1 count
    has err "http needs libcurl, which cannot be loaded"
    has err "install it (Debian: libcurl4)"
    status 2 weir serve --listen 127.0.0.1:0 --store sqlite:j.db
    has err "needs libcurl"
}

case_every_command() {
    served
    same "$(weir add mail '{"to":"ann"}' --priority high --attempts 2 --search)" 1
    same "$(weir add mail '{"to":"bob"}' --delay 1h)" 2
    for i in 1 2 3; do echo "{\"n\":$i}"; done | weir add other --lines --quiet
    same "$(weir count)" 5
    same "$(weir count --state delayed)" 1
    weir list --search ann --json >out
    same "$(member id)" 1
    weir promote 2
    weir update 2 --priority low
    weir get 2 --json >out
    has out '"priority":10,"state"'
    weir log 1 "a line"
    weir log 1 >out
    has out "a line"
    weir pause other
    weir work other --drain --quiet --exec cat || true      # it says that they are paused
    same "$(weir count --state complete)" 0
    weir resume other
    weir work other --drain --quiet --exec cat
    same "$(weir count --state complete)" 3
    weir cancel 2
    weir retry 2
    weir explain 1 >out
    has out "mail"
    weir stats --json >out
    json_lines out
    curl -sf "$url/v1/stats" >want
    same "$(cat out)" "$(cat want)"
    weir stats other --json >out
    curl -sf "$url/v1/types/other" >want
    same "$(cat out)" "$(cat want)"
    weir status >out
    has out "served.db, SQLite 3."
    has out "weir serve (process $pid)"
    has out "trouble     none"
    weir workers >out
    weir top --once >out
    has out "mail"
    weir rm 1
    status 3 weir get 1
    status 0 weir check
    weir export -o jobs.txt
    [ "$(wc -l <jobs.txt)" -ge 4 ]
}

case_two_workers_and_a_watch() {
    served
    "$WEIR" watch --json --event complete --limit 40 >seen &
    local watch=$!
    "$WEIR" work t -j 2 --quiet --exec 'echo "$(cat)" >>done.1; echo 1' &
    local one=$!
    "$WEIR" work t -j 2 --quiet --exec 'echo "$(cat)" >>done.2; echo 2' &
    local two=$!
    wait_for ready $watch
    wait_for ready $one
    wait_for ready $two
    for i in $(seq 40); do echo "{\"n\":$i}"; done | weir add t --lines --quiet
    wait $watch
    json_lines seen
    same "$(sort -u seen | wc -l)" 40
    same "$(cat done.1 done.2 | sort -u | wc -l)" 40
    same "$(cat done.1 done.2 | wc -l)" 40
    kill $one $two
    wait $one $two
    same "$(weir count --state complete)" 40
}

# active ID
active() { weir get "$1" --json | grep -q '"state":"active"'; }

case_the_lease_of_a_job_is_shown() {
    served
    weir add t --quiet
    "$WEIR" work t --lease 1m --drain --quiet --exec 'until [ -e go ]; do sleep 0.05; done' &
    local work=$!
    wait_for active 1
    status 0 weir get 1 --json
    [ $(($(member lease_until) - $(member started_at))) -ge 60000 ]
    status 0 weir get 1
    has out "lease until"
    status 0 weir explain 1
    tr -s '\n ' ' ' <out >words
    has words "Its lease ends in"
    status 0 weir --store sqlite:served.db get 1 --json     # beside its owner, which is asked
    has out lease_until
    status 0 weir --store sqlite:served.db explain 1
    tr -s '\n ' ' ' <out >words
    has words "Its lease ends in"
    touch go
    wait $work
    status 0 weir get 1
    hasnt out "lease"
    status 0 weir get 1 --json
    hasnt out "lease"
}

case_add_waits_for_a_worker_elsewhere() {
    served
    "$WEIR" work t --quiet --exec cat &
    local work=$!
    same "$(timeout 60 "$WEIR" add t '{"x":1}' --wait 30s)" '{"x":1}'
    kill $work
    wait $work
}

case_a_server_that_runs_is_the_store() {
    unset WEIR_STORE
    mkdir run
    export XDG_RUNTIME_DIR=$PWD/run
    weir add mail --quiet                       # no server yet: the file in the data directory
    status 0 test -e .local/share/weir/jobs.db
    weir token add a --role admin --data data >token        # one's own file needs none
    serve --store 'sqlite:served.db?durability=disk' --data data
    same "$(weir count)" 0
    weir add mail --quiet
    same "$(WEIR_TOKEN=$(cat token) weir --store "$url" count)" 1
    same "$(stat -c %a run/weir/server.json)" 600
    weir status >out
    tr -s '\n ' ' ' <out >words
    has words "sqlite:$PWD/served.db (of a server of yours that runs, $url)"
    same "$(weir add mail --durability disk --json | grep -o '"durability":"[a-z]*"')" \
         '"durability":"disk"'
    weir rm 2 --quiet
    kill -9 "$pid"
    wait "$pid" || true
    status 0 test -e run/weir/server.json       # left behind, and known for what it is
    weir add mail --quiet
    same "$(weir --store sqlite:.local/share/weir/jobs.db count)" 2
    port=0
    serve --store sqlite:served.db
    same "$(weir count)" 1
    same "$(WEIR_STORE=sqlite:.local/share/weir/jobs.db weir count)" 2
    kill "$pid"
    wait "$pid"
    status 1 test -e run/weir/server.json
}

# counted N TYPE...: N jobs of the type are there, or in the state of the arguments that follow.
counted() { [ "$(weir count "${@:2}")" = "$1" ]; }

# A worker, a command that waits and one that watches, all of which found the server by themselves.
case_a_server_that_ends_disturbs_nobody() {
    unset WEIR_STORE
    mkdir run
    export XDG_RUNTIME_DIR=$PWD/run
    local how work watch add n=0
    for how in TERM KILL; do
        serve
        weir status | grep -q "of a server of yours"
        rm -f work.err seen
        "$WEIR" work mail --exec cat >work.out 2>work.err &
        work=$!
        wait_for grep -q "working on mail" work.err
        "$WEIR" watch --json --event complete --limit 2 >seen &
        watch=$!
        wait_for ready $watch
        "$WEIR" add slow '{"x":1}' --wait 60s >waited &
        add=$!
        n=$((n + 1))
        wait_for counted $n slow
        kill -$how "$pid"
        wait "$pid" || same $how KILL
        same "$(weir add mail '{"y":2}' --wait 60s)" '{"y":2}'
        weir work slow --drain --quiet --exec cat
        wait $add
        same "$(cat waited)" '{"x":1}'
        wait $watch
        same "$(wc -l <seen)" 2
        kill $work
        wait $work
        hasnt work.err trouble
    done
}

# Without a file there is no other way to the jobs than the server.
case_a_server_without_a_file_is_reached_by_its_address() {
    unset WEIR_STORE
    mkdir run
    export XDG_RUNTIME_DIR=$PWD/run
    serve --store mem:
    weir add mail --quiet
    same "$(weir --store "$url" count)" 1
    weir status >out
    has out "(a server of yours that runs)"
    kill "$pid"
    wait "$pid"
    port=0
    serve --store sqlite:moved.db           # nobody else can open what has moved
    mv moved.db other.db
    weir status >out || true
    has out "$url (a server of yours"
}

announced() { grep -qF "\"$1\"" run/weir/server.json; }

case_a_second_server_is_found_when_the_first_has_ended() {
    unset WEIR_STORE
    mkdir run
    export XDG_RUNTIME_DIR=$PWD/run
    serve --store sqlite:first.db
    local first=$pid
    announced "$url"
    port=0
    serve --store sqlite:second.db
    has serve.err "another of your servers is running already"
    weir add mail --quiet
    same "$(weir --store sqlite:first.db count)" 1
    kill "$first"
    wait "$first"
    wait_for announced "$url"
    same "$(weir count)" 0
    wait_for has serve.err "find this one now"
    kill "$pid"
    wait "$pid"
    status 1 test -e run/weir/server.json
}

case_tokens() {
    mkdir data
    local reader admin
    reader=$(weir token add r --role read --data data)
    admin=$(weir token add a --role admin --data data)
    serve --store sqlite:served.db --data data
    status 2 weir --store "$url" count
    has err WEIR_TOKEN
    same "$(weir --store "$url?token=$admin" add mail)" 1
    export WEIR_TOKEN=$reader
    same "$(weir --store "$url" count)" 1
    status 5 weir --store "$url" add mail
    has err "the token r may not do this"
    status 2 weir --store "$url?token=wtk_wrong" count
    hasnt err wtk_wrong
    hasnt serve.err "$admin"
}

case_nobody_is_there() {
    status 6 weir --store "http://127.0.0.1:1?timeout=200ms" count
    has err "http://127.0.0.1:1: "
    status 2 weir --store http://me:secret@127.0.0.1:1 count
    hasnt err secret
    status 2 weir serve --store http://127.0.0.1:7340
}

# It waits for jobs, so that no call of its own fails.
case_an_idle_worker_says_that_its_server_is_gone() {
    served
    local work got=0
    "$WEIR" --store "$WEIR_STORE?timeout=1s" work t --exec cat 2>work.err &
    work=$!
    wait_for grep -q "working on t" work.err
    kill -9 "$pid"
    wait "$pid" || true
    wait_for grep -q "trouble with the store" work.err
    serve --store sqlite:served.db
    wait_for grep -q "the store works again" work.err
    kill "$pid"
    wait "$pid"
    troubles() { [ "$(grep -c "trouble with the store" work.err)" = "$1" ]; }
    wait_for troubles 2
    kill $work
    wait $work || got=$?
    same $got 6
}

# add_one N: one call, whatever happens to the server meanwhile.
add_one() {
    "$WEIR" --store "$url?timeout=60s" add t "{\"n\":\"$1\"}" 2>>trouble || echo "failed $?"
}

# A command waits until the server is back: none fails, none is doubled.
case_a_server_that_is_killed() {
    served
    local url=$WEIR_STORE
    for p in 1 2 3 4; do
        for i in $(seq 40); do
            add_one "$p.$i"
        done >told.$p &
        adders[p]=$!
    done
    for _ in 1 2 3; do
        local before
        before=$(cat told.* | wc -l)
        more() { [ "$(cat told.* | wc -l)" -gt $((before + 10)) ]; }
        wait_for more
        kill -9 "$pid"
        wait "$pid" || true
        serve --store sqlite:served.db
    done
    wait "${adders[@]}"
    cat told.* >all
    hasnt all failed
    same "$(sort -u all | wc -l)" 160
    same "$(weir --store "$url" count)" 160
    weir --store "$url" list --limit 1000 --json | grep -o '"n":"[0-9.]*"' | sort -u >there
    same "$(wc -l <there)" 160
}

run_cases
