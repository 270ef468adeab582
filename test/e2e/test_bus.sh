# test_bus.sh - the event bus on the command line: through a server, and between processes on a file.
. "$(dirname "$0")/lib.sh"

serve() {
    "$WEIR" serve --listen 127.0.0.1:0 --data "$PWD/data" --store "sqlite:$PWD/jobs.db" >ready 2>serve.err &
    server=$!
    trap 'kill $server 2>/dev/null; wait' EXIT
    wait_for grep -q ' at http' ready
    WEIR_STORE=$(sed -n 's/.* at \(http:[^ ]*\).*/\1/p' ready)
    export WEIR_STORE
}

# Messages from one process to another. $1: prints the addresses that have consumers.
check_messages() {
    weir bus listen news other -n 2 --json >heard &
    listener=$!
    wait_for sh -c "$1 | grep -q other"
    weir bus publish news '{"text":"hello"}' --header k=v
    echo '[1,2]' | weir bus send other -
    wait $listener
    has heard '"address":"news","sent":false,"headers":{"k":"v"},"body":{"text":"hello"}'
    has heard '"address":"other","sent":true'
    status 3 weir bus request nobody '1'
    has err 'No handlers for address nobody'
}

case_through_a_server() {
    serve
    weir add mail '{"to":"ann"}' >out
    weir bus request vertx.kue.service.job.internal '{"id":1}' --header action=getJob >out
    has out '"type":"mail"'
    check_messages "'$WEIR' bus services"
    curl -s "$WEIR_STORE/v1/bus" --json '{"address":"vertx.kue.service.job.internal","body":{"id":1},"headers":{"action":"existsJob"}}' >out
    has out '{"body":true}'
    status 15 weir bus request vertx.kue.service.job.internal '{}' --header action=dance
    has err 'Invalid action: dance'
}

check_workqueues() {
    weir bus services >out
    has out 'weir.bus'
    weir bus services --json >>out
    same "$(grep -E 'weir\.(group|leads|ends|servers)\.' out)" ''
    weir workqueue list >out
    same "$(cat out)" ''
    weir workqueue add resize --process-timeout 1m
    weir workqueue add resize --process-timeout 60s
    status 4 weir workqueue add resize --persist
    has err 'other settings'
    status 2 weir workqueue add mail --collection mails
    has err 'only a persistent work queue has one'
    weir workqueue add mail --persist --collection mails --timed-out-first
    weir add mails 1 >out
    weir workqueue list >out
    grep -qE 'resize +0 +0 +0 +0 +0 +0.0 +in memory' out
    grep -qE 'mail +1 +0 +0 +0 +0 +0.0 +in the store' out
    weir workqueue get mail >out
    has out 'as jobs of the type mails'
    has out 'then at the head of the queue'
    weir workqueue get resize --json >out
    grep -qE '^{"address":"resize","process_timeout":60000,.*"done_per_second":0.0,"standby":false,"servers":1}$' out
    weir workqueue rm resize
    weir workqueue rm mail
    status 3 weir workqueue rm mail
    has err 'there is no work queue "mail"'
}

case_work_queues_over_http() {
    serve
    check_workqueues
}

# The server owns the file; the command asks it over the bus of the store.
case_work_queues_on_its_file() {
    serve
    WEIR_STORE=sqlite:$PWD/jobs.db
    check_workqueues
}

case_work_queues_without_a_server() {
    export WEIR_STORE=sqlite:$PWD/jobs.db
    status 6 weir workqueue list
    has err 'no server has this store open'
    status 2 weir workqueue dance
    has err 'expected add, list, get or rm'
    status 2 weir workqueue get
    status 2 weir workqueue list a
    status 2 weir workqueue add a --process-timeout 8d
    has err '8d is not between'
}

case_on_a_file() {
    export WEIR_STORE=sqlite:$PWD/jobs.db
    check_messages "'$WEIR' bus services"
}

case_what_is_wrong() {
    export WEIR_STORE=mem:
    status 2 weir bus dance
    has err 'publish, send, request, listen or services'
    status 2 weir bus publish
    status 2 weir bus send a 1 --header k
    has err 'NAME=VALUE'
    status 2 weir bus publish a '{'
    status 2 weir bus listen
    status 2 weir bus services extra
    has err "services: 'extra' is one argument too many; expected nothing"
}

run_cases
