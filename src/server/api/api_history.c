/* api_history.c - GET /v1/history: what happened to jobs, in steps of time, for charts. Seconds are
 * in the memory of the server, minutes and hours in the store (TREND_GET). */
#include <string.h>

#include "runtime/ops.h"
#include "server/live/chart.h"
#include "server/http/inner.h"

enum { N_STEPS = 3, SECONDS = 0, PRESET = 300, MOST = 1440, MAX_READS = 8 };
_Static_assert(MAX_READS * WEIR_MAX_TREND_SLOTS >= WEIR_TREND_MINUTES &&
                   MAX_READS * WEIR_MAX_TREND_SLOTS >= WEIR_TREND_HOURS, "all that is kept");

static const struct {
    const char     *name;
    weir_trend_step step;               /* of the store, but for seconds */
    int64_t         ms, kept;
} steps[N_STEPS] = {
    { "1s", WEIR_TREND_STEPS, 1000, SRV_HISTORY_SECONDS },
    { "1m", WEIR_TREND_MINUTE, 60000, WEIR_TREND_MINUTES },
    { "1h", WEIR_TREND_HOUR, 3600000, WEIR_TREND_HOURS },
};

typedef struct history {
    const char *type;                   /* "": the queue */
    int         step;
    int64_t     first, last;            /* slots; first is a multiple of `wide` */
    int64_t     wide, n;                /* slots in a bucket, buckets */
    weir_trend *bucket;
    weir_op     read[MAX_READS];
    size_t      n_reads;
} history;

/* Buckets begin at multiples of their width, so that they stay what they are as time goes on. */
static void cut(history *h, int64_t from, int64_t n)
{
    h->wide = (h->last - from + n) / n;
    while (h->last / h->wide - from / h->wide >= n)
        h->wide++;
    h->first = from / h->wide * h->wide;
    h->n = h->last / h->wide - h->first / h->wide + 1;
}

static bool read_step(srv_request *r, history *h)
{
    const char *step = srv_query(r, "step");
    for (h->step = 0; step && h->step < N_STEPS && strcmp(step, steps[h->step].name);)
        h->step++;
    if (h->step == N_STEPS)
        srv_reply_fail(r, WEIR_EINVAL, "step", "step: \"%.60s\" is none of 1s, 1m, 1h", step);
    else if (h->step == SECONDS && *h->type)
        srv_reply_fail(r, WEIR_EINVAL, "step", "step: of a type there are 1m and 1h");
    else
        return true;
    return false;
}

static bool read_query(srv_request *r, history *h)
{
    const char *type = srv_query(r, "type");
    int64_t     n = PRESET, from = -1;
    h->type = type ? type : "";
    if (!srv_allow(r, WEIR_ROLE_READ, *h->type ? h->type : NULL) || !read_step(r, h) ||
        !srv_query_int(r, "n", 1, MOST, &n) ||
        !srv_query_int(r, "from", 0, INT64_MAX, &from))
        return false;
    int64_t least;
    h->last = weir_now(srv_queue(r)) / steps[h->step].ms;
    least = h->last - steps[h->step].kept + 1;
    least = least > 0 ? least : 0;
    from = from < 0 ? h->last - n + 1 : from / steps[h->step].ms;
    from = from < least ? least : from;
    cut(h, from < h->last ? from : h->last, n);
    return true;
}

static weir_trend *bucket_of(const history *h, int64_t slot)
{
    return &h->bucket[(slot - h->first) / h->wide];
}

static void answer(srv_request *r, const history *h)
{
    weir_buf out = { 0 };
    srv_chart_json(&out, h->bucket, (size_t)h->n, h->wide * steps[h->step].ms,
                   h->first * steps[h->step].ms);
    srv_reply_json(r, 200, &out);
}

static void answer_seconds(srv_request *r, const history *h)
{
    for (int64_t i = 0; i < h->n; i++)
        srv_metrics_seconds(r->server->metrics, h->first + i * h->wide, h->wide, &h->bucket[i]);
    answer(r, h);
}

/* ---- minutes and hours ---- */

/* In the order of time, since a bucket has the gauges of its last record. */
static void add_up(srv_request *r, const history *h)
{
    srv_trends *trends = srv_metrics_trends(r->server->metrics);
    size_t      at = 0, i = 0;
    for (int64_t slot = h->first; slot <= h->last; slot++) {
        weir_trend t;
        weir__trend_clear(&t);
        while (at < h->n_reads && i == h->read[at].u.trend_get.rows->n) {
            at++;
            i = 0;
        }
        if (at < h->n_reads && h->read[at].u.trend_get.rows->row[i].slot == slot)
            weir__trend_read(&t, h->read[at].u.trend_get.rows->row[i++].record, NULL);
        if (slot + 3 > h->last)             /* what the store has not got yet */
            srv_trends_join(trends, h->type, steps[h->step].step, slot, &t);
        weir__trend_follow(bucket_of(h, slot), &t);
    }
}

static void got_rows(srv_request *r, weir_code code, const weir_error *err)
{
    history          *h = r->state;
    const weir_error *why = code ? err : NULL;
    for (size_t i = 0; i < h->n_reads && !why; i++)
        why = h->read[i].err.code ? &h->read[i].err : NULL;
    if (!why)
        add_up(r, h);
    for (size_t i = 0; i < h->n_reads && !code; i++)
        if (!h->read[i].err.code)
            weir__op_free(&h->read[i]);
    if (why)
        srv_reply_error(r, why);
    else
        answer(r, h);
}

static void ask_store(srv_request *r, history *h)
{
    weir_future *f = NULL;
    weir_error   err = { 0 };
    for (int64_t at = h->first; at <= h->last && h->n_reads < MAX_READS;
         at += WEIR_MAX_TREND_SLOTS) {
        int64_t left = h->last - at + 1;
        h->read[h->n_reads++] = (weir_op){
            .kind = WEIR_OP_TREND_GET,
            .u.trend_get = { .type = h->type, .step = steps[h->step].step, .from = at,
                             .n = left < WEIR_MAX_TREND_SLOTS ? (size_t)left
                                                              : WEIR_MAX_TREND_SLOTS } };
    }
    weir_code rc = weir__ops_run_async(srv_queue(r), h->read, h->n_reads, &f, &err);
    srv_await(r, rc, &err, f, got_rows);
}

static void get_history(srv_request *r)
{
    history *h = r->state = srv_alloc(r, sizeof *h);
    if (!h) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return;
    }
    if (!read_query(r, h))
        return;
    h->bucket = srv_alloc(r, (size_t)h->n * sizeof *h->bucket);
    if (!h->bucket) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return;
    }
    for (int64_t i = 0; i < h->n; i++)
        weir__trend_clear(&h->bucket[i]);
    if (h->step == SECONDS)
        answer_seconds(r, h);
    else
        ask_store(r, h);
}

static const srv_param history_params[] = {
    { "type", SRV_P_TEXT, "Of this type only; with 1m and 1h" },
    { "step", SRV_P_TEXT, "1s (of 15 minutes), 1m (of a week) or 1h (of a year)" },
    { "from", SRV_P_INT, "From this time on, in milliseconds; without it: n steps up to now" },
    { "n", SRV_P_INT, "How many numbers a curve has (300); with from: at most, each of several "
      "steps" },
    { 0 }
};

const srv_route srv_history_routes[] = {
    { "GET", "/v1/history", WEIR_ROLE_READ, get_history, 0, history_params, 0,
      "The past in steps: jobs added and ended, how many waited, how long jobs waited and ran",
      NULL, "History", 200 },
    { 0 }
};
