# bash completion for weir; made by `weir completion bash`.

_weir_types()
{
    local types
    types=$(weir types --json ${store:+--store "$store"} 2>/dev/null |
        sed -n 's/.*"type":"\([A-Za-z0-9_.:-]*\)".*/\1/p')
    COMPREPLY=($(compgen -W "$types" -- "$cur"))
}

_weir()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd= store= i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --store) ((i++)); store=${COMP_WORDS[i]} ;;
        -*) ;;
        *) cmd=${COMP_WORDS[i]}; break ;;
        esac
    done
    if [[ $prev == --store ]]; then
        COMPREPLY=($(compgen -W "sqlite: mem:" -- "$cur") $(compgen -f -- "$cur"))
        return
    fi
    case $cmd:$prev in
    add:--priority | add:-p) COMPREPLY=($(compgen -W "low normal medium high critical" -- "$cur")); return ;;
    add:--delay | add:-d) return ;;
    add:--at) return ;;
    add:--attempts | add:-a) return ;;
    add:--backoff | add:-b) COMPREPLY=($(compgen -W "none fixed:1s linear:2s exponential:1s:60s" -- "$cur")); return ;;
    add:--ttl) return ;;
    add:--deadline) return ;;
    add:--unique | add:-u) return ;;
    add:--max-lost) return ;;
    add:--search-keys) return ;;
    add:--set) return ;;
    add:--wait | add:-w) return ;;
    add:--count | add:-n) return ;;
    list:--state | list:-s) COMPREPLY=($(compgen -W "inactive delayed active complete failed cancelled" -- "$cur")); return ;;
    list:--priority | list:-p) COMPREPLY=($(compgen -W "low normal medium high critical" -- "$cur")); return ;;
    list:--search) return ;;
    list:--limit | list:-n) return ;;
    list:--after) return ;;
    count:--state | count:-s) COMPREPLY=($(compgen -W "inactive delayed active complete failed cancelled" -- "$cur")); return ;;
    count:--priority | count:-p) COMPREPLY=($(compgen -W "low normal medium high critical" -- "$cur")); return ;;
    types:--keep-complete) COMPREPLY=($(compgen -W "7d,1000 all" -- "$cur")); return ;;
    types:--keep-failed) COMPREPLY=($(compgen -W "30d all" -- "$cur")); return ;;
    types:--search) COMPREPLY=($(compgen -W "on off" -- "$cur")); return ;;
    rm:--state | rm:-s) COMPREPLY=($(compgen -W "inactive delayed active complete failed cancelled" -- "$cur")); return ;;
    rm:--type | rm:-t) _weir_types; return ;;
    rm:--priority | rm:-p) COMPREPLY=($(compgen -W "low normal medium high critical" -- "$cur")); return ;;
    retry:--state | retry:-s) COMPREPLY=($(compgen -W "inactive delayed active complete failed cancelled" -- "$cur")); return ;;
    retry:--type | retry:-t) _weir_types; return ;;
    retry:--priority | retry:-p) COMPREPLY=($(compgen -W "low normal medium high critical" -- "$cur")); return ;;
    promote:--state | promote:-s) COMPREPLY=($(compgen -W "inactive delayed active complete failed cancelled" -- "$cur")); return ;;
    promote:--type | promote:-t) _weir_types; return ;;
    promote:--priority | promote:-p) COMPREPLY=($(compgen -W "low normal medium high critical" -- "$cur")); return ;;
    cancel:--state | cancel:-s) COMPREPLY=($(compgen -W "inactive delayed active complete failed cancelled" -- "$cur")); return ;;
    cancel:--type | cancel:-t) _weir_types; return ;;
    cancel:--priority | cancel:-p) COMPREPLY=($(compgen -W "low normal medium high critical" -- "$cur")); return ;;
    update:--priority | update:-p) COMPREPLY=($(compgen -W "low normal medium high critical" -- "$cur")); return ;;
    update:--delay | update:-d) return ;;
    update:--at) return ;;
    update:--data) return ;;
    update:--state | update:-s) COMPREPLY=($(compgen -W "inactive delayed active complete failed cancelled" -- "$cur")); return ;;
    watch:--type | watch:-t) _weir_types; return ;;
    watch:--id | watch:-i) return ;;
    watch:--event | watch:-e) COMPREPLY=($(compgen -W "enqueue promotion start progress failed_attempt failed complete cancelled stalled ttl_exceeded remove pause resume error" -- "$cur")); return ;;
    watch:--count | watch:-n) return ;;
    watch:--for) return ;;
    work:--exec | work:-x) COMPREPLY=($(compgen -c -- "$cur")); return ;;
    work:--jobs | work:-n) return ;;
    work:--lease) return ;;
    work:--kill-after) return ;;
    work:--shutdown-timeout) return ;;
    work:--pass-env) COMPREPLY=($(compgen -W "WEIR_STORE WEIR_TOKEN" -- "$cur")); return ;;
    serve:--listen) return ;;
    serve:--data) return ;;
    serve:--title) return ;;
    serve:--api) COMPREPLY=($(compgen -W "kue vertx" -- "$cur")); return ;;
    serve:--search) COMPREPLY=($(compgen -W "on off" -- "$cur")); return ;;
    serve:--tls-cert) return ;;
    serve:--tls-key) return ;;
    serve:--origin) return ;;
    serve:--access-log) return ;;
    serve:--audit) COMPREPLY=($(compgen -W "admin all off" -- "$cur")); return ;;
    serve:--threads) return ;;
    serve:--caller-rate) return ;;
    serve:--caller-connections) return ;;
    serve:--caller-listeners) return ;;
    serve:--caller-waits) return ;;
    serve:--caller-bodies) return ;;
    serve:--caller-answers) return ;;
    serve:--config) return ;;
    token:--role) COMPREPLY=($(compgen -W "read produce work admin" -- "$cur")); return ;;
    token:--type) _weir_types; return ;;
    token:--expires) return ;;
    token:--grace) return ;;
    token:--data) return ;;
    token:--config) return ;;
    export:--state | export:-s) COMPREPLY=($(compgen -W "inactive delayed active complete failed cancelled" -- "$cur")); return ;;
    export:--type | export:-t) _weir_types; return ;;
    export:--priority | export:-p) COMPREPLY=($(compgen -W "low normal medium high critical" -- "$cur")); return ;;
    migrate:--from) return ;;
    migrate:--to) return ;;
    bench:--jobs | bench:-n) return ;;
    bench:--producers) return ;;
    bench:--workers) return ;;
    bench:--lot) return ;;
    bench:--prefetch) return ;;
    bench:--bytes) return ;;
    esac
    case $cmd in
    '') COMPREPLY=($(compgen -W "add get list count stats types log rm retry promote cancel update set pause resume watch work serve token top check export import migrate explain bench demo completion version help --version --store --durability --json --help" -- "$cur")); return ;;
    add)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help --priority --delay --at --attempts --backoff --ttl --deadline --unique --max-lost --remove-on-complete --search --search-keys --set --wait --count --lines --quiet" -- "$cur"))
        else
            _weir_types
        fi ;;
    get)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help" -- "$cur"))
        fi ;;
    list)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help --state --priority --search --desc --limit --after --all --ids" -- "$cur"))
        else
            _weir_types
        fi ;;
    count)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help --state --priority" -- "$cur"))
        else
            _weir_types
        fi ;;
    stats)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help" -- "$cur"))
        fi ;;
    types)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help --keep-complete --keep-failed --search" -- "$cur"))
        else
            _weir_types
        fi ;;
    log)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help --follow" -- "$cur"))
        fi ;;
    rm)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help --state --type --priority --all --yes" -- "$cur"))
        fi ;;
    retry)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help --state --type --priority --all --yes" -- "$cur"))
        fi ;;
    promote)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help --state --type --priority --all --yes" -- "$cur"))
        fi ;;
    cancel)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help --state --type --priority --all --yes" -- "$cur"))
        fi ;;
    update)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help --priority --delay --at --data --state" -- "$cur"))
        fi ;;
    set)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help" -- "$cur"))
        fi ;;
    pause)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help" -- "$cur"))
        else
            _weir_types
        fi ;;
    resume)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help" -- "$cur"))
        else
            _weir_types
        fi ;;
    watch)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help --type --id --event --count --for" -- "$cur"))
        fi ;;
    work)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help --exec --jobs --drain --lease --kill-after --shutdown-timeout --pass-env --quiet" -- "$cur"))
        else
            _weir_types
        fi ;;
    serve)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help --listen --data --title --api --search --kue-get --tls-cert --tls-key --origin --push-private --access-log --audit --threads --caller-rate --caller-connections --caller-listeners --caller-waits --caller-bodies --caller-answers --demo --config" -- "$cur"))
        fi ;;
    token)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help --role --type --expires --grace --data --config" -- "$cur"))
        else
            COMPREPLY=($(compgen -W "add list rotate rm" -- "$cur"))
        fi ;;
    top)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help --once" -- "$cur"))
        fi ;;
    check)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help --mend" -- "$cur"))
        fi ;;
    export)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help --state --type --priority" -- "$cur"))
        else
            COMPREPLY=($(compgen -f -- "$cur"))
        fi ;;
    import)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help --new-ids" -- "$cur"))
        else
            COMPREPLY=($(compgen -f -- "$cur"))
        fi ;;
    migrate)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help --from --to --follow --new-ids --keep" -- "$cur"))
        fi ;;
    explain)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help" -- "$cur"))
        fi ;;
    bench)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help --jobs --producers --workers --lot --prefetch --bytes" -- "$cur"))
        fi ;;
    demo)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help --fast" -- "$cur"))
        fi ;;
    completion)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help" -- "$cur"))
        else
            COMPREPLY=($(compgen -W "bash" -- "$cur"))
        fi ;;
    version)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help" -- "$cur"))
        fi ;;
    help)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W " --store --durability --json --help" -- "$cur"))
        else
            COMPREPLY=($(compgen -W "add get list count stats types log rm retry promote cancel update set pause resume watch work serve token top check export import migrate explain bench demo completion version help " -- "$cur"))
        fi ;;
    esac
}

complete -F _weir weir
