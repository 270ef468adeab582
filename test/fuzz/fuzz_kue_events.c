/* fuzz_kue_events.c - messages of the channel on which processes of Kue tell each other. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "store/redis/layout/kue/kue_events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_event e;
    weir_buf   strings = { 0 };
    if (weir__kue_event((const char *)data, size, &e, &strings)) {
        MUST(e.id > 0 && e.kind < WEIR_EVENT_COUNT && e.state < WEIR_STATE_COUNT);
        MUST(e.progress >= 0 && e.progress <= 100);
        MUST(e.attempts >= 0 && e.attempts <= WEIR_MAX_ATTEMPTS);
        MUST(!e.type || (e.type >= strings.data && e.type + strlen(e.type) < strings.data +
                                                                             strings.len));
        MUST(!e.text || (e.text >= strings.data && e.text + e.text_len < strings.data +
                                                                         strings.len));
        MUST(!e.text || e.text[e.text_len] == '\0');
        MUST(e.kind != WEIR_EVENT_ENQUEUE || e.type);
    }
    weir__buf_fini(&strings);
    return 0;
}
