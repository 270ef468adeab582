/* hold.c - jobs in the hands of a worker: see hold.h; and what a handler can do with its job. */
#include "runtime/hold.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "core/values.h"
#include "runtime/gate.h"
#include "runtime/pool.h"
#include "runtime/queue.h"

/* The process has the job no longer, as far as other jobs are concerned. */
static void leave(weir__hold *h)
{
    if (!atomic_exchange(&h->left, true))
        weir__queue_left(h->q, h->job);
}

/* It is no longer ours. But while a suspect is worked on, it may still kill the process. */
static void revoke(weir__hold *h)
{
    atomic_store(&h->revoked, true);
    if (!weir__job_is_suspect(h->job))
        leave(h);
}

weir__hold *weir__hold_create(weir_queue *q, weir_job *job, struct weir__pool *pool,
                              int64_t lease_ms, int64_t asked_at)
{
    weir__hold *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->q = q;
    h->job = job;
    h->pool = pool;
    h->lease_ms = lease_ms;
    h->lease_until = asked_at + lease_ms;
    job->hold = h;
    weir__queue_ref(q);
    if (pool)
        weir__pool_ref(pool);
    pthread_mutex_lock(&q->holds.lock);
    for (size_t i = 0; i < WEIR__REVOKED; i++)
        if (q->holds.revoked[i].id == job->id && q->holds.revoked[i].delivery == job->delivery)
            revoke(h);
    weir__list_insert(&q->holds.list, NULL, &h->link);
    pthread_mutex_unlock(&q->holds.lock);
    if (pool)
        weir__timer_set(&q->timer, &q->renew, weir__queue_steady(q) + lease_ms / 3);
    return h;
}

bool weir__hold_lasts(weir__hold *h)
{
    return !atomic_load(&h->revoked) && weir__queue_steady(h->q) < atomic_load(&h->lease_until);
}

bool weir__hold_confirm(weir__hold *h)
{
    if (weir__hold_lasts(h))
        return true;
    int64_t     asked_at = weir__queue_steady(h->q);
    weir_lease  item = { .id = h->job->id, .delivery = h->job->delivery, .lease_ms = h->lease_ms };
    weir_ticket t = { .op = { .kind = WEIR_OP_RENEW, .u.renew = { .items = &item, .n = 1 } } };
    if (atomic_load(&h->revoked) || weir__queue_run(h->q, &t, NULL) || item.code)
        return false;
    atomic_store(&h->lease_until, asked_at + h->lease_ms);
    return true;
}

void weir__hold_release(weir__hold *h)
{
    weir_queue *q = h->q;
    leave(h);
    pthread_mutex_lock(&q->holds.lock);
    weir__list_remove(&q->holds.list, &h->link);
    pthread_mutex_unlock(&q->holds.lock);
    h->job->hold = NULL;
    weir_job_release(h->job);
    weir__pool_unref(h->pool);
    free(h->text);
    free(h);
    weir__queue_unref(q);
}

void weir__holds_revoke(weir_queue *q, uint64_t id, uint32_t delivery)
{
    pthread_mutex_lock(&q->holds.lock);
    uint32_t at = q->holds.n_revoked++ % WEIR__REVOKED;
    q->holds.revoked[at].id = id;
    q->holds.revoked[at].delivery = delivery;
    WEIR_EACH(weir__hold, h, &q->holds.list, link)
        if (h->job->id == id && h->job->delivery == delivery)
            revoke(h);
    pthread_mutex_unlock(&q->holds.lock);
}

/* Mark those that the store no longer knows as ours. */
static void revoke_stale(weir_queue *q, const weir_lease *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!items[i].code)
            continue;
        pthread_mutex_lock(&q->holds.lock);
        WEIR_EACH(weir__hold, h, &q->holds.list, link)
            if (h->job->id == items[i].id && h->job->delivery == items[i].delivery)
                revoke(h);
        pthread_mutex_unlock(&q->holds.lock);
    }
}

