/* api_metrics.c - GET /metrics, in the text format of Prometheus. */
#include <string.h>

#include "server/bus/bus.h"
#include "server/http/inner.h"

static void line(weir_buf *out, const char *name, const weir_type_stats *t, uint64_t value)
{
    weir__buf_printf(out, "%s{", name);
    srv_metric_label(out, "type", t->type);
    weir__buf_printf(out, "} %llu\n", (unsigned long long)value);
}

static void seconds_line(weir_buf *out, const char *name, const weir_type_stats *t, int64_t ms)
{
    weir__buf_printf(out, "%s{", name);
    srv_metric_label(out, "type", t->type);
    weir__buf_str(out, "} ");
    srv_metric_seconds(out, ms);
    weir__buf_char(out, '\n');
}

/* Types beyond SRV_METRIC_TYPES are added up under the empty name, which no type has. So the number
 * of time series does not grow with the names that users choose. */
static weir_type_stats *bound_types(srv_request *r, const weir_stats *s, size_t *n)
{
    weir_type_stats *t = srv_alloc(r, (SRV_METRIC_TYPES + 1) * sizeof *t);
    if (!t)
        return NULL;
    *n = s->n < SRV_METRIC_TYPES ? s->n : SRV_METRIC_TYPES;
    for (size_t i = 0; i < *n; i++)
        t[i] = s->type[i];
    if (s->n == *n)
        return t;
    weir_type_stats *rest = &t[(*n)++];
    rest->type = "";
    for (size_t i = SRV_METRIC_TYPES; i < s->n; i++) {
        const weir_type_stats *each = &s->type[i];
        for (int state = 0; state < WEIR_STATE_COUNT; state++)
            rest->count[state] += each->count[state];
        rest->completed += each->completed;
        rest->failed += each->failed;
        rest->work_ms += each->work_ms;
        if (each->oldest_at && (!rest->oldest_at || each->oldest_at < rest->oldest_at))
            rest->oldest_at = each->oldest_at;
    }
    return t;
}

static void write_types(weir_buf *out, const weir_type_stats *t, size_t n, int64_t now)
{
    srv_metric_head(out, "weir_jobs", "gauge", "Jobs, by type and state.");
    for (size_t i = 0; i < n; i++) {
        for (int state = WEIR_STATE_INACTIVE; state < WEIR_STATE_COUNT; state++) {
            weir__buf_str(out, "weir_jobs{");
            srv_metric_label(out, "type", t[i].type);
            weir__buf_printf(out, ",state=\"%s\"} %llu\n", weir_state_name((weir_state)state),
                             (unsigned long long)t[i].count[state]);
        }
    }
#define EACH(name, kind, about, line, value)                                                      \
    srv_metric_head(out, name, kind, about);                                                      \
    for (size_t i = 0; i < n; i++)                                                                \
        line(out, name, &t[i], value)
    EACH("weir_executions_completed_total", "counter",
         "Executions that succeeded, ever; kept with the jobs.", line, t[i].completed);
    EACH("weir_executions_failed_total", "counter",
         "Executions that failed, ever; kept with the jobs.", line, t[i].failed);
    EACH("weir_work_seconds_total", "counter", "Time spent in executions that succeeded, ever.",
         seconds_line, t[i].work_ms);
    EACH("weir_oldest_waiting_seconds", "gauge", "Age of the job that is next; 0 when none waits.",
         seconds_line, t[i].oldest_at && now > t[i].oldest_at ? now - t[i].oldest_at : 0);
    EACH("weir_type_paused", "gauge", "1: no worker takes jobs of this type.", line, t[i].paused);
#undef EACH
}

