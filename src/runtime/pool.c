/* pool.c - what worker pools do: see pool.h.
 *
 * Idle threads find work without polling: every pool keeps `hint`, an upper bound on the jobs that
 * wait for it, from the events of this process. An `enqueue` event raises it, a job taken lowers
 * it, and an empty answer sets it to what has come since the question. A thread asks the store only
 * while hint > 0.
 *
 * A thread ends its job and takes the next in one operation and waits for it. When the pool takes
 * ahead (prefetch.c), and with handlers that answer WEIR_LATER, outcomes are sent without waiting,
 * and jobs come from the pool's list of ready ones. */
#include "runtime/pool_inner.h"
#include "runtime/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/job.h"

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
    free((char *)(uintptr_t)p->cfg.when);
    weir_condition_free(p->when);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->wake);
    pthread_cond_destroy(&p->trouble);
    pthread_cond_destroy(&p->quiet);
    weir__queue_unref(p->q);
    if (p->ports.release)
        p->ports.release(p->ports.ctx);
    free(p);
}

/* ---- hints ---- */

/* Is there demand for one more job? Always, for a plain pool. Lock held. */
static bool wanted(const pool *p)
{
    return !p->ports.metered || p->demand > 0;
}

/* A job is about to be begun (-1), or was not (1). Lock held. */
static void meter(pool *p, int n)
{
    if (p->ports.metered && p->demand < INT64_MAX)
        p->demand += n;
}

/* One thread is woken at a time, and wakes the next when there is more than it can take: threads
 * that are awake anyway often have it done before. Lock held. */
void weir__pool_wake(pool *p)
{
    bool work = wanted(p) && (p->hint || p->suspects || p->n_ready);
    if (p->idle && !p->waking && (work || p->n_fetched || p->again || p->alarmed)) {
        p->waking = true;
        pthread_cond_signal(&p->wake);
    }
}

static void hint(pool *p, uint64_t n)
{
    pthread_mutex_lock(&p->lock);
    p->hinted += n;
    p->hint = p->hint + n < HINT_UNKNOWN ? p->hint + n : HINT_UNKNOWN;
    weir__pool_wake(p);
    pthread_mutex_unlock(&p->lock);
}

question weir__pool_ask(const pool *p)
{
    return (question){ p->hinted, p->resets };
}

/* A take that was asked for when `then` was known has its answer. When an empty answer has set the
 * hint meanwhile, it does not count what came here, and nothing is to be taken off. Behind a
 * suspect, which comes alone, there may be more jobs. This also holds if the answer that named the
 * suspect arrives only after another thread has taken the suspect. Lock held. */
/* Jobs that the condition refused may wait: they are looked at again when it can have changed.
 * Lock held. */
static void rest(pool *p)
{
    if (!p->when || p->ports.poll_ms)
        return;
    p->poll_at = weir__queue_steady(p->q) + weir__condition_rest_ms(p->when, weir_now(p->q));
    weir__timer_set(&p->q->timer, &p->q->tend, p->poll_at);
}

void weir__pool_learn(pool *p, question then, const weir_op_take *take, bool alone)
{
    size_t got = take->n_jobs;
    p->suspects = weir__queue_knows(p->q, &p->knows);
    if (alone) {
        p->hint = p->hint > 1 ? p->hint - 1 : 1;
    } else if (got < take->n && !take->partial) {
        uint64_t since = p->hinted - then.hinted;
        p->hint = since < HINT_UNKNOWN ? since : HINT_UNKNOWN;
        p->resets++;
        rest(p);
    } else if (p->resets == then.resets) {
        p->hint -= p->hint < got ? p->hint : got;
    }
    if (take->suspect_waits && !p->suspects && !p->hint)
        p->hint = 1;
}

void weir__pools_hint(weir_queue *q, const char *type, uint32_t n)
{
    bool all = !type || strcmp(type, "*") == 0;
    pthread_mutex_lock(&q->pools.lock);
    for (pool *p = q->pools.first; p; p = p->next) {
        bool ours = all;
        for (size_t i = 0; i < p->n_types && !ours; i++)
            ours = strcmp(p->types[i], type) == 0;
        if (ours && !p->ports.poll_ms)
            hint(p, all ? HINT_UNKNOWN : n);
    }
    pthread_mutex_unlock(&q->pools.lock);
}

