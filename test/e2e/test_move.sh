# test_move.sh - export, import and migrate: jobs come out as they went in, and a move that is killed
# again and again neither loses nor doubles one.
. "$(dirname "$0")/lib.sh"

on() { local store=$1; shift; weir --store "$store" "$@"; }
lines() { wc -l <"$1"; }

# A store with something of everything: 35 jobs, of them 8 delayed.
furnish() {
    local worker
    worked() { [ "$(on "$1" count mail --state inactive)" = 0 ] &&
               [ "$(on "$1" count mail --state active)" = 0 ]; }
    on "$1" types mail --new --keep-failed 30d --search on
    on "$1" add mail '{"to":"ann"}' --count 9 -q --attempts 2 --backoff exponential:1h:2h:20%
    "$WEIR" --store "$1" work mail -q --exec 'echo "log said" >&3; echo "progress 1/2 [1]" >&3
        [ $WEIR_JOB_ID -lt 5 ] && { echo no >&2; exit 3; }; echo "{\"r\":$WEIR_JOB_ID}"' &
    worker=$!
    wait_for worked "$1"
    kill $worker
    wait $worker
    on "$1" add mail '{"to":"bob"}' --count 21 -q
    on "$1" add late '[1,2.50]' --count 3 -q --delay 2h --ttl 5s
    on "$1" add late -q --at 2040-01-01 --unique k --max-lost 7 --remove-on-complete
    on "$1" add odd '"caf\u00e9"' -q --priority -7 --search-keys 'to' --deadline 2h
    on "$1" cancel 20 21
    on "$1" log 22 'a line "with" everything \ 	é'
    on "$1" pause odd
}

# redis_at SOCKET: a server, until the case is over.
redis_at() {
    redis-server --unixsocket "$1" --port 0 --save '' --daemonize no --dir "$PWD" \
        --logfile "$1.log" &
    redis=$!
    wait_for redis-cli -s "$1" ping
}

# ---- export and import ----

case_what_is_exported_can_be_imported() {
    furnish sqlite:a.db
    status 0 on sqlite:a.db export -o a.jsonl
    has out "35 jobs exported"
    same "$(lines a.jsonl)" 36
    json_lines a.jsonl
    has a.jsonl '"history":[{"n":1,'
    same "$(stat -c %a a.jsonl)" 600
    status 0 on sqlite:b.db import a.jsonl
    has out "35 jobs imported"
    on sqlite:b.db export >b.jsonl
    cmp a.jsonl b.jsonl
    status 0 on sqlite:b.db check
    same "$(on sqlite:b.db list --search 'ann said' --ids --all | lines /dev/stdin)" 9
    status 0 on sqlite:b.db import - <a.jsonl
    status 0 on sqlite:b.db import a.jsonl --json
    same "$(cat out)" '{"imported":0,"existed":35,"refused":0,"schedules":0}'
    on sqlite:b.db export >c.jsonl
    cmp a.jsonl c.jsonl
    same "$(on sqlite:b.db add new)" 36
}

case_a_part_can_be_exported() {
    furnish sqlite:a.db
    on sqlite:a.db export --state delayed --type late >out
    same "$(lines out)" 5
    has out '"types":[]'
    hasnt out '"type":"mail"'
    status 0 on sqlite:a.db export -t odd -o odd.jsonl --json
    same "$(cat out)" '{"jobs":1,"schedules":0,"file":"odd.jsonl"}'
    has odd.jsonl '{"weir":"export","version":1,"types":[{"type":"odd","paused":true}]}'
    status 2 on sqlite:a.db export --state asleep
    status 3 on sqlite:none.db export -o x.jsonl
    status 3 on sqlite:a.db export -o none/x.jsonl
    has err "none/x.jsonl: No such file or directory"
    status 9 on sqlite:a.db export -o /dev/full
    [ ! -e x.jsonl ]
}

