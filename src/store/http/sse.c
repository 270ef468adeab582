/* sse.c - server-sent events: a stream of bytes, cut into messages. Lines end with LF, CR or both;
 * an empty one ends a message. Only then its id counts: if the connection breaks before, the server
 * must send that message again. */
#include "store/http/http.h"

#include <stdio.h>
#include <string.h>

static void end_message(http_sse *s)
{
    const char *data = s->data.len ? s->data.data : "";
    if (s->has_id)
        memcpy(s->id, s->next_id, sizeof s->id);
    if (s->has_data || s->has_id)
        s->message(s->ctx, s->id, s->event.len ? s->event.data : "", s->has_data ? data : NULL,
                   s->data.len);
    s->has_data = s->has_id = false;
    weir__buf_clear(&s->event);
    weir__buf_clear(&s->data);
}

static void end_line(http_sse *s)
{
    char  *line = s->line.len ? s->line.data : "";
    size_t len = s->line.len, name = strcspn(line, ":");
    if (!len) {
        end_message(s);
        return;
    }
    const char *value = line + name + (name < len);
    value += *value == ' ';
    size_t value_len = len - (size_t)(value - line);
    if (name == 4 && !memcmp(line, "data", 4)) {
        if (s->has_data)
            weir__buf_char(&s->data, '\n');
        weir__buf_add(&s->data, value, value_len);
        s->has_data = true;
    } else if (name == 5 && !memcmp(line, "event", 5)) {
        weir__buf_clear(&s->event);
        weir__buf_add(&s->event, value, value_len);
    } else if (name == 2 && !memcmp(line, "id", 2) && value_len < sizeof s->next_id) {
        memcpy(s->next_id, value, value_len + 1);
        s->has_id = true;
    }                                       /* others, and comments (no name), say nothing to us */
    weir__buf_clear(&s->line);
}

bool weir__sse_feed(http_sse *s, const char *bytes, size_t len)
{
    const char *end = bytes + len;
    while (bytes < end) {
        if (s->after_cr && *bytes == '\n')
            bytes++;
        s->after_cr = false;
        const char *stop = bytes;
        while (stop < end && *stop != '\n' && *stop != '\r')
            stop++;
        weir__buf_add(&s->line, bytes, (size_t)(stop - bytes));
        if (s->line.failed || s->data.failed || s->event.failed ||
            s->line.len + s->data.len > WEIR_HTTP_MAX_EVENT)
            return false;
        if (stop < end) {
            s->after_cr = *stop++ == '\r';
            end_line(s);
        }
        bytes = stop;
    }
    return true;
}

void weir__sse_reset(http_sse *s)
{
    weir__buf_clear(&s->line);
    weir__buf_clear(&s->event);
    weir__buf_clear(&s->data);
    s->after_cr = s->has_data = s->has_id = false;
}

void weir__sse_fini(http_sse *s)
{
    weir__buf_fini(&s->line);
    weir__buf_fini(&s->event);
    weir__buf_fini(&s->data);
}