/* The leases that were to be renewed have been, from `asked_at` on or later. */
static void prolong(weir_queue *q, int64_t asked_at)
{
    pthread_mutex_lock(&q->holds.lock);
    WEIR_EACH(weir__hold, h, &q->holds.list, link)
        if (h->renewing && !atomic_load(&h->revoked))
            atomic_store(&h->lease_until, asked_at + h->lease_ms);
    pthread_mutex_unlock(&q->holds.lock);
}

int64_t weir__holds_renew(weir_queue *q)
{
    enum { RETRY_MS = 100 };
    int64_t soonest = INT64_MAX;
    size_t n = 0, cap = 0;
    weir__pools_unpack(q);
    pthread_mutex_lock(&q->holds.lock);
    WEIR_EACH(weir__hold, h, &q->holds.list, link)
        cap += h->pool != NULL;
    weir_lease *items = cap ? malloc(cap * sizeof *items) : NULL;
    WEIR_EACH(weir__hold, h, &q->holds.list, link) {
        if (!h->pool)
            continue;
        if (h->lease_ms < soonest)
            soonest = h->lease_ms;
        h->renewing = items && !atomic_load(&h->revoked);
        if (h->renewing)
            items[n++] = (weir_lease){ .id = h->job->id, .delivery = h->job->delivery,
                                       .lease_ms = h->lease_ms };
    }
    pthread_mutex_unlock(&q->holds.lock);
    if (!cap)
        return INT64_MAX;
    if (!items)
        return weir__queue_steady(q) + RETRY_MS;

    weir_ticket t = { .op = { .kind = WEIR_OP_RENEW, .u.renew = { .items = items, .n = n } } };
    weir_error err;
    int64_t asked_at = weir__queue_steady(q);
    weir_code rc = n ? weir__queue_run(q, &t, &err) : WEIR_OK;
    if (!rc) {
        revoke_stale(q, items, n);
        prolong(q, asked_at);
    } else if (rc != WEIR_ECLOSED)
        weir__events_trouble(&q->events, weir_now(q), &err);
    free(items);
    return weir__queue_steady(q) + (rc ? RETRY_MS : soonest / 3);
}

/* ---- the outcome ---- */

void weir__hold_ticket(weir__hold *h)
{
    h->ticket.op = (weir_op){ .kind = WEIR_OP_FINISH, .u.finish = {
        .id = h->job->id, .delivery = h->job->delivery, .outcome = h->outcome,
        .text = h->text, .len = h->len } };
}

weir_code weir__hold_end(weir__hold *h, weir_outcome outcome, const char *text, size_t len)
{
    char *copy = NULL;
    if (text) {
        copy = malloc(len + 1);
        if (!copy)
            return WEIR_ENOMEM;
        memcpy(copy, text, len);
        copy[len] = 0;
    }
    uint32_t expected = 0;
    /* BUSY keeps a second caller out while the outcome is being written. */
    enum { BUSY = 4 };
    for (;;) {
        expected = atomic_load(&h->phase);
        if (expected & (WEIR__ENDED | BUSY)) {
            free(copy);
            return WEIR_ESTALE;
        }
        if (atomic_compare_exchange_weak(&h->phase, &expected, expected | BUSY))
            break;
    }
    h->outcome = outcome;
    h->text = copy;
    h->len = len;
    uint32_t before = atomic_fetch_or(&h->phase, WEIR__ENDED);
    if (before & WEIR__RETURNED)
        weir__pool_send(h);
    return WEIR_OK;
}

/* By hand: to the store at once. */
static weir_code end_now(weir__hold *h, weir_outcome outcome, const char *text, size_t len)
{
    if (atomic_load(&h->phase) & WEIR__ENDED)
        return WEIR_ESTALE;
    weir_ticket t = { .op = { .kind = WEIR_OP_FINISH, .u.finish = {
        .id = h->job->id, .delivery = h->job->delivery, .outcome = outcome,
        .text = text, .len = len } } };
    weir_code rc = weir__queue_run(h->q, &t, NULL);
    if (!rc || rc == WEIR_ESTALE) {
        atomic_fetch_or(&h->phase, WEIR__ENDED);
        revoke(h);
        leave(h);
    }
    return rc;
}

