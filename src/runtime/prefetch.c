/* prefetch.c - prefetching: a pool takes jobs in bulk, and they wait in its list of ready ones.
 *
 * weir_pool_config.prefetch says how many jobs a pool may have ready. By default the pool finds
 * the number: as many as its threads do in AHEAD_NS if all handlers take as long as the slowest
 * recent one. A pool has no times of its handlers at first and takes nothing ahead.
 *
 * A pool may take jobs ahead and not begin them within WEIR_AHEAD_MS, because its threads are all
 * in slow handlers. These jobs go back to the store. Nobody waits for that moment: every bulk sets
 * the timer, which calls weir__pools_tend(). */
#include "runtime/pool_inner.h"

#include "core/job.h"

enum {
    AHEAD_NS     = 1000000,            /* work that a thread may find before it */
    SLOW_NS      = 2 * AHEAD_NS,       /* how slow a handler can count at most */
    FORGET       = 64,                 /* a quicker handler takes this part off the slowest */
    AHEAD_LEAST  = 8                   /* a smaller bulk costs more than it saves */
};

/* ---- how many ---- */

void weir__pool_pace(pool *p, int64_t took_ns)
{
    int64_t took = took_ns < SLOW_NS ? took_ns : SLOW_NS;
    int64_t less = p->slowest_ns - p->slowest_ns / FORGET;
    p->slowest_ns = took > less ? took : less;
}

void weir__pool_pace_init(pool *p)
{
    p->slowest_ns = SLOW_NS;
}

/* The maximum number of ready jobs, and the number of requested ones. Lock held. */
static size_t most_ready(const pool *p)
{
    size_t threads = (size_t)p->cfg.threads, most = 0;
    if (p->cfg.prefetch > 0) {
        most = threads * (size_t)(p->cfg.prefetch + 1);
    } else if (p->by_itself && p->slowest_ns <= AHEAD_NS) {
        size_t in_time = threads * (size_t)(AHEAD_NS / (p->slowest_ns + 1));
        most = threads > WEIR_AHEAD_JOBS ? threads : WEIR_AHEAD_JOBS;
        most = in_time < most ? in_time : most;
        most = most < AHEAD_LEAST ? 0 : most;
    }
    return most < WEIR_MAX_PAGE ? most : WEIR_MAX_PAGE;
}

bool weir__pool_takes_bulk(const pool *p)
{
    if (p->cfg.prefetch > 0)
        return true;
    /* For a lone job the thread that ends or takes it is quicker by itself. */
    return p->n_ready || p->fetching || (p->hint > 1 && most_ready(p));
}

/* ---- the list ---- */

static void ready_push(pool *p, weir__delivery *h)
{
    h->queued = NULL;
    *p->ready_tail = h;
    p->ready_tail = &h->queued;
    p->n_ready++;
}

weir__delivery *weir__pool_ready_pop(pool *p)
{
    weir__delivery *h = p->ready;
    p->ready = h->queued;
    if (!p->ready)
        p->ready_tail = &p->ready;
    p->n_ready--;
    return h;
}

/* ---- bulks ---- */

/* When the bulk that came now goes back if it is not begun. The time of its jobs runs already: they
 * must not lose much of it, however little they have. */
static int64_t back_at(const pool *p, int64_t now)
{
    enum { SHARE = 4 };
    int64_t wait = WEIR_AHEAD_MS;
    for (size_t i = 0; i < p->n_fetched; i++) {
        int64_t ttl = p->fetched[i]->ttl_ms;
        if (ttl && ttl / SHARE < wait)
            wait = ttl / SHARE;
    }
    return now + wait;
}

/* A bulk of jobs has come (or trouble). The thread that leads is here and has more to do, so a
 * thread of the pool unpacks it. */
static void fetch_done(weir_ticket *t)
{
    pool *p = (pool *)((char *)t - offsetof(pool, fetch));
    int64_t now = weir__queue_steady(p->q);
    weir__queue_answered(p->q, p->fetch_pass, t->op.err.code ? NULL : &t->op.u.take, &p->knows);
    pthread_mutex_lock(&p->lock);
    if (!t->op.err.code) {
        p->n_fetched = t->op.u.take.n_jobs;
        weir__pool_learn(p, p->fetch_asked, &t->op.u.take,
                         p->n_fetched && weir__job_is_suspect(p->fetched[0]));
    } else if (t->op.err.code == WEIR_ECLOSED) {
        weir__pool_begin_stop(p);
    }
    if (!p->n_fetched) {
        p->fetching = false;
    } else if (p->by_itself) {
        p->back_at = back_at(p, now);
        weir__timer_set(&p->q->timer, &p->q->tend, p->back_at);
    } else {    /* all threads may be in handlers: see weir__pools_unpack() */
        weir__timer_set(&p->q->timer, &p->q->renew, now + p->cfg.lease_ms / 3);
    }
    weir__pool_wake(p);
    pthread_cond_broadcast(&p->quiet);
    pthread_mutex_unlock(&p->lock);
    weir__pool_unref(p);
}

