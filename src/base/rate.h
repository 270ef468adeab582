/* rate.h - how many a second, over the last seconds: a count for this span of time and a count for
 * the span before. Of the latter, the part counts that is less than a span ago. {0} is a rate of 0.
 *
 * The caller gives the time, monotonic milliseconds, and guards the struct. */
#ifndef WEIR_BASE_RATE_H
#define WEIR_BASE_RATE_H

#include <stdint.h>

enum { WEIR_RATE_SPAN_MS = 5000 };

typedef struct weir_rate {
    int64_t  span;                      /* which one, since the clock began */
    uint64_t now, before;
} weir_rate;

static inline void weir__rate_turn(weir_rate *r, int64_t now_ms)
{
    int64_t span = now_ms / WEIR_RATE_SPAN_MS;
    if (span == r->span)
        return;
    r->before = span == r->span + 1 ? r->now : 0;
    r->now = 0;
    r->span = span;
}

static inline void weir__rate_add(weir_rate *r, int64_t now_ms, uint64_t n)
{
    weir__rate_turn(r, now_ms);
    r->now += n;
}

static inline double weir__rate_get(weir_rate *r, int64_t now_ms)
{
    weir__rate_turn(r, now_ms);
    double passed = (double)(now_ms % WEIR_RATE_SPAN_MS) / WEIR_RATE_SPAN_MS;
    return ((double)r->before * (1 - passed) + (double)r->now) * 1000 / WEIR_RATE_SPAN_MS;
}

#endif
