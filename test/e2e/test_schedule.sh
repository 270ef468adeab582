#!/bin/bash
# test_schedule.sh - `weir schedule` as a user has it, and the examples of docs/time.md.
# shellcheck source=test/e2e/lib.sh
. "$(dirname "$0")/lib.sh" "$@"

case_next() {
    weir schedule next '30 2 * * *' --tz Europe/Berlin --from 2026-03-28T00:00:00Z -n 3 >got
    printf '%s\n' 2026-03-28T01:30:00Z 2026-03-29T01:00:00Z 2026-03-30T00:30:00Z >want
    cmp got want
    same "$(weir schedule next '@daily' --from 2026-01-01T00:00:00Z --json -n 2)" \
        '["2026-01-02T00:00:00Z","2026-01-03T00:00:00Z"]'
    same "$(weir schedule next 'every 90m' --from 2026-01-01T00:00:00Z -n 1)" 2026-01-01T01:30:00Z
    same "$(weir schedule next '0 0 13 * 5' --from 2026-02-07T00:00:00Z -n 2 | tail -n 1)" \
        2026-03-13T00:00:00Z
    same "$(weir schedule next '0 0 13 * 5' --day-or-weekday --from 2026-02-07T00:00:00Z -n 2 |
        tail -n 1)" 2026-02-20T00:00:00Z
    same "$(weir schedule next '* * * * *' | wc -l)" 5
    same "$(weir schedule next '0 0 1 1 *' --from 9998-06-01T00:00:00Z --json)" \
        '["9999-01-01T00:00:00Z"]'
    [ ! -e jobs.db ]
}

case_a_schedule_adds_jobs() {
    export WEIR_STORE=sqlite:jobs.db
    weir schedule add beat '* * * * * *' beat '{"n":1}' --overlap skip
    for verb in get explain rm pause resume fire 'backfill --from 2026-10-01'; do
        status 3 weir schedule $verb baet
        has err "there is no schedule baet; did you mean 'beat'?"
    done
    status 3 weir schedule get nightly
    hasnt err "did you mean"
    weir schedule add report '30 6 * * 1' report --tz Europe/Berlin --except 2026-12-28
    weir schedule list >out
    has out "at 06:30 on Monday (Europe/Berlin)"
    "$WEIR" work beat --exec cat >/dev/null 2>&1 &
    local worker=$!
    three_are_done() { [ "$(weir count beat --state complete)" -ge 3 ]; }
    wait_for three_are_done
    kill $worker
    wait $worker || true
    weir schedule get beat >out
    has out "fired, job 1"
    same "$(weir schedule fire report | wc -l)" 1
    same "$(weir schedule backfill report --from 2026-10-01T00:00:00Z --to 2026-11-01T00:00:00Z)" 4
    same "$(weir schedule backfill report --from 2026-10-01T00:00:00Z --to 2026-11-01T00:00:00Z)" 0
    same "$(weir count report)" 5
    status 2 weir schedule backfill report --from 2026-11-01T00:00:00Z --to 2026-10-01T00:00:00Z
    has err "to: 1790812800000, must be after the begin of the span"
    weir schedule pause beat
    weir schedule get beat >out
    has out "It is paused, and does not fire until it is resumed."
    weir schedule resume beat
    weir schedule get report >out
    has out 'It fires next on Monday'
    has out '06:30 Europe/Berlin (in '
    has out 'The last run, job'
    weir schedule fire report >id
    status 0 weir explain "$(cat id)"
    tr -s ' \n' '  ' <out >flat        # without the line breaks
    has flat "The schedule report has added it, for a time"
    weir schedule list --json >out
    json_lines out
    has out '"overlap":"skip"'
    weir schedule add all '0 0 13 * 5' job '{"a":1}' --day-or-weekday --except 2026-12-25 --jitter 5s \
        --start 2026-01-01T00:00:00Z --end 2030-01-01T00:00:00Z --missed all --missed-limit 7 \
        --priority high --attempts 3 --backoff fixed:1s --ttl 1m
    weir schedule get all --json >out
    has out '"day_or_weekday":true,"job":{"type":"job","data":{"a":1},"priority":-10,"attempts":3,"backoff":{"type":"fixed","delay":1000},"ttl":60000},"start_at":1767225600000,"end_at":1893456000000,"except":"2026-12-25","jitter":5000,"paused":false,"missed":"all","missed_limit":7'
    weir schedule get all >out
    for said in 'zone +UTC' 'missed +all, at most 7' 'jitter +5.*' 'matches +day or weekday' 'except +2026-12-25' \
        'start +2026-01-01T00:00:00Z' 'end +2030-01-01T00:00:00Z' 'adds +job' 'data +\{"a":1\}' 'priority +high' \
        'attempts +3' 'backoff +fixed 1.*' 'ttl +.*'; do
        grep -Eq "^  $said$" out || { echo "no $said"; return 1; }
    done
    weir schedule explain report >out
    has out "report fires at 06:30 on Monday (Europe/Berlin)."
    has out "It fires next on Monday"
    status 3 weir schedule explain none
    same "$(weir schedule next '@daily' --from 2026-12-23T12:00:00Z --except 2026-12-25 -n 2)" \
        $'2026-12-24T00:00:00Z\n2026-12-26T00:00:00Z'
    same "$(weir schedule next '@daily' --start 2026-12-23T12:00:00Z --from 2026-01-01T00:00:00Z -n 1)" \
        2026-12-24T00:00:00Z
    on_terminal "WEIR_STORE=sqlite:jobs.db $WEIR schedule add beat @daily beat"
    has out "kept the schedule beat, which adds beat jobs"
    on_terminal "WEIR_STORE=sqlite:jobs.db $WEIR schedule rm beat"
    has out "removed the schedule beat"
    status 3 weir schedule rm beat
    has err "there is no schedule beat"
    status 2 weir schedule add x '0 0 31 2 *' y
    has err "never fires"
    status 2 weir schedule add x '@daily' y --missed sometimes
    status 2 weir schedule add x
    status 2 weir schedule pause all --tz Europe/Berlin
    has err "pause does not take --tz; it is an option of: add next import"
    weir check
}

