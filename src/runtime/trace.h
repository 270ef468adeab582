/* trace.h - trace contexts of threads, adds and executions, and the exporter that gets their
 * spans. weir/trace.h has the terms. Any thread. */
#ifndef WEIR_RUNTIME_TRACE_H
#define WEIR_RUNTIME_TRACE_H

#include <stdatomic.h>

#include "core/span.h"
#include "op/op.h"

/* Are spans exported? Else weir__span_send() does nothing. */
extern atomic_bool weir__tracing;
static inline bool weir__trace_on(void)
{
    return atomic_load_explicit(&weir__tracing, memory_order_relaxed);
}

/* Hand over a span, if it is sampled. Never waits; drops it if too many wait. */
void weir__span_send(const weir_span *s);
/* Now, for the start and the end of a span. */
int64_t weir__span_now(void);

/* The context of the calling thread. Returns the one it had. */
weir_trace weir__trace_swap(weir_trace t);

/* The calling thread begins to execute the job: give it the context of the execution, if the job
 * has one. Returns the context it had; *begun_ns is the time, if spans are exported. */
weir_trace weir__trace_enter(const weir_job *job, int64_t *begun_ns);

/* An add on its way: its specs with the context of the thread, or of the span that is open. */
typedef struct weir__add_trace {
    weir_spec *specs;           /* NULL: not traced */
    weir_buf  *rooms;           /* of their values */
    size_t     n;
    weir_span  span;
} weir__add_trace;
/* If jobs are traced here, replace the specs of the operation by traced ones, which live until
 * weir__add_trace_end(). Without memory the add goes on without a trace. */
void weir__add_trace_begin(weir__add_trace *t, weir_op_add *add);
/* `out` (may be NULL) and `err`: the answer, as far as it is known. */
void weir__add_trace_end(weir__add_trace *t, const weir_added *out, const weir_error *err);

/* The same for remote workers, whose jobs are known by id and delivery. Between take and finish the
 * process remembers WEIR__REMOTE_SPANS executions. An execution that is forgotten, or was taken
 * through another process, has no span. */
enum { WEIR__REMOTE_SPANS = 16384 };
void weir__trace_taken(const weir_queue *q, const weir_job *job);
void weir__trace_finished(const weir_queue *q, const weir_op_finish *finish);
void weir__trace_forget(void);

/* Send the span of an execution that has ended. `error`: of a failure; may be NULL. */
void weir__trace_executed(const weir_job *job, int64_t start_ns, weir_outcome outcome,
                          const char *error, size_t error_len);

#endif