case_new_ids() {
    furnish sqlite:a.db
    on sqlite:a.db export -o a.jsonl
    on sqlite:b.db add mine -q
    status 4 on sqlite:b.db import a.jsonl
    has err "line 2: job 1: this id is another job's here"
    has out "34 jobs imported, 1 refused"
    status 4 on sqlite:b.db import --new-ids a.jsonl
    has err "has its unique key now"
    has out "34 jobs imported, 1 refused"
    same "$(on sqlite:b.db count)" 69
    status 0 on sqlite:b.db check
}

case_what_is_no_job_is_named() {
    {
        echo '{"type":"mail"}'
        echo
        echo '{"type":"mail","priority":"soon"}'
        echo '{"type":"mail"}'
    } >bad.jsonl
    status 2 weir import bad.jsonl
    has err 'weir: line 3: priority: "soon" is not low, normal, medium, high, critical or a number'
    has out "1 job imported"
    same "$(weir count)" 1
    echo '{"type":"mail"' >bad.jsonl
    status 2 weir import bad.jsonl
    has err "line 1: not JSON at byte 14: the text ends too early"
    echo '{"weir":"export","version":9}' >bad.jsonl
    status 11 weir import bad.jsonl
    has err "line 1: version: 9, but this weir reads 1"
    echo '{"weir":"export","version":1,"types":[{"type":"a","keep_failed":{"age":"old"}}]}' >bad.jsonl
    status 2 weir import bad.jsonl
    has err "line 1: types[0].keep_failed: is not a whole number from 0 on"
    status 3 weir import none.jsonl
    has err "none.jsonl: No such file or directory"
    status 0 weir --store mem: import /dev/null
    has out "0 jobs imported"
    head -c 3000000 /dev/zero | tr '\0' 'x' >bad.jsonl
    status 2 weir import bad.jsonl
    has err "line 1: not JSON at byte 0"
}

# ---- migrate ----

case_all_moves() {
    furnish sqlite:a.db
    on sqlite:a.db export -o a.jsonl
    status 0 weir migrate --from sqlite:a.db --to sqlite:b.db
    has out "35 jobs moved"
    has out "settings of 2 types copied"
    same "$(on sqlite:a.db count)" 0
    on sqlite:b.db export >b.jsonl
    same_jobs a.jsonl b.jsonl
    status 0 on sqlite:a.db check
    status 0 on sqlite:b.db check
    status 0 weir migrate --from sqlite:b.db --to sqlite:a.db --json
    same "$(member moved)" 35
    same "$(member delayed)" 8
    same "$(member refusals)" 0
    json_lines out
    on sqlite:a.db export >b.jsonl
    same_jobs a.jsonl b.jsonl
}

case_a_bar_on_a_terminal() {
    on sqlite:a.db add mail --count 1000 -q
    env -u NO_COLOR TERM=xterm script -qefc "stty cols 80 rows 24
        $WEIR migrate --from sqlite:a.db --to sqlite:b.db" typescript >/dev/null 2>&1 </dev/null
    grep -q 'moving .*1,000 of 1,000' typescript
    has typescript "1,000 jobs moved"
}

case_a_copy_leaves_all_where_it_was() {
    furnish sqlite:a.db
    on sqlite:a.db export -o a.jsonl
    status 0 weir migrate --from sqlite:a.db --to sqlite:b.db --keep
    has out "35 jobs copied"
    on sqlite:a.db export >again.jsonl
    cmp a.jsonl again.jsonl
    on sqlite:b.db export >b.jsonl
    cmp a.jsonl b.jsonl
    status 0 weir migrate --from sqlite:a.db --to sqlite:b.db --keep
    has out "35 of them were in the target already"
    status 0 weir migrate --from sqlite:a.db --to sqlite:b.db        # and then for good
    has out "35 of them were in the target already"
    same "$(on sqlite:a.db count)" 0
    same "$(on sqlite:b.db count)" 35
}

