/* metrics.c - requests, waiting times and durations: see metrics.h. */
#include "server/live/metrics.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "server/live/chart.h"

enum { FIRST_STATUS = 200, N_STATUS = 312, MAX_TABLES = 64 };

/* Upper ends of the buckets of times, in milliseconds; one more is for what is longer. */
static const int64_t ends_ms[] = {
    1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000, 3600000
};
enum { N_ENDS = sizeof ends_ms / sizeof *ends_ms };

typedef struct histogram {
    uint64_t bucket[N_ENDS + 1];
    uint64_t count;
    int64_t  sum_ms;
} histogram;

typedef struct type_times {
    char      type[WEIR_MAX_TYPE + 1];
    histogram waited, ran;
} type_times;

/* One of srv_routes, and how many routes come before it. */
typedef struct route_table {
    const srv_route *first;
    size_t           n, before;
} route_table;

struct srv_metrics {
    weir_queue        *q;
    route_table        table[MAX_TABLES];
    size_t             n_tables;
    size_t             n_routes;        /* the one behind them is for requests without a route */
    _Atomic uint64_t (*answered)[N_STATUS];

    weir_listener     *listener;
    pthread_mutex_t    lock;            /* guards what follows */
    weir_map           waiting;         /* job to the moment it was queued */
    weir_map           running;         /* job to the moment it was started */
    uint64_t           missed;          /* events */
    size_t             n_types;
    type_times         type[SRV_METRIC_TYPES + 1];      /* the last is for the rest */
    srv_chart         *chart;
    srv_trends        *trends;          /* has a lock of its own */
};

/* ---- requests ---- */

static size_t route_index(const srv_metrics *m, const srv_route *route)
{
    for (size_t i = 0; i < m->n_tables; i++) {
        const route_table *t = &m->table[i];
        if (route >= t->first && route < t->first + t->n)
            return t->before + (size_t)(route - t->first);
    }
    return m->n_routes;
}

static void count_routes(srv_metrics *m)
{
    for (const srv_route *const *first = srv_routes; *first; first++) {
        assert(m->n_tables < MAX_TABLES);
        route_table *t = &m->table[m->n_tables++];
        *t = (route_table){ .first = *first, .before = m->n_routes };
        while (t->first[t->n].method)
            t->n++;
        m->n_routes += t->n;
    }
}

void srv_metrics_answered(srv_metrics *m, const srv_route *route, int status)
{
    if (status >= FIRST_STATUS && status < FIRST_STATUS + N_STATUS)
        atomic_fetch_add_explicit(&m->answered[route_index(m, route)][status - FIRST_STATUS], 1,
                                  memory_order_relaxed);
}

static void write_route(const srv_metrics *m, weir_buf *out, size_t i, const char *method,
                        const char *path)
{
    for (int s = 0; s < N_STATUS; s++) {
        uint64_t n = atomic_load_explicit(&m->answered[i][s], memory_order_relaxed);
        if (!n)
            continue;
        weir__buf_printf(out, "weir_http_requests_total{method=\"%s\",route=\"%s\",status=\"%d\"} "
                         "%llu\n", method, path, s + FIRST_STATUS, (unsigned long long)n);
    }
}

static void write_requests(const srv_metrics *m, weir_buf *out)
{
    size_t i = 0;
    srv_metric_head(out, "weir_http_requests_total", "counter",
                    "Answers, by route and status; without a route where there is none.");
    for (const srv_route *const *table = srv_routes; *table; table++)
        for (const srv_route *r = *table; r->method; r++)
            write_route(m, out, i++, r->method, r->path);
    write_route(m, out, m->n_routes, "", "");
}

/* ---- events ---- */

static void observe(histogram *h, int64_t ms)
{
    size_t i = 0;
    ms = ms < 0 ? 0 : ms;
    while (i < N_ENDS && ms > ends_ms[i])
        i++;
    h->bucket[i]++;
    h->count++;
    h->sum_ms += ms;
}

