/* fuzz_cron.c - an expression on the first line, a moment in hexadecimal on the second. An
 * expression that is accepted fires strictly later, and has words. */
#include <string.h>

#include "core/cron.h"
#include "fuzz/fuzz.h"

static void check(const weir_cron *c, int64_t after)
{
    weir_buf words = { 0 };
    weir__cron_words(c, &words);
    MUST(words.len > 0);
    weir__buf_fini(&words);
    for (int i = 0; i < 3; i++) {
        int64_t next = weir__cron_next(c, 0, after);
        MUST(next > after);
        if (next == WEIR_CRON_NEVER)
            break;
        MUST(next <= WEIR_CRON_END_MS);
        MUST(weir__cron_next(c, 0, next - 1) == next);
        after = next;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const zones[] = { NULL, "Europe/Berlin", "Australia/Lord_Howe" };
    char *text = strndup((const char *)data, size);
    MUST(text);
    char   *line = strchr(text, '\n');
    int64_t after = line ? (int64_t)strtoull(line + 1, NULL, 16) : 0;
    if (line)
        *line = 0;
    for (size_t i = 0; i < 6; i++) {
        weir_cron  c;
        weir_error err = { 0 };
        if (!weir__cron_parse(&c, text, zones[i / 2], i & 1, &err))
            check(&c, after);
        else
            MUST(err.code == WEIR_EINVAL || err.code == WEIR_ELIMIT);
    }
    free(text);
    return 0;
}