void weir__pool_unpack(pool *p)
{
    size_t n = p->n_fetched;
    int64_t back_at = p->by_itself ? p->back_at : INT64_MAX;
    weir__delivery *deliveries[WEIR_MAX_PAGE];
    p->n_fetched = 0;
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < n; i++) {
        deliveries[i] = weir__delivery_create(p->q, p->fetched[i], p, p->cfg.lease_ms, p->fetch_at);
        if (deliveries[i]) {
            deliveries[i]->back_at = back_at;
            continue;
        }
        weir__queue_left(p->q, p->fetched[i]);     /* out of memory: its lease will run out */
        weir_job_free(p->fetched[i]);
    }
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < n; i++)
        if (deliveries[i])
            ready_push(p, deliveries[i]);
    p->fetching = false;
    pthread_cond_broadcast(&p->quiet);
}

/* Leases are about to be renewed, which works for unpacked jobs only. */
void weir__pools_unpack(weir_queue *q)
{
    pthread_mutex_lock(&q->pools.lock);
    for (pool *p = q->pools.first; p; p = p->next) {
        pthread_mutex_lock(&p->lock);
        if (p->n_fetched)
            weir__pool_unpack(p);
        weir__pool_wake(p);
        pthread_mutex_unlock(&p->lock);
    }
    pthread_mutex_unlock(&q->pools.lock);
}

void weir__pool_fetch(pool *p)
{
    size_t most = most_ready(p);
    if (p->ports.metered && (int64_t)most > p->demand)
        most = p->demand > 0 ? (size_t)p->demand : 0;
    if (p->fetching || p->stopping || !most || p->n_ready > most / 2)
        return;
    p->fetch_pass = weir__pool_enter(p);
    if (!p->fetch_pass)
        return;
    p->fetching = true;
    p->fetch_asked = weir__pool_ask(p);
    p->fetch_at = weir__queue_steady(p->q);
    p->fetch.op = (weir_op){ .kind = WEIR_OP_TAKE,
        .u.take = weir__pool_taking(p, p->fetch_pass, p->fetched, most - p->n_ready,
                                    p->q->name) };
    p->fetch.done = fetch_done;
    p->fetch.detached = p->cfg.prefetch > 0;
    weir__pool_ref(p);
    if (weir__op_check(&p->fetch.op, NULL) || weir__queue_submit(p->q, &p->fetch)) {
        weir__queue_answered(p->q, p->fetch_pass, NULL, &p->knows);
        p->fetching = false;
        weir__pool_begin_stop(p);
        atomic_fetch_sub(&p->refs, 1);
    }
}

void weir__pool_mind_fetch(pool *p)
{
    if (p->fetching || p->stopping || !p->fetch.op.err.code)
        return;
    weir_error err = p->fetch.op.err;
    p->fetch.op.err.code = WEIR_OK;
    p->fetching = true;                            /* keep the others out meanwhile */
    weir__pool_pause(p, &err);
    p->fetching = false;
}

/* ---- going back ---- */

/* To the store as if they had never been taken. Lock held, but not all the time. */
static void go_back(pool *p)
{
    weir__pool_pace_init(p);
    while (p->n_ready) {
        weir__delivery *h = weir__pool_ready_pop(p);
        p->running++;
        pthread_mutex_unlock(&p->lock);
        h->outcome = WEIR_OUTCOME_RETURN;
        weir__pool_submit(h);
        pthread_mutex_lock(&p->lock);
    }
}

/* Returns the time of the next call. Lock held, but not all the time. */
static int64_t tend(pool *p, int64_t now)
{
    int64_t next = INT64_MAX;
    if (p->n_fetched && p->by_itself)
        weir__pool_unpack(p);
    for (const weir__delivery *h = p->ready; h; h = h->queued)
        if (h->back_at < next)
            next = h->back_at;
    if (now >= next) {
        go_back(p);
        next = INT64_MAX;
    }
    if (p->poll_at && now >= p->poll_at) {
        p->hint = HINT_UNKNOWN;
        p->hinted += HINT_UNKNOWN;
        p->poll_at = p->ports.poll_ms ? now + p->ports.poll_ms : 0;
    }
    if (p->poll_at && p->poll_at < next)
        next = p->poll_at;
    if (now >= p->alarm_at) {
        p->alarmed = true;
        p->alarm_at = INT64_MAX;
    }
    if (p->alarm_at < next)
        next = p->alarm_at;
    if (p->again && now >= p->again_at)
        weir__pool_submit_again(p);
    else if (p->again && p->again_at < next)
        next = p->again_at;
    weir__pool_wake(p);
    return next;
}

int64_t weir__pools_tend(weir_queue *q)
{
    int64_t now = weir__queue_steady(q), next = weir__queue_closed_ms(q);
    if (next < INT64_MAX)
        next += now + 1;
    pthread_mutex_lock(&q->pools.lock);
    for (pool *p = q->pools.first; p; p = p->next) {
        pthread_mutex_lock(&p->lock);
        int64_t at = tend(p, now);
        pthread_mutex_unlock(&p->lock);
        if (at < next)
            next = at;
    }
    pthread_mutex_unlock(&q->pools.lock);
    return next;
}
