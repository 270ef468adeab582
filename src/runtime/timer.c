/* timer.c - ticks and renewals, when they are due: see timer.h. */
#include "runtime/timer.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/thread.h"
#include "runtime/pool.h"
#include "runtime/queue.h"

enum { WALL_CLOCK, CHANGED, FDS };

static void *timer_main(void *arg);

/* A timer that never goes off, but that the kernel cancels when somebody sets the wall clock or the
 * machine wakes up. -1: there is none; then a change of that clock is noticed within LONGEST_MS. */
static int watch_wall_clock(void)
{
    static const struct itimerspec never = { .it_value = { .tv_sec = INT64_C(1) << 40 } };
    int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd >= 0 && timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

void weir__timer_init(weir_timer *t, weir_queue *q, bool own_clock)
{
    *t = (weir_timer){ .q = q, .own_clock = own_clock, .due_at = INT64_MAX, .renew_at = INT64_MAX,
                       .tend_at = INT64_MAX, .wall_fd = -1, .wake_fd = -1 };
    pthread_mutex_init(&t->lock, NULL);
}

weir_code weir__timer_start(weir_timer *t, weir_error *err)
{
    t->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (t->wake_fd < 0)
        return weir_fail(err, WEIR_ENOMEM, "open: no file descriptor for the timer: %s",
                         strerror(errno));
    if (!t->own_clock)
        t->wall_fd = watch_wall_clock();
    weir_code rc = weir__thread_start(&t->thread, timer_main, t, "weir-timer", err);
    t->started = rc == WEIR_OK;
    return rc;
}

/* The thread is to look again. Lock held. */
static void wake(weir_timer *t)
{
    const uint64_t one = 1;
    if (t->asleep && t->wake_fd >= 0)
        (void)!write(t->wake_fd, &one, sizeof one);
    t->asleep = false;
}

static void earlier(weir_timer *t, int64_t *when, int64_t at_ms)
{
    pthread_mutex_lock(&t->lock);
    if (at_ms < *when) {
        *when = at_ms;
        wake(t);
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
    wake(t);
    pthread_mutex_unlock(&t->lock);
}

/* Sleep until the steady clock shows `at_ms`, something has changed, or the wall clock was set:
 * then a TICK looks at the moments that were named. Lock held, but not while sleeping. */
static void sleep_until(weir_timer *t, int64_t at_ms, int64_t now)
{
    enum { LONGEST_MS = 60000 };
    struct pollfd fds[FDS] = { [WALL_CLOCK] = { .fd = t->wall_fd, .events = POLLIN },
                               [CHANGED] = { .fd = t->wake_fd, .events = POLLIN } };
    int      longest = t->own_clock || at_ms == INT64_MAX ? -1 : LONGEST_MS;
    int      wait = t->own_clock || at_ms - now > LONGEST_MS ? longest : (int)(at_ms - now);
    uint64_t count;
    t->asleep = true;
    pthread_mutex_unlock(&t->lock);
    poll(fds, FDS, wait);
    bool was_set = fds[WALL_CLOCK].revents && read(t->wall_fd, &count, sizeof count) < 0 &&
                   errno == ECANCELED;
    if (fds[CHANGED].revents)
        (void)!read(t->wake_fd, &count, sizeof count);
    pthread_mutex_lock(&t->lock);
    t->asleep = false;
    if (was_set)
        t->due_at = INT64_MIN;
}

/* Returns when to come again, by the steady clock. */
static int64_t tick(weir_queue *q)
{
    weir_ticket ticket = { .op = { .kind = WEIR_OP_TICK, .u.tick = { .limit = WEIR_TICK_LIMIT } } };
    weir_error err;
    weir_code rc = weir__queue_run(q, &ticket, &err);
    if (!rc)
        return weir__queue_steady_of(q, ticket.op.u.tick.next_at);
    if (rc != WEIR_ECLOSED)
        weir__events_trouble(&q->events, weir_now(q), &err);
    return weir__queue_steady(q) + WEIR_TICK_RETRY_MS;
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
        int64_t now = weir__queue_steady(t->q);     /* may be the user's function: no lock held */
        pthread_mutex_lock(&t->lock);
        int64_t next = t->due_at < t->renew_at ? t->due_at : t->renew_at;
        if (t->tend_at < next)
            next = t->tend_at;
        if (now < next) {
            if (!t->turned && !t->closed)
                sleep_until(t, next, now);
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
    wake(t);
    pthread_mutex_unlock(&t->lock);
    if (t->started)
        pthread_join(t->thread, NULL);
    t->started = false;
}

void weir__timer_fini(weir_timer *t)
{
    if (t->wake_fd >= 0)
        close(t->wake_fd);
    if (t->wall_fd >= 0)
        close(t->wall_fd);
    pthread_mutex_destroy(&t->lock);
}
