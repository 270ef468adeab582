/* term.h - what a terminal can show: colours, widths, tables, bars, times. */
#ifndef WEIR_CLI_TERM_H
#define WEIR_CLI_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "weir/weir.h"

typedef enum term_color {
    COLOR_NONE, COLOR_BOLD, COLOR_DIM, COLOR_RED, COLOR_GREEN, COLOR_YELLOW, COLOR_BLUE, COLOR_CYAN,
    COLOR_MAGENTA
} term_color;

/* Look at the environment once: locale, NO_COLOR, TERM. Call before threads are started. */
void term_init(void);

bool term_is_tty(FILE *f);
bool term_has_color(FILE *f);            /* a terminal, and the user does not mind colours */
int  term_width(FILE *f);                /* columns; 80 when it is no terminal */
int  term_height(FILE *f);
bool term_utf8(void);

/* The escape sequence for a colour on `f`, or "". term_off() ends it. */
const char *term_on(FILE *f, term_color c);
const char *term_off(FILE *f);
term_color  term_state_color(weir_state s);

/* Columns that this text takes. Control characters count as one: that is how they are shown. */
int term_text_width(const char *text);

/* Copy `text` with hidden characters (weir_is_hidden()) as '.', cut to `width` columns (0: not
 * cut) with an ellipsis at the end. Never splits a character. The answer is `out`. */
char *term_clean(char *out, size_t size, const char *text, int width);

/* Text in lines of at most `width` columns, each after the first indented by `indent`; the first
 * starts where the cursor is, taken to be column `indent` when `started`. Ends with a newline. */
void term_wrap(FILE *out, const char *text, int indent, int width, bool started);

/* ---- tables ---- */

enum { TABLE_COLUMNS = 12 };

typedef struct table_column {
    const char *title;
    bool        right;       /* align */
    bool        shrink;      /* may be cut when the table is too wide */
} table_column;

typedef struct table {
    const table_column *column;
    int                 n_columns;
    char             ***cell;          /* rows of cells, owned */
    unsigned char     (*color)[TABLE_COLUMNS];
    size_t              n_rows, cap;
} table;

void table_init(table *t, const table_column *columns, int n);
void table_row(table *t);                                         /* begin the next one */
void table_cell(table *t, int column, term_color c, const char *fmt, ...) WEIR_PRINTF(4, 5);
void table_print(const table *t, FILE *out, int indent);
void table_fini(table *t);

/* ---- bars and times ---- */

/* A bar of `width` columns, `done` of `total` filled. */
char *term_bar(char *out, size_t size, double done, double total, int width);

/* "1.2s", "350ms", "2h05m", "3d4h": at most 6 columns. */
char *term_duration(char *out, size_t size, int64_t ms);
/* "in 5s", "3m ago", "-" for 0. */
char *term_relative(char *out, size_t size, int64_t at_ms, int64_t now_ms);
/* "2026-11-16 09:00:00.123", local time; "-" for 0. */
char *term_moment(char *out, size_t size, int64_t at_ms);
/* "12,345" */
char *term_number(char *out, size_t size, uint64_t n);

/* A progress bar on standard error, when that is a terminal; redrawn in place. */
typedef struct term_progress {
    const char *what;
    uint64_t    total;
    int64_t     last_ms;     /* of the last drawing */
    bool        shown;
} term_progress;
void term_progress_show(term_progress *p, uint64_t done);
void term_progress_end(term_progress *p);

#endif
