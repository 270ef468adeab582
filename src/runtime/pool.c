/* pool.c - worker pools: see pool.h.
 *
 * How idle threads learn of work without polling: every pool keeps `hint`, an upper bound on the
 * jobs that wait for it as far as this process knows. An `enqueue` event raises it, a job taken
 * lowers it, and an empty answer sets it to what has come since the question. A thread asks the
 * store only while hint > 0.
 *
 * Without prefetch, a thread ends its job and takes the next in one operation and waits for it.
 * With prefetch (or handlers that answer WEIR_LATER), outcomes are sent without waiting, and jobs
 * come in lots from the pool's list of ready ones. */
#include "runtime/pool.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "core/job.h"
#include "runtime/queue.h"

enum { RETRY_MS = 1000 };              /* after the store could not be reached */
#define HINT_UNKNOWN (UINT64_C(1) << 48)  /* more than there can be, but many add up */

/* What was known when the store was asked for jobs. */
typedef struct question {
    uint64_t hinted;
    uint32_t resets;
} question;

typedef struct weir__pool {
    weir_queue        *q;              /* a reference */
    _Atomic uint32_t   refs;           /* the queue's list, each thread, each hold */
    struct weir__pool *next;           /* q->pools */
    weir_pool          cfg;
    char             **types;
    size_t             n_types;
    _Atomic int32_t    begun;          /* jobs whose outcome is not known; raised under lock */
    int32_t            max_begun;

    pthread_mutex_t    lock;           /* guards what follows */
    pthread_cond_t     wake;           /* idle threads: there may be something to do */
    pthread_cond_t     trouble;        /* threads that wait for the store to come back */
    pthread_cond_t     quiet;          /* weir_stop(): something has ended */
    uint64_t           hint, hinted;   /* hinted: all that was ever added to hint */
    uint32_t           resets;         /* how often an empty answer has set hint */
    int32_t            idle, live;     /* threads */
    bool               waking;         /* one of the idle has been signalled and is on its way */
    int32_t            running;        /* jobs begun whose outcome is not settled */
    int32_t            max_running;
    int32_t            busy;           /* threads that take, or send an outcome and wait */
    bool               stopping;
    weir__hold        *ready, **ready_tail;   /* taken ahead */
    size_t             n_ready;
    weir__hold        *again;          /* outcomes that the store could not take yet */
    bool               fetching;       /* the fetch ticket is under way, or not unpacked yet */
    weir_ticket        fetch;
    question           fetch_asked;
    weir_job          *fetched[WEIR_MAX_PAGE];
    size_t             n_fetched;      /* to be unpacked */
} pool;

void weir__pool_ref(pool *p)
{
    atomic_fetch_add(&p->refs, 1);
}

void weir__pool_unref(pool *p)
{
    if (!p || atomic_fetch_sub(&p->refs, 1) != 1)
        return;
    for (size_t i = 0; i < p->n_types; i++)
        free(p->types[i]);
    free(p->types);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->wake);
    pthread_cond_destroy(&p->trouble);
    pthread_cond_destroy(&p->quiet);
    weir__queue_unref(p->q);
    free(p);
}

/* ---- hints ---- */

/* One thread is woken at a time, and wakes the next when there is more than it can take: threads
 * that are awake anyway often have it done before. Lock held. */
static void wake_one(pool *p)
{
    if (p->idle && !p->waking && (p->hint || p->n_ready || p->n_fetched || p->again)) {
        p->waking = true;
        pthread_cond_signal(&p->wake);
    }
}

static void hint(pool *p, uint64_t n)
{
    pthread_mutex_lock(&p->lock);
    p->hinted += n;
    p->hint = p->hint + n < HINT_UNKNOWN ? p->hint + n : HINT_UNKNOWN;
    wake_one(p);
    pthread_mutex_unlock(&p->lock);
}

static question ask(const pool *p)
{
    return (question){ p->hinted, p->resets };
}

