/* fuzz_fields.c - bodies read by a table: whatever the bytes, they are read or refused by name, and
 * what is read is within its bounds. */
#include <string.h>

#include "core/fields.h"
#include "core/job.h"
#include "fuzz/fuzz.h"

typedef struct part {
    uint64_t id;
    uint32_t delivery;
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
    WEIR_FIELD("text", weir__as_text, AT(text), .min = 1, .max = 100),
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
    WEIR_FIELD("texts", weir__as_texts, AT(texts), .max = 5),
    WEIR_FIELD("ids", weir__as_ids, AT(ids), .min = 1, .max = 5),
    WEIR_FIELD("parts", weir__as_list, AT(parts), .max = 5, .fields = part_fields,
               .size = sizeof(part)),
    WEIR_FIELD("one", weir__as_object, AT(one), .fields = part_fields),
    { 0 }
};

typedef struct held {
    struct held *next;
    max_align_t  bytes[];
} held;

static void *hold(void *ctx, size_t size)
{
    held *h = calloc(1, sizeof *h + size), **first = ctx;
    MUST(h);
    h->next = *first;
    *first = h;
    return h->bytes;
}

static void check_refused(const weir_reader *in, weir_code rc)
{
    MUST(rc == WEIR_EINVAL || rc == WEIR_ELIMIT);
    MUST(in->err.code == rc && in->err.msg[0]);
    MUST(memchr(in->err.field, 0, sizeof in->err.field));
    MUST(!*in->err.field || in->err.msg[0] == in->err.field[0] || in->err.field[0] == 0x7f);
}

static void check_text(const char *text, size_t max)
{
    MUST(strlen(text) <= max && weir__utf8_valid(text, strlen(text)));
}

static void check_whole(const whole *w)
{
    if (w->text)
        check_text(w->text, 100);
    if (w->type)
        check_text(w->type, WEIR_MAX_TYPE);
    MUST(!w->wait_ms || (w->wait_ms >= 10 && w->wait_ms <= 60000));
    MUST(w->at >= 0 && w->state < WEIR_STATE_COUNT && w->states < WEIR_BIT(WEIR_STATE_COUNT));
    MUST(w->had_flag || !w->flag);
    MUST(w->backoff.jitter_pct >= 0 && w->backoff.jitter_pct <= 100);
    MUST(!w->raw.len || weir__json_valid(w->raw.text, w->raw.len, 1000, NULL, NULL));
    MUST(w->texts.n <= 5 && w->ids.n <= 5 && w->parts.n <= 5);
    for (size_t i = 0; i < w->texts.n; i++)
        check_text(w->texts.text[i], SIZE_MAX);
    MUST(!w->texts.text || !w->texts.text[w->texts.n]);
    for (size_t i = 0; i < w->ids.n; i++)
        MUST(w->ids.id[i] > 0);
    for (size_t i = 0; i < w->parts.n; i++)
        MUST(((part *)w->parts.item)[i].id > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    held           *first = NULL;
    weir_reader     in = { .alloc = hold, .ctx = &first };
    weir_json_piece all = { (const char *)data, size };
    whole           w = { 0 };
    weir_spec       spec;
    weir_code       rc = weir__read_check(&in, all.text, all.len, 120);
    if (rc) {
        check_refused(&in, rc);
        return 0;
    }
    if ((rc = weir__read(&in, fields, all, &w)))
        check_refused(&in, rc);
    else
        check_whole(&w);
    if ((rc = weir__read_spec(&in, all, &spec)))
        check_refused(&in, rc);
    else
        MUST(!weir__spec_check(&spec, -1, NULL));
    while (first) {
        held *next = first->next;
        free(first);
        first = next;
    }
    return 0;
}
