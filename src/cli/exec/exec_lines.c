/* exec_lines.c - lines from the pipes of a program. No input and output in here, so that it can be
 * tried with any bytes. */
#include "cli/exec/exec_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool text_add(text *t, const char *bytes, size_t n)
{
    if (t->len + n + 1 > t->cap) {
        size_t cap = t->cap ? t->cap : 4096;
        while (cap < t->len + n + 1)
            cap *= 2;
        char *p = realloc(t->bytes, cap);
        if (!p)
            return false;
        t->bytes = p;
        t->cap = cap;
    }
    memcpy(t->bytes + t->len, bytes, n);
    t->len += n;
    t->bytes[t->len] = 0;
    return true;
}

static void whole_line(text *t, line_fn *fn, void *ctx)
{
    size_t n = strlen(t->bytes);
    if (n && t->bytes[n - 1] == '\r')
        t->bytes[n - 1] = 0;
    fn(ctx, t->bytes);
    t->len = 0;
}

void lines_add(text *begun, const char *bytes, size_t n, line_fn *fn, void *ctx)
{
    for (size_t i = 0; i < n;) {
        const char *end = memchr(bytes + i, '\n', n - i);
        size_t      part = end ? (size_t)(end - bytes) - i : n - i;
        bool        full = begun->len + part > LINE_MAX_BYTES;
        if (full)
            part = LINE_MAX_BYTES - begun->len;
        if (!text_add(begun, bytes + i, part))
            return;
        i += part;
        if (end && !full)
            i++;
        if (end || full)
            whole_line(begun, fn, ctx);
    }
}

void lines_end(text *begun, line_fn *fn, void *ctx)
{
    if (begun->len)
        whole_line(begun, fn, ctx);
}

/* "40/100", "40/100 {json}" */
static bool progress(const char *rest, said *out)
{
    char *end;
    errno = 0;
    out->done = strtoll(rest, &end, 10);
    if (end == rest || *end != '/')
        return false;
    const char *second = end + 1;
    out->total = strtoll(second, &end, 10);
    if (end == second || errno || (*end && *end != ' '))
        return false;
    while (*end == ' ')
        end++;
    out->text = *end ? end : NULL;
    return true;
}

said said_on_fd3(const char *line)
{
    said s = { .kind = SAID_PROGRESS };
    if (strncmp(line, "progress ", 9) == 0 && progress(line + 9, &s))
        return s;
    if (strncmp(line, "log ", 4) == 0)
        return (said){ .kind = SAID_LOG, .text = line + 4 };
    return (said){ .kind = *line ? SAID_OTHER : SAID_NOTHING, .text = line };
}
