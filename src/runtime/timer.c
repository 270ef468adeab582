/* timer.c - ticks and renewals, when they are due: see timer.h. */
#include "runtime/timer.h"

#include <stdlib.h>
#include <time.h>

#include "base/thread.h"
#include "runtime/pool.h"
#include "runtime/queue.h"

static void *timer_main(void *arg);

void weir__timer_init(weir_timer *t, weir_queue *q, bool own_clock)
{
    *t = (weir_timer){ .q = q, .own_clock = own_clock, .due_at = INT64_MAX, .renew_at = INT64_MAX,
                       .tend_at = INT64_MAX };
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, &attr);
    pthread_condattr_destroy(&attr);
}

weir_code weir__timer_start(weir_timer *t, weir_error *err)
{
    weir_code rc = weir__thread_start(&t->thread, timer_main, t, "weir-timer", err);
    t->started = rc == WEIR_OK;
    return rc;
}

static void earlier(weir_timer *t, int64_t *when, int64_t at_ms)
{
    pthread_mutex_lock(&t->lock);
    if (at_ms < *when) {
        *when = at_ms;
        pthread_cond_signal(&t->changed);
    }
    pthread_mutex_unlock(&t->lock);
}

void weir__timer_due(weir_timer *t, int64_t at_ms)
{
    earlier(t, &t->due_at, at_ms);
}

void weir__timer_renew(weir_timer *t, int64_t at_ms)
{
    earlier(t, &t->renew_at, at_ms);
}

void weir__timer_tend(weir_timer *t, int64_t at_ms)
{
    earlier(t, &t->tend_at, at_ms);
}

void weir__timer_wake(weir_timer *t)
{
    pthread_mutex_lock(&t->lock);
    t->turned = true;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

/* Sleep until the clock shows `at_ms` or something has changed. The system's clock may be set
 * meanwhile, so nobody sleeps longer than a minute on its word. */
static void sleep_until(weir_timer *t, int64_t at_ms)
{
    enum { LONGEST_MS = 60000 };
    if (at_ms == INT64_MAX || t->own_clock) {
        pthread_cond_wait(&t->changed, &t->lock);
        return;
    }
    struct timespec wall, until;
    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t wall_ms = (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000;
    int64_t left_ms = at_ms - wall_ms;
    if (left_ms <= 0)
        return;
    if (left_ms > LONGEST_MS)
        left_ms = LONGEST_MS;
    int64_t ns = until.tv_nsec + left_ms * 1000000 - wall.tv_nsec % 1000000;
    until.tv_sec += (time_t)(ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    pthread_cond_timedwait(&t->changed, &t->lock, &until);
}

/* Returns when to come again. */
static int64_t tick(weir_queue *q)
{
    weir_ticket ticket = { .op = { .kind = WEIR_OP_TICK, .u.tick = { .limit = WEIR_TICK_LIMIT } } };
    weir_error err;
    weir_code rc = weir__queue_run(q, &ticket, &err);
    if (!rc)
        return ticket.op.u.tick.next_at;
    if (rc != WEIR_ECLOSED)
        weir__events_trouble(&q->events, weir_now(q), &err);
    return weir_now(q) + WEIR_TICK_RETRY_MS;
}

/* Take what is due by now off *when. */
static bool comes_due(int64_t *when, int64_t now)
{
    bool due = now >= *when;
    if (due)
        *when = INT64_MAX;      /* what is said meanwhile counts */
    return due;
}

/* Renewals come before the tick: after the process was stopped for a while, its jobs keep their
 * leases instead of being given to somebody else under its hands. */
static void *timer_main(void *arg)
{
    weir_timer *t = arg;
    pthread_mutex_lock(&t->lock);
    while (!t->closed) {
        t->turned = false;
        pthread_mutex_unlock(&t->lock);
        int64_t now = weir_now(t->q);      /* may be the user's function: no lock held */
        pthread_mutex_lock(&t->lock);
        int64_t next = t->due_at < t->renew_at ? t->due_at : t->renew_at;
        if (t->tend_at < next)
            next = t->tend_at;
        if (now < next) {
            if (!t->turned && !t->closed)
                sleep_until(t, next);
            continue;
        }
        bool renew = comes_due(&t->renew_at, now), due = comes_due(&t->due_at, now);
        bool tend = comes_due(&t->tend_at, now);
        pthread_mutex_unlock(&t->lock);
        if (tend)
            weir__timer_tend(t, weir__pools_tend(t->q));
        if (renew)
            weir__timer_renew(t, weir__holds_renew(t->q));
        if (due)
            weir__timer_due(t, tick(t->q));
        pthread_mutex_lock(&t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

void weir__timer_close(weir_timer *t)
{
    pthread_mutex_lock(&t->lock);
    t->closed = true;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
    if (t->started)
        pthread_join(t->thread, NULL);
    t->started = false;
}

void weir__timer_fini(weir_timer *t)
{
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->changed);
}
