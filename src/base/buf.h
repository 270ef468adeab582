/* buf.h - a byte buffer that grows. {0} is empty. After a failed allocation `failed` is set and
 * further appends do nothing, so that a caller may check once at the end. */
#ifndef WEIR_BASE_BUF_H
#define WEIR_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "weir/error.h"

typedef struct weir_buf {
    char  *data;       /* always ends with a NUL that len does not count, once anything was added */
    size_t len, cap;
    bool   failed;
} weir_buf;

void weir__buf_fini(weir_buf *b);
void weir__buf_clear(weir_buf *b);                 /* empty, keeps its memory */
bool weir__buf_reserve(weir_buf *b, size_t more);
void weir__buf_append(weir_buf *b, const void *bytes, size_t n);    /* weir__buf_add(), in full */

/* Most appends find room: that much is done in place, and for a literal costs next to nothing. */
static inline void weir__buf_add(weir_buf *b, const void *bytes, size_t n)
{
    if (b->cap - b->len <= n || b->failed) {
        weir__buf_append(b, bytes, n);
        return;
    }
    if (n)
        memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = '\0';
}

static inline void weir__buf_str(weir_buf *b, const char *text)
{
    weir__buf_add(b, text, strlen(text));
}

static inline void weir__buf_char(weir_buf *b, char c)
{
    weir__buf_add(b, &c, 1);
}

void weir__buf_int(weir_buf *b, int64_t n);
void weir__buf_uint(weir_buf *b, uint64_t n);
void weir__buf_printf(weir_buf *b, const char *fmt, ...) WEIR_PRINTF(2, 3);
/* Give the bytes to the caller (free()); the buffer is empty after. NULL if anything failed. */
char *weir__buf_steal(weir_buf *b, size_t *len);

/* How much of `text` to keep so that it is at most `max` bytes and no UTF-8 character is cut. */
size_t weir__utf8_cut(const char *text, size_t len, size_t max);

#endif
