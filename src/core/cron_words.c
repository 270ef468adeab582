/* cron_words.c - an expression in plain words. They are made from the bit sets, so "@daily" and
 * "0 0 * * *" read the same.
 *
 *     30 6 * * 1          at 06:30 on Monday
 *     0/15 9-17 * * 1-5   every 15 minutes from 09:00 to 17:59 on Monday to Friday
 *     0 0 13 * 5          at 00:00 on day 13 of the month if that is Friday */
#include "core/cron.h"

#include "core/cron_days.h"
#include "weir/job.h"

enum { MAX_TIMES = 6 };             /* times of a day that are listed one by one */

static const char *const month_names[] = { "", "January", "February", "March", "April", "May",
                                           "June", "July", "August", "September", "October",
                                           "November", "December" };
static const char *const weekday_names[] = { "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday",
                                             "Friday", "Saturday", "Sunday" };
static const char *const nth_names[] = { "first", "second", "third", "fourth", "fifth" };

/* ---- lists ---- */

/* One entry of a list has begun: write what stands before it. */
static void join(weir_buf *out, size_t i, size_t n)
{
    if (i)
        weir__buf_str(out, i + 1 == n ? " and " : ", ");
}

static void number(weir_buf *out, int n)
{
    weir__buf_int(out, n);
}

static void month(weir_buf *out, int n)
{
    weir__buf_str(out, month_names[n]);
}

static void weekday(weir_buf *out, int n)
{
    weir__buf_str(out, weekday_names[n]);
}

static int next_bit(uint64_t set, int from)
{
    return from < 64 && set >> from ? from + __builtin_ctzll(set >> from) : -1;
}

/* The end of the run of bits that begins at `from`. */
static int run_end(uint64_t set, int from)
{
    while (from < 63 && set >> (from + 1) & 1)
        from++;
    return from;
}

/* "1, 3 and 5 to 9": runs of three and more are ranges. */
static void list(weir_buf *out, uint64_t set, void (*name)(weir_buf *, int))
{
    size_t n = 0, i = 0;
    for (int from = next_bit(set, 0), to; from >= 0; from = next_bit(set, to + 1), n++)
        to = run_end(set, from) - from >= 2 ? run_end(set, from) : from;
    for (int from = next_bit(set, 0), to; from >= 0; from = next_bit(set, to + 1)) {
        to = run_end(set, from) - from >= 2 ? run_end(set, from) : from;
        join(out, i++, n);
        name(out, from);
        if (to > from) {
            weir__buf_str(out, " to ");
            name(out, to);
        }
    }
}

static int count(uint64_t set)
{
    return __builtin_popcountll(set);
}

/* n, if the set is 0, n, 2n ... and n divides `size`, so that all distances are equal; else 0. */
static int step_of(uint64_t set, int size)
{
    int n = next_bit(set, 1);
    if (!(set & 1) || n < 0 || size % n)
        return 0;
    for (int i = 0; i < size; i++)
        if ((set >> i & 1) != (i % n == 0))
            return 0;
    return n;
}

/* ---- times ---- */

static bool lists_times(const weir_cron *c)
{
    return count(c->seconds) == 1 && count(c->hours) * count(c->minutes) <= MAX_TIMES;
}

static void time_list(const weir_cron *c, weir_buf *out)
{
    size_t n = (size_t)(count(c->hours) * count(c->minutes)), i = 0;
    int    second = next_bit(c->seconds, 0);
    weir__buf_str(out, "at ");
    for (int h = next_bit(c->hours, 0); h >= 0; h = next_bit(c->hours, h + 1)) {
        for (int m = next_bit(c->minutes, 0); m >= 0; m = next_bit(c->minutes, m + 1)) {
            join(out, i++, n);
            weir__buf_printf(out, "%02d:%02d", h, m);
            if (second)
                weir__buf_printf(out, ":%02d", second);
        }
    }
}

/* "every 5 minutes", or "at minutes 5 and 10"; of what they are follows. */
static void small_unit(weir_buf *out, uint64_t set, const char *unit)
{
    int step = step_of(set, 60);
    if (step == 1)
        weir__buf_printf(out, "every %s", unit);
    else if (step)
        weir__buf_printf(out, "every %d %ss", step, unit);
    else {
        weir__buf_printf(out, "at %s%s ", unit, count(set) > 1 ? "s" : "");
        list(out, set, number);
    }
}

static void hours(const weir_cron *c, weir_buf *out)
{
    int  first = next_bit(c->hours, 0), last = run_end(c->hours, first);
    int  step = step_of(c->hours, 24);
    bool listed = !step_of(c->minutes, 60);
    if (step == 1)
        weir__buf_str(out, listed ? " of every hour" : "");
    else if (step)
        weir__buf_printf(out, " of every %d%s hour", step,
                         step == 2 ? "nd" : step == 3 ? "rd" : "th");
    else if (count(c->hours) == last - first + 1)
        weir__buf_printf(out, " from %02d:00 to %02d:59", first, last);
    else {
        weir__buf_str(out, " of hours ");
        list(out, c->hours, number);
    }
}

