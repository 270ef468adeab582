/* columns.h - what a list of jobs shows of each. */
#ifndef WEIR_CLI_COLUMNS_H
#define WEIR_CLI_COLUMNS_H

#include "cli/term.h"

#define COLUMN_WORDS                                                                              \
    "id type state priority attempts when created started ended took progress worker unique data " \
    "error result"

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

#endif
