/* chart.c - see chart.h. A slot belongs to the time it was last used for. If it is older than its
 * place says, it counts as empty, so an idle chart needs no work. */
#include "server/live/chart.h"

#include <stdlib.h>
#include <string.h>

typedef struct slot {
    int64_t    second;              /* since 1970 */
    weir_trend t;
} slot;

struct srv_chart {
    slot slot[SRV_HISTORY_SECONDS];
};

srv_chart *srv_chart_create(void)
{
    return calloc(1, sizeof(srv_chart));
}

void srv_chart_destroy(srv_chart *h)
{
    free(h);
}

/* A job is queued again after a failure or a lost lease: it is added once. */
static bool is_first(const weir_event *e)
{
    return !e->attempts && !e->delivery;
}

void srv_chart_count(weir_trend *t, const weir_event *e, int64_t ms)
{
    uint64_t *n = t->count;
    bool      ended = false;
    switch (e->kind) {
    case WEIR_EVENT_ENQUEUE:        n[WEIR_TREND_ADDED] += is_first(e); break;
    case WEIR_EVENT_COMPLETE:       n[WEIR_TREND_COMPLETE]++; ended = true; break;
    case WEIR_EVENT_FAILED:         n[WEIR_TREND_FAILED]++; ended = true; break;
    case WEIR_EVENT_FAILED_ATTEMPT: n[WEIR_TREND_ATTEMPT]++; ended = true; break;
    case WEIR_EVENT_CANCELLED:      n[WEIR_TREND_CANCELLED]++; break;
    case WEIR_EVENT_STALLED:        n[WEIR_TREND_LOST]++; break;
    default: break;
    }
    if (ms >= 0 && e->kind == WEIR_EVENT_START)
        weir__trend_time(t->waited, ms);
    else if (ms >= 0 && ended)
        weir__trend_time(t->ran, ms);
}

void srv_chart_note(srv_chart *h, const weir_event *e, int64_t ms)
{
    int64_t second = e->at / 1000;
    slot   *s = &h->slot[second > 0 ? second % SRV_HISTORY_SECONDS : 0];
    if (second <= 0 || s->second > second)
        return;                 /* late, and its place is taken */
    if (s->second < second)
        weir__trend_clear(&s->t);
    s->second = second;
    srv_chart_count(&s->t, e, ms);
}

void srv_chart_add(const srv_chart *h, int64_t second, weir_trend *to)
{
    const slot *s = &h->slot[second > 0 ? second % SRV_HISTORY_SECONDS : 0];
    if (second > 0 && s->second == second)
        weir__trend_follow(to, &s->t);
}

/* ---- as JSON ---- */

typedef struct curve {
    const char *name;
    enum { COUNT, GAUGE, WAITED, RAN } of;
    int         which;
    double      share;
} curve;

static const curve curves[] = {
    { "added", COUNT, WEIR_TREND_ADDED, 0 },
    { "completed", COUNT, WEIR_TREND_COMPLETE, 0 },
    { "retried", COUNT, WEIR_TREND_ATTEMPT, 0 },
    { "failed", COUNT, WEIR_TREND_FAILED, 0 },
    { "cancelled", COUNT, WEIR_TREND_CANCELLED, 0 },
    { "lost", COUNT, WEIR_TREND_LOST, 0 },
    { "backlog", GAUGE, WEIR_TREND_BACKLOG, 0 },
    { "oldest", GAUGE, WEIR_TREND_OLDEST, 0 },
    { "wait_p50", WAITED, 0, 0.5 }, { "wait_p95", WAITED, 0, 0.95 },
    { "wait_p99", WAITED, 0, 0.99 },
    { "run_p50", RAN, 0, 0.5 }, { "run_p95", RAN, 0, 0.95 }, { "run_p99", RAN, 0, 0.99 },
};

static int64_t value_of(const curve *c, const weir_trend *t)
{
    switch (c->of) {
    case COUNT:  return (int64_t)t->count[c->which];
    case GAUGE:  return t->gauge[c->which];
    case WAITED: return weir__trend_share(t->waited, c->share);
    default:     return weir__trend_share(t->ran, c->share);
    }
}

void srv_chart_json(weir_buf *out, const weir_trend *records, size_t n, int64_t step_ms,
                    int64_t from)
{
    weir__buf_printf(out, "{\"step\":%lld,\"from\":%lld", (long long)step_ms, (long long)from);
    for (size_t k = 0; k < sizeof curves / sizeof *curves; k++) {
        weir__buf_printf(out, ",\"%s\":[", curves[k].name);
        for (size_t i = 0; i < n; i++) {
            int64_t value = value_of(&curves[k], &records[i]);
            if (i)
                weir__buf_char(out, ',');
            if (value >= 0)
                weir__buf_int(out, value);
            else
                weir__buf_str(out, "null");
        }
        weir__buf_char(out, ']');
    }
    weir__buf_char(out, '}');
}