static void write_store(weir_buf *out, weir_queue *q)
{
    weir_metrics m;
    uint64_t     sum = 0;
    weir_get_metrics(q, &m);
    srv_metric_head(out, "weir_store_batch_size", "histogram",
                    "Operations in one call of the store.");
    for (int i = 0; i < WEIR_BATCH_SIZES; i++) {
        sum += m.size[i];
        weir__buf_printf(out, "weir_store_batch_size_bucket{le=\"%d\"} %llu\n", 1 << i,
                         (unsigned long long)sum);
    }
    weir__buf_printf(out, "weir_store_batch_size_bucket{le=\"+Inf\"} %llu\n"
                     "weir_store_batch_size_sum %llu\nweir_store_batch_size_count %llu\n",
                     (unsigned long long)sum, (unsigned long long)m.operations,
                     (unsigned long long)sum);
    srv_metric_head(out, "weir_store_busy_seconds_total", "counter", "Time spent in the store.");
    weir__buf_str(out, "weir_store_busy_seconds_total ");
    srv_metric_seconds(out, (int64_t)(m.busy_ns / 1000000));
    weir__buf_char(out, '\n');
}

/* Members of srv_counters. */
static const struct {
    const char *name, *kind, *about;
    size_t      offset;
} counted[] = {
#define C(name, kind, member, about) { name, kind, about, offsetof(srv_counters, member) }
    C("weir_leases_lost_total", "counter", leases_lost,
      "Jobs whose worker was lost."),
    C("weir_remote_jobs_taken_total", "counter", jobs_taken,
      "Jobs handed to remote workers."),
    C("weir_remote_jobs_ended_total", "counter", jobs_ended,
      "Jobs that remote workers have ended."),
    C("weir_remote_jobs_stale_total", "counter", jobs_stale,
      "Endings and renewals of remote workers that came too late."),
    C("weir_remote_jobs_returned_total", "counter", jobs_returned,
      "Jobs taken for a client that was gone, and given back."),
    C("weir_remote_takes_waiting", "gauge", takes_waiting,
      "Remote workers that wait for a job."),
    C("weir_event_listeners", "gauge", listeners,
      "Clients that listen to events."),
    C("weir_event_listeners_dropped_total", "counter", listeners_dropped,
      "Listeners that were too slow."),
    C("weir_event_listeners_refused_total", "counter", listeners_refused,
      "Listeners that were one too many."),
    C("weir_events_sent_total", "counter", events_sent,
      "Events, each as often as it was sent."),
    C("weir_http_answers_refused_total", "counter", answers_refused,
      "Requests refused because of SRV_MAX_ANSWERS."),
    C("weir_http_answers_delayed_total", "counter", answers_delayed,
      "Parts of answers that waited for room under SRV_MAX_ANSWERS or a share."),
    C("weir_http_callers_revoked_total", "counter", callers_revoked,
      "Streams and waiting requests that ended because their token was not valid any more."),
#undef C
};

static void write_tokens(weir_buf *out, srv_server *s)
{
    srv_token_counts n;
    srv_guard_count_tokens(s->guard, &n);
    srv_metric_head(out, "weir_tokens", "gauge",
                    "Tokens of callers; expiring: within 7 days (SRV_EXPIRES_SOON_MS).");
    weir__buf_printf(out, "weir_tokens{state=\"valid\"} %zu\nweir_tokens{state=\"expiring\"} %zu\n"
                     "weir_tokens{state=\"expired\"} %zu\n", n.valid - n.soon, n.soon, n.expired);
}

static void write_spans(weir_buf *out)
{
    weir_trace_stats spans;
    weir_get_trace_stats(&spans);
    srv_metric_one(out, "weir_spans_sent_total", "counter", "Spans that the collector has taken.",
                   spans.sent);
    srv_metric_one(out, "weir_spans_dropped_total", "counter",
                   "Spans that were lost: too many waited, or the collector refused them.",
                   spans.dropped);
}

static void write_bus(weir_buf *out, srv_server *s)
{
    srv_job_events_stats n;
    srv_job_events_get(s->bus->events, &n);
    srv_metric_one(out, "weir_bus_job_events_lost_total", "counter",
                   "Events of jobs that were not published on the bus: too many waited.", n.lost);
    srv_metric_one(out, "weir_bus_job_events_too_long_total", "counter",
                   "Events of jobs whose address is too long for the bus.", n.too_long);
}

