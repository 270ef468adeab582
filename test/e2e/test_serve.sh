#!/bin/bash
# test_serve.sh - `weir serve` and `weir token` as an operator has them: settings, the ready line,
# signals, tokens, TLS, what is refused at the start and with which remedy.
# shellcheck source=test/e2e/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
unset WEIR_LISTEN WEIR_DATA WEIR_CONFIG XDG_RUNTIME_DIR NOTIFY_SOCKET

# serve ARGUMENTS...: start it on a free port and wait for its line; sets pid, url.
serve() {
    : >serve.out            # the ready line of an earlier server is not this one's
    "$WEIR" serve --listen 127.0.0.1:0 "$@" >serve.out 2>serve.err </dev/null &
    pid=$!
    wait_for ready
    url=$(sed -n 's/.* at \(https*:.*\)$/\1/p' serve.out)
}
ready() {
    ! ended "$pid" || { cat serve.err; return 1; }
    grep -q '^weir: serving ' serve.out
}
# ends STATUS: the server ends with it.
ends() {
    local got=0
    wait "$pid" || got=$?
    same "$got" "$1"
}
# answer WANT CURL-ARGUMENTS...: the status is WANT, the body is in `body`.
answer() {
    local want=$1
    shift
    same "$(curl -sS -o body -w '%{http_code}' "$@")" "$want" || { cat body; return 1; }
}

case_one_line_when_ready() {
    serve
    same "$(wc -l <serve.out)" 1
    same "$(cat serve.out)" "weir: serving sqlite:jobs.db at $url"
    [ ! -s serve.err ]
    answer 200 "$url/healthz"
    answer 200 "$url/readyz"
    kill -TERM "$pid"
    ends 0
    same "$(wc -l <serve.out)" 1
    weir check
}

# A client that does not get done with its request is waited for, but not after a second signal.
case_a_second_signal_is_heard() {
    export TSAN_OPTIONS=report_thread_leaks=0:${TSAN_OPTIONS-}      # it does not wait for threads
    serve
    exec 3<>"/dev/tcp/127.0.0.1/${url##*:}"
    printf 'POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n' >&3
    printf 'Content-Length: 100\r\nExpect: 100-continue\r\n\r\n' >&3
    read -r line <&3
    [[ $line == "HTTP/1.1 100"* ]]
    kill -TERM "$pid"
    refused() { ! curl -sS "$url/healthz"; }
    wait_for refused
    ! ended "$pid"
    kill -TERM "$pid"
    ends 12
    weir check
}

case_a_home_of_its_own() {
    unset WEIR_STORE
    serve
    has serve.out "weir: serving sqlite:$HOME/.local/share/weir/jobs.db at http://127.0.0.1:"
    same "$(stat -c %a .local/share/weir)" 700
    kill -INT "$pid"
    ends 0
    WEIR_DATA=own weir add mail
    [ -s own/jobs.db ]
    export XDG_DATA_HOME=$PWD/xdg
    serve
    has serve.out "sqlite:$PWD/xdg/weir/jobs.db"
    kill "$pid"
    ends 0
    serve --data elsewhere/deep
    has serve.out "weir: serving sqlite:elsewhere/deep/jobs.db"
    same "$(stat -c %a elsewhere)" 700
    kill "$pid"
    ends 0
}

case_settings_from_everywhere() {
    cat >weir.json <<'JSON'
{"store": "sqlite:from-file.db", "listen": "127.0.0.1:1", "title": "from file",
 "access-log": "access.log"}
JSON
    unset WEIR_STORE
    serve --config weir.json
    has serve.out "sqlite:from-file.db"
    answer 200 "$url/healthz"
    kill "$pid"
    ends 0
    json_lines access.log
    has access.log '"path":"/healthz"'
    WEIR_STORE=mem: WEIR_CONFIG=weir.json serve
    has serve.out "weir: serving mem: at"
    kill "$pid"
    ends 0
}

