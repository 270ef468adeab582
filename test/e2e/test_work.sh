# test_work.sh - weir work --exec: any program is a worker.
. "$(dirname "$0")/lib.sh"

# worker ARGUMENTS: a worker in the background, ready to be killed; its pid is in $worker.
worker() {
    "$WEIR" work "$@" >work.out 2>work.err </dev/null &
    worker=$!
}

# stopped STATUS: the worker has ended so.
stopped() {
    local got=0
    wait_for ended "$worker"
    wait "$worker" || got=$?
    [ "$got" = "$1" ] && return 0
    echo "the worker ended with $got, expected $1"
    cat work.out work.err
    return 1
}

# end_worker: ask it to end; it must still be there.
end_worker() {
    kill "$worker" && return 0
    echo "the worker has ended by itself:"
    cat work.out work.err
    return 1
}

# owned: the worker has the store.
owned() { head -n 1 jobs.db-owner 2>/dev/null | grep -qx "$worker"; }

# handled PID: it has taken the signals that were sent to it.
handled() { grep -q '^ShdPnd:.0*$' "/proc/$1/status"; }

# job_is ID STATE
job_is() { weir get "$1" --json | grep -q "\"state\":\"$2\""; }

case_bad_calls() {
    status 2 weir work
    status 2 weir work mail
    has err "--exec"
    status 2 weir work mail --exec cat -j 0
    status 2 weir work mail --exec cat -j 100000
    has err "1024"
    status 2 weir work mail --exec cat --lease 1ms
    has err "--lease"
}

case_a_condition() {
    for region in us eu us eu; do weir add mail "{\"region\":\"$region\"}" --quiet; done
    worker mail --when 'data.region = "eu"' --exec 'cat >>done'
    wait_for job_is 2 complete
    wait_for job_is 4 complete
    end_worker
    stopped 0
    same "$(weir count --state inactive mail)" 2
    same "$(cat done)" '{"region":"eu"}{"region":"eu"}'
    status 2 weir work mail --when 'data.region =' --exec true
    has err 'column 14'
    status 2 weir work mail --when true --drain --exec true
    has err 'either --drain or --when'
}

case_data_in_result_out() {
    weir add mail '{"to":"ann"}'
    status 0 weir work mail --exec cat --drain
    status 0 weir get 1 --json
    same "$(member state)" complete
    has out '"result":{"to":"ann"}'
    same "$(member attempts)" 1
    [[ $(member duration) =~ ^[0-9]+$ ]]
}

# A token or the password of a store is nothing for the programs, unless somebody says so.
case_secrets_stay_out_of_the_environment() {
    export WEIR_TOKEN=secret WEIR_OTHER=1 PLAIN=2
    weir add t --count 2 -q
    status 0 weir work t --exec 'env >env; exit 0' --drain
    hasnt env WEIR_STORE
    hasnt env WEIR_TOKEN
    hasnt env WEIR_OTHER
    has env PLAIN=2
    has env WEIR_JOB_TYPE=t
    weir add t -q
    status 0 weir work t --exec 'env >env' --drain --pass-env WEIR_TOKEN,WEIR_OTHER
    has env WEIR_TOKEN=secret
    has env WEIR_OTHER=1
    hasnt env WEIR_STORE
}

# Everybody on the machine can read the arguments of a process.
case_secrets_stay_out_of_the_arguments() {
    "$WEIR" serve --store "redis://ann:hush@127.0.0.1:1/0" --listen 127.0.0.1:0 >out 2>err &
    wait_for grep -qF 'redis://ann:***@127.0.0.1:1/0' "/proc/$!/cmdline"
    hasnt "/proc/$!/cmdline" hush
    wait_for has err "127.0.0.1:1"
    kill $!
    wait $! || true
    hasnt err hush
    weir add t -q
    worker t --exec ': "http://127.0.0.1?token=hush&timeout=1s"; echo "$0"'
    wait_for grep -qF 'token=***&timeout=1s' "/proc/$worker/cmdline"
    hasnt "/proc/$worker/cmdline" hush
    wait_for job_is 1 complete
    end_worker
    stopped 0
}

