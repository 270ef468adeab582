/* span.c - spans as OTLP's JSON. See span.h. */
#include "core/span.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "weir/weir.h"

enum { STATUS_OK = 1, STATUS_ERROR = 2 };       /* OTLP's numbers */

static void put_hex(weir_buf *out, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        weir__buf_printf(out, "%02x", bytes[i]);
}

static void put_text(weir_buf *out, const char *name, const char *text)
{
    weir__buf_printf(out, "{\"key\":\"%s\",\"value\":{\"stringValue\":", name);
    weir__json_string(out, text, strlen(text));
    weir__buf_str(out, "}}");
}

/* JSON of protocol buffers has 64-bit numbers in quotes. */
static void put_number(weir_buf *out, const char *name, uint64_t n)
{
    weir__buf_printf(out, ",{\"key\":\"%s\",\"value\":{\"intValue\":\"%llu\"}}", name,
                     (unsigned long long)n);
}

static void put_attributes(weir_buf *out, const weir_span *s)
{
    bool producer = s->kind == WEIR__SPAN_PRODUCER;
    weir__buf_str(out, ",\"attributes\":[");
    put_text(out, "messaging.system", "weir");
    weir__buf_char(out, ',');
    put_text(out, "messaging.destination.name", s->type);
    weir__buf_char(out, ',');
    put_text(out, "messaging.operation.type", producer ? "send" : "process");
    if (s->job)
        put_number(out, "messaging.message.id", s->job);
    if (producer && s->count != 1)
        put_number(out, "messaging.batch.message_count", s->count);
    if (!producer) {
        put_number(out, "weir.job.delivery", s->delivery);
        weir__buf_char(out, ',');
        put_text(out, "weir.job.outcome", s->outcome);
    }
    weir__buf_char(out, ']');
}

static void put_span(weir_buf *out, const weir_span *s)
{
    weir__buf_str(out, "{\"traceId\":\"");
    put_hex(out, s->own.trace, sizeof s->own.trace);
    weir__buf_str(out, "\",\"spanId\":\"");
    put_hex(out, s->own.span, sizeof s->own.span);
    if (weir__trace_is_set(&s->parent)) {
        weir__buf_str(out, "\",\"parentSpanId\":\"");
        put_hex(out, s->parent.span, sizeof s->parent.span);
    }
    weir__buf_str(out, "\",\"name\":");
    char name[WEIR_MAX_TYPE + 16];
    snprintf(name, sizeof name, "%s %s", s->kind == WEIR__SPAN_PRODUCER ? "add" : "process",
             s->type);
    weir__json_string(out, name, strlen(name));
    weir__buf_printf(out, ",\"kind\":%d,\"startTimeUnixNano\":\"%lld\"", s->kind,
                     (long long)s->start_ns);
    weir__buf_printf(out, ",\"endTimeUnixNano\":\"%lld\"", (long long)s->end_ns);
    put_attributes(out, s);
    weir__buf_printf(out, ",\"status\":{\"code\":%d", s->failed ? STATUS_ERROR : STATUS_OK);
    if (s->failed && *s->error) {
        weir__buf_str(out, ",\"message\":");
        weir__json_string(out, s->error, strlen(s->error));
    }
    weir__buf_str(out, "}}");
}

void weir__spans_json(weir_buf *out, const char *service, const char *instance,
                      const weir_span *spans, size_t n)
{
    weir__buf_str(out, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
    put_text(out, "service.name", service);
    weir__buf_char(out, ',');
    put_text(out, "service.instance.id", instance);
    weir__buf_str(out, "]},\"scopeSpans\":[{\"scope\":{\"name\":\"weir\",\"version\":");
    const char *version = weir_version();
    weir__json_string(out, version, strlen(version));
    weir__buf_str(out, "},\"spans\":[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            weir__buf_char(out, ',');
        put_span(out, &spans[i]);
    }
    weir__buf_str(out, "]}]}]}");
}