static void times(const weir_cron *c, weir_buf *out)
{
    if (lists_times(c)) {
        time_list(c, out);
        return;
    }
    if (c->seconds != 1) {
        small_unit(out, c->seconds, "second");
        if (step_of(c->minutes, 60) != 1)
            weir__buf_str(out, ", ");
        else if (!step_of(c->seconds, 60))
            weir__buf_str(out, " of every minute");
    }
    if (c->minutes == 1 && c->seconds == 1 && step_of(c->hours, 24)) {
        int step = step_of(c->hours, 24);
        if (step == 1)
            weir__buf_str(out, "every hour");
        else
            weir__buf_printf(out, "every %d hours", step);
        return;
    }
    if (c->seconds == 1 || step_of(c->minutes, 60) != 1)
        small_unit(out, c->minutes, "minute");
    hours(c, out);
}

/* ---- days ---- */

static bool has_days(const weir_cron *c)
{
    return c->days != weir__month_mask(31);
}

static bool has_weekdays(const weir_cron *c)
{
    return c->weekdays != WEIR__ALL_WEEKDAYS;
}

/* " on " before the first, " and on " before each other. */
static void on(weir_buf *out, bool *more)
{
    weir__buf_str(out, *more ? " and on " : " on ");
    *more = true;
}

static void days(const weir_cron *c, weir_buf *out)
{
    bool more = false;
    if (c->days) {
        on(out, &more);
        weir__buf_str(out, count(c->days) > 1 ? "days " : "day ");
        list(out, c->days, number);
        weir__buf_str(out, " of the month");
    }
    for (uint32_t left = c->nearest_weekdays; left; left &= left - 1) {
        on(out, &more);
        weir__buf_printf(out, "the weekday nearest to day %d of the month", __builtin_ctz(left));
    }
    for (uint32_t left = c->days_before_last; left; left &= left - 1) {
        int n = __builtin_ctz(left);
        on(out, &more);
        if (n)
            weir__buf_printf(out, "the day %d day%s before the last of the month", n,
                             n > 1 ? "s" : "");
        else
            weir__buf_str(out, "the last day of the month");
    }
    if (c->last_weekday) {
        on(out, &more);
        weir__buf_str(out, "the last weekday of the month");
    }
}

/* Monday is first and Sunday last: "Monday to Friday", "Saturday and Sunday". */
static uint64_t from_monday(uint8_t set)
{
    return (uint64_t)(set & ~1) | (uint64_t)(set & 1) << 7;
}

/* `before` is written before the first. */
static void weekdays(const weir_cron *c, weir_buf *out, const char *before)
{
    size_t n = (c->weekdays != 0) + (c->last_weekdays != 0), i = 0;
    for (int k = 0; k < 5; k++)
        n += c->nth_weekdays[k] != 0;
    weir__buf_str(out, before);
    if (c->weekdays) {
        join(out, i++, n);
        list(out, from_monday(c->weekdays), weekday);
    }
    for (int k = 0; k < 5; k++) {
        if (!c->nth_weekdays[k])
            continue;
        join(out, i++, n);
        weir__buf_printf(out, "the %s ", nth_names[k]);
        list(out, from_monday(c->nth_weekdays[k]), weekday);
        weir__buf_str(out, " of the month");
    }
    if (c->last_weekdays) {
        join(out, i++, n);
        weir__buf_str(out, "the last ");
        list(out, from_monday(c->last_weekdays), weekday);
        weir__buf_str(out, " of the month");
    }
}

static void dates(const weir_cron *c, weir_buf *out)
{
    if (has_days(c))
        days(c, out);
    if (has_weekdays(c))
        weekdays(c, out, !has_days(c)                                            ? " on "
                         : c->either && !c->any_day && !c->any_weekday ? ", and on "
                                                                        : " if that is ");
    if (c->months != 0x1ffe) {
        weir__buf_str(out, " in ");
        list(out, c->months, month);
    } else if (!has_days(c) && !has_weekdays(c) && lists_times(c)) {
        weir__buf_str(out, " every day");
    }
}

/* ---- intervals ---- */

static void interval(const weir_cron *c, weir_buf *out)
{
    static const struct {
        const char *name;
        int64_t     ms;
    } units[] = { { "day", 86400000 }, { "hour", 3600000 }, { "minute", 60000 }, { "second", 1000 },
                  { "millisecond", 1 } };
    int64_t left = c->every_ms;
    weir__buf_str(out, "every");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        int64_t n = left / units[i].ms;
        left %= units[i].ms;
        if (n == 1 && !left && n * units[i].ms == c->every_ms)
            weir__buf_printf(out, " %s", units[i].name);
        else if (n)
            weir__buf_printf(out, " %lld %s%s", (long long)n, units[i].name, n > 1 ? "s" : "");
    }
}

const char *weir__weekday_name(int weekday)
{
    return weekday_names[weekday];
}

void weir__cron_words(const weir_cron *c, weir_buf *out)
{
    if (c->every_ms) {
        interval(c, out);
        return;
    }
    times(c, out);
    dates(c, out);
    if (strcmp(weir__zone_name(c->zone), "UTC") != 0)
        weir__buf_printf(out, " (%s)", weir__zone_name(c->zone));
}
