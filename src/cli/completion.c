/* completion.c - completion for bash, zsh and fish, made from the tables of commands and
 * options. */
#include <string.h>
#include "cli/help.h"

/* The one place that asks the store: names of types, one a line. */
#define TYPES_OF "weir types --names"

static bool is_word(const char *words, const char *special)
{
    return words && strcmp(words, special) == 0;
}

/* Is its value several words, with commas between? */
static bool is_many(const option_entry *o)
{
    return o->many || o->kind == OPT_STATES;
}

static void command_names(FILE *out)
{
    for (const command *const *cmd = cli_commands; *cmd; cmd++)
        fprintf(out, "%s%s", cmd == cli_commands ? "" : " ", (*cmd)->name);
}

/* ---- bash ---- */

static const char bash_head[] =
    "# bash completion for weir; made by `weir completion bash`.\n"
    "\n"
    "_weir_words() { COMPREPLY=($(compgen -W \"$1\" -- \"$cur\")); }\n"
    "_weir_many() { local before=; [[ $cur == *,* ]] && before=${cur%,*},\n"
    "    COMPREPLY=($(compgen -P \"$before\" -W \"$1\" -- \"${cur##*,}\")); }\n"
    "_weir_types() { _weir_words \"$(" TYPES_OF " ${store:+--store \"$store\"} 2>/dev/null)\"; }\n"
    "_weir_files() { COMPREPLY=($(compgen -f -- \"$cur\")); }\n"
    "_weir_programs() { COMPREPLY=($(compgen -c -- \"$cur\")); }\n"
    "\n"
    "_weir()\n"
    "{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd= store= i\n"
    "    COMPREPLY=()\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        case ${COMP_WORDS[i]} in\n"
    "        --store) ((i++)); store=${COMP_WORDS[i]} ;;\n"
    "        -*) ;;\n"
    "        *) cmd=${COMP_WORDS[i]}; break ;;\n"
    "        esac\n"
    "    done\n"
    "    case $prev in\n"
    "    --store) COMPREPLY=($(compgen -W \"sqlite: mem:\" -- \"$cur\") "
    "$(compgen -f -- \"$cur\")); return ;;\n"
    "    --durability) _weir_words \"disk os\"; return ;;\n"
    "    esac\n";

static void bash_words(FILE *out, const char *words)
{
    if (is_word(words, "<type>"))
        fputs("_weir_types", out);
    else if (is_word(words, "<file>"))
        fputs("_weir_files", out);
    else if (is_word(words, "<command>"))
        fputs("_weir_programs", out);
    else if (is_word(words, "<topic>")) {
        fputs("_weir_words \"", out);
        command_names(out);
        fputc('"', out);
    } else if (words)
        fprintf(out, "_weir_words \"%s\"", words);
    else
        fputc(':', out);
}

/* An option may mean different things in different commands, hence COMMAND:OPTION. */
static void bash_values(FILE *out, const command *cmd)
{
    for (const option_entry *o = cmd->options; o && o->name; o++) {
        if (o->kind == OPT_FLAG)
            continue;
        fprintf(out, "    %s:--%s", cmd->name, o->name);
        if (o->letter)
            fprintf(out, " | %s:-%c", cmd->name, o->letter);
        fputs(") ", out);
        if (is_many(o))
            fprintf(out, "_weir_many \"%s\"", o->words);
        else
            bash_words(out, o->words);
        fputs("; return ;;\n", out);
    }
}

static void bash_options(FILE *out, const option_entry *o)
{
    for (; o && o->name; o++)
        fprintf(out, "%s--%s", o == opt_common_table ? "" : " ", o->name);
}

static void bash_command(FILE *out, const command *cmd)
{
    fprintf(out, "    %s)\n        if [[ $cur == -* ]]; then\n            _weir_words \"",
            cmd->name);
    bash_options(out, opt_common_table);
    bash_options(out, cmd->options);
    fputs("\"\n", out);
    if (cmd->words) {
        fputs("        else\n            ", out);
        bash_words(out, cmd->words);
        fputc('\n', out);
    }
    fputs("        fi ;;\n", out);
}

void complete_bash(FILE *out)
{
    fputs(bash_head, out);
    fputs("    case $cmd:$prev in\n", out);
    for (const command *const *cmd = cli_commands; *cmd; cmd++)
        bash_values(out, *cmd);
    fputs("    esac\n    case $cmd in\n    '') _weir_words \"", out);
    command_names(out);
    fputs(" --version ", out);
    bash_options(out, opt_common_table);
    fputs("\" ;;\n", out);
    for (const command *const *cmd = cli_commands; *cmd; cmd++)
        bash_command(out, *cmd);
    fputs("    esac\n}\n\ncomplete -F _weir weir\n", out);
}

/* ---- zsh ---- */

static const char zsh_head[] =
    "#compdef weir\n"
    "# zsh completion for weir; made by `weir completion zsh`.\n"
    "\n"
    "_weir_types() { local -a types; types=(${(f)\"$(" TYPES_OF " 2>/dev/null)\"}); "
    "compadd -a types }\n"
    "\n"
    "_weir()\n"
    "{\n"
    "    local curcontext=$curcontext state line\n"
    "    local -a common\n";

/* In quotes of the shell; "[", "]", ":" and "\" have a meaning there. */
static void zsh_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else {
            if (strchr("[]:\\", *text))
                fputc('\\', out);
            fputc(*text, out);
        }
    }
}