case_what_a_result_becomes() {
    weir add t --count 5 -q
    status 0 weir work t --drain --exec 'case $WEIR_JOB_ID in
        1) echo 42 ;;
        2) echo "it is \"done\"" ;;
        3) ;;
        4) printf "two\nlines\n" ;;
        5) printf "\377\000x" ;;
        esac'
    status 0 weir get 1 --json; same "$(member result)" 42
    status 0 weir get 2 --json; has out '"result":"it is \"done\""'
    status 0 weir get 3 --json; hasnt out '"result"'
    status 0 weir get 4 --json; has out '"result":"two\nlines"'
    status 0 weir get 5 --json; json_lines out; same "$(member state)" complete
}

case_environment() {
    weir add t --attempts 2
    status 0 weir work t --drain --exec 'echo "$WEIR_JOB_ID $WEIR_JOB_TYPE $WEIR_JOB_ATTEMPT \
$WEIR_JOB_MAX_ATTEMPTS $WEIR_JOB_DELIVERY" >>seen; [ $WEIR_JOB_ATTEMPT = 2 ]'
    same "$(head -1 seen)" "1 t 1 2 1"
    same "$(tail -1 seen)" "1 t 2 2 2"
}

case_the_program_gets_no_descriptors_of_ours() {
    weir add t
    status 0 weir work t --drain --exec 'readlink /proc/$$/fd/* >links'
    [ "$(grep -c ^pipe: links)" -ge 3 ]          # stdin, stderr and 3; stdout is the file
    hasnt links jobs.db
    hasnt links signalfd
    hasnt links eventfd
}

case_pretty_json_stays_one_line() {
    weir add t
    status 0 weir work t --drain --json --exec 'printf "{\n  \"a\": 1\n}\n"'
    json_lines out
    same "$(wc -l <out)" 1
}

case_failure_tells_why() {
    weir add t
    status 0 weir work t --drain --exec 'echo first >&2; echo "disk full" >&2; exit 3'
    has err "disk full"
    status 0 weir get 1 --json
    same "$(member state)" failed
    same "$(member error)" "exit status 3: disk full"
    status 0 weir log 1
    has out "exit status 3: disk full"
}

case_a_program_that_is_not_there() {
    weir add t --count 5 -q
    status 3 weir work t --drain --exec './nothing-here --fast'
    has err "cannot run './nothing-here'"
    status 3 weir work t --drain -- nothing-here-either
    same "$(weir count --state inactive)" 5
    # these are programs, though the shell has words of the same name
    status 0 weir work nothing --drain -- false
    status 0 weir work nothing --drain -- echo x
    status 3 env PATH=/nonexistent "$WEIR" work t --drain -- false
    status 3 weir work t --drain -- .
    # which one is meant
    mkdir bin
    printf '#!/bin/sh\n' | tee send-mail bin/cat bin/at bin/sendmail >noexec
    chmod +x send-mail bin/cat bin/at
    for how in --exec --; do
        status 3 weir work t --drain $how ./send-mial
        has err "cannot run './send-mial': no such program; did you mean './send-mail'?"
        status 3 env PATH="$PWD/bin:/nowhere" "$WEIR" work t --drain $how ct
        has err "cannot run 'ct': no such program; did you mean 'cat'?"
        status 3 env PATH="$PWD/bin" "$WEIR" work t --drain $how sendmal
        has err "cannot run 'sendmal': no such program"
        hasnt err "did you mean"                # that one is not executable
        status 3 weir work t --drain $how ./noexec
        has err "cannot run './noexec': it is not executable; \`chmod +x ./noexec\` makes it so"
        status 3 weir work t --drain $how ./bin
        has err "cannot run './bin': it is a directory"
        status 3 weir work t --drain $how ./noexec/x
        has err "cannot run './noexec/x': no such program"
    done
    status 3 env PATH="$PWD/bin" "$WEIR" work t --drain -- sendmail
    has err "it is not executable; \`chmod +x $PWD/bin/sendmail\` makes it so"
    same "$(weir count --state inactive)" 5
    # it was there when the worker started
    printf '#!/bin/sh\nrm "$0"; echo 1\n' >program
    chmod +x program
    status 3 weir work t --drain -- ./program
    has err "'./program' cannot run (127); its job waits again"
    same "$(weir count --state complete)" 1
    same "$(weir count --state failed)" 0
    same "$(weir count --state inactive)" 4
    # behind a word of the shell nobody looks
    status 3 weir work t --drain --exec 'true; ./program'
    has err "'true; ./program' cannot run (127)"
    same "$(weir count --state inactive)" 4
}

