/* crontab.h - the lines of a crontab, as crontab(5) describes them: settings and entries. Reads
 * text; uses no store. */
#ifndef WEIR_CLI_CRONTAB_H
#define WEIR_CLI_CRONTAB_H

#include "weir/weir.h"

enum {
    CRONTAB_MAX = 1024 * 1024,      /* bytes of a crontab */
    CRONTAB_MAX_SETTINGS = 100,     /* lines NAME=VALUE of other names */
    CRONTAB_MAX_ID = 64             /* bytes of a name that is made here */
};

/* One line that runs a command. Texts belong to the entry: crontab_entry_fini(). */
typedef struct crontab_entry {
    size_t line;
    char  *when;                    /* an expression of weir: weekdays are a list of numbers */
    bool   day_or_weekday;          /* cron's rule: neither field begins with "*" */
    char  *zone;                    /* CRON_TZ; NULL: none */
    char  *user;                    /* whose command it is; NULL: no such column */
    char  *command;                 /* as in the file, up to the first "%" */
    char  *script;                  /* for /bin/sh: settings, standard input and command */
    char   type[CRONTAB_MAX_ID];    /* follows from the script: "cron-backup-1f3870be" */
    char   name[CRONTAB_MAX_ID];    /* follows from the times, too */
} crontab_entry;

typedef struct crontab_setting {
    char *name, *value;
} crontab_setting;

/* Where the reader is: set `at`, `end` and `user_column`, the rest is {0}. crontab_fini(). */
typedef struct crontab {
    const char     *at, *end;
    bool            user_column;    /* of a system's crontab: the user comes before the command */
    size_t          line;
    crontab_setting setting[CRONTAB_MAX_SETTINGS];
    size_t          n_settings;
} crontab;

typedef enum crontab_step { CRONTAB_END, CRONTAB_ENTRY, CRONTAB_WRONG } crontab_step;

/* The next entry. CRONTAB_WRONG: a line is wrong, and *err says which and where; the lines behind
 * it can be read. */
crontab_step crontab_next(crontab *c, crontab_entry *out, weir_error *err);

void crontab_entry_fini(crontab_entry *e);
void crontab_fini(crontab *c);

/* The text as one word of a shell: 'it'\''s'. free(); NULL: no memory. */
char *crontab_quote(const char *text);

#endif
