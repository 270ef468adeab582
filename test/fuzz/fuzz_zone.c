/* fuzz_zone.c - the bytes of a time zone's file. A zone that is accepted has a span for each
 * moment, and spans follow each other. */
#include "core/zone.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_zone *z;
    if (weir__zone_parse(&z, "fuzz", data, size, NULL))
        return 0;
    int64_t at = INT64_C(-62135596800);
    for (int i = 0; i < 300 && at < INT64_C(253402300800); i++) {
        weir_zone_span s = weir__zone_span(z, at);
        MUST(s.from <= at && at < s.until);
        if (s.until == INT64_MAX)
            break;
        at = s.until;
    }
    weir__zone_destroy(z);
    return 0;
}