case_what_cannot_be_moved_stays() {
    on sqlite:a.db add mail --count 3 -q
    on sqlite:b.db add other -q
    status 4 weir migrate --from sqlite:a.db --to sqlite:b.db
    has err "job 1: this id is another job's here"
    has out "2 jobs moved"
    has out "1 job was left in the source because the target rejected it"
    same "$(on sqlite:a.db list --ids --state inactive)" 1
    status 0 weir migrate --from sqlite:a.db --to sqlite:b.db --new-ids
    has out "1 job moved"
    same "$(on sqlite:b.db log 4 --json | member text /dev/stdin)" \
         'moved | job 1 becomes job 4, or the next that will do'
    same "$(on sqlite:b.db count mail --state inactive)" 3
}

case_wrong_use() {
    on sqlite:a.db add mail -q
    status 2 weir migrate --from sqlite:a.db
    has err "--from URL and --to URL are needed"
    status 2 weir migrate --from sqlite:a.db --to sqlite:./a.db
    has err "are the same store"
    status 2 weir migrate --from sqlite:a.db --to mem:
    status 2 weir migrate --from sqlite:a.db --to sqlite:b.db --keep --follow
    status 3 weir migrate --from sqlite:none.db --to sqlite:b.db
    has err "--from: there is no store sqlite:none.db"
    [ ! -e none.db ]
    status 2 weir migrate --from sqlite:a.db --to nowhere:
    has err "--to: store URL"
    status 6 weir migrate --from sqlite:a.db --to redis+unix://$PWD/none
    same "$(on sqlite:a.db count)" 1
}

# Killed after a time that grows, until it comes to its end by itself. `left` is its exit status.
killed_again_and_again() {
    local ms=8 tries=0      # the first kills come every few ms: a quick machine is soon done
    while :; do
        "$WEIR" migrate "$@" >out 2>err &
        local pid=$!
        sleep "$((ms / 1000)).$(printf '%03d' $((ms % 1000)))"
        kill -9 $pid 2>/dev/null || true
        left=0
        wait $pid 2>/dev/null || left=$?
        [ $left = 137 ] || break
        tries=$((tries + 1))
        if [ $tries -lt 12 ]; then
            ms=$((ms + 4))
        else
            ms=$((20 + (ms * 7 + 13) % (60 + tries * 8)))
        fi
        [ $tries -lt 400 ] || { echo "not done after $tries kills"; return 1; }
    done
    echo "killed $tries times"
    same $left 0
    [ $tries -gt 2 ]
}

# So many jobs, each with its own number and a line in its log; the first third are done.
many() {
    seq "$2" | sed 's/.*/{"n":&}/' | on "$1" add t --lines -q
    seq 300 | on "$1" add late --lines -q --delay 5h
    on "$1" log 7 'seven'
    on "$1" export >all.jsonl
    awk -v n="$2" -v now="$(date +%s)000" 'NR > 1 && NR <= n / 3 {
        sub(/"state":"inactive"/, "\"state\":\"complete\",\"finished_at\":" now)
        sub(/"attempts":0,"progress":0/, "\"attempts\":1,\"progress\":100") } { print }' \
        all.jsonl >some.jsonl
    rm -f "${1#sqlite:}"*
    on "$1" import some.jsonl
}

# The same jobs, but for when they were last changed: parking is a change.
same_jobs() {
    sed 's/,"updated_at":[0-9]*//' "$1" | tail -n +2 | sort >one
    sed 's/,"updated_at":[0-9]*//' "$2" | tail -n +2 | sort >two
    cmp one two
}

