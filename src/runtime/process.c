/* process.c - starting and stopping worker pools. */
#include "runtime/pool_inner.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/thread.h"
#include "core/job.h"

/* ---- starting ---- */

static weir_code check_config(weir_pool_config *c, const char *type, weir_error *err)
{
    weir_code rc = WEIR__CHECK_RESERVED(c, err);
    if (rc)
        return rc;
    if (!c->handler)
        return weir__fail_field(err, WEIR_EINVAL, "handler", "missing");
    if (!type && (!c->types || !c->types[0]))
        return weir__fail_field(err, WEIR_EINVAL, "type", "missing");
    if (type && c->types)
        return weir__fail_field(err, WEIR_EINVAL, "types", "given beside the type %.60s; leave one "
                                "of them NULL", type);
    if (c->threads < 0 || c->threads > WEIR_MAX_THREADS)
        return weir__fail_field(err, WEIR_EINVAL, "threads", "%d, must be 1 to %d "
                                "(WEIR_MAX_THREADS)", c->threads, WEIR_MAX_THREADS);
    if (c->running < 0 || c->running > WEIR_MAX_RUNNING)
        return weir__fail_field(err, WEIR_EINVAL, "running", "%d, must be 1 to %d "
                                "(WEIR_MAX_RUNNING)", c->running, WEIR_MAX_RUNNING);
    if (c->prefetch < WEIR_PREFETCH_NONE || c->prefetch > WEIR_MAX_PAGE)
        return weir__fail_field(err, WEIR_EINVAL, "prefetch", "%d, must be %d (WEIR_PREFETCH_NONE) "
                                "to %d (WEIR_MAX_PAGE)", c->prefetch, WEIR_PREFETCH_NONE,
                                WEIR_MAX_PAGE);
    if (!c->lease_ms)
        c->lease_ms = WEIR_DEFAULT_LEASE_MS;
    if (c->lease_ms < WEIR_MIN_LEASE_MS || c->lease_ms > WEIR_MAX_MS)
        return weir__fail_field(err, WEIR_EINVAL, "lease_ms", "%lld, must be at least %d "
                                "(WEIR_MIN_LEASE_MS)", (long long)c->lease_ms, WEIR_MIN_LEASE_MS);
    if (!c->threads)
        c->threads = 1;
    return WEIR_OK;
}

static weir_code copy_types(pool *p, const char *type, weir_error *err)
{
    const char *const one[] = { type, NULL };
    const char *const *types = type ? one : p->cfg.types;
    size_t n = 0;
    while (types[n])
        n++;
    if (n > WEIR_MAX_TAKE_TYPES)
        return weir__fail_field(err, WEIR_ELIMIT, "types", "%zu, at most %d (WEIR_MAX_TAKE_TYPES)",
                                n, WEIR_MAX_TAKE_TYPES);
    p->types = calloc(n, sizeof *p->types);
    if (!p->types)
        return weir_fail(err, WEIR_ENOMEM, "process: out of memory");
    for (; p->n_types < n; p->n_types++) {
        weir_code rc = weir__type_check(types[p->n_types], "type", err);
        if (!rc && strcmp(types[p->n_types], "*") == 0)
            rc = weir__fail_field(err, WEIR_EINVAL, "type", "\"*\" cannot be taken, name the "
                                  "types");
        if (rc)
            return rc;
        p->types[p->n_types] = strdup(types[p->n_types]);
        if (!p->types[p->n_types])
            return weir_fail(err, WEIR_ENOMEM, "process: out of memory");
    }
    return WEIR_OK;
}

static weir_code copy_condition(pool *p, weir_error *err)
{
    const char *when = p->cfg.when;
    p->cfg.when = NULL;
    weir_code rc = when ? weir_condition_parse(&p->when, when, err) : WEIR_OK;
    if (rc || !when)
        return rc;
    p->cfg.when = strdup(when);
    return p->cfg.when ? WEIR_OK : weir_fail(err, WEIR_ENOMEM, "process: out of memory");
}