static weir_code end(weir_job *job, weir_outcome outcome, const char *text, size_t len)
{
    weir__hold *h = job->hold;
    if (!h)
        return WEIR_EINVAL;          /* it was read, not taken */
    if (!h->pool)
        return end_now(h, outcome, text, len);
    weir_code late = !atomic_load(&h->revoked) ? WEIR_OK :
                     weir__batcher_closed(&h->q->batcher[0]) ? WEIR_ECLOSED : WEIR_ESTALE;
    weir_code rc = weir__hold_end(h, outcome, text, len);      /* h may be gone now */
    return rc ? rc : late;
}

/* What the store says of a job that we still hold. */
static weir_code heard(weir__hold *h, weir_code rc)
{
    if (rc == WEIR_ESTALE)
        revoke(h);
    return rc;
}

/* Keep the reason for the handler's return value, which is only a code. */
WEIR_PRINTF(2, 3) static void note(weir_job *job, const char *fmt, ...)
{
    if (!job->hold)
        return;
    va_list ap;
    va_start(ap, fmt);
    pthread_mutex_lock(&job->hold->q->holds.lock);
    vsnprintf(job->hold->note, sizeof job->hold->note, fmt, ap);
    pthread_mutex_unlock(&job->hold->q->holds.lock);
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
    return end(job, WEIR_OUTCOME_DONE, result, len);
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
    weir_code rc = end(job, WEIR_OUTCOME_FAIL, text, len);
    free(text);
    return rc ? rc : WEIR_EJOB;
}

weir_code weir_job_log(weir_job *job, const char *fmt, ...)
{
    weir__hold *h = job->hold;
    if (!h)
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
    weir_code rc = weir__queue_run(h->q, &t, NULL);
    free(text);
    return heard(h, rc);
}

weir_code weir_job_progress(weir_job *job, int64_t done, int64_t total)
{
    return weir_job_progress_data(job, done, total, NULL);
}

weir_code weir_job_progress_data(weir_job *job, int64_t done, int64_t total, const char *data)
{
    weir__hold *h = job->hold;
    if (!h || total <= 0 || done < 0)
        return WEIR_EINVAL;
    weir_ticket t = { .op = { .kind = WEIR_OP_PROGRESS, .u.progress = {
        .id = job->id, .delivery = job->delivery, .percent = weir__percent(done, total),
        .data = data, .len = data ? strlen(data) : 0 } } };
    return heard(h, weir__queue_run(h->q, &t, NULL));
}

weir_code weir_job_set(weir_job *job, const char *name, const char *value)
{
    weir__hold *h = job->hold;
    weir_error  err;
    weir_buf    b = { 0 };
    if (!h)
        return WEIR_EINVAL;
    weir_code rc = weir__values_one(&b, name, value, &err);
    if (!rc) {
        weir_ticket t = { .op = { .kind = WEIR_OP_UPDATE, .u.update = {
            .id = job->id, .change = { .values = b.data, .values_len = b.len,
                                       .delivery = job->delivery } } } };
        rc = weir__queue_run(h->q, &t, &err);
    }
    if (rc)
        note(job, "%s", err.msg);
    weir__buf_fini(&b);
    return heard(h, rc);
}

bool weir_cancelled(const weir_job *job)
{
    return job->hold && atomic_load_explicit(&job->hold->revoked, memory_order_relaxed);
}

weir_code weir_job_renew(weir_job *job, int64_t lease_ms)
{
    weir__hold *h = job->hold;
    if (!h)
        return WEIR_EINVAL;
    weir_lease item = { .id = job->id, .delivery = job->delivery, .lease_ms = lease_ms };
    weir_ticket t = { .op = { .kind = WEIR_OP_RENEW, .u.renew = { .items = &item, .n = 1 } } };
    weir_code rc = weir__queue_run(h->q, &t, NULL);
    return heard(h, rc ? rc : item.code);
}
