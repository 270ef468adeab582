/* job_calls.c - what a handler does with its job: weir_job_done(), weir_job_log() and so on. Each
 * is an operation with the job's delivery; an outcome waits until the handler has returned
 * (delivery.h). */
#include "runtime/delivery.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "core/values.h"
#include "runtime/queue.h"

/* A job that weir_take() took, not a pool: the outcome goes to the store at once. */
static weir_code end_now(weir__delivery *d, weir_outcome outcome, const char *text, size_t len,
                         int64_t delay_ms)
{
    if (atomic_load(&d->phase) & WEIR__ENDED)
        return WEIR_ESTALE;
    weir_ticket t = { .op = { .kind = WEIR_OP_FINISH, .u.finish = {
        .id = d->job->id, .delivery = d->job->delivery, .outcome = outcome,
        .text = text, .len = len, .delay_ms = delay_ms } } };
    weir_code rc = weir__queue_run(d->q, &t, NULL);
    if (!rc || rc == WEIR_ESTALE) {
        atomic_fetch_or(&d->phase, WEIR__ENDED);
        weir__delivery_revoke(d);
        weir__delivery_leave(d);
    }
    return rc;
}

static weir_code end(weir_job *job, weir_outcome outcome, const char *text, size_t len,
                     int64_t delay_ms)
{
    weir__delivery *d = job->taken;
    if (!d)
        return WEIR_EINVAL;          /* it was read, not taken */
    if (!d->pool)
        return end_now(d, outcome, text, len, delay_ms);
    weir_code late = !atomic_load(&d->revoked) ? WEIR_OK :
                     weir__batcher_closed(&d->q->batcher[0]) ? WEIR_ECLOSED : WEIR_ESTALE;
    weir_code rc = weir__delivery_end(d, outcome, text, len, delay_ms);   /* d may be gone now */
    return rc ? rc : late;
}

/* The store's answer about a taken job. */
static weir_code note_answer(weir__delivery *d, weir_code rc)
{
    if (rc == WEIR_ESTALE)
        weir__delivery_revoke(d);
    return rc;
}

/* Keep the reason of a failure, since the handler returns only a code. */
WEIR_PRINTF(2, 3) static void note(weir_job *job, const char *fmt, ...)
{
    if (!job->taken)
        return;
    va_list ap;
    va_start(ap, fmt);
    pthread_mutex_lock(&job->taken->q->deliveries.lock);
    vsnprintf(job->taken->note, sizeof job->taken->note, fmt, ap);
    pthread_mutex_unlock(&job->taken->q->deliveries.lock);
    va_end(ap);
}

weir_code weir_job_done(weir_job *job, const char *result)
{
    size_t len = result ? strlen(result) : 0, where;
    const char *why;
    if (len > WEIR_MAX_DATA) {
        note(job, "result: %zu bytes, at most %d (WEIR_MAX_DATA)", len, WEIR_MAX_DATA);
        return WEIR_ELIMIT;
    }
    if (result && !weir__json_valid(result, len, WEIR_MAX_DEPTH, &where, &why)) {
        note(job, "result: not JSON: %s at byte %zu", why, where);
        return WEIR_EINVAL;
    }
    return end(job, WEIR_OUTCOME_DONE, result, len, 0);
}

weir_code weir_job_return(weir_job *job, int64_t delay_ms)
{
    if (delay_ms < 0 || delay_ms > WEIR_MAX_MS) {
        note(job, "delay: %lld ms, must be 0 to %lld (WEIR_MAX_MS)", (long long)delay_ms,
             (long long)WEIR_MAX_MS);
        return WEIR_EINVAL;
    }
    return end(job, WEIR_OUTCOME_RETURN, NULL, 0, delay_ms);
}

/* printf into a new string; NULL: out of memory. */
static char *format(const char *fmt, va_list ap, size_t *len)
{
    char *text = NULL;
    int n = vasprintf(&text, fmt, ap);
    if (n < 0)
        return NULL;
    *len = (size_t)n;
    return text;
}

weir_code weir_job_fail(weir_job *job, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    size_t len = 0;
    char *text = format(fmt, ap, &len);
    va_end(ap);
    if (!text)
        return WEIR_ENOMEM;
    weir_code rc = end(job, WEIR_OUTCOME_FAIL, text, len, 0);
    free(text);
    return rc ? rc : WEIR_EJOB;
}

weir_code weir_job_log(weir_job *job, const char *fmt, ...)
{
    weir__delivery *d = job->taken;
    if (!d)
        return WEIR_EINVAL;
    va_list ap;
    va_start(ap, fmt);
    size_t len = 0;
    char *text = format(fmt, ap, &len);
    va_end(ap);
    if (!text)
        return WEIR_ENOMEM;
    weir_ticket t = { .op = { .kind = WEIR_OP_LOG, .u.log = {
        .id = job->id, .delivery = job->delivery, .text = text, .len = len } } };
    weir_code rc = weir__queue_run(d->q, &t, NULL);
    free(text);
    return note_answer(d, rc);
}

weir_code weir_job_progress(weir_job *job, int64_t done, int64_t total)
{
    return weir_job_progress_data(job, done, total, NULL);
}

weir_code weir_job_progress_data(weir_job *job, int64_t done, int64_t total, const char *data)
{
    weir__delivery *d = job->taken;
    if (!d || total <= 0 || done < 0)
        return WEIR_EINVAL;
    weir_ticket t = { .op = { .kind = WEIR_OP_PROGRESS, .u.progress = {
        .id = job->id, .delivery = job->delivery, .percent = weir__percent(done, total),
        .data = data, .len = data ? strlen(data) : 0 } } };
    return note_answer(d, weir__queue_run(d->q, &t, NULL));
}

weir_code weir_job_set(weir_job *job, const char *name, const char *value)
{
    weir__delivery *d = job->taken;
    weir_error  err;
    weir_buf    b = { 0 };
    if (!d)
        return WEIR_EINVAL;
    weir_code rc = weir__values_one(&b, name, value, &err);
    if (!rc) {
        weir_ticket t = { .op = { .kind = WEIR_OP_UPDATE, .u.update = {
            .id = job->id, .change = { .values = b.data, .values_len = b.len,
                                       .delivery = job->delivery } } } };
        rc = weir__queue_run(d->q, &t, &err);
    }
    if (rc)
        note(job, "%s", err.msg);
    weir__buf_fini(&b);
    return note_answer(d, rc);
}

bool weir_job_cancelled(const weir_job *job)
{
    return job->taken && atomic_load_explicit(&job->taken->revoked, memory_order_relaxed);
}

weir_code weir_job_renew(weir_job *job, int64_t lease_ms)
{
    weir__delivery *d = job->taken;
    if (!d)
        return WEIR_EINVAL;
    weir_lease item = { .id = job->id, .delivery = job->delivery, .lease_ms = lease_ms };
    weir_ticket t = { .op = { .kind = WEIR_OP_RENEW, .u.renew = { .items = &item, .n = 1 } } };
    weir_code rc = weir__queue_run(d->q, &t, NULL);
    return note_answer(d, rc ? rc : item.code);
}
