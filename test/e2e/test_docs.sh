# test_docs.sh - the examples of the documents work, and the documents know every option.
. "$(dirname "$0")/lib.sh"

# So that `weir` in an example is the program under test, with a program ./send-mail at hand.
prepare() {
    mkdir bin
    ln -s "$WEIR" bin/weir
    export PATH=$PWD/bin:$PATH
    unset -f weir
    printf '#!/bin/sh\ncat >/dev/null\necho "{\\"sent\\":true}"\n' >send-mail
    chmod +x send-mail
}

commands() { "$WEIR" help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p'; }
options_of() { "$WEIR" help "$1" | grep -oE '^  (-., |    )--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+'; }

case_examples_of_cli_md() {
    prepare
    sed -n '/^```sh$/,/^```$/p' "$source_root/docs/cli.md" | sed '/^```/d' >examples
    [ "$(wc -l <examples)" -gt 40 ]
    timeout 300 bash -eux examples </dev/null
}

case_examples_of_the_readme() {
    prepare
    sed -n 's/^    \$ \(\(weir\|export\) .*\)/\1/p' "$source_root/README.md" >examples
    [ "$(wc -l <examples)" -gt 5 ]
    timeout 300 bash -eux examples </dev/null
    same "$("$WEIR" count mail --state complete)" 2
}

case_examples_of_tracing_md() {
    prepare
    python3 "$here/run_examples.py" "$source_root/docs/tracing.md" http://127.0.0.1:1
}

case_cli_md_knows_every_option() {
    local cmd option bad=0
    for cmd in $(commands); do
        grep -qE "^#+ .*\b$cmd\b" "$source_root/docs/cli.md" || { echo "no chapter: $cmd"; bad=1; }
        for option in $(options_of "$cmd"); do
            # its chapter, up to the next one, or the one of all commands
            awk -v c="$cmd" '/^## / { on = $0 ~ "Options of all" || $0 ~ ("[ ,]" c "(,|$| )") } on' \
                "$source_root/docs/cli.md" | grep -q -- "$option\b" ||
                { echo "docs/cli.md: $cmd $option"; bad=1; }
        done
    done
    return $bad
}

case_commands_in_documents_and_page_exist() {
    python3 "$source_root/scripts/check-commands.py" "$WEIR"
}

# The pages that the build has made.
pages=$(dirname "$WEIR")/../../docs

case_every_command_has_a_man_page() {
    local cmd option bad=0
    for cmd in $(commands); do
        [ -s "$pages/weir-$cmd.1" ] || { echo "no weir-$cmd.1"; bad=1; }
        has "$pages/weir.1" "weir-$cmd 1"
        "$WEIR" help --man "$cmd" | sed 's/\\-/-/g' >page
        for option in $(options_of "$cmd"); do
            case $option in --store|--json|--help|--quiet|--durability) continue ;; esac
            grep -q "Fl -${option#--}\b" page || { echo "weir-$cmd.1: $option"; bad=1; }
        done
    done
    hasnt "$pages/weir.1" MORE
    has "$pages/weir.1" ".Os weir $("$WEIR" --version | cut -d ' ' -f 2)"
    has "$pages/weir.1" "A live screen"
    sed -n '/^\.It Xr weir-/{n;/^[^A-Z]/p}' "$pages/weir.1" >lower
    same "$(cat lower)" ""
    has "$pages/weir-work.1" "SIGTERM"
    return $bad
}

case_man_pages_are_well_formed() {
    local page
    command -v mandoc >/dev/null || command -v groff >/dev/null
    for page in "$pages"/*.1; do
        if command -v mandoc >/dev/null; then
            mandoc -Tlint -W warning "$page"
        else
            groff -mdoc -Tutf8 -ww -z "$page" 2>messages
            cat messages
            [ ! -s messages ]
        fi
    done
}

# A letter means the same in all commands.
case_a_letter_has_one_meaning() {
    local cmd
    for cmd in $(commands); do
        "$WEIR" help "$cmd" | sed -n 's/^  -\(.\), --\([a-z-]*\).*/\1 \2/p'
    done | sort -u >letters
    [ "$(wc -l <letters)" -gt 15 ]
    same "$(cut -c 1 letters | uniq -d)" ""
    while read -r letter name; do
        has "$source_root/docs/cli.md" "| \`-$letter\` | \`--$name\`"
    done <letters
}

