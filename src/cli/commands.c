/* commands.c - the table of all commands. */
#include <string.h>
#include "cli/cli.h"

const command *const cli_commands[] = {
#define X(name) &cmd_##name,
    CLI_COMMANDS(X)
#undef X
    NULL
};

const command *cli_find(const char *name)
{
    for (const command *const *cmd = cli_commands; *cmd; cmd++)
        if (strcmp((*cmd)->name, name) == 0)
            return *cmd;
    return NULL;
}
