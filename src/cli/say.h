/* say.h - messages of a command to its user, besides its answer. They are wrapped to the width of a
 * terminal; in a file or a pipe each is one line of the log (log.h). Hidden characters are shown
 * as '.'. */
#ifndef WEIR_CLI_SAY_H
#define WEIR_CLI_SAY_H

#include "cli/cli.h"

/* Say what is wrong with the command line, with a hint at the help: exit status 2. */
int cli_usage(const cli *c, const char *fmt, ...) WEIR_PRINTF(2, 3);

/* Say c->err; its exit status. */
int cli_fail(const cli *c);

/* A remark on standard error, unless --quiet; of something that goes wrong. */
void cli_note(const cli *c, const char *fmt, ...) WEIR_PRINTF(2, 3);
void cli_warn(const cli *c, const char *fmt, ...) WEIR_PRINTF(2, 3);

/* The action done, in one line on standard output: only at a terminal, and not with --quiet or
 * --json. */
void cli_done(const cli *c, const char *fmt, ...) WEIR_PRINTF(2, 3);

#endif
