/* delivery.c - the jobs that this process has taken: leases and outcomes. See delivery.h. */
#include "runtime/delivery.h"

#include <stdlib.h>
#include <string.h>

#include "core/job.h"
#include "runtime/gate.h"
#include "runtime/pool.h"
#include "runtime/queue.h"
#include "runtime/trace.h"

void weir__delivery_leave(weir__delivery *d)
{
    if (!atomic_exchange(&d->left, true))
        weir__queue_left(d->q, d->job);
}

void weir__delivery_revoke(weir__delivery *d)
{
    atomic_store(&d->revoked, true);
    if (!weir__job_is_suspect(d->job))
        weir__delivery_leave(d);
}

weir__delivery *weir__delivery_create(weir_queue *q, weir_job *job, struct weir_pool *pool,
                                      int64_t lease_ms, int64_t asked_at)
{
    weir__delivery *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->q = q;
    d->job = job;
    d->pool = pool;
    d->lease_ms = lease_ms;
    d->lease_until = asked_at + lease_ms;
    job->taken = d;
    weir__queue_ref(q);
    if (pool)
        weir__pool_ref(pool);
    pthread_mutex_lock(&q->deliveries.lock);
    for (size_t i = 0; i < WEIR__REVOKED; i++)
        if (q->deliveries.revoked[i].id == job->id &&
            q->deliveries.revoked[i].delivery == job->delivery)
            weir__delivery_revoke(d);
    weir__list_insert(&q->deliveries.list, NULL, &d->link);
    pthread_mutex_unlock(&q->deliveries.lock);
    if (pool)
        weir__timer_set(&q->timer, &q->renew, weir__queue_steady(q) + lease_ms / 3);
    return d;
}

bool weir__delivery_lasts(weir__delivery *d)
{
    return !atomic_load(&d->revoked) && weir__queue_steady(d->q) < atomic_load(&d->lease_until);
}

bool weir__delivery_confirm(weir__delivery *d)
{
    if (weir__delivery_lasts(d))
        return true;
    int64_t     asked_at = weir__queue_steady(d->q);
    weir_renewal item = { .id = d->job->id, .delivery = d->job->delivery,
                          .lease_ms = d->lease_ms };
    weir_ticket t = { .op = { .kind = WEIR_OP_RENEW, .u.renew = { .items = &item, .n = 1 } } };
    if (atomic_load(&d->revoked) || weir__queue_run(d->q, &t, NULL) || item.code)
        return false;
    atomic_store(&d->lease_until, asked_at + d->lease_ms);
    return true;
}

void weir__delivery_release(weir__delivery *d)
{
    weir_queue *q = d->q;
    weir__delivery_leave(d);
    pthread_mutex_lock(&q->deliveries.lock);
    weir__list_remove(&q->deliveries.list, &d->link);
    pthread_mutex_unlock(&q->deliveries.lock);
    d->job->taken = NULL;
    weir_job_free(d->job);
    weir__pool_unref(d->pool);
    free(d->text);
    free(d);
    weir__queue_unref(q);
}

void weir__deliveries_revoke(weir_queue *q, uint64_t id, uint32_t delivery)
{
    pthread_mutex_lock(&q->deliveries.lock);
    uint32_t at = q->deliveries.n_revoked++ % WEIR__REVOKED;
    q->deliveries.revoked[at].id = id;
    q->deliveries.revoked[at].delivery = delivery;
    WEIR_EACH(weir__delivery, d, &q->deliveries.list, link)
        if (d->job->id == id && d->job->delivery == delivery)
            weir__delivery_revoke(d);
    pthread_mutex_unlock(&q->deliveries.lock);
}

/* Mark the jobs that are not ours any more in the store. */
static void revoke_stale(weir_queue *q, const weir_renewal *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!items[i].code)
            continue;
        pthread_mutex_lock(&q->deliveries.lock);
        WEIR_EACH(weir__delivery, d, &q->deliveries.list, link)
            if (d->job->id == items[i].id && d->job->delivery == items[i].delivery)
                weir__delivery_revoke(d);
        pthread_mutex_unlock(&q->deliveries.lock);
    }
}

/* The leases that were to be renewed have been, from `asked_at` on or later. */
static void prolong(weir_queue *q, int64_t asked_at)
{
    pthread_mutex_lock(&q->deliveries.lock);
    WEIR_EACH(weir__delivery, d, &q->deliveries.list, link)
        if (d->renewing && !atomic_load(&d->revoked))
            atomic_store(&d->lease_until, asked_at + d->lease_ms);
    pthread_mutex_unlock(&q->deliveries.lock);
}

int64_t weir__deliveries_renew(weir_queue *q)
{
    enum { RETRY_MS = 100 };
    int64_t soonest = INT64_MAX;
    size_t n = 0, cap = 0;
    weir__pools_unpack(q);
    pthread_mutex_lock(&q->deliveries.lock);
    WEIR_EACH(weir__delivery, d, &q->deliveries.list, link)
        cap += d->pool != NULL;
    weir_renewal *items = cap ? malloc(cap * sizeof *items) : NULL;
    WEIR_EACH(weir__delivery, d, &q->deliveries.list, link) {
        if (!d->pool)
            continue;
        if (d->lease_ms < soonest)
            soonest = d->lease_ms;
        d->renewing = items && !atomic_load(&d->revoked);
        if (d->renewing)
            items[n++] = (weir_renewal){ .id = d->job->id, .delivery = d->job->delivery,
                                       .lease_ms = d->lease_ms };
    }
    pthread_mutex_unlock(&q->deliveries.lock);
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

void weir__delivery_ticket(weir__delivery *d)
{
    d->ticket.op = (weir_op){ .kind = WEIR_OP_FINISH, .u.finish = {
        .id = d->job->id, .delivery = d->job->delivery, .outcome = d->outcome,
        .text = d->text, .len = d->len, .delay_ms = d->delay_ms } };
}

weir_code weir__delivery_end(weir__delivery *d, weir_outcome outcome, const char *text, size_t len,
                             int64_t delay_ms)
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
        expected = atomic_load(&d->phase);
        if (expected & (WEIR__ENDED | BUSY)) {
            free(copy);
            return WEIR_ESTALE;
        }
        if (atomic_compare_exchange_weak(&d->phase, &expected, expected | BUSY))
            break;
    }
    d->outcome = outcome;
    d->text = copy;
    d->len = len;
    d->delay_ms = delay_ms;
    if (d->pool)
        weir__pool_count(d->pool, outcome);
    weir__trace_executed(d->job, d->begun_ns, outcome, copy, len);
    uint32_t before = atomic_fetch_or(&d->phase, WEIR__ENDED);
    if (before & WEIR__RETURNED)
        weir__pool_send(d);
    return WEIR_OK;
}
