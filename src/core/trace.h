/* trace.h - the W3C trace context: read, write, and derive the context of an execution.
 * weir/trace.h has the terms. Pure functions, but weir__trace_new(). */
#ifndef WEIR_CORE_TRACE_H
#define WEIR_CORE_TRACE_H

#include "weir/trace.h"

typedef struct weir_trace {
    uint8_t trace[16];          /* all 0: no context */
    uint8_t span[8];
    bool    sampled;            /* its spans are wanted */
} weir_trace;

static inline bool weir__trace_is_set(const weir_trace *t)
{
    uint8_t any = 0;
    for (size_t i = 0; i < sizeof t->trace; i++)
        any |= t->trace[i];
    return any;
}

/* Read a traceparent. A later version than 00 may have more behind it, as the standard asks.
 * False: it is none, and *out is {0}. */
bool weir__trace_parse(weir_trace *out, const char *text, size_t len);
void weir__trace_format(const weir_trace *t, char out[WEIR_TRACEPARENT_LEN + 1]);

/* A span of its own: in the trace of `parent`, or in a new sampled trace (parent is {0}). */
weir_trace weir__trace_new(const weir_trace *parent);

/* The context in a job's values: the context of its add. False: none. */
bool weir__trace_of_values(weir_trace *out, const char *values, size_t len);

/* The context of this execution: the same trace, and a span made from the parent's, the job's id
 * and its delivery. So every process that has the job derives the same one. */
weir_trace weir__trace_of_execution(const weir_trace *parent, uint64_t id, uint32_t delivery);

#endif
