/* fuzz_history.c - whatever is kept as a job's history: an entry can always be added to it, what
 * comes of that is an array within the limits, and one that may come in still may. */
#include <string.h>

#include "core/history.h"
#include "fuzz/fuzz.h"

/* Number of the last entry; 0: none. */
static uint64_t last_of(const weir_buf *text)
{
    weir_arena  arena = { 0 };
    weir_reader in = { .alloc = weir__arena_alloc, .ctx = &arena };
    weir_items  all;
    MUST(!weir__history_read(&in, text->data, text->len, &all));
    const weir_history_entry *p = all.item;
    uint64_t         n = all.n ? p[all.n - 1].n : 0;
    weir__arena_free(&arena);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_buf   text = { 0 };
    weir_error err = { 0 };
    weir__buf_add(&text, data, size);
    weir_code rc = weir__history_valid(text.data, text.len, &err);
    MUST(!rc || rc == WEIR_EINVAL || rc == WEIR_ELIMIT);
    MUST(!rc || (err.code == rc && !strncmp(err.msg, "history", 7)));
    uint64_t before = rc ? 0 : last_of(&text);
    weir__history_add(&text, &(weir_history_entry){ .at = 7, .kind = WEIR__HISTORY_FAILED,
                                           .state = WEIR_STATE_FAILED, .error = "no" });
    MUST(!text.failed && text.len <= WEIR_MAX_HISTORY_BYTES);
    MUST(weir__json_valid(text.data, text.len, 2, NULL, NULL));
    MUST(text.data[text.len - 1] == ']' && !text.data[text.len]);
    if (!rc && before < WEIR_MAX_ID)
        MUST(last_of(&text) == before + 1);
    weir__buf_fini(&text);
    return 0;
}
