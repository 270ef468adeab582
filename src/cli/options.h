/* options.h - the options of a command as one table. The parser, the help text, the man page and
 * the completion of the shells are all made from it, so that an option is declared once. */
#ifndef WEIR_CLI_OPTIONS_H
#define WEIR_CLI_OPTIONS_H

#include <stdio.h>
#include "weir/weir.h"

typedef enum opt_kind {
    OPT_FLAG,        /* bool */
    OPT_TEXT,        /* const char *, NULL when not given */
    OPT_CHOICE,      /* the same, one of option_entry.words */
    OPT_TEXTS,       /* opt_texts: may be given several times */
    OPT_INT,         /* the rest: opt_num */
    OPT_DURATION,    /* milliseconds: "5s" */
    OPT_TIME,        /* a moment: "2026-11-16T09:00Z", "09:00", milliseconds since 1970 */
    OPT_WHEN,        /* a moment, or how long from now; one of option_entry.words: 0 */
    OPT_PAST,        /* a moment, or how long ago; "09:00" is the last one */
    OPT_STATE,       /* weir_state */
    OPT_STATES,      /* "failed,cancelled": bits 1 << weir_state */
    OPT_PRIORITY,
    OPT_KINDS
} opt_kind;

typedef struct opt_num {
    bool    set;
    int64_t n;
} opt_num;

enum { OPT_MAX_TEXTS = 32 };
typedef struct opt_texts {
    const char *text[OPT_MAX_TEXTS];
    size_t      n;
} opt_texts;

typedef struct option_entry {
    const char *name;        /* without dashes; NULL ends the table */
    char        letter;      /* "-s"; 0: none. A letter belongs to one name in all commands */
    opt_kind    kind;
    size_t      at;          /* offset of its value in the command's struct */
    const char *arg;         /* as the help shows it; NULL for flags */
    const char *help;
    int64_t     min, max;    /* OPT_INT, OPT_DURATION; both 0: any that is not negative */
    const char *words;       /* its values, for completion: "on off", "<file>", "<command>",
                                "<type>" */
    bool        many;        /* ... several of these words, with commas between; so has
                                OPT_STATES. For completion */
    const char *actions;     /* "add list": the command's actions (its first argument) that take it;
                                the help begins with them. NULL: all */
} option_entry;

#define OPT_STATE_WORDS    "inactive delayed active complete failed cancelled"
#define OPT_PRIORITY_WORDS "low normal medium high critical"

/* Options that every command has. */
typedef struct opt_common {
    const char *store;
    const char *durability;
    bool        json, quiet, help;
    uint64_t    given;       /* bit i: the command's option i */
} opt_common;
extern const option_entry opt_common_table[];

/* Read argv[1..]; what is not an option is moved to the end: argv[*first..argc). Values go to
 * `values` (laid out as `options` says; NULL: none) and `common`. With `stop`, the first
 * argument that is no option ends the options. An error is WEIR_EINVAL and names the option. */
weir_code opt_parse(int argc, char **argv, const option_entry *options, void *values,
                    opt_common *common, bool stop, int *first, weir_error *err);

/* Does `action`, if it is one of `actions`, take all the options that were given? */
weir_code opt_check_action(const option_entry *options, const opt_common *common,
                           const char *actions, const char *action, weir_error *err);

/* "add, list: " for an option of these actions; "": all take it. */
const char *opt_actions(char *out, size_t size, const option_entry *o);

/* The options as lines of help: "  -s, --state STATE   text", wrapped to `width`. */
void opt_help(FILE *out, const option_entry *options, int width);

/* "2026-11-16T09:00[:00[.000]][Z|+01:00]" (local time without a zone), "HH:MM" (the next one; with
 * `past` the last one), or milliseconds since 1970. `name` is for the error. */
weir_code opt_time(const char *name, const char *text, int64_t now_ms, bool past, int64_t *out,
                   weir_error *err);

/* Milliseconds since 1970 have twelve digits or more since 1973: fewer are a slip. */
bool opt_epoch_ms(const char *text, int64_t *out);

/* A job's id. */
weir_code opt_id(const char *text, uint64_t *out, weir_error *err);

/* A state. The error names the state that may be meant: "queued" is inactive. */
weir_code opt_state(const char *name, const char *text, weir_state *out, weir_error *err);

/* The end of a page of a list: "RANK.ID". */
bool opt_cursor(const char *text, weir_cursor *out);

/* How long ended jobs are kept: "7d", "1000", "7d,1000", "forever" or "default". */
bool opt_keep(const char *text, weir_keep *out);

/* "start,failed" to bits WEIR_BIT(weir_event_kind). */
weir_code opt_events(const char *text, uint32_t *out, weir_error *err);

/* A whole decimal number and nothing else. */
bool opt_whole(const char *text, int64_t *out);

#endif
