/* cli.h - what the commands of the program `weir` share. The commands use the public headers
 * alone: whatever they do, a program of yours can do too. */
#ifndef WEIR_CLI_CLI_H
#define WEIR_CLI_CLI_H

#include "cli/clock.h"
#include "cli/options.h"
#include "cli/out_json.h"
#include "cli/term.h"
#include "weir/weir.h"

typedef struct command command;

/* One call of the program. */
typedef struct cli {
    const command *command;
    const char    *program;       /* as it was called */
    const char    *store;         /* URL */
    bool           store_chosen;  /* by --store */
    weir_durability durability;
    bool           json;
    int            n_args;        /* what is left when the options are taken out */
    char         **args;
    weir_error     err;           /* for the command's use */
} cli;

struct command {
    const char         *name;
    const char         *args;         /* "TYPE [JSON|-]" */
    const char         *summary;      /* one line for the list of commands */
    const char         *help;         /* some paragraphs, lines already broken */
    const option_entry *options;      /* may be NULL */
    int                 min_args, max_args;    /* max_args -1: any number */
    int               (*run)(cli *c, const void *values);
};

/* Room for the struct that a command's options go to; CLI_VALUES_FIT() beside each. */
enum { CLI_VALUES = 512 };
#define CLI_VALUES_FIT(type) _Static_assert(sizeof(type) <= CLI_VALUES, "raise CLI_VALUES")

/* All commands, in the order of the help; the last has no name. */
extern const command cli_commands[];
const command *cli_find(const char *name);

typedef enum cli_mode {
    CLI_LOOK,        /* read only: also beside the process that owns the store */
    CLI_CHANGE,      /* waits a little for another owner to go */
    CLI_SERVE        /* and leaves jobs to the workers that took them from the last server */
} cli_mode;

/* Open the store of this call. The error is in c->err and complete. */
weir_code cli_open(cli *c, cli_mode mode, weir_queue **out);

/* The same for another store; WEIR_ENOENT is not explained. */
weir_code cli_open_url(cli *c, const char *url, cli_mode mode, weir_queue **out);

/* The URL without a password, for people. The answer is `out`. */
char *cli_show_url(char *out, size_t size, const char *url);

/* Only this process has the store while it is open: nobody else could do the work. */
bool cli_store_is_private(const cli *c);

/* Say what is wrong with the command line, with a hint at the help: exit status 2. */
int cli_usage(const cli *c, const char *fmt, ...) WEIR_PRINTF(2, 3);

/* Say that there is no such command, and which one may be meant: exit status 2. */
int cli_unknown(cli *c, const char *name);

/* Say c->err; its exit status. */
int cli_fail(const cli *c);

/* The JSON of a job on one line. */
weir_code cli_print_job_json(FILE *out, const weir_job *job, weir_error *err);

/* "NAME=VALUE" n times (at least once) as a JSON object: free(). A value that is not JSON is a
 * text. NULL: err says what is wrong. */
char *cli_values_json(const char *const *text, size_t n, weir_error *err);

/* A job's data from standard input; free(). NULL with err set: trouble, or it is too long. */
char *cli_read_data(size_t *len, weir_error *err);

/* One line of `in`, in memory of its own, without white space at its end. What is longer than `max`
 * is kept only so far that this shows. False at the end of the input; *line is NULL when out of
 * memory. */
bool cli_read_line(FILE *in, size_t max, char **line, size_t *len);

/* A directory of its own for a store that nobody keeps; the path of its jobs.db goes to `url` as
 * a store URL. cli_scratch_remove() takes it away with all that is in it. */
weir_code cli_scratch_make(char *dir, size_t dir_size, char *url, size_t url_size, weir_error *err);
void      cli_scratch_remove(const char *dir);

/* A descriptor that tells of these signals (0 at the end), which are blocked from here on, also
 * in threads started later. -1 on trouble. */
int cli_signals(int first, ...);

/* poll() that goes on when the program was stopped and continued; timeout_ms < 0: no limit. */
struct pollfd;
int cli_poll(struct pollfd *fds, unsigned n, int64_t timeout_ms);

/* cmd_help.c */
void cli_help_all(FILE *out);
void cli_help_one(FILE *out, const command *cmd);

/* The commands. */
int cmd_add(cli *c, const void *values);
int cmd_get(cli *c, const void *values);
int cmd_list(cli *c, const void *values);
int cmd_count(cli *c, const void *values);
int cmd_stats(cli *c, const void *values);
int cmd_types(cli *c, const void *values);
int cmd_log(cli *c, const void *values);
int cmd_act(cli *c, const void *values);        /* rm, retry, promote, cancel */
int cmd_update(cli *c, const void *values);
int cmd_set(cli *c, const void *values);
int cmd_pause(cli *c, const void *values);      /* pause, resume */
int cmd_watch(cli *c, const void *values);
int cmd_work(cli *c, const void *values);
int cmd_serve(cli *c, const void *values);
int cmd_token(cli *c, const void *values);
int cmd_top(cli *c, const void *values);
int cmd_check(cli *c, const void *values);
int cmd_export(cli *c, const void *values);
int cmd_import(cli *c, const void *values);
int cmd_migrate(cli *c, const void *values);
int cmd_explain(cli *c, const void *values);
int cmd_bench(cli *c, const void *values);
int cmd_demo(cli *c, const void *values);
int cmd_help(cli *c, const void *values);
int cmd_completion(cli *c, const void *values);
int cmd_version(cli *c, const void *values);

/* Their options, each beside its command. */
extern const option_entry add_options[], list_options[], count_options[],
    types_options[], log_options[], act_options[], update_options[], watch_options[],
    work_options[], serve_options[], token_options[], top_options[], check_options[],
    export_options[], import_options[], migrate_options[], bench_options[], demo_options[];
#endif
