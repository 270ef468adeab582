/* fuzz_events.c - the events of an owner as another process reads them from its socket. The first
 * byte says how large the pieces are in which the rest comes, and whether a hello was before it. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "store/sqlite/outside.h"
#include "store/sqlite/sq.h"

enum { HELLO = 0x80 };

static void note_text(weir_buf *b, const char *text, size_t len)
{
    weir__buf_int(b, text ? (int64_t)len : -1);
    weir__buf_char(b, ' ');
    weir__buf_add(b, text, text ? len : 0);
}

static void note(void *ctx, const weir_event *events, size_t n)
{
    weir_buf *b = ctx;
    MUST(n > 0);
    for (const weir_event *e = events; e < events + n; e++) {
        MUST((unsigned)e->kind < WEIR_EVENT_KINDS && (unsigned)e->state < WEIR_STATES);
        MUST(e->progress >= 0 && e->progress <= 100 && e->attempts >= 0);
        MUST(!e->type || strlen(e->type) <= WEIR_MAX_TYPE);
        MUST(e->text ? e->text_len <= WEIR_MAX_DATA && !e->text[e->text_len] : !e->text_len);
        int64_t numbers[] = { e->kind, e->state, (int64_t)e->id, e->at, e->attempts, e->progress,
                              e->delivery, e->missed };
        weir__buf_add(b, numbers, sizeof numbers);
        note_text(b, e->type, e->type ? strlen(e->type) : 0);
        note_text(b, e->text, e->text_len);
    }
}

/* What is told of `data` when it comes in pieces; false: it was refused. */
static bool decode(const uint8_t *data, size_t size, size_t piece, weir_buf *told)
{
    sq_stream s = { .greeted = false };
    weir_env  env = { .emit = note, .ctx = told };
    bool      ok = true;
    for (size_t at = 0, n; ok && at < size; at += n) {
        n = size - at < piece ? size - at : piece;
        weir__buf_add(&s.in, data + at, n);
        ok = weir__sq_digest(&s, &env);
        MUST(!ok || s.in.len < sizeof(sq_record) + WEIR_MAX_TYPE + WEIR_MAX_DATA);
    }
    weir__buf_fini(&s.in);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    weir_buf all = { 0 }, once = { 0 }, pieces = { 0 };
    if (data[0] & HELLO)
        weir__buf_str(&all, SQ_HELLO);
    weir__buf_add(&all, data + 1, size - 1);
    const uint8_t *bytes = (const uint8_t *)all.data;
    bool           ok = decode(bytes, all.len, all.len, &once);
    MUST(decode(bytes, all.len, (data[0] & ~HELLO) + 1, &pieces) == ok);
    MUST(once.len == pieces.len && (!once.len || !memcmp(once.data, pieces.data, once.len)));
    weir__buf_fini(&all);
    weir__buf_fini(&once);
    weir__buf_fini(&pieces);
    return 0;
}