case_schedules_are_exported() {
    on sqlite:a.db schedule add s '@hourly' mail '{"a":1}' --tz Europe/Berlin --missed all --overlap skip
    on sqlite:a.db schedule add t 'every 90m' late --paused
    on sqlite:a.db schedule fire s
    on sqlite:a.db schedule fire s
    status 0 on sqlite:a.db export -o a.jsonl
    has out "2 jobs and 2 schedules exported"
    json_lines a.jsonl
    status 0 on sqlite:b.db import a.jsonl
    has out "2 jobs imported; 2 schedules imported, 0 there already"
    on sqlite:b.db export >b.jsonl
    cmp a.jsonl b.jsonl
    on sqlite:b.db schedule pause s
    status 0 on sqlite:b.db import a.jsonl
    has out "0 jobs imported, 2 there already; 0 schedules imported, 2 there already"
    has <(on sqlite:b.db schedule get s) 'It is paused'
    same "$(on sqlite:a.db export mail | lines /dev/stdin)" 4
    same "$(on sqlite:a.db export --state inactive | lines /dev/stdin)" 3
    on sqlite:c.db add other -q
    status 0 on sqlite:c.db import a.jsonl --new-ids
    has <(on sqlite:c.db schedule get s --json) '"last_job":0,"fired":2'
    sed 's/"when":"@hourly"/"when":"61 * * * *"/' a.jsonl >wrong.jsonl
    status 2 on sqlite:d.db import wrong.jsonl
    has err 'line 2: "61 * * * *", column 1, minute'
}

# Firings of every second, while the move is killed again and again: each has its job, once.
case_schedules_move_once() {
    redis_at "$PWD/s"
    local from=sqlite:a.db to=redis+unix://$PWD/s i
    for i in 1 2 3 4 5 6 7 8; do
        on $from schedule add s$i '* * * * * *' t --missed all --missed-limit 1000
    done
    on $from schedule add slow '@yearly' t --paused
    three_have_fired() { [ "$(on $from count)" -ge 24 ]; }
    "$WEIR" --store $from work none --exec true -q &
    local source=$!
    "$WEIR" --store $to work none --exec true -q &
    local target=$!
    wait_for three_have_fired
    killed_again_and_again --from $from --to $to
    same "$(on $from schedule list --json | lines /dev/stdin)" 0
    same "$(on $to schedule list --json | lines /dev/stdin)" 9
    has <(on $to schedule get slow) 'It is paused'
    status 0 weir migrate --from $from --to $to --json
    has out '"schedules":0,"schedules_left":0'
    local moved
    moved=$(on $to count)
    more_have_fired() { [ "$(on $to count)" -ge $((moved + 16)) ]; }
    wait_for more_have_fired
    for i in 1 2 3 4 5 6 7 8; do
        on $to schedule pause s$i
    done
    kill $source $target
    wait $source $target || true
    same "$(on $from count)" 0
    on $to export >all.jsonl
    grep -v '^{"weir"' all.jsonl | grep -o '"schedule":"s[0-9]*","scheduled_at":[0-9]*' |
        tr -dc '0-9:\n' | sort -t: -k2n -k3n >fired
    same "$(sort -u fired | lines /dev/stdin)" "$(lines fired)"         # none doubled
    awk -F: '$2 == last && $3 != at + 1000 { print "missing before", $0; bad = 1 }
        { last = $2; at = $3 } END { exit bad }' fired                  # none missing
    status 0 on $to check

    on $from schedule add s1 '@daily' t
    status 4 weir migrate --from $from --to $to
    has out '1 schedule was left in the source: schedule s1: the target has one of this name'
    on $from schedule rm s1
    on $from schedule add u '@daily' t
    status 0 weir migrate --from $from --to $to --keep
    has out '1 schedule copied'
    has <(on $from schedule list) u
}

case_killed_at_any_time() {
    many sqlite:a.db 9000
    on sqlite:a.db export >a.jsonl
    killed_again_and_again --from sqlite:a.db --to sqlite:b.db
    same "$(on sqlite:a.db count)" 0
    on sqlite:b.db export >b.jsonl
    same_jobs a.jsonl b.jsonl
    status 0 on sqlite:a.db check
    status 0 on sqlite:b.db check
}

