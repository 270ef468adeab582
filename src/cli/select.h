/* select.h - which jobs a command means: types, states, priority, words, times. One set of options
 * for list, count, export, rm, retry, promote and cancel, and one way to go through those jobs. */
#ifndef WEIR_CLI_SELECT_H
#define WEIR_CLI_SELECT_H

#include "cli/cli.h"
#include "cli/types.h"

typedef struct select_opts {
    opt_texts   types;
    opt_num     states, priority, since, until;
    const char *search, *error;
} select_opts;

/* Entries of a table of options; the command's struct has a member `select`. */
#define SELECT_OPTIONS(opts)                                                                      \
    TYPE_OPTION(offsetof(opts, select.types), "only of this type; may be given several times"),   \
    { .name = "state", .letter = 's', .kind = OPT_STATES, .at = offsetof(opts, select.states),    \
      .arg = "STATES", .words = OPT_STATE_WORDS,                                                  \
      .help = "only in these states, with commas between: inactive, delayed, active, complete, "  \
              "failed, cancelled" },                                                              \
    { .name = "priority", .letter = 'p', .kind = OPT_PRIORITY,                                    \
      .at = offsetof(opts, select.priority), .arg = "PRIORITY", .words = OPT_PRIORITY_WORDS,      \
      .help = "only of exactly this priority" },                                                  \
    { .name = "search", .kind = OPT_TEXT, .at = offsetof(opts, select.search), .arg = "WORDS",    \
      .help = "only with all these words in data, error or log (word* is a beginning); finds "    \
              "jobs that were added with --search, or whose type is indexed" },                   \
    { .name = "error", .kind = OPT_TEXT, .at = offsetof(opts, select.error), .arg = "ERROR",      \
      .help = "only with this error, as `weir errors` shows it" },                                \
    { .name = "since", .kind = OPT_PAST, .at = offsetof(opts, select.since), .arg = "TIME",       \
      .help = "only from this time on, or not longer ago (2h). The time of a job is its end; "    \
              "before that its start, when it is due, or when it was added" },                    \
    { .name = "until", .kind = OPT_PAST, .at = offsetof(opts, select.until), .arg = "TIME",       \
      .help = "only before this time, or longer ago than this (7d)" }

/* Is anything chosen at all? Types are given apart: arguments may name some. */
bool select_is_narrow(const select_opts *o, const cli_types *types);

typedef struct selection selection;

typedef enum select_order {
    SELECT_ANY,         /* list after list, each from its start: without a state, as added */
    SELECT_USUAL,       /* what has ended and all states together: the newest first; delayed and
                           active jobs by their time, inactive ones as they will run */
    SELECT_REVERSE
} select_order;

/* `states`: bits that hold if --state was not given; 0: all. The queue, the options and the names
 * of types are used until selection_destroy(). Errors are in c->err. */
weir_code selection_create(selection **out, cli *c, weir_queue *q, const select_opts *o,
                           const cli_types *types, uint32_t states, select_order order);
void      selection_destroy(selection *s);

/* No more than ids are needed. */
void selection_ids_only(selection *s);

/* Another order than the usual one, or its reverse; not of SELECT_ANY. Before the first job. */
void selection_sort(selection *s, weir_sort sort, bool reverse);

/* The next job, NULL at the end: weir_job_free(). `want`: about how many more will be asked for,
 * this one included. */
weir_code selection_next(selection *s, size_t want, weir_job **job);

/* Where it was left after all that was wanted, and where it goes on; not of SELECT_ANY. False: it
 * was at its end. */
bool selection_cursor(const selection *s, weir_cursor *out);
void selection_go_on(selection *s, const weir_cursor *after);

/* How many jobs there are. Those of a priority, time or word are looked for. */
weir_code selection_count(selection *s, uint64_t *n);

#endif