static void write_server(weir_buf *out, srv_server *s)
{
    write_spans(out);
    srv_metric_head(out, "weir_info", "gauge", "The version of the server.");
    weir__buf_printf(out, "weir_info{version=\"%s\"} 1\n", weir_version());
    srv_metric_head(out, "weir_start_time_seconds", "gauge", "When the server was started.");
    weir__buf_str(out, "weir_start_time_seconds ");
    srv_metric_seconds(out, s->started_at);
    weir__buf_char(out, '\n');
    srv_metric_one(out, "weir_http_connections", "gauge", "Connections.",
                   (uint64_t)atomic_load(&s->n_conns));
    srv_metric_one(out, "weir_http_requests_running", "gauge",
                   "Requests being read or worked on, long polls and listeners included.",
                   (uint64_t)atomic_load(&s->n_exchanges));
    srv_metric_one(out, "weir_http_body_bytes", "gauge",
                   "Memory of request bodies being read or worked on.", atomic_load(&s->bodies));
    srv_metric_one(out, "weir_http_answer_bytes", "gauge",
                   "Memory of answers that clients have not taken yet.", atomic_load(&s->answers));
    srv_metric_head(out, "weir_http_over_share_total", "counter",
                    "Refusals (429) of callers over their share, by the name of the setting.");
    for (int i = 0; i < SRV_SHARES; i++)
        weir__buf_printf(out, "weir_http_over_share_total{limit=\"%s\"} %llu\n",
                         srv_share_name((srv_share)i),
                         (unsigned long long)atomic_load(&s->counters.over_share[i]));
    srv_metric_one(out, "weir_reload_failures_total", "counter",
                   "Files of tokens, certificates and logs that could not be read or opened again.",
                   srv_guard_failures(s->guard) + atomic_load(&s->counters.reloads_failed));
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        srv_metric_one(out, counted[i].name, counted[i].kind, counted[i].about,
                       atomic_load((_Atomic uint64_t *)((char *)&s->counters + counted[i].offset)));
}

static void got_stats(srv_request *r, weir_code code, const weir_error *err)
{
    weir_stats *s = *(weir_stats **)r->state;
    weir_buf    out = { 0 };
    size_t      n;
    if (code) {
        srv_reply_error(r, err);
        return;
    }
    weir_type_stats *types = bound_types(r, s, &n);
    if (types) {
        write_types(&out, types, n, weir_now(srv_queue(r)));
        srv_metric_one(&out, "weir_jobs_added_total", "counter", "The highest id of a job so far.",
                       s->last_id);
        write_store(&out, srv_queue(r));
        write_server(&out, r->server);
        write_bus(&out, r->server);
        write_tokens(&out, r->server);
        srv_metrics_write(r->server->metrics, &out);
    } else {
        out.failed = true;
    }
    weir_stats_free(s);
    srv_reply(r, 200, "text/plain; version=0.0.4; charset=utf-8", &out);
}

static void get_metrics(srv_request *r)
{
    weir_error   err = { 0 };
    weir_future *f = NULL;
    if (!srv_allow(r, WEIR_ROLE_READ, NULL))
        return;
    weir_stats **stats = r->state = srv_alloc(r, sizeof *stats);
    if (!stats) {
        srv_reply_fail(r, WEIR_ENOMEM, NULL, "out of memory");
        return;
    }
    weir_code rc = weir_get_stats_async(srv_queue(r), stats, &f, &err);
    srv_await(r, rc, &err, f, got_stats);
}

const srv_route srv_metrics_routes[] = {
    { "GET", "/metrics", WEIR_ROLE_READ, get_metrics, 0, NULL, 0,
      "What is counted, in the text format of Prometheus", NULL, "Metrics", 200 },
    { 0 }
};
