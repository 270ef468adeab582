/* cron.c - the next firing of a parsed expression: see cron.h. */
#include "core/cron.h"

#include "core/civil.h"
#include "core/cron_days.h"

enum { ALL_HOURS = (1 << 24) - 1, LAST_YEAR = 9999, TWO_DAYS_S = 2 * WEIR__DAY_S };
#define FIRST_MS (INT64_C(-62135596800) * 1000)     /* year 1: dates before are not asked for */

/* ---- days ---- */

/* The days `weekday`, `weekday` + 7 ... of a month whose first day is the weekday `first`. */
static uint32_t every_week(int weekday, int first)
{
    return UINT32_C(0x20408102) << ((weekday - first + 7) % 7);
}

static uint32_t every_week_of(uint8_t weekdays, int first)
{
    uint32_t days = 0;
    for (unsigned left = weekdays; left; left &= left - 1)
        days |= every_week(__builtin_ctz(left), first);
    return days;
}

static uint32_t weekdays_of_month(const weir_cron *c, int first, int last_day)
{
    uint32_t days = every_week_of(c->weekdays, first);
    if (c->last_weekdays)
        days |= every_week_of(c->last_weekdays, first) & ~weir__month_mask(last_day - 7);
    for (int k = 0; k < 5; k++)
        if (c->nth_weekdays[k])
            days |= every_week_of(c->nth_weekdays[k], first) &
                    (weir__month_mask(7 * k + 7) & ~weir__month_mask(7 * k));
    return days & weir__month_mask(last_day);
}

/* Saturday gives way to the Friday before, Sunday to the Monday after, also across the border of
 * the month. */
static uint32_t nearest_weekdays(const weir_cron *c, int year, int month, int first, int last_day)
{
    uint32_t saturdays = every_week(6, first), sundays = every_week(0, first);
    uint32_t wanted = c->nearest_weekdays & weir__month_mask(last_day);
    uint32_t days = (wanted & ~(saturdays | sundays)) | (wanted & saturdays) >> 1 |
                    (wanted & sundays) << 1;
    int before = weir__days_in_month(year - (month == 1), month == 1 ? 12 : month - 1);
    if (first == 1 && c->nearest_weekdays >> before & 1)        /* that day was a Sunday */
        days |= 1 << 1;
    if ((wanted & 1u << 1) && (first + last_day) % 7 == 6)       /* the next 1st is a Saturday */
        days |= UINT32_C(1) << last_day;
    return days;
}

static uint32_t days_of_month(const weir_cron *c, int year, int month, int first, int last_day)
{
    uint32_t days = c->days;
    for (uint32_t left = c->days_before_last; left; left &= left - 1)
        if (__builtin_ctz(left) < last_day)
            days |= UINT32_C(1) << (last_day - __builtin_ctz(left));
    if (c->nearest_weekdays)
        days |= nearest_weekdays(c, year, month, first, last_day);
    if (c->last_weekday) {
        int weekday = (first + last_day - 1) % 7;
        days |= UINT32_C(1) << (last_day - (weekday == 6 ? 1 : weekday == 0 ? 2 : 0));
    }
    return days & weir__month_mask(last_day);
}

uint32_t weir__cron_days(const weir_cron *c, int year, int month)
{
    int      first = weir__weekday_of(weir__days_of(year, month, 1));
    int      last_day = weir__days_in_month(year, month);
    uint32_t days = days_of_month(c, year, month, first, last_day);
    if (c->weekdays == WEIR__ALL_WEEKDAYS && (!c->either || c->any_weekday))
        return days;
    uint32_t weekdays = weekdays_of_month(c, first, last_day);
    return c->either && !c->any_day && !c->any_weekday ? days | weekdays : days & weekdays;
}

bool weir__cron_next_day(const weir_cron *c, weir_date *d, int last_year)
{
    for (; d->year <= last_year; d->year++, d->month = 1, d->day = 1) {
        for (; d->month <= 12; d->month++, d->day = 1) {
            if (!(c->months >> d->month & 1))
                continue;
            uint32_t days = weir__cron_days(c, d->year, d->month) & ~weir__month_mask(d->day - 1);
            if (days) {
                d->day = __builtin_ctz(days);
                return true;
            }
        }
    }
    return false;
}

