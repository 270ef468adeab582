/* clock.c - reading clocks: see clock.h. */
#include "base/clock.h"

#include <time.h>

static int64_t read_ms(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
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
        *wall_ms = read_ms(CLOCK_REALTIME);
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