case_a_program_with_arguments() {
    weir add t '"x"'
    status 0 weir work t --drain -- sh -c 'cat; echo "$1" >arg' sh 'two words'
    has err "working on t in sqlite:jobs.db with 'sh', 1 at once"
    same "$(cat arg)" "two words"
    status 2 weir work t --exec cat -- cat
    status 2 weir work t --
    status 2 weir work t
}

case_failures_in_a_row_slow_a_worker_down() {
    weir add t --count 40 -q
    "$WEIR" work t --exec 'exit 1' >work.out 2>&1 </dev/null &
    worker=$!
    wait_for has work.out "10 jobs have failed one after the other"
    same "$(sed '/10 jobs have failed/q' work.out | grep -c 'exit status 1')" 10
    # It waits with no job in its hands.
    waits() { [ "$(weir count --state failed)" -ge 12 ] && [ "$(weir count --state active)" = 0 ]; }
    wait_for waits
    [ "$(weir count --state failed)" -lt 40 ]
    kill "$worker"
    stopped 0
    same "$(weir count --state active)" 0
}

case_killed_by_a_signal() {
    weir add t
    status 0 weir work t --drain --exec 'kill -9 $$'
    status 0 weir get 1 --json
    same "$(member error)" "killed by signal 9 (Killed)"
}

case_attempts_and_backoff() {
    weir add t --attempts 3 --backoff fixed:50ms
    status 0 weir work t --drain --exec 'echo x >>runs; exit 1'
    same "$(wc -l <runs)" 3
    status 0 weir get 1 --json
    same "$(member state)" failed
    same "$(member attempts)" 3
}

case_progress_and_log() {
    weir add t
    worker t --exec 'echo "progress 40/100 {\"step\":\"mix\"}" >&3; echo "log hello  there" >&3
        echo "progress x" >&3; echo "odd" >&3; printf "log no newline" >&3
        until [ -e go ]; do sleep 0.02; done'
    wait_for eval 'weir get 1 --json | grep -q "\"progress\":40"'
    status 0 weir get 1 --json
    has out '"progress_data":{"step":"mix"}'
    touch go
    wait_for job_is 1 complete
    end_worker
    stopped 0
    status 0 weir log 1
    has out "  hello  there"
    has out "fd 3 | progress x"
    has out "fd 3 | odd"
    has out "no newline"
}

case_much_in_and_much_out() {
    head -c 900000 /dev/zero | tr '\0' q >letters
    (printf '"'; cat letters; printf '"') | weir add t -
    status 0 timeout 60 "$WEIR" work t --drain --quiet --exec cat
    status 0 weir get 1 --json
    same "$(member state)" complete
    same "$(grep -o 'q' out | wc -l)" 1800000
}

case_data_that_is_not_read() {
    (printf '"'; head -c 900000 /dev/zero | tr '\0' 7; printf '"') | weir add t -
    status 0 weir work t --drain --exec 'echo fine'
    status 0 weir get 1 --json
    same "$(member result)" fine
}

case_a_result_that_is_too_long() {
    weir add t
    status 0 weir work t --drain --exec 'yes'
    status 0 weir get 1 --json
    same "$(member state)" failed
    has out "too long for a result: over 1048576 bytes"
}

# A worker that is killed leaves nothing running, not even children of programs that ignore signals,
# and the next one begins only when they are gone. Each program writes down what it sees.
case_programs_end_with_their_worker() {
    local i pid
    cat >program <<'END'
trap '' TERM INT HUP
mine=pids.$WEIR_JOB_ID
for other in $(cat $mine 2>/dev/null); do
    grep -q '^State:.[^Z]' "/proc/$other/status" 2>/dev/null && echo "$other beside $$" >>overlap
done
echo $$ >>$mine
(trap '' TERM INT HUP; echo $BASHPID >>$mine; while :; do sleep 1; done) &
echo "$WEIR_JOB_ID" >>began
while :; do sleep 1; done
END
    began() { [ "$(wc -l <began)" -ge "$1" ]; }
    weir add t --count 3 -q --max-lost 100
    for i in 1 2 3 4; do
        worker t -j 3 --exec 'exec bash ./program'
        # All three at first; a job whose worker died runs alone.
        wait_for began $((i + 2))
        wait_for eval '[ "$(cat pids.* | wc -l)" = $((2 * i + 4)) ]'
        kill -9 "$worker"
        wait "$worker" || true
    done
    for pid in $(cat pids.*); do
        wait_for ended "$pid"
    done
    [ ! -e overlap ] || { cat overlap; return 1; }
}

