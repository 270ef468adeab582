/* history.c - the entries of a job's history: see history.h. */
#include "core/history.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/fail.h"
#include "core/job.h"

enum {
    DEPTH = 2,                  /* an array of objects */
    MAX_SHORT = 200             /* bytes of a worker and of an error; more is cut */
};

static const char *const kind_names[] = {
#define X(name, text) text,
    WEIR__PASTS(X)
#undef X
};

/* ---- writing ---- */

static void number_if(weir_buf *b, const char *name, int64_t n)
{
    if (n) {
        weir__buf_str(b, name);
        weir__buf_int(b, n);
    }
}

static void text_if(weir_buf *b, const char *name, const char *text)
{
    if (text) {
        weir__buf_str(b, name);
        weir__json_string(b, text, weir__utf8_cut(text, strlen(text), MAX_SHORT));
    }
}

static void put_entry(weir_buf *b, const weir_history_entry *p, uint64_t n)
{
    weir__buf_printf(b, "{\"n\":%" PRIu64 ",\"at\":%" PRId64 ",\"event\":\"%s\",\"state\":\"%s\"",
                     n, p->at, kind_names[p->kind], weir_state_name(p->state));
    number_if(b, ",\"delivery\":", p->delivery);
    text_if(b, ",\"worker\":", p->worker);
    number_if(b, ",\"started_at\":", p->started_at);
    text_if(b, ",\"error\":", p->error);
    text_if(b, ",\"by\":", p->by);
    number_if(b, ",\"planned\":", p->planned);
    number_if(b, ",\"until\":", p->until);
    if (p->new_priority)
        weir__buf_printf(b, ",\"old_priority\":%" PRId32 ",\"priority\":%" PRId32, p->old_priority,
                         p->priority);
    if (p->new_data)
        weir__buf_str(b, ",\"new_data\":true");
    weir__buf_char(b, '}');
}

/* The number of an entry; 0: it has none. */
static uint64_t number_of(weir_json_piece entry)
{
    weir_json_walk  w;
    weir_json_piece name, value;
    uint64_t        n = 0;
    if (!weir__json_open(&w, entry) || !w.object)
        return 0;
    while (weir__json_next(&w, &name, &value)) {
        if (name.len != 3 || name.text[1] != 'n')
            continue;
        for (size_t i = 0; i < value.len && value.text[i] >= '0' && value.text[i] <= '9'; i++)
            n = n * 10 + (uint64_t)(value.text[i] - '0');
    }
    return n;
}

/* How many entries there are, and the number of the last. False: it is no array of JSON. */
static bool count(const weir_buf *text, size_t *entries, uint64_t *last)
{
    weir_json_walk  w;
    weir_json_piece none, entry;
    *entries = 0;
    *last = 0;
    if (!text->len || !weir__json_valid(text->data, text->len, DEPTH, NULL, NULL) ||
        !weir__json_open(&w, (weir_json_piece){ text->data, text->len }) || w.object)
        return false;
    for (; weir__json_next(&w, &none, &entry); ++*entries)
        *last = number_of(entry);
    return true;
}

/* The oldest go until the rest fits. */
static void cut(weir_buf *text, size_t entries)
{
    weir_json_walk  w;
    weir_json_piece none, entry;
    const char     *from = text->data, *end = text->data + text->len;
    weir__json_open(&w, (weir_json_piece){ text->data, text->len });
    while (weir__json_next(&w, &none, &entry)) {
        from = entry.text;
        if (entries <= WEIR_MAX_HISTORY && (size_t)(end - from) < WEIR_MAX_HISTORY_BYTES)
            break;
        entries--;
    }
    size_t gone = (size_t)(from - text->data) - 1;      /* all but a bracket */
    text->data[0] = '[';
    memmove(text->data + 1, from, text->len - gone);    /* with its NUL */
    text->len -= gone;
}