static weir_code pool_create(pool **out, weir_queue *q, const char *type,
                             const weir_pool_config *cfg, const weir__ports *ports,
                             weir_error *err)
{
    *out = NULL;
    pool *p = calloc(1, sizeof *p);
    if (!p) {
        if (ports->release)
            ports->release(ports->ctx);
        return weir_fail(err, WEIR_ENOMEM, "process: out of memory");
    }
    p->q = q;
    p->refs = 1;
    p->cfg = *cfg;
    p->ports = *ports;
    p->ready_tail = &p->ready;
    p->hint = HINT_UNKNOWN;
    weir__queue_ref(q);
    pthread_mutex_init(&p->lock, NULL);
    weir__cond_init(&p->wake);
    weir__cond_init(&p->trouble);
    weir__cond_init(&p->quiet);
    weir_code rc = copy_condition(p, err);
    if (!rc)
        rc = check_config(&p->cfg, type, err);
    if (!rc && q->read_only)
        rc = weir_fail(err, WEIR_EREADONLY, "process: the queue is open for reading only");
    if (!rc)
        rc = copy_types(p, type, err);
    if (rc) {
        weir__pool_unref(p);
        return rc;
    }
    weir_pool_config *c = &p->cfg;
    p->alarm_at = INT64_MAX;
    p->poll_at = ports->poll_ms ? weir__queue_steady(q) + ports->poll_ms : 0;
    p->max_begun = c->running > c->threads ? c->running : c->threads;
    p->by_itself = c->prefetch == 0 && !q->store->ops->in_process;
    p->max_running = p->max_begun + (p->by_itself ? WEIR_AHEAD_JOBS
                                     : c->prefetch > 0 ? c->threads * c->prefetch : 0);
    weir__pool_pace_init(p);
    *out = p;
    return WEIR_OK;
}

static weir_code stop_pool(pool *p, weir_deadline until);

static void pools_link(weir_queue *q, pool *p)
{
    pthread_mutex_lock(&q->pools.lock);
    p->next = q->pools.first;
    q->pools.first = p;
    pthread_mutex_unlock(&q->pools.lock);
}

/* Take the first pool that works on `type` (NULL: any) off the list. */
static pool *pools_unlink(weir_queue *q, const char *type)
{
    pthread_mutex_lock(&q->pools.lock);
    pool **at = &q->pools.first;
    for (; *at; at = &(*at)->next) {
        bool ours = !type;
        for (size_t i = 0; i < (*at)->n_types && !ours; i++)
            ours = strcmp((*at)->types[i], type) == 0;
        if (ours)
            break;
    }
    pool *p = *at;
    if (p)
        *at = p->next;
    pthread_mutex_unlock(&q->pools.lock);
    return p;
}

/* Take this pool off the list. False: it is missing, since another call stops or stopped it. */
static bool pools_remove(weir_queue *q, pool *p)
{
    pthread_mutex_lock(&q->pools.lock);
    pool **at = &q->pools.first;
    while (*at && *at != p)
        at = &(*at)->next;
    bool there = *at != NULL;
    if (there)
        *at = p->next;
    pthread_mutex_unlock(&q->pools.lock);
    return there;
}

static weir_code start_threads(pool *p, weir_error *err)
{
    weir_code rc = weir__batcher_start(weir__queue_batcher(p->q, WEIR_OP_TAKE), err);
    for (int32_t i = 0; i < p->cfg.threads && !rc; i++) {
        pthread_t thread;
        weir__pool_ref(p);
        pthread_mutex_lock(&p->lock);
        p->live++;
        pthread_mutex_unlock(&p->lock);
        rc = weir__thread_start(&thread, weir__pool_main, p, "weir-worker", err);
        if (!rc) {
            pthread_detach(thread);      /* a handler may outlive everything: see weir_close() */
            continue;
        }
        pthread_mutex_lock(&p->lock);
        p->live--;
        pthread_mutex_unlock(&p->lock);
        atomic_fetch_sub(&p->refs, 1);
    }
    return rc;
}