# Nor do those live on that have left the group of their program, whether the worker is killed ...
case_programs_that_leave_their_group_end_with_their_worker() {
    local pid
    cat >program <<'END'
setsid bash -c 'trap "" TERM HUP; echo $$ >>pids; (setsid sleep 600 & echo $! >>pids); sleep 600' &
while :; do sleep 1; done
END
    two_pids() { [ "$(wc -l <pids)" = 2 ]; }
    weir add t
    worker t --exec 'exec bash ./program'
    wait_for test -e pids
    wait_for two_pids
    kill -9 "$worker"
    stopped 137
    for pid in $(cat pids); do
        wait_for ended "$pid"
    done
    # ... or its job is cancelled.
    rm pids
    worker t --kill-after 100ms --exec 'exec bash ./program'
    wait_for test -e pids
    wait_for two_pids
    status 0 weir cancel 1
    for pid in $(cat pids); do
        wait_for ended "$pid"
    done
    end_worker
    stopped 0
}

# What a program leaves running when it ends by itself is left alone, also when the worker is killed.
case_what_an_ended_program_left_is_left_alone() {
    local daemon
    weir add t --count 2 -q
    worker t --exec '[ "$WEIR_JOB_ID" = 2 ] || { setsid sleep 600 & echo $! >daemon; exit 0; }
        touch second; sleep 600'
    wait_for test -e second
    daemon=$(cat daemon)
    kill -9 "$worker"
    stopped 137
    status 0 weir check                 # the guard is done when this has opened the file
    kill "$daemon"
}

# guard_of PID: the process that ends the programs of this worker.
guard_of() {
    local stat
    for stat in /proc/[0-9]*/stat; do
        read -r -a stat <"$stat" 2>/dev/null || continue
        [ "${stat[1]} ${stat[3]}" = "(weir-guard) $1" ] && echo "${stat[0]}" && return
    done
    return 1
}

# Another process that has the file open takes over at once, whatever the guard has yet to do.
case_a_guard_is_not_in_the_way_of_the_next_owner() {
    local owner guard
    weir add t
    worker t --exec 'echo $$ >pid; sleep 60 & wait'
    wait_for test -s pid
    owner=$worker
    worker other --exec cat
    wait_for grep -q "working on other" work.err
    guard=$(guard_of "$owner")
    kill -STOP "$guard"
    kill -9 "$owner"
    status 0 weir add other 1 --wait 20s
    same "$(weir count t --state active)" 1
    wait_for owned
    kill -CONT "$guard"
    wait_for ended "$guard"
    wait_for ended "$(cat pid)"
    end_worker
    stopped 0
}

# If nobody else has the file open, the next owner waits for the guard, also for that of a worker
# that was not the owner when it started.
case_the_next_owner_waits_for_the_guard() {
    local first guard
    worker other --exec cat
    wait_for owned
    first=$worker
    weir add t
    worker t --exec 'sleep 60 & echo $! >pid; wait'
    wait_for test -s pid
    kill "$first"
    wait_for owned
    guard=$(guard_of "$worker")
    kill -STOP "$guard"
    kill -9 "$worker"
    stopped 137
    worker t --drain --exec 'grep "^State:.[^Z]" /proc/$(cat pid)/status >beside; echo done'
    wait_for owned
    same "$(weir count t --state active)" 1
    kill -CONT "$guard"
    stopped 0
    same "$(cat beside)" ""
    job_is 1 complete
}

case_something_left_running_does_not_hold_the_job() {
    weir add t
    status 0 timeout 60 "$WEIR" work t --drain --exec 'sleep 30 & echo $! >pid; echo done'
    status 0 weir get 1 --json
    same "$(member result)" done
    kill "$(cat pid)"
}

case_ttl() {
    weir add t --ttl 200ms
    status 0 timeout 60 "$WEIR" work t --drain --exec 'echo $$ >pid; sleep 60 & wait'
    status 0 weir get 1 --json
    same "$(member state)" failed
    same "$(member error)" "TTL exceeded"
    wait_for ended "$(cat pid)"
}

