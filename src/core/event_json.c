/* event_json.c - an event as JSON: see event_json.h. */
#include "core/event_json.h"

#include <string.h>

static void text(weir_buf *b, const char *name, const char *value, size_t len)
{
    weir__buf_str(b, name);
    weir__json_string(b, value, len);
}

static void number(weir_buf *b, const char *name, int64_t n)
{
    weir__buf_str(b, name);
    weir__buf_int(b, n);
}

static void raw(weir_buf *b, const char *name, const char *json, size_t len)
{
    weir__buf_str(b, name);
    weir__json_line(b, json, len);
}

void weir__event_json(weir_buf *out, const weir_event *e)
{
    const char *name = weir_event_name(e->kind);
    text(out, "{\"event\":", name, strlen(name));
    number(out, ",\"at\":", e->at);
    if (e->id) {
        weir__buf_str(out, ",\"id\":");
        weir__buf_uint(out, e->id);
    }
    if (e->type)
        text(out, ",\"type\":", e->type, strlen(e->type));
    if (e->id && e->state != WEIR_ANY) {
        name = weir_state_name(e->state);
        text(out, ",\"state\":", name, strlen(name));
    }
    if (e->id) {
        number(out, ",\"attempts\":", e->attempts);
        number(out, ",\"progress\":", e->progress);
        number(out, ",\"delivery\":", e->delivery);
    }
    if (e->text && e->kind == WEIR_EVENT_COMPLETE)
        raw(out, ",\"result\":", e->text, e->text_len);
    else if (e->text && e->kind == WEIR_EVENT_PROGRESS)
        raw(out, ",\"data\":", e->text, e->text_len);
    else if (e->text)
        text(out, ",\"text\":", e->text, e->text_len);
    if (e->missed)
        number(out, ",\"missed\":", e->missed);
    weir__buf_char(out, '}');
}