/* `asked` jobs were asked for when `then` was known, and `got` came. When an empty answer has set
 * the hint meanwhile, it does not count what came here, and nothing is to be taken off. Lock
 * held. */
static void learn(pool *p, question then, size_t asked, size_t got)
{
    if (got < asked) {
        uint64_t since = p->hinted - then.hinted;
        p->hint = since < HINT_UNKNOWN ? since : HINT_UNKNOWN;
        p->resets++;
    } else if (p->resets == then.resets) {
        p->hint -= p->hint < got ? p->hint : got;
    }
}

void weir__pools_hint(weir_queue *q, const char *type, uint32_t n)
{
    bool all = !type || strcmp(type, "*") == 0;
    pthread_mutex_lock(&q->pools.lock);
    for (pool *p = q->pools.first; p; p = p->next) {
        bool ours = all;
        for (size_t i = 0; i < p->n_types && !ours; i++)
            ours = strcmp(p->types[i], type) == 0;
        if (ours)
            hint(p, all ? HINT_UNKNOWN : n);
    }
    pthread_mutex_unlock(&q->pools.lock);
}

/* ---- waiting ---- */

static struct timespec after_ms(int64_t ms)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    ts.tv_sec += (time_t)(ms / 1000);
    ts.tv_nsec += (long)(ms % 1000) * 1000000;
    if (ts.tv_nsec >= 1000000000) {
        ts.tv_sec++;
        ts.tv_nsec -= 1000000000;
    }
    return ts;
}

/* The store is in trouble: tell, and wait a while unless the pool is stopping. Lock held. */
static void pause_for_trouble(pool *p, const weir_error *err)
{
    pthread_mutex_unlock(&p->lock);
    weir__events_trouble(&p->q->events, weir_now(p->q), err);
    pthread_mutex_lock(&p->lock);
    struct timespec until = after_ms(RETRY_MS);
    while (!p->stopping)
        if (pthread_cond_timedwait(&p->trouble, &p->lock, &until) == ETIMEDOUT)
            break;
}

/* Nothing more is to be begun. Lock held. */
static void tell_stop(pool *p)
{
    p->stopping = true;
    pthread_cond_broadcast(&p->wake);
    pthread_cond_broadcast(&p->trouble);
}

/* ---- taking ---- */

static weir_op_take take_of(pool *p, weir_job **jobs, size_t n, const char *worker)
{
    return (weir_op_take){ .types = (const char *const *)p->types, .n_types = p->n_types, .n = n,
                           .lease_ms = p->cfg.lease_ms, .worker = worker, .jobs = jobs };
}

/* Give back a job that was taken and will not be begun. No lock held. */
static void give_back(pool *p, weir_job *job)
{
    weir_ticket t = { .op = { .kind = WEIR_OP_FINISH, .u.finish = {
        .id = job->id, .delivery = job->delivery, .outcome = WEIR_OUTCOME_RELEASE } } };
    weir__queue_run(p->q, &t, NULL);     /* if it fails, the lease runs out */
    weir_job_release(job);
}

/* A job was taken: begin it, unless the pool is stopping. No lock held. */
static weir__hold *begin(pool *p, weir_job *job)
{
    pthread_mutex_lock(&p->lock);
    bool stopping = p->stopping;
    pthread_mutex_unlock(&p->lock);
    weir__hold *h = stopping ? NULL : weir__hold_create(p->q, job, p, p->cfg.lease_ms);
    if (!h)
        give_back(p, job);
    return h;
}

/* Between these two, weir_stop() waits for us. Lock held. */
static void busy(pool *p)
{
    p->busy++;
}

static void no_longer_busy(pool *p)
{
    p->busy--;
    if (p->stopping)
        pthread_cond_broadcast(&p->quiet);
}

