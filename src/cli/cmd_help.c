/* cmd_help.c - help, completion and version: all made from the tables of commands and options. */
#include <ctype.h>
#include <string.h>
#include "cli/cli.h"

void cli_help_all(FILE *out)
{
    fprintf(out, "%sweir%s - a job queue\n\n", term_on(out, COLOR_BOLD), term_off(out));
    fputs("Usage: weir [OPTIONS] COMMAND [ARGUMENTS]\n\n", out);
    for (const command *cmd = cli_commands; cmd->name; cmd++)
        fprintf(out, "  %s%-11s%s %s\n", term_on(out, COLOR_BOLD), cmd->name, term_off(out),
                cmd->summary);
    fputs("\nOptions of all commands:\n", out);
    opt_help(out, opt_common_table, term_width(out));
    fputs("\nA start:  weir add mail '{\"to\":\"ann\"}'    then    weir work mail --exec cat\n"
          "`weir demo` shows it at work; `weir help COMMAND` says more.\n", out);
}

void cli_help_one(FILE *out, const command *cmd)
{
    fprintf(out, "%sweir %s%s - %s\n\nUsage: weir %s%s%s%s\n", term_on(out, COLOR_BOLD), cmd->name,
            term_off(out), cmd->summary, cmd->name, *cmd->args ? " " : "", cmd->args,
            cmd->options ? " [OPTIONS]" : "");
    if (*cmd->help)
        fprintf(out, "\n%s", cmd->help);
    if (cmd->options) {
        fputs("\nOptions:\n", out);
        opt_help(out, cmd->options, term_width(out));
    }
    fputs("\nOptions of all commands:\n", out);
    opt_help(out, opt_common_table, term_width(out));
}

int cmd_help(cli *c, const void *values)
{
    (void)values;
    if (c->n_args == 0) {
        cli_help_all(stdout);
        return 0;
    }
    const command *cmd = cli_find(c->args[0]);
    if (!cmd)
        return cli_unknown(c, c->args[0]);
    cli_help_one(stdout, cmd);
    return 0;
}

int cmd_version(cli *c, const void *values)
{
    (void)values;
    if (c->json) {
        jw w = { .out = stdout };
        jw_object(&w, NULL);
        jw_text(&w, "version", weir_version());
        jw_end(&w, '}');
    } else {
        printf("weir %s\n", weir_version());
    }
    return 0;
}

/* ---- completion ---- */

static void options_words(const option_entry *o)
{
    for (; o && o->name; o++)
        printf(" --%s", o->name);
}

/* One case for each option whose values are known. An option may mean different things in
 * different commands, hence COMMAND:OPTION. */
static void option_values(const char *name, const option_entry *o)
{
    for (; o && o->name; o++) {
        if (o->kind == OPT_FLAG)
            continue;
        if (o->letter)
            printf("    %s:--%s | %s:-%c) ", name, o->name, name, o->letter);
        else
            printf("    %s:--%s) ", name, o->name);
        if (o->words && strcmp(o->words, "<command>") == 0)
            puts("COMPREPLY=($(compgen -c -- \"$cur\")); return ;;");
        else if (o->words && strcmp(o->words, "<type>") == 0)
            puts("_weir_types; return ;;");
        else if (o->words && *o->words != '<')
            printf("COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); return ;;\n", o->words);
        else
            puts("return ;;");
    }
}

static const char bash_head[] =
    "# bash completion for weir; made by `weir completion bash`.\n"
    "\n"
    "_weir_types()\n"
    "{\n"
    "    local types\n"
    "    types=$(weir types --json ${store:+--store \"$store\"} 2>/dev/null |\n"
    "        sed -n 's/.*\"type\":\"\\([A-Za-z0-9_.:-]*\\)\".*/\\1/p')\n"
    "    COMPREPLY=($(compgen -W \"$types\" -- \"$cur\"))\n"
    "}\n"
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
    "    if [[ $prev == --store ]]; then\n"
    "        COMPREPLY=($(compgen -W \"sqlite: mem:\" -- \"$cur\") $(compgen -f -- \"$cur\"))\n"
    "        return\n"
    "    fi\n";

int cmd_completion(cli *c, const void *values)
{
    (void)values;
    if (strcmp(c->args[0], "bash") != 0)
        return cli_usage(c, "'%s' is not a shell I know: bash", c->args[0]);
    fputs(bash_head, stdout);
    puts("    case $cmd:$prev in");
    for (const command *cmd = cli_commands; cmd->name; cmd++)
        option_values(cmd->name, cmd->options);
    puts("    esac\n    case $cmd in");
    fputs("    '') COMPREPLY=($(compgen -W \"", stdout);
    for (const command *cmd = cli_commands; cmd->name; cmd++)
        printf("%s ", cmd->name);
    fputs("--version", stdout);
    options_words(opt_common_table);
    puts("\" -- \"$cur\")); return ;;");
    for (const command *cmd = cli_commands; cmd->name; cmd++) {
        printf("    %s)\n        if [[ $cur == -* ]]; then\n"
               "            COMPREPLY=($(compgen -W \"", cmd->name);
        options_words(opt_common_table);
        options_words(cmd->options);
        puts("\" -- \"$cur\"))");
        if (strstr(cmd->args, "TYPE"))
            puts("        else\n            _weir_types");
        else if (strstr(cmd->args, "FILE"))
            puts("        else\n            COMPREPLY=($(compgen -f -- \"$cur\"))");
        else if (strcmp(cmd->name, "token") == 0)
            puts("        else\n            COMPREPLY=($(compgen -W \"add list rotate rm\" -- "
                 "\"$cur\"))");
        else if (strcmp(cmd->name, "completion") == 0)
            puts("        else\n            COMPREPLY=($(compgen -W \"bash\" -- \"$cur\"))");
        else if (strcmp(cmd->name, "help") == 0) {
            fputs("        else\n            COMPREPLY=($(compgen -W \"", stdout);
            for (const command *other = cli_commands; other->name; other++)
                printf("%s ", other->name);
            puts("\" -- \"$cur\"))");
        }
        puts("        fi ;;");
    }
    puts("    esac\n}\n\ncomplete -F _weir weir");
    return 0;
}
