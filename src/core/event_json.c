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
    if (e->id && e->state != WEIR_STATE_ANY) {
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

/* ---- and back ---- */

typedef struct read_event {
    weir_event      e;
    const char     *name;
    weir_json_piece result, data;
    const char     *text;
} read_event;

bool weir__event_read(weir_reader *in, const char *text, size_t len, weir_event *out)
{
#define EVENT(member) offsetof(read_event, member)
    static const weir_field fields[] = {
        WEIR_FIELD("event", weir__as_text, EVENT(name), .needed = true),
        WEIR_FIELD("at", weir__as_int, EVENT(e.at)),
        WEIR_FIELD("id", weir__as_number, EVENT(e.id)),
        WEIR_FIELD("type", weir__as_text, EVENT(e.type)),
        WEIR_FIELD("state", weir__as_state, EVENT(e.state)),
        WEIR_FIELD("attempts", weir__as_int32, EVENT(e.attempts)),
        WEIR_FIELD("progress", weir__as_int32, EVENT(e.progress)),
        WEIR_FIELD("delivery", weir__as_any_delivery, EVENT(e.delivery)),
        WEIR_FIELD("result", weir__as_raw, EVENT(result)),
        WEIR_FIELD("data", weir__as_raw, EVENT(data)),
        WEIR_FIELD("text", weir__as_text, EVENT(text)),
        WEIR_FIELD("missed", weir__as_any_delivery, EVENT(e.missed)),
        { 0 }
    };
#undef EVENT
    read_event      got = { 0 };
    weir_json_piece all = { text, len };
    if (weir__read_check(in, text, len, WEIR_MAX_DEPTH + 2) || weir__read(in, fields, all, &got) ||
        !weir_event_parse(got.name, &got.e.kind))
        return false;
    weir_json_piece raw = got.result.text ? got.result : got.data;
    if (raw.text) {
        char *copy = in->alloc(in->ctx, raw.len + 1);
        if (!copy)
            return false;
        memcpy(copy, raw.text, raw.len);
        got.e.text = copy;
        got.e.text_len = raw.len;
    } else if (got.text) {
        got.e.text = got.text;
        got.e.text_len = strlen(got.text);
    }
    *out = got.e;
    return true;
}
