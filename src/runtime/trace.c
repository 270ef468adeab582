/* trace.c - trace contexts of threads, adds and executions. See trace.h. */
#include "runtime/trace.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "core/values.h"
#include "weir/remote.h"

static _Thread_local weir_trace current;

weir_trace weir__trace_swap(weir_trace t)
{
    weir_trace old = current;
    current = t;
    return old;
}

bool weir_trace_get(char out[WEIR_TRACEPARENT_LEN + 1])
{
    *out = '\0';
    if (!weir__trace_is_set(&current))
        return false;
    weir__trace_format(&current, out);
    return true;
}

weir_code weir_trace_set(const char *traceparent, weir_error *err)
{
    weir_trace t = { 0 };
    if (traceparent && !weir__trace_parse(&t, traceparent, strlen(traceparent)))
        return weir__fail_field(err, WEIR_EINVAL, WEIR_TRACEPARENT,
                                "\"%.80s\" is not a trace context; expected "
                                "00-<32 hex digits>-<16 hex digits>-<2 hex digits>", traceparent);
    current = t;
    return WEIR_OK;
}

/* The context of the execution and the context of the add. False: the job has none; *own is as it
 * was. */
static bool execution(const weir_job *job, weir_trace *own, weir_trace *parent)
{
    if (!weir__trace_of_values(parent, job->values, job->values_len))
        return false;
    *own = weir__trace_of_execution(parent, job->id, job->delivery);
    return true;
}

bool weir_job_trace(const weir_job *job, char out[WEIR_TRACEPARENT_LEN + 1])
{
    weir_trace own, parent;
    *out = '\0';
    if (!execution(job, &own, &parent))
        return false;
    weir__trace_format(&own, out);
    return true;
}

int64_t weir__span_now(void)
{
    return weir__wall_ms() * 1000000 + weir__monotonic_ns() % 1000000;
}

static void set_error(weir_span *s, const char *error, size_t len)
{
    size_t n = weir__utf8_cut(error, len, WEIR__SPAN_ERROR);
    memcpy(s->error, error, n);
    s->error[n] = '\0';
}

/* ---- adds ---- */

/* Give the spec the context, unless it has one or its values are wrong: the check will say so. */
static void trace_spec(weir_spec *spec, weir_buf *room, const char *value)
{
    weir_trace there;
    size_t     len = spec->values_len;
    if (spec->values) {
        if (!len)
            len = strlen(spec->values);
        if (weir__values_check(spec->values, len, false, NULL) ||
            weir__trace_of_values(&there, spec->values, len))
            return;
    }
    if (weir__values_merge(room, spec->values, spec->values ? len : 0, value, strlen(value), NULL))
        return;             /* no room for one more value, or no memory */
    spec->values = room->data;
    spec->values_len = room->len;
}

static void open_span(weir_span *s, const weir_op_add *add)
{
    *s = (weir_span){ .kind = WEIR__SPAN_PRODUCER, .parent = current, .count = add->n };
    s->own = current;
    if (!weir__trace_on())
        return;             /* its jobs are caused by the thread's span itself */
    s->own = weir__trace_new(&current);
    s->start_ns = weir__span_now();
    const char *type = add->specs[0].type ? add->specs[0].type : "";
    snprintf(s->type, sizeof s->type, "%s", type);
}

void weir__add_trace_begin(weir__add_trace *t, weir_op_add *add)
{
    *t = (weir__add_trace){ 0 };
    if ((!weir__trace_on() && !weir__trace_is_set(&current)) || !add->n || add->n > WEIR_MAX_ADD ||
        !add->specs)
        return;
    open_span(&t->span, add);
    t->specs = malloc(add->n * sizeof *t->specs);
    t->rooms = calloc(add->n, sizeof *t->rooms);
    if (!t->specs || !t->rooms) {
        free(t->specs);
        free(t->rooms);
        t->specs = NULL;
        return;
    }
    t->n = add->n;
    memcpy(t->specs, add->specs, add->n * sizeof *t->specs);
    char value[WEIR_TRACEPARENT_LEN + 32] = "{\"" WEIR_TRACEPARENT "\":\"";
    size_t at = strlen(value);
    weir__trace_format(&t->span.own, value + at);
    memcpy(value + at + WEIR_TRACEPARENT_LEN, "\"}", 3);
    for (size_t i = 0; i < add->n; i++)
        trace_spec(&t->specs[i], &t->rooms[i], value);
    add->specs = t->specs;
}

