/* columns.h - what a list of jobs shows of each, and the keys it can be sorted by. */
#ifndef WEIR_CLI_COLUMNS_H
#define WEIR_CLI_COLUMNS_H

#include "cli/term.h"

#define COLUMN_WORDS                                                                              \
    "id type state priority attempts when created started ended took progress worker unique data " \
    "error result"
#define SORT_WORDS "id created started ended took attempts priority"

struct column;

typedef struct cli_columns {
    const struct column *column[TABLE_COLUMNS];
    table_column         look[TABLE_COLUMNS];
    int                  n;
} cli_columns;

/* "id,type,data"; NULL: the usual ones. An error names the column. */
weir_code columns_parse(cli_columns *out, const char *names, weir_error *err);

/* A row for a job. */
void columns_row(const cli_columns *c, table *t, const weir_job *job, int64_t now);

typedef struct sort_order {
    int64_t (*key)(const weir_job *job);
    bool      descending;
} sort_order;

/* `name` is one of SORT_WORDS. */
sort_order sort_find(const char *name, bool reverse);

/* For qsort_r(): elements are weir_job *, the context is a sort_order. */
int sort_compare(const void *a, const void *b, void *order);

#endif
