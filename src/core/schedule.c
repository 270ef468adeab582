/* schedule.c - the firings of a schedule, its plain words, and why it fires or does not: see
 * weir/schedule.h. */
#include <inttypes.h>

#include "core/civil.h"
#include "core/firing.h"
#include "core/story.h"

weir_code weir_schedule_next(const weir_schedule *s, int64_t after_ms, int64_t *out, size_t max,
                             size_t *n, weir_error *err)
{
    weir_cron     c;
    weir_schedule own = *s;
    *n = 0;
    weir_code rc = weir__schedule_parse(&c, s, err);
    if (rc)
        return rc;
    if (max > WEIR_MAX_FIRINGS)
        return weir_fail(err, WEIR_ELIMIT, "%zu firings are too many; at most 1000 "
                         "(WEIR_MAX_FIRINGS)", max);
    if (!own.created_at)
        own.created_at = after_ms;
    for (; *n < max; (*n)++) {
        after_ms = weir__schedule_after(&own, &c, after_ms);
        if (!after_ms)
            break;
        out[*n] = after_ms;
    }
    return WEIR_OK;
}

weir_code weir_schedule_words(const weir_schedule *s, char **out, weir_error *err)
{
    weir_cron c;
    weir_buf  words = { 0 };
    *out = NULL;
    weir_code rc = weir__schedule_parse(&c, s, err);
    if (rc)
        return rc;
    weir__cron_words(&c, &words);
    *out = weir__buf_steal(&words, NULL);
    return *out ? WEIR_OK : weir_fail(err, WEIR_ENOMEM, "schedule: out of memory");
}

/* ---- explaining ---- */

/* "Monday 2026-11-23 06:30 Europe/Berlin" */
static void say_moment(weir_buf *b, const weir_schedule *s, const weir_cron *c, int64_t at_ms)
{
    int64_t local = weir__div_floor(at_ms, 1000);
    local += weir__zone_span(c->zone, local).offset;
    int64_t   day = weir__div_floor(local, WEIR__DAY_S);
    int       second = (int)(local - day * WEIR__DAY_S);
    weir_date d = weir__date_of(day);
    weir__buf_printf(b, "%s %d-%02d-%02d %02d:%02d", weir__weekday_name(weir__weekday_of(day)),
                     d.year, d.month, d.day, second / 3600, second / 60 % 60);
    if (second % 60)
        weir__buf_printf(b, ":%02d", second % 60);
    weir__buf_printf(b, " %s", s->zone ? s->zone : "UTC");
}

static void say_next(weir_buf *b, const weir_schedule *s, const weir_cron *c, int64_t now)
{
    enum { LATE_MS = 2000 };
    int64_t due = weir__schedule_due(s);
    if (s->paused) {
        weir__buf_str(b, "It is paused, and does not fire until it is resumed.");
    } else if (s->next_at >= WEIR_PARKED_AT) {
        weir__buf_str(b, "It does not fire: it is on its way from one store to another. "
                         "Repeating the migration goes on with it.");
    } else if (!s->next_at) {
        weir__buf_str(b, "It has ended, and does not fire any more.");
    } else if (now < s->start_at) {
        weir__buf_str(b, "It has not begun. It fires first on ");
        say_moment(b, s, c, due);
        weir__buf_str(b, " (in ");
        weir__say_ms(b, due - now);
        weir__buf_str(b, ").");
    } else if (now - due > LATE_MS) {
        weir__buf_str(b, "It was to fire on ");
        say_moment(b, s, c, due);
        weir__buf_str(b, ", which passed ");
        weir__say_ms(b, now - due);
        weir__buf_str(b, " ago: no process has the store open.");
    } else {
        weir__buf_str(b, "It fires next on ");
        say_moment(b, s, c, due);
        weir__buf_str(b, " (in ");
        weir__say_ms(b, due - now);
        weir__buf_str(b, ").");
    }
}

static void say_last(weir_buf *b, const weir_schedule *s, int64_t now)
{
    const weir_firing *f = s->n_history ? &s->history[s->n_history - 1] : NULL;
    if (!f)
        return;
    switch (f->outcome) {
    case WEIR_FIRING_DONE:
    case WEIR_FIRING_BY_HAND:
        weir__buf_printf(b, " The last run, job %" PRIu64 ", was added%s ", f->job,
                         f->outcome == WEIR_FIRING_DONE ? "" : " by hand");
        weir__say_ms(b, now - f->done_at);
        weir__buf_str(b, " ago.");
        break;
    case WEIR_FIRING_MISSED:
        weir__buf_str(b, " The last run was missed, because no process had the store open.");
        break;
    case WEIR_FIRING_RUNNING:
    case WEIR_FIRING_WAITING:
        weir__buf_printf(b, " The last run was skipped, because job %" PRIu64 " of the one before "
                         "was %s.", s->last_job, weir_firing_name(f->outcome));
        break;
    case WEIR_FIRING_REFUSED:
        weir__buf_str(b, " The last run has no job: the store rejected it.");
        break;
    }
}

/* How many firings of its history have no job, and why. */
static void say_left_out(weir_buf *b, const weir_schedule *s)
{
    static const weir_firing_kind kinds[] = { WEIR_FIRING_MISSED, WEIR_FIRING_RUNNING,
                                              WEIR_FIRING_WAITING, WEIR_FIRING_REFUSED };
    enum { KINDS = sizeof kinds / sizeof *kinds };
    size_t count[KINDS] = { 0 }, all = 0;
    for (size_t i = 0; i < s->n_history; i++)
        for (size_t k = 0; k < KINDS; k++)
            if (s->history[i].outcome == kinds[k]) {
                count[k]++;
                all++;
            }
    if (!all || s->n_history == 1)
        return;
    weir__buf_printf(b, " Of the last %zu runs, %zu %s left out:", s->n_history, all,
                     all == 1 ? "was" : "were");
    const char *before = " ";
    for (size_t k = 0; k < KINDS; k++) {
        if (!count[k])
            continue;
        weir__buf_printf(b, "%s%zu %s", before, count[k], weir_firing_name(kinds[k]));
        before = ", ";
    }
    weir__buf_char(b, '.');
}

weir_code weir_schedule_explain(const weir_schedule *s, int64_t now_ms, char **out,
                                weir_error *err)
{
    weir_cron c;
    weir_buf  b = { 0 };
    *out = NULL;
    weir_code rc = weir__schedule_parse(&c, s, err);
    if (rc)
        return rc;
    say_next(&b, s, &c, now_ms);
    say_last(&b, s, now_ms);
    say_left_out(&b, s);
    *out = weir__buf_steal(&b, NULL);
    return *out ? WEIR_OK : weir_fail(err, WEIR_ENOMEM, "schedule: out of memory");
}