static type_times *times_of(srv_metrics *m, const char *type)
{
    for (size_t i = 0; i < m->n_types; i++)
        if (strcmp(m->type[i].type, type) == 0)
            return &m->type[i];
    if (m->n_types == SRV_METRIC_TYPES)
        return &m->type[SRV_METRIC_TYPES];
    strcpy(m->type[m->n_types].type, type);
    return &m->type[m->n_types++];
}

/* When the table is full, jobs that come are not followed: those in it are older, and will mostly
 * go first. */
static void begin(weir_map *map, const weir_event *e)
{
    if (map->n < SRV_METRIC_JOBS)
        weir__map_put(map, e->id, (void *)(intptr_t)e->at);
}

/* How long ago it began; -1: it was not followed. */
static int64_t ended(weir_map *map, const weir_event *e)
{
    void *at = weir__map_remove(map, e->id);
    return at ? e->at - (intptr_t)at : -1;
}

static void forget_all(srv_metrics *m)
{
    weir__map_fini(&m->waiting);
    weir__map_fini(&m->running);
    m->waiting = m->running = (weir_map){ 0 };
}

/* Lock held. */
static void follow(srv_metrics *m, const weir_event *e)
{
    int64_t ms;
    switch (e->kind) {
    case WEIR_EVENT_ENQUEUE:
        begin(&m->waiting, e);
        ms = -1;
        break;
    case WEIR_EVENT_START:
        if ((ms = ended(&m->waiting, e)) >= 0)
            observe(&times_of(m, e->type)->waited, ms);
        begin(&m->running, e);
        break;
    case WEIR_EVENT_COMPLETE:
    case WEIR_EVENT_FAILED:
    case WEIR_EVENT_FAILED_ATTEMPT:
        ended(&m->waiting, e);
        if ((ms = ended(&m->running, e)) >= 0)
            observe(&times_of(m, e->type)->ran, ms);
        break;
    default:                /* cancelled, stalled, removed: no execution that ended */
        ended(&m->waiting, e);
        ms = ended(&m->running, e);
        break;
    }
    srv_chart_note(m->chart, e, ms);
    srv_trends_note(m->trends, e, ms);
}

static void on_event(const weir_event *e, void *ctx)
{
    srv_metrics *m = ctx;
    pthread_mutex_lock(&m->lock);
    m->missed += e->missed;
    if (e->missed || e->kind == WEIR_EVENT_ERROR)       /* what was begun may have ended unseen */
        forget_all(m);
    if (e->id && e->type)
        follow(m, e);
    pthread_mutex_unlock(&m->lock);
}

static weir_code listen(srv_metrics *m, weir_error *err)
{
    static const weir_filter filter = {
        .events = WEIR_BIT(WEIR_EVENT_ENQUEUE) | WEIR_BIT(WEIR_EVENT_START) |
            WEIR_BIT(WEIR_EVENT_COMPLETE) |
                  WEIR_BIT(WEIR_EVENT_FAILED) | WEIR_BIT(WEIR_EVENT_FAILED_ATTEMPT) |
                  WEIR_BIT(WEIR_EVENT_CANCELLED) | WEIR_BIT(WEIR_EVENT_STALLED) |
                      WEIR_BIT(WEIR_EVENT_REMOVE) |
                  WEIR_BIT(WEIR_EVENT_ERROR)
    };
    return weir_listen(m->q, &filter, on_event, m, &m->listener, err);
}

/* ---- the text ---- */

void srv_metric_head(weir_buf *out, const char *name, const char *kind, const char *about)
{
    weir__buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, about, name, kind);
}

void srv_metric_label(weir_buf *out, const char *label, const char *value)
{
    weir__buf_printf(out, "%s=\"", label);
    for (const char *p = value; *p; p++) {
        if (*p == '\\' || *p == '"')
            weir__buf_char(out, '\\');
        if (*p == '\n')
            weir__buf_str(out, "\\n");
        else
            weir__buf_char(out, *p);
    }
    weir__buf_char(out, '"');
}

void srv_metric_one(weir_buf *out, const char *name, const char *kind, const char *about,
                    uint64_t value)
{
    srv_metric_head(out, name, kind, about);
    weir__buf_printf(out, "%s %llu\n", name, (unsigned long long)value);
}