/* The completion of a value or an argument. */
static void zsh_action(FILE *out, const char *words)
{
    if (is_word(words, "<type>"))
        fputs("_weir_types", out);
    else if (is_word(words, "<file>"))
        fputs("_files", out);
    else if (is_word(words, "<command>"))
        fputs("_command_names", out);
    else if (is_word(words, "<topic>")) {
        fputc('(', out);
        command_names(out);
        fputc(')', out);
    } else if (words) {
        fputc('(', out);
        zsh_text(out, words);
        fputc(')', out);
    } else {
        fputc(' ', out);
    }
}

static void zsh_options(FILE *out, const option_entry *o, const char *indent)
{
    for (; o && o->name; o++) {
        const char *many = o->kind == OPT_TEXTS || o->kind == OPT_STATES ? "*" : "";
        fprintf(out, "%s", indent);
        if (o->letter && *many)
            fprintf(out, "'*'{-%c,--%s}'[", o->letter, o->name);
        else if (o->letter)
            fprintf(out, "'(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter, o->name);
        else
            fprintf(out, "'%s--%s[", many, o->name);
        zsh_text(out, o->help);
        fputc(']', out);
        if (o->kind != OPT_FLAG) {
            fputc(':', out);
            zsh_text(out, o->arg);
            fputc(':', out);
            if (is_many(o))
                fprintf(out, "_sequence compadd - %s", o->words);
            else
                zsh_action(out, o->words);
        }
        fputs("' \\\n", out);
    }
}

void complete_zsh(FILE *out)
{
    fputs(zsh_head, out);
    fputs("    common=( \\\n", out);
    zsh_options(out, opt_common_table, "        ");
    fputs("    )\n    _arguments -C $common '1:command:->command' '*::argument:->argument'\n"
          "    case $state in\n    command)\n        local -a commands\n        commands=(\n", out);
    for (const command *const *cmd = cli_commands; *cmd; cmd++) {
        fprintf(out, "            '%s:", (*cmd)->name);
        zsh_text(out, (*cmd)->summary);
        fputs("'\n", out);
    }
    fputs("        )\n        _describe command commands ;;\n    argument)\n"
          "        case $line[1] in\n", out);
    for (const command *const *cmd = cli_commands; *cmd; cmd++) {
        fprintf(out, "        %s) _arguments $common \\\n", (*cmd)->name);
        zsh_options(out, (*cmd)->options, "            ");
        fputs("            '*:argument:", out);
        zsh_action(out, (*cmd)->words);
        fputs("' ;;\n", out);
    }
    fputs("        esac ;;\n    esac\n}\n\n[[ $funcstack[1] = _weir ]] && _weir \"$@\" || "
          "compdef _weir weir\n", out);
}

/* ---- fish ---- */

static const char fish_head[] =
    "# fish completion for weir; made by `weir completion fish`.\n"
    "\n"
    "function __weir_types\n"
    "    " TYPES_OF " 2>/dev/null\n"
    "end\n"
    "function __weir_many\n"
    "    set -l typed (string replace -r -- '^--[a-z-]+=' '' (commandline -ct))\n"
    "    string match -rq -- '^(?<before>.*,)?' $typed\n"
    "    printf '%s\\n' \"$before\"$argv\n"
    "end\n"
    "complete -c weir -f\n";

static void fish_text(FILE *out, const char *text)
{
    for (fputc('\'', out); *text; text++) {
        if (*text == '\'' || *text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc('\'', out);
}

/* For files -F, which goes with -r, not with -x (-r and no files). */
static void fish_words(FILE *out, const char *words)
{
    if (is_word(words, "<file>"))
        fputs(" -F", out);
    else if (is_word(words, "<type>"))
        fputs(" -a '(__weir_types)'", out);
    else if (is_word(words, "<command>"))
        fputs(" -a '(__fish_complete_command)'", out);
    else if (is_word(words, "<topic>")) {
        fputs(" -a '", out);
        command_names(out);
        fputc('\'', out);
    } else if (words) {
        fputs(" -a ", out);
        fish_text(out, words);
    }
}

static void fish_options(FILE *out, const option_entry *o, const char *cmd)
{
    for (; o && o->name; o++) {
        fputs("complete -c weir", out);
        if (cmd)
            fprintf(out, " -n '__fish_seen_subcommand_from %s'", cmd);
        if (o->letter)
            fprintf(out, " -s %c", o->letter);
        fprintf(out, " -l %s", o->name);
        if (o->kind != OPT_FLAG)
            fputs(is_word(o->words, "<file>") ? " -r" : " -x", out);
        if (is_many(o))
            fprintf(out, " -a '(__weir_many %s)'", o->words);
        else
            fish_words(out, o->words);
        fputs(" -d ", out);
        fish_text(out, o->help);
        fputc('\n', out);
    }
}

void complete_fish(FILE *out)
{
    fputs(fish_head, out);
    for (const command *const *cmd = cli_commands; *cmd; cmd++) {
        fprintf(out, "complete -c weir -n __fish_use_subcommand -a %s -d ", (*cmd)->name);
        fish_text(out, (*cmd)->summary);
        fputc('\n', out);
    }
    fish_options(out, opt_common_table, NULL);
    for (const command *const *cmd = cli_commands; *cmd; cmd++) {
        fish_options(out, (*cmd)->options, (*cmd)->name);
        if (!(*cmd)->words)
            continue;
        fprintf(out, "complete -c weir -n '__fish_seen_subcommand_from %s'", (*cmd)->name);
        fish_words(out, (*cmd)->words);
        fputc('\n', out);
    }
}