/* ---- waiting ---- */

void weir__pool_pause(pool *p, const weir_error *err)
{
    pthread_mutex_unlock(&p->lock);
    weir__events_trouble(&p->q->events, weir_now(p->q), err);
    if (p->ports.trouble)
        p->ports.trouble(p->ports.ctx, err);
    pthread_mutex_lock(&p->lock);
    weir_deadline until = weir__deadline_in(RETRY_MS);
    while (!p->stopping)
        if (!weir__cond_wait_until(&p->trouble, &p->lock, until))
            break;
}

void weir__pool_begin_stop(pool *p)
{
    p->stopping = true;
    pthread_cond_broadcast(&p->wake);
    pthread_cond_broadcast(&p->trouble);
}

/* ---- taking ---- */

weir_op_take weir__pool_taking(pool *p, weir_pass pass, weir_job **jobs, size_t n,
                               const char *worker)
{
    return (weir_op_take){ .types = (const char *const *)p->types, .n_types = p->n_types, .n = n,
                           .lease_ms = p->cfg.lease_ms, .worker = worker, .notified = true,
                           .when = p->cfg.when,
                           .busy = pass == WEIR__PASS_BUSY, .jobs = jobs };
}

weir_pass weir__pool_enter(pool *p)
{
    if (!p->hint && !p->suspects)
        return WEIR__PASS_NONE;
    return weir__queue_enter(p->q, &p->knows, !p->hint);
}

/* Give back a job that was taken and will not be begun. No lock held. */
static void give_back(pool *p, weir_job *job)
{
    weir_ticket t = { .op = { .kind = WEIR_OP_FINISH, .u.finish = {
        .id = job->id, .delivery = job->delivery, .outcome = WEIR_OUTCOME_RETURN } } };
    weir__queue_run(p->q, &t, NULL);     /* if it fails, the lease runs out */
    weir_job_free(job);
}

