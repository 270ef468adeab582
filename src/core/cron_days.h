/* cron_days.h - which days an expression matches; for the files of cron.h alone. Pure. */
#ifndef WEIR_CORE_CRON_DAYS_H
#define WEIR_CORE_CRON_DAYS_H

#include "core/civil.h"
#include "core/cron.h"

enum { WEIR__ALL_WEEKDAYS = 0x7f };

/* Bits 1 to n; n may be below 1. */
static inline uint32_t weir__month_mask(int n)
{
    return n < 1 ? 0 : (uint32_t)((UINT64_C(2) << n) - 2);
}

/* The days of a month that match, bits 1 to 31, whatever the months of the expression. */
uint32_t weir__cron_days(const weir_cron *c, int year, int month);

/* Move *d to the first day that matches at or after it; false: none until the end of `last_year`.
 * d->day may be one beyond its month. */
bool weir__cron_next_day(const weir_cron *c, weir_date *d, int last_year);

#endif
