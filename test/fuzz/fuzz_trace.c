/* fuzz_trace.c - a trace context that is accepted is written as it was, in version 00; in a job's
 * values any JSON may be. */
#include <string.h>

#include "core/trace.h"
#include "fuzz/fuzz.h"
#include "weir/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    weir_trace  t;
    char        back[WEIR_TRACEPARENT_LEN + 1];
    if (weir__trace_parse(&t, text, size)) {
        weir_trace again;
        weir__trace_format(&t, back);
        MUST(!memcmp(back + 2, text + 2, 51));
        MUST(weir__trace_parse(&again, back, strlen(back)));
    }
    if (weir_json_valid(text, size))
        weir__trace_of_values(&t, text, size);
    return 0;
}
