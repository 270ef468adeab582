/* trend.h - the numbers of a type's jobs in a minute, an hour or any other time: counts by outcome,
 * how many waited at its end, and how long jobs waited and ran. Pure functions: no clock, no shared
 * state, any thread.
 *
 * A record as text, as stores keep it, is a list of NAME=NUMBER with one space between, in the
 * order of the names in WEIR_TREND_COUNTS, WEIR_TREND_GAUGES, then w0 ... w127 (waited), r0 ...
 * r127 (ran); a count of 0 and a gauge that is not known are left out:
 *
 *     added=12 complete=10 failed=1 backlog=3 oldest=1520 w0=7 w21=5 r40=11
 *
 * Bucket i of a histogram has times above 2^((i-1)/4) up to 2^(i/4) milliseconds, so a percentile
 * is at most 19 % above the true one. Redis joins such texts in Lua (layout/common/trend.lua). */
#ifndef WEIR_CORE_TREND_H
#define WEIR_CORE_TREND_H

#include "base/buf.h"
#include "weir/error.h"

/* Counters: name in C, in the text. FAILED: for good; ATTEMPT: an attempt that is retried; LOST: a
 * lease was over. */
#define WEIR_TREND_COUNTS(X)                                                            \
    X(ADDED, "added") X(COMPLETE, "complete") X(FAILED, "failed")                       \
    X(ATTEMPT, "attempt") X(CANCELLED, "cancelled") X(LOST, "lost")
/* At the end of the time: jobs that wait for a worker, and the age of the next one. */
#define WEIR_TREND_GAUGES(X) X(BACKLOG, "backlog") X(OLDEST, "oldest")

enum {
#define X(name, text) WEIR_TREND_##name,
    WEIR_TREND_COUNTS(X)
    WEIR_TREND_N_COUNTS,
    WEIR_TREND_BEFORE_GAUGES = -1,
    WEIR_TREND_GAUGES(X)
#undef X
    WEIR_TREND_N_GAUGES
};

enum {
    WEIR_TREND_BUCKETS   = 128,         /* the last one: above 2^(126/4) ms, 35 days */
    WEIR_TREND_MAX_BYTES = 6000         /* of a record as text, with the zero byte */
};
#define WEIR_TREND_MOST INT64_C(99999999999999)     /* a number in a record; Lua writes no more */

typedef struct weir_trend {
    uint64_t count[WEIR_TREND_N_COUNTS];
    int64_t  gauge[WEIR_TREND_N_GAUGES];    /* -1: not known */
    uint32_t waited[WEIR_TREND_BUCKETS], ran[WEIR_TREND_BUCKETS];
} weir_trend;

void weir__trend_clear(weir_trend *t);
bool weir__trend_is_empty(const weir_trend *t);

/* One more job that waited or ran so long. */
void weir__trend_time(uint32_t *histogram, int64_t ms);

/* `b` is of the same time, seen by somebody else, or earlier: the higher of each number. Repeating
 * it changes nothing. */
void weir__trend_join(weir_trend *a, const weir_trend *b);

/* `b` is of the time that follows: counts are added up, and the gauges are taken from `b`, if it
 * has any. */
void weir__trend_follow(weir_trend *a, const weir_trend *b);

/* The time that `share` (above 0, up to 1) of the jobs did not exceed, to within a bucket, in ms;
 * -1: no jobs. */
int64_t weir__trend_share(const uint32_t *histogram, double share);

/* As text. The answer is its length. */
size_t weir__trend_write(const weir_trend *t, char out[WEIR_TREND_MAX_BYTES]);

/* Names may be in any order and missing. WEIR_EINVAL: an unknown name, one given twice, no number,
 * or one above WEIR_TREND_MOST. */
weir_code weir__trend_read(weir_trend *out, const char *text, weir_error *err);

/* Two records of one slot as one; a text that is no record counts as one without anything. The
 * answer is its length. `out` may be neither of them. */
size_t weir__trend_join_texts(const char *a, const char *b, char out[WEIR_TREND_MAX_BYTES]);

/* ---- slots: how time is divided, and how long records are kept ---- */

typedef enum weir_trend_step {
    WEIR_TREND_MINUTE, WEIR_TREND_HOUR, WEIR_TREND_STEPS
} weir_trend_step;

enum {
    WEIR_TREND_MINUTES  = 10080,        /* slots that are kept: a week by minutes ... */
    WEIR_TREND_HOURS    = 8760,         /* ... and a year by hours */
    WEIR_TREND_TYPES    = 201,          /* types with a record in one slot, with "", the queue */
    WEIR_TREND_AHEAD_MS = 3600 * 1000   /* slots that begin later from now are not kept */
};

int64_t     weir__trend_step_ms(weir_trend_step step);
const char *weir__trend_step_name(weir_trend_step step);        /* "1m", "1h" */
/* By its name; WEIR_TREND_STEPS: no such step. */
weir_trend_step weir__trend_step_named(const char *name, size_t len);

/* The first slot that is kept at this time, and the last. A slot is the number of its minute or
 * hour since 1970. */
int64_t weir__trend_first_kept(weir_trend_step step, int64_t now);
int64_t weir__trend_last_kept(weir_trend_step step, int64_t now);

#endif
