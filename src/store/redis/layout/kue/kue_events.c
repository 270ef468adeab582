/* kue_events.c - Kue's messages: {"id":5,"event":"failed","args":["failed","why",null]}. See
 * kue_events.h. The id may be a number or a string of digits. Messages that weir publishes there
 * itself have one more member, "weir", which Kue does not look at. */
#include "store/redis/layout/kue/kue_events.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Which argument (from 1; 0: none) is the type, the text, JSON to be given as text, a number. */
typedef struct kue_kind {
    const char     *name;
    weir_event_kind kind;
    weir_state      state;
    uint8_t         type, text, json, attempts, progress;
} kue_kind;

static const kue_kind kinds[] = {
    { .name = "enqueue", .kind = WEIR_EVENT_ENQUEUE, .state = WEIR_STATE_INACTIVE, .type = 1 },
    { .name = "promotion", .kind = WEIR_EVENT_PROMOTION, .state = WEIR_STATE_INACTIVE },
    { .name = "start", .kind = WEIR_EVENT_START, .state = WEIR_STATE_ACTIVE, .type = 1 },
    { .name = "progress", .kind = WEIR_EVENT_PROGRESS, .state = WEIR_STATE_ACTIVE, .progress = 1,
      .json = 2 },
    { .name = "failed attempt", .kind = WEIR_EVENT_FAILED_ATTEMPT, .state = WEIR_STATE_INACTIVE,
      .text = 1, .attempts = 2 },
    { .name = "failed", .kind = WEIR_EVENT_FAILED, .state = WEIR_STATE_FAILED, .text = 1 },
    { .name = "complete", .kind = WEIR_EVENT_COMPLETE, .state = WEIR_STATE_COMPLETE, .json = 1 },
    { .name = "ttl exceeded", .kind = WEIR_EVENT_TTL_EXCEEDED, .state = WEIR_STATE_ACTIVE },
    { .name = "remove", .kind = WEIR_EVENT_REMOVE, .state = WEIR_STATE_ANY, .type = 1 },
};

static const kue_kind *find_kind(const char *name)
{
    for (size_t i = 0; name && i < sizeof kinds / sizeof *kinds; i++) {
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    }
    return NULL;
}

static uint64_t id_of(const json_t *id)
{
    enum { EXACT_BITS = 53 };
    double n = json_is_number(id) ? json_number_value(id) : 0;
    if (n >= 1 && n < (double)(UINT64_C(1) << EXACT_BITS))
        return (uint64_t)n;
    const char *text = json_string_value(id);
    size_t      digits = text ? strspn(text, "0123456789") : 0;
    return digits && digits < 19 && !text[digits] ? strtoull(text, NULL, 10) : 0;
}

/* Where a text begins in `strings`; they move while it grows, so pointers are made at the end. */
enum { NONE = -1 };

static ptrdiff_t keep(weir_buf *strings, const char *text, size_t len)
{
    ptrdiff_t at = (ptrdiff_t)strings->len;
    weir__buf_add(strings, text, len);
    weir__buf_add(strings, "", 1);
    return at;
}

static ptrdiff_t keep_string(weir_buf *strings, const json_t *args, size_t which, size_t *len)
{
    const json_t *value = which ? json_array_get(args, which) : NULL;
    if (!json_is_string(value))
        return NONE;
    *len = json_string_length(value);
    return keep(strings, json_string_value(value), *len);
}

static ptrdiff_t keep_json(weir_buf *strings, const json_t *args, size_t which, size_t *len)
{
    const json_t *value = which ? json_array_get(args, which) : NULL;
    if (!value || json_is_null(value))
        return NONE;
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (!text) {
        strings->failed = true;
        return NONE;
    }
    *len = strlen(text);
    ptrdiff_t at = keep(strings, text, *len);
    free(text);
    return at;
}

static int32_t number_in(const json_t *args, size_t which, int32_t most)
{
    const json_t *value = which ? json_array_get(args, which) : NULL;
    double        n = json_is_number(value) ? json_number_value(value) : 0;
    return n < 0 ? 0 : n > most ? most : (int32_t)n;
}

static bool read_event(const json_t *root, weir_event *out, weir_buf *strings)
{
    const json_t   *args = json_object_get(root, "args");
    const kue_kind *k = find_kind(json_string_value(json_object_get(root, "event")));
    uint64_t        id = id_of(json_object_get(root, "id"));
    size_t          type_len = 0, text_len = 0;
    if (!k || !id || !json_is_array(args) || json_object_get(root, "weir"))
        return false;
    ptrdiff_t type = keep_string(strings, args, k->type, &type_len);
    ptrdiff_t text = k->json ? keep_json(strings, args, k->json, &text_len)
                             : keep_string(strings, args, k->text, &text_len);
    if (strings->failed || (k->type && (type == NONE || strlen(strings->data + type) != type_len)))
        return false;
    *out = (weir_event){
        .kind = k->kind,
        .state = k->state,
        .id = id,
        .type = type == NONE ? NULL : strings->data + type,
        .attempts = number_in(args, k->attempts, WEIR_MAX_ATTEMPTS),
        .progress = k->kind == WEIR_EVENT_COMPLETE ? 100 : number_in(args, k->progress, 100),
        .text = text == NONE ? NULL : strings->data + text,
        .text_len = text_len,
    };
    return true;
}

/* JavaScript writes whole numbers beyond what jansson takes for one: then all of them are read as
 * floating ones. */
static json_t *load(const char *message, size_t len)
{
    json_t *root = json_loadb(message, len, JSON_ALLOW_NUL, NULL);
    return root ? root : json_loadb(message, len, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
}

/* Messages of weir end so: no need to read them. */
static const char OURS[] = "],\"weir\":1}";

bool weir__kue_event(const char *message, size_t len, weir_event *out, weir_buf *strings)
{
    weir__buf_clear(strings);
    if (len >= sizeof OURS && !memcmp(message + len - (sizeof OURS - 1), OURS, sizeof OURS - 1))
        return false;
    json_t *root = load(message, len);
    bool    is_one = root && read_event(root, out, strings);
    json_decref(root);
    return is_one;
}
