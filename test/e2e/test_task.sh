#!/bin/bash
# test_task.sh - `weir task` as a user has it.
# shellcheck source=test/e2e/lib.sh
. "$(dirname "$0")/lib.sh" "$@"

all_of_it() {
    same "$(weir task submit thank '{"to":"ann"}' --id t1 --classifier orders --relative 4711 \
        --var1 a --at 1h)" t1
    status 4 weir task submit thank --id t1
    has err "there is a task t1"
    weir task submit thank --id t1 --or-find --json >out
    same "$(cat out)" '{"id":"t1","existed":true}'
    same "$(weir task submit other | wc -c)" 21
    weir task get t1 >out
    has out "relative id  4711"
    has out "  run at       20"
    has out "  created      20"
    weir task get t1 --json >out
    json_lines out
    has out '"attachment":{"to":"ann"},"var1":"a"'
    same "$(weir task list | wc -l)" 3
    same "$(weir task list --classifier orders --relative 4711 --relative 1 --json | wc -l)" 1
    same "$(weir task list --state completed | wc -l)" 0
    status 0 weir task list --state 'timed out'
    has err "no tasks"
    status 0 weir task list --state timed_out --json
    [ ! -s out ] && [ ! -s err ]
    status 2 weir task list --state complete
    has err "'complete' is not one of: ready running completed failed cancelled timed_out; did you mean 'completed'?"
    weir task adjust t1 --var1 b --at 2h
    has <(weir task get t1 --json) '"var1":"b"'
    weir task adjust t2 thank --relative 4712 --at 1h
    same "$(weir task cancel --classifier orders --relative 4711 --reason withdrawn)" 1
    has <(weir task get t1 --json) '"state":"cancelled"'
    has <(weir task get t1) "withdrawn"
    same "$(weir task cancel t1 nothing --json)" '{"cancelled":0}'
    weir task fire t2
    weir work thank --exec cat --drain >/dev/null
    has <(weir task get t2 --json) '"state":"completed"'
    status 4 weir task fire t2
    status 3 weir task get t9
    same "$(weir task initialize)" 0
}

case_a_file() {
    export WEIR_STORE=sqlite:jobs.db
    all_of_it
    weir check
}

case_a_server() {
    "$WEIR" serve --listen 127.0.0.1:0 --store mem: --data data >serve.out 2>serve.err </dev/null &
    local server=$!
    wait_for grep -q '^weir: serving ' serve.out
    export WEIR_STORE
    WEIR_STORE=$(sed -n 's/.* at \(http:.*\)$/\1/p' serve.out)
    all_of_it
    kill $server
    wait $server || true
}

case_invoke() {
    export WEIR_STORE=sqlite:jobs.db
    "$WEIR" work echo --exec cat >work.out 2>&1 &
    local worker=$!
    "$WEIR" work fails --exec false >fail.out 2>&1 &
    local failing=$!
    weir task invoke echo '[1]' --json >out
    has out '"state":"completed"'
    status 1 weir task invoke fails
    has err "is failed"
    status 12 weir task invoke nobody -w 50ms
    has err "has not ended"
    kill $worker $failing
    wait $worker || true
    wait $failing || true
}

case_the_task_table() {
    export WEIR_STORE=sqlite:jobs.db
    weir task submit thank '{"to":"ann"}' --id t1 --relative 4711 --timeout 1500ms
    weir task submit thank --id t2 --version 3 --at 1h
    weir task cancel t2 --reason withdrawn
    weir work thank --exec cat --drain >/dev/null
    python3 - "$(weir task view tasks)" >out <<'END'
import sqlite3, sys
db = sqlite3.connect("file:jobs.db?mode=ro", uri=True)
db.executescript(sys.argv[1])
rows = db.execute("SELECT * FROM tasks ORDER BY TASK_ID")
print(" ".join(column[0] for column in rows.description))
for row in rows:
    print("|".join(str(row[i]) for i in (0, 1, 4, 5, 7, 10, 15, 21)))
END
    same "$(sed -n 1p out)" "TASK_ID RELATIVE_ID CLASSIFIER TASK_NAME TASK_SERVICE STATE RUN_AT TIMEOUT \
START_TIME END_TIME RESULT_STATE RESULT_STORE RESULT HOSTNAME CLIENT_IP ATTACHMENT VAR1 VAR2 VAR3 SCHEDULED \
CREATE_TIME VERSION_NUMBER"
    same "$(sed -n 2p out)" 't1|4711|thank|已完成|2|None|{"to":"ann"}|0'
    same "$(sed -n 3p out)" 't2|None|thank|已取消|0|withdrawn|None|3'
    status 2 weir task view 'a b'
    weir task submit thank --id t3 --task-table sqlite:record.db --at 1h
    weir task cancel t3 --task-table sqlite:record.db --reason no
    same "$(python3 -c 'import sqlite3
print(sqlite3.connect("record.db").execute("SELECT STATE, RESULT_STATE FROM t_delay_task").fetchall())')" \
        "[('已取消', 'no')]"
    status 2 weir task list --task-table oracle:x
    status 2 weir task get t1 --at 1h
    has err "get does not take --at; it is an option of: submit adjust invoke"
    status 2 weir task submit thank --relative a --relative b
    has err "a task has one --relative"
    status 0 weir schedule list --json
    cmp out /dev/null
    weir schedule get weir/task-table/t_delay_task/default >out
    status 2 weir schedule fire weir/task-table/t_delay_task/default
    has err "weir's own"
}

