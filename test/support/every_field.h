/* every_field.h - a struct with a member of every kind, and the table that reads one from JSON. */
#ifndef WEIR_TEST_EVERY_FIELD_H
#define WEIR_TEST_EVERY_FIELD_H

#include "core/fields.h"

enum { TEXT_BYTES = 8, MOST_ITEMS = 5, MOST_PARTS = 3 };

typedef struct part {
    uint64_t        id;
    uint32_t        delivery;
    weir_json_piece result;
} part;

typedef struct whole {
    const char     *text, *type;
    int64_t         n, wait_ms, at;
    int32_t         small, priority;
    bool            flag, had_flag;
    weir_state      state;
    uint32_t        states;
    weir_backoff    backoff;
    weir_json_piece raw;
    weir_texts      texts;
    weir_ids        ids;
    weir_items      parts;
    part            one;
} whole;

#define PART(m) offsetof(part, m)
static const weir_field part_fields[] = {
    WEIR_FIELD("id", weir__as_id, PART(id), .needed = true),
    WEIR_FIELD("delivery", weir__as_delivery, PART(delivery)),
    WEIR_FIELD("result", weir__as_raw, PART(result)),
    { 0 }
};
#define AT(m) offsetof(whole, m)
static const weir_field fields[] = {
    WEIR_FIELD("text", weir__as_text, AT(text), .min = 1, .max = TEXT_BYTES),
    WEIR_FIELD("type", weir__as_type, AT(type)),
    WEIR_FIELD("n", weir__as_int, AT(n)),
    WEIR_FIELD("wait", weir__as_ms, AT(wait_ms), .min = 10, .max = 60000),
    WEIR_FIELD("at", weir__as_moment, AT(at)),
    WEIR_FIELD("small", weir__as_int32, AT(small)),
    WEIR_FIELD("priority", weir__as_priority, AT(priority)),
    WEIR_FIELD("flag", weir__as_bool, AT(flag), .given = AT(had_flag)),
    WEIR_FIELD("state", weir__as_state, AT(state)),
    WEIR_FIELD("states", weir__as_states, AT(states)),
    WEIR_FIELD("backoff", weir__as_backoff, AT(backoff)),
    WEIR_FIELD("raw", weir__as_raw, AT(raw)),
    WEIR_FIELD("texts", weir__as_texts, AT(texts), .max = MOST_ITEMS),
    WEIR_FIELD("ids", weir__as_ids, AT(ids), .min = 1, .max = MOST_ITEMS),
    WEIR_FIELD("parts", weir__as_list, AT(parts), .max = MOST_PARTS, .fields = part_fields,
               .size = sizeof(part)),
    WEIR_FIELD("one", weir__as_object, AT(one), .fields = part_fields),
    { 0 }
};
#undef AT
#undef PART

#endif