void srv_metric_seconds(weir_buf *out, int64_t ms)
{
    weir__buf_printf(out, "%lld.%03d", (long long)(ms / 1000), (int)(ms % 1000));
}

static void write_histogram(weir_buf *out, const char *name, const char *type, const histogram *h)
{
    uint64_t sum = 0;
    if (!h->count)
        return;
    for (size_t i = 0; i <= N_ENDS; i++) {
        sum += h->bucket[i];
        weir__buf_printf(out, "%s_bucket{", name);
        srv_metric_label(out, "type", type);
        weir__buf_str(out, ",le=\"");
        if (i < N_ENDS)
            srv_metric_seconds(out, ends_ms[i]);
        else
            weir__buf_str(out, "+Inf");
        weir__buf_printf(out, "\"} %llu\n", (unsigned long long)sum);
    }
    weir__buf_printf(out, "%s_sum{", name);
    srv_metric_label(out, "type", type);
    weir__buf_str(out, "} ");
    srv_metric_seconds(out, h->sum_ms);
    weir__buf_printf(out, "\n%s_count{", name);
    srv_metric_label(out, "type", type);
    weir__buf_printf(out, "} %llu\n", (unsigned long long)h->count);
}

static void write_times(srv_metrics *m, weir_buf *out)
{
    srv_metric_head(out, "weir_job_wait_seconds", "histogram",
                    "From when a job could be taken to when it was. Counted since the "
                    "server started.");
    for (size_t i = 0; i <= SRV_METRIC_TYPES; i++)
        write_histogram(out, "weir_job_wait_seconds", m->type[i].type, &m->type[i].waited);
    srv_metric_head(out, "weir_job_duration_seconds", "histogram",
                    "Executions that ended, with success or failure. Counted since the "
                    "server started.");
    for (size_t i = 0; i <= SRV_METRIC_TYPES; i++)
        write_histogram(out, "weir_job_duration_seconds", m->type[i].type, &m->type[i].ran);
    srv_metric_one(out, "weir_events_missed_total", "counter",
                   "Events that came too fast to be counted in the histograms.", m->missed);
}

void srv_metrics_seconds(srv_metrics *m, int64_t first, int64_t n, weir_trend *to)
{
    pthread_mutex_lock(&m->lock);
    for (int64_t i = 0; i < n; i++)
        srv_chart_add(m->chart, first + i, to);
    pthread_mutex_unlock(&m->lock);
}

srv_trends *srv_metrics_trends(srv_metrics *m)
{
    return m->trends;
}

void srv_metrics_write(srv_metrics *m, weir_buf *out)
{
    write_requests(m, out);
    pthread_mutex_lock(&m->lock);
    write_times(m, out);
    pthread_mutex_unlock(&m->lock);
}

/* ---- making one ---- */

weir_code srv_metrics_create(srv_metrics **out, weir_queue *q, weir_error *err)
{
    *out = NULL;
    srv_metrics *m = calloc(1, sizeof *m);
    if (!m)
        return weir_fail(err, WEIR_ENOMEM, "metrics: out of memory");
    m->q = q;
    pthread_mutex_init(&m->lock, NULL);
    count_routes(m);
    m->answered = calloc(m->n_routes + 1, sizeof *m->answered);
    m->chart = srv_chart_create();
    weir_code rc = m->answered && m->chart
                       ? srv_trends_create(&m->trends, q, err)
                       : weir_fail(err, WEIR_ENOMEM, "metrics: out of memory");
    if (!rc)
        rc = listen(m, err);
    if (rc) {
        srv_metrics_destroy(m);
        return rc;
    }
    *out = m;
    return WEIR_OK;
}

void srv_metrics_destroy(srv_metrics *m)
{
    if (!m)
        return;
    weir_unlisten(m->listener);
    forget_all(m);
    srv_trends_destroy(m->trends);
    srv_chart_destroy(m->chart);
    pthread_mutex_destroy(&m->lock);
    free(m->answered);
    free(m);
}
