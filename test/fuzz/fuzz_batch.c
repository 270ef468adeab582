/* fuzz_batch.c - batches as the server gets them: they are read or refused by name, and what was
 * read is the same when it is written and read again. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "op/batch.h"

static void write_batch(weir_buf *out, const weir_batch *b)
{
    weir__batch_begin(out, b->caller ? b->caller : "", b->number, b->run ? b->run : "");
    for (size_t i = 0; i < b->n; i++)
        weir__batch_add(out, &b->op[i]);
    weir__batch_end(out);
    MUST(!out->failed);
}

/* What has not passed weir__op_check() need not be writable. */
static bool can_be_written(weir_batch *b)
{
    bool ok = b->caller && (!b->run || *b->run);
    for (size_t i = 0; i < b->n; i++)
        ok = ok && !weir__op_check(&b->op[i], NULL);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_arena  arena = { 0 };
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = &arena };
    weir_batch  batch, again;
    weir_buf    one = { 0 }, two = { 0 };
    weir_code   rc = weir__batch_read(&in, (const char *)data, size, &batch);
    if (rc) {
        MUST(in.err.code == rc && in.err.msg[0]);
        MUST(rc == WEIR_EINVAL || rc == WEIR_ELIMIT);
    } else if (can_be_written(&batch)) {
        write_batch(&one, &batch);
        MUST(!weir__batch_read(&in, one.data, one.len, &again));
        MUST(again.n == batch.n && again.number == batch.number);
        MUST(can_be_written(&again));
        write_batch(&two, &again);
        MUST(one.len == two.len && !memcmp(one.data, two.data, one.len));
    }
    weir__buf_fini(&one);
    weir__buf_fini(&two);
    weir__arena_free(&arena);
    return 0;
}
