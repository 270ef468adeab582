# press_tab.zsh DIR LINE...: print what becomes of each line in an interactive zsh when Tab is
# pressed at its end. DIR has the completions.
zmodload zsh/zpty
dir=${1:a}
shift
zpty -b z zsh -f -i
zpty -w z "fpath=($dir \$fpath); autoload -Uz compinit; compinit -u -D
show() { print -r -- \"\$BUFFER\" >shown.new; mv shown.new shown; BUFFER= }
zle -N show; bindkey '^Xs' show; bindkey '^I' complete-word; : >ready"
until [[ -e ready ]]; do zpty -r -t z output || sleep 0.02; done
for line; do
    rm -f shown
    zpty -w -n z "$line"$'\t\C-xs'
    until [[ -e shown ]]; do zpty -r -t z output || sleep 0.02; done
    cat shown
done
zpty -d z
