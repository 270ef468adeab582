/* job_calls.c - what a handler does with its job: weir_job_done(), weir_job_log() and so on. Each
 * is an operation with the job's delivery; an outcome waits until the handler has returned
 * (delivery.h). */
#include "runtime/delivery.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "core/values.h"
#include "runtime/queue.h"

/* A call that failed has this error. It is kept with the job, too: if the handler returns its code,
 * the job fails with its message. */
static weir_code refuse(weir_job *job, const weir_error *why, weir_error *err)
{
    weir__delivery *d = job->taken;
    if (d) {
        pthread_mutex_lock(&d->q->deliveries.lock);
        d->last_error = *why;
        pthread_mutex_unlock(&d->q->deliveries.lock);
    }
    if (err)
        *err = *why;
    return why->code;
}

static weir_code not_taken(const weir_job *job, weir_error *err)
{
    return weir_fail(err, WEIR_EINVAL, "job %" PRIu64 " was read, not taken by a worker", job->id);
}

/* A job that weir_take() took, not a pool: the outcome goes to the store at once. */
static weir_code end_now(weir__delivery *d, weir_outcome outcome, const char *text, size_t len,
                         int64_t delay_ms, weir_error *err)
{
    if (atomic_load(&d->phase) & WEIR__ENDED)
        return weir_fail(err, WEIR_ESTALE, "job %" PRIu64 " has ended before", d->job->id);
    weir_ticket t = { .op = { .kind = WEIR_OP_FINISH, .u.finish = {
        .id = d->job->id, .delivery = d->job->delivery, .outcome = outcome,
        .text = text, .len = len, .delay_ms = delay_ms } } };
    weir_code rc = weir__queue_run(d->q, &t, err);
    if (!rc || rc == WEIR_ESTALE) {
        atomic_fetch_or(&d->phase, WEIR__ENDED);
        weir__delivery_revoke(d);
        weir__delivery_leave(d);
    }
    return rc;
}

static weir_code end(weir_job *job, weir_outcome outcome, const char *text, size_t len,
                     int64_t delay_ms, weir_error *err)
{
    weir__delivery *d = job->taken;
    uint64_t        id = job->id;
    if (!d)
        return not_taken(job, err);
    if (!d->pool)
        return end_now(d, outcome, text, len, delay_ms, err);
    weir_code late = !atomic_load(&d->revoked) ? WEIR_OK :
                     weir__batcher_closed(&d->q->batcher[0]) ? WEIR_ECLOSED : WEIR_ESTALE;
    weir_code rc = weir__delivery_end(d, outcome, text, len, delay_ms);   /* d may be gone now */
    if (!rc)
        rc = late;
    return rc ? weir_fail(err, rc, "job %" PRIu64 ": %s", id, weir_code_text(rc)) : WEIR_OK;
}

weir_code weir_job_done(weir_job *job, const char *result, size_t len, weir_error *err)
{
    weir_error  why;
    const char *reason;
    size_t      where;
    if (result && !len)
        len = strlen(result);
    if (len > WEIR_MAX_DATA)
        weir__fail_field(&why, WEIR_ELIMIT, "result", "%zu bytes, at most %d (WEIR_MAX_DATA)", len,
                         WEIR_MAX_DATA);
    else if (result && !weir__json_valid(result, len, WEIR_MAX_DEPTH, &where, &reason))
        weir__fail_field(&why, WEIR_EINVAL, "result", "not JSON: %s at byte %zu", reason, where);
    else
        return end(job, WEIR_OUTCOME_DONE, result, len, 0, err);
    return refuse(job, &why, err);
}

weir_code weir_job_return(weir_job *job, int64_t delay_ms, weir_error *err)
{
    weir_error why;
    if (delay_ms >= 0 && delay_ms <= WEIR_MAX_MS)
        return end(job, WEIR_OUTCOME_RETURN, NULL, 0, delay_ms, err);
    weir__fail_field(&why, WEIR_EINVAL, "delay_ms", "%lld, must be 0 to %lld (WEIR_MAX_MS)",
                     (long long)delay_ms, (long long)WEIR_MAX_MS);
    return refuse(job, &why, err);
}