case_killed_at_any_time_with_new_ids() {
    many sqlite:a.db 3000
    on sqlite:b.db add mine -q
    on sqlite:a.db export >a.jsonl
    killed_again_and_again --from sqlite:a.db --to sqlite:b.db --new-ids
    same "$(on sqlite:a.db count)" 0
    same "$(on sqlite:b.db count)" 3301
    # each once: its data tells which
    on sqlite:b.db list t --all --json | grep -o '"data":{"n":[0-9]*}' | sort -u >seen
    same "$(lines seen)" 3000
    same "$(on sqlite:b.db count t --state complete)" "$(grep -c '"complete"' a.jsonl)"
    status 0 on sqlite:b.db check
}

# each_runs_once FROM TO [OPTIONS]: the mover is killed again and again while a worker of the target
# runs what arrives. Jobs are gone when they are done, because each says so, or with `by_type` because
# of its type: so only the ledger `ran` tells of them. WEIR_TEST_MOVES: how many jobs, for a longer run.
each_runs_once() {
    local from=$1 to=$2 n=${WEIR_TEST_MOVES:-400} vanish=--remove-on-complete work before
    shift 2
    if [ "${1:-}" = by_type ]; then
        on "$from" types t --new --keep-complete 1ms
        vanish=
        shift
    fi
    seq "$n" | sed 's/.*/{"n":&}/' | on "$from" add t --lines -q $vanish
    "$WEIR" --store "$to" work t -j 4 -q --exec 'echo "$(cat)" >>ran' 2>worker.err &
    work=$!
    killed_again_and_again --from "$from" --to "$to" "$@"
    none_left() { [ "$(on "$to" count)" = 0 ]; }
    more() { none_left || [ "$(lines ran)" -gt "$before" ]; }
    until none_left; do
        before=$(lines ran)
        wait_for more
    done
    kill $work
    wait $work || true
    same "$(on "$from" count)" 0
    sort ran | uniq -d >twice
    same "$(cat twice)" ""
    same "$(lines ran)" "$n"
    rm ran
    status 0 on "$from" check
    status 0 on "$to" check
}

case_removed_when_done_in_a_file() {
    each_runs_once sqlite:a.db sqlite:b.db
    each_runs_once sqlite:c.db sqlite:d.db --new-ids
    each_runs_once sqlite:e.db sqlite:f.db by_type
}

# ---- on Redis ----

case_removed_when_done_in_kue() {
    redis_at "$PWD/s"
    local kue="redis+kue+unix://$PWD/s" profile
    for profile in kue vertx; do
        each_runs_once "sqlite:$profile.db" "$kue?profile=$profile&prefix=$profile"
        each_runs_once "sqlite:$profile-types.db" "$kue?profile=$profile&prefix=$profile-types" by_type
        each_runs_once "sqlite:$profile-ids.db" "$kue?profile=$profile&prefix=$profile-ids" --new-ids
    done
}

case_removed_when_done() {
    redis_at "$PWD/s"
    local redis="redis+unix://$PWD/s" url
    "$WEIR" serve --store sqlite:served.db --listen 127.0.0.1:0 >served 2>&1 &
    wait_for grep -q serving served
    url=$(grep -o 'http://[0-9.:]*' served | head -1)
    each_runs_once sqlite:a.db "$redis?prefix=a"
    each_runs_once "$redis?prefix=b" "$redis?prefix=c" --new-ids
    each_runs_once "$redis?prefix=d" "$url"
    each_runs_once "$url" "$redis?prefix=e" --new-ids
}

