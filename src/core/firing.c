/* firing.c - what a schedule does when it is due: see firing.h. */
#include "core/firing.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "core/civil.h"

/* ---- names ---- */

static const char *const missed_names[] = { "once", "skip", "all" };
static const char *const overlap_names[] = { "allow", "skip", "queue", "replace" };
static const char *const firing_names[] = { "fired", "by hand", "missed", "still running",
                                            "still waiting", "refused" };

static bool parse_name(const char *const *names, size_t n, const char *text, unsigned *out)
{
    for (unsigned i = 0; i < n; i++) {
        if (strcmp(names[i], text) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

#define NAMES(type, array)                                                                        \
    const char *weir_##type##_name(weir_##type##_kind value)                                      \
    {                                                                                             \
        return (unsigned)value < sizeof array / sizeof *array ? array[value] : "?";               \
    }                                                                                             \
    bool weir_##type##_parse(const char *text, weir_##type##_kind *out)                           \
    {                                                                                             \
        unsigned n;                                                                               \
        bool     ok = parse_name(array, sizeof array / sizeof *array, text, &n);                  \
        if (ok)                                                                                   \
            *out = (weir_##type##_kind)n;                                                         \
        return ok;                                                                                \
    }
NAMES(missed, missed_names)
NAMES(overlap, overlap_names)
NAMES(firing, firing_names)

/* ---- dates to leave out ---- */

/* The next date of "2026-12-25,2026-12-26"; false at the end, or if it is none: then *s is not at
 * the end. */
static bool next_date(const char **s, weir_date *d)
{
    int len = 0;
    if (sscanf(*s, "%4d-%2d-%2d%n", &d->year, &d->month, &d->day, &len) != 3 || len != 10 ||
        d->month < 1 || d->month > 12 || d->day < 1 ||
        d->day > weir__days_in_month(d->year, d->month) || ((*s)[10] && (*s)[10] != ','))
        return false;
    *s += (*s)[10] ? 11 : 10;
    return true;
}

static weir_code check_except(const char *except, weir_error *err)
{
    weir_date   d;
    const char *s = except;
    if (strlen(except) > WEIR_MAX_EXCEPT)
        return weir__fail_field(err, WEIR_EINVAL, "except", "more than %d bytes", WEIR_MAX_EXCEPT);
    while (*s && next_date(&s, &d))
        ;
    if (*s)
        return weir__fail_field(err, WEIR_EINVAL, "except", "\"%.20s\" is not a date; write dates "
                                "like 2026-12-25, with commas between", s);
    return WEIR_OK;
}

static bool is_left_out(const char *except, weir_date day)
{
    weir_date d;
    while (next_date(&except, &d))
        if (d.year == day.year && d.month == day.month && d.day == day.day)
            return true;
    return false;
}

weir_code weir__schedule_parse(weir_cron *out, const weir_schedule *s, weir_error *err)
{
    weir_code rc = WEIR__CHECK_RESERVED(s, err);
    if (!rc)
        rc = weir__cron_parse(out, s->when, s->zone, s->day_or_weekday, err);
    return rc || !s->except ? rc : check_except(s->except, err);
}

/* ---- when ---- */

/* The end of a day is that near when the clock changes on it. */
enum { SLACK_S = 2 * 3600 + 1 };

static int64_t anchor_of(const weir_schedule *s)
{
    return s->start_at ? s->start_at : s->created_at;
}

int64_t weir__schedule_after(const weir_schedule *s, const weir_cron *c, int64_t after_ms)
{
    if (after_ms < s->start_at)
        after_ms = s->start_at - 1;             /* a firing at the start counts */
    for (;;) {
        int64_t at = weir__cron_next(c, anchor_of(s), after_ms);
        if (at == WEIR_CRON_NEVER || (s->end_at && at > s->end_at))
            return 0;
        int64_t local = weir__div_floor(at, 1000);
        local += weir__zone_span(c->zone, local).offset;
        int64_t day = weir__div_floor(local, WEIR__DAY_S);
        if (!s->except || !is_left_out(s->except, weir__date_of(day)))
            return at;
        after_ms = at + ((day + 1) * WEIR__DAY_S - local - SLACK_S) * 1000;
        if (after_ms < at)
            after_ms = at;
    }
}

static int64_t jitter_of(const weir_schedule *s)
{
    uint64_t h = UINT64_C(14695981039346656037);        /* FNV-1a */
    if (!s->jitter_ms)
        return 0;
    for (const char *c = s->name; *c; c++)
        h = (h ^ (unsigned char)*c) * UINT64_C(1099511628211);
    return (int64_t)((h ^ h >> 32) % (uint64_t)(s->jitter_ms + 1));
}

int64_t weir__schedule_due(const weir_schedule *s)
{
    return s->paused || !s->next_at ? INT64_MAX : s->next_at + jitter_of(s);
}

/* ---- what ---- */

/* May the next job be added beside the last one? */
static void look_at_last(const weir_schedule *s, weir_state last, weir_plan *p)
{
    bool waits = last == WEIR_STATE_INACTIVE || last == WEIR_STATE_DELAYED;
    bool runs = last == WEIR_STATE_ACTIVE;
    if (s->overlap == WEIR_OVERLAP_REPLACE)
        p->cancel = waits || runs;
    else if (s->overlap == WEIR_OVERLAP_SKIP && runs)
        p->outcome = WEIR_FIRING_RUNNING;
    else if (s->overlap != WEIR_OVERLAP_ALLOW && waits)
        p->outcome = WEIR_FIRING_WAITING;
}

weir_plan weir__schedule_decide(weir_schedule *s, const weir_cron *c, weir_state last, int64_t now)
{
    weir_plan p = { .outcome = WEIR_FIRING_DONE, .at = s->next_at, .turn = s->turn };
    int64_t   in_time = now - jitter_of(s) - WEIR_MISSED_MS, after = s->next_at;
    bool      missed = s->next_at < in_time;
    int32_t   limit = s->missed_limit ? s->missed_limit : WEIR_MISSED_LIMIT;
    if (!missed)
        s->caught_up = 0;
    if (missed && s->missed == WEIR_MISSED_ONCE)
        after = now - jitter_of(s);
    if (missed && (s->missed == WEIR_MISSED_SKIP ||
                   (s->missed == WEIR_MISSED_ALL && s->caught_up >= limit))) {
        p.outcome = WEIR_FIRING_MISSED;
        after = in_time - 1;
    }
    if (missed && s->missed == WEIR_MISSED_ALL && p.outcome == WEIR_FIRING_DONE)
        s->caught_up++;
    s->next_at = weir__schedule_after(s, c, after);
    s->turn++;
    if (p.outcome == WEIR_FIRING_DONE)
        look_at_last(s, last, &p);
    return p;
}

void weir__schedule_restart(weir_schedule *s, const weir_cron *c, int64_t now)
{
    s->next_at = weir__schedule_after(s, c, now);
    s->turn++;
}

bool weir__schedule_has_noted(const weir_schedule *s, weir_firing f)
{
    for (size_t i = 0; i < s->n_history; i++)
        if (s->history[i].job == f.job)
            return true;
    return s->n_history == WEIR_MAX_FIRED && f.done_at < s->history[0].done_at;
}

void weir__schedule_note(weir_schedule *s, weir_firing f)
{
    if (s->n_history == WEIR_MAX_FIRED)
        memmove(s->history, s->history + 1, --s->n_history * sizeof *s->history);
    s->history[s->n_history++] = f;
    if (!f.job)
        return;
    s->last_at = f.at;
    s->last_job = f.job;
    s->fired++;
}
