/* man.c - manual pages in mdoc(7), made from the tables of commands and options. */
#include <ctype.h>
#include <string.h>
#include "cli/help.h"

/* One character of text. Dashes stay dashes, a backslash is no escape, and what is in `backquotes`
 * is literal. */
static void put(FILE *out, char ch, bool *literal)
{
    if (ch == '`') {
        *literal = !*literal;
        fputs(*literal ? "\\fB" : "\\fR", out);
    } else if (ch == '-') {
        fputs("\\-", out);
    } else if (ch == '\\') {
        fputs("\\e", out);
    } else {
        fputc(ch, out);
    }
}

/* A sentence a line, as mdoc(7) has it. A line that begins with a dot or an apostrophe would be a
 * macro. */
static void text(FILE *out, const char *s, size_t n)
{
    bool literal = false, start = true;
    for (size_t i = 0; i < n; i++) {
        bool stop = s[i] == ' ' && i > 1 && s[i - 1] == '.' && s[i - 2] != '.' &&
                    (isupper((unsigned char)s[i + 1]) || s[i + 1] == '`');
        if (s[i] == '\n' || stop) {
            fputc('\n', out);
            start = true;
            continue;
        }
        if (start && (s[i] == '.' || s[i] == '\''))
            fputs("\\&", out);
        start = false;
        put(out, s[i], &literal);
    }
    fputc('\n', out);
}

/* Text as one argument of a macro. */
static void argument(FILE *out, const char *s, size_t n)
{
    bool literal = false;
    fputs(" \"", out);
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '"')
            fputc('"', out);
        put(out, s[i], &literal);
    }
    fputc('"', out);
}

static void paragraphs(FILE *out, const char *s)
{
    for (const char *end; *s; s = *end ? end + 2 : end) {
        end = strstr(s, "\n\n");
        end = end ? end : s + strlen(s);
        text(out, s, (size_t)(end - s));
        if (*end)
            fputs(".Pp\n", out);
    }
}

/* "A text without" a dot at its end, or a capital at its start, gets both. */
static void sentence(FILE *out, const char *s)
{
    char   copy[1000];
    size_t n = (size_t)snprintf(copy, sizeof copy - 1, "%s", s);
    if (strncmp(s, "...", 3) != 0 && s[0] != '$' && (islower((unsigned char)s[1]) || s[1] == ' '))
        copy[0] = (char)toupper((unsigned char)copy[0]);
    if (copy[n - 1] != '.')
        strcpy(copy + n++, ".");
    text(out, copy, n);
}

static void options(FILE *out, const option_entry *o)
{
    fputs(".Bl -tag -width Ds\n", out);
    for (; o->name; o++) {
        fputs(".It", out);
        if (o->letter)
            fprintf(out, " Fl %c", o->letter);
        for (int i = o->letter ? 0 : 1; i < 2; i++) {
            if (i == 1 && o->letter)
                fputs(" ,", out);
            if (i == 1) {
                fputs(" Fl", out);
                fputs(" \\-", out);
                for (const char *p = o->name; *p; p++)
                    fputs(*p == '-' ? "\\-" : (char[]){ *p, 0 }, out);
            }
            if (o->arg) {
                fputs(" Ar", out);
                argument(out, o->arg, strlen(o->arg));
            }
        }
        fputc('\n', out);
        char said[600], actions[120];
        snprintf(said, sizeof said, "%s%s", opt_actions(actions, sizeof actions, o), o->help);
        sentence(out, said);
    }
    fputs(".El\n", out);
}

static void examples(FILE *out, const char *s)
{
    fputs(".Sh EXAMPLES\n.Bd -literal\n", out);
    text(out, s, strlen(s) - (s[strlen(s) - 1] == '\n'));
    fputs(".Ed\n", out);
}

static void head(FILE *out, const char *name, const char *about)
{
    fputs(".\\\" Made from the tables of the program: see src/cli/man.c and docs/man.\n"
          ".Dd November 18, 2026\n.Dt ", out);
    for (const char *p = name; *p; p++)
        fputc(toupper((unsigned char)*p), out);
    fprintf(out, " 1\n.Os weir %s\n.Sh NAME\n.Nm %s\n.Nd ", weir_version(), name);
    text(out, about, strlen(about));
    fputs(".Sh SYNOPSIS\n.Nm weir\n", out);
}

static void one_page(FILE *out, const command *cmd)
{
    char name[40];
    snprintf(name, sizeof name, "weir-%s", cmd->name);
    head(out, name, cmd->summary);
    fprintf(out, ".Cm %s\n", cmd->name);
    for (const char *p = cmd->args ? cmd->args : ""; *p; p += *p == ' ') {
        size_t n = strcspn(p, " ");
        fputs(".Ar", out);
        argument(out, p, n);
        fputc('\n', out);
        p += n;
    }
    fputs(".Op Ar OPTIONS\n.Sh DESCRIPTION\n", out);
    if (cmd->help)
        paragraphs(out, cmd->help);
    else
        sentence(out, cmd->summary);
    if (cmd->options)
        options(out, cmd->options);
    fputs(".Pp\nThe options of all commands are in\n.Xr weir 1 .\n.\\\" MORE\n", out);
    if (cmd->examples)
        examples(out, cmd->examples);
    fputs(".Sh SEE ALSO\n.Xr weir 1\n", out);
}

static void main_page(FILE *out)
{
    head(out, "weir", "a job queue");
    fputs(".Op Ar OPTIONS\n.Ar COMMAND\n.Op Ar ARGUMENTS\n.Sh DESCRIPTION\n"
          ".\\\" INTRODUCTION\n.Ss Commands\nEach has a page of its own.\n"
          ".Bl -tag -width \".Xr weir-completion 1\"\n", out);
    for (const command *const *cmd = cli_commands; *cmd; cmd++) {
        fprintf(out, ".It Xr weir-%s 1\n", (*cmd)->name);
        sentence(out, (*cmd)->summary);
    }
    fputs(".El\n.Ss Options of all commands\nThey may stand before or after the command.\n", out);
    options(out, opt_common_table);
    fputs(".\\\" MORE\n", out);
}

void man_page(FILE *out, const command *cmd)
{
    if (cmd)
        one_page(out, cmd);
    else
        main_page(out);
}