case_settings_that_are_wrong() {
    echo '{"lisen": "x"}' >weir.json
    status 2 weir serve --config weir.json
    has err 'unknown setting "lisen"; did you mean "listen"?'
    same "$(wc -l <err)" 1
    [ ! -s out ]
    echo '{"threads": "many"}' >weir.json
    status 2 weir serve --config weir.json
    has err "weir.json: threads: 'many' is not a whole number"
    status 2 weir serve --config missing.json
    has err "missing.json: No such file"
    status 2 weir serve --tls-cert cert.pem
    has err "tls-key"
    status 2 weir serve --listen nonsense
    has err "ADDRESS:PORT"
    status 2 weir serve --store http://127.0.0.1:1
    has err "is a server already"
    WEIR_API=kuo status 2 weir serve
    has err "WEIR_API: 'kuo' is not kue or vertx"
}

case_files_that_others_may_write_to() {
    mkdir -m 700 data
    for name in push.json tokens.json; do
        echo '{"targets":[],"tokens":[]}' >data/$name
        chmod 666 data/$name
        status 2 weir serve --data data --listen 127.0.0.1:0
        has err "$name: others may write to it; chmod go-w"
        rm data/$name
    done
}

case_names_of_vertx_kue() {
    echo '{"http.port": 0, "kue.ui.title": "T", "job.promotion.interval": 1000}' >weir.json
    "$WEIR" serve --config weir.json >serve.out 2>serve.err &
    pid=$!
    wait_for ready
    same "$(grep -c promotion serve.err)" 1
    kill "$pid"
    ends 0
}

case_an_address_that_is_taken() {
    serve
    status 5 weir --store mem: serve --listen "${url#http://}"
    has err "in use"
    kill "$pid"
    ends 0
}

case_others_need_a_token() {
    status 2 weir serve --listen 0.0.0.0:0
    has err "weir token add NAME --role admin"
    weir token add ann --role admin >token 2>err
    has err "every caller"
    "$WEIR" serve --listen 0.0.0.0:0 >serve.out 2>serve.err &
    pid=$!
    wait_for ready
    has serve.err "without TLS"
    url=http://127.0.0.1:$(sed 's/.*://' serve.out)
    answer 401 "$url/metrics"
    has body unauthorized
    answer 200 -H "Authorization: Bearer $(cat token)" "$url/metrics"
    answer 200 "$url/healthz"
    kill "$pid"
    ends 0
    hasnt serve.err "$(cat token)"
}

case_tokens() {
    weir token add ci --role produce --type mail >token 2>err
    grep -qE '^wtk_[A-Za-z0-9_-]{43}$' token
    weir token add boss --role admin >boss 2>err
    [ ! -s err ]
    same "$(stat -c %a .local/share/weir/tokens.json)" 600
    hasnt .local/share/weir/tokens.json "$(cat token)"
    weir token list >out
    has out "ci"
    has out "produce"
    narrow out
    weir token list --json >out
    json_lines out
    has out '{"name":"ci","roles":["produce"],"types":["mail"]'
    weir token add both --role work --type mail --type sms --expires 30d >both 2>err
    weir token list --json >out
    has out '"types":["mail","sms"]'
    has out '"expires_at":'
    weir token add three --role work --type mail,sms --type img >token 2>err
    same "$(weir token list --json | grep -c '"types":\["mail","sms","img"\]')" 1
    weir token rm three
    status 2 weir token add bad --role work --type 'mail,,sms'
    has err "--type: 'mail,,sms': empty"
    weir token rotate both --grace 0 >both2 2>err
    has err "the old token is valid until"
    [ "$(cat both)" != "$(cat both2)" ]
    same "$(weir token list | grep -c both)" 2
    weir token list | grep -q expired
    same "$(weir token list --json | grep '"both"' | grep -c '"expires_at":')" 2
    weir token rotate both --expires never >both2
    same "$(weir token list --json | grep '"both"' | tail -1 | grep -c '"expires_at":')" 0
    status 2 weir token rotate both --expires nver
    has err "nor a time (2026-11-16T09:00) nor never"
    status 2 weir token rotate both --role read
    status 3 weir token rotate nobody
    status 2 weir token add late --role read --expires 2001-01-01T00:00Z
    has err "expired already"
    weir token rm both
    same "$(weir token list | grep -c both)" 0
    status 4 weir token add ci --role read
    has err "there is a token 'ci' already"
    status 2 weir token add x
    has err "--role is missing"
    status 2 weir token add x --role king
    has err "'king' is not read, produce, work or admin"
    status 2 weir token add 'a b' --role read
    status 2 weir token add --role read
    status 2 weir token frobnicate
    status 3 weir token rm nobody
    weir token rm ci
    weir token rm boss
    weir token list 2>err
    has err "no tokens"
}