void weir__history_add(weir_buf *text, const weir_history_entry *p)
{
    size_t   entries;
    uint64_t last;
    if (text->failed)
        return;
    if (count(text, &entries, &last)) {
        while (text->data[text->len - 1] != ']')        /* white space */
            text->len--;
        text->len--;
    } else {
        weir__buf_clear(text);
        weir__buf_char(text, '[');
    }
    if (entries)
        weir__buf_char(text, ',');
    put_entry(text, p, last + 1);
    weir__buf_char(text, ']');
    if (!text->failed && (entries == WEIR_MAX_HISTORY || text->len > WEIR_MAX_HISTORY_BYTES))
        cut(text, entries + 1);
}

/* ---- reading ---- */

static weir_code read_kind(weir_reader *in, const weir_field *f, weir_json_piece value, void *to)
{
    (void)f;
    for (int k = 0; k < WEIR__HISTORY_COUNT; k++) {
        size_t len = strlen(kind_names[k]);
        if (value.len == len + 2 && !memcmp(value.text + 1, kind_names[k], len)) {
            *(weir_history_kind *)to = (weir_history_kind)k;
            return WEIR_OK;
        }
    }
    return weir__not_a(in, value, "an event of a history");
}

#define AT(member) offsetof(weir_history_entry, member)
static const weir_field fields[] = {             /* in the order in which they are written */
    WEIR_FIELD("n", weir__as_int, AT(n), .needed = true, .min = 1, .max = INT64_MAX - 1),
    WEIR_FIELD("at", weir__as_moment, AT(at), .needed = true),
    WEIR_FIELD("event", read_kind, AT(kind), .needed = true),
    WEIR_FIELD("state", weir__as_state, AT(state), .needed = true),
    WEIR_FIELD("delivery", weir__as_delivery, AT(delivery)),
    WEIR_FIELD("worker", weir__as_text, AT(worker)),
    WEIR_FIELD("started_at", weir__as_moment, AT(started_at)),
    WEIR_FIELD("error", weir__as_text, AT(error)),
    WEIR_FIELD("by", weir__as_text, AT(by)),
    WEIR_FIELD("planned", weir__as_moment, AT(planned)),
    WEIR_FIELD("until", weir__as_moment, AT(until)),
    WEIR_FIELD("old_priority", weir__as_int32, AT(old_priority)),
    WEIR_FIELD("priority", weir__as_int32, AT(priority), .given = AT(new_priority)),
    WEIR_FIELD("new_data", weir__as_bool, AT(new_data)),
    { 0 }
};
#undef AT

weir_code weir__history_read(weir_reader *in, const char *text, size_t len, weir_items *out)
{
    const weir_field list = { .fields = fields, .size = sizeof(weir_history_entry),
                              .max = WEIR_MAX_HISTORY };
    weir_code        rc = weir__read_check(in, text, len, DEPTH);
    *out = (weir_items){ 0 };
    if (!rc)
        rc = weir__as_list(in, &list, (weir_json_piece){ text, len }, out);
    if (rc) {
        char field[2 * WEIR_FIELD_MAX];
        snprintf(field, sizeof field, "history%s", in->err.field);
        weir__fail_field(&in->err, rc, field, "%s", in->err.msg);
    }
    return rc;
}

static weir_code check_numbers(const weir_items *all, weir_error *err)
{
    const weir_history_entry *p = all->item;
    for (size_t i = 1; i < all->n; i++) {
        if (p[i].n != p[i - 1].n + 1) {
            weir__fail_field(err, WEIR_EINVAL, "n", "%" PRIu64 ", must be one more than that of "
                             "the entry before", p[i].n);
            return weir__fail_inside(err, WEIR_EINVAL, "history[%zu]", i);
        }
    }
    return WEIR_OK;
}

weir_code weir__history_valid(const char *text, size_t len, weir_error *err)
{
    weir_arena  arena = { 0 };
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = &arena };
    weir_items  all;
    if (len > WEIR_MAX_HISTORY_BYTES)
        return weir__fail_field(err, WEIR_ELIMIT, "history", "%zu bytes, at most %d "
                                "(WEIR_MAX_HISTORY_BYTES)", len, WEIR_MAX_HISTORY_BYTES);
    weir_code rc = weir__history_read(&in, text, len, &all);
    if (!rc)
        rc = check_numbers(&all, &in.err);
    if (rc && err)
        *err = in.err;
    weir__arena_free(&arena);
    return rc;
}
