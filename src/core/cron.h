/* cron.h - turns an expression such as "30 6 * * 1" into the times at which it fires, in a time
 * zone, and into plain words. Pure functions: no clock, any thread; docs/time.md has the grammar.
 *
 * Days match in a month, and times in a day, as bit sets, so that finding the next firing costs a
 * few shifts rather than a walk over minutes. A firing is a matching local time, except:
 * - A time that the clock skips (a change to summer time) fires once, at the first moment after the
 *   gap; all skipped times of one gap together fire once.
 * - A time that the clock shows twice fires the first time.
 * - If the hour is "*", the expression means every hour that passes: skipped times do not fire, and
 *   repeated ones fire twice, so that the distance between firings stays the same. */
#ifndef WEIR_CORE_CRON_H
#define WEIR_CORE_CRON_H

#include "base/buf.h"
#include "core/zone.h"

/* Plain memory: nothing to release. */
typedef struct weir_cron {
    const weir_zone *zone;
    int64_t  every_ms;              /* > 0: an interval, and none of the fields below */
    uint64_t seconds, minutes;      /* bits 0 to 59 */
    uint32_t hours;                 /* bits 0 to 23 */
    uint32_t months;                /* bits 1 to 12 */
    uint32_t days;                  /* bits 1 to 31 */
    uint32_t days_before_last;      /* bit n: n days before the last of the month; "L", "L-3" */
    uint32_t nearest_weekdays;      /* bit n: the Monday to Friday nearest to day n; "15W" */
    bool     last_weekday;          /* the last Monday to Friday of the month; "LW" */
    uint8_t  weekdays;              /* bits 0 to 6, from Sunday on */
    uint8_t  nth_weekdays[5];       /* [k - 1]: the k-th of the month; "5#2" */
    uint8_t  last_weekdays;         /* the last of the month; "5L" */
    bool     any_day, any_weekday;  /* the field begins with "*" or "?" */
    bool     either;                /* day or weekday is enough, if both fields are restricted */
} weir_cron;

enum { WEIR_CRON_MIN_EVERY_MS = 1000 };

/* The last moment at which anything fires: the end of the year 9999. */
#define WEIR_CRON_END_MS (INT64_C(253402300800) * 1000 - 1)
#define WEIR_CRON_NEVER INT64_MAX

/* Parse `text`; `zone` NULL is UTC. On failure *out is {0}. WEIR_EINVAL: the message names the
 * column; an expression that never fires is refused, too. Errors of weir__zone_find(). */
weir_code weir__cron_parse(weir_cron *out, const char *text, const char *zone, bool either,
                           weir_error *err);

/* The first firing after `after_ms`; WEIR_CRON_NEVER: none until WEIR_CRON_END_MS. An
 * interval counts from `anchor_ms`, which does not fire itself. Times are in milliseconds. */
int64_t weir__cron_next(const weir_cron *c, int64_t anchor_ms, int64_t after_ms);

/* "Sunday" for 0, to "Saturday". */
const char *weir__weekday_name(int weekday);

/* Append the expression in plain words: "at 06:30 on Mondays (Europe/Berlin)". */
void weir__cron_words(const weir_cron *c, weir_buf *out);

#endif
