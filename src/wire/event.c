/* event.c - the JSON of an event (core/event_json.c), read. */
#include "wire/inner.h"

#include <string.h>

typedef struct told_event {
    weir_event      e;
    const char     *name;
    weir_json_piece result, data;
    const char     *text;
} told_event;

bool weir__wire_event(weir_reader *in, const char *text, size_t len, weir_event *out)
{
#define EVENT(member) offsetof(told_event, member)
    static const weir_field fields[] = {
        WEIR_FIELD("event", weir__as_text, EVENT(name), .needed = true),
        WEIR_FIELD("at", weir__as_int, EVENT(e.at)),
        WEIR_FIELD("id", weir__wire_as_number, EVENT(e.id)),
        WEIR_FIELD("type", weir__as_text, EVENT(e.type)),
        WEIR_FIELD("state", weir__as_state, EVENT(e.state)),
        WEIR_FIELD("attempts", weir__as_int32, EVENT(e.attempts)),
        WEIR_FIELD("progress", weir__as_int32, EVENT(e.progress)),
        WEIR_FIELD("delivery", weir__wire_as_delivery, EVENT(e.delivery)),
        WEIR_FIELD("result", weir__as_raw, EVENT(result)),
        WEIR_FIELD("data", weir__as_raw, EVENT(data)),
        WEIR_FIELD("text", weir__as_text, EVENT(text)),
        WEIR_FIELD("missed", weir__wire_as_delivery, EVENT(e.missed)),
        { 0 }
    };
#undef EVENT
    told_event      got = { 0 };
    weir_json_piece all = { text, len };
    if (weir__read_check(in, text, len, WIRE_DEPTH) || weir__read(in, fields, all, &got) ||
        !weir_event_parse(got.name, &got.e.kind))
        return false;
    weir_json_piece raw = got.result.text ? got.result : got.data;
    if (raw.text) {
        char *copy = weir__wire_room(in, raw.len + 1, 1);
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
