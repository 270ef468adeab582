# test_observe.sh - weir observe: jobs as lines, answered by lines.
. "$(dirname "$0")/lib.sh"

export WEIR_STORE=sqlite:jobs.db

# observer ARGUMENTS: in the background; it reads the fifo `answers` (held open as 7) and writes to
# the file `lines`. Its pid is in $observer.
observer() {
    mkfifo answers
    "$WEIR" observe "$@" <answers >lines 2>observe.err &
    observer=$!
    exec 7>answers
}

has_lines() { [ "$(wc -l <lines)" -ge "$1" ]; }
job_is() { weir get "$1" --json | grep -q "\"state\":\"$2\""; }

end_observer() {
    exec 7>&-
    wait "$observer" || { cat observe.err; return 1; }
}

case_bad_calls() {
    status 2 weir observe
    status 2 weir observe mail --window 0
    status 2 weir observe mail --lease 1ms
    status 2 weir observe mail --when 'data.region ='
    has err 'column 14'
    status 2 weir observe mail --auto-ack --window 2
    has err '--auto-ack or --window'
}

case_each_answer() {
    for i in 1 2 3 4 5; do weir add mail "{\"n\":$i}" --attempts 3 --quiet; done
    observer mail --window 5
    wait_for has_lines 5
    json_lines lines
    has lines '"data":{"n":3}'
    printf '1\n2 done {"sent":true}\n3 fail no answer\n4 return 1h\n5 give-up no such user\n' >&7
    wait_for job_is 1 complete
    wait_for job_is 2 complete
    wait_for job_is 4 delayed
    wait_for job_is 5 failed
    has <(weir get 2 --json) '"result":{"sent":true}'
    wait_for has_lines 6                    # 3 comes again
    has <(tail -n 1 lines) '"id":3'
    has <(weir get 5 --json) 'no such user'
    echo 3 >&7
    wait_for job_is 3 complete
    end_observer
}

case_a_condition_leaves_jobs_to_others() {
    weir add mail '{"region":"us"}' --quiet
    observer mail --window 5 --when 'data.region = "eu"'
    has <(weir explain 1 | tr -s ' \n' ' ') 'conditions of the running workers (--when) are not true for this job'
    weir add mail '{"region":"eu"}' --quiet
    wait_for has_lines 1
    has lines '"id":2'
    has <(weir get 1 --json) '"state":"inactive"'
    weir observe mail --auto-ack --limit 1 >others
    has others '"id":1'
    end_observer
}

case_no_more_than_the_window() {
    for i in 1 2 3 4 5; do weir add mail --quiet; done
    observer mail --window 2
    wait_for has_lines 2
    same "$(weir count --state inactive mail)" 3
    same "$(wc -l <lines)" 2
    echo 1 >&7
    wait_for has_lines 3
    same "$(weir count --state active mail)" 2
    end_observer
    same "$(weir count --state inactive mail)" 4        # those without an answer are back
    same "$(weir count --state complete mail)" 1
}

case_wrong_answers() {
    weir add mail --quiet
    observer mail
    wait_for has_lines 1
    printf 'x\n1 perhaps\n99 done\n1 done {\n1 return soon\n' >&7
    wait_for grep -q 'answer for job 1' observe.err
    wait_for grep -q 'answer for job 99' observe.err
    wait_for grep -q 'answer "x"' observe.err
    has observe.err 'answer for job 1: result: not JSON: the text ends too early at byte 1'
    has observe.err '"soon"'
    job_is 1 active
    echo 1 >&7
    wait_for job_is 1 complete
    end_observer
}

case_auto_ack() {
    for i in 1 2 3 4 5; do weir add mail --quiet; done
    weir observe mail --auto-ack --limit 3 </dev/null | cat >lines
    same "$(wc -l <lines)" 3
    same "$(weir count --state complete mail)" 3
    same "$(weir count --state inactive mail)" 2
}

# A reader that is killed loses nothing: only what it has read is complete.
case_a_reader_is_killed() {
    for i in 1 2 3 4 5; do weir add mail --quiet; done
    mkfifo pipe
    "$WEIR" observe mail --auto-ack >pipe 2>observe.err </dev/null &
    observer=$!
    (exec 3<pipe; read -r line <&3; echo "$line" >first; exec sleep 100 <&3) &
    reader=$!
    wait_for test -s first
    wait_for job_is 1 complete
    wait_for job_is 2 active                # its line is in the pipe, and was not read
    kill -9 "$reader"
    wait_for ended "$observer"
    wait "$observer"
    job_is 2 inactive
    same "$(weir count --state complete mail)" 1
    same "$(weir count --state inactive mail)" 4
    has <(weir get 2 --json) '"attempts":0'
}

case_a_killed_observer_loses_nothing() {
    weir add mail --quiet
    observer mail --lease 200ms
    wait_for has_lines 1
    kill -9 "$observer"
    exec 7>&-
    weir observe mail --auto-ack --limit 1 </dev/null | cat >again
    has again '"id":1'
    job_is 1 complete
}

run_cases