case_ttl_of_a_program_that_ignores_sigterm() {
    weir add t --ttl 200ms
    status 0 timeout 60 "$WEIR" work t --drain --kill-after 100ms \
        --exec 'echo $$ >pid; trap "" TERM; while :; do sleep 0.05; done'
    status 0 weir get 1 --json
    same "$(member error)" "TTL exceeded"
    wait_for ended "$(cat pid)"
}

case_progress_extends_the_ttl() {
    weir add t --ttl 2s
    status 0 timeout 60 "$WEIR" work t --drain --exec 'for i in 1 2 3 4 5 6 7 8; do sleep 0.35
        echo "progress $i/8" >&3; done; echo ok'
    status 0 weir get 1 --json
    same "$(member result)" ok
}

case_deadline() {
    weir add t --deadline 50ms
    local deadline
    deadline=$(weir get 1 --json | grep -oE '"deadline":[0-9]+' | cut -d: -f2)
    wait_for eval '[ "$(date +%s%3N)" -gt "$deadline" ]'
    status 0 timeout 60 "$WEIR" work t --drain --exec 'touch ran'
    [ ! -e ran ]
    status 0 weir get 1 --json
    same "$(member state)" failed
    same "$(member error)" "Deadline exceeded"
}

case_what_is_kept() {
    weir add t --count 5 -q
    weir add once --remove-on-complete
    weir types t --keep-complete 2
    status 0 timeout 60 "$WEIR" work t once --drain --exec cat
    status 3 weir get 6
    # A worker that ends may leave jobs beyond the limits to the next owner, which removes them first.
    status 0 timeout 60 "$WEIR" work t once --drain --exec cat
    status 0 weir list t --ids
    same "$(tr '\n' ' ' <out)" "5 4 "
}

case_several_types_best_first() {
    weir add a
    weir add b --priority high
    weir add c --priority critical
    status 0 weir work a b --drain --exec 'echo $WEIR_JOB_TYPE >>order'
    same "$(tr '\n' ' ' <order)" "b a "
    status 0 weir count c --state inactive
    same "$(cat out)" 1
}

case_several_at_once() {
    weir add t --count 4 -q
    status 0 timeout 60 "$WEIR" work t -j 4 --drain \
        --exec 'touch run.$WEIR_JOB_ID; until [ $(ls run.* | wc -l) = 4 ]; do sleep 0.02; done'
    status 0 weir count --state complete
    same "$(cat out)" 4
}

case_drain_of_nothing() {
    weir add other
    status 0 timeout 60 "$WEIR" work t --drain --exec cat
    [ ! -s out ]
    weir add mail --quiet
    status 0 weir work mial --exec cat --drain
    has err "no such type 'mial'; did you mean 'mail'? (it has no jobs)"
    hasnt err waiting
}

case_drain_waits_for_delayed_jobs() {
    weir add t --delay 300ms
    status 0 timeout 60 "$WEIR" work t --drain --exec cat
    status 0 weir get 1 --json
    same "$(member state)" complete
}

case_drain_with_a_paused_type() {
    weir add t
    weir pause t
    status 4 timeout 60 "$WEIR" work t --drain --exec cat
    has err "paused"
    weir resume t
    weir pause --all
    status 4 timeout 60 "$WEIR" work t --drain --exec cat
    has err "paused"
}

case_one_line_a_job() {
    weir add t
    weir add t --attempts 2
    weir add t --attempts 1
    status 0 weir work t --drain --json --exec '[ $WEIR_JOB_ID = 1 ] && echo 5'
    json_lines out
    same "$(grep -c '"event":"complete"' out)" 1
    same "$(grep -c '"event":"failed_attempt"' out)" 1
    same "$(grep -c '"event":"failed"' out)" 2
    weir add t
    status 0 weir work t --drain --exec 'echo hi'
    same "$(wc -l <out)" 1
    narrow out
    weir add t
    status 0 weir work t --drain --quiet --exec 'echo hi'
    [ ! -s out ]
}

case_sigterm_lets_jobs_finish() {
    weir add t
    worker t --exec 'touch began; until [ -e go ]; do sleep 0.02; done; echo finished'
    wait_for test -e began
    end_worker
    touch go
    stopped 0
    status 0 weir get 1 --json
    same "$(member result)" finished
}

case_sigterm_takes_nothing_new() {
    weir add t --count 50 -q
    worker t --exec 'echo $WEIR_JOB_ID >>began; until [ -e go ]; do sleep 0.02; done'
    wait_for test -e began
    end_worker
    wait_for handled "$worker"
    touch go
    stopped 0
    same "$(wc -l <began)" 1
    status 0 weir count --state inactive
    same "$(cat out)" 49
}

