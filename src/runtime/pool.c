/* pool.c - what worker pools do: see pool.h.
 *
 * How idle threads learn of work without polling: every pool keeps `hint`, an upper bound on the
 * jobs that wait for it as far as this process knows. An `enqueue` event raises it, a job taken
 * lowers it, and an empty answer sets it to what has come since the question. A thread asks the
 * store only while hint > 0.
 *
 * Without prefetch, a thread ends its job and takes the next in one operation and waits for it.
 * With prefetch (or handlers that answer WEIR_LATER), outcomes are sent without waiting, and jobs
 * come in lots from the pool's list of ready ones. */
#include "runtime/pool_inner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_MS = 1000 };              /* after the store could not be reached */
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

/* The store is in trouble: tell, and wait a while unless the pool is stopping. Lock held. */
static void pause_for_trouble(pool *p, const weir_error *err)
{
    pthread_mutex_unlock(&p->lock);
    weir__events_trouble(&p->q->events, weir_now(p->q), err);
    pthread_mutex_lock(&p->lock);
    struct timespec until = weir__after_ms(RETRY_MS);
    while (!p->stopping)
        if (pthread_cond_timedwait(&p->trouble, &p->lock, &until) == ETIMEDOUT)
            break;
}

void weir__pool_tell_stop(pool *p)
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
        weir__pool_tell_stop(p);
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

weir__hold *weir__pool_ready_pop(pool *p)
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
        weir__pool_tell_stop(p);
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

void weir__pool_unpack(pool *p)
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
            weir__pool_unpack(p);
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
    if (weir__op_check(&p->fetch.op, NULL) || weir__queue_submit(p->q, &p->fetch)) {
        p->fetching = false;
        weir__pool_tell_stop(p);
        atomic_fetch_sub(&p->refs, 1);
    }
}

/* ---- ending ---- */

/* Also when it is not known whether it came there: if it did, the answer is WEIR_ESTALE. */
static bool worth_sending_again(weir_code rc)
{
    return weir_code_may_retry(rc) || rc == WEIR_EUNKNOWN;
}

/* The store will never take an outcome, and nobody waits who could be told: say it to all. The job
 * runs again when its lease is over. No lock held. */
static void tell_refused(pool *p, const weir_error *err)
{
    bool moved_on = err->code == WEIR_ESTALE || err->code == WEIR_ECLOSED;
    if (err->code && !moved_on && !worth_sending_again(err->code))
        weir__events_trouble(&p->q->events, weir_now(p->q), err);
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
    if (again)                         /* another thread has it by now */
        return;
    tell_refused(p, &t->op.err);
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
        rc = weir__queue_submit(h->q, &h->ticket);
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
    tell_refused(p, &h->ticket.op.err);
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
            weir__pool_unpack(p);
        if (p->stopping)
            break;
        bool room = p->running < p->max_running && atomic_load(&p->begun) < p->max_begun;
        if (p->cfg.prefetch && room)
            fetch_ahead(p);
        if (p->n_ready && room) {
            h = weir__pool_ready_pop(p);
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

void *weir__pool_main(void *arg)
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
