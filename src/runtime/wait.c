/* wait.c - waiting for a job to end. All of it happens on the callback thread: a first look, then
 * the job's events, so that nothing can come between the two. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/job.h"
#include "runtime/future.h"

/* Lives inside its future. */
typedef struct waiter {
    weir_queue    *q;
    weir_future   *future;
    weir_listener *listener;
    uint64_t       id;
    weir_job     **out;
    weir_job      *job;          /* the answer, on its way to *out */
    bool           over, looked;
    weir_post      look, give_up;
} waiter;

static void fill(void *ctx, bool wanted)
{
    waiter *w = ctx;
    if (wanted && w->out) {
        *w->out = w->job;
        w->job = NULL;
    }
}

static void waiter_end(waiter *w, weir_job *job, const weir_error *err)
{
    w->over = true;
    w->job = job;
    weir_unlisten(w->listener);
    weir__future_ref(w->future);
    weir__future_end(w->future, err, fill, w);
    weir_job_free(w->job);
    weir__future_unref(w->future);
}

/* A job that is gone, as its last event shows it. */
static weir_job *from_event(const weir_event *ev)
{
    weir_job job = { .id = ev->id, .type = ev->type, .state = WEIR_STATE_COMPLETE, .data = "{}",
                     .data_len = 2, .attempts = ev->attempts, .delivery = ev->delivery,
                     .finished_at = ev->at, .updated_at = ev->at, .progress = ev->progress };
    if (ev->kind == WEIR_EVENT_COMPLETE) {
        job.result = ev->text;
        job.result_len = ev->text_len;
    } else {
        job.state = ev->kind == WEIR_EVENT_FAILED ? WEIR_STATE_FAILED : WEIR_STATE_CANCELLED;
        job.error = ev->text;
    }
    return weir__job_copy(&job);
}

static void on_event(const weir_event *ev, void *ctx)
{
    waiter *w = ctx;
    weir_error err = { 0 };
    weir_job *job = NULL;
    if (w->over)
        return;
    if (ev->kind == WEIR_EVENT_ERROR) {          /* its event may have been missed */
        weir_code rc = weir_get(w->q, w->id, &job, &err);
        if (rc != WEIR_ENOENT && !(job && weir__finished(job->state))) {
            weir_job_free(job);
            return;
        }
    } else if (ev->kind == WEIR_EVENT_REMOVE) {
        weir_fail(&err, WEIR_ENOENT, "job %" PRIu64 " was removed", w->id);
    } else if (weir_get(w->q, w->id, &job, &err) == WEIR_ENOENT) {
        err.code = WEIR_OK;
        job = from_event(ev);
        if (!job)
            weir_fail(&err, WEIR_ENOMEM, "out of memory");
    } else if (job && !weir__finished(job->state)) {
        weir_job_free(job);       /* it runs again already: wait for the end of that */
        return;
    }
    waiter_end(w, job, &err);
}

/* The first look, with a reference: an event may have ended it already. A missing job may have just
 * been removed. Its last event is then in the list by now, so look again after it. */
static void look(void *ctx)
{
    waiter *w = ctx;
    weir_error err = { 0 };
    weir_job *job = NULL;
    weir_future *f = w->future;
    weir_code rc = w->over ? WEIR_OK : weir_get(w->q, w->id, &job, &err);
    if (rc == WEIR_ENOENT && !w->looked) {
        w->looked = true;
        if (weir__events_post(&w->q->events, &w->look, look, w))
            return;
    } else if (rc || (job && weir__finished(job->state))) {
        waiter_end(w, job, &err);
        job = NULL;
    }
    weir_job_free(job);
    weir__future_unref(f);
}

static void closing(void *ctx)
{
    waiter *w = ctx;
    weir_error err = { 0 };
    weir_fail(&err, WEIR_ECLOSED, "the queue was closed before job %" PRIu64 " ended", w->id);
    waiter_end(w, NULL, &err);
}

/* On the callback thread, with a reference: the caller has given up waiting. */
static void give_up(void *ctx)
{
    waiter *w = ctx;
    weir_error err = { .code = WEIR_ETIMEOUT };
    weir_future *f = w->future;
    if (!w->over)
        waiter_end(w, NULL, &err);
    weir__future_unref(f);
}

static void abandoned(void *bytes)
{
    waiter *w = bytes;
    weir__future_ref(w->future);
    if (!weir__events_post(&w->q->events, &w->give_up, give_up, w))
        weir__future_unref(w->future);       /* it ends with the queue */
}

weir_code weir_wait_async(weir_queue *q, uint64_t id, weir_job **out, weir_future **f,
                          weir_error *err)
{
    weir_future *own;
    if (out)
        *out = NULL;
    if (f)
        *f = NULL;
    weir_code rc = weir__future_create(q, &own, sizeof(waiter), abandoned, err);
    if (rc)
        return rc;
    waiter *w = weir__future_bytes(own);
    *w = (waiter){ .q = q, .future = own, .id = id, .out = out };
    uint32_t ends = WEIR_BIT(WEIR_EVENT_COMPLETE) | WEIR_BIT(WEIR_EVENT_FAILED) |
                    WEIR_BIT(WEIR_EVENT_CANCELLED) | WEIR_BIT(WEIR_EVENT_REMOVE);
    weir_filter filter = { .id = id, .events = ends };
    weir__queue_want(q, ends);
    rc = weir__events_listen(&q->events, &filter, on_event, closing, w, &w->listener, err);
    if (rc) {
        weir__future_unref(own);
        weir__future_unref(own);
        return rc;
    }
    weir__future_ref(own);
    if (!weir__events_post(&q->events, &w->look, look, w))
        weir__future_unref(own);             /* it ends with the queue */
    if (f)
        *f = own;
    else
        weir_future_free(own);
    return WEIR_OK;
}

weir_code weir_wait(weir_queue *q, uint64_t id, int64_t timeout_ms, weir_job **out, weir_error *err)
{
    weir_future *f;
    weir_job *job = NULL;
    if (out)
        *out = NULL;
    if (weir__events_here(&q->events))
        return weir_fail(err, WEIR_EINVAL, "wait: not from a callback of the queue, which would "
                         "wait for itself");
    weir_code rc = weir_wait_async(q, id, out ? &job : NULL, &f, err);
    if (rc)
        return rc;
    rc = weir_future_wait(f, timeout_ms, err);
    weir_future_free(f);
    if (rc == WEIR_ETIMEOUT && job)
        rc = WEIR_OK;                        /* it came between the two */
    if (rc == WEIR_ETIMEOUT)
        weir_fail(err, rc, "job %" PRIu64 " has not ended after %lld ms", id,
                  (long long)timeout_ms);
    if (out)
        *out = job;
    return rc;
}