case_to_redis_and_back() {
    redis_at "$PWD/s"
    furnish sqlite:a.db
    on sqlite:a.db export -o a.jsonl
    status 0 weir migrate --from sqlite:a.db --to "redis+unix://$PWD/s"
    on "redis+unix://$PWD/s" export >b.jsonl
    same_jobs a.jsonl b.jsonl
    status 0 weir migrate --from "redis+unix://$PWD/s" --to "redis+unix://$PWD/s?prefix=other"
    status 0 weir migrate --from "redis+unix://$PWD/s?prefix=other" --to sqlite:c.db
    on sqlite:c.db export >c.jsonl
    same_jobs a.jsonl c.jsonl
    same "$(on "redis+unix://$PWD/s" count)" 0
    on "redis+unix://$PWD/s" add mail -q
    status 2 weir migrate --from "redis+unix://$PWD/s" --to "redis+unix://$PWD/./s"
    has err "the target is the source"
    same "$(on "redis+unix://$PWD/s" count)" 1
}

case_from_kue_and_back() {
    redis_at "$PWD/s"
    furnish sqlite:a.db
    local kue="redis+kue+unix://$PWD/s" native="redis+unix://$PWD/s"
    status 0 weir migrate --from sqlite:a.db --to "$kue"
    on "$kue" export -o a.jsonl
    status 0 weir migrate --from "$kue" --to "$native"
    has out "35 jobs moved"
    same "$(on "$kue" count)" 0
    on "$native" export -o b.jsonl
    same_jobs a.jsonl b.jsonl
    status 0 weir migrate --from "$native" --to "$kue"
    on "$kue" export -o c.jsonl
    same_jobs a.jsonl c.jsonl
    status 0 on "$kue" check
    status 0 on "$native" check
}

# A unique key is looked for in one partition, and an id belongs to one: they may not go together.
case_to_several_partitions() {
    redis_at "$PWD/s"
    local to="redis+unix://$PWD/s?partitions=16" i
    on sqlite:a.db add t --count 40 -q
    for i in $(seq 20); do on sqlite:a.db add t -q --unique "key $i" --delay 1h; done
    status 4 weir migrate --from sqlite:a.db --to "$to"
    has err "its unique key belongs to another partition here than its id"
    same "$(on "$to" count --state inactive)" 40
    status 0 weir migrate --from sqlite:a.db --to "$to" --new-ids
    same "$(on "$to" count --state delayed)" 20
    for i in $(seq 20); do
        same "$(on "$to" add t --json --unique "key $i" | member existed /dev/stdin)" true
    done
    status 0 on "$to" check
    status 0 weir migrate --from "$to" --to sqlite:b.db
    same "$(on sqlite:b.db count)" 60
}

# Producers and workers on both sides all the while; the mover is killed now and then.
case_in_full_use() {
    redis_at "$PWD/s"
    local old="redis+unix://$PWD/s?prefix=old" new="redis+unix://$PWD/s?prefix=new" pid i work=
    for side in old new; do
        "$WEIR" --store "${!side}" work t u -j 2 -q --exec 'echo "$(cat)" >>ran' 2>>worker.err &
        work="$work $!"
    done
    on "$old" add t '"first"' -q
    for i in 1 2 3 4 5 6; do
        "$WEIR" migrate --from "$old" --to "$new" --follow >>moves 2>&1 &
        pid=$!
        seq $((i * 1000)) $((i * 1000 + 49)) | on "$old" add t --lines -q
        seq $((i * 1000 + 50)) $((i * 1000 + 69)) | on "$old" add u --lines -q --delay 300ms
        seq $((i * 1000 + 70)) $((i * 1000 + 99)) | on "$new" add t --lines -q
        sleep 0.$((i * 13 % 40 + 10))
        kill -9 $pid
        wait $pid || true
    done
    "$WEIR" migrate --from "$old" --to "$new" --follow --json >last &
    pid=$!
    moved() { [ "$(on "$old" count)" = 0 ] && [ "$(on "$new" count --state complete)" = 601 ]; }
    wait_for moved
    kill -INT $pid
    wait $pid
    json_lines last
    kill $work
    wait $work || true
    same "$(lines ran)" 601
    same "$(sort -u ran | lines /dev/stdin)" 601
    status 0 on "$old" check
    status 0 on "$new" check
}

run_cases
