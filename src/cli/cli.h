/* cli.h - what a command is, and what it is given. The commands use the public headers alone (and
 * `serve` and `token` some of the server's): whatever they do, a program of yours can do too.
 *
 * Everything about a command is in one const entry beside its code: the parser, `weir help`, the
 * man page and the completion of the shells read it. */
#ifndef WEIR_CLI_CLI_H
#define WEIR_CLI_CLI_H

#include "cli/clock.h"
#include "cli/log.h"
#include "cli/options.h"
#include "cli/out_json.h"
#include "cli/term.h"
#include "weir/weir.h"

typedef struct command command;

typedef enum store_from {
    STORE_OPTION, STORE_ENVIRONMENT, STORE_ANNOUNCED, STORE_DEFAULT
} store_from;

/* One call of the program. */
typedef struct cli {
    const command  *command;
    const char     *program;      /* as it was called */
    const char     *store;        /* URL; NULL until cli_choose_store(), unless --store says it */
    store_from      store_from;
    const char     *server;       /* STORE_ANNOUNCED: the address of the server whose store it is */
    weir_durability durability;
    bool            json, quiet;
    cli_log         log;          /* of what it says on standard error */
    weir_error      owner_err;    /* of CLI_ASK: why the owner of the file is not asked; WEIR_OK: it
                                     is, or no server */
    bool            opened;       /* a store was opened: what is wrong with it can be checked */
    int             n_args;       /* what is left when the options are taken out */
    char          **args;
    char          **rest;         /* what follows "--", for commands with .rest; NULL: no "--" */
    weir_error      err;          /* for the command's use */
} cli;

typedef enum command_group {
    GROUP_START, GROUP_LOOK, GROUP_CHANGE, GROUP_STORE, GROUP_MORE, GROUPS
} command_group;

struct command {
    const char         *name;
    command_group       group;
    const char         *args;         /* "TYPE [JSON|-]"; NULL: none */
    const char         *summary;      /* one line for the list of commands */
    const char         *help;         /* paragraphs with a blank line between, wrapped when they are
                                         shown; what is in `backquotes` is literal. May be NULL */
    const char         *examples;     /* a command a line; may be NULL */
    const option_entry *options;      /* may be NULL */
    const char         *words;        /* of its arguments, for completion: "add list", "<type>",
                                         "<file>", "<topic>"; NULL: none */
    int                 min_args, max_args;    /* max_args -1: any number */
    bool                rest;         /* "-- PROGRAM ARGUMENTS" may follow */
    int               (*run)(cli *c, const void *values);      /* the exit status */
};

/* Room for the struct that a command's options go to; CLI_VALUES_FIT() beside each. */
enum { CLI_VALUES = 1024 };
#define CLI_VALUES_FIT(type) _Static_assert(sizeof(type) <= CLI_VALUES, "raise CLI_VALUES")

/* Commands that are there only if the server is. */
#if WEIR_WITH_SERVER
#define CLI_SERVER(X, name) X(name)
#else
#define CLI_SERVER(X, name)
#endif

/* The commands, in the order of the help: cmd_NAME is in cmd/cmd_*.c. */
#define CLI_COMMANDS(X)                                                                           \
    X(add) X(work) X(observe) CLI_SERVER(X, serve) X(demo)                                        \
    X(status) X(get) X(list) X(count) X(stats) X(errors) X(types) X(workers) X(log) X(explain)    \
    X(watch) X(top)                                                                               \
    X(rm) X(retry) X(promote) X(cancel) X(update) X(set) X(pause) X(resume)                       \
    X(export) X(import) X(migrate) X(check) X(bench) CLI_SERVER(X, token)                         \
    X(schedule) X(task) X(bus) X(workqueue) X(completion) X(version) X(help)
#define X(name) extern const command cmd_##name;
CLI_COMMANDS(X)
#undef X

/* All of them; NULL at the end. */
extern const command *const cli_commands[];
const command *cli_find(const char *name);

#endif
