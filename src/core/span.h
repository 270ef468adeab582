/* span.h - one span, and the JSON in which OTLP sends many: ExportTraceServiceRequest of
 * opentelemetry-proto, with the names of OpenTelemetry's conventions for messaging. Pure. */
#ifndef WEIR_CORE_SPAN_H
#define WEIR_CORE_SPAN_H

#include "base/buf.h"
#include "core/trace.h"

enum { WEIR__SPAN_ERROR = 200 };        /* bytes of an error in a span; more is cut */

typedef enum weir_span_kind {           /* OTLP's numbers */
    WEIR__SPAN_PRODUCER = 4,            /* jobs were added */
    WEIR__SPAN_CONSUMER = 5             /* a job was executed once */
} weir_span_kind;

typedef struct weir_span {
    weir_trace     own, parent;         /* parent {0}: the root of its trace */
    weir_span_kind kind;
    int64_t        start_ns, end_ns;    /* since 1970 */
    uint64_t       job;                 /* 0: several, or not known */
    uint32_t       delivery;            /* consumer */
    uint64_t       count;               /* producer: jobs */
    bool           failed;
    char           type[WEIR_MAX_TYPE + 1];
    char           outcome[16];         /* consumer: "done", "fail" ... */
    char           error[WEIR__SPAN_ERROR + 1];
} weir_span;

/* Append the request that sends n spans of a program. */
void weir__spans_json(weir_buf *out, const char *service, const char *instance,
                      const weir_span *spans, size_t n);

#endif
