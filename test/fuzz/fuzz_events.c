/* fuzz_events.c - frames of the socket beside a SQLite file: the events of an owner as another
 * process reads them, and both greetings. The first byte says how large the pieces are in which the
 * rest comes. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "store/sqlite/outside.h"
#include "store/sqlite/share.h"

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
        MUST((unsigned)e->kind < WEIR_EVENT_COUNT && (unsigned)e->state < WEIR_STATE_COUNT);
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
    weir_buf in = { 0 };
    weir_env env = { .emit = note, .ctx = told };
    uint64_t number = 0;
    bool     ok = true;
    for (size_t at = 0, n; ok && at < size; at += n) {
        n = size - at < piece ? size - at : piece;
        weir__buf_add(&in, data + at, n);
        ok = weir__sq_digest(&in, &env, &number);
    }
    weir__buf_add(told, &number, sizeof number);
    weir__buf_fini(&in);
    return ok;
}

static void greetings(const char *bytes, size_t len)
{
    sq_hello   hello;
    sq_welcome welcome;
    if (weir__sq_hello_get(bytes, len, &hello))
        MUST(strlen(hello.place.run) <= WEIR_MAX_RUN);
    if (weir__sq_welcome_get(bytes, len, &welcome))
        MUST(strlen(welcome.place.run) <= WEIR_MAX_RUN);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    weir_buf once = { 0 }, pieces = { 0 };
    bool     ok = decode(data + 1, size - 1, size, &once);
    MUST(decode(data + 1, size - 1, (size_t)data[0] + 1, &pieces) == ok);
    if (ok)
        MUST(once.len == pieces.len && !memcmp(once.data, pieces.data, once.len));
    greetings((const char *)data + 1, size - 1);
    weir__buf_fini(&once);
    weir__buf_fini(&pieces);
    return 0;
}