weir_code weir__pool_start(weir_queue *q, const char *type, const weir_pool_config *cfg,
                           const weir__ports *ports, pool **out, weir_error *err)
{
    pool *p;
    *out = NULL;
    weir_code rc = pool_create(&p, q, type, cfg, ports, err);
    if (!p)
        return rc;
    weir__pool_ref(p);     /* the caller's: somebody may stop it before all threads have started */
    pools_link(q, p);      /* before the threads start, so that no hint is missed */
    weir__queue_want(q, WEIR__WANT_HINTS);
    rc = start_threads(p, err);
    if (rc) {
        bool there = pools_remove(q, p);
        stop_pool(p, weir__deadline_in(0));
        if (there)
            weir__pool_unref(p);
        weir__pool_unref(p);
        return rc;
    }
    if (p->poll_at)
        weir__timer_set(&q->timer, &q->tend, p->poll_at);
    *out = p;
    return WEIR_OK;
}

weir_code weir_process(weir_queue *q, const char *type, const weir_pool_config *cfg,
                       weir_pool **out, weir_error *err)
{
    static const weir__ports none;
    pool *p;
    weir_code rc = weir__pool_start(q, type, cfg, &none, &p, err);
    if (out)
        *out = p;
    else
        weir__pool_unref(p);
    return rc;
}

/* ---- stopping ---- */

void weir__pool_return_ready(pool *p)
{
    while (p->n_ready) {
        weir__delivery *h = weir__pool_ready_pop(p);
        pthread_mutex_unlock(&p->lock);
        h->outcome = WEIR_OUTCOME_RETURN;
        weir__delivery_ticket(h);
        weir__queue_run(p->q, &h->ticket, NULL);
        weir__delivery_release(h);
        pthread_mutex_lock(&p->lock);
    }
}

/* Time is up: fail what still runs, by the rule of attempts. Returns how many. */
static size_t fail_running(pool *p)
{
    size_t failed = 0;
    for (;;) {
        weir_ticket t = { .op = { .kind = WEIR_OP_FINISH } };
        weir_op_finish *fin = &t.op.u.finish;
        pthread_mutex_lock(&p->q->deliveries.lock);
        weir__delivery *h = NULL;
        WEIR_EACH(weir__delivery, at, &p->q->deliveries.list, link)
            if (!h && at->pool == p && !at->shut)
                h = at;
        if (h) {
            h->shut = true;
            *fin = (weir_op_finish){ .id = h->job->id, .delivery = h->job->delivery,
                                     .outcome = WEIR_OUTCOME_FAIL, .text = WEIR__SHUTDOWN_TEXT,
                                     .len = strlen(WEIR__SHUTDOWN_TEXT) };
            atomic_store(&h->revoked, true);
        }
        pthread_mutex_unlock(&p->q->deliveries.lock);
        if (!h)
            return failed;
        if (!weir__queue_run(p->q, &t, NULL))
            failed++;
    }
}

static weir_code stop_pool(pool *p, weir_deadline until)
{
    size_t failed = 0;
    pthread_mutex_lock(&p->lock);
    weir__pool_begin_stop(p);
    bool late = false;
    for (;;) {
        while (p->n_fetched || p->n_ready) {       /* more may come while it is handed back */
            if (p->n_fetched)
                weir__pool_unpack(p);
            weir__pool_return_ready(p);
        }
        if (p->again)                              /* the last chance for them */
            weir__pool_submit_again(p);
        if (p->fetching || p->busy || (!p->running && p->live)) {
            pthread_cond_wait(&p->quiet, &p->lock);       /* only our own code is awaited */
        } else if (!p->running || late) {
            break;
        } else if (!weir__cond_wait_until(&p->quiet, &p->lock, until)) {
            late = true;
            pthread_mutex_unlock(&p->lock);
            failed = fail_running(p);
            pthread_mutex_lock(&p->lock);
        }
    }
    pthread_mutex_unlock(&p->lock);
    weir__queue_forget(p->q, &p->knows);
    return failed ? WEIR_ETIMEOUT : WEIR_OK;
}

