/* action.h - commands with actions: `weir schedule add`, `weir workqueue rm`. A command has a table
 * of them, whose entries begin with a cli_action. */
#ifndef WEIR_CLI_ACTION_H
#define WEIR_CLI_ACTION_H

#include "cli/cli.h"

typedef struct cli_action {
    const char *name;
    int         min_args, max_args;     /* with the action itself */
    const char *args;                   /* what they are, for a message */
} cli_action;

/* Where the action c->args[0] is in a table of n entries of `size` bytes. -1: unknown action, or
 * its arguments are wrong; *status is the exit status, and the reason was written. */
int cli_find_action(const cli *c, const void *actions, size_t n, size_t size, int *status);

#define CLI_FIND_ACTION(c, actions, status)                                                       \
    cli_find_action(c, actions, sizeof(actions) / sizeof *(actions), sizeof *(actions), status)

#endif
