/* fuzz_fields.c - bodies read by a table: whatever the bytes, they are read or refused by name, and
 * what is read is within its bounds. */
#include <string.h>

#include "core/job.h"
#include "fuzz/fuzz.h"
#include "support/every_field.h"

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
        check_text(w->text, TEXT_BYTES);
    if (w->type)
        check_text(w->type, WEIR_MAX_TYPE);
    MUST(!w->wait_ms || (w->wait_ms >= 10 && w->wait_ms <= 60000));
    MUST(w->at >= 0 && w->state < WEIR_STATE_COUNT && w->states < WEIR_BIT(WEIR_STATE_COUNT));
    MUST(w->had_flag || !w->flag);
    MUST(w->backoff.jitter_pct >= 0 && w->backoff.jitter_pct <= 100);
    MUST(!w->raw.len || weir__json_valid(w->raw.text, w->raw.len, 1000, NULL, NULL));
    MUST(w->texts.n <= MOST_ITEMS && w->ids.n <= MOST_ITEMS && w->parts.n <= MOST_PARTS);
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
