/* help.h - texts made from the table of commands: help for people, man pages, completion. */
#ifndef WEIR_CLI_HELP_H
#define WEIR_CLI_HELP_H

#include "cli/cli.h"

/* The output of `weir help`, and of `weir help COMMAND`; wrapped to the terminal. */
void help_all(FILE *out);
void help_one(FILE *out, const command *cmd);

/* Report an unknown command, and which one may be meant: exit status 2. */
int help_unknown(cli *c, const char *name);

/* A page in mdoc(7): of one command, or weir(1) with cmd NULL. The line `.\" MORE` is where the
 * build puts what docs/man has about it beyond that. */
void man_page(FILE *out, const command *cmd);

/* The completion script of a shell. */
void complete_bash(FILE *out);
void complete_zsh(FILE *out);
void complete_fish(FILE *out);

#endif