/* Take one job and wait for it. Lock held. NULL: there was none, or trouble. */
static weir__hold *take_one(pool *p, const char *worker)
{
    question then = ask(p);
    weir_job *job = NULL;
    weir_error err;
    busy(p);
    p->running++;
    atomic_fetch_add(&p->begun, 1);
    if (p->hint > 1)
        wake_one(p);
    pthread_mutex_unlock(&p->lock);
    weir_ticket t = { .op = { .kind = WEIR_OP_TAKE, .u.take = take_of(p, &job, 1, worker) } };
    weir_code rc = weir__queue_run(p->q, &t, &err);
    weir__hold *h = job ? begin(p, job) : NULL;
    pthread_mutex_lock(&p->lock);
    no_longer_busy(p);
    if (!h) {
        p->running--;
        atomic_fetch_sub(&p->begun, 1);
    }
    if (rc == WEIR_ECLOSED)
        tell_stop(p);
    else if (rc)
        pause_for_trouble(p, &err);
    else
        learn(p, then, 1, job ? 1 : 0);
    return h;
}

static void ready_push(pool *p, weir__hold *h)
{
    h->queued = NULL;
    *p->ready_tail = h;
    p->ready_tail = &h->queued;
    p->n_ready++;
}

static weir__hold *ready_pop(pool *p)
{
    weir__hold *h = p->ready;
    p->ready = h->queued;
    if (!p->ready)
        p->ready_tail = &p->ready;
    p->n_ready--;
    return h;
}

/* A lot of jobs has come (or trouble). The thread that leads is here and has more to do, so a
 * thread of the pool unpacks it. */
static void fetch_done(weir_ticket *t)
{
    pool *p = (pool *)((char *)t - offsetof(pool, fetch));
    int64_t now = weir_now(p->q);
    pthread_mutex_lock(&p->lock);
    if (!t->op.err.code) {
        p->n_fetched = t->op.u.take.n_jobs;
        learn(p, p->fetch_asked, t->op.u.take.n, p->n_fetched);
    } else if (t->op.err.code == WEIR_ECLOSED) {
        tell_stop(p);
    }
    if (!p->n_fetched)
        p->fetching = false;
    else        /* all threads may be in handlers: see weir__pools_unpack() */
        weir__timer_renew(&p->q->timer, now + p->cfg.lease_ms / 3);
    wake_one(p);
    pthread_cond_broadcast(&p->quiet);
    pthread_mutex_unlock(&p->lock);
    weir__pool_unref(p);
}

/* Make what has been fetched ready. Lock held, but not all the time. */
static void unpack(pool *p)
{
    size_t n = p->n_fetched;
    weir__hold *holds[WEIR_MAX_PAGE];
    p->n_fetched = 0;
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < n; i++) {
        holds[i] = weir__hold_create(p->q, p->fetched[i], p, p->cfg.lease_ms);
        if (!holds[i])
            weir_job_release(p->fetched[i]);       /* out of memory: its lease will run out */
    }
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < n; i++)
        if (holds[i])
            ready_push(p, holds[i]);
    p->fetching = false;
    pthread_cond_broadcast(&p->quiet);
}

/* Leases are about to be renewed, and only those of unpacked jobs can be. */
void weir__pools_unpack(weir_queue *q)
{
    pthread_mutex_lock(&q->pools.lock);
    for (pool *p = q->pools.first; p; p = p->next) {
        pthread_mutex_lock(&p->lock);
        if (p->n_fetched)
            unpack(p);
        wake_one(p);
        pthread_mutex_unlock(&p->lock);
    }
    pthread_mutex_unlock(&q->pools.lock);
}

