/* help.c - the help of the program and of each command. */
#include "cli/help.h"

#include <string.h>
#include "cli/near.h"
#include "cli/say.h"

static const char *const group_titles[GROUPS] = {
    [GROUP_START] = "Add jobs and have them done",
    [GROUP_LOOK] = "Look",
    [GROUP_CHANGE] = "Change jobs and types",
    [GROUP_STORE] = "Look after stores and servers",
    [GROUP_MORE] = "More",
};

/* Paragraphs, with a blank line between them. */
static void paragraphs(FILE *out, const char *text)
{
    while (*text) {
        const char *end = strstr(text, "\n\n");
        size_t      n = end ? (size_t)(end - text) : strlen(text);
        char        part[4096];
        snprintf(part, sizeof part, "%.*s", (int)n, text);
        fputc('\n', out);
        term_wrap(out, part, 0, term_width(out), true);
        text += n + (end ? 2 : 0);
    }
}

static void title(FILE *out, const char *text)
{
    fprintf(out, "\n%s%s:%s\n", term_on(out, COLOR_BOLD), text, term_off(out));
}

static void examples(FILE *out, const char *text)
{
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        fprintf(out, "  %.*s\n", (int)n, text);
    }
}

void help_all(FILE *out)
{
    enum { COLUMN = 14 };
    fprintf(out, "%sweir%s - a job queue\n\n", term_on(out, COLOR_BOLD), term_off(out));
    fputs("Usage: weir [OPTIONS] COMMAND [ARGUMENTS]\n", out);
    for (int g = 0; g < GROUPS; g++) {
        title(out, group_titles[g]);
        for (const command *const *cmd = cli_commands; *cmd; cmd++) {
            if ((int)(*cmd)->group != g)
                continue;
            fprintf(out, "  %s%-*s%s", term_on(out, COLOR_BOLD), COLUMN - 2, (*cmd)->name,
                    term_off(out));
            term_wrap(out, (*cmd)->summary, COLUMN, term_width(out), true);
        }
    }
    title(out, "Options of all commands");
    opt_help(out, opt_common_table, term_width(out));
    fputs("\nA start:  weir add mail '{\"to\":\"ann\"}'    then    weir work mail -- cat\n"
          "`weir demo` shows it at work; `weir help COMMAND` says more.\n", out);
}

void help_one(FILE *out, const command *cmd)
{
    fprintf(out, "%sweir %s%s - ", term_on(out, COLOR_BOLD), cmd->name, term_off(out));
    term_wrap(out, cmd->summary, (int)strlen(cmd->name) + 8, term_width(out), true);
    fprintf(out, "\nUsage: weir %s%s%s%s\n", cmd->name, cmd->args ? " " : "",
            cmd->args ? cmd->args : "", cmd->options ? " [OPTIONS]" : "");
    if (cmd->help)
        paragraphs(out, cmd->help);
    if (cmd->options) {
        title(out, "Options");
        opt_help(out, cmd->options, term_width(out));
    }
    title(out, "Options of all commands");
    opt_help(out, opt_common_table, term_width(out));
    if (cmd->examples) {
        title(out, "Examples");
        examples(out, cmd->examples);
    }
}

int help_unknown(cli *c, const char *name)
{
    char hint[80];
    weir_near guess = { .typed = name };
    for (const command *const *cmd = cli_commands; *cmd; cmd++)
        weir__near_try(&guess, (*cmd)->name);
    if (near_synonym(name))
        guess.best = near_synonym(name);
    c->command = NULL;
    return cli_usage(c, "unknown command '%s'%s", name, near_hint(hint, sizeof hint, &guess, ""));
}