# Adding the first token closes a server that runs; taking it away lets nobody in who had it.
case_tokens_of_a_running_server() {
    serve
    answer 200 "$url/metrics"
    weir token add ann --role read >token 2>err
    closed() { answer 401 "$url/metrics"; }
    wait_for closed
    answer 200 -H "Authorization: Bearer $(cat token)" "$url/metrics"
    weir token add bob --role admin >bob
    weir token rm ann
    kill -HUP "$pid"
    wait_for has serve.err "read tokens and certificates again"
    answer 401 -H "Authorization: Bearer $(cat token)" "$url/metrics"
    answer 200 -H "Authorization: Bearer $(cat bob)" "$url/metrics"
    echo broken >.local/share/weir/tokens.json
    kill -HUP "$pid"
    wait_for has serve.err "keeping the previous settings"
    answer 200 -H "Authorization: Bearer $(cat bob)" "$url/metrics"
    kill "$pid"
    ends 0
}

certificate() {     # certificate NAME
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout key.pem \
        -out cert.pem -subj "/CN=$1" -addext "subjectAltName=IP:127.0.0.1" 2>/dev/null
}

case_https() {
    certificate one
    serve --tls-cert cert.pem --tls-key key.pem
    has serve.out "at https://127.0.0.1:"
    answer 200 --cacert cert.pem "$url/healthz"
    certificate two
    kill -HUP "$pid"
    wait_for has serve.err "read tokens and certificates again"
    answer 200 --cacert cert.pem "$url/healthz"
    kill "$pid"
    ends 0
    echo >key.pem
    status 2 weir serve --listen 127.0.0.1:0 --tls-cert cert.pem --tls-key key.pem
    has err "key.pem"
}

case_the_access_log_moves() {
    serve --access-log access.log
    answer 400 "$url/healthz?x"
    mv access.log old.log
    kill -HUP "$pid"
    wait_for has serve.err "read tokens"
    answer 200 "$url/healthz"
    kill "$pid"
    ends 0
    same "$(wc -l <old.log)" 1
    same "$(wc -l <access.log)" 1
    hasnt old.log "?x"
    same "$(stat -c %a access.log)" 600
}

# A store that is a server and not there yet: it is said, waited for, and found.
case_a_store_that_comes_later() {
    command -v redis-server >/dev/null || return 0
    "$WEIR" --store "redis+unix://$PWD/redis.sock" serve --listen 127.0.0.1:0 >serve.out 2>serve.err &
    pid=$!
    wait_for has serve.err "waiting for the store"
    [ ! -s serve.out ]
    redis-server --port 0 --unixsocket redis.sock --save '' --dir "$PWD" >redis.log 2>&1 &
    local redis=$!
    wait_for ready
    url=$(sed -n 's/.* at \(http:.*\)$/\1/p' serve.out)
    answer 200 "$url/readyz"
    kill -STOP "$redis"
    answer 503 "$url/readyz"
    has body "has not answered within"
    kill -CONT "$redis"
    kill "$redis"
    wait "$redis" || true
    unready() { answer 503 -D head "$url/readyz"; }
    wait_for unready
    grep -qi '^retry-after:' head
    answer 200 "$url/healthz"
    redis-server --port 0 --unixsocket redis.sock --save '' --dir "$PWD" >redis.log 2>&1 &
    redis=$!
    back() { answer 200 "$url/readyz"; }
    wait_for back
    kill "$pid"
    ends 0
    kill "$redis"
}