case_shutdown_timeout() {
    weir add t --attempts 2
    worker t --shutdown-timeout 100ms --exec 'echo $$ >pid; touch began; sleep 60 & wait'
    wait_for test -e began
    end_worker
    stopped 12
    has work.err "Shutdown"
    wait_for ended "$(cat pid)"
    status 0 weir get 1 --json
    same "$(member error)" "Shutdown"
    same "$(member attempts)" 1
    same "$(member state)" inactive
}

case_a_second_signal_hurries() {
    weir add t
    worker t --exec 'echo $$ >pid; trap "" TERM; touch began; while :; do sleep 0.05; done'
    wait_for test -e began
    kill -INT "$worker"
    wait_for handled "$worker"
    kill -INT "$worker"
    stopped 0
    wait_for ended "$(cat pid)"
    status 0 weir get 1 --json
    same "$(member error)" "Shutdown"
}

case_a_worker_that_is_killed_loses_its_job_to_the_next() {
    weir add t
    worker t --lease 500ms --exec 'echo $$ >>pids; [ $WEIR_JOB_DELIVERY -gt 1 ] || sleep 60'
    wait_for test -s pids
    kill -9 "$worker"
    stopped 137
    status 0 timeout 60 "$WEIR" work t --drain --exec 'echo "delivery $WEIR_JOB_DELIVERY"'
    status 0 weir get 1 --json
    same "$(member state)" complete
    same "$(member result)" "delivery 2"
    same "$(member attempts)" 1
    same "$(member lost)" 1
}

# One job kills its worker whenever it runs: it fails, and no other does.
case_a_job_that_kills_its_workers_takes_no_other_along() {
    local n=1 deaths=0 got=137
    { seq 99; echo '"poison"'; seq 100; } | weir add t --lines --max-lost 1 --quiet
    cat >program <<'END'
#!/bin/sh
read data
[ "$data" = '"poison"' ] && kill -9 "$(cat pid)"
sleep 0.01
END
    chmod +x program
    while [ "$got" = 137 ] && [ $deaths -lt 10 ]; do
        got=0
        sh -c 'echo $$ >pid; exec "$0" work t --exec ./program -j 8 --drain --quiet' "$WEIR" \
            >work.out 2>work.err </dev/null || got=$?
        [ "$got" = 0 ] || deaths=$((deaths + 1))
    done
    same "$got $deaths" "0 2"
    same "$(weir count t --state complete)" 199
    same "$(weir list --state failed --json | grep -c poison)" 1
    same "$(weir count t --state failed)" 1
}

said_twice() { [ "$(grep -c trouble work.err)" = 2 ]; }

# The file is moved away under its owner, which has nothing to do, and later put back.
case_a_worker_says_that_its_file_is_gone() {
    weir add t --delay 1h
    worker t --exec cat
    wait_for owned
    mv jobs.db away.db
    wait_for has work.err "jobs.db was renamed while it was in use"
    status 6 weir add t
    same "$(grep -c trouble work.err)" 1
    mv away.db jobs.db
    wait_for has work.err "the store works again"
    status 0 weir promote 1
    wait_for job_is 1 complete
    same "$(weir count t)" 1
    mv jobs.db away.db
    status 6 weir add t
    wait_for said_twice
    end_worker
    stopped 6
    same "$(grep -c 'the store works again' work.err)" 1
}

# A backup is copied over its file; the worker has nothing to do, and says it all the same.
case_a_worker_says_that_its_file_is_overwritten() {
    weir add t --delay 1h
    cp jobs.db backup.db
    worker t --exec cat
    wait_for owned
    weir add t --delay 1h
    weir add t --delay 1h
    folded() { ! cmp -s backup.db jobs.db; }        # jobs.db has what the log has
    wait_for folded
    cp backup.db jobs.db
    wait_for has work.err "jobs.db was overwritten while it was in use"
    status 6 weir add t
    has err "jobs.db was overwritten while it was in use"
    status 10 weir check
    has err "jobs.db-wal is not the log of this jobs.db"
    end_worker
    stopped 6
    cmp backup.db jobs.db
}

