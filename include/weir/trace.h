/* trace.h - distributed tracing: the W3C trace context of jobs, and their spans for OpenTelemetry.
 *
 *     trace context   which trace something belongs to, and the span that caused it, as a text of
 *                     WEIR_TRACEPARENT_LEN characters: "00-<trace id>-<span id>-<flags>"
 *                     (https://www.w3.org/TR/trace-context/, header "traceparent")
 *     span            one piece of work with start and end: adding a job, or executing it once
 *
 * A job carries the context of its add as its value "traceparent" (weir_spec.values). A spec that
 * has none gets it from the thread that adds: a handler's thread has the context of the execution,
 * so that jobs added by a handler belong to the trace of its job. docs/tracing.md has the rest:
 * HTTP, the command line, the bus, the other clients.
 *
 * Without a context and without weir_trace_start() jobs carry none, and tracing costs nothing. */
#ifndef WEIR_TRACE_H
#define WEIR_TRACE_H

#include "weir/job.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WEIR_TRACEPARENT_LEN = 55,
    WEIR_MAX_SPANS       = 8192     /* spans that wait for the collector; more are dropped */
};
#define WEIR_TRACEPARENT "traceparent"

/* The context of the calling thread: what the jobs that it adds belong to. False: it has none, and
 * out is "". */
WEIR_API bool weir_trace_get(char out[WEIR_TRACEPARENT_LEN + 1]);

/* Set the context of the calling thread; NULL: none. WEIR_EINVAL: it is no traceparent, and
 * nothing changes. A pool sets and restores it around each call of a handler. */
WEIR_API weir_code weir_trace_set(const char *traceparent, weir_error *err);

/* The context of this execution of a job that was taken, for what a handler does in other threads
 * or asks of other programs. Each delivery of a job has its own. False: the job has none, and out
 * is "". */
WEIR_API bool weir_job_trace(const weir_job *job, char out[WEIR_TRACEPARENT_LEN + 1]);

/* Where spans go. {0}: as the environment says (see weir_trace_start()). */
typedef struct weir_trace_config {
    const char *endpoint;       /* of a collector, OTLP over HTTP with JSON: "http://host:4318" (the
                                   path /v1/traces is added), or with the whole path */
    const char *service;        /* the name of the program in traces; NULL: "weir" */
    const char *headers;        /* more headers: "name=value,name=value"; NULL: none */
    void       *reserved[WEIR_RESERVED];
} weir_trace_config;

/* Send the spans of all queues of this process to a collector from now on, in a thread of its own,
 * in bulks, without ever holding up a job. The environment has the values that the config leaves
 * out: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME,
 * OTEL_EXPORTER_OTLP_HEADERS. If no endpoint is given in either place, nothing is started and the
 * call succeeds. WEIR_EINVAL: the endpoint is no URL with http or https; WEIR_ESTATE: it was
 * started before. */
WEIR_API weir_code weir_trace_start(const weir_trace_config *config, weir_error *err);

/* Send what waits, for at most timeout_ms, and stop. WEIR_EUNAVAIL: spans were lost; the message
 * says how many, and the last trouble. Not started: WEIR_OK. No other thread may be in a call of
 * weir that adds or executes jobs of a trace. */
WEIR_API weir_code weir_trace_stop(int64_t timeout_ms, weir_error *err);

/* The fate of the spans since weir_trace_start(); {0} if it was not called. */
typedef struct weir_trace_stats {
    bool     started;
    uint64_t sent, dropped;     /* dropped: WEIR_MAX_SPANS waited, or the collector refused them */
    uint64_t waiting;
    void    *reserved[WEIR_RESERVED];
} weir_trace_stats;
WEIR_API void weir_get_trace_stats(weir_trace_stats *out);

#ifdef __cplusplus
}
#endif
#endif