# A file that is no longer where it was takes no more jobs, until it is back.
case_a_file_that_is_moved_away() {
    serve
    answer 201 --json '{"type":"mail"}' "$url/v1/jobs"
    mv jobs.db away.db
    answer 503 "$url/readyz"
    has body "jobs.db was renamed while it was in use"
    answer 503 --json '{"type":"mail"}' "$url/v1/jobs"
    answer 200 "$url/v1/jobs/1"
    status 6 weir --store "$url" status
    has out "the store is not ready: jobs.db was renamed while it was in use"
    mv away.db jobs.db
    answer 200 "$url/readyz"
    status 0 weir --store "$url" status
    has out "trouble     none"
    answer 201 --json '{"type":"mail"}' "$url/v1/jobs"
    kill "$pid"
    ends 0
    weir check
}

# The file is deleted and its log is left: every command says so, and none says that it can mend it.
case_a_file_that_is_deleted() {
    serve
    answer 201 --json '{"type":"mail"}' "$url/v1/jobs"
    rm jobs.db
    for command in stats list 'get 1' check 'check --mend' 'add mail'; do
        case $command in
        add*) status 6 weir $command ;;
        *--mend) status 6 weir $command ;;
        *) status 10 weir $command; has err "jobs.db is missing, but its log jobs.db-wal has" ;;
        esac
        hasnt err "weir add"
        hasnt err "mend"
    done
    kill "$pid"
    ends 0
    status 10 weir check --mend
    has err "jobs.db is missing, but its log jobs.db-wal has"
    hasnt err "mends it"
    rm jobs.db-wal
    status 3 weir stats
    has err "no store sqlite:jobs.db yet"
}

# A backup that is copied over the file: the file is the same one, what is in it is not.
case_a_backup_that_is_copied_over_the_file() {
    for i in 1 2 3; do weir add mail; done
    cp jobs.db backup.db                            # nobody has it open: it is whole
    serve
    for i in 1 2; do answer 201 --json '{"type":"mail"}' "$url/v1/jobs"; done
    folded() { ! cmp -s backup.db jobs.db; }        # jobs.db has what the log has
    wait_for folded
    cp backup.db jobs.db
    unready() { answer 503 "$url/readyz"; }
    wait_for unready
    has body "jobs.db was overwritten while it was in use"
    answer 503 --json '{"type":"mail"}' "$url/v1/jobs"
    has body "jobs.db was overwritten while it was in use"
    status 6 weir add mail
    kill "$pid"
    ends 0
    cmp backup.db jobs.db
    status 10 weir list
    has err "jobs.db-wal is not the log of this jobs.db"
    mv jobs.db-wal wal
    same "$(weir count mail)" 3
    weir check
}

# on_small_disk COMMAND...: run it on a disk that fill_disk and free_disk control. The shim of the
# campaign stands between the program and the C library, so this needs no rights over the machine.
# It comes before the libraries of the sanitizers, which ASan refuses without the option.
on_small_disk() {
    head -c 8 /dev/zero >page                       # two numbers, see shim.h
    WEIR_FAULT_PAGE=$PWD/page ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS-} \
        LD_PRELOAD=${WEIR_TEST_SHIM:-$(dirname "$WEIR")/../../test/libshim.so} "$@"
}
# set_disk_full NUMBER: the second number of the page, less than 2^24
set_disk_full() {
    printf '%b' "$(printf '\\x%02x' $(($1 & 255)) $(($1 >> 8 & 255)) $(($1 >> 16)) 0)" |
        dd of=page bs=4 seek=1 conv=notrunc status=none
}
fill_disk() { set_disk_full 1; }
free_disk() { set_disk_full 0; }
# leave_room BYTES: for the log; no file becomes longer than it would be then.
leave_room() { set_disk_full $(($(stat -c %s jobs.db-wal) + $1)); }

