# test_redis.sh - the program on Redis: each command is a process of its own, and several are at work
# on one queue at the same time.
. "$(dirname "$0")/lib.sh"

# with_redis: a server in this directory, until the case is over; it is the store.
with_redis() {
    redis-server --unixsocket "$PWD/s" --port 0 --save '' --daemonize no --dir "$PWD" \
        --logfile "$PWD/redis.log" &
    redis=$!
    export WEIR_STORE="redis+unix://$PWD/s"
    wait_for redis-cli -s "$PWD/s" ping
}

ready() { readlink "/proc/$1"/fd/* | grep -q signalfd; }
lines() { [ "$(wc -l <"$1")" = "$2" ]; }

case_status() {
    with_redis
    weir add mail -q
    status 0 weir status
    has out "$PWD/s, Redis "
    has out "durability  none"
    hasnt out "room"
    status 0 weir status --json
    has out '"store":"redis"'
    redis-cli -s "$PWD/s" config set maxmemory 2gb
    status 0 weir status
    has out " of 2.1 GB used"
    redis-cli -s "$PWD/s" config set maxmemory 64mb
    status 0 weir status
    grep -qE '^room +[0-9.]+ (k|M)B of 67.1 MB used$' out
    redis-cli -s "$PWD/s" config set maxmemory 2gb
    status 0 weir status --json
    has out '"limit_bytes":2147483648'
    "$WEIR" work mail -q -- sh -c 'until [ -e go ]; do sleep 0.05; done' &
    local worker=$!
    running() { weir workers | grep -q ":$worker:"; }
    wait_for running
    touch go
    kill $worker
    wait $worker
}

case_two_workers_and_a_watch() {
    with_redis
    weir add other --quiet
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
    status 0 weir check
}

case_add_waits_for_a_worker_elsewhere() {
    with_redis
    "$WEIR" work t --quiet --exec cat &
    local work=$!
    same "$(timeout 60 "$WEIR" add t '{"x":1}' --wait 30s)" '{"x":1}'
    kill $work
    wait $work
}

case_a_killed_worker_loses_its_job() {
    with_redis
    "$WEIR" work t --quiet --lease 1s --exec 'echo $$ >>begun; exec sleep 600' &
    local work=$!
    weir add t --quiet
    wait_for test -s begun
    kill -9 $work
    wait $work || true
    kill "$(cat begun)" || true
    status 0 timeout 60 "$WEIR" work t --quiet --drain --exec 'echo 2'
    weir get 1 --json >out
    same "$(member state)" complete
}

case_pause_from_elsewhere() {
    with_redis
    "$WEIR" work a b --quiet --exec 'echo "$(cat)" >>done' &
    local work=$!
    wait_for ready $work
    weir pause a --new
    weir add a '"a"' --quiet
    weir add b '"b"' --quiet
    wait_for test -s done
    same "$(cat done)" '"b"'
    weir resume a
    wait_for lines done 2
    kill $work
    wait $work
}

case_a_server_that_goes_and_comes() {
    with_redis
    weir add t --quiet
    kill $redis
    wait $redis || true
    status 6 weir --store "$WEIR_STORE?timeout=200ms" add t
    has err "$PWD/s"
    hasnt err "timed out"
}

case_nobody_there() {
    status 6 weir --store "redis+unix://$PWD/nobody" count
    has err "$PWD/nobody"
    status 2 weir --store "redis+unix://$PWD/nobody?partitoins=3" count
    has err "partitoins"
}

run_cases
