/* fuzz_batch_answer.c - answers as the http store gets them, to one operation of each kind. Each
 * operation has an error or outputs that can be answered again, and all of it can be released. The
 * same bytes as an error, as an event, and as a stream of events. */
#include <string.h>

#include "core/event_json.h"
#include "fuzz/fuzz.h"
#include "store/http/http.h"

enum { TAKEN = 3, ADDED = 2 };

static void answer_to_all(const char *text, size_t len)
{
    static const weir_spec  specs[ADDED] = { { .type = "a" }, { .type = "b" } };
    static const weir_job   job = { .type = "a" };
    static const weir_incoming incoming[ADDED] = { { .job = &job }, { .job = &job } };
    weir_added    added[ADDED];
    weir_imported imported[ADDED];
    weir_renewal    leases[ADDED] = { 0 };
    weir_job     *taken[TAKEN], *next[TAKEN];
    weir_op       op[WEIR_OP_COUNT + 1], *ops[WEIR_OP_COUNT + 1];
    weir_batch_head     head;
    for (int k = 0; k < WEIR_OP_COUNT; k++)
        op[k] = (weir_op){ .kind = (weir_op_kind)k };
    op[WEIR_OP_ADD].u.add = (weir_op_add){ .specs = specs, .n = ADDED, .out = added };
    op[WEIR_OP_TAKE].u.take = (weir_op_take){ .n = TAKEN, .jobs = taken };
    op[WEIR_OP_FINISH].u.finish.next = (weir_op_take){ .n = TAKEN, .jobs = next };
    op[WEIR_OP_RENEW].u.renew = (weir_op_renew){ .items = leases, .n = ADDED };
    op[WEIR_OP_IMPORT].u.import = (weir_op_import){ incoming, ADDED, imported };
    op[WEIR_OP_LIST].u.list.query.limit = TAKEN;
    op[WEIR_OP_COUNT] = (weir_op){ .kind = WEIR_OP_LIST, .u.list.query = { .limit = TAKEN,
                                                                           .ids_only = true } };
    for (int k = 0; k <= WEIR_OP_COUNT; k++)
        ops[k] = &op[k];
    if (weir__batch_read_answers(text, len, &head, ops, WEIR_OP_COUNT + 1, NULL))
        return;
    MUST(strlen(head.run) <= WEIR_BATCH_RUN);
    weir_buf out = { 0 };
    for (int k = 0; k <= WEIR_OP_COUNT; k++) {
        weir__batch_answer(&out, &op[k]);
        if (!op[k].err.code)
            weir__op_free(&op[k]);
    }
    MUST(!out.failed);
    weir__buf_fini(&out);
}

static void on_message(void *ctx, const char *id, const char *event, const char *data, size_t len)
{
    size_t *n = ctx;
    MUST(strlen(id) < 80 && event && (data || !len));
    ++*n;
}

/* However it is cut, it is the same messages. */
static size_t feed(const char *text, size_t len, size_t piece)
{
    size_t   n = 0;
    http_sse s = { .message = on_message, .ctx = &n };
    for (size_t at = 0; at < len; at += piece)
        MUST(weir__sse_feed(&s, text + at, len - at < piece ? len - at : piece));
    weir__sse_fini(&s);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    weir_arena  arena = { 0 };
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = &arena };
    weir_error  err;
    weir_event  event;
    answer_to_all(text, size);
    if (weir__batch_error(text, size, &err))
        MUST(err.code < WEIR_CODE_COUNT && strlen(err.msg) < sizeof err.msg);
    if (weir__event_read(&in, text, size, &event))
        MUST(event.kind < WEIR_EVENT_COUNT && event.state < WEIR_STATE_COUNT);
    weir__arena_free(&arena);
    if (size) {
        size_t whole = feed(text, size, size);
        MUST(feed(text, size, 1) == whole && feed(text, size, 7) == whole);
    }
    return 0;
}