/* A job was taken: begin it, unless the pool is stopping or its lease is over. No lock held. */
static weir__delivery *begin(pool *p, weir_job *job, int64_t asked_at)
{
    pthread_mutex_lock(&p->lock);
    bool stopping = p->stopping;
    pthread_mutex_unlock(&p->lock);
    weir__delivery *h = stopping ? NULL : weir__delivery_create(p->q, job, p, p->cfg.lease_ms,
                                                          asked_at);
    if (!h) {
        weir__queue_left(p->q, job);
        give_back(p, job);
    } else if (!weir__delivery_confirm(h)) {
        weir__delivery_release(h);
        h = NULL;
    }
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
static weir__delivery *take_one(pool *p, weir_pass pass, const char *worker)
{
    question then = weir__pool_ask(p);
    weir_job *job = NULL;
    weir_error err;
    busy(p);
    p->running++;
    meter(p, -1);
    atomic_fetch_add(&p->begun, 1);
    if (p->hint > 1)
        weir__pool_wake(p);
    pthread_mutex_unlock(&p->lock);
    weir_ticket t = { .op = { .kind = WEIR_OP_TAKE,
                              .u.take = weir__pool_taking(p, pass, &job, 1, worker) } };
    int64_t asked_at = weir__queue_steady(p->q);
    weir_code rc = weir__queue_run(p->q, &t, &err);
    weir__queue_answered(p->q, pass, rc ? NULL : &t.op.u.take, &p->knows);
    bool alone = job && weir__job_is_suspect(job);
    weir__delivery *h = job ? begin(p, job, asked_at) : NULL;
    pthread_mutex_lock(&p->lock);
    no_longer_busy(p);
    if (!h) {
        p->running--;
        meter(p, 1);
        atomic_fetch_sub(&p->begun, 1);
    }
    if (rc == WEIR_ECLOSED)
        weir__pool_begin_stop(p);
    else if (rc)
        weir__pool_pause(p, &err);
    else
        weir__pool_learn(p, then, &t.op.u.take, alone);
    return h;
}

/* ---- ending ---- */

/* Also when it is not known whether it came there: if it did, the answer is WEIR_ESTALE. */
static bool worth_sending_again(weir_code rc)
{
    return weir_code_may_retry(rc) || rc == WEIR_EUNKNOWN;
}

/* The store will never take an outcome, and no caller waits for it: emit an error event. The job
 * runs again when its lease is over. No lock held. */
static void report_refused(pool *p, const weir_error *err)
{
    bool moved_on = err->code == WEIR_ESTALE || err->code == WEIR_ECLOSED;
    if (err->code && !moved_on && !worth_sending_again(err->code))
        weir__events_trouble(&p->q->events, weir_now(p->q), err);
}

/* The pool is stopping, so that an outcome is not sent again. Lock held. */
static void note_unsaved(pool *p, const weir_error *err)
{
    if (worth_sending_again(err->code)) {
        p->unsaved++;
        p->unsaved_why = *err;
    }
}

/* One job less. Lock held. */
static void settled(pool *p)
{
    p->running--;
    if (p->stopping)
        pthread_cond_broadcast(&p->quiet);
    else
        weir__pool_wake(p);
}

/* An outcome that nobody waited for has been answered. */
static void send_done(weir_ticket *t)
{
    weir__delivery *h = (weir__delivery *)((char *)t - offsetof(weir__delivery, ticket));
    pool *p = h->pool;
    bool trouble = worth_sending_again(t->op.err.code);
    int64_t at = trouble ? weir__queue_steady(p->q) + RETRY_MS : 0;
    pthread_mutex_lock(&p->lock);
    bool again = trouble && !p->stopping;
    if (again) {
        if (!p->again)
            p->again_at = at;
        h->queued = p->again;
        p->again = h;
        weir__timer_set(&p->q->timer, &p->q->tend, p->again_at);
        weir__pool_wake(p);
    } else {
        note_unsaved(p, &t->op.err);
        settled(p);
    }
    pthread_mutex_unlock(&p->lock);
    if (again)                         /* another thread has it by now */
        return;
    report_refused(p, &t->op.err);
    weir__delivery_release(h);
}

void weir__pool_submit(weir__delivery *h)
{
    weir__delivery_ticket(h);
    h->ticket.done = send_done;
    h->ticket.detached = h->pool->cfg.prefetch > 0;
    weir_error err;
    weir_code rc = weir__op_check(&h->ticket.op, &err);
    if (!rc)
        rc = weir__queue_submit(h->q, &h->ticket);
    if (rc) {
        h->ticket.op.err.code = rc;
        send_done(&h->ticket);
    }
}

void weir__pool_send(weir__delivery *h)
{
    atomic_fetch_sub(&h->pool->begun, 1);
    weir__pool_submit(h);
}

void weir__pool_submit_again(pool *p)
{
    weir__delivery *h = p->again;
    p->again = NULL;
    pthread_mutex_unlock(&p->lock);
    while (h) {
        weir__delivery *next = h->queued;
        weir__pool_submit(h);
        h = next;
    }
    pthread_mutex_lock(&p->lock);
}

/* Send the outcome and wait for it; when there is a next job, take it in the same step. */
static weir__delivery *settle(pool *p, weir__delivery *h, bool next, const char *worker)
{
    weir_job *job = NULL;
    weir_error err;
    int64_t asked_at;
    pthread_mutex_lock(&p->lock);
    busy(p);
    for (;;) {
        question then = weir__pool_ask(p);
        weir_pass pass = next && !p->stopping && wanted(p)
                             ? weir__queue_enter(p->q, &p->knows, false) : WEIR__PASS_NONE;
        if (pass)
            meter(p, -1);
        weir_op_take *more = pass ? &h->ticket.op.u.finish.next : NULL;
        pthread_mutex_unlock(&p->lock);
        weir__delivery_ticket(h);
        if (more)
            *more = weir__pool_taking(p, pass, &job, 1, worker);
        asked_at = weir__queue_steady(p->q);
        weir_code rc = weir__queue_run(p->q, &h->ticket, &err);
        if (more)
            weir__queue_answered(p->q, pass, rc ? NULL : more, &p->knows);
        pthread_mutex_lock(&p->lock);
        if (!rc && more)
            weir__pool_learn(p, then, more, false);
        if (pass && !job)
            meter(p, 1);
        if (!worth_sending_again(rc) || p->stopping)
            break;
        weir__pool_pause(p, &err);
    }
    note_unsaved(p, &h->ticket.op.err);
    if (job)
        p->running++;                  /* in its place */
    else if (next)
        atomic_fetch_sub(&p->begun, 1);
    settled(p);
    pthread_mutex_unlock(&p->lock);
    report_refused(p, &h->ticket.op.err);
    weir__delivery_release(h);
    weir__delivery *n = job ? begin(p, job, asked_at) : NULL;
    pthread_mutex_lock(&p->lock);
    no_longer_busy(p);
    if (job && !n) {
        meter(p, 1);
        atomic_fetch_sub(&p->begun, 1);
        settled(p);
    }
    pthread_mutex_unlock(&p->lock);
    return n;
}

static weir_code call_handler(pool *p, weir_job *job)
{
    atomic_fetch_add(&p->started, 1);
    atomic_fetch_add(&p->handling, 1);
    weir_trace before = weir__trace_enter(job, &job->taken->begun_ns);
    weir_code rc = p->cfg.handler(job, p->cfg.ctx);
    weir__trace_swap(before);
    atomic_fetch_sub(&p->handling, 1);
    return rc;
}

void weir__pool_count(pool *p, weir_outcome outcome)
{
    atomic_fetch_add(&p->ended[outcome], 1);
}

/* Call the handler and measure its time: a handler that answers later may well be slow. *bulk says
 * whether the next job comes from a bulk. */
static weir_code handle(pool *p, weir_job *job, bool *bulk)
{
    *bulk = p->cfg.prefetch > 0;
    if (!p->by_itself)
        return call_handler(p, job);
    int64_t start = weir__monotonic_ns();
    weir_code rc = call_handler(p, job);
    int64_t took = rc == WEIR_LATER ? INT64_MAX : weir__monotonic_ns() - start;
    pthread_mutex_lock(&p->lock);
    weir__pool_pace(p, took);
    *bulk = weir__pool_takes_bulk(p);
    pthread_mutex_unlock(&p->lock);
    return rc;
}

bool weir__pool_handled(weir__delivery *h, weir_code rc)
{
    pool *p = h->pool;
    if (rc == WEIR_OK)
        weir__delivery_end(h, WEIR_OUTCOME_DONE, NULL, 0, 0); /* unless it has ended already */
    else if (rc != WEIR_LATER) {
        char why[WEIR_ERROR_MAX];
        pthread_mutex_lock(&p->q->deliveries.lock);
        snprintf(why, sizeof why, "%s",
                 h->last_error.code == rc ? h->last_error.msg : weir_code_text(rc));
        pthread_mutex_unlock(&p->q->deliveries.lock);
        if (weir__delivery_end(h, WEIR_OUTCOME_FAIL, why, strlen(why), 0) == WEIR_ENOMEM)
            weir__delivery_end(h, WEIR_OUTCOME_FAIL, NULL, 0, 0);
    }
    return atomic_fetch_or(&h->phase, WEIR__RETURNED) & WEIR__ENDED;
}

/* Do a job. Returns the next, if one came along. */
static weir__delivery *work(pool *p, weir__delivery *h, const char *worker)
{
    bool bulk;
    weir_code rc = handle(p, h->job, &bulk);
    if (rc == WEIR__HELD || !weir__pool_handled(h, rc))
        return NULL;                                        /* whoever ends it will send it */
    if (!bulk && rc != WEIR_LATER)
        return settle(p, h, true, worker);
    weir__pool_send(h);
    return NULL;
}

/* ---- for streams ---- */

int64_t weir__pool_demand(pool *p, int64_t n)
{
    pthread_mutex_lock(&p->lock);
    p->demand = n > INT64_MAX - p->demand ? INT64_MAX : p->demand + n;
    int64_t open = p->demand;
    if (n)
        weir__pool_wake(p);
    pthread_mutex_unlock(&p->lock);
    return open;
}

void weir__pool_set_alarm(pool *p, int64_t at_ms)
{
    pthread_mutex_lock(&p->lock);
    p->alarm_at = at_ms;
    pthread_mutex_unlock(&p->lock);
    weir__timer_set(&p->q->timer, &p->q->tend, at_ms);
}

/* ---- threads ---- */

/* Is a job that was taken ahead still ours? Else it was cancelled, or its lease is over, and the
 * delivery is released. Lock held, but not while waiting. */
static bool confirm(pool *p, weir__delivery *h)
{
    pthread_mutex_unlock(&p->lock);
    bool ours = weir__delivery_confirm(h);
    if (!ours)
        weir__delivery_release(h);
    pthread_mutex_lock(&p->lock);
    return ours;
}

/* The next job to begin. NULL: the pool is stopping. */
static weir__delivery *next_job(pool *p, const char *worker)
{
    weir__delivery *h = NULL;
    weir_pass   pass;
    pthread_mutex_lock(&p->lock);
    while (!h) {
        if (p->again) {
            weir__delivery *again = p->again;
            p->again = again->queued;
            pthread_mutex_unlock(&p->lock);
            settle(p, again, false, worker);
            pthread_mutex_lock(&p->lock);
            continue;
        }
        if (p->n_fetched)
            weir__pool_unpack(p);
        weir__pool_mind_fetch(p);
        if (p->stopping)
            break;
        if (p->alarmed) {
            p->alarmed = false;
            pthread_mutex_unlock(&p->lock);
            p->ports.alarm(p->ports.ctx);
            pthread_mutex_lock(&p->lock);
            continue;
        }
        bool room = p->running < p->max_running && atomic_load(&p->begun) < p->max_begun &&
                    wanted(p);
        bool bulk = weir__pool_takes_bulk(p);
        if (bulk && room)
            weir__pool_fetch(p);
        if (p->n_ready && room) {
            h = weir__pool_ready_pop(p);
            if (p->n_ready)
                weir__pool_wake(p);
            if (!weir__delivery_lasts(h) && !confirm(p, h)) {
                h = NULL;
                continue;
            }
            p->running++;
            meter(p, -1);
            atomic_fetch_add(&p->begun, 1);
        } else if (!bulk && room && (pass = weir__pool_enter(p))) {
            h = take_one(p, pass, worker);
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

/* A thread takes nothing more. The last one hands back what was taken ahead: perhaps nobody waits
 * for the pool in weir_stop(). */
static void leave(pool *p)
{
    pthread_mutex_lock(&p->lock);
    bool last = ++p->leaving == p->cfg.threads;
    while (last && (p->fetching || p->n_ready)) {
        if (p->n_fetched)
            weir__pool_unpack(p);
        weir__pool_return_ready(p);
        if (p->fetching && !p->n_fetched)
            pthread_cond_wait(&p->quiet, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    if (last && p->ports.ended)
        p->ports.ended(p->ports.ctx);
}

void *weir__pool_main(void *arg)
{
    pool *p = arg;
    char name[sizeof p->q->name + 12];
    pthread_mutex_lock(&p->q->pools.lock);
    uint32_t number = ++p->q->pools.threads;
    pthread_mutex_unlock(&p->q->pools.lock);
    snprintf(name, sizeof name, "%s:%u", p->q->name, number);
    weir__delivery *h = NULL;
    for (;;) {
        if (!h)
            h = next_job(p, name);
        if (!h)
            break;
        h = work(p, h, name);
    }
    leave(p);
    pthread_mutex_lock(&p->lock);
    p->live--;
    pthread_cond_broadcast(&p->quiet);
    pthread_mutex_unlock(&p->lock);
    weir__pool_unref(p);
    return NULL;
}
