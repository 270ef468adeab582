/* store.h - which store a command means, and opening it. */
#ifndef WEIR_CLI_STORE_H
#define WEIR_CLI_STORE_H

#include "cli/cli.h"

typedef enum cli_mode {
    CLI_LOOK,        /* read only: also beside the process that owns the store */
    CLI_ASK,         /* the same, but through the owner or server, if there is one: it has more data
                        (leases, whether its disk is full) than a reader of the file */
    CLI_CHANGE,      /* brief: see weir_options */
    CLI_MEND,        /* brief, and also without the log of a file that has lost it */
    CLI_SERVE        /* and leaves jobs to the workers that took them from the last server */
} cli_mode;

/* Set c->store, unless --store did: $WEIR_STORE, the store of the server of this user that runs, or
 * jobs.db in the data directory. The error is in c->err and complete. */
weir_code cli_choose_store(cli *c);

/* Choose the store and open it. The error is in c->err and complete. */
weir_code cli_open(cli *c, cli_mode mode, weir_queue **out);

/* The same for another store; WEIR_ENOENT is not explained. */
weir_code cli_open_url(cli *c, const char *url, cli_mode mode, weir_queue **out);

/* The URL without a password, for people. The answer is `out`. */
char *cli_show_url(char *out, size_t size, const char *url);

/* Only this process has the store while it is open: nobody else could do the work. */
bool cli_store_is_private(const cli *c);

#endif