/* ---- times of a day ---- */

/* The lowest bit that is at least `from`; -1: none. */
static int next_bit(uint64_t set, int from)
{
    set = from < 64 ? set >> from << from : 0;
    return set ? __builtin_ctzll(set) : -1;
}

/* The first matching second of a day that is at least `from`; -1: none. */
static int next_second(const weir_cron *c, int from)
{
    int h = from / 3600, m = from / 60 % 60, s = from % 60;
    if (c->hours >> h & 1) {
        int second = c->minutes >> m & 1 ? next_bit(c->seconds, s) : -1;
        if (second >= 0)
            return h * 3600 + m * 60 + second;
        int minute = next_bit(c->minutes, m + 1);
        if (minute >= 0)
            return h * 3600 + minute * 60 + next_bit(c->seconds, 0);
    }
    int hour = next_bit(c->hours, h + 1);
    return hour < 0 ? -1 : hour * 3600 + next_bit(c->minutes, 0) * 60 + next_bit(c->seconds, 0);
}

/* Move *local, in seconds, to the first matching local time at or after it. */
static bool next_local(const weir_cron *c, int64_t *local)
{
    int64_t   days = weir__div_floor(*local, WEIR__DAY_S);
    weir_date from = weir__date_of(days), d = from;
    if (!weir__cron_next_day(c, &d, LAST_YEAR))
        return false;
    int second = -1;
    if (d.day == from.day && d.month == from.month && d.year == from.year) {
        second = next_second(c, (int)(*local - days * WEIR__DAY_S));
        d.day += second < 0;                /* may be day 32, which no month has */
    }
    if (second < 0) {
        if (!weir__cron_next_day(c, &d, LAST_YEAR))
            return false;
        second = next_second(c, 0);
    }
    *local = weir__days_of(d.year, d.month, d.day) * WEIR__DAY_S + second;
    return true;
}

/* ---- firings ---- */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* In seconds. The span before `until` ends a local time that the next span may skip or repeat. */
static int64_t next_fields(const weir_cron *c, int64_t after)
{
    bool    by_hour = c->hours == ALL_HOURS;
    int64_t from = after + 1, at = after;
    for (;;) {
        weir_zone_span span = weir__zone_span(c->zone, at);
        int64_t        local = larger(from, span.from) + span.offset;
        if (!by_hour && span.before > span.offset)
            local = larger(local, span.from + span.before);     /* behind what is shown twice */
        if (!next_local(c, &local))
            return WEIR_CRON_NEVER;
        if (local - span.offset < span.until)
            return local - span.offset;
        if (!by_hour && local < span.until + weir__zone_span(c->zone, span.until).offset)
            return span.until;                                  /* it is skipped */
        from = at = larger(span.until, local - TWO_DAYS_S);     /* no offset is so large */
    }
}

static int64_t next_interval(const weir_cron *c, int64_t anchor_ms, int64_t after_ms)
{
    int64_t passed = weir__div_floor(after_ms - anchor_ms, c->every_ms);
    return anchor_ms + (larger(passed, 0) + 1) * c->every_ms;
}

int64_t weir__cron_next(const weir_cron *c, int64_t anchor_ms, int64_t after_ms)
{
    after_ms = larger(after_ms, FIRST_MS);
    if (after_ms >= WEIR_CRON_END_MS || anchor_ms >= WEIR_CRON_END_MS)
        return WEIR_CRON_NEVER;
    int64_t at;
    if (c->every_ms) {
        at = next_interval(c, larger(anchor_ms, FIRST_MS), after_ms);
    } else {
        at = next_fields(c, weir__div_floor(after_ms, 1000));
        at = at == WEIR_CRON_NEVER ? at : at * 1000;
    }
    return at > WEIR_CRON_END_MS ? WEIR_CRON_NEVER : at;
}