# An add is acknowledged or refused; /readyz and check report a full disk; with room again, adds are
# acknowledged and every acknowledged job is there.
case_a_full_disk() {
    local auth added=0
    weir token add boss --role admin >boss 2>err
    auth="Authorization: Bearer $(cat boss)"
    add() { answer "$1" -H "$auth" --json '{"type":"mail"}' "$url/v1/jobs"; }
    ask_ready() { answer "$1" -D head -H "$auth" "$url/readyz"; }
    on_small_disk serve
    for _ in 1 2 3 4 5; do
        add 201
        added=$((added + 1))
    done
    ask_ready 200
    fill_disk
    wait_for ask_ready 503          # without any add: /readyz itself tries to write
    has body '"code":"EFULL"'
    has body "full"
    grep -qi '^retry-after:' head
    answer 503 "$url/readyz"        # a caller without a token does not learn the reason
    hasnt body jobs.db
    for _ in 1 2 3; do
        add 507
        has body '"code":"EFULL"'
        answer 200 -H "$auth" --json '{"types":["none"]}' "$url/v1/take"
        ask_ready 503               # also after a commit that had nothing to write
    done
    answer 200 "$url/healthz"
    answer 200 -H "$auth" "$url/v1/jobs/1"
    status 8 env WEIR_TOKEN="$(cat boss)" "$WEIR" --store "$url" check
    has err "full"
    status 8 env WEIR_TOKEN="$(cat boss)" "$WEIR" --store "$url" status
    has out "the store is not ready: jobs.db: "
    has out "full"
    status 8 weir status            # beside the server, which it asks
    has out "the store is not ready: jobs.db: "
    status 8 weir status --json
    has out '"ready":false'
    status 0 weir check             # beside the server: the file itself is sound
    free_disk
    ask_ready 200                   # at once
    status 0 env WEIR_TOKEN="$(cat boss)" "$WEIR" --store "$url" status
    has out "trouble     none"
    status 0 weir status
    status 0 env WEIR_TOKEN="$(cat boss)" "$WEIR" --store "$url" check
    add 201
    added=$((added + 1))
    fill_disk
    add 507                         # the same when an add finds it first
    ask_ready 503
    free_disk
    add 201
    added=$((added + 1))
    ask_ready 200
    fill_disk
    add 507
    kill -KILL "$pid"               # and when the server dies meanwhile
    wait "$pid" || true
    status 0 weir check
    same "$(weir list --json | grep -c '"id":')" "$added"
}

# A large job finds the disk full, a small one still fits: the store is not ready until one as large
# would fit.
case_a_disk_with_little_room() {
    on_small_disk serve
    answer 201 --json '{"type":"mail"}' "$url/v1/jobs"
    printf '{"type":"mail","data":"%0200000d"}' 0 >large
    leave_room 150000
    answer 507 --json @large "$url/v1/jobs"
    answer 503 "$url/readyz"
    has body '"code":"EFULL"'
    answer 201 --json '{"type":"mail"}' "$url/v1/jobs"
    answer 503 "$url/readyz"
    status 8 weir --store "$url" status
    status 8 weir check --store "$url"
    free_disk
    answer 200 "$url/readyz"
    status 0 weir --store "$url" status
    leave_room 150000
    answer 507 --json @large "$url/v1/jobs"
    free_disk
    answer 201 --json @large "$url/v1/jobs"
    leave_room 50000
    answer 200 "$url/readyz"        # the job has proved it
    free_disk
    status 0 weir check --store "$url"
    kill "$pid"
    ends 0
    status 0 weir check
    same "$(weir count mail)" 3
}

