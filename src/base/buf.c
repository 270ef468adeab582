/* buf.c - a byte buffer that grows. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 64 };

void weir__buf_fini(weir_buf *b)
{
    free(b->data);
    *b = (weir_buf){ 0 };
}

void weir__buf_clear(weir_buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->data)
        b->data[0] = '\0';
}

bool weir__buf_reserve(weir_buf *b, size_t more)
{
    if (b->failed)
        return false;
    if (b->cap > b->len && more < b->cap - b->len)
        return true;
    if (more > SIZE_MAX / 2 - b->len - 1) {
        b->failed = true;
        return false;
    }
    size_t need = b->len + more + 1, cap = b->cap ? b->cap : FIRST_CAP;
    while (cap < need)
        cap *= 2;
    char *data = realloc(b->data, cap);
    if (!data) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->cap = cap;
    b->data[b->len] = '\0';
    return true;
}

void weir__buf_append(weir_buf *b, const void *bytes, size_t n)
{
    if (!weir__buf_reserve(b, n))
        return;
    if (n)
        memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = '\0';
}

static void add_number(weir_buf *b, bool minus, uint64_t n)
{
    char   digits[24];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    if (minus)
        digits[--at] = '-';
    weir__buf_add(b, digits + at, sizeof digits - at);
}

void weir__buf_int(weir_buf *b, int64_t n)
{
    add_number(b, n < 0, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
}

void weir__buf_uint(weir_buf *b, uint64_t n)
{
    add_number(b, false, n);
}

void weir__buf_printf(weir_buf *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0) {
        b->failed = true;
        return;
    }
    if (!weir__buf_reserve(b, (size_t)n))
        return;
    va_start(args, fmt);
    vsnprintf(b->data + b->len, (size_t)n + 1, fmt, args);
    va_end(args);
    b->len += (size_t)n;
}

char *weir__buf_steal(weir_buf *b, size_t *len)
{
    if (len)
        *len = 0;
    if (!weir__buf_reserve(b, 0)) {     /* so that an empty buffer gives "" */
        weir__buf_fini(b);
        return NULL;
    }
    char *data = b->data;
    if (len)
        *len = b->len;
    *b = (weir_buf){ 0 };
    return data;
}

size_t weir__utf8_cut(const char *text, size_t len, size_t max)
{
    if (len <= max)
        return len;
    /* text[max] is the first byte that goes: when it is inside a character, so does its start. A
     * run of more than three such bytes is not UTF-8 and is cut as it is. */
    size_t at = max;
    for (int back = 0; back < 3 && at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80; back++)
        at--;
    return ((unsigned char)text[at] & 0xc0) == 0x80 ? max : at;
}