# jobs.db alone, copied while it is in use, is not the queue.
case_a_copy_without_its_log_is_refused() {
    worker t --exec cat
    wait_for owned
    for i in 1 2 3 4; do weir add t --delay 1h; done
    cp jobs.db copy.db
    for command in list check 'add t' 'get 1' 'work t --exec cat --drain'; do
        status 10 weir --store sqlite:copy.db $command
        has err "copy.db was copied without its log copy.db-wal"
    done
    test ! -s copy.db-wal
    end_worker
    stopped 0
    cp jobs.db whole.db
    same "$(weir --store sqlite:whole.db count t)" 4
    status 0 weir --store sqlite:copy.db check --mend
    has out "the log of the file was missing"
    status 0 weir --store sqlite:copy.db check
    status 0 weir --store sqlite:copy.db add t
}

# The outcome of a job that runs while the disk is full, or the file is gone, is not kept.
case_an_outcome_that_is_not_kept_is_an_error() {
    weir add t
    worker t --exec 'touch began; until test -e go; do sleep 0.02; done'
    wait_for test -e began
    mv jobs.db away.db
    end_worker
    touch go
    stopped 6
    has work.err "outcomes that the store did not take: 1"
    mv away.db jobs.db
    status 0 weir work t --exec 'true' --drain
    job_is 1 complete
}

# Containers that share the directory, but have no process numbers in common.
case_processes_of_other_pid_namespaces() {
    local apart="unshare --pid --fork --kill-child" inside
    $apart true 2>/dev/null || return 0
    $apart "$WEIR" work t --exec cat >inside.out 2>&1 &
    inside=$!
    wait_for grep -qx 1 jobs.db-owner                   # its number there
    status 0 weir status                                # from where its number can be seen
    has out "weir work t (process $(tr -d ' ' <"/proc/$inside/task/$inside/children"))"
    worker t --exec cat
    wait_for grep -q "working on t" work.err
    status 0 weir add t 1 --wait 20s
    status 0 $apart "$WEIR" add t 2 --wait 20s
    kill -9 "$inside"
    wait_for owned
    status 0 $apart "$WEIR" status
    has out "weir work t (its number cannot be seen from here)"
    has out "trouble     none"
    status 0 $apart "$WEIR" status --json
    has out '"owner":{"pid":null,"program":"weir work t","peers":0},"ready":true'
    status 0 $apart "$WEIR" workers
    has err "no worker has a job now; weir work t has the file open"
    status 0 $apart "$WEIR" add t 3 --wait 20s
    status 0 $apart "$WEIR" check
    same "$(weir count t --state complete)" 3
    end_worker
    stopped 0
}

# Each worker prints the ends of its own jobs, with their durations, also of those that ran while
# the owner was killed.
case_each_worker_prints_its_own_jobs() {
    local first
    weir add t --count 60 -q
    worker t -j 2 --exec 'sleep 0.05; echo first'
    first=$worker
    wait_for owned
    wait_for test -s work.out
    mv work.out first.out
    worker t -j 2 --exec 'sleep 0.05; echo second'
    wait_for test -s work.out
    kill -9 "$first"
    wait_for eval '[ "$(grep -c second work.out)" -gt 5 ]'
    end_worker
    stopped 0
    hasnt work.out first
    hasnt first.out second
    ! grep -vE '^\S+ [0-9]+ t [0-9.]+m?s "second"$' work.out
}

case_others_work_through_the_owner() {
    weir add t --delay 1h
    worker t --exec cat
    wait_for owned
    status 0 weir add t '{"n":2}' --wait 20s
    status 0 weir add t '{"n":3}' --delay 1h
    status 0 weir cancel 3
    status 0 weir list
    status 0 weir get 1
    status 0 weir explain 1
    status 0 weir top --once
    status 0 weir check
    status 0 weir log 1 "by another process"
    end_worker
    stopped 0
    status 0 weir add t
    same "$(weir count t --state complete)" 1
    [ "$(id -u)" = 0 ] || return 0
    local other="setpriv --reuid=65534 --regid=65534 --clear-groups"
    chmod 755 .. .
    $other test -x "$WEIR" -a -x "$PWD" || return 0
    worker t --exec cat
    wait_for owned
    local file=${WEIR_STORE#sqlite:}
    chmod 666 "$file"* && chmod 600 "$file-socket" && chmod 777 .
    status 5 $other "$WEIR" --store "sqlite:$file" add t
    has err "its owner is a process of another user (user root)"
    end_worker
    stopped 0
}

run_cases
