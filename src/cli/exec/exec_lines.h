/* exec_lines.h - what a program writes on descriptors 2 and 3: bytes cut into lines, and what a
 * line on descriptor 3 means. */
#ifndef WEIR_CLI_EXEC_LINES_H
#define WEIR_CLI_EXEC_LINES_H

#include "weir/weir.h"

/* Bytes that grow; a NUL follows them once anything was added. {0} is empty; free(bytes). */
typedef struct text {
    char  *bytes;
    size_t len, cap;
} text;

bool text_add(text *t, const char *bytes, size_t n);

/* Called with each whole line, without its end ("\n", "\r\n"). A NUL in it ends it. */
typedef void line_fn(void *ctx, const char *line);

enum { LINE_MAX_BYTES = WEIR_MAX_TEXT };

/* Cut what came into lines; `begun` keeps what is not a whole one yet. A line that is longer than
 * LINE_MAX_BYTES is taken in pieces. */
void lines_add(text *begun, const char *bytes, size_t n, line_fn *fn, void *ctx);
/* There is no more: what is left is a line too. */
void lines_end(text *begun, line_fn *fn, void *ctx);

typedef enum said_kind { SAID_NOTHING, SAID_PROGRESS, SAID_LOG, SAID_OTHER } said_kind;

typedef struct said {
    said_kind   kind;
    int64_t     done, total;    /* SAID_PROGRESS */
    const char *text;           /* borrowed from the line; SAID_PROGRESS: JSON, NULL when none */
} said;

/* "progress 40/100", "progress 40/100 {json}", "log text", or anything else. */
said said_on_fd3(const char *line);

#endif