/* With prefetch: see that jobs are on their way. Lock held. */
static void fetch_ahead(pool *p)
{
    size_t want = (size_t)p->cfg.threads * (size_t)(p->cfg.prefetch + 1);
    if (want > WEIR_MAX_PAGE)
        want = WEIR_MAX_PAGE;
    if (p->fetching || p->stopping || !p->hint || p->n_ready > want / 2)
        return;
    if (p->fetch.op.err.code) {                    /* the last one failed */
        weir_error err = p->fetch.op.err;
        p->fetch.op.err.code = WEIR_OK;
        p->fetching = true;                        /* keep the others out meanwhile */
        pause_for_trouble(p, &err);
        p->fetching = false;
        if (p->stopping)
            return;
    }
    p->fetching = true;
    p->fetch_asked = ask(p);
    p->fetch.op = (weir_op){ .kind = WEIR_OP_TAKE,
        .u.take = take_of(p, p->fetched, want - p->n_ready, p->q->name) };
    p->fetch.done = fetch_done;
    weir__pool_ref(p);
    if (weir__op_check(&p->fetch.op, NULL) || weir__batcher_submit(&p->q->batcher, &p->fetch)) {
        p->fetching = false;
        tell_stop(p);
        atomic_fetch_sub(&p->refs, 1);
    }
}

/* ---- ending ---- */

static bool worth_sending_again(weir_code rc)
{
    return weir_code_may_retry(rc);
}

/* One job less. Lock held. */
static void settled(pool *p)
{
    p->running--;
    if (p->stopping)
        pthread_cond_broadcast(&p->quiet);
    else
        wake_one(p);
}

/* An outcome that nobody waited for has been answered. */
static void send_done(weir_ticket *t)
{
    weir__hold *h = (weir__hold *)((char *)t - offsetof(weir__hold, ticket));
    pool *p = h->pool;
    pthread_mutex_lock(&p->lock);
    bool again = worth_sending_again(t->op.err.code) && !p->stopping;
    if (again) {
        h->queued = p->again;
        p->again = h;
        wake_one(p);
    } else {
        settled(p);
    }
    pthread_mutex_unlock(&p->lock);
    if (!again)
        weir__hold_release(h);
}

void weir__pool_send(weir__hold *h)
{
    atomic_fetch_sub(&h->pool->begun, 1);
    weir__hold_ticket(h);
    h->ticket.done = send_done;
    weir_error err;
    weir_code rc = weir__op_check(&h->ticket.op, &err);
    if (!rc)
        rc = weir__batcher_submit(&h->q->batcher, &h->ticket);
    if (rc) {
        h->ticket.op.err.code = rc;
        send_done(&h->ticket);
    }
}

/* Send the outcome and wait for it; when there is a next job, take it in the same step. */
static weir__hold *settle(pool *p, weir__hold *h, bool next, const char *worker)
{
    weir_job *job = NULL;
    weir_error err;
    pthread_mutex_lock(&p->lock);
    busy(p);
    for (;;) {
        question then = ask(p);
        bool more = next && !p->stopping;
        pthread_mutex_unlock(&p->lock);
        weir__hold_ticket(h);
        if (more)
            h->ticket.op.u.finish.next = take_of(p, &job, 1, worker);
        weir_code rc = weir__queue_run(p->q, &h->ticket, &err);
        pthread_mutex_lock(&p->lock);
        if (!rc && more)
            learn(p, then, 1, job ? 1 : 0);
        if (!worth_sending_again(rc) || p->stopping)
            break;
        pause_for_trouble(p, &err);
    }
    if (job)
        p->running++;                  /* in its place */
    else if (next)
        atomic_fetch_sub(&p->begun, 1);
    settled(p);
    pthread_mutex_unlock(&p->lock);
    weir__hold_release(h);
    weir__hold *n = job ? begin(p, job) : NULL;
    pthread_mutex_lock(&p->lock);
    no_longer_busy(p);
    if (job && !n) {
        atomic_fetch_sub(&p->begun, 1);
        settled(p);
    }
    pthread_mutex_unlock(&p->lock);
    return n;
}

