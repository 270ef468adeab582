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
options_of() { "$WEIR" help "$1" | grep -oE '^  (-., |    )--[a-z-]+' | grep -oE -- '--[a-z-]+'; }

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

case_man_pages_know_every_option() {
    local cmd option bad=0
    sed 's/\\-/-/g' "$source_root"/docs/man/weir.1 >weir.1
    for cmd in $(commands); do
        for option in $(options_of "$cmd"); do
            grep -q "Fl -${option#-}\b\|Fl Fl ${option#--}\b" weir.1 ||
                { echo "weir.1: $cmd $option"; bad=1; }
        done
    done
    for cmd in add serve work; do
        for option in $(options_of "$cmd"); do
            case $option in --store|--json|--help|--durability) continue ;; esac
            grep -q "Fl Fl ${option#--}\b" "$source_root/docs/man/weir-$cmd.1" ||
                { echo "weir-$cmd.1: $option"; bad=1; }
        done
    done
    return $bad
}

case_man_pages_are_well_formed() {
    local page
    for page in "$source_root"/docs/man/*.1; do
        if command -v mandoc >/dev/null; then
            mandoc -Tlint -W warning "$page"
        elif command -v groff >/dev/null; then
            groff -mdoc -Tutf8 -ww -z "$page" 2>messages
            cat messages
            [ ! -s messages ]
        fi
    done
}

case_completion_is_up_to_date() {
    "$WEIR" completion bash >now
    cmp now "$source_root/completions/weir.bash"
    bash -n now
    status 2 weir completion fish
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
}

run_cases