# Whatever the worker is, a task with a schedule is ready again, and a task's row is written.
case_any_worker_keeps_tasks() {
    export WEIR_STORE=sqlite:jobs.db
    weir task submit tick --id s1 --schedule '* * * * * *' --task-table sqlite:record.db
    weir task submit tick --id t1 --task-table sqlite:record.db
    "$WEIR" work tick --task-table sqlite:record.db --exec 'echo run >>ran' >work.out 2>&1 &
    local worker=$!
    wait_for sh -c 'test "$(wc -l <ran)" -ge 4'
    wait_for row t1 已完成
    kill $worker
    wait $worker || true
    wait_for sh -c "\"$WEIR\" task get s1 --json | grep -q '\"state\":\"ready\"'"
    row s1 待运行
    weir observe tick --limit 1 --auto-ack --task-table sqlite:record.db >seen
    has <(weir task get s1 --json) '"state":"ready"'
}

row() {
    python3 - "$@" <<'END'
import sqlite3, sys
rows = sqlite3.connect("record.db").execute("SELECT STATE FROM t_delay_task WHERE TASK_ID=?", sys.argv[1:2])
sys.exit(rows.fetchall() != [(sys.argv[2],)])
END
}

case_it_is_explained() {
    export WEIR_STORE=sqlite:jobs.db
    weir task submit mail --id v3 --version 3
    weir explain 1 | tr -s "\n " " " >out
    has out "It needs a worker of version 3 or later."
    hasnt out "weir work"
    weir task submit mail --id s1 --schedule '30 6 * * 1' --tz Europe/Berlin --timeout 90s
    has <(weir explain 2 | tr -s "\n " " ") "Its schedule runs it at 06:30 on Monday (Europe/Berlin)."
    weir task get s1 >out
    has out "  zone         Europe/Berlin"
    has out "  timeout      1m30s"
    has <(weir task get v3) "  version      3"
    weir task cancel s1 --reason 'order withdrawn'
    has <(weir explain 2 | tr -s "\n " " ") "before it was ever started: order withdrawn."
    weir work mail@3 --drain --exec true >/dev/null
    weir task get v3 >out
    has out "  host         $(hostname)"
    has out "  ended        20"
}

case_properties() {
    export WEIR_STORE=sqlite:jobs.db
    printf '# delayqueue\nQueueKey = orders\nTaskTableName=t_order\nDailyQueueKey=true\n' >delayqueue.properties
    status 0 weir task submit thank --id t1 --at 1h --task-table sqlite:record.db \
        --properties delayqueue.properties
    has err "DailyQueueKey has no effect"
    same "$(python3 -c 'import sqlite3
print(sqlite3.connect("record.db").execute("SELECT TASK_ID FROM t_order").fetchall())')" "[('t1',)]"
    has <(weir task view --properties delayqueue.properties) "VIEW t_order AS"
    status 3 weir task list --properties nothing.properties
    printf 'TaskTableName=a-b\n' >delayqueue.properties
    status 2 weir task list --properties delayqueue.properties
    has err "properties, line 1, TaskTableName: expected letters"
    status 2 weir serve --properties delayqueue.properties --store mem:
    has err "properties, line 1"
}

case_what_is_refused() {
    export WEIR_STORE=sqlite:jobs.db
    status 2 weir task submit
    status 2 weir task submit 'a@1'
    has err '"@" is not allowed'
    status 2 weir task submit a '{'
    has err "attachment: not JSON"
    status 2 weir task submit a --or-find
    status 2 weir task cancel
    status 2 weir task sumbit a
    has err "submit"
}

run_cases