/* Call the handler. Returns the next job, if one came along. */
static weir__hold *work(pool *p, weir__hold *h, const char *worker)
{
    weir_code rc = p->cfg.handler(h->job, p->cfg.ctx);
    if (rc == WEIR_OK)
        weir__hold_end(h, WEIR_OUTCOME_DONE, NULL, 0);      /* unless it has ended already */
    else if (rc != WEIR_LATER) {
        char why[WEIR_ERROR_MAX];
        pthread_mutex_lock(&p->q->holds.lock);
        bool noted = h->note[0] && (rc == WEIR_EINVAL || rc == WEIR_ELIMIT);
        snprintf(why, sizeof why, "%s", noted ? h->note : weir_code_text(rc));
        pthread_mutex_unlock(&p->q->holds.lock);
        if (weir__hold_end(h, WEIR_OUTCOME_FAIL, why, strlen(why)) == WEIR_ENOMEM)
            weir__hold_end(h, WEIR_OUTCOME_FAIL, NULL, 0);
    }
    if (!(atomic_fetch_or(&h->phase, WEIR__RETURNED) & WEIR__ENDED))
        return NULL;                                        /* whoever ends it will send it */
    if (rc != WEIR_LATER && !p->cfg.prefetch)
        return settle(p, h, true, worker);
    weir__pool_send(h);
    return NULL;
}

/* ---- threads ---- */

/* The next job to begin. NULL: the pool is stopping. */
static weir__hold *next_job(pool *p, const char *worker)
{
    weir__hold *h = NULL;
    pthread_mutex_lock(&p->lock);
    while (!h) {
        if (p->again) {
            weir__hold *again = p->again;
            p->again = again->queued;
            pthread_mutex_unlock(&p->lock);
            settle(p, again, false, worker);
            pthread_mutex_lock(&p->lock);
            continue;
        }
        if (p->n_fetched)
            unpack(p);
        if (p->stopping)
            break;
        bool room = p->running < p->max_running && atomic_load(&p->begun) < p->max_begun;
        if (p->cfg.prefetch && room)
            fetch_ahead(p);
        if (p->n_ready && room) {
            h = ready_pop(p);
            if (p->n_ready)
                wake_one(p);
            if (atomic_load(&h->revoked)) {       /* cancelled before it was begun */
                pthread_mutex_unlock(&p->lock);
                weir__hold_release(h);
                h = NULL;
                pthread_mutex_lock(&p->lock);
                continue;
            }
            p->running++;
            atomic_fetch_add(&p->begun, 1);
        } else if (!p->cfg.prefetch && p->hint && room) {
            h = take_one(p, worker);
        } else if (!p->stopping) {
            p->idle++;
            pthread_cond_wait(&p->wake, &p->lock);
            p->idle--;
            p->waking = false;
        }
    }
    pthread_mutex_unlock(&p->lock);
    return h;
}

static void *worker_main(void *arg)
{
    pool *p = arg;
    char name[sizeof p->q->name + 12];
    pthread_mutex_lock(&p->q->pools.lock);
    uint32_t number = ++p->q->pools.threads;
    pthread_mutex_unlock(&p->q->pools.lock);
    snprintf(name, sizeof name, "%s:%u", p->q->name, number);
    weir__hold *h = NULL;
    for (;;) {
        if (!h)
            h = next_job(p, name);
        if (!h)
            break;
        h = work(p, h, name);
    }
    pthread_mutex_lock(&p->lock);
    p->live--;
    pthread_cond_broadcast(&p->quiet);
    pthread_mutex_unlock(&p->lock);
    weir__pool_unref(p);
    return NULL;
}

/* ---- starting ---- */