void weir__add_trace_end(weir__add_trace *t, const weir_added *out, const weir_error *err)
{
    if (!t->specs)
        return;
    if (weir__trace_on() && t->span.start_ns) {
        t->span.end_ns = weir__span_now();
        t->span.job = t->n == 1 && out ? out[0].id : 0;
        t->span.failed = err && err->code;
        if (t->span.failed)
            set_error(&t->span, err->msg, strlen(err->msg));
        weir__span_send(&t->span);
    }
    for (size_t i = 0; i < t->n; i++)
        weir__buf_fini(&t->rooms[i]);
    free(t->rooms);
    free(t->specs);
}

/* ---- executions ---- */

weir_trace weir__trace_enter(const weir_job *job, int64_t *begun_ns)
{
    weir_trace own = { 0 }, parent;
    if (weir__trace_on())
        *begun_ns = weir__span_now();
    execution(job, &own, &parent);
    return weir__trace_swap(own);
}

static const char *const outcomes[] = {
    [WEIR_OUTCOME_DONE] = "done", [WEIR_OUTCOME_FAIL] = "fail", [WEIR_OUTCOME_RETURN] = "return",
    [WEIR_OUTCOME_LOST] = "lost", [WEIR_OUTCOME_GIVE_UP] = "give_up"
};

/* The span of an execution that ends now. */
static void end_execution(weir_span *s, weir_outcome outcome, const char *error, size_t len)
{
    s->end_ns = weir__span_now();
    snprintf(s->outcome, sizeof s->outcome, "%s", outcomes[outcome]);
    s->failed = outcome != WEIR_OUTCOME_DONE && outcome != WEIR_OUTCOME_RETURN;
    if (s->failed && error)
        set_error(s, error, len);
    weir__span_send(s);
}

/* False: the job has no context. */
static bool begin_execution(weir_span *s, const weir_job *job, int64_t start_ns)
{
    *s = (weir_span){ .kind = WEIR__SPAN_CONSUMER, .job = job->id, .delivery = job->delivery,
                      .start_ns = start_ns };
    snprintf(s->type, sizeof s->type, "%s", job->type);
    return execution(job, &s->own, &s->parent);
}

void weir__trace_executed(const weir_job *job, int64_t start_ns, weir_outcome outcome,
                          const char *error, size_t error_len)
{
    weir_span s;
    if (weir__trace_on() &&
        begin_execution(&s, job, start_ns ? start_ns : job->started_at * 1000000))
        end_execution(&s, outcome, error, error_len);
}

/* ---- executions of remote workers ---- */

/* A place is found by the job's id; a later job takes the place of an earlier one. */
static struct remote_span {
    const weir_queue *q;                /* NULL: free */
    weir_span         span;
} *remote_spans;
static pthread_mutex_t remote_lock = PTHREAD_MUTEX_INITIALIZER;     /* guards them */

void weir__trace_taken(const weir_queue *q, const weir_job *job)
{
    struct remote_span r = { .q = q };
    if (!begin_execution(&r.span, job, weir__span_now()) || !r.span.own.sampled)
        return;
    pthread_mutex_lock(&remote_lock);
    if (!remote_spans)
        remote_spans = calloc(WEIR__REMOTE_SPANS, sizeof *remote_spans);
    if (remote_spans)
        remote_spans[job->id % WEIR__REMOTE_SPANS] = r;
    pthread_mutex_unlock(&remote_lock);
}

void weir__trace_finished(const weir_queue *q, const weir_op_finish *finish)
{
    struct remote_span r = { 0 };
    pthread_mutex_lock(&remote_lock);
    if (remote_spans) {
        struct remote_span *at = &remote_spans[finish->id % WEIR__REMOTE_SPANS];
        if (at->q == q && at->span.job == finish->id && at->span.delivery == finish->delivery) {
            r = *at;
            at->q = NULL;
        }
    }
    pthread_mutex_unlock(&remote_lock);
    if (r.q)
        end_execution(&r.span, finish->outcome, finish->text,
                      finish->len || !finish->text ? finish->len : strlen(finish->text));
}

void weir__trace_forget(void)
{
    pthread_mutex_lock(&remote_lock);
    free(remote_spans);
    remote_spans = NULL;
    pthread_mutex_unlock(&remote_lock);
}
