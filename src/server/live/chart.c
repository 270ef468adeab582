/* chart.c - see chart.h. A slot belongs to the time it was last used for: one that is older
 * than its place says counts as empty, so nothing has to be done while nothing happens. */
#include "server/live/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Times are counted by powers of the square root of two, which is exact enough for a curve: from
 * 1 ms to about 18 hours. */
enum { N_TIMES = 52 };

typedef struct times {
    uint32_t n;
    uint32_t at[N_TIMES];
} times;

typedef struct slot {
    int64_t  index;             /* of its second or minute since 1970 */
    uint32_t queued, completed, failed;
    times    waited, ran;
} slot;

struct srv_chart {
    slot second[SRV_HISTORY_SECONDS];
    slot minute[SRV_HISTORY_MINUTES];
};

srv_chart *srv_chart_create(void)
{
    return calloc(1, sizeof(srv_chart));
}

void srv_chart_destroy(srv_chart *h)
{
    free(h);
}

static void count_time(times *t, int64_t ms)
{
    int i = ms <= 1 ? 0 : (int)lround(2 * log2((double)ms));
    t->n++;
    t->at[i < N_TIMES ? i : N_TIMES - 1]++;
}

static void note(slot *s, int64_t index, const weir_event *e, int64_t ms)
{
    if (s->index > index)
        return;                 /* late, and its place is taken */
    if (s->index < index) {
        memset(s, 0, sizeof *s);
        s->index = index;
    }
    switch (e->kind) {
    case WEIR_EVENT_ENQUEUE:
        s->queued++;
        break;
    case WEIR_EVENT_START:
        if (ms >= 0)
            count_time(&s->waited, ms);
        break;
    case WEIR_EVENT_COMPLETE:
    case WEIR_EVENT_FAILED:
    case WEIR_EVENT_FAILED_ATTEMPT:
        *(e->kind == WEIR_EVENT_COMPLETE ? &s->completed : &s->failed) += 1;
        if (ms >= 0)
            count_time(&s->ran, ms);
        break;
    default:
        break;
    }
}

void srv_chart_note(srv_chart *h, const weir_event *e, int64_t ms)
{
    int64_t second = e->at / 1000, minute = e->at / 60000;
    if (second <= 0)
        return;
    note(&h->second[second % SRV_HISTORY_SECONDS], second, e, ms);
    note(&h->minute[minute % SRV_HISTORY_MINUTES], minute, e, ms);
}

/* ---- as JSON ---- */

static void write_share(weir_buf *out, const times *t, double share)
{
    uint32_t want = (uint32_t)ceil(t->n * share), seen = 0;
    int      i = 0;
    if (!t->n) {
        weir__buf_str(out, "null");
        return;
    }
    while (i < N_TIMES - 1 && (seen += t->at[i]) < want)
        i++;
    weir__buf_int(out, (int64_t)lround(pow(2, i / 2.0)));
}

typedef enum curve { QUEUED, COMPLETED, FAILED, WAIT_50, WAIT_95, RUN_50, RUN_95, CURVES } curve;
static const char *const names[CURVES] = { "queued", "completed", "failed", "wait_p50", "wait_p95",
                                           "run_p50", "run_p95" };

static void write_value(weir_buf *out, const slot *s, curve which)
{
    switch (which) {
    case QUEUED:    weir__buf_int(out, s->queued); break;
    case COMPLETED: weir__buf_int(out, s->completed); break;
    case FAILED:    weir__buf_int(out, s->failed); break;
    case WAIT_50:   write_share(out, &s->waited, 0.5); break;
    case WAIT_95:   write_share(out, &s->waited, 0.95); break;
    case RUN_50:    write_share(out, &s->ran, 0.5); break;
    default:        write_share(out, &s->ran, 0.95); break;
    }
}

void srv_chart_json(const srv_chart *h, weir_buf *out, bool minutes, size_t n, int64_t now)
{
    static const slot empty;
    const slot *slots = minutes ? h->minute : h->second;
    size_t      most = minutes ? SRV_HISTORY_MINUTES : SRV_HISTORY_SECONDS;
    int64_t     step = minutes ? 60000 : 1000, last = now / step;
    n = n < most ? n : most;
    int64_t first = last - (int64_t)n + 1;
    weir__buf_printf(out, "{\"step\":%lld,\"from\":%lld", (long long)step,
                     (long long)(first * step));
    for (curve c = 0; c < CURVES; c++) {
        weir__buf_printf(out, ",\"%s\":[", names[c]);
        for (int64_t i = first; i <= last; i++) {
            const slot *s = i > 0 ? &slots[i % (int64_t)most] : &empty;
            if (i > first)
                weir__buf_char(out, ',');
            write_value(out, s->index == i ? s : &empty, c);
        }
        weir__buf_char(out, ']');
    }
    weir__buf_char(out, '}');
}