case_a_type_is_an_argument_or_an_option() {
    local cmd n=0
    for cmd in $(commands); do
        "$WEIR" help "$cmd" | grep -qE '^Usage: .*\bTYPE\b' || continue
        n=$((n + 1))
        "$WEIR" help "$cmd" | grep -q '^  -t, --type TYPE' || { echo "$cmd has no --type"; return 1; }
    done
    [ "$n" -gt 15 ]
    weir add mail --quiet
    weir add 12 --quiet
    status 0 weir explain --type mail
    has out "type mail"
    status 0 weir explain 1 -t 12
    has out "job 1, mail"
    has out "type 12"
    status 2 weir explain
    has err "ID|TYPE is missing"
    status 0 weir observe -t mail --auto-ack --limit 1
    has out '"type":"mail"'
    status 2 weir observe
    has err "TYPE is missing"
}

case_completion_is_well_formed() {
    "$WEIR" completion bash >now
    bash -n now
    "$WEIR" completion zsh >now.zsh
    "$WEIR" completion fish >now.fish
    if command -v zsh >/dev/null; then zsh -n now.zsh; fi
    if command -v fish >/dev/null; then fish -n now.fish; fi
    status 2 weir completion csh
    has err "zsh"
}

case_completion_completes() {
    prepare
    "$WEIR" add letters --quiet
    "$WEIR" completion bash >now
    . ./now
    complete_line() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _weir; echo "${COMPREPLY[*]}"; }
    same "$(complete_line weir pro)" promote
    same "$(complete_line weir add x --prio)" --priority
    same "$(complete_line weir add x --priority h)" high
    same "$(complete_line weir list --state del)" delayed
    same "$(complete_line weir list let)" letters
    same "$(complete_line weir token l)" list
    same "$(complete_line weir token add x --role pro)" produce
    same "$(complete_line weir work -t let)" letters
    same "$(complete_line weir list --state failed,can)" failed,cancelled
    same "$(complete_line weir list -s failed,c)" "failed,complete failed,cancelled"
    same "$(complete_line weir list --columns id,ty)" id,type
    same "$(complete_line weir list --columns id,type,d)" id,type,data
    same "$(complete_line weir watch -e failed,complete,rem)" failed,complete,remove
    same "$(complete_line weir token add x --role produce,w)" produce,work
    same "$(complete_line weir list --sort id,t)" ""
}

case_zsh_completes() {
    command -v zsh >/dev/null || return 0
    prepare
    "$WEIR" add letters --quiet
    mkdir functions
    "$WEIR" completion zsh >functions/_weir
    timeout 120 zsh -f "$here/press_tab.zsh" functions \
        'weir promo' 'weir add x --prio' 'weir list --state del' 'weir list let' \
        'weir token add x --role pro' 'weir list --state failed,can' 'weir list --columns id,ty' \
        'weir watch -e failed,remo' >lines
    # A comma at the end is removed when a blank follows.
    same "$(cat lines)" "weir promote 
weir add x --priority 
weir list --state delayed,
weir list letters 
weir token add x --role produce,
weir list --state failed,cancelled,
weir list --columns id,type,
weir watch -e failed,remove,"
}

case_fish_completes() {
    command -v fish >/dev/null || return 0
    prepare
    "$WEIR" add letters --quiet
    "$WEIR" completion fish >now.fish
    complete_line() { fish -c "source now.fish; complete -C '$1'" | cut -f 1 | tr '\n' ' '; }
    same "$(complete_line 'weir promo')" "promote "
    same "$(complete_line 'weir add x --prio')" "--priority "
    same "$(complete_line 'weir list --state del')" "delayed "
    same "$(complete_line 'weir list let')" "letters "
    fish -c 'source now.fish' 2>messages
    same "$(cat messages)" ""
    touch backup.lines
    same "$(complete_line 'weir export -o back')" "backup.lines "
    same "$(complete_line 'weir import back')" "backup.lines "
    same "$(complete_line 'weir get back')" ""
    same "$(complete_line 'weir list --state failed,c')" "failed,cancelled failed,complete "
    same "$(complete_line 'weir list --state=failed,can')" "--state=failed,cancelled "
    same "$(complete_line 'weir list --columns id,ty')" "id,type "
    same "$(complete_line 'weir list -c id,type,sta')" "id,type,started id,type,state "
    same "$(complete_line 'weir watch --event failed,comp')" "failed,complete "
}

run_cases
