/* clock.c - reading clocks: see clock.h. */
#include "base/clock.h"

#include <errno.h>
#include <time.h>

enum { NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

static int64_t read_ms(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / NS_PER_MS;
}

int64_t weir__wall_ms(void)
{
    return read_ms(CLOCK_REALTIME);
}

int64_t weir__monotonic_ms(void)
{
    return read_ms(CLOCK_MONOTONIC);
}

int64_t weir__coarse_ms(void)
{
    return read_ms(CLOCK_MONOTONIC_COARSE);
}

int64_t weir__monotonic_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

int64_t weir__steady_ms(void)
{
    return read_ms(CLOCK_BOOTTIME);
}

/* A thread may lose the processor between two readings: then they are repeated. */
void weir__clock_read(int64_t *wall_ms, int64_t *steady_ms)
{
    enum { APART_MS = 20, TRIES = 100 };
    int64_t before = weir__steady_ms();
    for (int i = 0; i < TRIES; i++) {
        *wall_ms = weir__wall_ms();
        *steady_ms = weir__steady_ms();
        if (*steady_ms - before <= APART_MS)
            return;
        before = *steady_ms;
    }
}

int64_t weir__clock_step(weir_clock_watch *w, int64_t wall_ms, int64_t steady_ms)
{
    if (!steady_ms)
        return 0;
    int64_t ahead = wall_ms - steady_ms, step = ahead - w->ahead_ms;
    bool    is_step = w->started && (step >= WEIR_CLOCK_STEP_MS || step <= -WEIR_CLOCK_STEP_MS);
    w->started = true;
    w->ahead_ms = ahead;
    return is_step ? step : 0;
}

weir_deadline weir__deadline_in(int64_t ms)
{
    int64_t now = weir__monotonic_ns();
    bool    never = ms < 0 || ms > (INT64_MAX - now) / NS_PER_MS;
    return (weir_deadline){ never ? INT64_MAX : now + ms * NS_PER_MS };
}

int64_t weir__deadline_left_ms(weir_deadline d)
{
    if (d.at_ns == INT64_MAX)
        return -1;
    int64_t left = d.at_ns - weir__monotonic_ns();
    return left <= 0 ? 0 : (left - 1) / NS_PER_MS + 1;
}

void weir__cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

bool weir__cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, weir_deadline d)
{
    struct timespec at = { (time_t)(d.at_ns / NS_PER_S), (long)(d.at_ns % NS_PER_S) };
    return pthread_cond_timedwait(cond, lock, &at) != ETIMEDOUT;
}
