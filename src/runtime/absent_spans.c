/* absent_spans.c - stands for spans.c in a weir that was built without HTTP: no span is sent. */
#include <stdlib.h>

#include "base/fail.h"
#include "runtime/trace.h"

atomic_bool weir__tracing;

void weir__span_send(const weir_span *s)
{
    (void)s;
}

weir_code weir_trace_start(const weir_trace_config *config, weir_error *err)
{
    if (config && config->endpoint)
        return weir__fail_field(err, WEIR_EINVAL, "endpoint",
                                "this weir was built without HTTP and cannot send spans");
    return WEIR_OK;
}

weir_code weir_trace_stop(int64_t timeout_ms, weir_error *err)
{
    (void)timeout_ms;
    (void)err;
    return WEIR_OK;
}

void weir_get_trace_stats(weir_trace_stats *out)
{
    *out = (weir_trace_stats){ 0 };
}