static weir_code check_config(weir_pool *c, const char *type, weir_error *err)
{
    if (!c->handler)
        return weir_fail(err, WEIR_EINVAL, "process: no handler");
    if (!type && (!c->types || !c->types[0]))
        return weir_fail(err, WEIR_EINVAL, "process: no type");
    if (c->threads < 0 || c->threads > WEIR_MAX_THREADS)
        return weir_fail(err, WEIR_EINVAL, "process: %d threads, must be 1 to %d "
                         "(WEIR_MAX_THREADS)", c->threads, WEIR_MAX_THREADS);
    if (c->running < 0 || c->running > WEIR_MAX_RUNNING)
        return weir_fail(err, WEIR_EINVAL, "process: %d jobs running, must be 1 to %d "
                         "(WEIR_MAX_RUNNING)", c->running, WEIR_MAX_RUNNING);
    if (c->prefetch < 0 || c->prefetch > WEIR_MAX_PAGE)
        return weir_fail(err, WEIR_EINVAL, "process: prefetch of %d, must be 0 to %d "
                         "(WEIR_MAX_PAGE)", c->prefetch, WEIR_MAX_PAGE);
    if (!c->lease_ms)
        c->lease_ms = WEIR_DEFAULT_LEASE_MS;
    if (c->lease_ms < WEIR_MIN_LEASE_MS || c->lease_ms > WEIR_MAX_MS)
        return weir_fail(err, WEIR_EINVAL, "process: lease of %lld ms, must be at least %d "
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
        return weir_fail(err, WEIR_ELIMIT, "process: %zu types, at most %d (WEIR_MAX_TAKE_TYPES)",
                         n, WEIR_MAX_TAKE_TYPES);
    p->types = calloc(n, sizeof *p->types);
    if (!p->types)
        return weir_fail(err, WEIR_ENOMEM, "process: out of memory");
    for (; p->n_types < n; p->n_types++) {
        weir_code rc = weir__type_check(types[p->n_types], "type", err);
        if (!rc && strcmp(types[p->n_types], "*") == 0)
            rc = weir_fail(err, WEIR_EINVAL, "process: \"*\" is not a type, name them");
        if (rc)
            return rc;
        p->types[p->n_types] = strdup(types[p->n_types]);
        if (!p->types[p->n_types])
            return weir_fail(err, WEIR_ENOMEM, "process: out of memory");
    }
    return WEIR_OK;
}

static weir_code pool_create(pool **out, weir_queue *q, const char *type, const weir_pool *cfg,
                             weir_error *err)
{
    *out = NULL;
    pool *p = calloc(1, sizeof *p);
    if (!p)
        return weir_fail(err, WEIR_ENOMEM, "process: out of memory");
    p->q = q;
    p->refs = 1;
    p->cfg = *cfg;
    p->ready_tail = &p->ready;
    p->hint = HINT_UNKNOWN;
    weir__queue_ref(q);
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->wake, &attr);
    pthread_cond_init(&p->trouble, &attr);
    pthread_cond_init(&p->quiet, &attr);
    pthread_condattr_destroy(&attr);
    weir_code rc = check_config(&p->cfg, type, err);
    if (!rc)
        rc = copy_types(p, type, err);
    if (rc) {
        weir__pool_unref(p);
        return rc;
    }
    weir_pool *c = &p->cfg;
    p->max_begun = c->running > c->threads ? c->running : c->threads;
    p->max_running = p->max_begun + c->threads * c->prefetch;
    *out = p;
    return WEIR_OK;
}

static weir_code stop_pool(pool *p, int64_t timeout_ms);

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

weir_code weir_process(weir_queue *q, const char *type, const weir_pool *cfg, weir_error *err)
{
    if (q->read_only)
        return weir_fail(err, WEIR_EREADONLY, "process: the queue is open for reading only");
    pool *p;
    weir_code rc = pool_create(&p, q, type, cfg, err);
    if (!p)
        return rc;
    weir__pool_ref(p);     /* ours: somebody may stop it before all threads have started */
    pools_link(q, p);      /* before the threads start, so that no hint is missed */
    for (int32_t i = 0; i < p->cfg.threads && !rc; i++) {
        pthread_t thread;
        weir__pool_ref(p);
        pthread_mutex_lock(&p->lock);
        p->live++;
        pthread_mutex_unlock(&p->lock);
        rc = weir__thread_start(&thread, worker_main, p, "weir-worker", err);
        if (!rc) {
            pthread_detach(thread);      /* a handler may outlive everything: see weir_close() */
            continue;
        }
        pthread_mutex_lock(&p->lock);
        p->live--;
        pthread_mutex_unlock(&p->lock);
        atomic_fetch_sub(&p->refs, 1);
    }
    if (rc) {
        pthread_mutex_lock(&q->pools.lock);
        pool **at = &q->pools.first;
        while (*at && *at != p)
            at = &(*at)->next;
        bool there = *at != NULL;
        if (there)
            *at = p->next;
        pthread_mutex_unlock(&q->pools.lock);
        stop_pool(p, 0);
        if (there)
            weir__pool_unref(p);
    }
    weir__pool_unref(p);
    return rc;
}

