/* timer.c - calling functions at set times: see timer.h. */
#include "runtime/timer.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/thread.h"
#include "runtime/queue.h"

enum { WALL_CLOCK, CHANGED, FDS };

static void *timer_main(void *arg);

/* A timer that never goes off: the kernel cancels it when the wall clock is set or the machine
 * wakes up. -1: no timer; then a change of that clock is noticed within LONGEST_MS. */
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

void weir__timer_init(weir_timer *t, weir_queue *q, bool test_clock)
{
    *t = (weir_timer){ .q = q, .test_clock = test_clock, .wall_fd = -1, .wake_fd = -1 };
    pthread_mutex_init(&t->lock, NULL);
}

/* The earliest time that is set. Lock held. */
static int64_t next_time(const weir_timer *t)
{
    int64_t next = INT64_MAX;
    for (const weir_timer_entry *e = t->first; e; e = e->next)
        if (e->at_ms < next)
            next = e->at_ms;
    return next;
}

/* Start the thread if there is something to run, unless it runs. Lock held. */
static weir_code start_thread(weir_timer *t, weir_error *err)
{
    if (t->started || !t->open || next_time(t) == INT64_MAX)
        return WEIR_OK;
    if (t->wake_fd < 0)
        t->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (t->wake_fd < 0)
        return weir_fail(err, WEIR_ENOMEM, "open: no file descriptor for the timer: %s",
                         strerror(errno));
    if (!t->test_clock && t->wall_fd < 0)
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

void weir__timer_add(weir_timer *t, weir_timer_entry *e)
{
    e->at_ms = INT64_MAX;
    e->next = NULL;
    pthread_mutex_lock(&t->lock);
    weir_timer_entry **at = &t->first;
    while (*at)
        at = &(*at)->next;
    *at = e;
    pthread_mutex_unlock(&t->lock);
}

void weir__timer_set(weir_timer *t, weir_timer_entry *e, int64_t at_ms)
{
    pthread_mutex_lock(&t->lock);
    if (at_ms < e->at_ms) {
        e->at_ms = at_ms;
        start_thread(t, NULL);
        wake(t);
    }
    pthread_mutex_unlock(&t->lock);
}

/* Entries that follow the wall clock run again, if a time is set. Lock held. */
static void clock_was_set(weir_timer *t)
{
    for (weir_timer_entry *e = t->first; e; e = e->next)
        if (e->on_clock_set && e->at_ms != INT64_MAX)
            e->at_ms = INT64_MIN;
}

void weir__timer_wake(weir_timer *t)
{
    pthread_mutex_lock(&t->lock);
    t->turned = true;
    clock_was_set(t);
    wake(t);
    pthread_mutex_unlock(&t->lock);
}

/* Sleep until the steady clock shows `at_ms`, an earlier time was set, or the wall clock was set.
 * Lock held, but not while sleeping. */
static void sleep_until(weir_timer *t, int64_t at_ms, int64_t now)
{
    enum { LONGEST_MS = 60000 };
    struct pollfd fds[FDS] = { [WALL_CLOCK] = { .fd = t->wall_fd, .events = POLLIN },
                               [CHANGED] = { .fd = t->wake_fd, .events = POLLIN } };
    int      longest = t->test_clock || at_ms == INT64_MAX ? -1 : LONGEST_MS;
    int      wait = t->test_clock || at_ms - now > LONGEST_MS ? longest : (int)(at_ms - now);
    uint64_t count;
    t->asleep = true;
    pthread_mutex_unlock(&t->lock);
    bool late = poll(fds, FDS, wait) == 0 && wait == LONGEST_MS && t->wall_fd < 0;
    bool was_set = fds[WALL_CLOCK].revents && read(t->wall_fd, &count, sizeof count) < 0 &&
                   errno == ECANCELED;
    if (fds[CHANGED].revents)
        (void)!read(t->wake_fd, &count, sizeof count);
    pthread_mutex_lock(&t->lock);
    t->asleep = false;
    if (was_set || late)
        clock_was_set(t);
}

/* Run the entries that are due by `now`. Lock held, but not while they run. */
static void run_due(weir_timer *t, int64_t now)
{
    for (weir_timer_entry *e = t->first; e; e = e->next) {
        if (now < e->at_ms)
            continue;
        e->at_ms = INT64_MAX;       /* a time that is set while it runs counts */
        pthread_mutex_unlock(&t->lock);
        weir__timer_set(t, e, e->run(t->q, e->ctx));
        pthread_mutex_lock(&t->lock);
        if (t->turned)              /* ... meanwhile */
            clock_was_set(t);
    }
}

weir_code weir__timer_open(weir_timer *t, weir_error *err)
{
    int64_t now = weir__queue_steady(t->q);
    pthread_mutex_lock(&t->lock);
    run_due(t, now);
    t->open = true;
    weir_code rc = start_thread(t, err);
    pthread_mutex_unlock(&t->lock);
    return rc;
}

static void *timer_main(void *arg)
{
    weir_timer *t = arg;
    pthread_mutex_lock(&t->lock);
    while (t->open) {
        t->turned = false;
        pthread_mutex_unlock(&t->lock);
        int64_t now = weir__queue_steady(t->q);     /* may be the user's function: no lock held */
        pthread_mutex_lock(&t->lock);
        int64_t next = next_time(t);
        if (now >= next)
            run_due(t, now);
        else if (!t->turned && t->open)
            sleep_until(t, next, now);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

void weir__timer_close(weir_timer *t)
{
    pthread_mutex_lock(&t->lock);
    t->open = false;
    bool started = t->started;
    t->started = false;
    wake(t);
    pthread_mutex_unlock(&t->lock);
    if (started)
        pthread_join(t->thread, NULL);
}

void weir__timer_fini(weir_timer *t)
{
    if (t->wake_fd >= 0)
        close(t->wake_fd);
    if (t->wall_fd >= 0)
        close(t->wall_fd);
    pthread_mutex_destroy(&t->lock);
}
