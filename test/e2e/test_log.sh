#!/bin/bash
# test_log.sh - what `weir serve` and `weir work` say on standard error: text or JSON, which levels,
# and the priorities that the journal of systemd reads.
# shellcheck source=test/e2e/lib.sh
. "$(dirname "$0")/lib.sh" "$@"
unset WEIR_LISTEN WEIR_DATA WEIR_CONFIG WEIR_LOG_FORMAT WEIR_LOG_LEVEL NOTIFY_SOCKET JOURNAL_STREAM
export WEIR_STORE=sqlite:jobs.db

# serve ARGUMENTS...: start it and wait for its line on standard output; sets pid.
serve() {
    : >serve.out
    "$WEIR" serve --listen 127.0.0.1:0 "$@" >serve.out 2>serve.err </dev/null &
    pid=$!
    wait_for has serve.out "serving"
}
stop() { kill "$pid" && wait "$pid"; }

# lines FILE LEVEL TEXT: it has such a line, and each line is an object with time, level and message.
lines() {
    python3 - "$@" <<'PY'
import datetime, json, sys
path, level, text = sys.argv[1:]
lines = [json.loads(line) for line in open(path)]
for line in lines:
    assert list(line)[:3] == ["time", "level", "message"], line
    then = datetime.datetime.strptime(line["time"], "%Y-%m-%dT%H:%M:%S.%fZ")
    assert abs(then - datetime.datetime.utcnow()) < datetime.timedelta(minutes=10), line
assert any(line["level"] == level and text in line["message"] for line in lines), lines
PY
}

case_a_worker_speaks_json() {
    weir add mail '{"to":"ann"}'
    status 0 weir work mail --drain --log-format json -- sh -c 'echo "to \"ann\"" >&2; printf "no end" >&2'
    lines err info "working on mail in sqlite:jobs.db"
    lines err info 'to "ann"'
    lines err info "no end"
    same "$(grep -c '"job":1,"type":"mail"}' err)" 2
    has out "1 mail"
    status 0 env WEIR_LOG_FORMAT=json "$WEIR" work mail --drain -- cat
    lines err info "working on mail"
    status 0 env WEIR_LOG_FORMAT=json "$WEIR" work mail --drain --log-format text -- cat
    has err "weir: working on mail"
}

case_an_error_of_a_worker_is_one_of_its_lines() {
    weir add mail '{}'
    status 3 weir work mail --log-format json --exec 'exit 127'
    lines err error "'exit 127' cannot run (127)"
}

case_levels_leave_lines_out() {
    weir add mail --lines --quiet <<<'1
2'
    status 0 weir work mail --drain --log-level warning -- true
    [ ! -s err ]
    for i in 1 2 3 4 5 6 7 8 9 10; do echo "$i"; done | weir add mail --lines --quiet
    status 0 weir work mail --drain --log-level warning -- false
    same "$(cat err)" "weir: warning: 10 jobs have failed one after the other; slowing down"
    weir retry --all --quiet
    status 0 weir work mail --drain --log-level error -- true
    [ ! -s err ]
}

case_a_server_speaks_json() {
    serve --log-format json
    lines serve.out info "serving sqlite:jobs.db at http://127.0.0.1:"
    grep -q '"address":"http://127.0.0.1:[0-9]*"}$' serve.out
    kill -HUP "$pid"
    wait_for has serve.err "read tokens and certificates again"
    lines serve.err info "read tokens"
    stop
    cat >weir.json <<<'{"log-format": "json", "log-level": "warning"}'
    serve --config weir.json
    kill -HUP "$pid"
    stop
    [ ! -s serve.err ]
}

case_the_settings_of_a_server_hold_for_its_errors() {
    cat >weir.json <<<'{"log-format": "json", "listen": "127.0.0.1:nonsense"}'
    status 2 weir serve --config weir.json
    lines err error "127.0.0.1:nonsense"
    status 2 env WEIR_LOG_LEVEL=loud "$WEIR" serve
    has err "WEIR_LOG_LEVEL: 'loud' is not info, warning or error"
    status 2 env WEIR_LOG_FORMAT=xml "$WEIR" work t -- cat
    has err "WEIR_LOG_FORMAT: 'xml' is not one of: text json"
    status 2 weir work t --log-level loud -- cat
    has err "--log-level: 'loud' is not one of: info warning error"
}

# JOURNAL_STREAM names the stream that the journal reads, here a file.
case_the_journal_gets_priorities() {
    weir add mail '{}' --quiet
    : >err
    JOURNAL_STREAM=$(stat -c %d:%i err)
    export JOURNAL_STREAM
    weir work mail --drain -- cat 2>>err
    same "$(cat err)" "<6>working on mail in sqlite:jobs.db with 'cat', 1 at once until none is left"
    weir work mail --drain --log-format json -- cat 2>>err
    grep -q '^<6>{"time":"' err
    weir get 77 2>>err || true
    same "$(tail -n 1 err | cut -c 1-3)" "<3>"
    weir work mail --drain -- cat 2>elsewhere
    has elsewhere "weir: working on mail"
}

run_cases