static void begin_stop(pool *p)
{
    pthread_mutex_lock(&p->lock);
    weir__pool_begin_stop(p);
    pthread_mutex_unlock(&p->lock);
}

/* Wait for a pool that is off the list, and release the list's reference. `rc` is the error of
 * another pool; it stays. */
static weir_code end_stop(pool *p, weir_deadline until, int64_t timeout_ms, weir_code rc,
                          weir_error *err)
{
    if (stop_pool(p, until))
        rc = weir_fail(err, WEIR_ETIMEOUT, "stop: handlers were still running after %lld ms; "
                       "their jobs failed with \"" WEIR__SHUTDOWN_TEXT "\"",
                       (long long)timeout_ms);
    else if (p->unsaved && !rc)         /* nobody else is here any more */
        rc = weir_fail(err, p->unsaved_why.code, "stop: outcomes that the store did not take: "
                       "%u (%.120s); these jobs run again", p->unsaved, p->unsaved_why.msg);
    pthread_mutex_lock(&p->lock);
    p->stopped = true;
    pthread_cond_broadcast(&p->quiet);
    pthread_mutex_unlock(&p->lock);
    weir__pool_unref(p);
    return rc;
}

weir_code weir_stop(weir_queue *q, const char *type, int64_t timeout_ms, weir_error *err)
{
    pool *p, *stopped = NULL;
    weir_code rc = WEIR_OK;
    /* First stop all of them, then wait for each: their time runs together. */
    while ((p = pools_unlink(q, type))) {
        begin_stop(p);
        p->next = stopped;
        stopped = p;
    }
    weir_deadline until = weir__deadline_in(timeout_ms);
    while ((p = stopped)) {
        stopped = p->next;
        rc = end_stop(p, until, timeout_ms, rc, err);
    }
    return rc;
}

/* ---- the handle ---- */

weir_code weir_pool_stop(weir_pool *p, int64_t timeout_ms, weir_error *err)
{
    if (!pools_remove(p->q, p)) {
        pthread_mutex_lock(&p->lock);
        while (!p->stopped)             /* another thread stops it, and has its own timeout */
            pthread_cond_wait(&p->quiet, &p->lock);
        pthread_mutex_unlock(&p->lock);
        return WEIR_OK;
    }
    begin_stop(p);
    return end_stop(p, weir__deadline_in(timeout_ms), timeout_ms, WEIR_OK, err);
}

void weir_pool_get_stats(weir_pool *p, weir_pool_stats *out)
{
    *out = (weir_pool_stats){ .completed = atomic_load(&p->ended[WEIR_OUTCOME_DONE]),
                              .failed = atomic_load(&p->ended[WEIR_OUTCOME_FAIL]) +
                                        atomic_load(&p->ended[WEIR_OUTCOME_GIVE_UP]),
                              .returned = atomic_load(&p->ended[WEIR_OUTCOME_RETURN]) };
    out->started = atomic_load(&p->started);        /* last: an outcome comes after its start */
    out->running = (uint32_t)(out->started - out->completed - out->failed - out->returned);
    out->busy = (uint32_t)atomic_load(&p->handling);
    pthread_mutex_lock(&p->lock);
    out->prefetched = (uint32_t)(p->n_ready + p->n_fetched);
    out->threads = (uint32_t)p->live;
    pthread_mutex_unlock(&p->lock);
}

void weir_pool_free(weir_pool *p)
{
    weir__pool_unref(p);
}