/* `text` is freed; NULL: out of memory. */
static weir_code end_failed(weir_job *job, weir_outcome outcome, char *text, int len)
{
    if (!text)
        return WEIR_ENOMEM;
    weir_code rc = end(job, outcome, text, (size_t)len, 0, NULL);
    free(text);
    return rc ? rc : WEIR_EJOB;
}

weir_code weir_job_fail(weir_job *job, const char *fmt, ...)
{
    char *text;
    int   len;
    WEIR__FORMAT_NEW(text, len, fmt);
    return end_failed(job, WEIR_OUTCOME_FAIL, text, len);
}

weir_code weir_job_give_up(weir_job *job, const char *fmt, ...)
{
    char *text;
    int   len;
    WEIR__FORMAT_NEW(text, len, fmt);
    return end_failed(job, WEIR_OUTCOME_GIVE_UP, text, len);
}

/* Run an operation about a taken job, and note from the answer whether the job is still ours. */
static weir_code run(weir_job *job, weir_op op, weir_error *err)
{
    weir__delivery *d = job->taken;
    weir_ticket     t = { .op = op };
    weir_error      why;
    weir_code       rc = weir__queue_run(d->q, &t, &why);
    if (!rc && op.kind == WEIR_OP_RENEW && (rc = op.u.renew.items[0].code))
        weir_fail(&why, rc, "job %" PRIu64 ": %s", job->id, weir_code_text(rc));
    if (rc == WEIR_ESTALE)
        weir__delivery_revoke(d);
    return rc ? refuse(job, &why, err) : WEIR_OK;
}

weir_code weir_job_log(weir_job *job, const char *fmt, ...)
{
    char *text;
    int   len;
    if (!job->taken)
        return not_taken(job, NULL);
    WEIR__FORMAT_NEW(text, len, fmt);
    if (!text)
        return WEIR_ENOMEM;
    weir_code rc = run(job, (weir_op){ .kind = WEIR_OP_LOG, .u.log = {
        .id = job->id, .delivery = job->delivery, .text = text, .len = (size_t)len } }, NULL);
    free(text);
    return rc;
}

weir_code weir_job_progress(weir_job *job, int64_t done, int64_t total, const char *data,
                            size_t len, weir_error *err)
{
    weir_error why;
    if (!job->taken)
        return not_taken(job, err);
    if (total > 0 && done >= 0)
        return run(job, (weir_op){ .kind = WEIR_OP_PROGRESS, .u.progress = {
            .id = job->id, .delivery = job->delivery, .percent = weir__percent(done, total),
            .data = data, .len = data && !len ? strlen(data) : len } }, err);
    weir__fail_field(&why, WEIR_EINVAL, total > 0 ? "done" : "total", "%lld, must %s",
                     (long long)(total > 0 ? done : total),
                     total > 0 ? "not be negative" : "be at least 1");
    return refuse(job, &why, err);
}

weir_code weir_job_set(weir_job *job, const char *name, const char *value, weir_error *err)
{
    weir_error why;
    weir_buf   b = { 0 };
    if (!job->taken)
        return not_taken(job, err);
    weir_code rc = weir__values_one(&b, name, value, &why);
    if (rc)
        refuse(job, &why, err);
    else
        rc = run(job, (weir_op){ .kind = WEIR_OP_UPDATE, .u.update = {
            .id = job->id, .change = { .values = b.data, .values_len = b.len,
                                       .delivery = job->delivery } } }, err);
    weir__buf_fini(&b);
    return rc;
}

bool weir_job_cancelled(const weir_job *job)
{
    return job->taken && atomic_load_explicit(&job->taken->revoked, memory_order_relaxed);
}

weir_code weir_job_renew(weir_job *job, int64_t lease_ms, weir_error *err)
{
    weir_renewal item = { .id = job->id, .delivery = job->delivery, .lease_ms = lease_ms };
    if (!job->taken)
        return not_taken(job, err);
    return run(job, (weir_op){ .kind = WEIR_OP_RENEW, .u.renew = { .items = &item, .n = 1 } }, err);
}
