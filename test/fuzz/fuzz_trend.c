/* fuzz_trend.c - a record of a trend that is read is written so that it reads as the same, and
 * joined with itself stays as it is. */
#include <stdlib.h>
#include <string.h>

#include "core/trend.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char      *text = malloc(size + 1);
    char       out[WEIR_TREND_MAX_BYTES], again[WEIR_TREND_MAX_BYTES];
    weir_trend t, back;
    MUST(text);
    memcpy(text, data, size);
    text[size] = 0;
    if (!weir__trend_read(&t, text, NULL)) {
        MUST(weir__trend_write(&t, out) < sizeof out);
        MUST(!weir__trend_read(&back, out, NULL));
        MUST(!memcmp(&t, &back, sizeof t));
        weir__trend_join_texts(out, text, again);
        MUST(!strcmp(out, again));
        MUST(weir__trend_share(t.waited, 0.5) <= weir__trend_share(t.waited, 0.95));
        weir__trend_follow(&t, &back);
        MUST(weir__trend_write(&t, out) < sizeof out);
    }
    free(text);
    return 0;
}