# memory NAME: a number of the server's /proc/PID/status, in KiB.
memory() { sed -n "s/^$1:[^0-9]*\([0-9]*\).*/\1/p" "/proc/$pid/status"; }

# clients_that_do_not_read TARGET: 30 of them have been sent the first bytes of their answer, or a
# refusal. In `memory_used`: by how much the memory of the server grew at most, in KiB.
clients_that_do_not_read() {
    local held=() fd before i
    echo 5 >"/proc/$pid/clear_refs"             # VmHWM begins anew
    before=$(memory VmRSS)
    for i in {1..30}; do
        exec {fd}<>"/dev/tcp/127.0.0.1/${url##*:}"
        printf 'GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n' "$1" >&"$fd"
        held+=("$fd")
    done
    for fd in "${held[@]}"; do
        until read -r -t 0 -u "$fd"; do         # 720 MB are read meanwhile: no limit but meson's
            if ended "$pid"; then
                cat serve.err
                return 1
            fi
            sleep 0.02
        done
    done
    memory_used=$(($(memory VmHWM) - before))
    for fd in "${held[@]}"; do
        exec {fd}>&-
    done
    no_answers() { curl -sS "$url/metrics" | grep -qx 'weir_http_answer_bytes 0'; }
    wait_for no_answers
}