/* ---- stopping ---- */

/* Hand back what was taken ahead. Lock held. */
static void return_ready(pool *p)
{
    while (p->n_ready) {
        weir__hold *h = ready_pop(p);
        pthread_mutex_unlock(&p->lock);
        h->outcome = WEIR_OUTCOME_RELEASE;
        weir__hold_ticket(h);
        weir__queue_run(p->q, &h->ticket, NULL);
        weir__hold_release(h);
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
        pthread_mutex_lock(&p->q->holds.lock);
        weir__hold *h = p->q->holds.first;
        while (h && (h->pool != p || h->shut))
            h = h->next;
        if (h) {
            h->shut = true;
            *fin = (weir_op_finish){ .id = h->job->id, .delivery = h->job->delivery,
                                     .outcome = WEIR_OUTCOME_FAIL, .text = WEIR__SHUTDOWN_TEXT,
                                     .len = strlen(WEIR__SHUTDOWN_TEXT) };
            atomic_store(&h->revoked, true);
        }
        pthread_mutex_unlock(&p->q->holds.lock);
        if (!h)
            return failed;
        if (!weir__queue_run(p->q, &t, NULL))
            failed++;
    }
}

static weir_code stop_pool(pool *p, int64_t timeout_ms)
{
    struct timespec until = after_ms(timeout_ms < 0 ? WEIR_MAX_MS : timeout_ms);
    size_t failed = 0;
    pthread_mutex_lock(&p->lock);
    tell_stop(p);
    bool late = false;
    for (;;) {
        while (p->n_fetched || p->n_ready) {       /* more may come while it is handed back */
            if (p->n_fetched)
                unpack(p);
            return_ready(p);
        }
        if (p->fetching || p->busy || (!p->running && p->live)) {
            pthread_cond_wait(&p->quiet, &p->lock);       /* only our own code is awaited */
        } else if (!p->running || late) {
            break;
        } else if (pthread_cond_timedwait(&p->quiet, &p->lock, &until) == ETIMEDOUT) {
            late = true;
            pthread_mutex_unlock(&p->lock);
            failed = fail_running(p);
            pthread_mutex_lock(&p->lock);
        }
    }
    pthread_mutex_unlock(&p->lock);
    return failed ? WEIR_ETIMEOUT : WEIR_OK;
}

weir_code weir_stop(weir_queue *q, const char *type, int64_t timeout_ms, weir_error *err)
{
    pool *p, *stopped = NULL;
    weir_code rc = WEIR_OK;
    /* First tell all of them, then wait for each: their time runs together. */
    while ((p = pools_unlink(q, type))) {
        pthread_mutex_lock(&p->lock);
        tell_stop(p);
        pthread_mutex_unlock(&p->lock);
        p->next = stopped;
        stopped = p;
    }
    struct timespec until = after_ms(timeout_ms < 0 ? WEIR_MAX_MS : timeout_ms);
    while ((p = stopped)) {
        stopped = p->next;
        struct timespec now = after_ms(0);
        int64_t left = (int64_t)(until.tv_sec - now.tv_sec) * 1000 +
                       (until.tv_nsec - now.tv_nsec) / 1000000;
        if (stop_pool(p, left > 0 ? left : 0))
            rc = weir_fail(err, WEIR_ETIMEOUT, "stop: handlers were still running after %lld ms; "
                           "their jobs failed with \"" WEIR__SHUTDOWN_TEXT "\"",
                           (long long)timeout_ms);
        weir__pool_unref(p);
    }
    return rc;
}