case_no_schedules() {
    weir add mail -q
    status 0 weir schedule list
    has err "no schedules"
    status 0 weir schedule list --json
    [ ! -s out ] && [ ! -s err ]
}

case_a_schedule_of_a_server() {
    "$WEIR" serve --listen 127.0.0.1:0 --store mem: --data data >serve.out 2>serve.err </dev/null &
    local server=$!
    wait_for grep -q '^weir: serving ' serve.out
    export WEIR_STORE
    WEIR_STORE=$(sed -n 's/.* at \(http:.*\)$/\1/p' serve.out)
    weir schedule add beat '* * * * * *' beat
    two_are_there() { [ "$(weir count beat)" -ge 2 ]; }
    wait_for two_are_there
    same "$(weir schedule get beat --json | grep -c '"outcome":"fired"')" 1
    kill $server
    wait $server || true
}

case_a_crontab_becomes_schedules() {
    export WEIR_STORE=sqlite:jobs.db TZ=America/New_York
    cat >tab <<'EOF'
# what the night does
MAILTO=ann@example.org
COLOR = "dark red"
HOME=/
*/5 * 1,15 * 1-5    /usr/bin/backup --all
CRON_TZ=Europe/Berlin
30 6 * * */2 echo "$COLOR it's 5\%" >$OUT%first line%second line
30 6 * * 0 cat >$OUT2%first line%second line
@daily /usr/bin/backup --all
@reboot /usr/bin/start
61 * * * * true
0 0 * *
@hourly
EOF
    status 4 weir schedule import crontab tab
    has err 'line 10, column 1: @reboot is the start of a machine'
    has err 'line 11: "61 * * * *", column 1, minute'
    has err 'line 12, column 1: an entry has five fields and a command'
    has err 'line 13, column 8: the command is missing'
    has out '4 schedules made, 0 there already, 4 lines rejected'
    same "$(grep -c '^weir work cron-' out)" 3          # backup, once; echo; cat
    weir schedule list --json >list
    same "$(wc -l <list)" 4
    has list '"when":"*/5 * 1,15 * 1,2,3,4,5"'
    has list '"zone":"America/New_York","day_or_weekday":true'
    has list '"when":"30 6 * * 0,2,4,6"'
    has list '"zone":"Europe/Berlin"'
    has list '"missed":"skip"'
    sed 's/"explanation":"[^"]*",//' list >first         # it says how long until the next firing

    status 4 weir schedule import crontab tab          # again: nothing changes
    has out '0 schedules made, 4 there already, 4 lines rejected'
    weir schedule list --json | sed 's/"explanation":"[^"]*",//' >list
    cmp list first

    # the workers do what cron would do
    export OUT=$PWD/echoed OUT2=$PWD/copied
    for what in echo cat; do
        name=$(sed -n "s/^\(cron-$what-[0-9a-f]*\)  .*/\1/p" out | head -n 1)
        weir schedule fire "$name" >/dev/null
    done
    export PATH=${WEIR%/*}:$PATH
    grep -E '^weir work cron-(echo|cat)' out | sed 's/ --exec / --drain --exec /' >workers
    same "$(wc -l <workers)" 2
    bash -e workers
    same "$(cat "$OUT")" "dark red it's 5%"
    same "$(cat "$OUT2")" $'first line\nsecond line'
    same "$(weir count --state complete)" 2

    printf '17 * * * * root /bin/run-parts x\n' | weir schedule import crontab - --user-column \
        --tz UTC --json >out
    has out '"line":1,"name":"cron-run-parts-'
    has out '"zone":"UTC"'
    has out '"user":"root","command":"/bin/run-parts x"'
    status 2 weir schedule import anacron tab
    status 3 weir schedule import crontab nowhere
}

case_what_is_refused() {
    status 2 weir schedule next '0 0 32 * *'
    has err 'column 5, day of the month'
    status 2 weir schedule next '0 0 30 2 *'
    has err 'never fires'
    status 2 weir schedule next '@daily' --tz Mars/Olympus
    has err 'unknown time zone "Mars/Olympus"'
    status 2 weir schedule next 0 0 '1' '1' '*'
    has err 'write it in quotes'
    status 2 weir schedule next
    has err 'expected EXPR'
    status 2 weir schedule nxt '@daily'
    status 2 weir schedule next '@daily' -n 1001
}

case_without_tzdata() {
    export TZDIR=$PWD/nowhere
    same "$(weir schedule next '@daily' --from 2026-01-01T00:00:00Z -n 1)" 2026-01-02T00:00:00Z
    status 2 weir schedule next '@daily' --tz Europe/Berlin
    has err 'install the package tzdata'
}

case_examples_of_time_md() {
    mkdir bin
    ln -s "$WEIR" bin/weir
    export PATH=$PWD/bin:$PATH
    python3 "$here/run_examples.py" "$source_root/docs/time.md" http://127.0.0.1:1
    sed -n '/^```sh$/,/^```$/p' "$source_root/docs/time.md" | sed '1d; /^```/,$d' >first
    has first 'weir schedule add report'
    bash -eu first >out
    has out 'Europe/Berlin'
}

run_cases