# 30 clients ask for 24 MB each and do not read: the memory of the server stays below the budget for
# answers (SRV_MAX_ANSWERS) and a quarter of it for what is being made. A client that reads gets all.
case_answers_that_nobody_reads() {
    local budget=$((256 * 1024)) target bytes i
    ! grep -q __tsan_init "$WEIR" || return 0   # whose shadow is several times what it watches
    head -c 1000000 /dev/zero | tr '\0' x >text
    for i in {1..24}; do
        printf '"%s"\n' "$(cat text)"
    done | weir add large --lines --quiet
    printf '{"text":"%s"}' "$(head -c 60000 text)" >line
    export ASAN_OPTIONS=quarantine_size_mb=0:${ASAN_OPTIONS-}       # memory that is freed is free
    serve
    curl -sS --fail-with-body --json @line $(printf "$url/v1/jobs/1/log %.0s" {1..400})
    for target in /v1/jobs /jobs/0..30/asc '/v1/jobs/1/log?limit=1000' /job/1/log; do
        clients_that_do_not_read "$target"
        echo "$target: $memory_used KiB"
        [ "$memory_used" -lt $((budget + budget / 4)) ]
        bytes=16000000                          # a page of /v1 ends with SRV_MAX_PAGE
        [[ $target == /v1/* ]] || bytes=24000000
        answer 200 "$url$target"
        [ "$(stat -c %s body)" -gt "$bytes" ]
    done
    kill "$pid"
    ends 0
}

case_waiting_for_the_store_can_be_ended() {
    "$WEIR" --store redis://127.0.0.1:1 serve --listen 127.0.0.1:0 >serve.out 2>serve.err &
    pid=$!
    wait_for has serve.err "waiting for the store"
    same "$(wc -l <serve.err)" 1
    kill "$pid"
    ends 0
    [ ! -s serve.out ]
}

# --store-wait, its variable and its key: the start fails after that time.
case_waiting_for_the_store_has_an_end() {
    serve_at_once() { "$WEIR" --store redis://127.0.0.1:1 serve --listen 127.0.0.1:0 "$@" >serve.out 2>serve.err; }
    local got=0
    serve_at_once --store-wait 0 || got=$?
    same "$got" 6
    hasnt serve.err "waiting for the store"
    got=0
    WEIR_STORE_WAIT=2s serve_at_once || got=$?
    same "$got" 6
    has serve.err "waiting for the store"
    echo '{"store-wait":"0"}' >config.json
    got=0
    serve_at_once --config config.json || got=$?
    same "$got" 6
    got=0
    serve_at_once --store-wait soon || got=$?
    same "$got" 2
    has serve.err "--store-wait:"
    [ ! -s serve.out ]
}

case_the_service_manager_is_told() {
    command -v python3 >/dev/null || return 0
    cat >manager.py <<'PY'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("notify.sock")
open("bound", "w").close()
with open("notified", "w", buffering=1) as out:
    while True:
        text = s.recv(4096).decode()
        out.write(text + "\n")
        if "STOPPING" in text:
            break
PY
    python3 manager.py &
    wait_for test -e bound
    export NOTIFY_SOCKET=$PWD/notify.sock
    serve
    wait_for has notified READY=1
    kill -HUP "$pid"
    wait_for has notified RELOADING=1
    has notified MONOTONIC_USEC=
    kill "$pid"
    ends 0
    wait_for has notified STOPPING=1
}

# What was wrong, where, and what would be right.
case_mistakes_are_explained() {
    local jobs
    serve
    jobs=$url/v1/jobs
    answer 415 "$jobs" -d '{"type":"mail"}'
    has body "Content-Type: application/json (with curl: --json)"
    answer 400 -X POST "$jobs"
    has body '"type: missing (there is no body)","field":"type"'
    answer 400 "$jobs" --json '{"type":"mail"'
    has body "not JSON at byte 14: the text ends too early"
    answer 400 "$jobs" --json '{"tipe":"mail"}'
    has body 'tipe: unknown member; did you mean \"type\"?'
    answer 400 "$jobs?wiat=3s" --json '{"type":"mail"}'
    has body '"EINVAL","message":"unknown parameter \"wiat\"; this route accepts: wait","field":"wiat"'
    answer 400 "$url/v1/stats?type=mail"
    has body 'unknown parameter \"type\"; this route accepts none'
    answer 400 "$jobs" --json '{"type":"mail","backoff":"fixd:1s"}'
    has body '"backoff: \"fixd:1s\" is not a backoff: it is none, fixed, linear or exponential'
    answer 400 "$url/v1/take" --json '{"types":["*"]}'
    has body '"types[0]: \"*\" cannot be taken, name the types","field":"types[0]"'
    answer 405 "$url/v1/take"
    has body "GET is not possible here; possible: POST"
    answer 404 "$url/v1/job"
    has body "/v1/openapi.json lists the paths"
    answer 403 -H 'Host: jobs.example' "$jobs"
    has body "start it with --origin http://jobs.example"
    answer 403 -H 'Origin: https://evil.example' "$jobs"
    has body "weir serve --origin ORIGIN"
    weir token add ann --role read >token 2>err
    closed() { answer 401 "$jobs"; }
    wait_for closed
    answer 403 -H "Authorization: Bearer $(cat token)" "$jobs" --json '{"type":"mail"}'
    has body "the token 'ann' may not do this: its role is read, needed is produce"
    WEIR_STORE=$url WEIR_TOKEN=$(cat token) status 5 weir add mail
    has err "its role is read, needed is produce"
    status 2 weir serve --listen 0.0.0.0:0 --data elsewhere --store mem:
    has err "weir token add NAME --role admin --data elsewhere"
    kill "$pid"
    ends 0
}

# What a worker elsewhere has taken is still its own when the server comes back, however it went.
case_a_restart_leaves_jobs_to_their_workers() {
    local signal id=0
    for signal in TERM KILL; do
        serve
        id=$((id + 1))
        answer 201 "$url/v1/jobs" --json '{"type":"mail"}'
        answer 200 "$url/v1/take" --json '{"types":["mail"],"lease":"1m"}'
        kill -$signal "$pid"
        wait "$pid" || true
        serve
        answer 200 "$url/v1/renew" --json "{\"jobs\":[{\"id\":$id,\"delivery\":1}]}"
        has body '"ok":true'
        answer 200 "$url/v1/finish" --json "{\"jobs\":[{\"id\":$id,\"delivery\":1}]}"
        answer 200 "$url/v1/jobs/$id"
        has body '"state":"complete"'
        hasnt body lost
        kill "$pid"
        ends 0
    done
}

# A worker has taken it: that it was lost with the server does not change that.
case_a_killed_worker_is_not_forgotten() {
    serve
    weir --store "$url" add mail --quiet
    answer 200 "$url/v1/take" --json '{"types":["mail"],"lease":"100ms"}'
    lost() { answer 200 "$url/v1/jobs/1" && has body '"lost":1'; }
    wait_for lost
    kill -9 "$pid"
    wait "$pid" || true
    serve
    again() { weir --store "$url" explain 1 >out && has out "1 time (at most 3)"; }
    wait_for again
    hasnt out "No worker has ever taken"
    has out "weir work mail"
    kill "$pid"
    ends 0
}

# A server beside a worker that owns the file: however one of them ends, the other goes on, and a job
# that was taken over HTTP stays with its worker.
case_beside_the_owner_of_the_file() {
    local signal owner mail=1 page=2
    for signal in TERM KILL; do
        rm -f go
        "$WEIR" work mail -q -- sh -c 'until [ -e go ]; do sleep 0.05; done' &
        owner=$!
        owned_by() { weir status | grep -q "(process $1)"; }
        wait_for owned_by $owner
        serve
        beside() { weir status | grep -q "1 other process works through it"; }
        wait_for beside
        answer 201 "$url/v1/jobs" --json '{"type":"mail"}'
        answer 201 "$url/v1/jobs" --json '{"type":"page"}'
        answer 200 "$url/v1/take" --json '{"types":["page"],"lease":"1m"}'
        has body "\"id\":$page,"
        is() { [ "$(weir get $1 --json | member state /dev/stdin)" = $2 ]; }
        wait_for is $mail active
        local held="{\"jobs\":[{\"id\":$page,\"delivery\":1}]}"
        # The server ends.
        kill -$signal "$pid"
        wait "$pid" || true
        ! ended $owner
        is $mail active
        is $page active
        serve
        answer 200 "$url/v1/renew" --json "$held"
        has body '"ok":true'
        touch go
        wait_for is $mail complete
        # The owner ends.
        kill -$signal $owner
        wait $owner || true
        wait_for owned_by $pid
        answer 200 "$url/v1/renew" --json "$held"
        has body '"ok":true'
        answer 200 "$url/v1/finish" --json "$held"
        answer 200 "$url/v1/jobs/$page"
        has body '"state":"complete"'
        hasnt body lost
        status 0 weir get $mail --json
        has out '"delivery":1'
        kill "$pid"
        ends 0
        status 0 weir check
        mail=$((mail + 2))
        page=$((page + 2))
    done
}

case_help_fits_a_terminal() {
    weir serve --help >out
    narrow out
    has out "--listen"
    has out "--config"
    weir token --help >out
    narrow out
    has out "--role"
}

case_the_demo_stays_apart() {
    unset WEIR_STORE
    weir token add a --role admin >token        # of the user's own server
    "$WEIR" serve --demo --listen 127.0.0.1:0 >line 2>err.demo &
    local pid=$!
    wait_for grep -q serving line
    has line "(a demo: all its jobs vanish when it ends) at http://"
    weir add order -q
    [ -e .local/share/weir/jobs.db ]
    curl -s "$(sed 's/.* at //' line)/v1/server" >info
    has info "weir demo"
    has info '"demo":"a demo: all its jobs vanish when it ends"'
    curl -s "$(sed 's/.* at //' line)/v1/types" >types     # no token is asked for
    hasnt types "a token is needed"
    kill $pid
    wait $pid
    same "$(weir count order)" 1
    status 1 test -e .local/share/weir/audit.log
    status 2 weir serve --demo --listen 0.0.0.0:0
    has err "--data DIR"
    status 1 compgen -G 'weir-*'                    # nothing of the scratch folders is left
}

run_cases
