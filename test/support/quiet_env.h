/* quiet_env.h - callbacks of a store that a test opens: nobody listens, the clock stands. */
#ifndef WEIR_TEST_QUIET_ENV_H
#define WEIR_TEST_QUIET_ENV_H

#include "store/store.h"

static int64_t a_time(void *ctx)
{
    (void)ctx;
    return 1000;
}

static void no_events(void *ctx, const weir_event *events, size_t n)
{
    (void)ctx;
    (void)events;
    (void)n;
}

static void not_due(void *ctx, int64_t at_ms)
{
    (void)ctx;
    (void)at_ms;
}

#define QUIET_ENV(who) { .name = (who), .now = a_time, .emit = no_events, .due = not_due }

#endif
