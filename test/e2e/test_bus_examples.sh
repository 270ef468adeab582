#!/bin/bash
# test_bus_examples.sh - the examples of the event bus do what docs/bus.md shows, with the clients for
# JavaScript and Python.
# shellcheck source=test/e2e/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
unset WEIR_LISTEN WEIR_DATA WEIR_CONFIG NOTIFY_SOCKET
examples=$source_root/examples

serve() {
    unset WEIR_STORE
    "$WEIR" serve --listen 127.0.0.1:0 --bus 127.0.0.1:0 --store mem: --data "$PWD" >serve.out 2>serve.err \
        </dev/null &
    wait_for grep -q '^weir: serving ' serve.out
    WEIR_STORE=$(sed -n 's/.* at \(http:[^ ]*\).*/\1/p' serve.out)
    port=$(sed -n 's/.* and bus at .*:\([0-9]*\)$/\1/p' serve.out)
    export WEIR_STORE
}

# expect NAME FILE: it is what examples/expected and the guide have.
expect() {
    diff -u "$examples/expected/$1.txt" "$2"
    local line
    while read -r line; do
        grep -qF -- "$line" "$source_root/docs/bus.md" || { echo "docs/bus.md has not: $line"; return 1; }
    done <"$examples/expected/$1.txt"
}

case_chat() {
    serve
    mkfifo keyboard
    node "$examples/bus/chat.mjs" ann <keyboard >ann &
    exec 9>keyboard                                 # ann types nothing, and stays
    wait_for sh -c "curl -s $WEIR_STORE/v1/bus | grep -q chat.room"
    echo 'hello, is anybody there?' | node "$examples/bus/chat.mjs" bob
    wait_for grep -q leaves ann
    exec 9>&-
    wait %2
    expect chat ann
}

case_compute_cluster() {
    serve
    export PYTHONDONTWRITEBYTECODE=1
    python3 "$examples/bus/primes.py" work >one &
    python3 "$examples/bus/primes.py" work >two &
    wait_for grep -q ready one
    wait_for grep -q ready two
    python3 "$examples/bus/primes.py" 100000 >out
    kill %2 %3
    wait %2 %3
    expect primes out
}

case_job_service() {
    serve
    node "$examples/bus/jobs.mjs" >out
    expect jobs out
}

case_a_whole_client() {
    serve
    sed -n '/^import json, socket/,/^```$/p' "$source_root/docs/bus.md" | sed "/^\`\`\`/d; s/7341/$port/" >client.py
    sed -n 's,.*print(.*  # ,,p' client.py >want
    [ "$(wc -l <want)" = 4 ]
    python3 client.py >out
    diff -u want out
}

# The blocks of docs/bus.md for our clients, with what they leave to the reader.
block_from() { sed -n "/^$1/,/^\`\`\`\$/p" "$source_root/docs/bus.md" | sed "/^\`\`\`/d; s,http://127.0.0.1:7340,$WEIR_STORE,"; }

case_the_clients_of_the_guide() {
    serve
    "$WEIR" workqueue add resize
    {
        echo "import { Bus } from '$source_root/clients/js/index.js'; const resize = (data) => data;"
        block_from 'const bus = new Bus(' | sed "s/, { token: 'wtk_...' }//"
        echo "console.log((await bus.call('calc', 'add', { a: 1, b: 2 })) + (await bus.request('resize', 4)).body);"
        echo 'bus.close();'
    } >guide.mjs
    timeout 60 node guide.mjs >out
    same "$(cat out)" 'hello ann
7'
    {
        echo 'from weir import Bus; resize = lambda data: data'
        block_from 'bus = Bus(' | sed 's/, token="wtk_..."//'
        echo 'print(bus.call("calc", "add", {"a": 1, "b": 2}) + bus.request("resize", 4).body); bus.close()'
    } >guide.py
    PYTHONPATH=$source_root/clients/python PYTHONDONTWRITEBYTECODE=1 timeout 60 python3 guide.py >out
    same "$(cat out)" 'hello ann
7'
}

run_cases
