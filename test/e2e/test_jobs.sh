# test_jobs.sh - adding, finding, changing and counting jobs with the command line.
. "$(dirname "$0")/lib.sh"

case_version() {
    status 0 weir version
    has out "weir 0."
    status 0 weir --version
    status 0 weir version --json
    json_lines out
}

case_help_of_every_command() {
    status 0 weir help
    narrow out
    local name
    for name in $(sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p' out); do
        status 0 weir help "$name"
        narrow out
        has out "Usage: weir $name"
        cp out first
        status 0 weir "$name" --help
        cmp out first
    done
}

case_no_command() {
    status 2 weir
    has err "Usage:"
    status 2 weir lsit
    has err "did you mean 'list'"
    status 2 weir help nonsense
}

case_bad_options() {
    status 2 weir add
    has err "TYPE is missing"
    has err "weir help add"
    status 2 weir add mail --bogus
    has err "--bogus"
    status 2 weir add mail --delay
    has err "--delay needs a value"
    status 2 weir add mail --search=yes
    has err "--search takes no value"
    status 2 weir add mail '{}' extra
    has err "extra"
    status 2 weir list -z
    has err "-z"
    [ ! -e jobs.db ]
}

case_bad_values() {
    status 2 weir add mail --attempts 0
    has err "--attempts"
    has err "1 to 1000000"
    status 2 weir add mail --attempts many
    status 2 weir add mail --attempts 99999999999999999999
    status 2 weir add mail --priority 99999999999
    has err "--priority"
    has err "2147483647"
    status 2 weir add mail --priority urgent
    status 2 weir add mail --delay -5s
    has err "--delay"
    status 2 weir add mail --delay 5x
    status 2 weir add mail --ttl 0
    has err "--ttl"
    status 2 weir add mail --backoff sometimes
    has err "--backoff"
    status 2 weir add mail --at yesterday
    has err "--at"
    status 2 weir add mail --at 2026-02-30T10:00
    status 2 weir add mail --at 25:00
    status 2 weir add mail --deadline soon
    status 2 weir add mail --delay 5s --at 09:00
    has err "exclude"
    status 2 weir list --state done
    has err "--state"
    status 2 weir list --limit 0
    status 2 weir list --after nonsense
    has err "--after"
    status 2 weir get abc
    has err "abc"
    status 2 weir get 0
    status 2 weir get -- -1
    [ ! -e jobs.db ]
}

case_bad_data_changes_nothing() {
    status 0 weir add mail
    status 2 weir add mail '{"to":'
    has err "data"
    status 2 weir add mail ''
    has err "data"
    status 2 weir add '' '{}'
    has err "type"
    status 2 weir add "$(printf 'a%.0s' $(seq 129))"
    has err "128"
    status 2 weir add "$(printf 'a\tb')"
    has err "type"
    head -c 1100000 /dev/zero | tr '\0' 1 >big
    local got=0
    weir add mail - <big >out 2>err || got=$?
    same $got 2
    has err "1048576"
    status 0 weir count
    same "$(cat out)" 1
}

case_add_prints_the_id() {
    status 0 weir add mail '{"to":"ann"}'
    same "$(cat out)" 1
    status 0 weir add mail
    same "$(cat out)" 2
    status 0 weir add mail --json
    json_lines out
    same "$(member id)" 3
    same "$(member state)" inactive
    same "$(member existed)" false
    echo '{"from":"stdin"}' | weir add mail - >out
    status 0 weir get 4 --json
    has out '{"from":"stdin"}'
}

case_get_json_has_kues_names() {
    status 0 weir add mail '{"to":"ann"}' --priority high --attempts 3 --delay 1h --ttl 30s \
        --backoff exponential:1s:60s --unique ann --remove-on-complete
    status 0 weir get 1 --json
    json_lines out
    same "$(wc -l <out)" 1
    same "$(member id)" 1
    same "$(member type)" mail
    same "$(member priority)" -10
    same "$(member state)" delayed
    same "$(member delay)" 3600000
    same "$(member max_attempts)" 3
    same "$(member attempts)" 0
    same "$(member progress)" 0
    same "$(member ttl)" 30000
    same "$(member unique)" ann
    has out '"data":{"to":"ann"}'
    local name
    for name in created_at promote_at updated_at; do
        [[ $(member $name) =~ ^[0-9]{13}$ ]]
    done
    same $(($(member promote_at) - $(member created_at))) 3600000
    status 0 weir get 1
    has out "delayed"
    has out "-10 (high)"
    narrow out
}

case_get_of_no_job() {
    status 3 weir get 1
    has err "weir add"
    weir add mail
    status 3 weir get 99
    has err "99"
}

case_no_store_yet() {
    local cmd
    for cmd in list count stats types top check watch; do
        status 3 weir $cmd
        has err "weir add"
    done
    [ ! -e jobs.db ]
}

case_default_store() {
    unset WEIR_STORE
    status 0 weir add mail
    [ -e "$HOME/.local/share/weir/jobs.db" ]
    same "$(stat -c %a "$HOME/.local/share/weir")" 700
    status 0 env XDG_DATA_HOME="$HOME/data" "$WEIR" add mail
    [ -e "$HOME/data/weir/jobs.db" ]
    status 2 env -u HOME "$WEIR" add mail
    has err "WEIR_STORE"
}

case_store_option() {
    status 0 weir add mail --store sqlite:a.db
    status 0 weir --store sqlite:a.db add mail
    status 0 weir --store sqlite:a.db count
    same "$(cat out)" 2
    [ ! -e jobs.db ]
    status 2 weir --store nonsense:x count
    has err "nonsense"
    echo "this is no database, but it is long enough to be looked at as one" >text.db
    status 10 weir --store sqlite:text.db add mail
    has err "text.db"
}

case_times() {
    local now at
    weir add a --at 2030-01-02T03:04:05Z
    weir add a --at 2030-01-02T03:04:05+01:00
    weir add a --at 1893553445000
    weir add a --at 2030-01-02T03:04
    weir add a --at 2030-01-02
    weir add a --at 03:04
    weir add a --at 2001-01-01T00:00Z
    weir add a --deadline 2h
    weir add a --at 1960-01-01
    weir add a --deadline 1970-01-01T00:00Z
    status 0 weir get 1 --json; same "$(member promote_at)" 1893553445000
    status 0 weir get 2 --json; same "$(member promote_at)" 1893549845000
    status 0 weir get 3 --json; same "$(member promote_at)" 1893553445000
    status 0 weir get 4 --json; same "$(member promote_at)" 1893553440000
    status 0 weir get 5 --json; same "$(member promote_at)" 1893542400000
    status 0 weir get 6 --json
    now=$(date +%s)000
    at=$(member promote_at)
    [ "$at" -gt "$now" ] && [ "$at" -le $((now + 86400000)) ]
    same $((at / 60000 % 1440)) 184
    status 0 weir get 7 --json; same "$(member state)" inactive
    status 0 weir get 8 --json
    at=$(member deadline)
    [ "$at" -gt $((now + 7190000)) ] && [ "$at" -lt $((now + 7210000)) ]
    status 0 weir get 9 --json; same "$(member state)" inactive
    status 0 weir get 10 --json; same "$(member deadline)" 1
}

case_unique() {
    status 0 weir add mail --unique k
    status 0 weir add mail --unique k --json
    same "$(member id)" 1
    same "$(member existed)" true
    status 0 weir add other --unique k
    same "$(cat out)" 2
}

case_many() {
    status 0 weir add mail '{"n":1}' --count 2500
    same "$(wc -l <out)" 2500
    same "$(tail -1 out)" 2500
    status 0 weir count
    same "$(cat out)" 2500
    status 0 weir add mail --count 3 --quiet
    [ ! -s out ]
    status 2 weir add mail --count 0
    seq 1500 | weir add nums --lines >out
    same "$(wc -l <out)" 1500
    status 0 weir get 4003 --json
    same "$(member data)" 1500
}

case_lines_name_the_bad_one() {
    local got=0
    printf '{"a":1}\n\n{"a":2}\n{oops}\n{"a":3}\n' | weir add t --lines >out 2>err || got=$?
    same $got 2
    has err "line 4"
    status 0 weir count
    same "$(cat out)" 0
}

case_lines_have_a_ceiling() {
    local got=0
    { echo '{"a":1}'; head -c 5000000 /dev/zero | tr '\0' 7; echo; } |
        weir add t --lines >out 2>err || got=$?
    same $got 2
    has err "line 2"
    has err WEIR_MAX_DATA
    status 0 weir count
    same "$(cat out)" 0
}

case_list() {
    weir add mail '{"n":1}' --count 30 -q
    weir add video --delay 1h
    status 0 weir list
    narrow out
    has err "--after"
    same "$(wc -l <out)" 21
    local cursor
    cursor=$(sed -n 's/.*--after \([^,]*\),.*/\1/p' err)
    status 0 weir list --after "$cursor" --json
    same "$(wc -l <out)" 11
    json_lines out
    [ ! -s err ]
    status 0 weir list --all --ids
    same "$(wc -l <out)" 31
    status 0 weir list --state delayed --json
    same "$(member type)" video
    same "$(wc -l <out)" 1
    status 0 weir list mail --limit 1 --json
    same "$(member id)" 30
    status 0 weir list mail --reverse --limit 1 --json
    same "$(member id)" 1
    status 0 weir list mail --state failed
    has err "no jobs"
    status 0 weir list mail --state failed --json
    [ ! -s out ]
}

case_list_is_in_the_order_of_running() {
    weir add a
    weir add a --priority high
    weir add a --priority low
    weir add a --priority high
    status 0 weir list --state inactive --ids
    same "$(tr '\n' ' ' <out)" "2 4 1 3 "
}

case_list_by_priority() {
    weir add a --priority high --delay 1h
    weir add a --priority high
    weir add b --priority 7 --delay 1h --count 30 -q
    weir add a --delay 1h
    status 0 weir list --priority high --ids
    same "$(tr '\n' ' ' <out)" "2 1 "
    status 0 weir list --state delayed --priority -10 --ids
    same "$(cat out)" 1
    status 0 weir list --priority 7 --limit 25 --ids
    same "$(wc -l <out)" 25
    has err "--after"
    status 0 weir list -p 8
    has err "no jobs"
    status 2 weir list --priority urgent
    status 0 weir count --priority 7; same "$(cat out)" 30
    status 0 weir count a --priority normal --state delayed; same "$(cat out)" 1
    status 0 weir export --priority high
    same "$(grep -c '"type":"a"' out)" 2
}

case_search() {
    weir add mail '{"to":"ann","subject":"invoice overdue"}' --search
    weir add mail '{"to":"bob","subject":"invoice paid"}' --search
    weir add mail '{"to":"ann","subject":"secret"}' --search-keys to
    weir add mail '{"to":"ann"}'
    status 0 weir list --search "invoice ann" --ids
    same "$(cat out)" 1
    status 0 weir list --search "inv*" --ids
    same "$(tr '\n' ' ' <out)" "2 1 "
    status 0 weir list --search "secret" --ids
    [ ! -s out ]
    status 0 weir list --search "ann" --ids
    same "$(tr '\n' ' ' <out)" "3 1 "
}

case_stats_and_top_of_some_types() {
    weir add mail -q --count 2
    weir add video -q
    status 0 weir stats mail
    has out "mail"
    hasnt out "video"
    hasnt out "all"
    status 0 weir stats -t mail --type video --json
    same "$(wc -l <out)" 2
    has out '"type":"video"'
    status 0 weir top mail --once
    has out "2 inactive"
    has out "mail"
    hasnt out "video"
    status 0 weir top -t mail --json
    has out '"inactive":2'
}

case_count_and_stats() {
    weir add mail --count 3 -q
    weir add video --delay 1h
    status 0 weir count; same "$(cat out)" 4
    status 0 weir count mail; same "$(cat out)" 3
    status 0 weir count --state delayed; same "$(cat out)" 1
    status 0 weir count mail --state delayed; same "$(cat out)" 0
    status 3 weir count never-seen
    status 0 weir count --json; json_lines out; same "$(member count)" 4
    status 0 weir stats
    narrow out
    has out "video"
    status 0 weir stats --json
    json_lines out
    same "$(wc -l <out)" 1
    status 0 weir types
    narrow out
    status 0 weir types --json
    json_lines out
    same "$(wc -l <out)" 2
    status 3 weir types never-seen
}

case_retention_by_default() {
    weir add mail -q
    status 0 weir types
    narrow out
    has out "7d,100000"
    has out "90d"
    status 0 weir types mail --json
    has out '"keep_complete":{"age":604800000,"count":100000},"keep_failed":{"age":7776000000,"count":0}'
    status 0 weir types '*' --keep-complete forever --keep-failed forever
    status 0 weir types mail
    same "$(grep -c 'forever *forever' out)" 1
    status 0 weir types '*' --keep-complete default
    status 0 weir types mail
    has out "7d,100000"
}

case_settings() {
    weir add mail
    status 0 weir types mail --keep-complete 7d,1000 --keep-failed 30d --search on
    status 0 weir types mail --json
    has out '"keep_complete":{"age":604800000,"count":1000}'
    has out '"keep_failed":{"age":2592000000,"count":0}'
    has out '"search":true'
    status 0 weir types mail --keep-failed forever
    status 0 weir types mail --json
    has out '"keep_complete":{"age":604800000,"count":1000}'
    has out '"keep_failed":{"age":0,"count":0}'
    status 0 weir types '*' --keep-complete 500
    status 2 weir types mail --keep-complete x
    has err "--keep-complete"
    status 2 weir types mail --search maybe
    status 2 weir types --search on
    weir add mail '{"who":"zoe"}'
    status 0 weir list --search zoe --ids
    same "$(cat out)" 2
}

case_log() {
    weir add mail
    status 0 weir log 1
    [ ! -s out ]
    status 0 weir log 1 "hello there"
    status 0 weir log 1 "and more"
    status 0 weir log 1
    same "$(wc -l <out)" 2
    has out "hello there"
    status 0 weir log 1 --json
    json_lines out
    status 3 weir log 9
    status 3 weir log 9 text
    status 2 weir log
}

case_log_shows_no_control_characters() {
    weir add "t" "$(printf '{"a":"\\u001b[31mred"}')"
    weir log 1 "$(printf '\033]0;title\007\033[31mred')"
    status 0 weir log 1
    hasnt out "$(printf '\033')"
    status 0 weir log 1 --json
    hasnt out "$(printf '\033')"
    json_lines out
}

case_life_by_hand() {
    weir add mail --delay 1h
    status 0 weir promote 1
    status 4 weir promote 1
    has err "inactive"
    status 4 weir retry 1
    status 0 weir cancel 1
    status 4 weir cancel 1
    has err "cancelled"
    status 0 weir retry 1
    status 0 weir rm 1
    status 3 weir rm 1
    status 2 weir rm
    status 3 weir rm x
    status 2 weir rm 1 x
    status 2 weir rm 1 --all --state failed
}

case_several_ids() {
    weir add mail --count 3 -q
    status 3 weir rm 1 77 2 --json
    json_lines out
    same "$(wc -l <out)" 3
    has out '"code":"ENOENT"'
    status 0 weir count
    same "$(cat out)" 1
}

case_all_of_a_priority() {
    weir add mail --count 30 --priority low -q
    weir add mail --count 5 --priority high --delay 1h -q
    status 0 weir promote --priority high --json
    same "$(member count)" 5
    status 0 weir cancel mail --priority high --json
    same "$(member count)" 5
    status 0 weir rm --priority low --state inactive --json
    same "$(member count)" 30
    status 0 weir count; same "$(cat out)" 5
    status 2 weir rm 31 --priority high
}

case_all_of_a_kind() {
    weir add mail --count 1500 --delay 1h -q
    weir add video --count 5 -q
    status 0 weir promote --type mail --all
    [ ! -s out ]
    status 0 weir count mail --state inactive; same "$(cat out)" 1500
    status 0 weir cancel --type mail --all --json
    same "$(member count)" 1500
    status 0 weir retry --type mail --json
    same "$(member count)" 0
    status 0 weir retry mail --state cancelled,failed --json
    same "$(member count)" 1500
    status 0 weir rm --type mail --json
    same "$(member count)" 1500
    status 0 weir count; same "$(cat out)" 5
    status 0 weir check
}

case_update() {
    weir add mail '{"a":1}'
    status 0 weir update 1 --priority high --delay 1h --data '{"a":2}'
    status 0 weir get 1 --json
    same "$(member priority)" -10
    same "$(member state)" delayed
    has out '"data":{"a":2}'
    status 0 weir update 1 --state inactive --json
    json_lines out
    same "$(member state)" inactive
    status 2 weir update 1
    status 2 weir update 1 --data '{'
    status 3 weir update 5 --priority low
    status 0 weir update 1 --state complete --json
    same "$(member state)" complete
    status 0 weir update 1 --state failed --json
    same "$(member error)" 'Failed by hand'
    status 0 weir update 1 --state active --json
    same "$(member state)" active
    status 0 weir update 1 --state cancelled
    status 0 weir get 1 --json
    same "$(member state)" cancelled
}

case_values() {
    status 2 weir add mail --set 'color=dark red' --set x=null
    has err "values.x: null is no value"
    status 2 weir add mail --set color
    has err "--set: 'color' is not NAME=VALUE"
    status 2 weir add mail --set state=1
    has err "values.state"
    weir add mail --set 'color=dark red' --set n=5 --set 'list=[1, 2]' --set 'text="5"'
    status 0 weir get 1 --json
    has out '"values":{"color":"dark red","list":[1, 2],"n":5,"text":"5"}'
    status 0 weir set 1 n=6 color=null 'a:b=c=d' --json
    has out '"values":{"a:b":"c=d","list":[1, 2],"n":6,"text":"5"}'
    status 0 weir get 1
    has out 'values       {"a:b":"c=d",'
    status 2 weir set 1
    status 2 weir set 1 n
    has err "'n' is not NAME=VALUE"
    status 2 weir set 1 'bad name=1'
    has err "is not a name"
    status 3 weir set 7 n=1
    weir work mail --drain --quiet --exec true
    status 0 weir set 1 after=yes
    status 0 weir get 1 --json
    has out '"after":"yes"'
}

case_pause_and_resume() {
    status 3 weir pause mail
    status 0 weir pause mail --new
    weir add mail
    status 0 weir types --json
    same "$(member paused)" true
    status 0 weir resume mail --json
    json_lines out
    status 0 weir types --json
    same "$(member paused)" false
    status 2 weir pause
    has err "which types? Name some, or --all for every type"
    status 2 weir pause mail --all
    has err "TYPE and --all exclude each other"
    status 0 weir pause --all
    status 0 weir stats
    has out "all (paused)"
    status 2 weir resume
    status 0 weir resume --all
    status 0 weir stats
    hasnt out "paused"
}

case_errors() {
    weir add later --delay 1h -q
    status 0 weir errors
    has err "no job has failed"
    for to in ann bob eve; do weir add mail "{\"to\":\"$to\"}" -q; done
    weir add sms -q
    echo 'read -r d; case $d in *to*) echo "no user $(echo "$d" | tr -dc "a-z:\"")" ;; *) echo "timeout after 30s" ;;
        esac >&2; exit 1' >bad
    weir work mail sms --exec 'sh bad' --drain >work.out 2>&1
    status 0 weir errors
    narrow out
    has out 'exit status *: no user "*":"*"'
    has out 'exit status *: timeout after *s'
    status 0 weir errors mail --json
    json_lines out
    has out '"count":3'
    hasnt out timeout
    status 3 weir errors never-seen
    same "$(weir list --error 'exit status *: no user "*":"*"' --ids | tr '\n' ' ')" "4 3 2 "
    same "$(weir count mail --error 'exit status *: timeout after *s')" 0
    status 0 weir retry --error 'exit status *: no user "*":"*"'
    same "$(weir count --state inactive)" 3
    status 0 weir rm --error 'exit status *: timeout after *s'
    same "$(weir count --state failed)" 0
}

case_explain() {
    weir add mail --delay 1h
    status 0 weir explain 1
    narrow out
    has out "delayed"
    has out "Timeline"
    status 0 weir explain 1 --json
    json_lines out
    has out '"why":"'
    status 3 weir explain 2
    status 2 weir explain
}

case_explain_a_type() {
    weir add mail --delay 1h --quiet
    status 0 weir explain mail
    narrow out
    has out "type mail"
    has out "None of its jobs waits or runs. 1 is delayed."
    weir add mail --quiet
    weir explain mail | tr -s "\n " " " >out
    has out "1 of its jobs waits for a worker"
    has out "None was ever taken"
    has out "weir work mail --exec COMMAND"
    weir pause mail
    status 0 weir explain mail --json
    json_lines out
    has out '"why":"Its jobs are not taken, because the type is paused. 1 is delayed."'
    has out "\"help\":\"weir resume 'mail'\""
    status 3 weir explain mial
    has err "did you mean 'mail'?"
    weir schedule add report '@daily' mail --quiet
    status 3 weir explain report
    has err "weir schedule explain report"
    status 0 weir explain 1 mail
}

case_story() {
    weir add mail --delay 1h -p high
    weir update 1 --priority low
    weir promote 1
    weir cancel 1
    weir retry 1
    echo 'echo "no luck with this one, and a text that is long enough to be wrapped" >&2; exit 1' >bad
    weir work mail --exec 'sh bad' --drain >work.out 2>&1
    for command in get explain; do
        status 0 weir $command 1
        narrow out
        for words in "added, priority -10, 1 attempt" "priority 10 (it was -10)" \
            "promoted by hand" "cancelled by hand" "retried by hand" "(delivery 1)" \
            "failed for good after"; do
            has out "$words"
        done
    done
    status 0 weir get 1 --json
    has out '"history":[{"n":1,'
    has out '"event":"failed","state":"failed","delivery":1,"worker":"'
}

case_check() {
    weir add mail --count 10 -q
    status 0 weir check
    has out "10 jobs"
    status 0 weir check --mend
    status 0 weir check --json
    json_lines out
    same "$(member mended)" 0
}

case_a_damaged_store() {
    weir add mail '{"a":"some data that takes some room"}' --count 2000 -q
    # in the middle of the file, well behind its head
    head -c 30000 /dev/urandom | dd of=jobs.db bs=1000 seek=60 conv=notrunc 2>/dev/null
    local got=0
    weir check >out 2>err || got=$?
    same $got 10
}

# The message is about the file, and nothing is made.
case_no_permission() {
    weir --store sqlite:jobs.db add t
    mkdir dir
    mkfifo pipe
    status 2 weir --store sqlite:dir list
    has err "dir: Is a directory"
    status 2 weir --store sqlite:pipe list
    has err "pipe: not a plain file"
    [ "$(id -u)" = 0 ] || return 0
    local other="setpriv --reuid=65534 --regid=65534 --clear-groups"
    chmod 755 .. .
    $other test -x "$WEIR" -a -x "$PWD" || return 0
    status 5 $other "$WEIR" --store sqlite:jobs.db list
    has err "jobs.db: no permission, it belongs to user root: run this as that user"
    chmod 644 jobs.db
    status 5 $other "$WEIR" --store sqlite:jobs.db list
    has err "no permission to write $PWD/jobs.db-shm"
    status 5 $other "$WEIR" --store sqlite:jobs.db add t
    has err "jobs.db: no permission, it belongs to user root"
    same "$(echo jobs.db*)" jobs.db
}

# Who may only read the file sees that somebody owns it, and that changes would be refused.
case_status_without_permission() {
    [ "$(id -u)" = 0 ] || return 0
    local other="setpriv --reuid=65534 --regid=65534 --clear-groups" worker
    chmod 755 .. .
    $other test -x "$WEIR" -a -x "$PWD" || return 0
    weir add t --delay 1h
    chmod 644 jobs.db
    "$WEIR" work t -q --exec true &
    worker=$!
    owned() { head -n 1 jobs.db-owner | grep -qx $worker; }
    wait_for owned
    status 5 $other "$WEIR" --store sqlite:jobs.db status
    has out "a process of user root (its number cannot be seen from here)"
    has out "trouble     the store is not ready:"
    status 5 $other "$WEIR" --store sqlite:jobs.db status --json
    has out '"owner":{"pid":null,"program":"a process of user root","peers":0},"ready":false'
    has out "jobs.db: no permission, it belongs to user root"
    status 0 $other "$WEIR" --store sqlite:jobs.db workers
    has err "no worker has a job now; a process of user root has the file open"
    kill $worker
    wait $worker
    chmod 777 .
    status 5 $other "$WEIR" --store sqlite:jobs.db status
    has out "none: no process has the file open for changes"
    has out "trouble     the store is not ready:"
    chmod 666 jobs.db
    status 0 $other "$WEIR" --store sqlite:jobs.db status
    has out "trouble     none"
    chmod 755 .
    status 5 $other "$WEIR" --store sqlite:jobs.db status
}

# What a killed owner leaves names a process that may be another one by now.
case_status_after_a_kill() {
    weir add mail -q
    printf '%s\nweir work mail\n' $$ >jobs.db-owner
    status 0 weir status
    has out "none: no process has the file open for changes"
    status 0 weir workers
    has err "no workers: no process has the file open for changes"
}

case_without_standard_descriptors() {
    weir add mail <&- >&- 2>&-
    status 0 weir count
    same "$(cat out)" 1
    status 0 weir check
}

case_output_that_cannot_be_written() {
    weir add mail
    local got=0
    weir get 1 --json >/dev/full 2>err || got=$?
    same $got 9
    has err "standard output"
}

# ---- status and workers ----

case_status_of_a_file() {
    status 3 weir status
    has err "no store sqlite:jobs.db yet"
    weir add mail -q
    weir add video -q --delay 1h
    status 0 weir status
    narrow out
    has out "sqlite:jobs.db (from WEIR_STORE)"
    has out "$PWD/jobs.db, SQLite 3."
    has out "durability  disk"
    has out "none: no process has the file open for changes"
    has out "1 inactive, 1 delayed, 0 active"
    has out "trouble     none"
    status 0 weir status --json
    json_lines out
    has out '"store":"sqlite"'
    has out '"owner":null,"ready":true,"types":2,"counts":{"inactive":1,"delayed":1,'
    weir pause mail -q
    status 0 weir status
    has out "mail is paused, and 1 of its jobs wait: \`weir resume mail\`"
    weir pause --all -q
    status 0 weir status
    has out "all types are paused: \`weir resume --all\`"
    status 0 weir status --store mem:
    has out "kept in     memory"
    status 2 weir status mail
}

case_status_and_workers_beside_an_owner() {
    "$WEIR" work mail -q -- sh -c 'until [ -e go ]; do sleep 0.05; done' &
    local worker=$!
    weir add mail -q
    running() { [ "$(weir count --state active)" = 1 ]; }
    wait_for running
    status 0 weir status --json
    has out "\"owner\":{\"pid\":$worker,\"program\":\"weir work mail\",\"peers\":0}"
    has out '"active":1'
    status 0 weir status
    has out "weir work mail (process $worker)"
    hasnt out "through it"              # the command does not count itself
    "$WEIR" work mail -q -- true &
    local other=$!
    with_other() { weir status | grep -q "; 1 other process works through it"; }
    wait_for with_other
    kill $other
    wait $other
    status 0 weir workers
    narrow out
    has out ":$worker:"
    has out "in 2"                   # its lease: 30 s
    status 0 weir workers mail --json
    json_lines out
    has out '"jobs":[{"id":1,"type":"mail","started_at":'
    has out '"lease_until":'
    touch go
    idle() { [ "$(weir count --state complete)" = 1 ]; }
    wait_for idle
    status 0 weir workers
    same "$(cat out)" ""
    has err "no worker has a job now; weir work mail (process $worker) has the file open"
    kill $worker
    wait $worker
    status 0 weir status
    has out "none: no process"
    status 0 weir workers
    has err "no workers: no process has the file open"
    status 0 weir workers -q
    same "$(cat out err)" ""
}

case_did_you_mean() {
    weir add mail -q
    status 2 weir schedule lsit
    has err "unknown action 'lsit'; expected add, list, get,"
    has err "did you mean 'list'?"
    for args in "workqueue lst" "task lst" "bus lisen a"; do
        status 2 weir $args
        has err "unknown action"
        has err "did you mean 'lis"
    done
    status 2 weir bus listen
    has err "listen: an argument is missing; expected ADDRESS..."
    status 2 weir token lst
    has err "did you mean 'list'?"
    status 2 weir completion bahs
    has err "did you mean 'bash'?"
    status 2 weir add mail --priority hihg
    has err "did you mean 'high'?"
    status 2 weir types mail --search onn
    has err "did you mean 'on'?"
    status 2 weir list -S failed
    has err "unknown option -S; did you mean '-s'?"
    status 2 weir work mail -n 4 -- cat
    has err "unknown option -n; this command has -t, -x, -j"
    status 2 weir lits
    has err "did you mean 'list'?"
    # Words of other programs.
    local pair
    for pair in ls:list delete:rm remove:rm show:get ps:workers; do
        status 2 weir "${pair%:*}" 1
        has err "unknown command '${pair%:*}'; did you mean '${pair#*:}'?"
    done
    for pair in "schedule ls:list" "schedule remove:rm" "task show:get" "token delete:rm" "token ls:list"; do
        # shellcheck disable=SC2086
        status 2 weir ${pair%:*}
        has err "did you mean '${pair#*:}'?"
    done
    status 2 weir token ps
    hasnt err "did you mean"
    status 2 weir list --sate failed
    has err "did you mean '--state'?"
    status 2 weir list --state queued
    has err "did you mean 'inactive'?"
    status 2 weir list --columns id,tpye
    has err "did you mean 'type'?"
    local cmd
    for cmd in list count stats top workers pause resume rm retry promote cancel types export \
        "export --type"; do
        # shellcheck disable=SC2086
        status 3 weir $cmd mial
        has err "no such type 'mial'; did you mean 'mail'?"
    done
    status 0 weir types --names
    same "$(cat out)" mail
}

case_data_that_is_not_json() {
    local example="write '{\"to\":\"ann\"}' in single quotes"
    for how in '' '--count 2' '--wait 1s'; do
        # shellcheck disable=SC2086
        status 2 weir add mail to=ann $how
        has err "data: not JSON at byte 0: value expected; $example"
    done
    status 2 weir add mail '{to:ann}'
    has err "; $example"
    weir add mail -q
    status 2 weir update 1 --data to=ann
    has err "; $example"
    status 2 weir schedule add s @daily mail to=ann
    has err "; $example"
    status 2 sh -c 'echo to=ann | "$1" add mail -' sh "$WEIR"
    has err "not JSON at byte 0"
    hasnt err "quotes"
}

case_how_long_a_failed_job_took() {
    weir add t --count 2 -q
    status 0 weir work t --drain --exec '[ "$WEIR_JOB_ID" = 1 ] || exit 1'
    weir add t --delay 1h -q
    status 0 weir cancel 3
    status 0 weir list -c id,state,took
    same "$(grep -cE '^ *(1 +complete|2 +failed) +[0-9.]+m?s$' out)" 2
    same "$(grep -cE '^ *3 +cancelled +-$' out)" 1
}

case_choosing_jobs() {
    weir add mail -q --count 2
    weir add video -q --priority high
    weir add sound -q --delay 1h
    weir cancel mail -q
    weir update 3 --state failed
    status 0 weir list mail video --ids;              same "$(tr '\n' ' ' <out)" "3 2 1 "
    status 0 weir list -t mail --type video --ids -r; same "$(tr '\n' ' ' <out)" "1 2 3 "
    status 0 weir list --state failed,cancelled --ids -n 1
    same "$(cat out)" 3
    has err "there are more"
    status 0 weir count --state failed,cancelled,delayed; same "$(cat out)" 4
    status 0 weir count --since 1h;                       same "$(cat out)" 4
    status 0 weir count --until 1h;                       same "$(cat out)" 0
    status 0 weir count --state cancelled --since 1h --until 2030-01-01; same "$(cat out)" 2
    status 0 weir list --sort priority --ids -n 1;        same "$(cat out)" 3
    status 0 weir list --sort id -r --ids;                same "$(tr '\n' ' ' <out)" "1 2 3 4 "
    status 2 weir list --sort colour
    local cursor
    status 0 weir list --sort created --state inactive,delayed,cancelled --since 1h --ids -n 2
    same "$(tr '\n' ' ' <out)" "4 2 "
    cursor=$(sed -n 's/.*--after \([^,]*\),.*/\1/p' err)
    status 0 weir list --sort created --state inactive,delayed,cancelled --since 1h --ids \
        --after "$cursor"
    same "$(tr '\n' ' ' <out)" "1 "
    status 0 weir list mail video --ids -n 2
    cursor=$(sed -n 's/.*--after \([^,]*\),.*/\1/p' err)
    status 0 weir list mail video --ids --after "$cursor"
    same "$(cat out)" 1
    status 0 weir list mail --columns id,state,created
    has out "CREATED"
    hasnt out "DATA"
    status 0 weir get 1 2 --json
    same "$(wc -l <out)" 2
    status 3 weir get 1 99 2
    has out "job 2"
    status 2 weir rm
    status 0 weir rm --all --json
    same "$(member count)" 4
}

case_what_was_done_is_said() {
    command -v script >/dev/null || return 0
    weir add mail -q --count 3
    on_terminal "$WEIR pause mail";    has out "paused mail"
    on_terminal "$WEIR resume --all";  has out "resumed all types"
    on_terminal "$WEIR cancel mail";   has out "3 jobs cancelled"
    on_terminal "$WEIR rm 1 -q";       hasnt out "removed"
    status 0 weir rm 2
    [ ! -s out ]
    # a long message is wrapped between words
    on_terminal "$WEIR list --state nothing"
    tr -d '\r' <out | grep -v '^Script' >message
    narrow message
    has message "cancelled"
}

# owner_is PID: this process owns the file.
owner_is() { head -n 1 jobs.db-owner 2>/dev/null | grep -qx "$1"; }

# A command that came first and waits for its input, or at its prompt, is in nobody's way.
case_a_command_that_waits_serves_others() {
    local command
    weir add x
    weir export >one
    mkfifo in
    for command in "add x --lines" "import -"; do
        "$WEIR" $command <in >waits.out 2>&1 &
        exec 9>in
        wait_for owner_is $!
        status 0 timeout 60 "$WEIR" add x
        status 0 timeout 60 "$WEIR" rm "$(cat out)"
        exec 9>&-
        wait $!
    done
    command -v script >/dev/null || return 0
    weir add x --count 200 -q
    script -qefc "$WEIR rm --all" typescript <in >prompt 2>&1 &
    exec 9>in
    wait_for grep -q '\[y/N\]' prompt
    status 0 timeout 60 "$WEIR" add y
    echo n >&9
    exec 9>&-
    wait $! || true
    same "$(weir count y)" 1
}

run_cases
